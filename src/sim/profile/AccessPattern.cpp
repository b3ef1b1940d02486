// AccessPattern: sectors, banks and strides.
#include "sim/profile/AccessPattern.h"

#include <algorithm>
#include <array>

namespace kiln::sim {

static constexpr std::uint64_t kBanks = 32;
static constexpr std::uint64_t kBankBytes = kWavefrontBytes / kBanks;

static void sortOnce(std::vector<std::uint64_t> &list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
}

static void addSectors(std::vector<std::uint64_t> &list, std::uint64_t begin,
                       std::uint64_t bytes) {
  if (!bytes)
    return;
  std::uint64_t last = (begin + bytes - 1) / kSectorBytes;
  for (std::uint64_t sector = begin / kSectorBytes; sector <= last; ++sector)
    if (list.empty() || list.back() != sector)
      list.push_back(sector);
}

std::vector<std::uint64_t> sectorsOf(std::span<const LaneAccess> accesses) {
  std::vector<std::uint64_t> list;
  for (const LaneAccess &access : accesses)
    addSectors(list, access.address, access.bytes);
  sortOnce(list);
  return list;
}

std::vector<std::uint64_t> sectorsOf(std::span<const ByteRun> runs) {
  std::vector<std::uint64_t> list;
  for (const ByteRun &run : runs)
    addSectors(list, run.begin, run.bytes);
  sortOnce(list);
  return list;
}

std::uint64_t bytesOf(std::span<const LaneAccess> accesses) {
  std::uint64_t bytes = 0;
  for (const LaneAccess &access : accesses)
    bytes += access.bytes;
  return bytes;
}

static std::uint64_t ceilDiv(std::uint64_t a, std::uint64_t b) {
  return (a + b - 1) / b;
}

std::uint64_t idealSectors(std::span<const LaneAccess> accesses,
                           std::uint64_t sectors) {
  return std::min(sectors, ceilDiv(bytesOf(accesses), kSectorBytes));
}

/// Whether each lane reads what the lane reads whose number differs in that bit;
/// a lane that is not there stands in nobody's way.
static bool areAlike(std::span<const LaneAccess> accesses, int bit) {
  std::array<const LaneAccess *, kLanes> byLane{};
  for (const LaneAccess &access : accesses)
    byLane[access.lane] = &access;
  return std::all_of(accesses.begin(), accesses.end(),
                     [&](const LaneAccess &access) {
                       const LaneAccess *other = byLane[access.lane ^ bit];
                       return !other || other->address == access.address;
                     });
}

/// Wavefronts of lanes that go together.
static std::uint32_t wavefrontsOfPhase(std::span<const LaneAccess> accesses,
                                       bool countsLanes) {
  std::array<std::uint32_t, kBanks> perBank{};
  std::vector<std::uint64_t> words;
  for (const LaneAccess &access : accesses) {
    std::uint64_t end = ceilDiv(access.address + access.bytes, kBankBytes);
    for (std::uint64_t word = access.address / kBankBytes; word < end; ++word)
      words.push_back(word);
  }
  if (!countsLanes)
    sortOnce(words);
  for (std::uint64_t word : words)
    ++perBank[word % kBanks];
  return *std::max_element(perBank.begin(), perBank.end());
}

Wavefronts wavefrontsOf(std::span<const LaneAccess> accesses, AccessKind kind,
                        bool isMatrix) {
  if (accesses.empty())
    return {};
  std::uint32_t bytes = 0;
  for (const LaneAccess &access : accesses)
    bytes = std::max(bytes, access.bytes);
  std::uint64_t lanes = bytes <= 4 ? 32 : bytes <= 8 ? 16 : 8;
  bool isJoined = kind == AccessKind::load && !isMatrix && lanes < 32 &&
                  (areAlike(accesses, 1) || areAlike(accesses, 2));
  if (isJoined)
    lanes *= 2;
  std::array<std::vector<LaneAccess>, kLanes / 8> phases;
  for (const LaneAccess &access : accesses)
    phases[access.lane / lanes].push_back(access);
  Wavefronts result;
  for (const auto &phase : phases)
    result.count += wavefrontsOfPhase(phase, kind == AccessKind::atomic);
  result.ideal = std::min(
      result.count,
      static_cast<std::uint32_t>(ceilDiv(bytesOf(accesses), kWavefrontBytes)));
  return result;
}

static std::vector<std::uint64_t>
addressesOf(std::span<const LaneAccess> accesses) {
  std::vector<std::uint64_t> addresses;
  for (const LaneAccess &access : accesses)
    addresses.push_back(access.address);
  std::sort(addresses.begin(), addresses.end());
  return addresses;
}

std::uint32_t collisionsOf(std::span<const LaneAccess> accesses) {
  std::vector<std::uint64_t> addresses = addressesOf(accesses);
  auto distinct = std::unique(addresses.begin(), addresses.end());
  return static_cast<std::uint32_t>(addresses.end() - distinct);
}

std::uint32_t mostAtOneAddress(std::span<const LaneAccess> accesses) {
  std::vector<std::uint64_t> addresses = addressesOf(accesses);
  std::size_t most = 0;
  for (auto at = addresses.begin(); at != addresses.end();) {
    auto next = std::upper_bound(at, addresses.end(), *at);
    most = std::max(most, static_cast<std::size_t>(next - at));
    at = next;
  }
  return static_cast<std::uint32_t>(most);
}

std::optional<std::int64_t> strideOf(std::span<const LaneAccess> accesses,
                                     bool isMatrix) {
  constexpr int kRows = 8;
  std::optional<std::int64_t> stride;
  for (std::size_t i = 1; i < accesses.size(); ++i) {
    const LaneAccess &before = accesses[i - 1], &here = accesses[i];
    if (isMatrix && here.lane % kRows == 0)
      continue;
    auto step = static_cast<std::int64_t>(here.address - before.address);
    if (here.lane != before.lane + 1 || stride.value_or(step) != step)
      return std::nullopt;
    stride = step;
  }
  return stride;
}

std::vector<std::uint64_t> localSectors(std::span<const LaneAccess> accesses) {
  std::vector<std::uint64_t> list;
  for (const LaneAccess &access : accesses) {
    std::uint64_t end = ceilDiv(access.address + access.bytes, kBankBytes);
    for (std::uint64_t word = access.address / kBankBytes; word < end; ++word)
      list.push_back((word * kLanes + access.lane) * kBankBytes / kSectorBytes);
  }
  sortOnce(list);
  return list;
}

} // namespace kiln::sim
