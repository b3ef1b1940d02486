// Warp: groups of lanes, their branches and their turns.
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "sim/program/flow/SpinLoop.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

Warp::Warp(Cta &cta, int index, const Code &code)
    : cta_(cta), machine_(cta.machine()), hasChecks_(machine_.config().checks),
      watchers_(cta.cluster().watchers()), index_(index), code_(code),
      file_(code.file),
      // Without checks everything counts as written.
      poison_(code.registerCount, hasChecks_),
      predicates_(code.predicateCount, 0), predPoison_(code.predicateCount, 0),
      groups_(hasChecks_) {
  const Dim3 &block = cta.machine().config().block;
  int threads = static_cast<int>(block[0] * block[1] * block[2]);
  int mine = std::min(kLanes, threads - index * kLanes);
  live_ = mine == kLanes ? kAllLanes : (LaneMask(1) << mine) - 1;
  for (const InitialValue &initial : code.initialValues)
    fill(initial);
  if (hasChecks())
    for (const InitialValue &initial : code.initialValues)
      setPoison(initial.reg, kAllLanes, 0);
  Group &all = groups_.add();
  all.lanes = live_;
  if (hasChecks())
    all.clocks = LaneClocks(live_);
  watchers().tell(WarpBegin{*this});
  registers = cta.machine().config().registers_at_entry;
  growLocal(code.functions.front().localBytes);
  fillLocalAddresses(code.functions.front(), 0, kAllLanes);
}

void Warp::fill(const InitialValue &initial) {
  if (initial.isConstant)
    return; // it stands in Code::file
  if (initial.fill)
    return initial.fill(*this, lanes<std::uint32_t>(initial.reg));
  std::uint64_t first = initial.value(*this, 0);
  for (int lane = 0; lane < kLanes; ++lane)
    write(initial.reg, lane,
          initial.isUniform ? first : initial.value(*this, lane));
}

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
  // Lanes that leave a loop one after another meet at one point.
  const ReconvergencePoint *innermost = group.reconvergence.get();
  bool isKnown = innermost && innermost->pc == reconverge &&
                 innermost->frame == group.frame &&
                 (innermost->inDoubt & group.lanes) == group.inDoubt;
  if (reconverge >= 0 && !isKnown)
    group.reconvergence = ReconvergenceRef(new ReconvergencePoint(
        reconverge, group.lanes, std::move(group.reconvergence), group.frame,
        group.inDoubt));
  Group &other = groups_.add();
  other.pc = target;
  other.lanes = taken;
  other.reconvergence = group.reconvergence;
  other.frame = group.frame;
  other.inDoubt = group.inDoubt & taken;
  other.doubtedAt = group.doubtedAt;
  group.inDoubt &= rest;
  if (hasChecks()) {
    CheckTime time(watchers().clock());
    other.clocks = group.clocks.split(taken, clock);
  }
  group.lanes = rest;
  ++group.pc;
  hasParted_ = true;
}

void Warp::exit(LaneMask lanes) {
  watchers().tell(LanesEnd{*this, lanes});
  live_ &= ~lanes;
  current_->lanes &= ~lanes;
  current_->clocks.drop(lanes);
  // Nobody waits for those who have left.
  for (Group &group : groups_)
    for (auto *point = group.reconvergence.get(); point;
         point = point->outer.get())
      point->expected &= ~lanes;
  cta_.cluster().leave(*this, lanes);
  if (watchers().wants(EventKind::lifetime) && cta_.isDone())
    watchers().tell(CtaEnd{cta_});
}

std::vector<const Op *> Warp::pollsOf(const Group &group) const {
  std::vector<const Op *> polls;
  int length = code_.ops[group.roundPc].spin->length;
  for (int i = group.roundPc - length; i <= group.roundPc; ++i)
    if (const Op &op = code_.ops[i]; op.effect->isPoll())
      polls.push_back(&op);
  return polls;
}

