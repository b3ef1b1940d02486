// MbarrierInstructions: every operation on mbarriers, with its rules.
#include "sim/machine/Mbarrier.h"
#include "sim/program/Effect.h"
#include "sim/units/Units.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>

namespace kiln::sim {

static constexpr std::uint32_t kMaxCount =
    DeviceDescription::max_mbarrier_count;

// What `flags` of an mbarrier operation holds.
static constexpr std::uint32_t isGeneric = 1, isDrop = 2, hasExpectTx = 4,
                               isNoComplete = 8, isParity = 16, isBlocking = 32;

void settlePhase(MbarrierState &barrier, Cluster &cluster) {
  if (barrier.pending != 0 || barrier.txCount != 0)
    return;
  ++barrier.phase;
  barrier.pending = barrier.expected;
  cluster.watchers().tell(MbarrierPhase{barrier});
  cluster.notify();
}

/// The CTA and the shared address an operand means.
static Cta &ownerOf(Warp &warp, const Op &op, int lane, std::uint32_t &plain) {
  std::uint64_t address = warp.read(op.src[0], lane) + op.imm;
  if (op.flags & isGeneric) {
    if (address >> kWindowShift != kSharedWindow >> kWindowShift)
      warp.machine().findings().fault(
          FindingId::mbarrierAddress, warp, op, LaneMask(1) << lane,
          fmt::format("the mbarrier at {:#x} is not in shared memory",
                      address));
    address -= kSharedWindow;
  }
  Cta *owner = nullptr;
  Accessor(warp, op, "an mbarrier operation")
      .locateShared(address, 8, 8, lane, &owner);
  plain = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  return *owner;
}

static void tell(MbarrierEvent::What what, Warp &warp, const Op &op,
                 LaneMask lanes, Cta &cta, std::uint32_t plain,
                 MbarrierState *state = nullptr) {
  warp.watchers().tell(MbarrierEvent{what, warp, op, lanes, cta, plain, state});
}

/// The live barrier an operand means.
static MbarrierState &barrierOf(Warp &warp, const Op &op, int lane,
                                std::uint32_t &plain, Cta **owner = nullptr) {
  Cta &cta = ownerOf(warp, op, lane, plain);
  if (owner)
    *owner = &cta;
  auto found = cta.mbarriers.find(plain);
  if (found == cta.mbarriers.end())
    warp.machine().findings().fault(
        FindingId::mbarrierUninitialized, warp, op, LaneMask(1) << lane,
        fmt::format("there is no initialised mbarrier at {}",
                    warp.machine().findings().describeShared(plain)));
  tell(MbarrierEvent::What::use, warp, op, LaneMask(1) << lane, cta, plain);
  return found->second;
}

/// A live barrier is initialised: harmless where it has the same count and is
/// at rest, as when two threads do it.
static void reportLive(Warp &warp, const Op &op, int lane, std::uint32_t plain,
                       const MbarrierState &barrier, std::uint32_t count) {
  std::string text =
      fmt::format("the mbarrier at {} is live already; mbarrier.inval ends it",
                  warp.machine().findings().describeShared(plain));
  LaneMask bit = LaneMask(1) << lane;
  FindingObject object = {"shared", plain};
  if (count == barrier.expected && barrier.isAtRest())
    return warp.machine().findings().report(FindingId::mbarrierReinitialized,
                                            warp, op, bit, text, object);
  text += fmt::format(". It waits for {} of {} arrivals and {} bytes in phase "
                      "{}, and is made one of {}",
                      barrier.pending, barrier.expected, barrier.txCount,
                      barrier.phase, count);
  warp.machine().findings().report(FindingId::mbarrierReinitializedInUse, warp,
                                   op, bit, text, object);
}

/// End the launch where an operation that is for a CTA's own barriers names one
/// of another CTA.
static void checkOwn(Warp &warp, const Op &op, int lane, const Cta &owner,
                     std::uint32_t plain) {
  if (&owner != &warp.cta())
    warp.machine().findings().fault(
        FindingId::mbarrierAddress, warp, op, LaneMask(1) << lane,
        fmt::format("the mbarrier at {} belongs to CTA {} of "
                    "the cluster; from elsewhere it takes arrivals, expect_tx "
                    "and complete_tx only",
                    warp.machine().findings().describeShared(plain),
                    owner.rankInCluster()),
        {"shared", plain});
}

static Step init(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    std::uint32_t plain;
    Cta &cta = ownerOf(warp, op, lane, plain);
    checkOwn(warp, op, lane, cta, plain);
    auto count = static_cast<std::uint32_t>(warp.read(op.src[1], lane));
    if (count == 0 || count > kMaxCount)
      warp.machine().findings().fault(
          FindingId::mbarrierCount, warp, op, LaneMask(1) << lane,
          fmt::format("an mbarrier for {} arrivals; 1 to {} are possible",
                      count, kMaxCount));
    auto [found, isNew] = cta.mbarriers.try_emplace(plain);
    if (!isNew)
      reportLive(warp, op, lane, plain, found->second, count);
    found->second = {.expected = count, .pending = count};
    tell(MbarrierEvent::What::init, warp, op, LaneMask(1) << lane, cta, plain,
         &found->second);
  });
  warp.cta().cluster().notify();
  return Step::next;
}

