// WarpProduct: what an accumulator adds where there is no wgmma: the warps of
// its warpgroup multiply, each 16 of every 64 rows, by mma.sync.
//
// The registers are the same as those of wgmma, whose warps have the same rows,
// and so are the operands: tiles as TMA or threads leave them, swizzled, which
// ldmatrix reads without bank conflicts. A product is finished when it has been
// issued.
#pragma once

#include "dsl/tensorcore/AccumulatorState.h"
#include "dsl/tensorcore/SharedOperand.h"

namespace kiln {

/// Refuse an accumulator of columns that instructions of 8 do not cover.
void checkWarpColumns(int columns, const Where &where);

/// What an accumulator begins with.
llvm::SmallVector<mlir::Value>
zeroRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, const Where &where);

class WarpProduct {
public:
  /// Throws UserError where mma.sync does not multiply `a` by `b`.
  WarpProduct(KernelBuilder::State &state, Accumulator::State &accumulator,
              Type a, const SharedTile &b, const MmaOptions &options,
              const Where &where);

  /// K of one instruction.
  int k() const { return kInstructionKBytes / size_bytes(a_); }
  /// accumulator += a * b, with A in shared memory or in registers, four words
  /// for each 64 rows and 32 bytes of K, along K first.
  void issue(const SharedOperand &a);
  void issue(llvm::ArrayRef<mlir::Value> a);

private:
  /// The words of A for all rows, at `k`.
  using WordsOfA = llvm::function_ref<llvm::SmallVector<mlir::Value>(int k)>;
  void issueAll(WordsOfA wordsOfA);
  std::string text() const;

  KernelBuilder::State &state_;
  Accumulator::State &accumulator_;
  Type a_;
  SharedOperand b_;
  MmaOptions options_;
  Where where_;
};

} // namespace kiln
