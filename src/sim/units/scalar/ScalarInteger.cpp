// ScalarInteger: integer arithmetic, and the table of the scalar unit.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"

#include <limits>

namespace kiln::sim {

/// The type with twice the bits of T.
template <typename T> struct Twice;
template <> struct Twice<std::uint16_t> {
  using Type = std::uint32_t;
};
template <> struct Twice<std::int16_t> {
  using Type = std::int32_t;
};
template <> struct Twice<std::uint32_t> {
  using Type = std::uint64_t;
};
template <> struct Twice<std::int32_t> {
  using Type = std::int64_t;
};
template <> struct Twice<std::uint64_t> {
  using Type = unsigned __int128;
};
template <> struct Twice<std::int64_t> {
  using Type = __int128;
};
template <typename T> using TwiceOf = typename Twice<T>::Type;

/// Unsigned and of at least 32 bits: arithmetic that wraps without promotion.
template <typename T>
using Wrapping =
    std::conditional_t<sizeof(T) == 8, std::uint64_t, std::uint32_t>;

template <typename T> static T high(T a, T b) {
  return T((TwiceOf<T>(a) * TwiceOf<T>(b)) >> (8 * sizeof(T)));
}

template <typename T> static T low(T a, T b) {
  return T(Wrapping<T>(a) * Wrapping<T>(b));
}

/// a + b within the range of a signed type.
static std::int32_t addSaturated(std::int32_t a, std::int32_t b) {
  std::int64_t sum = std::int64_t(a) + b;
  constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min();
  constexpr std::int64_t high = std::numeric_limits<std::int32_t>::max();
  return std::int32_t(sum < low ? low : sum > high ? high : sum);
}

/// add.u16x2 and add.s16x2: two sums that do not carry into each other.
template <bool isSubtraction>
static std::uint32_t addPairs(std::uint32_t a, std::uint32_t b) {
  if (isSubtraction)
    return ((a - b) & 0xffff) | ((a & 0xffff0000u) - (b & 0xffff0000u));
  return ((a + b) & 0xffff) | ((a & 0xffff0000u) + (b & 0xffff0000u));
}

template <bool isSubtraction>
static void decodeAddOrSub(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  if (instruction.has("cc"))
    return decodeCarry(decoder, instruction, op);
  if (instruction.has("u16x2") || instruction.has("s16x2"))
    return decodeLanewise<std::uint32_t, std::uint32_t, std::uint32_t>(
        decoder, instruction, op, [](std::uint32_t a, std::uint32_t b) {
          return addPairs<isSubtraction>(a, b);
        });
  if (instruction.has("f32x2"))
    return decodeFloatArithmetic(decoder, instruction, op);
  ptx::ScalarType type = lastType(decoder, instruction);
  if (isFloatType(type))
    return decodeFloatArithmetic(decoder, instruction, op);
  if (instruction.has("sat")) {
    if (type != ptx::ScalarType::s32)
      decoder.refuse(instruction, ".sat needs .s32");
    using S = std::int32_t;
    return decodeLanewise<S, S, S>(decoder, instruction, op, [](S a, S b) {
      if (!isSubtraction)
        return addSaturated(a, b);
      std::int64_t difference = std::int64_t(a) - b;
      constexpr std::int64_t low = std::numeric_limits<S>::min();
      constexpr std::int64_t high = std::numeric_limits<S>::max();
      return S(difference < low ? low : difference > high ? high : difference);
    });
  }
  withInteger(decoder, instruction, type, [&]<typename T>() {
    decodeLanewise<T, T, T>(decoder, instruction, op, [](T a, T b) {
      return T(isSubtraction ? Wrapping<T>(a) - Wrapping<T>(b)
                             : Wrapping<T>(a) + Wrapping<T>(b));
    });
  });
}

static void decodeMul(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  if (instruction.has("f32x2"))
    return decodeFloatArithmetic(decoder, instruction, op);
  ptx::ScalarType type = lastType(decoder, instruction);
  if (isFloatType(type))
    return decodeFloatArithmetic(decoder, instruction, op);
  withInteger(decoder, instruction, type, [&]<typename T>() {
    if (instruction.has("wide")) {
      if constexpr (sizeof(T) == 8)
        decoder.refuse(instruction, ".wide needs 16 or 32 bits");
      else
        decodeLanewise<TwiceOf<T>, T, T>(
            decoder, instruction, op,
            [](T a, T b) { return TwiceOf<T>(TwiceOf<T>(a) * b); });
      return;
    }
    if (instruction.has("hi"))
      return decodeLanewise<T, T, T>(decoder, instruction, op,
                                     [](T a, T b) { return high(a, b); });
    decodeLanewise<T, T, T>(decoder, instruction, op,
                            [](T a, T b) { return low(a, b); });
  });
}

static void decodeMad(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  if (instruction.has("cc"))
    return decodeCarry(decoder, instruction, op);
  ptx::ScalarType type = lastType(decoder, instruction);
  if (isFloatType(type))
    return decodeFloatArithmetic(decoder, instruction, op);
  if (instruction.has("sat")) {
    if (type != ptx::ScalarType::s32 || !instruction.has("hi"))
      decoder.refuse(instruction, ".sat needs .hi and .s32");
    using S = std::int32_t;
    return decodeLanewise<S, S, S, S>(
        decoder, instruction, op,
        [](S a, S b, S c) { return addSaturated(high(a, b), c); });
  }
  withInteger(decoder, instruction, type, [&]<typename T>() {
    if (instruction.has("wide")) {
      if constexpr (sizeof(T) == 8) {
        decoder.refuse(instruction, ".wide needs 16 or 32 bits");
      } else {
        using W = TwiceOf<T>;
        decodeLanewise<W, T, T, W>(decoder, instruction, op, [](T a, T b, W c) {
          return W(Wrapping<W>(W(a) * W(b)) + Wrapping<W>(c));
        });
      }
      return;
    }
    if (instruction.has("hi"))
      return decodeLanewise<T, T, T, T>(
          decoder, instruction, op, [](T a, T b, T c) {
            return T(Wrapping<T>(high(a, b)) + Wrapping<T>(c));
          });
    decodeLanewise<T, T, T, T>(decoder, instruction, op, [](T a, T b, T c) {
      return T(Wrapping<T>(a) * Wrapping<T>(b) + Wrapping<T>(c));
    });
  });
}

/// The low 24 bits as a signed or unsigned value.
template <typename T> static T low24(T value) {
  if constexpr (std::is_signed_v<T>)
    return T(std::uint32_t(value) << 8) >> 8;
  else
    return value & 0xffffff;
}

/// mul24 and mad24: .lo is bits 0..31 of the 48-bit product, .hi bits 16..47.
template <typename T, bool isHigh> static T product24(T a, T b) {
  TwiceOf<T> product = TwiceOf<T>(low24(a)) * low24(b);
  return T(isHigh ? product >> 16 : product);
}

template <typename T>
static void decode24(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  bool isHigh = instruction.has("hi");
  if (instruction.opcode == "mul24") {
    if (isHigh)
      return decodeLanewise<T, T, T>(decoder, instruction, op, [](T a, T b) {
        return product24<T, true>(a, b);
      });
    return decodeLanewise<T, T, T>(decoder, instruction, op, [](T a, T b) {
      return product24<T, false>(a, b);
    });
  }
  if (isHigh && instruction.has("sat"))
    return decodeLanewise<T, T, T, T>(
        decoder, instruction, op, [](T a, T b, T c) {
          return T(std::clamp<std::int64_t>(
              std::int64_t(product24<T, true>(a, b)) + std::int64_t(c),
              INT32_MIN, INT32_MAX));
        });
  if (isHigh)
    return decodeLanewise<T, T, T, T>(
        decoder, instruction, op, [](T a, T b, T c) {
          return T(std::uint32_t(product24<T, true>(a, b)) + std::uint32_t(c));
        });
  decodeLanewise<T, T, T, T>(decoder, instruction, op, [](T a, T b, T c) {
    return T(std::uint32_t(product24<T, false>(a, b)) + std::uint32_t(c));
  });
}

static void decodeProduct24(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  if (lastType(decoder, instruction) == ptx::ScalarType::s32)
    return decode24<std::int32_t>(decoder, instruction, op);
  decode24<std::uint32_t>(decoder, instruction, op);
}

static void decodeSad(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  withInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        decodeLanewise<T, T, T, T>(decoder, instruction, op, [](T a, T b, T c) {
          Wrapping<T> difference = a < b ? Wrapping<T>(b) - Wrapping<T>(a)
                                         : Wrapping<T>(a) - Wrapping<T>(b);
          return T(Wrapping<T>(c) + difference);
        });
      });
}

