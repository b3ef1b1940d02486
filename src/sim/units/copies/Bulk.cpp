// Bulk: addresses, mbarriers and groups of copies.
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

AddressOperand AddressOperand::decode(Decoder &decoder,
                                      const ptx::Operand &operand) {
  AddressOperand result;
  result.base = decoder.address(operand, result.offset);
  return result;
}

std::uint64_t AddressOperand::read(Warp &warp, const Op &op, int lane) const {
  LaneMask bit = LaneMask(1) << lane;
  if (warp.machine().config().checks && (warp.poison(base) & bit))
    warp.machine().findings().report(
        FindingId::uninitializedAddress, warp, op, bit,
        "the address depends on bytes that nobody wrote");
  return warp.read(base, lane) + static_cast<std::uint64_t>(offset);
}

ByteRange SharedRange::in(Cta &cta) const {
  std::size_t at = address - kFirstSharedAddress;
  return {cta.shared.data() + at, &cta.sharedValid, at, &cta};
}

SharedRange sharedRange(Warp &warp, const Op &op, const AddressOperand &operand,
                        std::uint64_t bytes, std::size_t alignment, int lane) {
  std::uint64_t address = operand.read(warp, op, lane);
  if (address >> kWindowShift == kSharedWindow >> kWindowShift)
    address -= kSharedWindow;
  SharedRange range;
  Accessor(warp, op, "an asynchronous copy")
      .locateShared(address, bytes, alignment, lane, &range.owner);
  range.address =
      static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1));
  range.bytes = static_cast<std::uint32_t>(bytes);
  return range;
}

void tellCopy(Warp &warp, const Op &op, int lane, const Completion &over,
              Cta *owner, const ByteRun &run, const CopyAccess &how) {
  warp.watchers().tell(AsyncAccess{.warp = warp,
                                   .op = op,
                                   .issuers = LaneMask(1) << lane,
                                   .over = over,
                                   .isWrite = how.isWrite,
                                   .isThroughProxy = how.isThroughProxy,
                                   .isAtomic = how.atomic.has_value(),
                                   .scope = how.atomic.value_or(Scope::gpu),
                                   .owner = owner,
                                   .runs = {&run, 1}});
}

void tellCopyBegin(Warp &warp, const Op &op, int lane, Cta &cta,
                   std::uint32_t barrier) {
  for (auto what : {MbarrierEvent::What::use, MbarrierEvent::What::copy})
    warp.watchers().tell(
        MbarrierEvent{what, warp, op, LaneMask(1) << lane, cta, barrier});
}

void copyBytes(const ByteRange &to, const ByteRange &from, std::size_t bytes,
               std::uint32_t origin) {
  // From shared to shared memory they may overlap.
  std::memmove(to.data, from.data, bytes);
  if (from.isWritten(bytes))
    return to.markWritten(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    ByteRange byte = from.behind(i);
    std::uint32_t known = byte.valid->origin(byte.offset, 1);
    to.behind(i).mark(1, byte.unwritten(1), known ? known : origin);
  }
}

void copyBytes(Warp &warp, const Op &op, const ByteRange &to,
               const ByteRange &from, std::size_t bytes) {
  if (from.isWritten(bytes))
    return copyBytes(to, from, bytes, 0);
  if (mayYetBeWritten(warp, from))
    return copyBytes(to, {.data = from.data}, bytes, 0);
  copyBytes(to, from, bytes, originOf(warp, op, from, bytes));
}

void reportUnwritten(Warp &warp, const Op &op, int lane, std::uint32_t origin) {
  warp.machine().findings().report(
      FindingId::uninitializedStore, warp, op, LaneMask(1) << lane,
      "an asynchronous copy takes bytes that nobody wrote to global memory" +
          warp.machine().findings().originText(warp, origin));
}

