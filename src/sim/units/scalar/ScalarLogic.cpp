// ScalarLogic: bitwise operations, shifts, and operations on predicates.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"

namespace kiln::sim {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

namespace {
enum class Logic { conjunction, disjunction, exclusive };
} // namespace

template <Logic logic, typename T> static T combine(T a, T b) {
  switch (logic) {
  case Logic::conjunction:
    return T(a & b);
  case Logic::disjunction:
    return T(a | b);
  case Logic::exclusive:
    return T(a ^ b);
  }
}

/// An instruction has one predicate source; the second one of and.pred is kept
/// in its immediate.
static std::int64_t packPred(Pred pred) {
  return std::int64_t(pred.index) << 1 | pred.isNegated;
}
static Pred unpackPred(std::int64_t bits) {
  return {std::int32_t(bits >> 1), (bits & 1) != 0};
}

template <Logic logic>
static Step executePredLogic(Warp &warp, const Op &op, LaneMask active) {
  Pred second = unpackPred(op.imm);
  LaneMask a = warp.pred(op.psrc), b = warp.pred(second);
  LaneMask badA = warp.predPoison(op.psrc), badB = warp.predPoison(second);
  // Unknown where the result changes with an unknown source.
  LaneMask unknown = (combine<logic>(a, b) ^ combine<logic>(a ^ badA, b)) |
                     (combine<logic>(a, b) ^ combine<logic>(a, b ^ badB)) |
                     (badA & badB);
  warp.setPred(op.pdst, active, combine<logic>(a, b));
  warp.setPredPoison(op.pdst, active, unknown);
  return Step::next;
}

static Step executePredNot(Warp &warp, const Op &op, LaneMask active) {
  warp.setPred(op.pdst, active, ~warp.pred(op.psrc));
  return Step::next;
}

template <Logic logic>
static void decodeLogic(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::pred) {
    op.pdst = decoder.pred(instruction.operands[0]);
    op.psrc = decoder.pred(instruction.operands[1]);
    op.imm = packPred(decoder.pred(instruction.operands[2]));
    op.handler = executePredLogic<logic>;
    return;
  }
  withInteger(decoder, instruction, type, [&]<typename T>() {
    decodeLanewise<T, T, T>(decoder, instruction, op,
                            [](T a, T b) { return combine<logic>(a, b); });
  });
}

static void decodeNot(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::pred) {
    op.pdst = decoder.pred(instruction.operands[0]);
    op.psrc = decoder.pred(instruction.operands[1]);
    op.handler = executePredNot;
    return;
  }
  withInteger(decoder, instruction, type, [&]<typename T>() {
    decodeLanewise<T, T>(decoder, instruction, op, [](T a) { return T(~a); });
  });
}

static void decodeCnot(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  withInteger(decoder, instruction, lastType(decoder, instruction),
              [&]<typename T>() {
                decodeLanewise<T, T>(decoder, instruction, op,
                                     [](T a) { return T(a == 0); });
              });
}

/// Shift amounts above the width count as the width.
template <typename T> static T shiftLeft(T a, U32 amount) {
  constexpr U32 bits = 8 * sizeof(T);
  T shifted = T(Storage<T>(a) << (amount & (8 * sizeof(Storage<T>) - 1)));
  return amount >= bits ? T(0) : shifted;
}

/// The same; a signed value fills with its sign.
template <typename T> static T shiftRight(T a, U32 amount) {
  constexpr U32 bits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>)
    return T(a >> (amount >= bits ? bits - 1 : amount));
  return amount >= bits ? T(0) : T(a >> (amount & (bits - 1)));
}

static void decodeShift(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  bool isLeft = instruction.opcode == "shl";
  withInteger(decoder, instruction, lastType(decoder, instruction),
              [&]<typename T>() {
                if (isLeft)
                  return decodeLanewise<T, T, U32>(
                      decoder, instruction, op,
                      [](T a, U32 amount) { return shiftLeft(a, amount); });
                decodeLanewise<T, T, U32>(
                    decoder, instruction, op,
                    [](T a, U32 amount) { return shiftRight(a, amount); });
              });
}

/// shf: the 64 bits {b, a} shifted, the upper or the lower half of them.
template <bool isLeft, bool isWrapping> static U32 funnel(U32 a, U32 b, U32 c) {
  U32 amount = isWrapping ? c & 31 : (c > 32 ? 32 : c);
  U64 both = U64(b) << 32 | a;
  return isLeft ? U32((both << amount) >> 32) : U32(both >> amount);
}