/// Division by zero is unspecified in PTX; it gives all ones, as hardware does.
/// The most negative value over -1 wraps.
template <typename T> static T quotient(T a, T b) {
  if (b == 0)
    return T(~T(0));
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return T(Wrapping<T>(0) - Wrapping<T>(a));
  return T(a / b);
}

template <typename T> static T remainder(T a, T b) {
  if (b == 0)
    return a;
  if constexpr (std::is_signed_v<T>)
    if (b == -1)
      return 0;
  return T(a % b);
}

static void decodeDiv(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (isFloatType(type))
    return decodeFloatDivision(decoder, instruction, op);
  withInteger(decoder, instruction, type, [&]<typename T>() {
    decodeLanewise<T, T, T>(decoder, instruction, op,
                            [](T a, T b) { return quotient(a, b); });
  });
}

static void decodeRem(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  withInteger(
      decoder, instruction, lastType(decoder, instruction), [&]<typename T>() {
        decodeLanewise<T, T, T>(decoder, instruction, op,
                                [](T a, T b) { return remainder(a, b); });
      });
}

static void decodeSign(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (isFloatType(type))
    return decodeFloatSign(decoder, instruction, op);
  bool isNegation = instruction.opcode == "neg";
  withInteger(decoder, instruction, type, [&]<typename T>() {
    if constexpr (std::is_signed_v<T>) {
      // The most negative value has no counterpart and stays as it is.
      if (isNegation)
        return decodeLanewise<T, T>(decoder, instruction, op, [](T a) {
          return T(Wrapping<T>(0) - Wrapping<T>(a));
        });
      decodeLanewise<T, T>(decoder, instruction, op, [](T a) {
        return a < 0 ? T(Wrapping<T>(0) - Wrapping<T>(a)) : a;
      });
    } else {
      decoder.refuse(instruction, "it needs a signed type");
    }
  });
}

