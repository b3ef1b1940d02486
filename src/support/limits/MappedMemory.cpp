// MappedMemory: /proc/self/maps, which is in the order of addresses.
#include "support/limits/MappedMemory.h"
#include "support/InputFile.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln {

namespace {
/// "7f0000000000-7f0000001000 rw-p ..."
struct Mapping {
  std::uintptr_t begin = 0, end = 0;
  bool isReadable = false, isWritable = false;
};
} // namespace

/// False where the line is none.
static bool parse(std::string_view line, Mapping &mapping) {
  const char *last = line.data() + line.size();
  auto [dash, error] = std::from_chars(line.data(), last, mapping.begin, 16);
  if (error != std::errc() || dash == last || *dash != '-')
    return false;
  auto [space, error2] = std::from_chars(dash + 1, last, mapping.end, 16);
  if (error2 != std::errc() || last - space < 3)
    return false;
  mapping.isReadable = space[1] == 'r';
  mapping.isWritable = space[2] == 'w';
  return true;
}

std::size_t mappedBytes(const void *address, std::size_t wanted,
                        MemoryUse use) {
  constexpr std::uint64_t kLimitBytes = std::uint64_t{64} << 20;
  std::string maps;
  if (readFile("/proc/self/maps", maps, kLimitBytes) != 0)
    return wanted;
  auto first = reinterpret_cast<std::uintptr_t>(address), at = first;
  std::string_view rest = maps;
  while (!rest.empty() && at - first < wanted) {
    std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    Mapping mapping;
    if (!parse(line, mapping) || mapping.end <= at)
      continue;
    bool isUsable = mapping.isReadable &&
                    (use == MemoryUse::read || mapping.isWritable);
    if (mapping.begin > at || !isUsable)
      break;
    at = mapping.end;
  }
  return std::min<std::size_t>(at - first, wanted);
}

} // namespace kiln