static Step invalidate(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    std::uint32_t plain;
    Cta *owner;
    barrierOf(warp, op, lane, plain, &owner);
    Cta &cta = *owner;
    checkOwn(warp, op, lane, cta, plain);
    cta.mbarriers.erase(plain);
    tell(MbarrierEvent::What::inval, warp, op, LaneMask(1) << lane, cta, plain);
  });
  return Step::next;
}

/// The active lanes that name the same address as `lane`.
static LaneMask lanesAlike(const Warp &warp, const Op &op, LaneMask active,
                           int lane) {
  LaneMask alike = 0;
  std::uint64_t address = warp.read(op.src[0], lane);
  forEachLane(active, [&](int other) {
    alike |= LaneMask(warp.read(op.src[0], other) == address) << other;
  });
  return alike;
}

static Step arrive(Warp &warp, const Op &op, LaneMask active) {
  LaneMask told = 0;
  bool isWatched = warp.watchers().wants(EventKind::barrier);
  forEachLane(active, [&](int lane) {
    std::uint32_t plain;
    Cta *owner;
    MbarrierState &barrier = barrierOf(warp, op, lane, plain, &owner);
    LaneMask bit = LaneMask(1) << lane;
    auto operand = static_cast<std::uint32_t>(
        op.src[1].isValid() ? warp.read(op.src[1], lane) : 1);
    std::uint32_t count = 1;
    if (isWatched && !(told & bit)) {
      // As many at once as this phase waits for: the rest is for the next.
      LaneMask alike = lanesAlike(warp, op, active & ~told, lane);
      bool isCounting = !(op.flags & hasExpectTx) && operand > 1;
      std::uint32_t wanted = barrier.pending / (isCounting ? operand : 1);
      while (static_cast<std::uint32_t>(countLanes(alike)) >
             std::max(wanted, 1u))
        alike &= ~(LaneMask(1) << (31 - std::countl_zero(alike)));
      tell(MbarrierEvent::What::arrive, warp, op, alike, *owner, plain);
      told |= alike;
    }
    if (op.dst.isValid()) {
      // The state: its phase, and what was pending in the upper half.
      warp.write(op.dst, lane,
                 static_cast<std::uint32_t>(barrier.phase) |
                     std::uint64_t(barrier.pending) << 32);
      warp.setPoison(op.dst, bit, 0);
    }
    if (op.flags & hasExpectTx)
      barrier.txCount += operand;
    else
      count = operand;
    if (barrier.txCount > kMaxCount)
      warp.machine().findings().fault(
          FindingId::mbarrierBytes, warp, op, bit,
          fmt::format("the mbarrier at {} expects {} bytes; at "
                      "most {} are possible",
                      warp.machine().findings().describeShared(plain),
                      barrier.txCount, kMaxCount));
    if (count > barrier.pending)
      warp.machine().findings().fault(
          FindingId::mbarrierOverArrival, warp, op, bit,
          fmt::format("{} arrival(s) at the mbarrier at {}, "
                      "which waits for {} of {} in phase {}",
                      count, warp.machine().findings().describeShared(plain),
                      barrier.pending, barrier.expected, barrier.phase));
    barrier.pending -= count;
    barrier.note(op);
    if ((op.flags & isDrop) && barrier.expected <= count)
      warp.machine().findings().fault(
          FindingId::mbarrierCount, warp, op, bit,
          fmt::format("arrive_drop takes {} of the {} arrivals of the mbarrier "
                      "at {}; at least 1 must be left",
                      count, barrier.expected,
                      warp.machine().findings().describeShared(plain)));
    if (op.flags & isDrop)
      barrier.expected -= count;
    if ((op.flags & isNoComplete) && barrier.pending == 0)
      warp.machine().findings().fault(
          FindingId::mbarrierNoComplete, warp, op, bit,
          fmt::format("a noComplete arrival completes the "
                      "phase of the mbarrier at {}",
                      warp.machine().findings().describeShared(plain)));
    settlePhase(barrier, warp.cta().cluster());
  });
  return Step::next;
}

