// Reduction: one element after another, in the arithmetic of its type.
#include "sim/units/memory/Reduction.h"
#include "sim/units/Execute.h"
#include "support/Half.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace kiln::sim {

static constexpr std::pair<const char *, ReductionKind> kKinds[] = {
    {"add", ReductionKind::add},   {"min", ReductionKind::min},
    {"max", ReductionKind::max},   {"inc", ReductionKind::inc},
    {"dec", ReductionKind::dec},   {"and", ReductionKind::bit_and},
    {"or", ReductionKind::bit_or}, {"xor", ReductionKind::bit_xor},
};

const char *name(ReductionKind kind) {
  return kKinds[static_cast<int>(kind)].first;
}

ReductionKind reductionKind(const Decoder &decoder,
                            const ptx::Instruction &instruction) {
  for (const auto &[word, kind] : kKinds)
    if (instruction.has(word))
      return kind;
  decoder.refuse(instruction, "it names none of the operations add min max inc "
                              "dec and or xor");
}

bool Reduction::isKnown() const {
  using enum ptx::ScalarType;
  bool isBits = type == b32 || type == b64;
  bool isInteger = type == u32 || type == s32 || type == u64 || type == s64;
  switch (kind) {
  case ReductionKind::inc:
  case ReductionKind::dec:
    return type == u32;
  case ReductionKind::bit_and:
  case ReductionKind::bit_or:
  case ReductionKind::bit_xor:
    return isBits || isInteger;
  case ReductionKind::min:
  case ReductionKind::max:
    return isInteger || type == f16 || type == bf16;
  case ReductionKind::add:
    return isInteger || type == f16 || type == bf16 || type == f32 ||
           type == f64;
  }
  return false;
}

Reduction decodeReduction(const Decoder &decoder,
                          const ptx::Instruction &instruction) {
  Reduction reduction{reductionKind(decoder, instruction),
                      lastType(decoder, instruction)};
  if (!reduction.isKnown())
    decoder.refuse(instruction,
                   fmt::format("the operation {} is not one of its type",
                               name(reduction.kind)));
  return reduction;
}

std::optional<ptx::ScalarType> reducedType(Type type) {
  switch (type) {
  case Type::i32:
    return ptx::ScalarType::s32;
  case Type::i64:
    return ptx::ScalarType::s64;
  case Type::u32:
    return ptx::ScalarType::u32;
  case Type::u64:
    return ptx::ScalarType::u64;
  case Type::f16:
    return ptx::ScalarType::f16;
  case Type::bf16:
    return ptx::ScalarType::bf16;
  case Type::f32:
    return ptx::ScalarType::f32;
  case Type::f64:
    return ptx::ScalarType::f64;
  default:
    return std::nullopt;
  }
}

/// Add, or the smaller or larger one; a NaN gives way to a number.
template <typename T> static T combine(ReductionKind kind, T old, T value) {
  if (kind == ReductionKind::add) {
    if constexpr (std::is_integral_v<T>) // wraps
      return static_cast<T>(std::make_unsigned_t<T>(old) +
                            std::make_unsigned_t<T>(value));
    else
      return old + value;
  }
  if constexpr (std::is_floating_point_v<T>)
    return kind == ReductionKind::min ? std::fmin(old, value)
                                      : std::fmax(old, value);
  else
    return kind == ReductionKind::min ? std::min(old, value)
                                      : std::max(old, value);
}

/// The operations of unsigned integers and bits.
template <typename T> static T combineBits(ReductionKind kind, T old, T value) {
  switch (kind) {
  case ReductionKind::bit_and:
    return old & value;
  case ReductionKind::bit_or:
    return old | value;
  case ReductionKind::bit_xor:
    return old ^ value;
  case ReductionKind::inc:
    return old >= value ? 0 : old + 1;
  case ReductionKind::dec:
    return old == 0 || old > value ? value : old - 1;
  default:
    return combine<T>(kind, old, value);
  }
}

/// `element(old, value)` for each T of the bytes.
template <typename T, typename F>
static void forEachElement(std::uint8_t *to, const std::uint8_t *from,
                           std::size_t bytes, F &&element) {
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T old, value;
    std::memcpy(&old, to + i, sizeof(T));
    std::memcpy(&value, from + i, sizeof(T));
    old = element(old, value);
    std::memcpy(to + i, &old, sizeof(T));
  }
}

void Reduction::apply(std::uint8_t *to, const std::uint8_t *from,
                      std::size_t bytes) const {
  using U16 = std::uint16_t;
  bool isNumber = kind == ReductionKind::add || kind == ReductionKind::min ||
                  kind == ReductionKind::max;
  auto number = [&]<typename T>() {
    forEachElement<T>(to, from, bytes,
                      [&](T a, T b) { return combine(kind, a, b); });
  };
  auto bits = [&]<typename T>() {
    forEachElement<T>(to, from, bytes,
                      [&](T a, T b) { return combineBits(kind, a, b); });
  };
  switch (type) {
  case ptx::ScalarType::f16:
    return forEachElement<U16>(to, from, bytes, [&](U16 a, U16 b) {
      return floatToHalf(combine(kind, halfToFloat(a), halfToFloat(b)));
    });
  case ptx::ScalarType::bf16:
    return forEachElement<U16>(to, from, bytes, [&](U16 a, U16 b) {
      return floatToBfloat(combine(kind, bfloatToFloat(a), bfloatToFloat(b)));
    });
  case ptx::ScalarType::f32:
    return number.operator()<float>();
  case ptx::ScalarType::f64:
    return number.operator()<double>();
  case ptx::ScalarType::s32:
    if (isNumber)
      return number.operator()<std::int32_t>();
    return bits.operator()<std::uint32_t>();
  case ptx::ScalarType::s64:
    if (isNumber)
      return number.operator()<std::int64_t>();
    return bits.operator()<std::uint64_t>();
  default:
    if (elementBytes() == 8)
      return bits.operator()<std::uint64_t>();
    return bits.operator()<std::uint32_t>();
  }
}

} // namespace kiln::sim
