// trace: the lines a GEMM prints while it is debugged.
//
// One line before and one after each wait, the places in shared memory that are
// filled and multiplied, and each arrival: where a kernel hangs, the last line
// of each role says on what. mbarTMA are the barriers of full slots, mbarDONE
// those of empty ones; `iv` is the K tile.
#pragma once

#include <kiln/kernels/gemm.h>
#include <kiln/language/value/print.h>

namespace kiln::gemm_kernel {

class Trace {
public:
  /// Of a kernel whose slots begin with every stage of A, then of B.
  Trace(const GemmProblem &problem, const GemmSchedule &schedule);

  // The producer of a warp-specialized kernel, in the one thread that loads.
  void producer_waits(const Value &iv) const;
  void producer_loaded(const Value &iv) const;
  // Its consumer, in all threads; the first one prints.
  void consumer_waits(const Value &iv) const;
  void consumer_multiplies(const Value &iv) const;
  void consumer_releases(const Value &iv) const;
  void consumer_stores() const;

  // The multistage kernel, in all threads; `row` and `column` are where its
  // output tile begins.
  void prologue_loads(const Value &iv, const Value &row,
                      const Value &column) const;
  void main_waits(const Value &iv) const;
  void main_multiplies(const Value &iv) const;
  /// In turn `iv` the K tile `next` is loaded, where there is one.
  void main_loads(const Value &iv, const Value &next, const Dim &k_tiles,
                  const Value &row, const Value &column) const;
  void stores() const;

private:
  Value stage(const Value &iv) const { return iv % stages_; }
  /// The parity of a slot's phase for its `first` user's first round.
  Value phase(const Value &iv, int first) const;
  Value a_offset(const Value &slot) const { return slot * a_bytes_; }
  Value b_offset(const Value &slot) const;

  int stages_, tile_k_;
  int a_bytes_, b_bytes_, panel_bytes_;
};

} // namespace kiln::gemm_kernel