/// min or max of one value.
template <typename T, bool isMax, bool isRelu> static T extreme(T a, T b) {
  T result = isMax ? (a < b ? b : a) : (b < a ? b : a);
  return isRelu && result < T(0) ? T(0) : result;
}

/// min or max of two values of 16 bits.
template <typename T, bool isMax, bool isRelu>
static std::uint32_t extremePair(std::uint32_t a, std::uint32_t b) {
  T low = extreme<T, isMax, isRelu>(T(a), T(b));
  T high = extreme<T, isMax, isRelu>(T(a >> 16), T(b >> 16));
  return std::uint32_t(std::uint16_t(high)) << 16 | std::uint16_t(low);
}

template <bool isMax, bool isRelu>
static void decodeExtreme(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  using U = std::uint32_t;
  if (instruction.has("u16x2"))
    return decodeLanewise<U, U, U>(decoder, instruction, op, [](U a, U b) {
      return extremePair<std::uint16_t, isMax, isRelu>(a, b);
    });
  if (instruction.has("s16x2"))
    return decodeLanewise<U, U, U>(decoder, instruction, op, [](U a, U b) {
      return extremePair<std::int16_t, isMax, isRelu>(a, b);
    });
  withInteger(decoder, instruction, lastType(decoder, instruction),
              [&]<typename T>() {
                decodeLanewise<T, T, T>(decoder, instruction, op, [](T a, T b) {
                  return extreme<T, isMax, isRelu>(a, b);
                });
              });
}

template <bool isMax>
static void decodeMinMax(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  bool isPair = instruction.has("u16x2") || instruction.has("s16x2");
  if (!isPair && isFloatType(lastType(decoder, instruction)))
    return decodeFloatMinMax(decoder, instruction, op);
  if (instruction.has("relu"))
    return decodeExtreme<isMax, true>(decoder, instruction, op);
  decodeExtreme<isMax, false>(decoder, instruction, op);
}

