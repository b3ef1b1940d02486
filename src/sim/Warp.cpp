// Warp: groups of lanes, their branches and their meetings.
#include "sim/Warp.h"
#include "sim/Machine.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

Warp::Warp(Cta &cta, int index, const Code &code)
    : cta_(cta), index_(index), code_(code), file_(code.registerBytes, 0),
      predicates_(code.predicateCount, 0),
      // Without checks everything counts as written.
      poison_(code.registerCount,
              cta.machine().config().hasChecks ? kAllLanes : 0),
      predPoison_(code.predicateCount, 0) {
  const Dim3 &block = cta.machine().config().block;
  int threads = static_cast<int>(block[0] * block[1] * block[2]);
  int mine = std::min(kLanes, threads - index * kLanes);
  live_ = mine == kLanes ? kAllLanes : (LaneMask(1) << mine) - 1;
  for (const InitialValue &initial : code.initialValues) {
    for (int lane = 0; lane < kLanes; ++lane)
      write(initial.reg, lane, initial.value(*this, lane));
    poison(initial.reg) = 0;
  }
  groups_.push_back({.pc = 0, .lanes = live_});
  registers = cta.machine().config().registersAtEntry;
  local.assign(std::size_t(code.localBytes) * kLanes, 0);
}

Machine &Warp::machine() { return cta_.machine(); }

void Warp::branch(LaneMask taken, int target, int reconverge) {
  Group &group = *current_;
  LaneMask rest = group.lanes & ~taken;
  if (!rest) {
    group.pc = target;
    return;
  }
  if (!taken) {
    ++group.pc;
    return;
  }
  auto meeting = group.meeting;
  if (reconverge >= 0)
    meeting = std::make_shared<Meeting>(
        Meeting{reconverge, group.lanes, 0, group.meeting});
  Group other{.pc = target, .lanes = taken, .meeting = meeting};
  group.lanes = rest;
  group.meeting = meeting;
  ++group.pc;
  groups_.push_back(std::move(other)); // invalidates `group`
  current_ = nullptr;
}

void Warp::exit(LaneMask lanes) {
  live_ &= ~lanes;
  current_->lanes &= ~lanes;
  // Nobody waits for those who have left.
  for (Group &group : groups_)
    for (auto meeting = group.meeting; meeting; meeting = meeting->outer)
      meeting->expected &= ~lanes;
  cta_.cluster().notify();
}

/// Drop empty groups and join those whose meeting is complete.
void Warp::settle() {
  std::erase_if(groups_, [](const Group &group) { return group.lanes == 0; });
  // Groups that wait for each other's lanes at one instruction become one.
  for (std::size_t i = 0; i < groups_.size(); ++i)
    for (std::size_t j = groups_.size(); j-- > i + 1;) {
      Group &first = groups_[i], &second = groups_[j];
      if (first.wait.kind != WaitReason::Kind::lanes ||
          second.wait.kind != WaitReason::Kind::lanes ||
          first.pc != second.pc || first.meeting != second.meeting)
        continue;
      first.lanes |= second.lanes;
      first.blockedEpoch = 0;
      groups_.erase(groups_.begin() + static_cast<std::ptrdiff_t>(j));
    }
  for (bool changed = true; changed;) {
    changed = false;
    for (Group &group : groups_) {
      if (!group.isParked || group.meeting->arrived != group.meeting->expected)
        continue;
      auto meeting = group.meeting;
      Group joined{.pc = meeting->pc,
                   .lanes = meeting->arrived,
                   .meeting = meeting->outer};
      std::erase_if(groups_, [&](const Group &other) {
        return other.isParked && other.meeting == meeting;
      });
      groups_.push_back(std::move(joined));
      changed = true;
      break;
    }
  }
}

bool Warp::breakMeeting() {
  for (Group &group : groups_) {
    if (!group.isParked)
      continue;
    auto meeting = group.meeting;
    Group freed{.pc = meeting->pc,
                .lanes = meeting->arrived,
                .meeting = meeting->outer};
    // Those still on their way meet among themselves.
    meeting->expected &= ~meeting->arrived;
    meeting->arrived = 0;
    std::erase_if(groups_, [&](const Group &other) {
      return other.isParked && other.meeting == meeting;
    });
    groups_.push_back(std::move(freed));
    return true;
  }
  return false;
}

