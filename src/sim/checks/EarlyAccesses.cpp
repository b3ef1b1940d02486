// EarlyAccesses: one for each instruction and cell.
#include "sim/checks/EarlyAccesses.h"

#include <algorithm>
#include <tuple>

namespace kiln::sim {

void EarlyAccesses::add(std::uint64_t cell, const Access &access) {
  for (Access &known : cells_[cell])
    if (known.op == access.op && known.isWrite == access.isWrite) {
      known.bytes |= access.bytes;
      return;
    }
  cells_[cell].push_back(access);
}

void EarlyAccesses::take(const EarlyAccesses &other) {
  for (const auto &[cell, accesses] : other.cells_)
    for (const Access &access : accesses)
      add(cell, access);
}

std::vector<std::pair<std::uint64_t, EarlyAccesses::Access>>
EarlyAccesses::list() const {
  std::vector<std::pair<std::uint64_t, Access>> all;
  for (const auto &[cell, accesses] : cells_)
    for (const Access &access : accesses)
      all.emplace_back(cell, access);
  std::sort(all.begin(), all.end(), [](const auto &a, const auto &b) {
    return std::tie(a.first, a.second.op, a.second.isWrite) <
           std::tie(b.first, b.second.op, b.second.isWrite);
  });
  return all;
}

std::size_t EarlyAccesses::bytes() const {
  std::size_t total = 0;
  for (const auto &[cell, accesses] : cells_)
    total += sizeof(cell) + accesses.capacity() * sizeof(Access);
  return total;
}

} // namespace kiln::sim
