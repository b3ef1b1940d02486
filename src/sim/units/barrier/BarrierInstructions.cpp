// BarrierInstructions: barriers of a CTA and of a cluster, and fences.
#include "sim/program/Effect.h"
#include "sim/units/Units.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

namespace kiln::sim {

// What `flags` of a barrier holds.
static constexpr std::uint32_t isAligned = 1, isArrive = 2, isAnd = 4;

/// Complete the round if everyone is there.
static void settle(CtaBarrier &barrier, const Cta &cta) {
  if (barrier.arrived == 0)
    return;
  std::uint32_t wanted =
      barrier.expected ? barrier.expected : cta.liveThreads();
  if (barrier.arrived < wanted)
    return;
  // De facto who has left has arrived: the accesses of an SM come in order.
  if (barrier.round && !barrier.expected)
    barrier.round->deFacto.join(cta.left.deFacto);
  barrier.arrived = 0;
  barrier.expected = 0;
  barrier.results[barrier.generation & 1] = barrier.votes;
  barrier.votes = {};
  barrier.round = nullptr;
  ++barrier.generation;
  cta.cluster().notify();
}

/// bar.red: what all threads of the round have brought.
static void takeResult(Warp &warp, const Op &op, LaneMask active,
                       const CtaBarrier::Votes &votes) {
  if (op.dst.isValid()) {
    forEachLane(active,
                [&](int lane) { warp.write(op.dst, lane, votes.holding); });
    warp.setPoison(op.dst, active, 0);
  } else if (op.pdst.isValid()) {
    bool holds =
        op.flags & isAnd ? votes.holding == votes.threads : votes.holding > 0;
    warp.setPred(op.pdst, active, holds ? kAllLanes : 0);
    warp.setPredPoison(op.pdst, active, 0);
  }
}

static Step syncCta(Warp &warp, const Op &op, LaneMask active) {
  Cta &cta = warp.cta();
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  int lane = firstLane(active);
  auto id = static_cast<std::uint32_t>(warp.read(op.src[0], lane));
  if (id >= cta.barriers.size())
    warp.machine().findings().fault(
        FindingId::barrierNumber, warp, op, active,
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
      warp.machine().findings().fault(
          FindingId::barrierCount, warp, op, active,
          fmt::format("barrier {} is for {} threads; it takes whole warps", id,
                      threads));
    if (barrier.arrived && barrier.expected != threads)
      warp.machine().findings().fault(
          FindingId::barrierCount, warp, op, active,
          fmt::format("barrier {} is for {} threads here and for {} where "
                      "others wait",
                      id, threads, barrier.expected));
    barrier.expected = threads;
    // A warp counts as 32 threads wherever a number is given; so do its parts
    // together.
    bool isFirstPart = active & warp.live() & -warp.live();
    barrier.arrived += countLanes(active);
    if (threads && isFirstPart)
      barrier.arrived += kLanes - countLanes(warp.live());
    if (op.psrc.isValid()) {
      barrier.votes.threads += countLanes(active);
      barrier.votes.holding += countLanes(active & warp.pred(op.psrc));
    }
    std::uint32_t generation = barrier.generation;
    warp.watchers().tell(CtaBarrierArrive{warp, active, barrier});
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
  takeResult(warp, op, active, barrier.results[group.wait.detail & 1]);
  group.wait = {};
  warp.watchers().tell(CtaBarrierWait{warp, active});
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
  cluster.barrierRound = nullptr;
  for (std::size_t rank = 0; rank < cluster.size(); ++rank)
    cluster.cta(static_cast<int>(rank)).relaxedRound = nullptr;
  ++cluster.barrierGeneration;
  cluster.notify();
}

static Step arriveCluster(Warp &warp, const Op &op, LaneMask active) {
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  Cluster &cluster = warp.cta().cluster();
  ClusterArrivals &arrivals = warp.clusterArrivals;
  if (LaneMask again = arrivals.lanes() & active)
    warp.machine().findings().fault(
        FindingId::clusterBarrier, warp, op, again,
        "this arrives at the cluster barrier again, and no "
        "barrier.cluster.wait stands between");
  ClusterArrivals::Round &round =
      arrivals.rounds[cluster.barrierGeneration % 2];
  round.lanes |= active;
  cluster.barrierArrived += countLanes(active);
  warp.watchers().tell(ClusterBarrierArrive{warp, op, active, round});
  settle(cluster);
  return Step::next;
}

static Step waitCluster(Warp &warp, const Op &op, LaneMask active) {
  if (op.flags & isAligned)
    checkAligned(warp, op, active);
  Cluster &cluster = warp.cta().cluster();
  ClusterArrivals &arrivals = warp.clusterArrivals;
  if (LaneMask missing = active & ~arrivals.lanes())
    warp.machine().findings().fault(FindingId::clusterBarrier, warp, op,
                                    missing,
                                    "this waits at the cluster barrier, and no "
                                    "barrier.cluster.arrive stands before it");
  settle(cluster);
  if (arrivals.rounds[cluster.barrierGeneration % 2].lanes & active) {
    warp.group().wait = {WaitReason::Kind::clusterBarrier, 0, 0};
    return Step::blocked;
  }
  warp.group().wait = {};
  ClusterArrivals::Round &round =
      arrivals.rounds[(cluster.barrierGeneration + 1) % 2];
  round.lanes &= ~active;
  warp.watchers().tell(ClusterBarrierWait{warp, active, round});
  return Step::next;
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
  if (instruction.has("arrive"))
    op.flags |= isArrive;
  op.handler = syncCta;
  const auto &operands = instruction.operands;
  std::size_t first = 0, last = operands.size();
  if (instruction.has("red")) {
    if (instruction.has("popc"))
      op.dst = decoder.reg(operands[0], 4);
    else
      op.pdst = decoder.pred(operands[0]);
    op.flags |= instruction.has("and") ? isAnd : 0;
    op.psrc = decoder.pred(operands.back());
    ++first;
    --last;
  }
  op.src[0] = decoder.reg(operands[first], 4);
  if (first + 1 < last)
    op.src[1] = decoder.reg(operands[first + 1], 4);
}

// Lanes run in order and memory is written at once: fences change no value,
// only what is known to be ordered.

template <Fence::What What>
static Step fence(Warp &warp, const Op &op, LaneMask active) {
  warp.watchers().tell(Fence{What, warp, op, active});
  return Step::next;
}

// What `flags` of a proxy fence holds.
static constexpr std::uint32_t isForShared = 1, isForGlobal = 2;

static Step fenceProxy(Warp &warp, const Op &op, LaneMask active) {
  if (op.flags & isForShared)
    warp.watchers().tell(Fence{Fence::What::asyncShared, warp, op, active});
  if (op.flags & isForGlobal)
    warp.watchers().tell(Fence{Fence::What::asyncGlobal, warp, op, active});
  return Step::next;
}

/// src: the address of a map, imm: its offset.
static Step acquireTensorMap(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    std::uint64_t base = warp.read(op.src[0], lane);
    warp.watchers().tell(Fence{Fence::What::tensorMapAcquire, warp, op,
                               LaneMask(1) << lane,
                               base + static_cast<std::uint64_t>(op.imm)});
  });
  return Step::next;
}

