// FloatArithmetic: add, sub, mul and fma of f32 and f64, in every rounding.
//
// The host's arithmetic is IEEE's, as the GPU's is; what PTX adds is .ftz, .sat
// and one NaN. Where the host has a fused instruction, fma runs eight lanes at
// a time; elsewhere the library's fma gives the same bits.
#include "sim/units/scalar/Float.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"
#include "support/HostProcessor.h"

namespace kiln::sim {

namespace {
enum class Arithmetic { add, sub, mul, fma };
} // namespace

template <Arithmetic what, typename T> static T calculate(T a, T b, T c) {
  switch (what) {
  case Arithmetic::add:
    return a + b;
  case Arithmetic::sub:
    return a - b;
  case Arithmetic::mul:
    return a * b;
  case Arithmetic::fma:
    if constexpr (sizeof(T) == 4)
      return __builtin_fmaf(a, b, c);
    else
      return __builtin_fma(a, b, c);
  }
}

template <Arithmetic what, typename T, bool isFlushed, bool isSaturated>
[[gnu::always_inline]] static inline Step executeLanes(Warp &warp, const Op &op,
                                                       LaneMask active) {
  using S = Storage<T>;
  const S *a = warp.lanes<S>(op.src[0]), *b = warp.lanes<S>(op.src[1]);
  const S *c = what == Arithmetic::fma ? warp.lanes<S>(op.src[2]) : b;
  auto read = [](S bits) {
    T value = fromLane<T>(bits);
    if constexpr (isFlushed)
      return flush(value);
    else
      return value;
  };
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    T x = read(a[lane]), y = read(b[lane]), z = read(c[lane]);
    T result = madeOf(calculate<what>(x, y, z), x, y, z);
    if constexpr (isFlushed)
      result = flush(result);
    return isSaturated ? saturate(result) : canonical(result);
  });
  return Step::next;
}

template <Arithmetic what, typename T, bool isFlushed, bool isSaturated>
static Step execute(Warp &warp, const Op &op, LaneMask active) {
  return executeLanes<what, T, isFlushed, isSaturated>(warp, op, active);
}

/// For hosts that have the fused instruction.
template <typename T, bool isFlushed, bool isSaturated>
KILN_FUSED_MULTIPLY static Step executeFused(Warp &warp, const Op &op,
                                             LaneMask active) {
  using S = Storage<T>;
  const S *a = warp.lanes<S>(op.src[0]), *b = warp.lanes<S>(op.src[1]);
  const S *c = warp.lanes<S>(op.src[2]);
  alignas(64) S result[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    T x = std::bit_cast<T>(a[lane]), y = std::bit_cast<T>(b[lane]);
    T z = std::bit_cast<T>(c[lane]);
    if constexpr (isFlushed)
      x = flush(x), y = flush(y), z = flush(z);
    T value =
        sizeof(T) == 4 ? T(__builtin_fmaf(x, y, z)) : T(__builtin_fma(x, y, z));
    value = madeOf(value, x, y, z);
    if constexpr (isFlushed)
      value = flush(value);
    value = isSaturated ? saturate(value) : canonical(value);
    result[lane] = std::bit_cast<S>(value);
  }
  blendLanes(warp.lanes<S>(op.dst), result, active);
  return Step::next;
}

template <Arithmetic what, typename T, bool isFlushed, bool isSaturated>
static Handler choose(const ptx::Instruction &instruction) {
  if constexpr (what == Arithmetic::fma) {
    static const bool isFused = hasFusedMultiply();
    if (isFused)
      return roundedHandler<executeFused<T, isFlushed, isSaturated>,
                            /*isWide=*/false>(instruction);
  }
  return roundedHandler<execute<what, T, isFlushed, isSaturated>>(instruction);
}

template <Arithmetic what>
static void decodeAs(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  int sources = what == Arithmetic::fma ? 3 : 2;
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0],
                       type == ptx::ScalarType::f64 ? 8 : 4);
  for (int i = 0; i < sources; ++i)
    op.src[i] = type == ptx::ScalarType::f64
                    ? source<double>(decoder, instruction, operands[i + 1])
                    : source<float>(decoder, instruction, operands[i + 1]);
  bool isFlushed = instruction.has("ftz"), isSaturated = instruction.has("sat");
  if (type == ptx::ScalarType::f64) {
    if (isFlushed || isSaturated)
      decoder.refuse(instruction, "f64 has neither .ftz nor .sat");
    op.handler = choose<what, double, false, false>(instruction);
    return;
  }
  if (isFlushed)
    op.handler = isSaturated ? choose<what, float, true, true>(instruction)
                             : choose<what, float, true, false>(instruction);
  else
    op.handler = isSaturated ? choose<what, float, false, true>(instruction)
                             : choose<what, float, false, false>(instruction);
}

/// Two floats in a register of 64 bits.
template <Arithmetic what, bool isFlushed>
static Step executePairs(Warp &warp, const Op &op, LaneMask active) {
  const auto *a = warp.lanes<std::uint64_t>(op.src[0]);
  const auto *b = warp.lanes<std::uint64_t>(op.src[1]);
  const auto *c =
      what == Arithmetic::fma ? warp.lanes<std::uint64_t>(op.src[2]) : b;
  auto half = [](std::uint64_t bits, int shift) {
    float value =
        std::bit_cast<float>(static_cast<std::uint32_t>(bits >> shift));
    if constexpr (isFlushed)
      value = flush(value);
    return value;
  };
  storeLanes<std::uint64_t>(warp, op.dst, active, [=](int lane) {
    std::uint64_t pair = 0;
    for (int shift : {0, 32}) {
      float value = calculate<what>(half(a[lane], shift), half(b[lane], shift),
                                    half(c[lane], shift));
      if constexpr (isFlushed)
        value = flush(value);
      pair |= std::uint64_t(std::bit_cast<std::uint32_t>(canonical(value)))
              << shift;
    }
    return pair;
  });
  return Step::next;
}

