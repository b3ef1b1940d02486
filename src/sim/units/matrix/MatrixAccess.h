// MatrixAccess: the shared memory that operands of the tensor core lie in, as
// the checks see it.
#pragma once

#include "sim/units/matrix/MatrixProduct.h"
#include "sim/units/memory/Access.h"

namespace kiln::sim {

/// End the launch where an operand is not in the CTA's shared memory.
void checkBounds(Warp &warp, const Op &op, const Cta &cta,
                 const OperandView &view);

/// The cells of operands, each page once.
std::vector<PageCells> cellsOf(const Cta &cta,
                               const std::vector<OperandView> &views);

/// Tell who watches in which swizzle operands are read.
void tellSwizzles(Warp &warp, const Op &op, Cta &cta,
                  const std::vector<OperandView> &views);

/// Where the first byte of an operand's row that nobody has written was read
/// first; by `op`, where nobody has before.
std::uint32_t originOf(Warp &warp, const Op &op, const Cta &cta,
                       const OperandView &view, int row);

} // namespace kiln::sim
