// MemoryNeed: what happens where LLVM finds no memory.
//
// LLVM and MLIR are built without exceptions: a std::bad_alloc through their
// frames leaves locks held and tables half changed, and LLVM's own answer is
// abort(). While a MemoryNeed lives on a thread, an allocation of that thread
// that fails ends the process: with a sentence, and by std::terminate, whose
// handler the program chooses. Elsewhere std::bad_alloc is thrown as ever.
#pragma once

namespace kiln {

class MemoryNeed {
public:
  MemoryNeed();
  ~MemoryNeed();
  MemoryNeed(const MemoryNeed &) = delete;
  MemoryNeed &operator=(const MemoryNeed &) = delete;
};

} // namespace kiln
