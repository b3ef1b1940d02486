// scaling.h: factors of A and B, of products of narrow floats.
//
// Elements of 4, 6 and 8 bits cover a small range; so a matrix, or a block of
// it, shares a factor. Of a product, each block's sum is multiplied by the
// factors of its row of A and of its column of B before it is added.
//
//     tensor  f32    of all of A, of all of B
//     blocks  f32    of 1x128 elements of A, of 128x128 of B       on Hopper
//     mx      ue8m0  of 1x32 of A and of B: mxfp8, mxfp6, mxfp4    on Blackwell
//     nv      ue4m3  of 1x16 of A and of B: nvfp4                  on Blackwell
//
// In memory the factors of `blocks` are, of A, [k blocks, rows], and of B,
// [blocks of columns, k blocks]. Those of mx and nv lie as tensor memory takes
// them (and as cuBLAS has them): 512 bytes for 128 rows by 4 blocks of K, one
// such piece behind the other along K, then along the rows. In a piece, byte
// 16 l + 4 i + j is the factor of row 32 i + l in block j. Rows and blocks are
// filled up to whole pieces; what is added along K holds a number, such as 0.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/types.h>

#include <cstdint>
#include <string_view>

namespace KILN_API kiln {

enum class Scaling : std::uint8_t { none, tensor, blocks, mx, nv };

/// What one factor is of.
struct ScalingBlock {
  Type type = Type::f32; ///< of a factor
  int k = 1;             ///< elements of K
  int a_rows = 1;        ///< rows of A
  int b_columns = 1;     ///< columns of B
};
ScalingBlock block_of(Scaling scaling);

/// The pieces of mx and nv.
inline constexpr int kScalePieceRows = 128, kScalePieceBlocks = 4,
                     kScalePieceBytes = 512;

/// An operand of a product, by its sizes.
struct ScaledOperand {
  bool is_a = true;
  std::int64_t rows = 1, k = 1; ///< rows of A, or columns of B
};
/// Factors of one operand, and the place of that of element (row, k) among
/// them.
std::int64_t scale_count(Scaling scaling, const ScaledOperand &operand);
std::int64_t scale_index(Scaling scaling, const ScaledOperand &operand,
                         std::int64_t row, std::int64_t k);

/// "none", "tensor", "blocks", "mx", "nv"
std::string_view name(Scaling scaling);
/// The inverse. Throws UserError.
Scaling parse_scaling(std::string_view text);

} // namespace kiln
