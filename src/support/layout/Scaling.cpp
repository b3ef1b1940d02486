// Scaling: what a factor is of, and where it lies.
#include "kiln/language/tensorcore/scaling.h"

#include "support/Error.h"

#include <array>
#include <fmt/ranges.h>
#include <limits>
#include <vector>

namespace kiln {

namespace {
struct ScalingInfo {
  std::string_view name;
  ScalingBlock block;
};
} // namespace

/// Larger than any matrix: all of it is one block.
static constexpr int kAll = std::numeric_limits<int>::max();

/// In the order of `Scaling`.
static constexpr std::array<ScalingInfo, 5> kScalings = {{
    {"none", {}},
    {"tensor", {Type::f32, kAll, kAll, kAll}},
    {"blocks", {Type::f32, 128, 1, 128}},
    {"mx", {Type::ue8m0, 32, 1, 1}},
    {"nv", {Type::ue4m3, 16, 1, 1}},
}};

static const ScalingInfo &infoOf(Scaling scaling) {
  auto position = static_cast<std::size_t>(scaling);
  if (position >= kScalings.size())
    internalError("there is no scaling number {}", position);
  return kScalings[position];
}

ScalingBlock block_of(Scaling scaling) { return infoOf(scaling).block; }

std::string_view name(Scaling scaling) { return infoOf(scaling).name; }

Scaling parse_scaling(std::string_view text) {
  std::vector<std::string_view> names;
  for (std::size_t i = 0; i < kScalings.size(); ++i) {
    if (kScalings[i].name == text)
      return static_cast<Scaling>(i);
    names.push_back(kScalings[i].name);
  }
  userError("'{}' is not a valid scaling; use one of {}", text,
            fmt::join(names, ", "));
}

static std::int64_t ceilDiv(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Rows of A, or columns of B, that share a factor.
static int sharedRows(const ScalingBlock &block, const ScaledOperand &operand) {
  return operand.is_a ? block.a_rows : block.b_columns;
}

std::int64_t scale_count(Scaling scaling, const ScaledOperand &operand) {
  ScalingBlock block = block_of(scaling);
  std::int64_t blocks = ceilDiv(operand.k, block.k);
  switch (scaling) {
  case Scaling::none:
    return 0;
  case Scaling::tensor:
  case Scaling::blocks:
    return blocks * ceilDiv(operand.rows, sharedRows(block, operand));
  case Scaling::mx:
  case Scaling::nv:
    break;
  }
  return ceilDiv(operand.rows, kScalePieceRows) *
         ceilDiv(blocks, kScalePieceBlocks) * kScalePieceBytes;
}

std::int64_t scale_index(Scaling scaling, const ScaledOperand &operand,
                         std::int64_t row, std::int64_t k) {
  ScalingBlock block = block_of(scaling);
  std::int64_t blocks = ceilDiv(operand.k, block.k), at = k / block.k;
  if (scaling == Scaling::tensor || scaling == Scaling::blocks) {
    int shared = sharedRows(block, operand);
    return operand.is_a ? at * ceilDiv(operand.rows, shared) + row / shared
                        : row / shared * blocks + at;
  }
  std::int64_t pieces = ceilDiv(blocks, kScalePieceBlocks);
  std::int64_t piece = row / kScalePieceRows * pieces + at / kScalePieceBlocks;
  std::int64_t in = row % kScalePieceRows;
  return piece * kScalePieceBytes + in % 32 * 16 + in / 32 * 4 +
         at % kScalePieceBlocks;
}

} // namespace kiln