template <Arithmetic what>
static void decodePairs(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 8);
  for (std::size_t i = 1; i < operands.size(); ++i)
    op.src[i - 1] =
        expectWidth(decoder, instruction, decoder.reg(operands[i], 8), 8);
  op.handler = instruction.has("ftz")
                   ? roundedHandler<executePairs<what, true>>(instruction)
                   : roundedHandler<executePairs<what, false>>(instruction);
}

/// add, sub, mul and fma of .f32x2.
static void decodeFloatPairs(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  const std::string &opcode = instruction.opcode;
  if (opcode == "add")
    return decodePairs<Arithmetic::add>(decoder, instruction, op);
  if (opcode == "sub")
    return decodePairs<Arithmetic::sub>(decoder, instruction, op);
  if (opcode == "mul")
    return decodePairs<Arithmetic::mul>(decoder, instruction, op);
  decodePairs<Arithmetic::fma>(decoder, instruction, op);
}

/// Sums of f32 whose first operand, of fma the first two, has 16 bits.
template <Arithmetic what, bool isBfloat, bool isSaturated>
static Step executeMixed(Warp &warp, const Op &op, LaneMask active) {
  constexpr bool isFma = what == Arithmetic::fma;
  const auto *a = warp.lanes<std::uint32_t>(op.src[0]);
  const auto *b = isFma ? warp.lanes<std::uint32_t>(op.src[1]) : a;
  const auto *c = warp.lanes<std::uint32_t>(op.src[isFma ? 2 : 1]);
  storeLanes<std::uint32_t>(warp, op.dst, active, [=](int lane) {
    float x = widen<isBfloat>(std::uint16_t(a[lane])),
          z = std::bit_cast<float>(c[lane]);
    float y = isFma ? widen<isBfloat>(std::uint16_t(b[lane])) : z;
    float value = calculate<what>(x, y, z);
    value = isSaturated ? saturate(value) : canonical(value);
    return std::bit_cast<std::uint32_t>(value);
  });
  return Step::next;
}

template <Arithmetic what>
static void decodeMixed(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 4);
  std::size_t last = operands.size() - 1;
  for (std::size_t i = 1; i < last; ++i)
    op.src[i - 1] = source<std::uint16_t>(decoder, instruction, operands[i]);
  op.src[last - 1] = source<float>(decoder, instruction, operands[last]);
  auto choose = [&]<bool isBfloat>() {
    return instruction.has("sat")
               ? roundedHandler<executeMixed<what, isBfloat, true>>(instruction)
               : roundedHandler<executeMixed<what, isBfloat, false>>(
                     instruction);
  };
  op.handler = instruction.has("bf16") ? choose.template operator()<true>()
                                       : choose.template operator()<false>();
}

/// add, sub and fma of .f32.f16 and .f32.bf16.
static void decodeFloatMixed(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  const std::string &opcode = instruction.opcode;
  if (opcode == "add")
    return decodeMixed<Arithmetic::add>(decoder, instruction, op);
  if (opcode == "sub")
    return decodeMixed<Arithmetic::sub>(decoder, instruction, op);
  decodeMixed<Arithmetic::fma>(decoder, instruction, op);
}

void decodeFloatArithmetic(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  if (instruction.has("f32x2"))
    return decodeFloatPairs(decoder, instruction, op);
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.size() == 2 && types[0] == ptx::ScalarType::f32)
    return decodeFloatMixed(decoder, instruction, op);
  if (types.size() != 1)
    decoder.refuse(instruction, "operands of two types are not known here");
  if (isHalfType(types[0]))
    return decodeHalfArithmetic(decoder, instruction, op);
  if (types[0] != ptx::ScalarType::f32 && types[0] != ptx::ScalarType::f64)
    decoder.refuse(instruction, "its type is none of f16 bf16 f32 f64");
  const std::string &opcode = instruction.opcode;
  if (opcode == "add")
    return decodeAs<Arithmetic::add>(decoder, instruction, op);
  if (opcode == "sub")
    return decodeAs<Arithmetic::sub>(decoder, instruction, op);
  if (opcode == "mul")
    return decodeAs<Arithmetic::mul>(decoder, instruction, op);
  decodeAs<Arithmetic::fma>(decoder, instruction, op);
}

std::vector<Instruction> floatInstructions() {
  std::vector<Instruction> all = {
      {"fma",
       decodeFloatArithmetic,
       Unit::floating,
       "f32 and f64 .rn .rz .rm .rp, .ftz, .sat; f16, bf16 and pairs .rn, "
       ".ftz, .sat, .relu, .oob; f32x2; f32 of f16 and bf16",
       "f32 f16|bf16, ROUND sat -> =t1 t2 t2 t1; "
       "oob HALF, rn relu -> =t t t t; "
       "HALF, rn ftz sat relu -> =t t t t; "
       "f32x2, ROUND ftz -> =b64 b64 b64 b64; "
       "f32|f64, ROUND ftz sat -> =t t t t",
       {.poison = pairPoison, .operations = floatOperations<2>}}};
  for (auto part : {floatApproxInstructions, floatSignInstructions}) {
    std::vector<Instruction> some = part();
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

} // namespace kiln::sim