bool Warp::isSameRound(const SpinLoop &loop, int branch) {
  Group &group = *current_;
  auto hashOf = [&](LaneMask lanes) {
    std::uint64_t state = lanes;
    auto add = [&](std::uint64_t value) {
      state = (state ^ value) * 0x9e3779b97f4a7c15;
      state ^= state >> 29;
    };
    for (Pred pred : loop.predicates)
      add(predicates_[pred.index] & lanes);
    for (Reg reg : loop.registers)
      forEachLane(lanes, [&](int lane) { add(read(reg, lane)); });
    return state;
  };
  // Most loops get somewhere, which an effect or one lane can tell.
  std::uint64_t ofFirst = hashOf(group.lanes & -group.lanes);
  bool isSame = group.roundPc == branch && group.roundEffects == effects &&
                group.roundOfFirstLane == ofFirst;
  group.roundPc = branch;
  group.roundEffects = effects;
  group.roundOfFirstLane = ofFirst;
  std::uint64_t before = group.roundState;
  group.roundState = isSame ? hashOf(group.lanes) : 0;
  return isSame && before == group.roundState;
}

/// Execute an instruction. One that is left out writes nothing that counts.
Step Warp::execute(const Op &op, LaneMask active) {
  try {
    return op.handler(*this, op, active);
  } catch (const LeftOut &) {
    if (hasChecks())
      setResultPoison(op, active, kAllLanes);
    return Step::next;
  }
}

template <bool isChecked>
int Warp::runPlain(const Op *op, int count, LaneMask lanes) {
  for (int i = 0; i < count; ++i, ++op) {
    LaneMask active = lanes;
    if (op->guard.isValid()) {
      if (isChecked && (predPoison_[op->guard.index] & lanes))
        return i;
      active &= pred(op->guard);
      if (!active)
        continue;
    }
    if (isChecked && op->poison.isGeneral()) {
      LaneMask unwritten = poison_.anyOf(op->plainSources);
      if (op->psrc.isValid())
        unwritten |= predPoison_[op->psrc.index];
      if (unwritten & active)
        return i;
      poison_.clear(op->plainResult, active);
      if (op->pdst.isValid())
        predPoison_[op->pdst.index] &= ~active;
    }
    op->handler(*this, *op, active);
  }
  return count;
}

/// Instructions of a round that a turn is made longer for.
static constexpr std::uint64_t kLongestRound = 4096;

/// How many of `count` instructions from the first on come before a stop.
static int upToStop(const std::uint8_t *stops, int count) {
  const void *stop =
      std::memchr(stops + 1, 1, static_cast<std::size_t>(count - 1));
  return stop ? static_cast<int>(static_cast<const std::uint8_t *>(stop) -
                                 stops)
              : count;
}

void Warp::runStraight(const Op *op, int count, Group &group) {
  std::uint64_t first = instructions;
  int pc = group.pc;
  for (int i = 0; i < count; ++i, ++op) {
    LaneMask active = group.lanes;
    if (op->guard.isValid()) {
      active &= pred(op->guard);
      if (!active)
        continue;
    }
    if (op->plainCount) {
      op->handler(*this, *op, active);
      continue;
    }
    // An access may end the launch, which tells where that was.
    group.pc = pc + i;
    instructions = first + static_cast<std::uint64_t>(i);
    Step step = execute(*op, active);
    effects += !op->isQuiet && step != Step::same;
  }
  group.pc = pc + count;
  // The last one is counted by who counts the others.
  instructions = first + static_cast<std::uint64_t>(count - 1);
}

bool Warp::choose(std::uint64_t epoch) {
  std::size_t count = groups_.size();
  for (std::size_t i = 0, at = next_; i < count; ++i, ++at) {
    at = at < count ? at : 0;
    if (groups_[at].isParked || groups_[at].blockedEpoch == epoch)
      continue;
    next_ = at;
    current_ = &groups_[at];
    return true;
  }
  return false;
}

