// ScalarCompare: comparisons and the choices made by them.
//
// A float comparison is an ordered one plus what it says of NaN: ltu is lt or
// unordered. So six relations and a flag make all of PTX's eighteen.
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"
#include "support/Half.h"

#include <cmath>
#include <optional>

namespace kiln::sim {

namespace {

enum class Relation { eq, ne, lt, le, gt, ge, always, never };
enum class Join { none, conjunction, disjunction, exclusive };

// How a lane is read for comparison.
template <typename T> struct Plain {
  using Bits = Storage<T>;
  using Value = T;
  static constexpr int bytes = sizeof(T);
  static T read(Bits bits) { return fromLane<T>(bits); }
};
struct Flushed : Plain<float> {
  static float read(std::uint32_t bits) {
    return flush(std::bit_cast<float>(bits));
  }
};
/// A half of a lane: f16 or bf16, the lower or the upper one.
template <bool isBfloat, bool isFlushed, bool isUpper> struct Narrow {
  using Bits = std::uint32_t;
  using Value = float;
  static constexpr int bytes = 2;
  static float read(std::uint32_t bits) {
    std::uint16_t half = std::uint16_t(isUpper ? bits >> 16 : bits);
    if (isBfloat)
      return bfloatToFloat(half);
    return halfToFloat(isFlushed ? flushHalf(half) : half);
  }
};

/// What a comparison says, decoded from its modifiers.
struct Comparison {
  Relation relation;
  bool isUnordered; ///< NaN makes it true
  bool isUnsigned;  ///< lo, ls, hi, hs
};

using CompareFunction = LaneMask (*)(Warp &warp, const Op &op);

/// What set and the pairs need beside their registers.
struct CompareState {
  CompareFunction low, high; ///< high: of a pair
  Join join;
  std::uint64_t trueBits;
};

} // namespace

/// op.flags
static constexpr std::uint32_t kUnordered = 1, kJoinShift = 1;

template <Relation relation, typename T> static bool relate(T a, T b) {
  switch (relation) {
  case Relation::eq:
    return a == b;
  case Relation::ne: // ordered: neither is NaN
    return std::is_floating_point_v<T> ? (a < b) | (a > b) : a != b;
  case Relation::lt:
    return a < b;
  case Relation::le:
    return a <= b;
  case Relation::gt:
    return a > b;
  case Relation::ge:
    return a >= b;
  case Relation::always:
    return (a == a) & (b == b);
  case Relation::never:
    return false;
  }
}

template <typename Reader, Relation relation>
static LaneMask compareLanes(Warp &warp, const Op &op) {
  using Bits = typename Reader::Bits;
  const Bits *a = warp.lanes<Bits>(op.src[0]), *b = warp.lanes<Bits>(op.src[1]);
  LaneMask mask = testLanes([=](int lane) {
    return relate<relation>(Reader::read(a[lane]), Reader::read(b[lane]));
  });
  if (std::is_floating_point_v<typename Reader::Value> &&
      (op.flags & kUnordered))
    mask |= testLanes([=](int lane) {
      auto x = Reader::read(a[lane]), y = Reader::read(b[lane]);
      return (x != x) | (y != y);
    });
  return mask;
}

/// The result joined with the third source, a predicate.
static LaneMask joinWith(Warp &warp, const Op &op, LaneMask mask) {
  switch (Join(op.flags >> kJoinShift)) {
  case Join::none:
    return mask;
  case Join::conjunction:
    return mask & warp.pred(op.psrc);
  case Join::disjunction:
    return mask | warp.pred(op.psrc);
  case Join::exclusive:
    return mask ^ warp.pred(op.psrc);
  }
  return mask;
}

template <typename Reader, Relation relation>
static Step executeSetp(Warp &warp, const Op &op, LaneMask active) {
  LaneMask mask = compareLanes<Reader, relation>(warp, op);
  LaneMask first = joinWith(warp, op, mask), second = 0;
  if (op.pdst2.isValid())
    second = joinWith(warp, op, ~mask);
  if (op.pdst.isValid())
    warp.setPred(op.pdst, active, first);
  if (op.pdst2.isValid())
    warp.setPred(op.pdst2, active, second);
  return Step::next;
}

/// setp of a pair: the first predicate is of the lower half, the second of the
/// upper one.
static Step executeSetpPair(Warp &warp, const Op &op, LaneMask active) {
  const auto &state = *static_cast<const CompareState *>(op.extra.get());
  LaneMask first = joinWith(warp, op, state.low(warp, op));
  LaneMask second = joinWith(warp, op, state.high(warp, op));
  if (op.pdst.isValid())
    warp.setPred(op.pdst, active, first);
  if (op.pdst2.isValid())
    warp.setPred(op.pdst2, active, second);
  return Step::next;
}

static Step executeSet(Warp &warp, const Op &op, LaneMask active) {
  const auto &state = *static_cast<const CompareState *>(op.extra.get());
  LaneMask low = joinWith(warp, op, state.low(warp, op));
  LaneMask high = state.high ? joinWith(warp, op, state.high(warp, op)) : 0;
  std::uint32_t bits = std::uint32_t(state.trueBits);
  storeLanes<std::uint32_t>(warp, op.dst, active, [=](int lane) {
    return (low >> lane & 1 ? bits : 0) | (high >> lane & 1 ? bits << 16 : 0);
  });
  return Step::next;
}

/// The comparison that a modifier names.
static std::optional<Comparison> parseComparison(const std::string &name) {
  static const std::map<std::string, Comparison> names = {
      {"eq", {Relation::eq, false, false}},
      {"ne", {Relation::ne, false, false}},
      {"lt", {Relation::lt, false, false}},
      {"le", {Relation::le, false, false}},
      {"gt", {Relation::gt, false, false}},
      {"ge", {Relation::ge, false, false}},
      {"lo", {Relation::lt, false, true}},
      {"ls", {Relation::le, false, true}},
      {"hi", {Relation::gt, false, true}},
      {"hs", {Relation::ge, false, true}},
      {"equ", {Relation::eq, true, false}},
      {"neu", {Relation::ne, true, false}},
      {"ltu", {Relation::lt, true, false}},
      {"leu", {Relation::le, true, false}},
      {"gtu", {Relation::gt, true, false}},
      {"geu", {Relation::ge, true, false}},
      {"num", {Relation::always, false, false}},
      {"nan", {Relation::never, true, false}},
  };
  auto found = names.find(name);
  if (found == names.end())
    return std::nullopt;
  return found->second;
}

namespace {
/// What compares lanes of one type by one relation.
struct Comparer {
  CompareFunction compare;
  Handler setp;
  int bytes;
};
} // namespace

template <typename Reader> static Comparer comparer(Relation relation) {
  constexpr int bytes = Reader::bytes;
  switch (relation) {
#define KILN_RELATION(NAME)                                                    \
  case Relation::NAME:                                                         \
    return {compareLanes<Reader, Relation::NAME>,                              \
            widest<executeSetp<Reader, Relation::NAME>>(), bytes};
    KILN_RELATION(eq)
    KILN_RELATION(ne)
    KILN_RELATION(lt)
    KILN_RELATION(le)
    KILN_RELATION(gt)
    KILN_RELATION(ge)
    KILN_RELATION(always)
    KILN_RELATION(never)
#undef KILN_RELATION
  }
  return {};
}

/// The comparer of a type; `isUpper` for the second of a pair.
static Comparer findComparer(const Decoder &decoder,
                             const ptx::Instruction &instruction,
                             ptx::ScalarType type, const Comparison &comparison,
                             bool isUpper) {
  using enum ptx::ScalarType;
  bool isFlushed = instruction.has("ftz");
  Relation relation = comparison.relation;
  switch (type) {
  case f32:
    return isFlushed ? comparer<Flushed>(relation)
                     : comparer<Plain<float>>(relation);
  case f64:
    return comparer<Plain<double>>(relation);
  case f16:
  case f16x2:
    if (isUpper)
      return isFlushed ? comparer<Narrow<false, true, true>>(relation)
                       : comparer<Narrow<false, false, true>>(relation);
    return isFlushed ? comparer<Narrow<false, true, false>>(relation)
                     : comparer<Narrow<false, false, false>>(relation);
  case bf16:
  case bf16x2:
    return isUpper ? comparer<Narrow<true, false, true>>(relation)
                   : comparer<Narrow<true, false, false>>(relation);
  default:
    break;
  }
  if (relation == Relation::always || comparison.isUnordered)
    decoder.refuse(instruction, "integers have no unordered comparison");
  Comparer found{};
  withInteger(decoder, instruction, type, [&]<typename T>() {
    using U = std::make_unsigned_t<T>;
    found = comparison.isUnsigned ? comparer<Plain<U>>(relation)
                                  : comparer<Plain<T>>(relation);
  });
  return found;
}

/// Decode what setp and set share, from operand 1 on; the comparer of the lower
/// half is returned.
static Comparer decodeComparison(Decoder &decoder,
                                 const ptx::Instruction &instruction,
                                 ptx::ScalarType type, Op &op,
                                 CompareState &state) {
  std::optional<Comparison> comparison;
  state = {};
  for (const std::string &modifier : instruction.modifiers) {
    if (modifier == "and")
      state.join = Join::conjunction;
    else if (modifier == "or")
      state.join = Join::disjunction;
    else if (modifier == "xor")
      state.join = Join::exclusive;
    else if (auto parsed = parseComparison(modifier))
      comparison = parsed;
  }
  const std::vector<ptx::Operand> &operands = instruction.operands;
  bool isPair =
      type == ptx::ScalarType::f16x2 || type == ptx::ScalarType::bf16x2;
  Comparer low = findComparer(decoder, instruction, type, *comparison, false);
  state.low = low.compare;
  if (isPair)
    state.high =
        findComparer(decoder, instruction, type, *comparison, true).compare;
  for (int i = 0; i < 2; ++i) {
    if (type == ptx::ScalarType::f32)
      op.src[i] = source<float>(decoder, instruction, operands[i + 1]);
    else if (type == ptx::ScalarType::f64)
      op.src[i] = source<double>(decoder, instruction, operands[i + 1]);
    else {
      int bytes = isPair ? 4 : low.bytes;
      op.src[i] = expectWidth(decoder, instruction,
                              decoder.reg(operands[i + 1], bytes), bytes);
    }
  }
  if (state.join != Join::none)
    op.psrc = decoder.pred(operands[3]);
  op.flags = (comparison->isUnordered ? kUnordered : 0) |
             std::uint32_t(state.join) << kJoinShift;
  return low;
}

static void decodeSetp(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  CompareState state;
  Comparer comparer = decodeComparison(
      decoder, instruction, lastType(decoder, instruction), op, state);
  op.pdst = predDestination(decoder, instruction.operands[0]);
  op.pdst2 = pairedPred(decoder, instruction.operands[0]);
  op.handler = comparer.setp;
  if (!state.high)
    return;
  op.handler = executeSetpPair;
  op.extra = std::make_shared<CompareState>(state);
}

/// What set writes for true.
static std::uint64_t trueBits(const Decoder &decoder,
                              const ptx::Instruction &instruction,
                              ptx::ScalarType type) {
  using enum ptx::ScalarType;
  switch (type) {
  case u32:
  case s32:
    return 0xffffffff;
  case u16:
  case s16:
    return 0xffff;
  case f32:
    return 0x3f800000;
  case f16:
  case f16x2:
    return 0x3c00;
  case bf16:
  case bf16x2:
    return 0x3f80;
  default:
    decoder.refuse(instruction, "set gives u16 s16 u32 s32 f16 bf16 f32, "
                                "f16x2 or bf16x2");
  }
}

static void decodeSet(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.size() != 2)
    decoder.refuse(instruction, "it needs the type of its result and of its "
                                "sources");
  CompareState state;
  decodeComparison(decoder, instruction, types[1], op, state);
  state.trueBits = trueBits(decoder, instruction, types[0]);
  bool isPair = state.high != nullptr;
  bool isMask =
      types[0] == ptx::ScalarType::u32 || types[0] == ptx::ScalarType::s32;
  if (isPair && isMask)
    state.trueBits = 0xffff; // of each half
  else if (isPair && types[0] != types[1])
    decoder.refuse(instruction, "a pair is compared into a pair of its type, "
                                "or into the masks of a u32 or s32");
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       ptx::sizeBytes(types[0]));
  op.extra = std::make_shared<CompareState>(state);
  op.handler = executeSet;
}

