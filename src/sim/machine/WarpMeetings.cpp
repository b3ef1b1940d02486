// WarpMeetings: where groups of a warp's lanes meet: at the ends of branches,
// at instructions for whole warps, and where a predicate that came from
// unwritten bytes has parted them.
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

/// Paths meet between which a predicate from unwritten bytes has chosen: what
/// either of them writes is unwritten.
static void leaveDoubt(Warp &warp, const Op &branch, LaneMask lanes) {
  const std::vector<Op> &ops = warp.code().ops;
  int behind = static_cast<int>(&branch - ops.data()) + 1;
  int first = std::min(behind, branch.target);
  int last = std::max(behind, branch.reconverge);
  for (int i = first; i < last; ++i)
    warp.setResultPoison(ops[i], lanes, kAllLanes);
}

void Warp::join(const ReconvergenceRef &reconvergence) {
  Group *joined = nullptr;
  const Op *doubtedAt = nullptr;
  for (Group &group : groups_) {
    if (!group.isParked || !(group.reconvergence == reconvergence))
      continue;
    if (hasChecks()) {
      doubtedAt = group.doubtedAt;
      if (LaneMask doubtful = group.inDoubt & ~reconvergence->inDoubt)
        leaveDoubt(*this, *group.doubtedAt, doubtful);
      CheckTime time(watchers().clock());
      if (joined)
        joined->clocks.meet(std::move(group.clocks), clock);
    }
    group.lanes = 0;
    if (!joined)
      joined = &group;
  }
  GroupState state;
  state.pc = reconvergence->pc;
  state.lanes = reconvergence->arrived;
  state.reconvergence = reconvergence->outer;
  state.frame = reconvergence->frame;
  state.inDoubt = reconvergence->inDoubt & reconvergence->arrived;
  state.doubtedAt = doubtedAt;
  static_cast<GroupState &>(*joined) = std::move(state);
  groups_.eraseIf([](const Group &group) { return group.lanes == 0; });
  groups_.moveBehind(*joined);
}

/// Whether a group waits for lanes at a bar.warp.sync that all of it executes.
static bool isAtWarpBarrier(const Group &group, const Code &code) {
  if (group.wait.kind != WaitReason::Kind::lanes)
    return false;
  const Op &op = code.ops[group.pc];
  return op.effect->kind == EffectKind::warpBarrier && !op.guard.isValid();
}

/// Lanes that name each other meet at a bar.warp.sync wherever each of them
/// stands, from sm_70 on.
bool Warp::passWarpBarriers() {
  bool isPassed = false;
  for (const Group &first : groups_) {
    if (!isAtWarpBarrier(first, code_))
      continue;
    std::uint32_t named = first.wait.detail;
    std::vector<Group *> here;
    LaneMask missing = named & live_;
    for (Group &group : groups_)
      if (isAtWarpBarrier(group, code_) && group.wait.detail == named) {
        here.push_back(&group);
        missing &= ~group.lanes;
      }
    if (missing)
      continue;
    SyncPoint round;
    for (Group *group : here)
      if (hasChecks())
        group->clocks.release(round, clock, group->lanes);
    for (Group *group : here) {
      if (hasChecks())
        group->clocks.acquire(round, clock, group->lanes);
      group->wait = {};
      group->blockedEpoch = 0;
      ++group->pc;
    }
    isPassed = true;
  }
  return isPassed;
}

/// Two groups that came to one place by different paths go on as one: they will
/// meet others where both still would, and nobody waits for them before.
static void leaveInnerPoints(Group &first, Group &second) {
  auto isOuter = [](const Group &group, const ReconvergencePoint *point) {
    for (auto *at = group.reconvergence.get(); at; at = at->outer.get())
      if (at == point)
        return true;
    return point == nullptr;
  };
  auto leave = [&](Group &group, const Group &other) {
    while (!isOuter(other, group.reconvergence.get())) {
      group.reconvergence->expected &= ~group.lanes;
      group.reconvergence = group.reconvergence->outer;
    }
  };
  leave(first, second);
  leave(second, first);
}

/// Groups that wait for each other's lanes at one instruction become one.
bool Warp::joinWaiting() {
  bool haveMet = false;
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    Group &first = groups_[i];
    if (first.wait.kind != WaitReason::Kind::lanes)
      continue;
    bool isJoined = false;
    for (std::size_t j = groups_.size(); j-- > i + 1;) {
      Group &second = groups_[j];
      if (second.wait.kind != WaitReason::Kind::lanes ||
          first.pc != second.pc || first.frame != second.frame)
        continue;
      leaveInnerPoints(first, second);
      first.lanes |= second.lanes;
      first.inDoubt |= second.inDoubt;
      if (hasChecks())
        first.clocks.meet(std::move(second.clocks), clock);
      first.blockedEpoch = 0;
      isJoined = true;
      groups_.eraseIf([&](const Group &group) { return &group == &second; });
    }
    if (isJoined)
      first.wait = {};
    haveMet |= isJoined;
  }
  return haveMet;
}

