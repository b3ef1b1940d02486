// LoopWatch: keep, record, compare, and what to make of it.
#include "sim/machine/LoopWatch.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// Jumps before the first look at a loop that can be left, and the length of a
/// look at one that cannot.
static constexpr std::uint64_t kFirstLook = std::uint64_t(1) << 16;
static constexpr std::uint64_t kShortLook = std::uint64_t(1) << 10;
/// Jumps without a look for each with one.
static constexpr std::uint64_t kRest = 16;
/// No look is longer, in jumps and in values that were read.
static constexpr std::uint64_t kLongestLook = std::uint64_t(1) << 22;
static constexpr std::size_t kLongestRecord = std::size_t(1) << 20;
/// Instructions of a loop that is taken for a wait.
static constexpr std::uint64_t kLongestWait = 4096;
/// A round that is not as the registers were kept has no mark.
static constexpr std::size_t kNoMark = ~std::size_t(0);

/// The same function called from the same places, so that it returns alike.
static bool isSameCall(const Frame *a, const Frame *b) {
  for (; a != b; a = a->caller.get(), b = b->caller.get())
    if (!a || !b || a->function != b->function || a->call != b->call ||
        a->localBase != b->localBase || !a->file.empty() || !b->file.empty())
      return false;
  return true;
}

/// The same lanes to be met at the same places.
static bool isSameMeeting(const ReconvergencePoint *a,
                          const ReconvergencePoint *b) {
  for (; a != b; a = a->outer.get(), b = b->outer.get())
    if (!a || !b || a->pc != b->pc || a->expected != b->expected ||
        !isSameCall(a->frame.get(), b->frame.get()))
      return false;
  return true;
}

bool LoopWatch::hasMore(const Group &group) const {
  return !period_ && (lanes_ & ~group.lanes) == 0 && group.lanes != lanes_;
}

void LoopWatch::begin(Warp &warp, const Group &group) {
  isLooking_ = true;
  next_ = 0; // every jump
  last_ = jumps_ + burst_;
  head_ = group.pc;
  lanes_ = group.lanes;
  frame_ = group.frame;
  reconvergence_ = group.reconvergence;
  rounds_ = 1;
  seen_.assign(warp.code().ops.size(), {});
  kinds_.resize(seen_.size());
  keep(warp);
}

void LoopWatch::end() {
  isLooking_ = false;
  next_ = jumps_ + kRest * burst_;
  burst_ = std::min(2 * burst_, kLongestLook);
  period_ = 0;
  isCircle_ = false;
  frame_ = nullptr;
  reconvergence_ = {};
  kept_.clear();
  seen_.clear();
  marks_.clear();
  record_.clear();
}

void LoopWatch::giveUp(Warp &warp, const Group &group) {
  if (!hasWayOut(warp.code(), group.pc)) {
    period_ = 0; // it is endless without one
    isCircle_ = false;
    throw EndlessLoop{warp, *this};
  }
  end();
}

bool LoopWatch::isAtHead(const Group &group) const {
  return group.pc == head_ && group.lanes == lanes_ &&
         isSameCall(group.frame.get(), frame_.get()) &&
         isSameMeeting(group.reconvergence.get(), reconvergence_.get());
}

bool LoopWatch::look(Warp &warp, const Group &group) {
  if (!isLooking_ && jumps_ < kFirstLook) {
    if (hasWayOut(warp.code(), group.pc)) {
      next_ = kFirstLook;
      return false;
    }
    burst_ = kShortLook;
  }
  if (!isLooking_ || hasMore(group)) {
    begin(warp, group);
    return false;
  }
  bool isHere = isAtHead(group);
  bool isOver = jumps_ >= last_ && (!period_ || isCircle_);
  if (isOver || (period_ && isSpoilt_))
    giveUp(warp, group);
  else if (period_)
    return isHere && repeat(warp);
  else if (isHere && marks_.size() == rounds_)
    keep(warp);
  else if (isHere) {
    marks_.push_back(isAsKept(warp) ? record_.size() : kNoMark);
    std::size_t rounds = marks_.size();
    if (isSpoilt_ || marks_.back() == kNoMark || rounds % 2)
      return false;
    std::size_t half = marks_[rounds / 2 - 1];
    return half != kNoMark && record_.size() == 2 * half &&
           std::equal(record_.begin(), record_.begin() + half,
                      record_.begin() + half) &&
           isFound(warp);
  }
  return false;
}

bool LoopWatch::isFound(Warp &warp) {
  // What lanes of one warp read of each other depends on whose turn it was.
  if (readsOutside_ && isSplit_)
    return false;
  Cluster &cluster = warp.cta().cluster();
  const LaunchConfig &config = warp.machine().config();
  period_ = marks_.size() / 2;
  bool isAlone =
      cluster.isLast(warp, lanes_) &&
      (!readsGlobal_ || (config.grid == config.cluster && config.isAlone));
  if ((!readsOutside_ || isAlone) && !isCounted_)
    throw EndlessLoop{warp, *this};
  // It is not as if it stood still where others see what it does, and not worth
  // a turn of its own where that would take long.
  std::uint64_t length = (warp.instructions - instructions_) / 2 + 1;
  isCircle_ = isCounted_ || warp.effects != effects_ || length > kLongestWait;
  record_.resize(record_.size() / 2);
  instructions_ = length;
  round_ = cursor_ = 0;
  if (isCircle_) {
    if (!cluster.circle)
      cluster.circle = std::make_unique<Circle>();
    ++circles_;
    circleStart_ = warp.instructions;
    last_ = jumps_ + kRest * burst_;
  }
  return !isCircle_;
}

