// TouchRecorder: one touch for each barrier and each word.
#include "sim/prove/TouchRecorder.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <functional>

namespace kiln::sim {

using Of = Touch::Of;
using How = Touch::How;

/// Words are what accesses meet at.
static constexpr std::uint64_t kWordBytes = 4;

void TouchRecorder::beginWork() {
  touches_.clear();
  issued_.clear();
  op_ = stop_ = nullptr;
  isAwaiting_ = false;
}

void TouchRecorder::beginLanes(Warp &warp, const Group &group, bool isAtStop) {
  beginWork();
  if (!isAtStop)
    return;
  op_ = stop_ = &warp.code().ops[static_cast<std::size_t>(group.pc)];
  isAwaiting_ = stops_.isAwaiting(group);
  if (group.wait.kind == WaitReason::Kind::ctaBarrier) {
    barrier_ = group.wait.object;
    round_ = group.wait.detail;
  }
  if (op_->effect->kind == EffectKind::registers && registersMatter)
    add(Of::registers, How::write, warp.cta().number(), 0);
  else if (op_->effect->kind == EffectKind::registers)
    add(Of::registers, How::read, warp.cta().number(), 0);
  if (op_->effect->isClusterRequest)
    add(Of::clusters, How::write, Touch::kGlobal, 0);
}

Touches TouchRecorder::take() {
  std::sort(touches_.begin(), touches_.end());
  touches_.erase(std::unique(touches_.begin(), touches_.end()), touches_.end());
  return std::move(touches_);
}

void TouchRecorder::addArrival(const MbarrierState &barrier) {
  auto found = places_.find(&barrier);
  if (found == places_.end())
    return add(Of::everything, How::write, Touch::kGlobal, 0);
  add(Of::mbarrier, How::arrive, found->second.cta, found->second.address,
      barrier.phase);
}

static bool isLastBeforeBytes(const MbarrierEvent &event,
                              const MbarrierState &barrier) {
  bool announces = event.op.origin->has("expect_tx");
  bool mayCountMore = event.op.src[1].isValid() && !announces;
  auto lanes = static_cast<std::uint32_t>(countLanes(event.lanes));
  return (announces || barrier.txCount != 0) &&
         (mayCountMore || barrier.pending <= lanes);
}

void TouchRecorder::on(const MbarrierEvent &event) {
  using What = MbarrierEvent::What;
  std::uint32_t cta = event.cta.number();
  auto found = event.cta.mbarriers.find(event.address);
  std::uint64_t phase =
      found == event.cta.mbarriers.end() ? 0 : found->second.phase;
  auto touch = [&](How how) {
    add(Of::mbarrier, how, cta, event.address, phase);
  };
  switch (event.what) {
  case What::init:
    places_[&found->second] = {cta, event.address};
    return touch(How::write);
  case What::inval:
    return touch(How::write);
  case What::arrive:
    // Who completes the arrivals while bytes are missing decides which arrival
    // would be one too many.
    return touch(stops_.readsPending()                   ? How::write
                 : isLastBeforeBytes(event, found->second) ? How::expect
                                                           : How::arrive);
  case What::use:
    break;
  case What::copy:
  case What::wait:
    return;
  }
  const ptx::Instruction &instruction = *event.op.origin;
  if (event.op.effect->kind == EffectKind::barrierWait)
    return touch(isAwaiting_ ? How::await : How::read);
  if (instruction.opcode == "mbarrier" && !instruction.has("arrive") &&
      !instruction.has("arrive_drop"))
    return touch(How::expect);
  // cp.async.mbarrier.arrive adds an arrival to those that are missing.
  if (instruction.opcode == "cp" && instruction.has("arrive") &&
      !instruction.has("noinc"))
    touch(How::write);
}

void TouchRecorder::on(const MbarrierBytes &event) {
  op_ = op_ ? op_ : &event.op;
  auto found = event.cta.mbarriers.find(event.address);
  add(Of::mbarrier, How::bytes, event.cta.number(), event.address,
      found->second.phase);
}

void TouchRecorder::on(const CopyArrival &event) { addArrival(event.barrier); }

void TouchRecorder::on(const TensorArrival &event) {
  addArrival(event.barrier);
}

void TouchRecorder::addLive(Cta &cta, How how) {
  if (!stops_.countsLiveThreads())
    return;
  std::uint64_t rounds = 0;
  for (const CtaBarrier &barrier : cta.barriers)
    rounds += barrier.generation;
  add(Of::liveThreads, how, cta.number(), 0, rounds);
}

void TouchRecorder::on(const CtaBarrierArrive &event) {
  Cta &cta = event.warp.cta();
  barrier_ = static_cast<std::uint64_t>(&event.barrier - cta.barriers.data());
  round_ = event.barrier.generation;
  add(Of::ctaBarrier, How::arrive, cta.number(), barrier_, round_);
  if (!event.barrier.expected)
    addLive(cta, How::arrive);
}

void TouchRecorder::on(const CtaBarrierWait &event) {
  Cta &cta = event.warp.cta();
  add(Of::ctaBarrier, How::pass, cta.number(), barrier_, round_ + 1);
  if (stop_ && !stop_->src[1].isValid())
    addLive(cta, How::pass);
}

void TouchRecorder::on(const ClusterBarrierArrive &event) {
  const Cluster &cluster = event.warp.cta().cluster();
  add(Of::clusterBarrier, How::arrive,
      static_cast<std::uint32_t>(cluster.number()), 0,
      cluster.barrierGeneration);
}

void TouchRecorder::on(const ClusterBarrierWait &event) {
  const Cluster &cluster = event.warp.cta().cluster();
  add(Of::clusterBarrier, How::pass,
      static_cast<std::uint32_t>(cluster.number()), 0,
      cluster.barrierGeneration);
}

void TouchRecorder::on(const LanesEnd &event) {
  const Cluster &cluster = event.warp.cta().cluster();
  addLive(event.warp.cta(), How::arrive);
  if (stops_.hasClusterBarrier())
    add(Of::clusterBarrier, How::arrive,
        static_cast<std::uint32_t>(cluster.number()), 0,
        cluster.barrierGeneration);
}

/// What a reduction does, so that two of one kind change places; their sums of
/// floats differ in rounding alone.
static std::uint64_t operationOf(const Op &op) {
  return std::hash<std::string>()(op.origin->fullOpcode());
}

void TouchRecorder::on(const ThreadAccess &event) {
  const Op &op = event.op;
  if (!op.semantics.isStrong && !op.semantics.isAtomic && &op != stop_)
    return;
  // Nobody looks at the answer of others that have one.
  bool isReduction = op.semantics.isAtomic &&
                     (!op.semantics.isReturning || !op.semantics.isHeeded);
  bool isAtomic = op.semantics.isAtomic;
  for (const LaneAccess &access : event.accesses) {
    How how = isReduction                 ? How::reduce
              : !access.isWrite           ? How::read
              : isAtomic && access.isSame ? How::read
                                          : How::write;
    std::uint64_t first = access.address / kWordBytes;
    std::uint64_t last = (access.address + access.bytes - 1) / kWordBytes;
    for (std::uint64_t word = first; word <= last; ++word)
      add(Of::memory, how,
          access.owner ? access.owner->number() : Touch::kGlobal, word,
          isReduction ? operationOf(op) : 0);
  }
}

void TouchRecorder::on(const AsyncAccess &event) {
  if (!event.isAtomic || event.owner)
    return;
  for (const ByteRun &run : event.runs)
    for (std::uint64_t word = run.begin / kWordBytes;
         word * kWordBytes < run.begin + run.bytes; ++word)
      issued_.push_back({Of::memory, How::reduce, Touch::kGlobal, word,
                         operationOf(event.op)});
}

void TouchRecorder::on(const Allocation &event) {
  if (event.of == Allocation::Of::heap)
    return add(Of::heap, How::write, Touch::kGlobal, 0);
  add(Of::tensorMemory, How::write, event.warp.cta().number(), 0);
  if (Cta *peer = event.warp.cta().peer())
    add(Of::tensorMemory, How::write, peer->number(), 0);
}

} // namespace kiln::sim
