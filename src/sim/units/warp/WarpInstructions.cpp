// WarpInstructions: what lanes of a warp do together: shfl, vote, match, redux,
// elect, and waiting for each other.
//
// A .sync instruction names the lanes that take part. It waits until all of
// them that still run are here; lanes of one group that name different sets are
// served set by set.
#include "sim/program/Effect.h"
#include "sim/units/Execute.h"
#include "sim/units/memory/Access.h"
#include "support/Half.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace kiln::sim {

using U32 = std::uint32_t;
using U64 = std::uint64_t;

/// Whether every live lane that an active lane names is active; if not, the
/// group is marked as waiting for the others. A lane must name itself.
static bool hasAllMembers(Warp &warp, const Op &op, Reg members,
                          LaneMask active) {
  LaneMask named = 0, strangers = 0;
  const U32 *masks = warp.lanes<U32>(members);
  for (int lane = 0; lane < kLanes; ++lane) {
    LaneMask bit = active & kLaneBits[lane];
    named |= bit ? masks[lane] : 0;
    strangers |= ~masks[lane] & bit;
  }
  if (strangers && warp.machine().config().checks)
    warp.machine().findings().report(
        FindingId::warpMask, warp, op, strangers,
        fmt::format("lane {} executes this and is not among the lanes that its "
                    "mask {:#x} names",
                    firstLane(strangers), masks[firstLane(strangers)]));
  LaneMask missing = named & warp.live() & ~active;
  if (missing) {
    warp.group().wait = {WaitReason::Kind::lanes, missing, named};
    return false;
  }
  warp.group().wait = {};
  return true;
}

/// Call `body(lanes, members)` for each set of active lanes that name the same
/// members; the lanes of a set that are active are its participants.
template <typename Body>
static void forEachSet(Warp &warp, Reg members, LaneMask active, Body &&body) {
  const U32 *masks = warp.lanes<U32>(members);
  while (active) {
    U32 named = masks[firstLane(active)];
    LaneMask set = 0;
    forEachLane(active, [&](int lane) {
      set |= LaneMask(masks[lane] == named) << lane;
    });
    body(set, named);
    active &= ~set;
  }
}

/// Every lane of `set` gets `value`; it is unknown where one of `sources` is.
static void giveAll(Warp &warp, Reg reg, LaneMask set, U32 value,
                    LaneMask unknown) {
  storeLanes<U32>(warp, reg, set, [=](int) { return value; });
  warp.setPoison(reg, set, unknown & set ? set : 0);
}

static void givePred(Warp &warp, Pred pred, LaneMask set, LaneMask value,
                     LaneMask unknown) {
  if (!pred.isValid())
    return;
  warp.setPred(pred, set, value);
  warp.setPredPoison(pred, set, unknown & set ? set : 0);
}

namespace {
enum class Shuffle { up, down, bfly, idx };
} // namespace

template <Shuffle mode>
static Step executeShuffle(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[3], active))
    return Step::blocked;
  const U32 *a = warp.lanes<U32>(op.src[0]), *b = warp.lanes<U32>(op.src[1]);
  const U32 *c = warp.lanes<U32>(op.src[2]);
  U32 result[kLanes];
  int sources[kLanes];
  std::uint8_t isValid[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    int offset = b[lane] & 31, clamp = c[lane] & 31;
    int segment = c[lane] >> 8 & 31;
    int last = (lane & segment) | (clamp & ~segment);
    int from = mode == Shuffle::up     ? lane - offset
               : mode == Shuffle::down ? lane + offset
               : mode == Shuffle::bfly
                   ? lane ^ offset
                   : ((lane & segment) | (offset & ~segment));
    isValid[lane] = mode == Shuffle::up ? from >= last : from <= last;
    sources[lane] = isValid[lane] ? from : lane;
  }
  for (int lane = 0; lane < kLanes; ++lane)
    result[lane] = a[sources[lane]];
  LaneMask isInRange = testLanes([&](int lane) { return isValid[lane]; });
  // The value of a lane that takes no part is undefined.
  LaneMask unknown = 0, sourcePoison = warp.poison(op.src[0]);
  for (int lane = 0; lane < kLanes && active != kAllLanes; ++lane)
    unknown |= LaneMask(!(active >> sources[lane] & 1)) << lane;
  std::uint64_t unwritten[kLanes];
  for (int lane = 0; lane < kLanes && sourcePoison; ++lane)
    unwritten[lane] = (unknown >> lane & 1)
                          ? ~std::uint64_t(0)
                          : warp.poisonBits(op.src[0], sources[lane]);
  blendLanes(warp.lanes<U32>(op.dst), result, active);
  warp.setPoison(op.dst, active, unknown);
  if (sourcePoison) {
    forEachLane(active, [&](int lane) {
      warp.setPoisonBits(op.dst, lane, unwritten[lane]);
    });
    warp.setPoisonOrigin(op.dst, warp.poisonOrigin(op.src[0]));
  }
  givePred(warp, op.pdst, active, isInRange, 0);
  return Step::next;
}

