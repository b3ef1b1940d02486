// BarrierInstructions: barriers of a CTA and of a cluster, and fences.
#include "sim/Access.h"
#include "support/Error.h"

namespace kiln::sim {

// What `flags` of a barrier holds.
static constexpr std::uint32_t isAligned = 1, isArrive = 2;

/// Complete the round if everyone is there.
static void settle(CtaBarrier &barrier, const Cta &cta) {
  if (barrier.arrived == 0)
    return;
  std::uint32_t wanted =
      barrier.expected ? barrier.expected : cta.liveThreads();
  if (barrier.arrived < wanted)
    return;
  barrier.arrived = 0;
  barrier.expected = 0;
  ++barrier.generation;
  cta.cluster().notify();
}

static Step syncCta(Warp &warp, const Op &op, LaneMask active) {
  Cta &cta = warp.cta();
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  int lane = firstLane(active);
  auto id = static_cast<std::uint32_t>(warp.read(op.src[0], lane));
  if (id >= cta.barriers.size())
    warp.machine().fault(
        "barrier-number", warp, op, active,
        fmt::format("there is no barrier {}; 0 to 15 exist", id));
  CtaBarrier &barrier = cta.barriers[id];
  Group &group = warp.group();
  bool hasArrived = group.wait.kind == WaitReason::Kind::ctaBarrier;
  if (!hasArrived) {
    std::uint32_t threads =
        op.src[1].isValid()
            ? static_cast<std::uint32_t>(warp.read(op.src[1], lane))
            : 0;
    if (threads % kLanes)
      warp.machine().fault(
          "barrier-count", warp, op, active,
          fmt::format("barrier {} is for {} threads; it takes whole warps", id,
                      threads));
    if (barrier.arrived && barrier.expected != threads)
      warp.machine().fault(
          "barrier-count", warp, op, active,
          fmt::format("barrier {} is for {} threads here and for {} where "
                      "others wait",
                      id, threads, barrier.expected));
    barrier.expected = threads;
    // A warp counts as 32 threads wherever a number is given.
    barrier.arrived += threads ? kLanes : countLanes(active);
    std::uint32_t generation = barrier.generation;
    settle(barrier, cta);
    cta.cluster().notify();
    if (op.flags & isArrive)
      return Step::next;
    group.wait = {WaitReason::Kind::ctaBarrier, id, generation};
  } else {
    settle(barrier, cta);
  }
  if (barrier.generation == group.wait.detail)
    return Step::blocked;
  group.wait = {};
  return Step::next;
}

static std::uint32_t liveThreads(Cluster &cluster) {
  std::uint32_t count = 0;
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    count += cluster.cta(static_cast<int>(rank)).liveThreads();
  return count;
}

static void settle(Cluster &cluster) {
  if (cluster.barrierArrived == 0 ||
      cluster.barrierArrived < liveThreads(cluster))
    return;
  cluster.barrierArrived = 0;
  ++cluster.barrierGeneration;
  cluster.notify();
}

static Step arriveCluster(Warp &warp, const Op &op, LaneMask active) {
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  Cluster &cluster = warp.cta().cluster();
  warp.clusterGeneration = cluster.barrierGeneration;
  cluster.barrierArrived += countLanes(active);
  settle(cluster);
  return Step::next;
}

static Step waitCluster(Warp &warp, const Op &op, LaneMask active) {
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  Cluster &cluster = warp.cta().cluster();
  settle(cluster);
  if (cluster.barrierGeneration != warp.clusterGeneration) {
    warp.group().wait = {};
    return Step::next;
  }
  warp.group().wait = {WaitReason::Kind::clusterBarrier, 0, 0};
  return Step::blocked;
}

static void decodeBarrier(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  // `bar` is aligned by definition; `barrier` says so.
  bool aligned = instruction.opcode == "bar" || instruction.has("aligned");
  op.flags = aligned ? isAligned : 0;
  if (instruction.has("cluster")) {
    op.handler = instruction.has("arrive") ? arriveCluster : waitCluster;
    return;
  }
  if (instruction.has("warp"))
    return decodeWarpBarrier(decoder, instruction, op);
  if (instruction.has("red"))
    decoder.refuse(instruction, "barriers with a reduction");
  if (instruction.has("arrive"))
    op.flags |= isArrive;
  op.src[0] = decoder.reg(instruction.operands.at(0), 4);
  if (instruction.operands.size() > 1)
    op.src[1] = decoder.reg(instruction.operands[1], 4);
  op.handler = syncCta;
}

/// Lanes run in order and memory is written at once: fences order nothing that
/// is not ordered already.
static Step fence(Warp &, const Op &, LaneMask) { return Step::next; }

static void decodeFence(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = fence;
}

std::vector<Instruction> barrierInstructions() {
  return {
      {"bar", decodeBarrier, "barrier", "sync, arrive, warp.sync"},
      {"barrier", decodeBarrier, "barrier",
       "cta sync and arrive, cluster arrive and wait"},
      {"fence", decodeFence, "barrier", "every form"},
      {"membar", decodeFence, "barrier", "every form"},
  };
}

} // namespace kiln::sim