Progress Warp::run(const WarpTurn &turn) {
  std::uint64_t first = instructions;
  auto limit = static_cast<std::uint64_t>(turn.limit);
  Progress progress = runGroup(turn, limit);
  while (isAtMeeting_ && !turn.endsAtBranches && live_ &&
         instructions - first < limit) {
    Progress next = runGroup(turn, limit - (instructions - first));
    if (next == Progress::none)
      break;
    progress = std::max(progress, next);
  }
  return progress;
}

Progress Warp::runGroup(const WarpTurn &turn, std::uint64_t limit) {
  return choose(cta_.cluster().epoch) ? runChosen(turn, limit) : Progress::none;
}

Progress Warp::runGroup(std::size_t group, int limit,
                        const std::uint8_t *stops) {
  next_ = group;
  current_ = &groups_[group];
  return runChosen({.limit = limit, .endsAtBranches = true, .stops = stops},
                   static_cast<std::uint64_t>(limit));
}

Progress Warp::runChosen(const WarpTurn &turn, std::uint64_t limit) {
  std::uint64_t epoch = cta_.cluster().epoch;
  isAtMeeting_ = hasParted_ = false;
  current_->isSpinning = current_->isStuck = false;
  const std::vector<Op> &ops = code_.ops;
  const Watchers &watchers = this->watchers();
  bool isWatched = watchers.wants(EventKind::instruction);
  bool isChecked = hasChecks();
  bool isLeaving = false, isSpinning = false;
  int firstPc = current_->pc;
  std::uint64_t first = instructions, effectsAtFirst = effects;
  // A loop that repeats itself shows it within a turn.
  std::uint64_t last = first + std::max(limit, watch_.periodOf(*current_));
  // It waits still: nothing was done, by it or for it.
  auto isStill = [&] {
    return instructions == first && cta_.cluster().epoch == epoch;
  };
  for (; instructions < last && !isLeaving; ++instructions) {
    Group &group = *current_;
    if (group.reconvergence && group.pc == group.reconvergence->pc &&
        group.frame == group.reconvergence->frame) {
      group.reconvergence->arrived |= group.lanes;
      group.isParked = isAtMeeting_ = true;
      group.parkedAt = instructions;
      break;
    }
    if (turn.stops && turn.stops[group.pc] && instructions != first)
      break;
    const Op &op = ops[group.pc];
    if (op.straightCount && !isWatched && !isChecked && !turn.stops &&
        !watch_.isLooking()) {
      group.isUnaccompanied = false;
      runStraight(&op,
                  static_cast<int>(std::min<std::uint64_t>(
                      op.straightCount, last - instructions)),
                  group);
      continue;
    }
    if (op.plainCount && !isWatched && !group.inDoubt && !watch_.isLooking()) {
      int count = static_cast<int>(
          std::min<std::uint64_t>(op.plainCount, last - instructions));
      if (turn.stops)
        count = upToStop(turn.stops + group.pc, count);
      int done = isChecked ? runPlain<true>(&op, count, group.lanes)
                           : runPlain<false>(&op, count, group.lanes);
      if (done > 0) {
        group.isUnaccompanied = false;
        group.pc += done;
        instructions += static_cast<std::uint64_t>(done - 1);
        continue;
      }
    }
    LaneMask active = group.lanes, unknown = 0;
    if (op.guard.isValid()) {
      unknown = isChecked ? predPoison_[op.guard.index] & active : 0;
      if (unknown && op.target >= 0)
        doubt(op, unknown);
      else if (unknown && op.poison.kind == PoisonRule::Kind::none)
        cta_.machine().findings().report(
            FindingId::uninitializedPredicate, *this, op, unknown,
            "the predicate depends on bytes that nobody wrote" +
                cta_.machine().findings().originText(*this,
                                                     predOrigin(op.guard)));
      active &= pred(op.guard);
      if (!active) {
        if (unknown)
          setResultPoison(op, unknown, kAllLanes);
        if (watch_.isLooking())
          watch_.note(*this, group.pc, group.lanes, 0);
        watchers.tell(InstructionSkip{*this, op, group.lanes});
        ++group.pc;
        continue;
      }
    }
    // Lanes that came by different paths meet where all are needed.
    if (op.isAligned && active == group.lanes && active != live_ &&
        !group.isUnaccompanied) {
      group.wait = {WaitReason::Kind::lanes, live_ & ~active, live_};
      group.blockedEpoch = epoch;
      isSpinning = isStill();
      break;
    }
    if (isWatched)
      watchers.tell(InstructionBegin{*this, op, active});
    if (op.isTracked && isChecked)
      watchers.tell(RegisterUse{*this, op, active});
    LaneMask doubtful = group.inDoubt & active;
    if (doubtful)
      noteDoubtful(op, doubtful);
    int pc = group.pc;
    LaneMask together = group.lanes;
    std::uint64_t effectsBefore = effects;
    Step step = execute(op, active);
    if (isWatched)
      watchers.tell(InstructionEnd{*this, op, active, step});
    // Whether these lanes should have executed it, nobody knows.
    if (unknown)
      setResultPoison(op, unknown, kAllLanes);
    effects += !op.isQuiet && step != Step::blocked && step != Step::same;
    if (watch_.isLooking() && step != Step::blocked)
      watch_.note(*this, pc, together, active);
    switch (step) {
    case Step::next:
    case Step::same:
      group.isUnaccompanied = false;
      ++group.pc;
      isLeaving = turn.endsAtAtomics && op.semantics.isAtomic &&
                  effects != effectsBefore;
      break;
    case Step::yield:
      group.isUnaccompanied = false;
      ++group.pc;
      isLeaving = true;
      break;
    case Step::jumped:
      if (current_->lanes == 0) {
        isLeaving = isAtMeeting_ = true;
        break;
      }
      if (hasParted_) {
        hasParted_ = false;
        isLeaving = turn.endsAtBranches;
        break;
      }
      if (op.spin && current_->pc == op.target) {
        std::uint64_t begin =
            current_->roundPc == pc ? current_->roundEnd : instructions;
        current_->roundEnd = instructions;
        if (isSameRound(*op.spin, pc)) {
          // A round that began in an earlier turn may have read what others
          // have written since: then there is one more.
          if (begin >= first || firstPc == op.target)
            isLeaving = isSpinning = current_->isSpinning = true;
          else
            last = std::max(last,
                            instructions + 1 +
                                std::min(instructions - begin, kLongestRound));
          break;
        }
      }
      if (current_->pc <= pc && watch_.jumpedBack(*this, *current_))
        isLeaving = isSpinning = current_->isSpinning = current_->isStuck =
            true;
      break;
    case Step::blocked:
      isSpinning = isStill();
      group.blockedEpoch = cta_.cluster().epoch;
      isLeaving = true;
      break;
    }
  }
  bool haveMet = settle();
  if (!groups_.empty())
    next_ = (next_ + 1) % groups_.size();
  // Before it came to its loop it may have done what others wait for.
  bool hasMoved = !isSpinning || haveMet || effects != effectsAtFirst;
  return hasMoved ? Progress::moved : Progress::spun;
}

void WgmmaQueue::hold(const Held &product) {
  for (const auto *list : {&product.registers, &product.fragment})
    for (const Reg &reg : *list) {
      if (reg.index >= holders.size())
        holders.resize(reg.index + 1);
      ++holders[reg.index];
    }
  held.push_back(product);
}

void WgmmaQueue::release(std::uint64_t number) {
  for (; !held.empty() && held.front().number < number; held.pop_front())
    for (const auto *list : {&held.front().registers, &held.front().fragment})
      for (const Reg &reg : *list)
        --holders[reg.index];
}

void Warp::setResultPoison(const Op &op, LaneMask lanes, LaneMask unwritten) {
  for (const Reg &reg : {op.dst, op.dst2})
    if (reg.isValid())
      setPoison(reg, lanes, unwritten);
  for (Pred pred : {op.pdst, op.pdst2})
    if (pred.isValid())
      setPredPoison(pred, lanes, unwritten);
  if (op.isListWritten)
    for (const Reg &reg : op.list)
      setPoison(reg, lanes, unwritten);
}

} // namespace kiln::sim