static void decodeShuffle(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 4);
  op.pdst = pairedPred(decoder, operands[0]);
  for (int i = 0; i < 4; ++i)
    op.src[i] = source<U32>(decoder, instruction, operands[i + 1]);
  op.handler =
      instruction.has("up")     ? widest<executeShuffle<Shuffle::up>>()
      : instruction.has("down") ? widest<executeShuffle<Shuffle::down>>()
      : instruction.has("bfly") ? widest<executeShuffle<Shuffle::bfly>>()
                                : widest<executeShuffle<Shuffle::idx>>();
}

namespace {
enum class Vote { all, any, uni, ballot };
} // namespace

template <Vote vote>
static Step executeVote(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[0], active))
    return Step::blocked;
  LaneMask votes = warp.pred(op.psrc);
  LaneMask unknown = warp.predPoison(op.psrc);
  forEachSet(warp, op.src[0], active, [&](LaneMask set, U32) {
    LaneMask yes = votes & set;
    if (vote == Vote::ballot)
      return giveAll(warp, op.dst, set, yes, unknown & set);
    bool isTrue = vote == Vote::all   ? yes == set
                  : vote == Vote::any ? yes != 0
                                      : yes == set || yes == 0;
    givePred(warp, op.pdst, set, isTrue ? kAllLanes : 0, unknown & set);
  });
  return Step::next;
}

static void decodeVote(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.psrc = decoder.pred(operands[1]);
  op.src[0] = source<U32>(decoder, instruction, operands[2]);
  if (instruction.has("ballot")) {
    op.dst = destination(decoder, instruction, operands[0], 4);
    op.handler = executeVote<Vote::ballot>;
    return;
  }
  op.pdst = decoder.pred(operands[0]);
  op.handler = instruction.has("all")   ? executeVote<Vote::all>
               : instruction.has("any") ? executeVote<Vote::any>
                                        : executeVote<Vote::uni>;
}

template <typename T, bool isAll>
static Step executeMatch(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[1], active))
    return Step::blocked;
  T values[kLanes];
  std::memcpy(values, warp.lanes<T>(op.src[0]), sizeof(values));
  LaneMask unknown = warp.poison(op.src[0]);
  forEachSet(warp, op.src[1], active, [&](LaneMask set, U32) {
    auto equalTo = [&](int lane) {
      LaneMask equal = 0;
      forEachLane(set, [&](int other) {
        equal |= LaneMask(values[other] == values[lane]) << other;
      });
      return equal;
    };
    if (isAll) {
      bool isTrue = equalTo(firstLane(set)) == set;
      giveAll(warp, op.dst, set, isTrue ? set : 0, unknown & set);
      return givePred(warp, op.pdst, set, isTrue ? kAllLanes : 0,
                      unknown & set);
    }
    forEachLane(set, [&](int lane) {
      giveAll(warp, op.dst, LaneMask(1) << lane, equalTo(lane),
              unknown & set ? kAllLanes : 0);
    });
  });
  return Step::next;
}

