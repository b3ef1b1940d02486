// WgmmaProduct: one multiplication of a warpgroup, done when all four warps
// have issued it.
#pragma once

#include "sim/machine/Machine.h"
#include "sim/program/InstructionSet.h"
#include "sim/units/matrix/MatrixProduct.h"

namespace kiln::sim {

inline constexpr int kWarpsPerGroup = 4;

/// What a wgmma.mma_async says.
struct Product {
  ProductShape shape;
  Reg descriptorA, descriptorB;
  std::vector<Reg> fragment; ///< A; empty: it is in shared memory
  std::vector<Reg> accumulator;
  Pred scaleD; ///< not valid: a constant
  bool isScaleDOne = true;
  Reg metadata;     ///< of a sparse product
  int selector = 0; ///< of its lanes
};

/// The operands that lie in shared memory.
std::vector<OperandView> viewsOf(const Product &product,
                                 std::uint64_t descriptorA,
                                 std::uint64_t descriptorB);

/// Do one multiplication, for the four warps of a group.
void multiply(const std::array<Warp *, kWarpsPerGroup> &group, const Op &op,
              std::uint64_t descriptorA, std::uint64_t descriptorB,
              bool isAdded);

/// The row of setmaxnreg (RegisterPool).
Instruction setmaxnregInstruction();

} // namespace kiln::sim
