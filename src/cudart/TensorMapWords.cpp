// TensorMapWords: tables in the driver's order.
#include "cudart/TensorMapWords.h"

#include <iterator>
#include <utility>

namespace kiln::cudart {

template <typename Word, std::size_t count>
static bool look(const Word (&words)[count], std::int64_t number, Word &word) {
  if (number < 0 || number >= static_cast<std::int64_t>(count))
    return false;
  word = words[number];
  return true;
}

std::optional<TensorMap> tensorMapOf(std::int64_t type, std::int64_t interleave,
                                     std::int64_t swizzle,
                                     std::int64_t l2Promotion,
                                     std::int64_t oobFill) {
  // FTZ variants read the same.
  static constexpr Type kTypes[] = {u8,  u16, u32,  i32, u64,  i64,  f16,
                                    f32, f64, bf16, f32, tf32, tf32, e2m1,
                                    e2m1, e2m3};
  static constexpr std::int64_t kFirstPadded = 14;
  static constexpr std::pair<Swizzle, SwizzleAtom> kSwizzles[] = {
      {Swizzle::none, SwizzleAtom::b16}, {Swizzle::b32, SwizzleAtom::b16},
      {Swizzle::b64, SwizzleAtom::b16},  {Swizzle::b128, SwizzleAtom::b16},
      {Swizzle::b128, SwizzleAtom::b32}, {Swizzle::b128, SwizzleAtom::b32_flip8},
      {Swizzle::b128, SwizzleAtom::b64}};
  static constexpr Interleave kInterleaves[] = {
      Interleave::none, Interleave::b16, Interleave::b32};
  static constexpr L2Promotion kPromotions[] = {
      L2Promotion::none, L2Promotion::b64, L2Promotion::b128,
      L2Promotion::b256};
  static constexpr OobFill kFills[] = {OobFill::zeros, OobFill::nan};
  TensorMap map;
  std::pair<Swizzle, SwizzleAtom> way;
  if (!look(kTypes, type, map.type) || !look(kSwizzles, swizzle, way) ||
      !look(kInterleaves, interleave, map.interleave) ||
      !look(kPromotions, l2Promotion, map.l2) ||
      !look(kFills, oobFill, map.oob))
    return std::nullopt;
  map.swizzle = way.first;
  map.atom = way.second;
  map.is_padded = type >= kFirstPadded;
  return map;
}

} // namespace kiln::cudart