bool LoopWatch::repeat(const Warp &warp) {
  if (++round_ < period_)
    return false;
  bool isSame = cursor_ == record_.size() &&
                (isCircle_ || warp.effects == effects_) && isAsKept(warp);
  round_ = cursor_ = 0;
  circleStart_ = warp.instructions;
  if (!isSame)
    end();
  return isSame && !isCircle_;
}

std::uint64_t LoopWatch::periodOf(const Group &group) const {
  return period_ && !isCircle_ && !isSpoilt_ && group.lanes == lanes_
             ? instructions_
             : 0;
}

std::optional<std::uint64_t> LoopWatch::placeInCircle(const Warp &warp) const {
  if (!isCircle_ || isSpoilt_ || isSplit_ || lanes_ != warp.live())
    return std::nullopt;
  // No period has so many instructions.
  return circles_ << 48 | (warp.instructions - circleStart_);
}

void LoopWatch::note(Warp &warp, int pc, LaneMask group, LaneMask lanes) {
  if (group & ~lanes_) {                // another one
    isSpoilt_ |= (group & lanes_) != 0; // which they have joined
    return;
  }
  isSplit_ |= group != lanes_;
  Seen &seen = seen_[pc];
  seen.isRecent = true;
  Kind kind = kindOf(warp.code(), pc);
  isSpoilt_ |= !seen.isKnown || (lanes && kind == Kind::open);
  isCounted_ |= lanes && kind == Kind::counted;
  if (kind == Kind::input && lanes && !isSpoilt_)
    record(warp, pc, lanes);
}

/// Whether no other thread could change what lanes have just read.
bool LoopWatch::isPrivate(Warp &warp, const Op &op, LaneMask lanes) const {
  const Effect &effect = *op.effect;
  if (effect.kind != EffectKind::load || effect.space == Space::shared)
    return false;
  if (effect.space == Space::param || effect.space == Space::local)
    return true;
  // The address may be gone, replaced by what was read.
  for (const Reg &reg : op.list)
    if (reg.index == effect.address.index)
      return false;
  bool isPrivate = true;
  forEachLane(lanes, [&](int lane) {
    std::uint64_t address = warp.read(effect.address, lane) +
                            static_cast<std::uint64_t>(effect.offset);
    std::uint64_t window = address >> kWindowShift << kWindowShift;
    Region *region = warp.machine().memory().find(address);
    isPrivate &= window == kParamWindow || window == kLocalWindow ||
                 (isGlobalAddress(address) && region && region->isReadOnly);
  });
  return isPrivate;
}

void LoopWatch::record(Warp &warp, int pc, LaneMask lanes) {
  const Op &op = warp.code().ops[pc];
  if (Seen &seen = seen_[pc]; !seen.isPoll && !isPrivate(warp, op, lanes)) {
    seen.isPoll = readsOutside_ = true;
    readsGlobal_ |= op.effect->kind != EffectKind::barrierWait &&
                    op.effect->space != Space::shared;
  }
  std::uint32_t count = warp.code().registerCount;
  for (std::uint32_t number : inputs_.at(pc).results) {
    if (number >= count)
      add(warp.pred({static_cast<std::int32_t>(number - count)}) & lanes);
    else
      forEachLane(lanes,
                  [&](int lane) { add(warp.read(registers_[number], lane)); });
  }
}

void LoopWatch::add(std::uint64_t value) {
  if (period_ && cursor_ < record_.size())
    isSpoilt_ |= record_[cursor_++] != value;
  else if (period_ || record_.size() == kLongestRecord)
    isSpoilt_ = true;
  else
    record_.push_back(value);
}

void LoopWatch::keep(const Warp &warp) {
  const Code &code = warp.code();
  if (registers_.empty()) {
    registers_.resize(code.registerCount);
    for (const FunctionCode &function : code.functions)
      for (const Reg &reg : function.registers)
        registers_[reg.index] = reg;
  }
  for (Seen &seen : seen_)
    seen = {.isKnown = seen.isRecent};
  kept_.clear();
  for (std::uint32_t number : slice(code)) {
    Kept kept{number, {}};
    if (number >= code.registerCount) {
      auto index = static_cast<std::int32_t>(number - code.registerCount);
      kept.lanes[0] = warp.pred({index}) & lanes_;
    } else {
      forEachLane(lanes_, [&](int lane) {
        kept.lanes[lane] = warp.read(registers_[number], lane);
      });
    }
    kept_.push_back(kept);
  }
  marks_.clear();
  record_.clear();
  rounds_ *= 2;
  effects_ = warp.effects;
  instructions_ = warp.instructions;
  isSpoilt_ = readsOutside_ = readsGlobal_ = isSplit_ = isCounted_ = false;
}

bool LoopWatch::isAsKept(const Warp &warp) {
  std::uint32_t count = warp.code().registerCount;
  for (Kept &kept : kept_) {
    bool isSame = true;
    if (kept.number >= count) {
      auto index = static_cast<std::int32_t>(kept.number - count);
      isSame = (warp.pred({index}) & lanes_) == kept.lanes[0];
    } else {
      for (LaneMask rest = lanes_; rest && isSame; rest &= rest - 1) {
        int lane = firstLane(rest);
        isSame = warp.read(registers_[kept.number], lane) == kept.lanes[lane];
      }
    }
    if (!isSame) {
      // What tells rounds apart once is likely to do so again.
      std::swap(kept, kept_.front());
      return false;
    }
  }
  return true;
}

} // namespace kiln::sim
