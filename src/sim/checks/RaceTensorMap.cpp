// RaceTensorMap: tensor maps that a kernel changes.
//
// Copies read maps through the tensormap proxy. A change needs
// fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) by who
// made it, and .acquire of the map's address by the thread that uses it, or by
// one that hands it on (Triton acquires in one warp, and all pass a barrier).
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

template <typename Body>
void RaceDetector::forEachMapWrite(std::uint64_t address, Body &&body) {
  if (!isGlobalAddress(address)) // a parameter or a constant: nobody changes it
    return;
  restoreAll();
  for (std::uint64_t at = address; at < address + kTensorMapBytes;
       at += Shadow::kCellBytes)
    global_.cells.peek(at / Shadow::kCellBytes, [&](const Record &record) {
      if (record.isWrite())
        body(record);
    });
}

void RaceDetector::releaseTensorMaps(Warp &warp) {
  releasedMaps_[warp.clock.lanes] = warp.clock.now;
}

void RaceDetector::acquireTensorMap(Warp &warp, const Op &op, int lane,
                                    std::uint64_t address) {
  Access read = plain(warp, op, /*isWrite=*/false);
  read.issuers = read.record.lanes = LaneMask(1) << lane;
  read.record.bytes = 0xffff;
  auto &acquired = acquiredMaps_[address];
  forEachMapWrite(address, [&](const Record &record) {
    auto isKnown = [&](const AcquiredMap &one) {
      return one.write.isSameAccess(record) &&
             one.acquire.component == read.record.component &&
             one.acquire.lanes == read.record.lanes;
    };
    if (judge(read, record, record.bytes) != Verdict::unordered &&
        std::none_of(acquired.begin(), acquired.end(), isKnown))
      acquired.push_back({record, read.record});
  });
}

void RaceDetector::useTensorMap(Warp &warp, const Op &op, int lane,
                                std::uint64_t address) {
  Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
  access.record.component = warp.clock.lanes;
  access.record.lanes = access.issuers;
  auto isAcquired = [&](const Record &write) {
    const auto &acquired = acquiredMaps_[address];
    return std::any_of(
        acquired.begin(), acquired.end(), [&](const AcquiredMap &one) {
          return one.write.component == write.component &&
                 one.write.time == write.time &&
                 isOrderedDeFacto(access, one.acquire, 0xffff, View::generic);
        });
  };
  forEachMapWrite(address, [&](const Record &record) {
    bool isCopied =
        machine_.code().ops[record.op].effect->kind == EffectKind::mapCopy;
    const char *missing = nullptr;
    if (!isCopied && releasedMaps_[record.component] < record.time)
      missing = "fence.proxy.tensormap::generic.release behind it";
    else if (!isAcquired(record))
      missing = "fence.proxy.tensormap::generic.acquire of the map before this";
    if (!missing || isTold(FindingId::tensormapFence, access, record))
      return;
    tell(FindingId::tensormapFence, access, record,
         fmt::format("this uses the tensor map at {:#x} ({}), which {} writes; "
                     "missing: {}",
                     address, machine_.memory().describe(address),
                     describe(record), missing),
         {"global", address, ""});
  });
}

} // namespace kiln::sim