static void decodeFunnel(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  auto decode = [&](auto function) {
    decodeLanewise<U32, U32, U32, U32>(decoder, instruction, op, function);
  };
  if (instruction.has("l") && instruction.has("wrap"))
    return decode(
        [](U32 a, U32 b, U32 c) { return funnel<true, true>(a, b, c); });
  if (instruction.has("l"))
    return decode(
        [](U32 a, U32 b, U32 c) { return funnel<true, false>(a, b, c); });
  if (instruction.has("wrap"))
    return decode(
        [](U32 a, U32 b, U32 c) { return funnel<false, true>(a, b, c); });
  decode([](U32 a, U32 b, U32 c) { return funnel<false, false>(a, b, c); });
}

/// lop3: bit (a<<2 | b<<1 | c) of the table decides each bit.
static U32 lookUp(U32 a, U32 b, U32 c, U32 table) {
  U32 result = 0;
  for (int row = 0; row < 8; ++row) {
    U32 rows = (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
    result |= (table >> row & 1 ? ~U32(0) : U32(0)) & rows;
  }
  return result;
}

static Step executeLop3(Warp &warp, const Op &op, LaneMask active) {
  const U32 *a = warp.lanes<U32>(op.src[0]), *b = warp.lanes<U32>(op.src[1]);
  const U32 *c = warp.lanes<U32>(op.src[2]);
  U32 table = op.flags & 0xff;
  U32 result[kLanes];
  for (int lane = 0; lane < kLanes; ++lane)
    result[lane] = lookUp(a[lane], b[lane], c[lane], table);
  blendLanes(warp.lanes<U32>(op.dst), result, active);
  if (op.pdst.isValid()) {
    // lop3.BoolOp: p = (d != 0) BoolOp q.
    LaneMask isNonZero = testLanes([&](int lane) { return result[lane] != 0; });
    LaneMask q = warp.pred(op.psrc);
    warp.setPred(op.pdst, active,
                 op.flags & 0x100 ? isNonZero & q : isNonZero | q);
  }
  return Step::next;
}

static void decodeLop3(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  bool hasPredicate = instruction.has("and") || instruction.has("or");
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 4);
  for (int i = 0; i < 3; ++i)
    op.src[i] = source<U32>(decoder, instruction, operands[i + 1]);
  op.flags = operands[4].bits & 0xff;
  if (hasPredicate) {
    op.flags |= instruction.has("and") ? 0x100 : 0;
    op.pdst = pairedPred(decoder, operands[0]);
    op.psrc = decoder.pred(operands[5]);
  }
  op.handler = widest<executeLop3>();
}

namespace {
enum class Permute { any, f4e, b4e, rc8, ecl, ecr, rc16 };
} // namespace

/// Which byte of {b, a} goes to byte `i`, bit 3: its sign in all bits.
template <Permute mode> static U32 selector(U32 c, int i) {
  U32 start = c & 3;
  switch (mode) {
  case Permute::any:
    return c >> (4 * i) & 15;
  case Permute::f4e:
    return start + i;
  case Permute::b4e:
    return (start - i) & 7;
  case Permute::rc8:
    return start;
  case Permute::ecl:
    return start > U32(i) ? start : i;
  case Permute::ecr:
    return start < U32(i) ? start : i;
  case Permute::rc16:
    return (start & 1) * 2 + (i & 1);
  }
}

template <Permute mode> static U32 permute(U32 a, U32 b, U32 c) {
  U64 both = U64(b) << 32 | a;
  U32 result = 0;
  for (int i = 0; i < 4; ++i) {
    U32 choice = selector<mode>(c, i);
    U32 byte = U32(both >> (8 * (choice & 7))) & 0xff;
    U32 sign = byte & 0x80 ? 0xff : 0;
    result |= (choice & 8 ? sign : byte) << (8 * i);
  }
  return result;
}