template <typename T>
static Step executeSelp(Warp &warp, const Op &op, LaneMask active) {
  const T *a = warp.lanes<T>(op.src[0]), *b = warp.lanes<T>(op.src[1]);
  LaneMask choice = warp.pred(op.psrc);
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    return choice >> lane & 1 ? a[lane] : b[lane];
  });
  return Step::next;
}

/// Operands a and b of a choice, of any type.
static void decodeChoices(Decoder &decoder, const ptx::Instruction &instruction,
                          ptx::ScalarType type, Op &op) {
  int bytes = ptx::sizeBytes(type);
  op.dst = destination(decoder, instruction, instruction.operands[0], bytes);
  for (int i = 0; i < 2; ++i)
    op.src[i] =
        expectWidth(decoder, instruction,
                    decoder.reg(instruction.operands[i + 1], bytes), bytes);
}

static void decodeSelp(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  decodeChoices(decoder, instruction, type, op);
  op.psrc = decoder.pred(instruction.operands[3]);
  op.handler = ptx::sizeBytes(type) == 8 ? widest<executeSelp<std::uint64_t>>()
                                         : widest<executeSelp<std::uint32_t>>();
}

/// slct: a where c >= 0, which NaN is not and -0 is.
template <typename T, typename C>
static Step executeSlct(Warp &warp, const Op &op, LaneMask active) {
  const T *a = warp.lanes<T>(op.src[0]), *b = warp.lanes<T>(op.src[1]);
  const std::uint32_t *c = warp.lanes<std::uint32_t>(op.src[2]);
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    T x = a[lane], y = b[lane];
    return fromLane<C>(c[lane]) >= C(0) ? x : y;
  });
  return Step::next;
}

