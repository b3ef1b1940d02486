// RaceTensor: the order of accesses to tensor memory.
//
// What tcgen05 does with tensor memory is asynchronous, its loads and stores
// too: products, copies and shifts are over where a thread has waited for the
// mbarrier of a tcgen05.commit, loads and stores behind tcgen05.wait. By the
// text another thread may rely on that behind tcgen05.fence::after_thread_sync,
// and for loads and stores only where fence::before_thread_sync stands before
// the hand-over; the fences are what released compilers leave out, so a missing
// one is a warning.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

namespace kiln::sim {

const TensorQueue::Components &RaceDetector::tensorComponents(Warp &warp) {
  if (warp.tensor.components)
    return *warp.tensor.components;
  Cta &cta = warp.cta();
  auto component = [&](Agent::Kind kind) {
    return add(warp.clock.cluster,
               {kind, cta.index(), static_cast<std::uint32_t>(warp.index()),
                warp.clock.cta, warp.clock.cluster});
  };
  return warp.tensor.components.emplace(
      TensorQueue::Components{component(Agent::Kind::tensorOperations),
                              component(Agent::Kind::tensorLoads),
                              component(Agent::Kind::tensorStores)});
}

Access RaceDetector::tensorAccess(Warp &warp, const Op &op, LaneMask lanes,
                                  bool isWrite, Component component,
                                  std::uint32_t time) {
  Access access = issued(warp, op, firstLane(lanes), isWrite, component, time);
  access.issuers = access.record.lanes = lanes;
  access.view = View::tensor;
  return access;
}

void RaceDetector::touchTensor(Access &access, Cta &owner,
                               const TensorRange &range) {
  TensorMemory &memory = owner.tensorMemory();
  if (range.lanes == TensorMemory::kLanes)
    return touchRun(access, memory.shadow,
                    TensorMemory::offset(0, range.column),
                    range.columns * TensorMemory::kColumnBytes);
  for (std::uint32_t i = 0; i < range.columns; ++i)
    touchRun(access, memory.shadow,
             TensorMemory::offset(range.lane, range.column + i),
             range.lanes * 4);
}

void RaceDetector::freeTensor(Warp &warp, const Op &op, LaneMask lanes,
                              const TensorRange &range) {
  Access access = plain(warp, op, /*isWrite=*/true);
  access.issuers = access.record.lanes = lanes;
  access.isRecorded = false;
  access.verb = "frees";
  touchTensor(access, warp.cta(), range);
}

void RaceDetector::commit(MbarrierHistory &barrier, Component component,
                          std::uint32_t time, LaneMask lane,
                          const SyncPoint &known) {
  for (View view : {View::generic, View::completed})
    barrier.arriving.committed.learn(view, component,
                                     {.some = time, .mask = lane});
  barrier.arriving.plain.join(known);
  // What was fenced for the products before they were issued is before all that
  // comes after them.
  SyncPoint fenced;
  fenced.strict.clock.joinFenced(known.strict.clock);
  fenced.deFacto.clock.joinFenced(known.deFacto.clock);
  barrier.arriving.near.join(fenced);
}

bool RaceDetector::isPipelined(const Access &access,
                               const Record &earlier) const {
  const auto &components = access.warp->tensor.components;
  if (!components || access.view != View::tensor ||
      access.record.component != components->operations ||
      earlier.component != components->operations ||
      (earlier.lanes & ~access.issuers))
    return false;
  // A product may add to the sums of the one before it, and not read them as an
  // operand.
  auto isProduct = [&](const Op &op) {
    return op.effect->kind == EffectKind::tensorProduct;
  };
  return access.record.isWrite() || !earlier.isWrite() ||
         !isProduct(*access.op) || !isProduct(machine_.code().ops[earlier.op]);
}

} // namespace kiln::sim