void completeTx(Warp &warp, const Op &op, int lane, Cta &cta,
                std::uint32_t barrier, std::uint32_t bytes) {
  auto found = cta.mbarriers.find(barrier);
  if (found == cta.mbarriers.end())
    warp.machine().findings().fault(
        FindingId::mbarrierUninitialized, warp, op, LaneMask(1) << lane,
        fmt::format("a copy completes on {}, where "
                    "there is no initialised mbarrier",
                    warp.machine().findings().describeShared(barrier)));
  warp.watchers().tell(MbarrierBytes{warp, op, cta, barrier, bytes});
  found->second.txCount -= bytes;
  found->second.note(op);
  settlePhase(found->second, cta.cluster());
}

std::uint32_t multicastMask(Warp &warp, const Op &op, Reg mask,
                            const Cta &owner, int lane) {
  if (!mask.isValid())
    return 1u << owner.rankInCluster();
  auto named = static_cast<std::uint32_t>(warp.read(mask, lane)) & 0xffff;
  std::size_t size = warp.cta().cluster().size();
  if (named >> size)
    warp.machine().findings().fault(
        FindingId::tmaMulticast, warp, op, LaneMask(1) << lane,
        fmt::format("the mask {:#x} names CTAs outside a "
                    "cluster of {}",
                    named, size));
  forEachCta(warp.cta().cluster(), named, [&](Cta &target) {
    if (target.isDone())
      warp.machine().findings().fault(
          FindingId::ctaExit, warp, op, LaneMask(1) << lane,
          fmt::format("the copy goes to CTA {} of the cluster, "
                      "which has left the kernel; missing: a "
                      "cluster barrier before it leaves",
                      target.rankInCluster()));
  });
  return named;
}

std::shared_ptr<Pending> enqueueStore(Cluster &cluster, const Op &op,
                                      std::function<void()> read,
                                      std::function<void()> write) {
  auto reading = cluster.enqueue(std::move(read));
  auto writing = cluster.enqueue([&cluster, reading, write = std::move(write)] {
    cluster.complete(reading);
    write();
  });
  writing->reading = reading;
  writing->op = &op;
  return writing;
}

void addToGroup(Cluster &cluster, BulkGroups &groups,
                std::shared_ptr<Pending> work) {
  if (groups.open.size() >= 2 * kMaxGroups) {
    auto half = groups.open.begin() + kMaxGroups;
    std::for_each(groups.open.begin(), half,
                  [&](const auto &old) { cluster.complete(old); });
    groups.open.erase(groups.open.begin(), half);
  }
  groups.open.push_back(std::move(work));
}

void commitGroup(Cluster &cluster, BulkGroups &groups) {
  groups.committed.push_back(std::move(groups.open));
  groups.open.clear();
  waitGroups(cluster, groups, kMaxGroups);
}

void waitGroups(Cluster &cluster, BulkGroups &groups, std::size_t keep) {
  while (groups.committed.size() > keep) {
    for (const auto &work : groups.committed.front())
      cluster.complete(work);
    groups.committed.pop_front();
  }
}

void waitReads(Cluster &cluster, BulkGroups &groups, std::size_t keep) {
  auto &committed = groups.committed;
  std::size_t waited = committed.size() > keep ? committed.size() - keep : 0;
  for (std::size_t i = 0; i < waited; ++i)
    for (const auto &work : committed[i]) {
      cluster.complete(work->reading ? work->reading : work);
      work->isAwaited = true;
    }
  // A kernel that never waits for its writes shall not collect groups.
  auto isDone = [](const auto &work) { return work->isDone; };
  for (; waited && std::all_of(committed.front().begin(),
                               committed.front().end(), isDone);
       --waited)
    committed.pop_front();
}

void reduceGlobal(const Reduction &reduction, const ByteRange &to,
                  const std::uint8_t *from, std::size_t bytes) {
  static std::mutex oneAtATime;
  std::lock_guard lock(oneAtATime);
  reduction.apply(to.data, from, bytes);
}

} // namespace kiln::sim