static void decodeMatch(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  const std::vector<ptx::Operand> &operands = instruction.operands;
  op.dst = destination(decoder, instruction, operands[0], 4);
  op.pdst = pairedPred(decoder, operands[0]);
  op.src[1] = source<U32>(decoder, instruction, operands[2]);
  bool isAll = instruction.has("all");
  if (lastType(decoder, instruction) == ptx::ScalarType::b64) {
    op.src[0] = source<U64>(decoder, instruction, operands[1]);
    op.handler = isAll ? executeMatch<U64, true> : executeMatch<U64, false>;
    return;
  }
  op.src[0] = source<U32>(decoder, instruction, operands[1]);
  op.handler = isAll ? executeMatch<U32, true> : executeMatch<U32, false>;
}

/// redux: `F` folded over the lanes of a set.
template <typename T, typename F>
static Step executeRedux(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[1], active))
    return Step::blocked;
  U32 values[kLanes];
  std::memcpy(values, warp.lanes<U32>(op.src[0]), sizeof(values));
  LaneMask unknown = warp.poison(op.src[0]);
  forEachSet(warp, op.src[1], active, [&](LaneMask set, U32) {
    T folded = T(values[firstLane(set)]);
    forEachLane(set & (set - 1),
                [&](int lane) { folded = F{}(folded, T(values[lane])); });
    giveAll(warp, op.dst, set, U32(folded), unknown & set);
  });
  return Step::next;
}

template <typename T, typename F> static Handler reduxBy(F) {
  return executeRedux<T, F>;
}

namespace {
/// A lane's f32 of a redux: every NaN is the canonical one.
template <bool isAbsolute> struct ReducedFloat {
  explicit ReducedFloat(U32 bits)
      : value(canonical(
            std::bit_cast<float>(isAbsolute ? bits & 0x7fffffff : bits))) {}
  explicit operator U32() const { return std::bit_cast<U32>(value); }
  float value;
};
} // namespace

/// The larger or the smaller of two, -0 below +0; a NaN counts where it is
/// asked for.
template <typename T, bool isMax, bool isNan> static T foldFloats(T a, T b) {
  if (std::isnan(a.value) || std::isnan(b.value))
    return std::isnan(a.value) == isNan ? a : b;
  bool isFirst = a.value == b.value ? std::signbit(a.value) != isMax
                                    : (a.value > b.value) == isMax;
  return isFirst ? a : b;
}

template <bool isAbsolute, bool isMax>
static Handler reduxOfFloats(bool isNan) {
  using T = ReducedFloat<isAbsolute>;
  if (isNan)
    return reduxBy<T>([](T a, T b) { return foldFloats<T, isMax, true>(a, b); });
  return reduxBy<T>([](T a, T b) { return foldFloats<T, isMax, false>(a, b); });
}

static Handler reduxOfFloats(const ptx::Instruction &instruction) {
  bool isMax = instruction.has("max"), isNan = instruction.has("NaN");
  if (instruction.has("abs"))
    return isMax ? reduxOfFloats<true, true>(isNan)
                 : reduxOfFloats<true, false>(isNan);
  return isMax ? reduxOfFloats<false, true>(isNan)
               : reduxOfFloats<false, false>(isNan);
}

static void decodeRedux(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  using S32 = std::int32_t;
  ptx::ScalarType type = lastType(decoder, instruction);
  op.dst = destination(decoder, instruction, instruction.operands[0], 4);
  for (int i = 0; i < 2; ++i)
    op.src[i] = source<U32>(decoder, instruction, instruction.operands[i + 1]);
  if (isFloatType(type)) {
    op.handler = reduxOfFloats(instruction);
    return;
  }
  bool isSigned = type == ptx::ScalarType::s32;
  auto min = [](auto a, auto b) { return std::min(a, b); };
  auto max = [](auto a, auto b) { return std::max(a, b); };
  if (instruction.has("add"))
    op.handler = reduxBy<U32>([](U32 a, U32 b) { return a + b; });
  else if (instruction.has("min"))
    op.handler = isSigned ? reduxBy<S32>(min) : reduxBy<U32>(min);
  else if (instruction.has("max"))
    op.handler = isSigned ? reduxBy<S32>(max) : reduxBy<U32>(max);
  else if (instruction.has("and"))
    op.handler = reduxBy<U32>([](U32 a, U32 b) { return a & b; });
  else if (instruction.has("or"))
    op.handler = reduxBy<U32>([](U32 a, U32 b) { return a | b; });
  else
    op.handler = reduxBy<U32>([](U32 a, U32 b) { return a ^ b; });
}

