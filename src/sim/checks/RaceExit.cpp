// RaceExit: what is left when threads, CTAs and clusters come to their end.
//
// Whoever leaves the kernel gives up its shared memory. Copies that may still
// read or write it, and accesses of other CTAs that nothing orders before that,
// are errors, whatever came of them in this run.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"

#include <fmt/format.h>

namespace kiln::sim {

void RaceDetector::tellLeft(FindingId id, Warp &warp, const Op &op, int lane,
                            const std::string &message,
                            const FindingObject &object) {
  Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
  Record alone{};
  alone.op = static_cast<std::uint32_t>(&op - warp.code().ops.data());
  if (!isTold(id, access, alone))
    tell(id, access, alone, message, object);
}

void RaceDetector::leave(Warp &warp, LaneMask lanes) {
  using Works = std::vector<std::shared_ptr<Pending>>;
  auto look = [&](FindingId id, int lane, const Works &group,
                  const char *wait) {
    for (const auto &work : group)
      if (!work->isAwaited)
        tellLeft(id, warp, *work->op, lane,
                 fmt::format("the thread leaves the kernel, and nobody has "
                             "waited for this copy; missing: {}",
                             wait),
                 {});
  };
  bool hasCopies = warp.bulk.isUsed() || warp.asyncCopies.isUsed();
  forEachLane(hasCopies ? lanes : 0, [&](int lane) {
    for (const Works &group : warp.bulk[lane].committed)
      look(FindingId::bulkStoreAtExit, lane, group,
           "cp.async.bulk.wait_group.read 0");
    look(FindingId::copyAtExit, lane, warp.bulk[lane].open,
         "cp.async.bulk.commit_group and cp.async.bulk.wait_group.read 0");
    const char *waitAll = "cp.async.wait_all, or an mbarrier that tells of it";
    for (const Works &group : warp.asyncCopies[lane].committed)
      look(FindingId::copyAtExit, lane, group, waitAll);
    look(FindingId::copyAtExit, lane, warp.asyncCopies[lane].open, waitAll);
  });
  if (!warp.wgmma.held.empty())
    tellLeft(FindingId::wgmmaAtExit, warp, *warp.wgmma.held.front().op,
             firstLane(lanes),
             "the warp leaves the kernel, and has not waited for this wgmma; "
             "missing: wgmma.commit_group and wgmma.wait_group 0",
             {});
  // Other CTAs of the cluster may still reach what is given up; and a barrier
  // that others wait at goes on without the thread.
  Cta &cta = warp.cta();
  bool isMissed =
      machine_.code().hasCtaBarrier &&
      cta.liveThreads() > static_cast<std::uint32_t>(countLanes(lanes));
  if (isMissed || cta.cluster().size() > 1)
    warp.group().clocks.release(cta.left, warp.clock, lanes);
}

void RaceDetector::end(Cta &cta) {
  epochs_.erase(&cta);
  lastCta_ = nullptr;
  if (const TensorMemory *memory = cta.findTensorMemory())
    for (const TensorMemory::Allocation &one : memory->allocations)
      tellLeft(FindingId::tcgen05Leak, *one.warp, *one.op, 0,
               fmt::format("CTA ({}, {}, {}) ends, and columns {} to {} of "
                           "tensor memory, which this allocates, are still "
                           "allocated; missing: tcgen05.dealloc",
                           cta.index()[0], cta.index()[1], cta.index()[2],
                           one.column, one.column + one.columns - 1),
               {"tensor", one.column});
  for (const auto &[address, barrier] : cta.mbarrierHistory)
    for (const OnMbarrier &copy : barrier.copies)
      tellLeft(FindingId::copyAtExit, *copy.warp,
               machine_.code().ops[copy.record.op], copy.lane,
               fmt::format("CTA ({}, {}, {}) ends, and nobody has waited for "
                           "this copy to it; missing: a wait for phase {} of "
                           "the mbarrier at {}",
                           cta.index()[0], cta.index()[1], cta.index()[2],
                           copy.phase - 1,
                           machine_.findings().describeShared(address)),
               sharedObject(address));
  // Every copy has been waited for: what is still counted was never sent, or
  // never announced. Nobody waits for it, else there were a deadlock.
  for (const auto &[address, barrier] : cta.mbarriers)
    if (barrier.txCount != 0 && barrier.history->copies.empty())
      tellLeft(FindingId::mbarrierBytesAtExit, *cta.warps()[0],
               *barrier.senders.back(), 0,
               fmt::format("CTA ({}, {}, {}) ends, and the mbarrier at {} {} "
                           "{} bytes in phase {}",
                           cta.index()[0], cta.index()[1], cta.index()[2],
                           machine_.findings().describeShared(address),
                           barrier.txCount > 0 ? "still expects"
                                               : "has got more than announced:",
                           std::abs(barrier.txCount), barrier.phase),
               sharedObject(address));
}

/// How far the threads of a CTA have got with the cluster's barriers.
static std::uint32_t barriersOf(const Cta &cta) {
  std::uint32_t most = 0;
  for (const auto &warp : cta.warps())
    most = std::max(most, warp->clock.clusterBarriers);
  return most;
}

void RaceDetector::end(Cluster &cluster) {
  for (std::size_t rank = 0; rank < cluster.size(); ++rank) {
    Cta &cta = cluster.cta(static_cast<int>(rank));
    auto isKnown = [&](const Record &record, View view) {
      const Epoch *known = cta.left.deFacto.clock.find(view, record.component);
      return known && known->covers(record.time, record.lanes);
    };
    auto report = [&](const Record &record, const std::string &what,
                      std::uint32_t address) {
      const Agent &who = agent(record.component);
      int lane = record.lanes ? firstLane(record.lanes) : 0;
      for (std::size_t other = 0; other < cluster.size(); ++other) {
        Cta &origin = cluster.cta(static_cast<int>(other));
        if (origin.number() != who.ctaNumber ||
            who.number >= origin.warps().size())
          continue;
        tellLeft(FindingId::ctaExitOrder, *origin.warps()[who.number],
                 machine_.code().ops[record.op], lane,
                 fmt::format("this {} {} of CTA {} of the cluster, which may "
                             "have left the kernel; missing: a cluster barrier "
                             "between them (barrier.cluster.arrive and .wait)",
                             what, machine_.findings().describeShared(address),
                             rank),
                 sharedObject(address));
      }
    };
    for (auto [first, page] : cta.shadow.cells.pages())
      for (std::size_t i = 0; i < Shadow::kPageCells; ++i)
        cta.shadow.cells.peek(first + i, [&](const Record &record) {
          const Agent &who = agent(record.component);
          if (who.kind == Agent::Kind::lanes && who.ctaNumber != cta.number() &&
              !isKnown(record,
                       record.isAsync() ? View::completed : View::generic))
            report(
                record, record.isWrite() ? "writes" : "reads",
                static_cast<std::uint32_t>((first + i) * Shadow::kCellBytes) +
                    kFirstSharedAddress);
        });
    std::uint32_t barriers = barriersOf(cta);
    for (const auto &[address, barrier] : cta.mbarrierHistory)
      for (const OnMbarrier &arrival : barrier.remoteArrivals)
        // Arrivals of a thread at one CTA come in their order, whatever their
        // scope.
        if (arrival.clusterBarriers >= barriers &&
            !isKnown(arrival.record, View::completed))
          report(arrival.record, "arrives at the mbarrier at", address);
  }
}

} // namespace kiln::sim
