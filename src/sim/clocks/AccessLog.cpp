// AccessLog: addresses, in as few words as they need.
#include "sim/clocks/AccessLog.h"
#include "support/limits/Reserve.h"

namespace kiln::sim {

bool AccessLog::add(LoggedAccess access, const std::uint64_t *addresses,
                    std::uint64_t low, std::uint64_t high) {
  bool isSpelt = access.form == LoggedAccess::Form::scattered;
  if (isSpelt && high - low > ~std::uint32_t(0))
    return false;
  access.base = isSpelt ? low : addresses[firstLane(access.lanes)];
  std::size_t at = words_.size(), size = sizeOf(access);
  if (at + size > words_.capacity())
    reserveBounded(words_, std::max<std::size_t>(128, 2 * words_.capacity()));
  words_.resize(at + size);
  std::memcpy(&words_[at], &access, sizeof(access));
  if (!isSpelt)
    return true;
  auto *distances = reinterpret_cast<std::uint32_t *>(&words_[at + kHead]);
  if (access.lanes == kAllLanes) {
    for (int lane = 0; lane < kLanes; ++lane)
      distances[lane] = static_cast<std::uint32_t>(addresses[lane] - low);
    return true;
  }
  forEachLane(access.lanes, [&](int lane) {
    *distances++ = static_cast<std::uint32_t>(addresses[lane] - low);
  });
  return true;
}

void AccessLog::spell(const LoggedAccess &access, const Word *words,
                      Addresses &addresses) {
  const auto *distances = reinterpret_cast<const std::uint32_t *>(words);
  int first = firstLane(access.lanes);
  addresses.fill(access.base);
  forEachLane(access.lanes, [&](int lane) {
    auto &address = addresses[static_cast<std::size_t>(lane)];
    if (access.form == LoggedAccess::Form::scattered)
      address += *distances++;
    else if (access.form == LoggedAccess::Form::consecutive)
      address += static_cast<std::uint64_t>(lane - first) * access.bytes;
  });
}

} // namespace kiln::sim
