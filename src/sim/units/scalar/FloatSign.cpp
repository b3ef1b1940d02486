// FloatSign: what looks at a float without rounding it: min, max, neg, abs,
// copysign, testp.
#include "sim/units/scalar/Float.h"
#include "sim/units/scalar/Scalar.h"

namespace kiln::sim {

namespace {
/// op.flags of min and max.
constexpr std::uint32_t kFlush = 1, kNan = 2, kXorSign = 4;
} // namespace

/// The smaller or the larger; -0 is less than +0. NaN loses against a number,
/// or with .NaN wins.
template <bool isMax, typename T> static T extreme(T a, T b, bool isNanKept) {
  using U = Storage<T>;
  U x = std::bit_cast<U>(a), y = std::bit_cast<U>(b);
  // Equal values differ at most in the sign of zero.
  T equal = std::bit_cast<T>(isMax ? U(x & y) : U(x | y));
  T chosen = isMax ? (a > b ? a : b) : (a < b ? a : b);
  chosen = a == b ? equal : chosen;
  bool isANan = a != a, isBNan = b != b;
  T numeric = isANan ? b : a;
  T nan = canonical(isANan ? a : b);
  T special = isNanKept || (isANan && isBNan) ? nan : numeric;
  return isANan || isBNan ? special : chosen;
}

/// The same on magnitudes, with the product's sign.
template <bool isMax, typename T>
static T extremeXor(T a, T b, bool isNanKept) {
  using U = Storage<T>;
  constexpr U top = U(1) << (8 * sizeof(T) - 1);
  U x = std::bit_cast<U>(a), y = std::bit_cast<U>(b), sign = (x ^ y) & top;
  T result = extreme<isMax>(std::bit_cast<T>(U(x & ~top)),
                            std::bit_cast<T>(U(y & ~top)), isNanKept);
  return result != result ? result
                          : std::bit_cast<T>(std::bit_cast<U>(result) | sign);
}

template <bool isMax, typename T>
static T extremeBy(T a, T b, std::uint32_t flags) {
  if constexpr (sizeof(T) == 4)
    if (flags & kFlush)
      a = flush(a), b = flush(b);
  return flags & kXorSign ? extremeXor<isMax>(a, b, flags & kNan)
                          : extreme<isMax>(a, b, flags & kNan);
}

template <bool isMax, typename T>
static Step executeMinMax(Warp &warp, const Op &op, LaneMask active) {
  using S = Storage<T>;
  const S *a = warp.lanes<S>(op.src[0]), *b = warp.lanes<S>(op.src[1]);
  std::uint32_t flags = op.flags;
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    return extremeBy<isMax>(fromLane<T>(a[lane]), fromLane<T>(b[lane]), flags);
  });
  return Step::next;
}

/// Of 16-bit floats, alone or as a pair: an upper half of zero stays zero.
template <bool isMax, bool isBfloat>
static Step executeMinMaxHalves(Warp &warp, const Op &op, LaneMask active) {
  const std::uint32_t *a = warp.lanes<std::uint32_t>(op.src[0]);
  const std::uint32_t *b = warp.lanes<std::uint32_t>(op.src[1]);
  std::uint32_t flags = op.flags & ~kFlush;
  bool isFlushed = op.flags & kFlush;
  std::uint32_t mask = op.imm == 2 ? 0xffff : 0xffffffff;
  storeLanes<std::uint32_t>(warp, op.dst, active, [=](int lane) {
    auto one = [=](std::uint16_t x, std::uint16_t y) {
      if (isFlushed)
        x = flushHalf(x), y = flushHalf(y);
      return narrow<isBfloat>(
          extremeBy<isMax>(widen<isBfloat>(x), widen<isBfloat>(y), flags));
    };
    return onHalves(one, a[lane], b[lane]) & mask;
  });
  return Step::next;
}

/// Of three floats, or of what is left of them without their signs.
template <bool isMax>
static Step executeThree(Warp &warp, const Op &op, LaneMask active) {
  const auto *a = warp.lanes<std::uint32_t>(op.src[0]);
  const auto *b = warp.lanes<std::uint32_t>(op.src[1]);
  const auto *c = warp.lanes<std::uint32_t>(op.src[2]);
  std::uint32_t flags = op.flags;
  std::uint32_t kept = op.imm ? 0x7fffffffu : ~0u;
  storeLanes<float>(warp, op.dst, active, [=](int lane) {
    auto read = [&](std::uint32_t bits) {
      return std::bit_cast<float>(bits & kept);
    };
    float two = extremeBy<isMax>(read(a[lane]), read(b[lane]), flags);
    return extremeBy<isMax>(two, read(c[lane]), flags);
  });
  return Step::next;
}

/// min and max, whose types and modifiers have been looked at.
template <bool isMax>
static void decodeExtreme(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  const std::vector<ptx::Operand> &operands = instruction.operands;
  if (isHalfType(type)) {
    int bytes = isPairType(type) ? 4 : 2;
    op.imm = bytes;
    op.dst = destination(decoder, instruction, operands[0], bytes);
    for (int i = 0; i < 2; ++i)
      op.src[i] = expectWidth(decoder, instruction,
                              decoder.reg(operands[i + 1], bytes), bytes);
    op.handler = isBfloatType(type) ? executeMinMaxHalves<isMax, true>
                                    : executeMinMaxHalves<isMax, false>;
    return;
  }
  if (type == ptx::ScalarType::f64) {
    op.dst = destination(decoder, instruction, operands[0], 8);
    for (int i = 0; i < 2; ++i)
      op.src[i] = source<double>(decoder, instruction, operands[i + 1]);
    op.handler = executeMinMax<isMax, double>;
    return;
  }
  if (type != ptx::ScalarType::f32)
    decoder.refuse(instruction, "its type is none of f16 bf16 f32 f64");
  op.dst = destination(decoder, instruction, operands[0], 4);
  for (std::size_t i = 1; i < operands.size(); ++i)
    op.src[i - 1] = source<float>(decoder, instruction, operands[i]);
  op.handler = executeMinMax<isMax, float>;
  if (operands.size() == 3)
    return;
  op.imm = instruction.has("abs");
  op.handler = executeThree<isMax>;
}