/// With .ftz a subnormal c counts as zero, which is >= 0.
template <typename T>
static Step flushSelector(Warp &warp, const Op &op, LaneMask active) {
  const std::uint32_t *c = warp.lanes<std::uint32_t>(op.src[2]);
  const T *a = warp.lanes<T>(op.src[0]);
  const T *b = warp.lanes<T>(op.src[1]);
  storeLanes<T>(warp, op.dst, active, [=](int lane) {
    T x = a[lane], y = b[lane];
    return flush(std::bit_cast<float>(c[lane])) >= 0 ? x : y;
  });
  return Step::next;
}

static void decodeSlct(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  bool isFloat = types.size() == 2 && types[1] == ptx::ScalarType::f32;
  if (!isFloat && (types.size() != 2 || types[1] != ptx::ScalarType::s32))
    decoder.refuse(instruction, "its selector is s32 or f32");
  decodeChoices(decoder, instruction, types[0], op);
  const ptx::Operand &selector = instruction.operands[3];
  op.src[2] = isFloat ? source<float>(decoder, instruction, selector)
                      : source<std::int32_t>(decoder, instruction, selector);
  bool isWide = ptx::sizeBytes(types[0]) == 8;
  if (isFloat && instruction.has("ftz"))
    op.handler =
        isWide ? flushSelector<std::uint64_t> : flushSelector<std::uint32_t>;
  else if (isFloat)
    op.handler = isWide ? executeSlct<std::uint64_t, float>
                        : executeSlct<std::uint32_t, float>;
  else
    op.handler = isWide ? executeSlct<std::uint64_t, std::int32_t>
                        : executeSlct<std::uint32_t, std::int32_t>;
}

