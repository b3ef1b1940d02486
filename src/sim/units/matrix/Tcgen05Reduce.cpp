// Tcgen05Reduce: what tcgen05.ld.red makes of the columns that it loads.
#include "sim/units/matrix/Tcgen05.h"
#include "support/Half.h"

#include <bit>
#include <cmath>

namespace kiln::sim {

TensorReduction decodeTensorReduction(const Decoder &decoder,
                                      const ptx::Instruction &instruction) {
  TensorReduction reduction{lastType(decoder, instruction),
                            instruction.has("max"), instruction.has("abs"),
                            instruction.has("NaN")};
  bool isFloat = reduction.type == ptx::ScalarType::f32;
  if (!isFloat && (reduction.isAbsolute || reduction.isNan))
    decoder.refuse(instruction, ".abs and .NaN are of f32");
  return reduction;
}

/// Whether the first of two is the result.
static bool isFirst(const TensorReduction &reduction, std::uint32_t a,
                    std::uint32_t b) {
  bool isMax = reduction.isMax;
  if (reduction.type == ptx::ScalarType::u32)
    return isMax ? a >= b : a <= b;
  if (reduction.type == ptx::ScalarType::s32) {
    auto x = static_cast<std::int32_t>(a), y = static_cast<std::int32_t>(b);
    return isMax ? x >= y : x <= y;
  }
  float x = std::bit_cast<float>(a), y = std::bit_cast<float>(b);
  if (std::isnan(x) || std::isnan(y))
    return std::isnan(x) == reduction.isNan;
  if (x == y) // -0 is below +0
    return std::signbit(x) != isMax;
  return (x > y) == isMax;
}

void reduceRegisters(Warp &warp, const Op &op,
                     const TensorReduction &reduction) {
  bool isFloat = reduction.type == ptx::ScalarType::f32;
  auto valueOf = [&](const Reg &reg, int lane) {
    auto bits = static_cast<std::uint32_t>(warp.read(reg, lane));
    if (!isFloat)
      return bits;
    bits &= reduction.isAbsolute ? 0x7fffffff : ~0u;
    return std::bit_cast<std::uint32_t>(canonical(std::bit_cast<float>(bits)));
  };
  LaneMask bad = 0;
  std::uint32_t origin = 0;
  for (const Reg &reg : op.list) {
    if (!origin && warp.poison(reg))
      origin = warp.poisonOrigin(reg);
    bad |= warp.poison(reg);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t found = valueOf(op.list[0], lane);
    for (std::size_t i = 1; i < op.list.size(); ++i)
      if (std::uint32_t next = valueOf(op.list[i], lane);
          !isFirst(reduction, found, next))
        found = next;
    warp.write(op.dst, lane, found);
  }
  warp.setPoison(op.dst, kAllLanes, bad);
  warp.setPoisonOrigin(op.dst, origin);
}

} // namespace kiln::sim
