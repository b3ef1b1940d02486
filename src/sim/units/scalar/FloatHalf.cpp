// FloatHalf: add, sub, mul and fma of f16 and bf16, rounded once.
//
// A float holds more than twice the bits of either type, so that a sum rounded
// to float and then to 16 bits is the sum rounded once. A product of f16 fits a
// float; what does not fit (fused sums, and in double those of bf16) is rounded
// to odd first.
#include "sim/units/scalar/Float.h"
#include "sim/units/scalar/Scalar.h"

namespace kiln::sim {

namespace {
enum class Arithmetic { add, sub, mul, fma };
struct Plain {
  static constexpr bool isFlushed = false, isSaturated = false, isRelu = false;
  static constexpr bool isZeroOutside = false;
};
struct Flushed : Plain {
  static constexpr bool isFlushed = true;
};
struct Saturated : Plain {
  static constexpr bool isSaturated = true;
};
struct FlushedSaturated : Saturated {
  static constexpr bool isFlushed = true;
};
struct Rectified : Plain {
  static constexpr bool isRelu = true;
};
struct FlushedRectified : Rectified {
  static constexpr bool isFlushed = true;
};
/// .oob: a factor that TMA has put where a tensor ends makes the result 0.
struct Outside : Plain {
  static constexpr bool isZeroOutside = true;
};
struct OutsideRectified : Outside {
  static constexpr bool isRelu = true;
};
} // namespace

/// What TMA puts there (TensorBox.cpp), of f16 as of bf16.
static constexpr std::uint16_t kOutsideNan = 0x7ff7;

template <bool isBfloat, Arithmetic what, typename Mode>
static std::uint16_t calculate(std::uint16_t a, std::uint16_t b,
                               std::uint16_t c) {
  if (Mode::isZeroOutside && (a == kOutsideNan || b == kOutsideNan))
    return 0;
  if (Mode::isFlushed)
    a = flushHalf(a), b = flushHalf(b), c = flushHalf(c);
  float x = widen<isBfloat>(a), y = widen<isBfloat>(b);
  float value = 0;
  switch (what) {
  case Arithmetic::add:
    value = x + y;
    break;
  case Arithmetic::sub:
    value = x - y;
    break;
  case Arithmetic::mul:
    // A product of f16 fits a float; one of bf16 may be below its normal range.
    value = isBfloat ? toOddFloat(double(x) * double(y)) : x * y;
    break;
  case Arithmetic::fma:
    value = isBfloat ? toOddFloat(addToOdd(double(x) * double(y),
                                           double(widen<isBfloat>(c))))
                     : addToOdd(x * y, widen<isBfloat>(c));
    break;
  }
  if (Mode::isSaturated)
    value = saturate(value);
  if (Mode::isRelu)
    value = rectify(value);
  std::uint16_t result = narrow<isBfloat>(value);
  return Mode::isFlushed ? flushHalf(result) : result;
}

template <bool isBfloat, Arithmetic what, typename Mode>
static void decodeMode(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  using U16 = std::uint16_t;
  bool isPair = isPairType(lastType(decoder, instruction));
  if constexpr (what == Arithmetic::fma)
    decodeHalves3(decoder, instruction, op, isPair, [](U16 a, U16 b, U16 c) {
      return calculate<isBfloat, what, Mode>(a, b, c);
    });
  else
    decodeHalves2(decoder, instruction, op, isPair, [](U16 a, U16 b) {
      return calculate<isBfloat, what, Mode>(a, b, 0);
    });
}

static void decodeOutside(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  constexpr Arithmetic fma = Arithmetic::fma;
  bool isRelu = instruction.has("relu");
  if (isBfloatType(lastType(decoder, instruction)))
    return isRelu ? decodeMode<true, fma, OutsideRectified>(decoder,
                                                            instruction, op)
                  : decodeMode<true, fma, Outside>(decoder, instruction, op);
  isRelu ? decodeMode<false, fma, OutsideRectified>(decoder, instruction, op)
         : decodeMode<false, fma, Outside>(decoder, instruction, op);
}

template <Arithmetic what>
static void decodeAs(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  bool isFlushed = instruction.has("ftz");
  bool isSaturated = instruction.has("sat"), isRelu = instruction.has("relu");
  if (instruction.has("oob"))
    return decodeOutside(decoder, instruction, op);
  if (isBfloatType(lastType(decoder, instruction))) {
    if (isFlushed || isSaturated)
      decoder.refuse(instruction, "bf16 has neither .ftz nor .sat");
    if (what == Arithmetic::fma && isRelu)
      return decodeMode<true, Arithmetic::fma, Rectified>(decoder, instruction,
                                                          op);
    return decodeMode<true, what, Plain>(decoder, instruction, op);
  }
  if (isRelu) {
    if (isFlushed)
      return decodeMode<false, Arithmetic::fma, FlushedRectified>(
          decoder, instruction, op);
    return decodeMode<false, Arithmetic::fma, Rectified>(decoder, instruction,
                                                         op);
  }
  if (isSaturated) {
    if (isFlushed)
      return decodeMode<false, what, FlushedSaturated>(decoder, instruction,
                                                       op);
    return decodeMode<false, what, Saturated>(decoder, instruction, op);
  }
  if (isFlushed)
    return decodeMode<false, what, Flushed>(decoder, instruction, op);
  decodeMode<false, what, Plain>(decoder, instruction, op);
}

void decodeHalfArithmetic(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  const std::string &opcode = instruction.opcode;
  if (opcode == "add")
    return decodeAs<Arithmetic::add>(decoder, instruction, op);
  if (opcode == "sub")
    return decodeAs<Arithmetic::sub>(decoder, instruction, op);
  if (opcode == "mul")
    return decodeAs<Arithmetic::mul>(decoder, instruction, op);
  decodeAs<Arithmetic::fma>(decoder, instruction, op);
}

} // namespace kiln::sim