void decodeFloatMinMax(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  op.flags = (instruction.has("ftz") ? kFlush : 0) |
             (instruction.has("NaN") ? kNan : 0) |
             (instruction.has("xorsign") ? kXorSign : 0);
  if (instruction.opcode == "max")
    return decodeExtreme<true>(decoder, instruction, op);
  decodeExtreme<false>(decoder, instruction, op);
}

/// neg and abs of every float type, as functions of bits.
template <bool isNegation>
static void decodeSignAs(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  using U16 = std::uint16_t;
  using U32 = std::uint32_t;
  ptx::ScalarType type = lastType(decoder, instruction);
  bool isFlushed = instruction.has("ftz");
  if (type == ptx::ScalarType::f64)
    return decodeLanewise<double, double>(
        decoder, instruction, op,
        [](double a) { return isNegation ? -a : std::fabs(a); });
  if (type == ptx::ScalarType::f32) {
    if (isFlushed)
      return decodeLanewise<float, float>(
          decoder, instruction, op,
          [](float a) { return flush(isNegation ? -a : std::fabs(a)); });
    return decodeLanewise<float, float>(decoder, instruction, op, [](float a) {
      return isNegation ? -a : std::fabs(a);
    });
  }
  if (!isHalfType(type))
    decoder.refuse(instruction, "its type is none of f16 bf16 f32 f64");
  if (isFlushed)
    return decodeHalves1(decoder, instruction, op, isPairType(type), [](U16 a) {
      return flushHalf(U16(isNegation ? a ^ 0x8000 : a & 0x7fff));
    });
  if (isPairType(type))
    return decodeLanewise<U32, U32>(decoder, instruction, op, [](U32 a) {
      return isNegation ? a ^ 0x80008000u : a & 0x7fff7fffu;
    });
  decodeLanewise<U16, U16>(decoder, instruction, op, [](U16 a) {
    return U16(isNegation ? a ^ 0x8000 : a & 0x7fff);
  });
}

void decodeFloatSign(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  if (instruction.opcode == "neg")
    return decodeSignAs<true>(decoder, instruction, op);
  decodeSignAs<false>(decoder, instruction, op);
}

/// copysign d, a, b: b with the sign of a.
static void decodeCopysign(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  if (lastType(decoder, instruction) == ptx::ScalarType::f64)
    return decodeLanewise<double, double, double>(
        decoder, instruction, op,
        [](double a, double b) { return std::copysign(b, a); });
  decodeLanewise<float, float, float>(
      decoder, instruction, op,
      [](float a, float b) { return std::copysign(b, a); });
}

namespace {
enum class Test { finite, infinite, number, notanumber, normal, subnormal };
} // namespace

template <typename T>
static Step executeTest(Warp &warp, const Op &op, LaneMask active) {
  using S = Storage<T>;
  constexpr int mantissaBits = sizeof(T) == 8 ? 52 : 23;
  constexpr S exponentMask = sizeof(T) == 8 ? 0x7ff : 0xff;
  const S *a = warp.lanes<S>(op.src[0]);
  Test test = Test(op.flags);
  LaneMask mask = testLanes([=](int lane) {
    S exponent = a[lane] >> mantissaBits & exponentMask;
    bool hasMantissa = (a[lane] << (8 * sizeof(T) - mantissaBits)) != 0;
    bool isTop = exponent == exponentMask;
    switch (test) {
    case Test::finite:
      return !isTop;
    case Test::infinite:
      return isTop && !hasMantissa;
    case Test::number:
      return !isTop || !hasMantissa;
    case Test::notanumber:
      return isTop && hasMantissa;
    case Test::normal:
      return !isTop && exponent != 0;
    case Test::subnormal:
      return exponent == 0 && hasMantissa;
    }
    return false;
  });
  warp.setPred(op.pdst, active, mask);
  return Step::next;
}

static void decodeTestp(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  static constexpr const char *names[] = {
      "finite", "infinite", "number", "notanumber", "normal", "subnormal"};
  for (std::uint32_t i = 0; i < std::size(names); ++i)
    if (instruction.has(names[i]))
      op.flags = i;
  op.pdst = decoder.pred(instruction.operands[0]);
  const ptx::Operand &from = instruction.operands[1];
  if (lastType(decoder, instruction) == ptx::ScalarType::f64) {
    op.src[0] = source<double>(decoder, instruction, from);
    op.handler = executeTest<double>;
    return;
  }
  op.src[0] = source<float>(decoder, instruction, from);
  op.handler = executeTest<float>;
}

std::vector<Instruction> floatSignInstructions() {
  return {
      {"copysign", decodeCopysign, Unit::floating, "f32 f64",
       "f32|f64 -> =t t t"},
      {"testp", decodeTestp, Unit::floating,
       "f32 f64: finite infinite number notanumber normal subnormal",
       "finite|infinite|number|notanumber|normal|subnormal f32|f64 -> =p t"},
  };
}

} // namespace kiln::sim