std::vector<Instruction> scalarCompareInstructions() {
  const char *forms = "every comparison of integers and floats, with .and .or "
                      ".xor and .ftz; pairs of f16 and bf16";
  return {
      {"setp",
       decodeSetp,
       Unit::scalar,
       forms,
       "COMPARE JOIN, ftz BITS INT HALF f32 f64 -> =_p|p t t p; "
       "COMPARE, ftz BITS INT HALF f32 f64 -> =_p|p t t",
       {.poison = comparisonPoison}},
      {"set",
       decodeSet,
       Unit::scalar,
       forms,
       "COMPARE JOIN, ftz BITS INT HALF f32 f64 -> =t1 t2 t2 p; "
       "COMPARE, ftz BITS INT HALF f32 f64 -> =t1 t2 t2",
       {.poison = comparisonPoison}},
      {"selp",
       decodeSelp,
       Unit::scalar,
       "16, 32, 64 bits",
       ", BITS INT f32 f64 -> =t t t p",
       {.poison = joinPoison<PoisonRule::Join::choice>,
        .addresses = passesOn<0b110>}},
      {"slct", decodeSlct, Unit::scalar, "16, 32, 64 bits by s32 or f32",
       ", BITS INT f32 f64 ftz -> =t1 t1 t1 t2"},
  };
}

} // namespace kiln::sim
