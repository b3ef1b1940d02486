// StopsMemory: writes to bytes that are watched, and phases of mbarriers.
#include "sim/debug/Stops.h"

#include <algorithm>
#include <cstring>
#include <fmt/ranges.h>

namespace kiln::sim {

using Json = nlohmann::json;

void Stops::locate(Watch &watch, Cluster &cluster) {
  if (watch.data)
    return;
  if (watch.isShared) {
    for (std::size_t rank = 0; rank < cluster.size(); ++rank) {
      Cta &cta = cluster.cta(static_cast<int>(rank));
      std::uint64_t offset = watch.address - kFirstSharedAddress;
      if (cta.index() != watch.cta ||
          !isInside(offset, watch.bytes, cta.shared.size()))
        continue;
      watch.owner = cta.shared.data();
      watch.data = watch.owner + offset;
    }
  } else {
    Region *region = cluster.machine().memory().find(watch.address);
    if (!region ||
        !isInside(watch.address - region->base, watch.bytes, region->bytes))
      return;
    watch.data = region->at(watch.address);
  }
  if (watch.data)
    watch.last.assign(watch.data, watch.data + watch.bytes);
}

static bool overlaps(std::uint64_t one, std::size_t oneBytes,
                     std::uint64_t other, std::size_t otherBytes) {
  return one < other + otherBytes && other < one + oneBytes;
}

void Stops::wrote(const ThreadAccess &event, std::uint64_t) {
  for (Watch &watch : watches_) {
    if (!watch.data)
      continue;
    for (LaneAccess access : event.accesses) {
      if (!access.isWrite || (access.owner != nullptr) != watch.isShared)
        continue;
      std::uint64_t address = access.address;
      if (access.owner) {
        if (access.owner->shared.data() != watch.owner)
          continue;
        address += kFirstSharedAddress;
      }
      if (!overlaps(address, access.bytes, watch.address, watch.bytes))
        continue;
      watch.thread = ThreadName::of(event.warp, access.lane);
      watch.writer = placeJson(event.op);
      watch.writer["unit"] = "thread";
    }
  }
}

void Stops::wrote(const AsyncAccess &event, std::uint64_t time) {
  if (!event.isWrite)
    return;
  for (Watch &watch : watches_) {
    if (!watch.data || (event.owner != nullptr) != watch.isShared ||
        (event.owner && event.owner->shared.data() != watch.owner))
      continue;
    bool isThere = false;
    std::uint64_t base = event.owner ? kFirstSharedAddress : 0;
    for (const ByteRun &run : event.runs)
      isThere |=
          overlaps(base + run.begin, run.bytes, watch.address, watch.bytes);
    constexpr std::size_t kCell = 16, kCells = 64;
    for (const PageCells &page : event.cells)
      for (std::size_t i = 0; i < kCells; ++i)
        isThere |= (page.cells >> i & 1) &&
                   overlaps(base + (page.page * kCells + i) * kCell, kCell,
                            watch.address, watch.bytes);
    if (!isThere)
      continue;
    watch.flight = placeJson(event.op);
    watch.flight["unit"] = "asynchronous unit";
    watch.flight["issued"] = time;
    watch.flightThread = ThreadName::of(
        event.warp, event.issuers ? firstLane(event.issuers) : 0);
  }
}

static std::string bytesText(const std::vector<std::uint8_t> &bytes) {
  std::string text;
  std::size_t shown = std::min<std::size_t>(bytes.size(), 16);
  for (std::size_t i = 0; i < shown; ++i)
    text += fmt::format("{}{:02x}", i ? " " : "", bytes[i]);
  return bytes.size() > shown ? text + " ..." : text;
}

void Stops::poll(std::uint64_t time) {
  for (Watch &watch : watches_) {
    if (!watch.data)
      continue;
    bool hasChanged =
        std::memcmp(watch.data, watch.last.data(), watch.bytes) != 0;
    if (!hasChanged && watch.writer.is_null())
      continue;
    std::vector<std::uint8_t> before = watch.last;
    watch.last.assign(watch.data, watch.data + watch.bytes);
    Json writer = std::exchange(watch.writer, Json());
    ThreadName thread = watch.thread;
    if (writer.is_null()) {
      writer = watch.flight;
      thread = watch.flightThread;
    }
    std::string by = "an asynchronous unit";
    if (!writer.is_null())
      by = fmt::format(
          "{}{} at {}",
          writer["unit"] == "thread" ? "" : "an asynchronous operation of ",
          threadText(thread), placeText(writer));
    note({time,
          watch.id,
          "watch",
          fmt::format(
              "{} {} written by {}: {}", watch.isShared ? "shared" : "global",
              watch.isShared ? fmt::format("address {}", watch.address)
                             : fmt::format("address {:#x}", watch.address),
              by,
              hasChanged ? fmt::format("{} became {}", bytesText(before),
                                       bytesText(watch.last))
                         : bytesText(watch.last) + ", as before"),
          thread,
          {{"before", bytesText(before)},
           {"after", bytesText(watch.last)},
           {"by", writer}}});
  }
}

void Stops::completed(const MbarrierPhase &event, Cta &cta,
                      std::uint32_t address, std::uint64_t time, const Warp *by,
                      const Op *op) {
  for (const Phase &phase : phases_) {
    std::uint32_t number = event.barrier.phase;
    if ((phase.cta && *phase.cta != cta.index()) ||
        (phase.address && phase.address != address) ||
        (phase.number && *phase.number + 1 != number))
      continue;
    Json senders = Json::array();
    for (const Op *sender : event.barrier.senders)
      senders.push_back(placeJson(*sender));
    std::string name = cta.machine().findings().describeShared(address);
    ThreadName thread{cta.index(), 0, 0};
    Json details{{"address", address},
                 {"cta", cta.index()},
                 {"name", name},
                 {"completed", number},
                 {"senders", senders}};
    std::string who = "an asynchronous operation";
    if (by && op) {
      LaneMask lanes = by->live();
      thread = ThreadName::of(*by, lanes ? firstLane(lanes) : 0);
      details["by"] = placeJson(*op);
      who =
          fmt::format("{} at {}", threadText(thread), placeText(details["by"]));
    }
    note({time, phase.id, "phase",
          fmt::format("the mbarrier {} of CTA ({}) completed phase {}; by {}",
                      name, fmt::join(cta.index(), ", "), number - 1, who),
          thread, details});
  }
}

} // namespace kiln::sim