/// expect_tx (sign +1) and complete_tx (-1), by `imm2` in flags' sign.
template <int Sign>
static Step changeTx(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    std::uint32_t plain;
    MbarrierState &barrier = barrierOf(warp, op, lane, plain);
    barrier.note(op);
    barrier.txCount +=
        Sign * static_cast<std::int64_t>(
                   static_cast<std::uint32_t>(warp.read(op.src[1], lane)));
    if (std::abs(barrier.txCount) > kMaxCount)
      warp.machine().findings().fault(
          FindingId::mbarrierBytes, warp, op, LaneMask(1) << lane,
          fmt::format("the mbarrier at {} counts {} bytes; -{} "
                      "to {} are possible",
                      warp.machine().findings().describeShared(plain),
                      barrier.txCount, kMaxCount, kMaxCount));
    settlePhase(barrier, warp.cta().cluster());
  });
  return Step::next;
}

static Step wait(Warp &warp, const Op &op, LaneMask active) {
  LaneMask complete = 0, told = 0;
  bool isWatched = warp.watchers().wants(EventKind::barrier);
  std::uint32_t first = 0, parity = 0;
  forEachLane(active, [&](int lane) {
    std::uint32_t plain;
    Cta *owner;
    MbarrierState &barrier = barrierOf(warp, op, lane, plain, &owner);
    checkOwn(warp, op, lane, *owner, plain);
    auto operand = static_cast<std::uint32_t>(warp.read(op.src[1], lane));
    bool isDone = op.flags & isParity
                      ? barrier.isComplete(operand)
                      : static_cast<std::uint32_t>(barrier.phase) != operand;
    if (isDone) {
      complete |= LaneMask(1) << lane;
      if (isWatched && barrier.phase > 0 && !(told >> lane & 1)) {
        LaneMask alike = lanesAlike(warp, op, active, lane);
        tell(MbarrierEvent::What::wait, warp, op, alike, *owner, plain);
        told |= alike;
      }
    } else if (!first) {
      first = plain;
      parity = operand & 1;
    }
  });
  Group &group = warp.group();
  // A try_wait may say no whenever its time is up: it does so at once, that a
  // kernel which asks only once is seen to go on. Asked again, it suspends
  // until something has changed.
  bool isRepeated =
      std::exchange(group.refusedPc, complete ? -1 : group.pc) == group.pc;
  if (!complete && (op.flags & isBlocking) && isRepeated &&
      !group.hasTimedOut) {
    group.wait = {WaitReason::Kind::mbarrier, first, parity};
    return Step::blocked;
  }
  group.wait = {};
  group.hasTimedOut = false;
  warp.setPred(op.pdst, active, complete);
  warp.setPredPoison(op.pdst, active, 0);
  return Step::next;
}

static Step pendingCount(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    warp.write(op.dst, lane, warp.read(op.src[0], lane) >> 32);
  });
  warp.setPoison(op.dst, active, warp.poison(op.src[0]));
  return Step::next;
}