std::vector<Instruction> scalarIntegerInstructions() {
  const char *all = "integers of 16, 32, 64 bits; f16, bf16, f32, f64";
  const char *sum = "cc, u32 s32 u64 s64 -> =t t t; "
                    "u16x2|s16x2 -> =u32 u32 u32; "
                    "f32 f16|bf16, ROUND sat -> =t1 t2 t1; "
                    "HALF, rn ftz sat -> =t t t; "
                    "f32x2, ROUND ftz -> =b64 b64 b64; "
                    "f32|f64, ROUND ftz sat -> =t t t; "
                    ", INT sat -> =t t t";
  const char *sign = "HALF|f32|f64, ftz -> =t t; "
                     ", s16 s32 s64 -> =t t";
  const char *extreme = "u16x2|s16x2, relu -> =u32 u32 u32; "
                        "f32, ftz NaN abs -> =f32 f32 f32 f32; "
                        "HALF|f32|f64, ftz NaN xorsign abs -> =t t t; "
                        ", INT relu -> =t t t";
  return {
      {"add",
       decodeAddOrSub<false>,
       Unit::scalar,
       "integers of 16, 32, 64 bits, .sat, .cc, u16x2, s16x2; floats with "
       "their rounding, .ftz, .sat; f32x2; f32 of f16 and bf16",
       sum,
       {.poison = sumPoison,
        .addresses = passesOn<0b110, true>,
        .operations = floatOperations<1>}},
      {"sub",
       decodeAddOrSub<true>,
       Unit::scalar,
       "integers of 16, 32, 64 bits, .sat, .cc, u16x2, s16x2; floats with "
       "their rounding, .ftz, .sat; f32x2; f32 of f16 and bf16",
       sum,
       {.poison = sumPoison,
        .addresses = passesOn<0b10, true>,
        .operations = floatOperations<1>}},
      {"mul",
       decodeMul,
       Unit::scalar,
       "integers .lo .hi .wide; floats with their rounding, .ftz, .sat; f32x2",
       "HALF, rn ftz sat -> =t t t; "
       "f32x2, ROUND ftz -> =b64 b64 b64; "
       "f32|f64, ROUND ftz sat -> =t t t; "
       "wide, u16 s16 u32 s32 -> =w t t; "
       "lo|hi, INT -> =t t t",
       {.poison = lowProductPoison, .operations = floatOperations<1>}},
      {"mad",
       decodeMad,
       Unit::scalar,
       "integers .lo .hi .wide, .hi.sat.s32, .cc; floats as fma",
       "cc lo|hi, u32 s32 u64 s64 -> =t t t t; "
       "f32|f64, ROUND ftz sat -> =t t t t; "
       "wide, u16 s16 u32 s32 -> =w t t w; "
       "lo|hi, INT sat -> =t t t t",
       {.poison = lowProductPoison,
        .addresses = passesOn<0b1000, true>,
        .operations = floatOperations<2>}},
      {"mul24", decodeProduct24, Unit::scalar, ".lo .hi of u32 and s32",
       "lo|hi, u32 s32 -> =t t t"},
      {"mad24", decodeProduct24, Unit::scalar,
       ".lo .hi of u32 and s32, .hi.sat.s32",
       "hi sat s32 -> =t t t t; "
       "lo|hi, u32 s32 -> =t t t t"},
      {"sad", decodeSad, Unit::scalar, "integers of 16, 32, 64 bits",
       ", INT -> =t t t t"},
      {"div", decodeDiv, Unit::scalar,
       "integers of 16, 32, 64 bits; f32 .approx .full .rnd, f64 .rnd",
       "f32|f64, ROUND approx full ftz -> =t t t; "
       ", INT -> =t t t"},
      {"rem", decodeRem, Unit::scalar, "integers of 16, 32, 64 bits",
       ", INT -> =t t t"},
      {"abs", decodeSign, Unit::scalar, all, sign, {.poison = pairPoison}},
      {"neg", decodeSign, Unit::scalar, all, sign, {.poison = sumPoison}},
      {"min",
       decodeMinMax<false>,
       Unit::scalar,
       "integers, u16x2, s16x2, .relu; floats with .ftz .NaN .xorsign.abs, "
       "three "
       "of f32",
       extreme,
       {.poison = pairPoison}},
      {"max",
       decodeMinMax<true>,
       Unit::scalar,
       "integers, u16x2, s16x2, .relu; floats with .ftz .NaN .xorsign.abs, "
       "three "
       "of f32",
       extreme,
       {.poison = pairPoison}},
  };
}

std::vector<Instruction> scalarInstructions() {
  std::vector<Instruction> all;
  for (auto part : {scalarIntegerInstructions, scalarCarryInstructions,
                    scalarLogicInstructions, scalarBitInstructions,
                    scalarCompareInstructions, scalarMoveInstructions,
                    scalarVideoInstructions}) {
    std::vector<Instruction> some = part();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

} // namespace kiln::sim
