// AccumulatorState: the registers of an accumulator, for its own files and for
// the protocol of products.
#pragma once

#include "dsl/kernel/State.h"
#include "dsl/tile/TileWalk.h"
#include "kiln/language/tile/layout.h"
#include "kiln/language/tensorcore/wgmma.h"

namespace kiln {

struct Accumulator::State {
  Type type;
  int rows, columns, instructionN;
  const void *kernel = nullptr;              ///< whose kernel it is
  WgmmaGroups::Id id = 0;                    ///< among those of the kernel
  std::vector<void *> slots = {};            ///< one variable per register
  void *added = nullptr;                     ///< variable: the next mma adds
  std::optional<RegisterLayout> layout = {}; ///< made once: making checks it
  std::optional<TileWalk> walk = {};         ///< the last one ...
  mlir::Block *walked = nullptr;             ///< ... and where it is known
};

/// The kernel under construction, which must be the accumulator's.
KernelBuilder::State &kernelOf(const Accumulator::State &accumulator,
                               const Where &where);

/// Refuse to touch registers that a product may be writing.
void checkLanded(const Accumulator::State &accumulator, const Where &where);

/// Read `count` registers; one of f16 is a word of two elements.
llvm::SmallVector<mlir::Value>
loadRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, int first, int count,
              const Where &where);
llvm::SmallVector<mlir::Value>
loadRegisters(KernelBuilder::State &state,
              const Accumulator::State &accumulator, const Where &where);
/// Write all of them.
void storeRegisters(KernelBuilder::State &state,
                    const Accumulator::State &accumulator,
                    llvm::ArrayRef<mlir::Value> values, const Where &where);

/// The 32-bit registers of a tile, in its order.
llvm::SmallVector<mlir::Value> wordsOf(KernelBuilder::State &state,
                                       const RegisterTile &tile,
                                       const Where &where);

} // namespace kiln