/// elect: the lowest of the named lanes that are here.
static Step executeElect(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[0], active))
    return Step::blocked;
  forEachSet(warp, op.src[0], active, [&](LaneMask set, U32) {
    int leader = firstLane(set);
    if (op.dst.isValid())
      giveAll(warp, op.dst, set, leader, 0);
    givePred(warp, op.pdst, set, LaneMask(1) << leader, 0);
  });
  return Step::next;
}

static void decodeElect(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  const ptx::Operand &to = instruction.operands[0];
  if (to.kind != ptx::Operand::Kind::sink)
    op.dst = destination(decoder, instruction, to, 4);
  op.pdst = pairedPred(decoder, to);
  op.src[0] = source<U32>(decoder, instruction, instruction.operands[1]);
  op.handler = executeElect;
}

static Step executeActiveMask(Warp &warp, const Op &op, LaneMask active) {
  giveAll(warp, op.dst, active, active, 0);
  return Step::next;
}

static void decodeActiveMask(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  op.dst = destination(decoder, instruction, instruction.operands[0], 4);
  op.handler = executeActiveMask;
}

static Step executeWarpBarrier(Warp &warp, const Op &op, LaneMask active) {
  if (!hasAllMembers(warp, op, op.src[0], active))
    return Step::blocked;
  if (warp.watchers().wants(EventKind::barrier))
    forEachSet(warp, op.src[0], active, [&](LaneMask set, U32) {
      warp.watchers().tell(WarpBarrier{warp, set});
    });
  return Step::next;
}

void decodeWarpBarrier(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  op.src[0] = source<U32>(decoder, instruction, instruction.operands[0]);
  op.handler = executeWarpBarrier;
}

/// Time does not pass here: a sleep of any length is over at once, and no
/// profiler listens to an event.
static Step executeNothing(Warp &, const Op &, LaneMask) { return Step::next; }

static void decodeNothing(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = executeNothing;
}

static void sleepEffect(Decoder &, const ptx::Instruction &, Effect &effect) {
  effect.kind = EffectKind::sleep;
}

std::vector<Instruction> warpInstructions() {
  return {
      {"shfl", decodeShuffle, Unit::warp, ".sync up down bfly idx, with |p",
       "sync up|down|bfly|idx, b32 -> =b32|p b32 b32 b32 b32"},
      {"vote", decodeVote, Unit::warp, ".sync all any uni ballot",
       "sync ballot, b32 -> =b32 p b32; "
       "sync all|any|uni, pred -> =p p b32"},
      {"match", decodeMatch, Unit::warp, ".sync any all, b32 b64, with |p",
       "any sync, b32 b64 -> =b32 t b32; "
       "all sync, b32 b64 -> =b32|p t b32"},
      {"redux", decodeRedux, Unit::warp,
       ".sync add min max and or xor of u32 s32 b32; min and max of f32, .abs "
       ".NaN",
       "sync min|max f32, abs NaN -> =t t b32; "
       "sync add|min|max, u32 s32 -> =t t b32; "
       "sync and|or|xor, b32 -> =t t b32"},
      {"elect", decodeElect, Unit::warp, ".sync", "sync -> =_b32|p! b32"},
      {"activemask",
       decodeActiveMask,
       Unit::warp,
       "b32",
       ", b32 -> =b32",
       {.isOfTheMoment = true}},
      {"nanosleep",
       decodeNothing,
       Unit::warp,
       "over at once",
       ", u32 -> u32",
       {.effect = sleepEffect}},
      {"pmevent", decodeNothing, Unit::warp, "ignored", ", mask -> imm"},
  };
}

} // namespace kiln::sim