void Warp::wake() {
  for (Group &group : groups_)
    group.blockedEpoch = 0;
}

bool Warp::run(int limit) {
  std::uint64_t epoch = cta_.cluster().epoch;
  std::size_t count = groups_.size(), chosen = count;
  for (std::size_t i = 0; i < count; ++i) {
    std::size_t candidate = (next_ + i) % count;
    const Group &group = groups_[candidate];
    if (group.isParked || group.blockedEpoch == epoch)
      continue;
    chosen = candidate;
    break;
  }
  if (chosen == count)
    return false;
  next_ = chosen;
  current_ = &groups_[chosen];
  const std::vector<Op> &ops = code_.ops;
  bool hasChecks = cta_.machine().config().hasChecks;
  int executed = 0;
  bool isLeaving = false;
  for (; executed < limit && !isLeaving; ++executed) {
    Group &group = *current_;
    if (group.meeting && group.pc == group.meeting->pc) {
      group.meeting->arrived |= group.lanes;
      group.isParked = true;
      break;
    }
    if (group.pc >= static_cast<int>(ops.size())) {
      exit(group.lanes);
      break;
    }
    const Op &op = ops[group.pc];
    LaneMask active = group.lanes;
    if (op.guard.isValid()) {
      if (hasChecks && (predPoison_[op.guard.index] & active))
        cta_.machine().fault(
            "uninitialized-predicate", *this, op,
            predPoison_[op.guard.index] & active,
            "the predicate depends on bytes that nobody wrote");
      active &= pred(op.guard);
      if (!active) {
        ++group.pc;
        continue;
      }
    }
    if (hasChecks && !wgmma.held.empty())
      checkHeld(op, active);
    if (hasChecks && op.isArithmetic)
      joinPoison(op, active);
    switch (op.handler(*this, op, active)) {
    case Step::next:
      ++group.pc;
      break;
    case Step::jumped:
      // A split has made groups move in memory; begin anew with one of them.
      isLeaving = current_ == nullptr || current_->lanes == 0;
      break;
    case Step::blocked:
      group.blockedEpoch = cta_.cluster().epoch;
      isLeaving = true;
      break;
    }
  }
  instructions += executed;
  settle();
  if (!groups_.empty())
    next_ = (next_ + 1) % groups_.size();
  return true; // it ran, or it arrived where its lanes meet
}

void Warp::checkHeld(const Op &op, LaneMask active) {
  auto check = [&](const Reg &reg) {
    if (!reg.isValid())
      return;
    for (const WgmmaQueue::Held &held : wgmma.held) {
      if (std::find(held.registers.begin(), held.registers.end(), reg.index) ==
          held.registers.end())
        continue;
      SourceLine line = machine().sourceLine(*held.op->origin);
      machine().fault(
          "wgmma-register-in-flight", *this, op, active,
          fmt::format("this touches an accumulator of the wgmma at {}:{}, "
                      "which no wgmma.wait_group has covered",
                      line.file, line.line));
    }
  };
  check(op.dst);
  check(op.dst2);
  for (const Reg &reg : op.src)
    check(reg);
  for (const Reg &reg : op.list)
    check(reg);
}

void Warp::joinPoison(const Op &op, LaneMask active) {
  LaneMask from = 0;
  for (const Reg &source : op.src)
    if (source.isValid())
      from |= poison_[source.index];
  if (op.psrc.isValid())
    from |= predPoison_[op.psrc.index];
  for (const Reg &reg : op.list)
    if (!op.isListWritten)
      from |= poison_[reg.index];
  from &= active;
  auto put = [&](LaneMask &mask) { mask = (mask & ~active) | from; };
  if (op.dst.isValid())
    put(poison_[op.dst.index]);
  if (op.dst2.isValid())
    put(poison_[op.dst2.index]);
  if (op.pdst.isValid())
    put(predPoison_[op.pdst.index]);
  if (op.pdst2.isValid())
    put(predPoison_[op.pdst2.index]);
  if (op.isListWritten)
    for (const Reg &reg : op.list)
      put(poison_[reg.index]);
}

} // namespace kiln::sim
