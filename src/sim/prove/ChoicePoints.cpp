// ChoicePoints: marked by what instructions do, and by the loops they are in.
#include "sim/prove/ChoicePoints.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "sim/program/flow/SpinLoop.h"

#include <algorithm>
#include <set>

namespace kiln::sim {

static bool isVisible(const Op &op) {
  const Effect &effect = *op.effect;
  if (effect.isStrong || effect.isClusterRequest)
    return true;
  switch (effect.kind) {
  case EffectKind::atomic:
  case EffectKind::barrierInit:
  case EffectKind::barrierArrive:
  case EffectKind::barrierWait:
  case EffectKind::ctaBarrier:
  case EffectKind::clusterArrive:
  case EffectKind::clusterWait:
  case EffectKind::registers:
  case EffectKind::copyWait: // which does what reductions have put off
    return true;
  case EffectKind::other: // of tcgen05, what moves data is ordered by others
    return op.origin->opcode != "tcgen05" || op.origin->has("alloc") ||
           op.origin->has("dealloc");
  case EffectKind::load:
    return op.decidesLoop && effect.isPoll();
  default:
    return false;
  }
}

static void collect(const ptx::Operand &operand, std::vector<int> &into) {
  if (operand.reg >= 0)
    into.push_back(operand.reg);
  if (operand.pairedReg >= 0)
    into.push_back(operand.pairedReg);
  for (const ptx::Operand &element : operand.elements)
    collect(element, into);
}

/// Whether a round of a loop reads no register that the round before wrote, so
/// that one which leads back to the head has changed nothing.
static bool isStateless(const std::vector<Op> &ops, int head, int branch) {
  std::set<int> written, writtenBefore;
  for (int i = head; i <= branch; ++i)
    if (!ops[i].origin->operands.empty() && ops[i].target < 0)
      if (const ptx::Operand &first = ops[i].origin->operands.front();
          first.kind != ptx::Operand::Kind::address) {
        std::vector<int> results;
        collect(first, results);
        written.insert(results.begin(), results.end());
      }
  for (int i = head; i <= branch; ++i) {
    const ptx::Instruction &instruction = *ops[i].origin;
    std::vector<int> reads, results;
    if (instruction.predicate >= 0)
      reads.push_back(instruction.predicate);
    for (std::size_t n = 0; n < instruction.operands.size(); ++n) {
      const ptx::Operand &operand = instruction.operands[n];
      bool isResult = n == 0 && operand.kind != ptx::Operand::Kind::address;
      collect(operand, isResult && ops[i].target < 0 ? results : reads);
    }
    for (int reg : reads)
      if (written.contains(reg) && !writtenBefore.contains(reg))
        return false;
    if (instruction.predicate < 0)
      writtenBefore.insert(results.begin(), results.end());
  }
  return true;
}

/// The one poll of a loop that only waits; -1: it is none.
static int pollOf(const std::vector<Op> &ops,
                  const std::vector<std::uint8_t> &marks, int branch) {
  int head = branch - ops[branch].spin->length, poll = -1;
  for (int i = head; i <= branch; ++i) {
    const Op &op = ops[i];
    // Paths inside that meet again would write some registers and not others.
    bool isInside = op.target > head && op.target <= branch;
    if (!op.isQuiet || isInside || (op.target == head && i != branch))
      return -1;
    if (!marks[static_cast<std::size_t>(i)])
      continue;
    if (poll >= 0)
      return -1;
    poll = i;
  }
  return poll >= 0 && isStateless(ops, head, branch) ? poll : -1;
}

/// Whether such a loop goes on as long as its mbarrier says no, and no longer:
/// its branches go by what the poll says, and nothing changes that.
static bool isWaitLoop(const std::vector<Op> &ops, int poll, int branch) {
  const Pred said = ops[poll].pdst;
  int head = branch - ops[branch].spin->length;
  for (int i = head; i <= branch; ++i) {
    const Op &op = ops[i];
    if (i != poll && (op.pdst.index == said.index && said.isValid()))
      return false;
    if (op.target < 0)
      continue;
    bool isBack = op.target == head, isGuarded = op.guard.isValid();
    if (isGuarded && (op.guard.index != said.index ||
                      op.guard.isNegated != isBack))
      return false;
    if (!isGuarded && !isBack)
      return false;
  }
  return ops[poll].effect->kind == EffectKind::barrierWait;
}

ChoicePoints::ChoicePoints(const Code &code)
    : code_(code), marks_(code.ops.size()), awaits_(code.ops.size()) {
  bool hasReductions = false;
  for (std::size_t i = 0; i < code.ops.size(); ++i) {
    const Op &op = code.ops[i];
    marks_[i] = isVisible(op);
    hasReductions |=
        op.effect->kind == EffectKind::copyOut && op.effect->isReduction;
    hasClusterBarrier_ |= op.effect->kind == EffectKind::clusterWait;
    countsLiveThreads_ |=
        op.effect->kind == EffectKind::ctaBarrier && !op.src[1].isValid();
    readsPending_ |= op.origin->has("pending_count");
    requestsClusters_ |= op.effect->isClusterRequest;
  }
  for (std::size_t i = 0; i < code.ops.size(); ++i) {
    const Op &op = code.ops[i];
    // Nobody counts who leaves, and nobody waits for reductions.
    bool isLeaving = op.row && op.row->traits.flow == Flow::leave;
    if ((isLeaving && !countsLiveThreads_ && !hasClusterBarrier_) ||
        (op.effect->kind == EffectKind::copyWait && !hasReductions))
      marks_[i] = 0;
  }
  for (std::size_t i = 0; i < code.ops.size(); ++i)
    if (code.ops[i].spin)
      if (int poll = pollOf(code.ops, marks_, static_cast<int>(i)); poll >= 0)
        awaits_[static_cast<std::size_t>(poll)] =
            isWaitLoop(code.ops, poll, static_cast<int>(i)) ? kWait : kPoll;
}

bool ChoicePoints::isAwaiting(const Group &group) const {
  const Op &op = code_.ops[static_cast<std::size_t>(group.pc)];
  bool isSuspended = group.refusedPc == group.pc &&
                     op.origin->has("try_wait") && !group.hasTimedOut;
  return awaits_[static_cast<std::size_t>(group.pc)] == kWait || isSuspended;
}

/// Whether an mbarrier wait comes true for some lanes, or fails for good.
static bool isWaitTrue(Warp &warp, const Op &op, LaneMask active) {
  const Effect &effect = *op.effect;
  bool isParity = op.origin->has("parity"), isTrue = false;
  forEachLane(active, [&](int lane) {
    std::uint64_t address = warp.read(effect.address, lane) +
                            static_cast<std::uint64_t>(effect.offset);
    if (address >> kWindowShift == kSharedWindow >> kWindowShift)
      address -= kSharedWindow;
    auto plain = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
    auto found = warp.cta().mbarriers.find(plain);
    auto operand = static_cast<std::uint32_t>(warp.read(effect.operand, lane));
    isTrue |= found == warp.cta().mbarriers.end() ||
              (isParity ? found->second.isComplete(operand)
                        : found->second.phase != operand);
  });
  return isTrue;
}

Touches ChoicePoints::looksOf(Warp &warp, const Group &group) const {
  const Op &op = code_.ops[static_cast<std::size_t>(group.pc)];
  Touches touches;
  if (op.effect->kind != EffectKind::barrierWait)
    return touches;
  forEachLane(group.lanes, [&](int lane) {
    std::uint64_t address = warp.read(op.effect->address, lane) +
                            static_cast<std::uint64_t>(op.effect->offset);
    auto plain = static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
    auto found = warp.cta().mbarriers.find(plain);
    if (found != warp.cta().mbarriers.end())
      touches.push_back({Touch::Of::mbarrier, Touch::How::read,
                         warp.cta().number(), plain, found->second.phase});
  });
  std::sort(touches.begin(), touches.end());
  touches.erase(std::unique(touches.begin(), touches.end()), touches.end());
  return touches;
}

static std::uint32_t liveThreadsOf(Cluster &cluster) {
  std::uint32_t count = 0;
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    count += cluster.cta(static_cast<int>(rank)).liveThreads();
  return count;
}

bool ChoicePoints::canGo(Warp &warp, const Group &group) const {
  const Op &op = code_.ops[static_cast<std::size_t>(group.pc)];
  LaneMask active = group.lanes;
  if (op.guard.isValid())
    active &= warp.pred(op.guard);
  if (!active)
    return true;
  Cta &cta = warp.cta();
  Cluster &cluster = cta.cluster();
  switch (op.effect->kind) {
  case EffectKind::barrierWait:
    return !isAwaiting(group) || isWaitTrue(warp, op, active);
  case EffectKind::ctaBarrier: {
    if (group.wait.kind != WaitReason::Kind::ctaBarrier)
      return true;
    const CtaBarrier &barrier = cta.barriers[group.wait.object];
    std::uint32_t wanted =
        barrier.expected ? barrier.expected : cta.liveThreads();
    return barrier.generation != group.wait.detail ||
           (barrier.arrived && barrier.arrived >= wanted);
  }
  case EffectKind::clusterWait: {
    const auto &rounds = warp.clusterArrivals.rounds;
    return !(rounds[cluster.barrierGeneration % 2].lanes & active) ||
           (cluster.barrierArrived &&
            cluster.barrierArrived >= liveThreadsOf(cluster));
  }
  case EffectKind::registers:
    return warp.registers == 0 ||
           (static_cast<int>(op.imm) - warp.registers) * kLanes <=
               cta.registerPool;
  default:
    return true;
  }
}

} // namespace kiln::sim
