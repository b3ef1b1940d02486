// FloatApprox: division, roots, and the functions of the special-function unit.
//
// The rounded forms are exact. PTX bounds the error of the approximate ones and
// names their results at the edges; they are computed here to the last bit of
// the host's library, which is within every bound.
#include "sim/units/scalar/Float.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"

namespace kiln::sim {

using U16 = std::uint16_t;

/// Decode `function` of one float, with .ftz where the instruction has it.
template <typename F>
static void decodeUnary(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op, F) {
  if (instruction.has("ftz"))
    return decodeLanewise<float, float>(decoder, instruction, op, [](float a) {
      return canonical(flush(F{}(flush(a))));
    });
  decodeLanewise<float, float>(decoder, instruction, op,
                               [](float a) { return canonical(F{}(a)); });
}

/// Run the handler that was decoded in the rounding mode of the instruction.
template <int mode>
static Step executeRounded(Warp &warp, const Op &op, LaneMask active) {
  auto inner = *static_cast<const Handler *>(op.extra.get());
  HostRounding<mode> rounding;
  return inner(warp, op, active);
}

static void applyRounding(const ptx::Instruction &instruction, Op &op) {
  Handler rounded = instruction.has("rz")   ? executeRounded<FE_TOWARDZERO>
                    : instruction.has("rm") ? executeRounded<FE_DOWNWARD>
                    : instruction.has("rp") ? executeRounded<FE_UPWARD>
                                            : nullptr;
  if (!rounded)
    return;
  op.extra = std::make_shared<Handler>(op.handler);
  op.handler = rounded;
}

/// div.approx multiplies by a reciprocal, which is zero above 2^126.
static float divideApprox(float a, float b) {
  if (std::fabs(b) > 0x1p126f)
    return a * std::copysign(0.0f, b);
  return a / b;
}

void decodeFloatDivision(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::f64) {
    decodeLanewise<double, double, double>(
        decoder, instruction, op,
        [](double a, double b) { return madeOf(a / b, a, b); });
    return applyRounding(instruction, op);
  }
  if (type != ptx::ScalarType::f32)
    decoder.refuse(instruction, "its type is neither f32 nor f64");
  bool isFlushed = instruction.has("ftz");
  auto decode = [&](auto function) {
    decodeLanewise<float, float, float>(decoder, instruction, op, function);
    applyRounding(instruction, op);
  };
  if (instruction.has("approx")) {
    if (isFlushed)
      return decode([](float a, float b) {
        return canonical(flush(divideApprox(flush(a), flush(b))));
      });
    return decode(
        [](float a, float b) { return canonical(divideApprox(a, b)); });
  }
  if (isFlushed)
    return decode(
        [](float a, float b) { return canonical(flush(flush(a) / flush(b))); });
  decode([](float a, float b) { return canonical(a / b); });
}

/// rcp.approx.ftz.f64 and rsqrt.approx.ftz.f64 know the upper 32 bits alone.
template <typename F> static double upperHalf(double a, F function) {
  bool isTiny = std::fabs(a) < 0x1p-1022;
  double result = function(isTiny ? std::copysign(0.0, a) : a);
  if (std::fabs(result) < 0x1p-1022)
    return std::copysign(0.0, result);
  std::uint64_t bits = std::bit_cast<std::uint64_t>(result);
  return std::bit_cast<double>(bits & 0xffffffff00000000u);
}

static void decodeRoots(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  const std::string &opcode = instruction.opcode;
  if (lastType(decoder, instruction) == ptx::ScalarType::f64) {
    auto decode = [&]<typename F>(F) {
      decodeLanewise<double, double>(
          decoder, instruction, op, [](double a) { return madeOf(F{}(a), a); });
      applyRounding(instruction, op);
    };
    if (opcode == "sqrt")
      return decode([](double a) { return std::sqrt(a); });
    if (opcode == "rsqrt" && !instruction.has("ftz"))
      return decode([](double a) { return 1 / std::sqrt(a); });
    if (opcode == "rsqrt")
      return decode([](double a) {
        return upperHalf(a, [](double x) { return 1 / std::sqrt(x); });
      });
    if (instruction.has("approx"))
      return decode([](double a) {
        return upperHalf(a, [](double x) { return 1 / x; });
      });
    return decode([](double a) { return 1 / a; });
  }
  if (opcode == "sqrt")
    decodeUnary(decoder, instruction, op, [](float a) { return std::sqrt(a); });
  else if (opcode == "rsqrt")
    decodeUnary(decoder, instruction, op,
                [](float a) { return float(1 / std::sqrt(double(a))); });
  else
    decodeUnary(decoder, instruction, op, [](float a) { return 1 / a; });
  applyRounding(instruction, op);
}

/// `function`, a function of floats, for f32 and for the 16-bit types.
template <typename F>
static void decodeFunction(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op,
                           F function) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::f32)
    return decodeUnary(decoder, instruction, op, function);
  bool hasHalves = instruction.opcode == "ex2" || instruction.opcode == "tanh";
  if (!isHalfType(type) || !hasHalves)
    decoder.refuse(instruction, "it is not known for this type");
  bool isPair = isPairType(type);
  if (!isBfloatType(type))
    return decodeHalves1(decoder, instruction, op, isPair, [](U16 a) {
      return floatToHalf(F{}(halfToFloat(a)));
    });
  if (instruction.has("ftz"))
    return decodeHalves1(decoder, instruction, op, isPair, [](U16 a) {
      return floatToBfloat(flush(F{}(flush(bfloatToFloat(a)))));
    });
  decodeHalves1(decoder, instruction, op, isPair,
                [](U16 a) { return floatToBfloat(F{}(bfloatToFloat(a))); });
}

static void decodeEx2(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  decodeFunction(decoder, instruction, op,
                 [](float a) { return std::exp2(a); });
}
static void decodeLg2(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  decodeFunction(decoder, instruction, op,
                 [](float a) { return std::log2(a); });
}
static void decodeSin(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  decodeFunction(decoder, instruction, op, [](float a) { return std::sin(a); });
}
static void decodeCos(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  decodeFunction(decoder, instruction, op, [](float a) { return std::cos(a); });
}
static void decodeTanh(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  decodeFunction(decoder, instruction, op,
                 [](float a) { return std::tanh(a); });
}

std::vector<Instruction> floatApproxInstructions() {
  const char *root = "f32|f64, ROUND approx ftz -> =t t";
  const char *single = "f32, approx ftz -> =t t";
  const char *narrow = "HALF|f32, approx ftz -> =t t";
  return {
      {"rcp", decodeRoots, Unit::floating,
       "f32 and f64, .approx or rounded, .ftz", root},
      {"sqrt", decodeRoots, Unit::floating,
       "f32 and f64, .approx or rounded, .ftz", root},
      {"rsqrt", decodeRoots, Unit::floating, "f32 and f64, .approx, .ftz",
       "f32|f64, approx ftz -> =t t"},
      {"ex2",
       decodeEx2,
       Unit::floating,
       "f32, f16, bf16 and pairs, .approx, .ftz",
       narrow,
       {.poison = pairPoison}},
      {"lg2", decodeLg2, Unit::floating, "f32, .approx, .ftz", single},
      {"sin", decodeSin, Unit::floating, "f32, .approx, .ftz", single},
      {"cos", decodeCos, Unit::floating, "f32, .approx, .ftz", single},
      {"tanh",
       decodeTanh,
       Unit::floating,
       "f32, f16, bf16 and pairs, .approx",
       narrow,
       {.poison = pairPoison}},
  };
}

} // namespace kiln::sim