/// The same for a choice that all lanes share, mostly a constant.
template <Permute mode>
static Step permuteLanes(Warp &warp, const Op &op, LaneMask active) {
  const U32 *a = warp.lanes<U32>(op.src[0]), *b = warp.lanes<U32>(op.src[1]);
  const U32 *c = warp.lanes<U32>(op.src[2]);
  U32 differences = 0, choices[4];
  for (int lane = 0; lane < kLanes; ++lane)
    differences |= c[lane] ^ c[0];
  bool hasSigns = false;
  for (int i = 0; i < 4; ++i) {
    choices[i] = selector<mode>(c[0], i);
    hasSigns |= choices[i] > 7;
  }
  if (differences || hasSigns) {
    storeLanes<U32>(warp, op.dst, active, [=](int lane) {
      return permute<mode>(a[lane], b[lane], c[lane]);
    });
    return Step::next;
  }
  U32 result[kLanes] = {};
  for (int i = 0; i < 4; ++i) {
    const U32 *from = choices[i] < 4 ? a : b;
    int right = static_cast<int>(8 * (choices[i] & 3));
    for (int lane = 0; lane < kLanes; ++lane)
      result[lane] |= (from[lane] >> right & 0xff) << (8 * i);
  }
  blendLanes(warp.lanes<U32>(op.dst), result, active);
  return Step::next;
}

template <Permute mode>
static void decodePermuteAs(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  decodeLanewise<U32, U32, U32, U32>(
      decoder, instruction, op,
      [](U32 a, U32 b, U32 c) { return permute<mode>(a, b, c); });
  op.handler = widest<permuteLanes<mode>>();
}

static void decodePermute(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  if (instruction.has("f4e"))
    return decodePermuteAs<Permute::f4e>(decoder, instruction, op);
  if (instruction.has("b4e"))
    return decodePermuteAs<Permute::b4e>(decoder, instruction, op);
  if (instruction.has("rc8"))
    return decodePermuteAs<Permute::rc8>(decoder, instruction, op);
  if (instruction.has("ecl"))
    return decodePermuteAs<Permute::ecl>(decoder, instruction, op);
  if (instruction.has("ecr"))
    return decodePermuteAs<Permute::ecr>(decoder, instruction, op);
  if (instruction.has("rc16"))
    return decodePermuteAs<Permute::rc16>(decoder, instruction, op);
  decodePermuteAs<Permute::any>(decoder, instruction, op);
}

std::vector<Instruction> scalarLogicInstructions() {
  const char *logic = "pred -> =p p p; "
                      ", BITS -> =t t t";
  return {
      {"and",
       decodeLogic<Logic::conjunction>,
       Unit::scalar,
       "pred b16 b32 b64",
       logic,
       {.poison = joinPoison<PoisonRule::Join::conjunction>,
        .addresses = passesOn<0b110>}},
      {"or",
       decodeLogic<Logic::disjunction>,
       Unit::scalar,
       "pred b16 b32 b64",
       logic,
       {.poison = joinPoison<PoisonRule::Join::disjunction>,
        .addresses = passesOn<0b110>}},
      {"xor",
       decodeLogic<Logic::exclusive>,
       Unit::scalar,
       "pred b16 b32 b64",
       logic,
       {.poison = bitsPoison<>}},
      {"not",
       decodeNot,
       Unit::scalar,
       "pred b16 b32 b64",
       "pred -> =p p; "
       ", BITS -> =t t",
       {.poison = movePoison}},
      {"cnot", decodeCnot, Unit::scalar, "b16 b32 b64", ", BITS -> =t t"},
      {"shl",
       decodeShift,
       Unit::scalar,
       "16, 32, 64 bits",
       ", BITS -> =t t u32",
       {.poison = bitsPoison<0b10>}},
      {"shr",
       decodeShift,
       Unit::scalar,
       "16, 32, 64 bits, signed and unsigned",
       ", BITS INT -> =t t u32",
       {.poison = bitsPoison<0b10>}},
      {"shf",
       decodeFunnel,
       Unit::scalar,
       ".l .r, .wrap .clamp",
       "l|r wrap|clamp, b32 -> =b32 b32 b32 u32",
       {.poison = bitsPoison<0b100>}},
      {"lop3",
       decodeLop3,
       Unit::scalar,
       "b32, .and and .or with a predicate",
       "and|or, b32 -> =_b32|p b32 b32 b32 imm p; "
       ", b32 -> =b32 b32 b32 b32 imm",
       {.poison = bitsPoison<>}},
      {"prmt",
       decodePermute,
       Unit::scalar,
       "b32, f4e b4e rc8 ecl ecr rc16",
       ", b32 f4e b4e rc8 ecl ecr rc16 -> =b32 b32 b32 b32",
       {.poison = bitsPoison<0b100>}},
  };
}

} // namespace kiln::sim
