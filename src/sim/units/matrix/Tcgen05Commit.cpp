// Tcgen05Commit: tcgen05.commit, which lets mbarriers know when the operations
// of a thread are over, and the fences between threads.
#include "sim/units/matrix/Tcgen05.h"

#include <algorithm>

namespace kiln::sim {

namespace {
/// A decoded commit.
struct Commit {
  AddressOperand barrier;
  Reg mask; ///< not valid: no multicast
  int group = 1;
};
} // namespace

/// One arrival at an mbarrier, when everything before it is done.
static void arrive(Warp &warp, const Op &op, int lane, Cta &target,
                   std::uint32_t address, std::uint32_t time,
                   const SyncPoint &known) {
  Findings &findings = warp.machine().findings();
  LaneMask bit = LaneMask(1) << lane;
  auto found = target.mbarriers.find(address);
  if (found == target.mbarriers.end())
    findings.fault(FindingId::mbarrierUninitialized, warp, op, bit,
                   fmt::format("tcgen05.commit arrives at {} of "
                               "CTA {} of the cluster, where there is no "
                               "initialised mbarrier",
                               findings.describeShared(address),
                               target.rankInCluster()));
  MbarrierState &barrier = found->second;
  if (barrier.pending == 0)
    findings.fault(FindingId::mbarrierOverArrival, warp, op, bit,
                   fmt::format("tcgen05.commit arrives at the mbarrier at "
                               "{}, which waits for 0 of {} in "
                               "phase {}",
                               findings.describeShared(address),
                               barrier.expected, barrier.phase));
  --barrier.pending;
  barrier.note(op);
  warp.watchers().tell(TensorArrival{warp, lane, barrier, time, known});
  settlePhase(barrier, target.cluster());
}

/// The CTAs whose mbarriers are told.
static std::uint32_t targetsOf(Warp &warp, const Op &op, const Commit &commit,
                               const Cta &owner, int lane) {
  if (!commit.mask.isValid())
    return 1u << owner.rankInCluster();
  Cluster &cluster = warp.cta().cluster();
  LaneMask bit = LaneMask(1) << lane;
  Findings &findings = warp.machine().findings();
  if (warp.poison(commit.mask) & bit)
    findings.fault(FindingId::uninitializedSize, warp, op, bit,
                   "the CTA mask depends on bytes that nobody wrote");
  auto mask = static_cast<std::uint32_t>(warp.read(commit.mask, lane)) & 0xffff;
  if (mask == 0 || mask >> cluster.size())
    findings.fault(FindingId::tcgen05Multicast, warp, op, bit,
                   fmt::format("the mask {:#x} names {} of a cluster of {}",
                               mask, mask ? "CTAs outside" : "no CTA",
                               cluster.size()));
  forEachCta(cluster, mask, [&](Cta &target) {
    if (target.isDone())
      findings.fault(FindingId::tcgen05Multicast, warp, op, bit,
                     fmt::format("the mask {:#x} names CTA {} of the cluster, "
                                 "which has left the kernel",
                                 mask, target.rankInCluster()));
  });
  return mask;
}

/// A thread that has issued nothing tells nothing of what others have.
static void checkIssuer(Warp &warp, const Op &op, int lane) {
  LaneMask bit = LaneMask(1) << lane;
  if (warp.tensor.issuers & bit)
    return;
  for (const auto &other : warp.cta().warps())
    if (LaneMask busy = other->tensor.uncommitted)
      return warp.machine().findings().report(
          FindingId::tcgen05Commit, warp, op, bit,
          fmt::format("thread {} commits and has issued no tcgen05 operation; "
                      "those of thread {} stay uncommitted",
                      warp.thread(lane), other->thread(firstLane(busy))));
}

static Step commitOperations(Warp &warp, const Op &op, LaneMask active) {
  const auto &commit = *static_cast<const Commit *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  ctasOf(warp, op, active, commit.group);
  warp.watchers().tell(AsyncBegin{warp});
  std::uint32_t time = warp.clock.now;
  forEachLane(active, [&](int lane) {
    if (warp.machine().config().checks)
      checkIssuer(warp, op, lane);
    warp.tensor.uncommitted &= ~(LaneMask(1) << lane);
    SharedRange barrier = sharedRange(warp, op, commit.barrier, 8, 8, lane);
    std::uint32_t mask = targetsOf(warp, op, commit, *barrier.owner, lane);
    forEachCta(cluster, mask, [&](Cta &target) {
      warp.watchers().tell(MbarrierEvent{MbarrierEvent::What::use, warp, op,
                                         LaneMask(1) << lane, target,
                                         barrier.address});
    });
    // What its thread knew to be over when it issued them.
    SyncPoint known;
    warp.watchers().tell(TensorCommit{warp, lane, known});
    enqueueOperation(warp,
                     [&warp, &op, &cluster, lane, mask, time,
                      address = barrier.address, known = std::move(known)] {
                       forEachCta(cluster, mask, [&](Cta &target) {
                         arrive(warp, op, lane, target, address, time, known);
                       });
                     });
  });
  return Step::next;
}

void decodeTensorCommit(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  Commit commit;
  commit.barrier = AddressOperand::decode(decoder, instruction.operands[0]);
  if (instruction.has("multicast::cluster"))
    commit.mask = decoder.reg(instruction.operands[1], 2);
  commit.group = ctaGroupOf(instruction);
  op.extra = std::make_shared<Commit>(commit);
  op.handler = commitOperations;
}

template <Fence::What What>
static Step fenceTensor(Warp &warp, const Op &op, LaneMask active) {
  warp.watchers().tell(Fence{What, warp, op, active});
  return Step::next;
}

void decodeTensorFence(Decoder &, const ptx::Instruction &instruction, Op &op) {
  op.handler = instruction.has("fence::before_thread_sync")
                   ? fenceTensor<Fence::What::tensorBefore>
                   : fenceTensor<Fence::What::tensorAfter>;
}

} // namespace kiln::sim
