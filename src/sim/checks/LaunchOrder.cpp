// LaunchOrder: what events mean for the order of accesses.
//
// Barriers, waits and fences change what lanes know (LaneClocks); accesses of
// asynchronous units belong to the component that tells of their end.
#include "sim/checks/LaunchChecks.h"
#include "sim/machine/Machine.h"

#include <algorithm>

namespace kiln::sim {

static LaneMask bitOf(int lane) { return LaneMask(1) << lane; }

std::pair<Component, std::uint32_t>
LaunchChecks::timeOf(const AsyncAccess &event) {
  Warp &warp = event.warp;
  const Completion &over = event.over;
  switch (over.by) {
  case Completion::By::mbarrier:
    return RaceDetector::phaseOf(over.cta->mbarrierHistory[over.object]);
  case Completion::By::copyGroup:
    return {warp.clock.copies, begun_};
  case Completion::By::bulkGroup:
    return {warp.clock.bulkWrites, begun_};
  case Completion::By::bulkGroupRead:
    return {warp.clock.bulkReads, begun_};
  case Completion::By::warpgroup:
    return {warp.cta().tensorCores[over.object].component, over.number};
  case Completion::By::tensorOperations:
    return {races_.tensorComponents(warp).operations, begun_};
  case Completion::By::tensorLoads:
    return {races_.tensorComponents(warp).loads, begun_};
  case Completion::By::tensorStores:
    return {races_.tensorComponents(warp).stores, begun_};
  }
  return {};
}

void LaunchChecks::on(const AsyncAccess &event) {
  auto [component, time] = timeOf(event);
  Access access =
      races_.issued(event.warp, event.op, firstLane(event.issuers),
                    event.isWrite, component, time, event.isThroughProxy);
  access.issuers = access.record.lanes = event.issuers;
  access.isRecorded = !event.isPartial;
  // A product is of the whole warpgroup, whoever is left of it.
  if (event.over.by == Completion::By::warpgroup)
    access.record.lanes = kAllLanes;
  if (event.isAtomic)
    access.record.flags |= Record::kStrong | unsigned(event.scope)
                                                 << Record::kScopeShift;
  for (const ByteRun &run : event.runs)
    if (event.owner)
      races_.touchShared(access, *event.owner, run.begin, run.bytes);
    else
      races_.touchGlobal(access, run.begin, run.bytes);
  if (!event.cells.empty())
    races_.touchCells(access, *event.owner, event.cells);
  if (!event.ranges.empty())
    access.view = View::tensor;
  for (const TensorRange &range : event.ranges)
    races_.touchTensor(access, *event.owner, range);
  if (event.swizzle >= 0)
    event.owner->shadow.swizzles[access.record.op] = event.swizzle;
}

void LaunchChecks::on(const TensorMapUse &event) {
  races_.useTensorMap(event.warp, event.op, event.lane, event.address);
}

void LaunchChecks::on(const AsyncBegin &event) {
  begun_ = ++event.warp.clock.now;
}

/// The times up to which the copies of a lane are known to be complete.
static void noteCommit(const Warp &warp, std::vector<std::uint32_t> &commits) {
  if (commits.size() >= 2 * kMaxGroups)
    commits.erase(commits.begin(), commits.begin() + kMaxGroups);
  commits.push_back(warp.clock.now);
}

/// A lane has waited for all but the last `keep` groups of a component; and of
/// another one, where `last` is not the same.
static void noteWait(const CopyGroup &event,
                     std::vector<std::uint32_t> &commits, Component first,
                     Component last) {
  if (commits.size() <= event.keep)
    return;
  std::size_t waited = commits.size() - event.keep;
  Epoch known{.some = commits[waited - 1], .mask = bitOf(event.lane)};
  LaneClocks &clocks = event.warp.group().clocks;
  clocks.complete(first, known, bitOf(event.lane));
  if (last != first)
    clocks.complete(last, known, bitOf(event.lane));
  if (event.what == CopyGroup::What::wait)
    commits.erase(commits.begin(),
                  commits.begin() + static_cast<std::ptrdiff_t>(waited));
}

void LaunchChecks::on(const CopyGroup &event) {
  WarpClock &clock = event.warp.clock;
  auto lane = static_cast<std::size_t>(event.lane);
  auto &commits =
      event.isBulk ? clock.bulkCommits[lane] : clock.copyCommits[lane];
  if (event.what == CopyGroup::What::commit)
    return noteCommit(event.warp, commits);
  if (!event.isBulk)
    return noteWait(event, commits, clock.copies, clock.copies);
  noteWait(event, commits, clock.bulkReads,
           event.what == CopyGroup::What::wait ? clock.bulkWrites
                                               : clock.bulkReads);
}

void LaunchChecks::on(const CopyArrival &event) {
  if (!event.barrier.history)
    return;
  Epoch known{.some = event.upTo, .mask = bitOf(event.lane)};
  SyncPoint &near = event.barrier.history->arriving.near;
  for (Clock *clock : {&near.strict.clock, &near.deFacto.clock}) {
    clock->learn(View::generic, event.warp.clock.copies, known);
    clock->learn(View::completed, event.warp.clock.copies, known);
  }
}

void LaunchChecks::on(const WgmmaEnd &event) {
  event.warp.group().clocks.complete(event.queue.component,
                                     {.all = event.products}, event.lanes);
}

void LaunchChecks::on(const TensorMoveBegin &event) {
  // Loads of a warp that nobody waits for and whose registers are followed;
  // more than these are over only where somebody waits.
  constexpr std::size_t kMostLoads = 64;
  Warp &warp = event.warp;
  begun_ = ++warp.clock.now;
  if (event.isLoad && warp.tensor.loads.size() < kMostLoads)
    warp.tensor.loads.push_back({&event.op, begun_});
}

void LaunchChecks::on(const TensorMoveEnd &event) {
  const auto &components = races_.tensorComponents(event.warp);
  event.warp.group().clocks.completeTensor(
      event.isLoad ? components.loads : components.stores,
      {.all = event.warp.clock.now}, event.lanes);
}

void LaunchChecks::on(const TensorCommit &event) {
  event.warp.group().clocks.release(event.handed, event.warp.clock,
                                    bitOf(event.lane));
}

void LaunchChecks::on(const TensorArrival &event) {
  const auto &components = event.warp.tensor.components;
  if (event.barrier.history && components)
    RaceDetector::commit(*event.barrier.history, components->operations,
                         event.upTo, bitOf(event.lane), event.handed);
}

void LaunchChecks::on(const MbarrierEvent &event) {
  auto &[what, warp, op, lanes, cta, address, state] = event;
  switch (what) {
  case MbarrierEvent::What::init:
    state->history =
        &races_.initialise(warp, op, firstLane(lanes), cta, address);
    return;
  case MbarrierEvent::What::inval:
    return RaceDetector::invalidate(cta, address);
  case MbarrierEvent::What::use:
    return races_.use(warp, op, firstLane(lanes), cta, address);
  case MbarrierEvent::What::copy:
    return races_.expectCopy(warp, op, firstLane(lanes), cta, address);
  case MbarrierEvent::What::arrive:
    return races_.arrive(warp, op, lanes, cta, address);
  case MbarrierEvent::What::wait:
    return races_.await(warp, op, lanes, cta, address);
  }
}

void LaunchChecks::on(const MbarrierPhase &event) {
  MbarrierHistory *history = event.barrier.history;
  if (!history)
    return;
  history->completed = std::move(history->arriving);
  // Whoever waits for a later phase knows what was committed to this one.
  history->arriving = {.committed = history->completed.committed};
  ++history->phases;
}

void LaunchChecks::on(const CtaBarrierArrive &event) {
  races_.meet(event.warp, event.lanes, event.barrier);
  auto &round = event.barrier.round;
  if (!round)
    round = std::make_shared<SyncPoint>();
  Group &group = event.warp.group();
  group.clocks.release(*round, event.warp.clock, event.lanes);
  group.round = round;
}

void LaunchChecks::on(const CtaBarrierWait &event) {
  Warp &warp = event.warp;
  Group &group = warp.group();
  if (!group.round)
    return;
  group.clocks.acquire(*group.round, warp.clock, event.lanes);
  group.round = nullptr;
  warp.clock.lastMeeting = warp.clock.now;
}

/// Threads of one CTA see each other's accesses behind a relaxed arrival too,
/// which released kernels rely on: it is ordered de facto.
static void arriveRelaxed(Warp &warp, LaneMask lanes, FencedClock &round) {
  SyncPoint handed;
  warp.group().clocks.release(handed, warp.clock, lanes);
  round.join(handed.deFacto);
}

void LaunchChecks::on(const ClusterBarrierArrive &event) {
  Warp &warp = event.warp;
  auto &handed = warp.cta().cluster().barrierRound;
  if (!handed)
    handed = std::make_shared<SyncPoint>();
  races_.publish(warp, event.lanes, event.op.semantics, *handed);
  event.round.handed = handed;
  auto &relaxed = warp.cta().relaxedRound;
  if (!relaxed)
    relaxed = std::make_shared<FencedClock>();
  event.round.relaxed = relaxed;
  if (!event.op.semantics.isRelease)
    arriveRelaxed(warp, event.lanes, *relaxed);
  warp.clock.clusterArrival = warp.clock.now;
}

void LaunchChecks::on(const ClusterBarrierWait &event) {
  Warp &warp = event.warp;
  if (!event.round.handed)
    return;
  LaneClocks &clocks = warp.group().clocks;
  clocks.acquire(*event.round.handed, warp.clock, event.lanes);
  clocks.deFacto().learn(*event.round.relaxed, warp.clock);
  warp.cta().relaxedMeetings.join(*event.round.relaxed);
  warp.clock.clusterBarriers = warp.cta().cluster().barrierGeneration;
  warp.clock.lastMeeting =
      std::max(warp.clock.lastMeeting, warp.clock.clusterArrival);
}

void LaunchChecks::on(const WarpBarrier &event) {
  event.warp.group().clocks.syncLanes(event.lanes, event.warp.clock);
}

void LaunchChecks::on(const PrimaryWait &event) {
  event.warp.group().clocks.complete(kPrimaryEnd, {.all = 1}, event.lanes);
  event.warp.clock.lastEdge = event.warp.clock.now;
}

void LaunchChecks::on(const DependentsLaunch &event) {
  event.knowsPrimary = races_.knowsPrimary(event.warp);
}

void LaunchChecks::on(const Fence &event) {
  Warp &warp = event.warp;
  LaneClocks &clocks = warp.group().clocks;
  switch (event.what) {
  case Fence::What::memory:
    return clocks.fence(event.op.semantics.scope, warp.clock, event.lanes);
  case Fence::What::asyncShared:
    return clocks.fenceProxy(View::asyncShared, warp.clock, event.lanes);
  case Fence::What::asyncGlobal:
    return clocks.fenceProxy(View::asyncGlobal, warp.clock, event.lanes);
  case Fence::What::mbarrierInit:
    return RaceDetector::fenceInits(warp);
  case Fence::What::tensorMapRelease:
    return races_.releaseTensorMaps(warp);
  case Fence::What::tensorMapAcquire:
    return races_.acquireTensorMap(warp, event.op, firstLane(event.lanes),
                                   event.address);
  case Fence::What::tensorBefore:
    return clocks.fenceTensorBefore(event.lanes);
  case Fence::What::tensorAfter:
    return clocks.fenceTensorAfter(event.lanes);
  }
}

void LaunchChecks::on(const Allocation &event) {
  if (event.of != Allocation::Of::tensorMemory || !event.isFreed)
    return;
  races_.freeTensor(event.warp, event.op, event.lanes,
                    {0, static_cast<std::uint32_t>(event.begin),
                     TensorMemory::kLanes,
                     static_cast<std::uint32_t>(event.size)});
}

} // namespace kiln::sim
