// OrderTensorMap: tensor maps that a kernel changes.
//
// Copies read maps through the tensormap proxy. A change needs
// fence.proxy.tensormap::generic.release (or tensormap.cp_fenceproxy) by who
// made it, and .acquire of the map's address by the warp that uses it.
#include "sim/Machine.h"
#include "sim/Order.h"
#include "sim/TensorMapImage.h"

#include <fmt/format.h>

namespace kiln::sim {

template <typename Body>
void HappensBefore::forEachMapWrite(std::uint64_t address, Body &&body) {
  if (address < kGlobalBase) // a parameter or a constant: nobody changes it
    return;
  for (std::uint64_t at = address; at < address + kTensorMapBytes;
       at += Shadow::kCellBytes)
    global_.cells.peek(at / Shadow::kCellBytes, [&](const Record &record) {
      if (record.isWrite())
        body(record);
    });
}

void HappensBefore::releaseTensorMaps(Warp &warp) {
  releasedMaps_[warp.clock.lanes] = warp.clock.now;
}

void HappensBefore::acquireTensorMap(Warp &warp, const Op &op, int lane,
                                     std::uint64_t address) {
  Access read = plain(warp, op, /*isWrite=*/false);
  read.issuers = read.record.lanes = LaneMask(1) << lane;
  forEachMapWrite(address, [&](const Record &record) {
    if (judge(read, record, record.bytes) != Verdict::unordered)
      acquiredMaps_[address].insert(
          {warp.clock.lanes, record.component, record.time});
  });
}

void HappensBefore::useTensorMap(Warp &warp, const Op &op, int lane,
                                 std::uint64_t address) {
  forEachMapWrite(address, [&](const Record &record) {
    bool isCopied = machine_.code().ops[record.op].origin->has("cp_fenceproxy");
    const char *missing = nullptr;
    if (!isCopied && releasedMaps_[record.component] < record.time)
      missing = "fence.proxy.tensormap::generic.release behind it";
    else if (!acquiredMaps_[address].contains(
                 {warp.clock.lanes, record.component, record.time}))
      missing = "fence.proxy.tensormap::generic.acquire of the map before this";
    Access access{.warp = &warp, .op = &op, .issuers = LaneMask(1) << lane};
    if (!missing || isTold("proxy-fence", access, record))
      return;
    tell("proxy-fence", true, access, record,
         fmt::format("this uses the tensor map at {:#x} ({}), which {} writes; "
                     "missing: {}",
                     address, machine_.memory().describe(address),
                     describe(record), missing),
         {"global", address, ""});
  });
}

} // namespace kiln::sim
