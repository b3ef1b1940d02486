// Mma: products of a warp whose operands are not simply there: sparse, with
// block scales, of less than a byte, or of a quarter of the warp; and the
// blocks of bytes that ldmatrix and stmatrix move for them.
#pragma once

#include "sim/units/matrix/MmaShapes.h"
#include "sim/units/memory/Access.h"

namespace kiln::sim {

/// Op::flags of ldmatrix and stmatrix: their addresses are generic.
inline constexpr std::uint32_t isGenericRow = 1;

/// The row of a block, of 16 bytes, that a lane's address means.
ByteRange rowAt(Warp &warp, const Op &op, Accessor &accessor, int lane,
                bool isWrite);

/// D, A, B and C of an mma into op.list.
void decodeMmaRegisters(Decoder &decoder, const ptx::Instruction &instruction,
                        const MmaShape &shape, Op &op);
/// An mma that is not plain (MmaShape), behind its registers.
void decodeMmaProduct(Decoder &decoder, const ptx::Instruction &instruction,
                      const MmaShape &shape, Op &op);
/// ldmatrix and stmatrix of b8.
void decodeNarrowBlocks(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op);
/// wmma.load of A or B of s4, u4 and b1, and their wmma.mma.
void decodeWmmaLines(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op);
void decodeWmmaOfLines(Decoder &decoder, const ptx::Instruction &instruction,
                       ptx::ScalarType type, Op &op);

} // namespace kiln::sim