static void decodeFence(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  auto is = [&](const char *word) { return instruction.has(word); };
  op.handler = is("mbarrier_init") ? fence<Fence::What::mbarrierInit>
                                   : fence<Fence::What::memory>;
  if (!is("proxy"))
    return;
  if (is("tensormap::generic")) {
    op.handler = fence<Fence::What::tensorMapRelease>;
    if (!is("acquire"))
      return;
    op.handler = acquireTensorMap;
    op.src[0] = decoder.address(instruction.operands[0], op.imm);
    return;
  }
  op.handler = fenceProxy;
  bool isShared = is("shared::cta") || is("shared::cluster");
  if (is("async") || is("async::generic"))
    op.flags = (is("global") ? 0 : isForShared) | (isShared ? 0 : isForGlobal);
}

static void barrierEffect(Decoder &decoder, const ptx::Instruction &instruction,
                          Effect &effect) {
  effect.isArrival = instruction.has("arrive");
  if (instruction.has("cluster")) {
    effect.kind =
        effect.isArrival ? EffectKind::clusterArrive : EffectKind::clusterWait;
    return;
  }
  if (instruction.has("warp")) {
    effect.kind = EffectKind::warpBarrier;
    return;
  }
  effect.isAligned |= instruction.opcode == "bar";
  effect.kind = EffectKind::ctaBarrier;
  effect.isReduction = instruction.has("red");
  // A reduction has its result before the barrier.
  std::size_t at = effect.isReduction ? 1 : 0;
  effect.operand = decoder.reg(instruction.operands[at], 4);
}

static MemorySemantics clusterSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = writtenSemantics(instruction);
  semantics.isRelease |= instruction.has("arrive") && !semantics.isRelaxed;
  semantics.isAcquire |= instruction.has("wait");
  semantics.scope = Scope::cluster;
  return semantics;
}

static MemorySemantics fenceSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = writtenSemantics(instruction);
  semantics.scope = scopeOf(instruction, Scope::gpu);
  bool isPlain = !instruction.has("proxy") && !instruction.has("mbarrier_init");
  if (isPlain && !semantics.isAcquire && !semantics.isRelease) // .acq_rel
    semantics.isAcquire = semantics.isRelease = true;
  return semantics;
}

static MemorySemantics membarSemantics(const ptx::Instruction &instruction) {
  MemorySemantics semantics = fenceSemantics(instruction);
  semantics.isAcquire = semantics.isRelease = true;
  return semantics;
}

std::vector<Instruction> barrierInstructions() {
  return {
      {"bar",
       decodeBarrier,
       Unit::barrier,
       "sync, arrive, red, warp.sync",
       "warp sync -> u32; "
       "red popc, cta aligned u32 -> =u32 u32 u32? p; "
       "red and|or, cta aligned pred -> =p u32 u32? p; "
       "arrive, cta aligned -> u32 u32; "
       "sync, cta aligned -> u32 u32?",
       {.effect = barrierEffect}},
      {"barrier",
       decodeBarrier,
       Unit::barrier,
       "cta sync, arrive and red, cluster arrive and wait",
       "cluster arrive, release relaxed aligned; "
       "cluster wait, acquire aligned; "
       "red popc, cta aligned u32 -> =u32 u32 u32? p; "
       "red and|or, cta aligned pred -> =p u32 u32? p; "
       "arrive, cta aligned -> u32 u32; "
       "sync, cta aligned -> u32 u32?",
       {.effect = barrierEffect, .semantics = clusterSemantics}},
      {"fence",
       decodeFence,
       Unit::barrier,
       "every form",
       "proxy tensormap::generic acquire, SCOPE -> [a] imm; "
       "proxy tensormap::generic release, SCOPE; "
       "proxy alias|async|async::generic, global shared::cta shared::cluster "
       "acquire release RESTRICT cluster; "
       "mbarrier_init, release cluster; "
       "SCOPE, sc|acq_rel|acquire|release RESTRICT",
       {.semantics = fenceSemantics}},
      {"membar",
       decodeFence,
       Unit::barrier,
       "every form",
       "proxy alias|async, global shared::cta shared::cluster; "
       "cta|gl|sys",
       {.semantics = membarSemantics}},
  };
}

} // namespace kiln::sim