static void decodeMbarrier(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  op.flags = spaceOf(instruction) == Space::generic ? isGeneric : 0;
  const auto &operands = instruction.operands;
  auto is = [&](const char *word) { return instruction.has(word); };
  if (is("init") || is("inval")) {
    op.src[0] = decoder.address(operands[0], op.imm);
    if (is("init"))
      op.src[1] = decoder.reg(operands[1], 4);
    op.handler = is("init") ? init : invalidate;
    return;
  }
  if (is("test_wait") || is("try_wait")) {
    op.pdst = decoder.pred(operands[0]);
    op.src[0] = decoder.address(operands[1], op.imm);
    op.src[1] = decoder.reg(operands[2], is("parity") ? 4 : 8);
    op.flags |=
        (is("parity") ? isParity : 0) | (is("try_wait") ? isBlocking : 0);
    op.handler = wait;
    return;
  }
  if (is("arrive") || is("arrive_drop")) {
    op.dst = decoder.reg(operands[0], 8);
    op.src[0] = decoder.address(operands[1], op.imm);
    if (operands.size() > 2)
      op.src[1] = decoder.reg(operands[2], 4);
    op.flags |= (is("arrive_drop") ? isDrop : 0) |
                (is("expect_tx") ? hasExpectTx : 0) |
                (is("noComplete") ? isNoComplete : 0);
    op.handler = arrive;
    return;
  }
  if (is("expect_tx") || is("complete_tx")) {
    op.src[0] = decoder.address(operands[0], op.imm);
    op.src[1] = decoder.reg(operands[1], 4);
    op.handler = is("expect_tx") ? changeTx<1> : changeTx<-1>;
    return;
  }
  // pending_count
  op.dst = decoder.reg(operands[0], 4);
  op.src[0] = decoder.reg(operands[1], 8);
  op.handler = pendingCount;
}

static bool isWait(const ptx::Instruction &instruction) {
  return instruction.has("test_wait") || instruction.has("try_wait");
}

static MemorySemantics mbarrierSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = writtenSemantics(instruction);
  bool isWaiting = isWait(instruction);
  semantics.isAcquire |= isWaiting && !semantics.isRelaxed;
  semantics.isRelease |= !isWaiting && !semantics.isRelaxed;
  semantics.scope = scopeOf(instruction, Scope::cta);
  return semantics;
}

static void mbarrierEffect(Decoder &decoder,
                           const ptx::Instruction &instruction,
                           Effect &effect) {
  takeAddress(decoder, instruction, 0, effect.address, effect.offset);
  if (isWait(instruction)) {
    effect.kind = EffectKind::barrierWait;
    effect.operand = decoder.reg(instruction.operands[2]);
  } else if (instruction.has("init") || instruction.has("inval")) {
    effect.kind = EffectKind::barrierInit;
  } else {
    effect.kind = EffectKind::barrierArrive;
  }
}

std::vector<Instruction> mbarrierInstructions() {
  return {
      {"mbarrier",
       decodeMbarrier,
       Unit::mbarrier,
       "init inval arrive arrive_drop expect_tx complete_tx test_wait "
       "try_wait pending_count, local and remote",
       "init, SHARED b64 -> [a] u32; "
       "inval, SHARED b64 -> [a]; "
       "arrive|arrive_drop expect_tx shared::cluster, release relaxed SCOPE "
       "b64 -> _ [a] u32; "
       "arrive|arrive_drop shared::cluster, release relaxed SCOPE b64 -> _ [a] "
       "u32?; "
       "arrive|arrive_drop expect_tx, release relaxed SCOPE shared shared::cta "
       "b64 -> =_u64 [a] u32; "
       "arrive|arrive_drop noComplete, release SCOPE shared shared::cta b64 -> "
       "=_u64 [a] u32; "
       "arrive|arrive_drop, release relaxed SCOPE shared shared::cta b64 -> "
       "=_u64 [a] u32?; "
       "expect_tx|complete_tx, relaxed SCOPE SHARED b64 -> [a] u32; "
       "test_wait parity, acquire relaxed SCOPE SHARED b64 -> =p [a] u32; "
       "test_wait, acquire relaxed SCOPE SHARED b64 -> =p [a] u64; "
       "try_wait parity, acquire relaxed SCOPE SHARED b64 -> =p [a] u32 u32?; "
       "try_wait, acquire relaxed SCOPE SHARED b64 -> =p [a] u64 u32?; "
       "pending_count, b64 -> =u32 u64",
       {.effect = mbarrierEffect, .semantics = mbarrierSemantics}}};
}

} // namespace kiln::sim