/// Drop empty groups and join those whose reconvergence is complete; whether
/// lanes have met, which can go on now.
bool Warp::settle() {
  bool haveMet = false, isWaiting = false, isEmpty = false;
  for (const Group &group : groups_) {
    isEmpty |= group.lanes == 0;
    isWaiting |= group.wait.kind == WaitReason::Kind::lanes;
  }
  if (isEmpty)
    groups_.eraseIf([](const Group &group) { return group.lanes == 0; });
  if (isWaiting) {
    haveMet = joinWaiting();
    haveMet |= passWarpBarriers();
  }
  for (bool changed = true; changed;) {
    changed = false;
    for (const Group &group : groups_) {
      if (!group.isParked ||
          group.reconvergence->arrived != group.reconvergence->expected)
        continue;
      join(ReconvergenceRef(group.reconvergence));
      changed = haveMet = true;
      break;
    }
  }
  return haveMet;
}

bool Warp::breakReconvergence(std::uint64_t patience) {
  for (const Group &group : groups_) {
    if (!group.isParked || instructions - group.parkedAt < patience)
      continue;
    ReconvergenceRef reconvergence = group.reconvergence;
    join(reconvergence);
    // Those still on their way meet among themselves.
    reconvergence->expected &= ~reconvergence->arrived;
    reconvergence->arrived = 0;
    return true;
  }
  return false;
}

void Warp::wake() {
  for (Group &group : groups_)
    group.blockedEpoch = 0;
}

static void reportPart(Warp &warp, const Op &op, LaneMask active) {
  warp.machine().findings().report(
      FindingId::divergentAligned, warp, op, active,
      fmt::format("{} is for whole warps and {} of {} lanes reached it",
                  op.origin->fullOpcode(), countLanes(active),
                  countLanes(warp.live())));
}

bool Warp::checkStrayLanes() {
  // Where the others are held up by a wait of their own, that is what is wrong.
  bool isHeldUp =
      std::any_of(groups_.begin(), groups_.end(), [](const Group &group) {
        return group.isSpinning ||
               group.wait.kind == WaitReason::Kind::mbarrier;
      });
  if (isHeldUp)
    return false;
  auto isStray = [&](const Group &group) {
    return !group.isParked && code_.ops[group.pc].isAligned &&
           group.wait.kind == WaitReason::Kind::lanes;
  };
  bool isOneBarrier = isAtOneBarrier();
  bool isLetGo = false;
  for (Group &group : groups_) {
    if (!isStray(group))
      continue;
    const Op &op = code_.ops[group.pc];
    if (isOneBarrier)
      machine().findings().report(
          FindingId::divergentBarrier, *this, op, group.lanes,
          fmt::format("{} of {} lanes of the warp wait here, and the others at "
                      "another instruction of the same barrier",
                      countLanes(group.lanes), countLanes(live_)));
    else
      reportPart(*this, op, group.lanes);
    group.isUnaccompanied = isLetGo = true;
    group.wait = {};
    group.blockedEpoch = 0;
  }
  return isLetGo;
}

/// Whether all lanes that are left wait for each other at instructions of one
/// barrier of the CTA.
bool Warp::isAtOneBarrier() {
  std::optional<std::uint64_t> barrier;
  for (const Group &group : groups_) {
    const Op &op = code_.ops[group.pc];
    if (group.isParked || group.wait.kind != WaitReason::Kind::lanes ||
        op.effect->kind != EffectKind::ctaBarrier)
      return false;
    std::uint64_t number = read(op.effect->operand, firstLane(group.lanes));
    if (barrier.value_or(number) != number)
      return false;
    barrier = number;
  }
  return groups_.size() > 1;
}

void Warp::doubt(const Op &branch, LaneMask lanes) {
  Group &group = *current_;
  if (branch.reconverge >= 0)
    group.reconvergence = ReconvergenceRef(new ReconvergencePoint(
        branch.reconverge, group.lanes, std::move(group.reconvergence),
        group.frame, group.inDoubt));
  group.inDoubt |= lanes;
  group.doubtedAt = &branch;
}

void Warp::noteDoubtful(const Op &op, LaneMask lanes) {
  // A store leaves unwritten bytes behind; to leave the kernel is no result.
  bool isNoticed =
      (!op.effect->isQuiet() && op.effect->kind != EffectKind::store) ||
      op.effect->kind == EffectKind::atomic;
  if (isNoticed)
    machine().findings().report(
        FindingId::uninitializedPredicate, *this, op, lanes,
        fmt::format("whether these lanes come here was decided at {}, by a "
                    "predicate that depends on bytes that nobody wrote{}",
                    machine().findings().placeOf(*group().doubtedAt),
                    machine().findings().originText(
                        *this, predOrigin(group().doubtedAt->guard))));
}

void checkAligned(Warp &warp, const Op &op, LaneMask active) {
  if (active != warp.live() && !warp.group().isUnaccompanied)
    reportPart(warp, op, active);
}

void checkWholeWarp(Warp &warp, const Op &op, LaneMask active) {
  checkAligned(warp, op, active);
  if (active == kAllLanes)
    return;
  warp.machine().findings().fault(
      FindingId::partialWarp, warp, op, active,
      fmt::format("{} is for whole warps and this one has {} lanes",
                  op.origin->fullOpcode(), countLanes(active)));
}

} // namespace kiln::sim
