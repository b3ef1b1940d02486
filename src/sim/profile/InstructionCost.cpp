// InstructionCost: sums, and what holds for all requests.
#include "sim/profile/InstructionCost.h"

#include <algorithm>

namespace kiln::sim {

void InstructionCost::addShape(const AccessShape &more) {
  if (!more.alignment)
    return;
  if (!access.alignment) {
    access = more;
    return;
  }
  access.alignment = std::min(access.alignment, more.alignment);
  if (access.bytes != more.bytes)
    access.bytes = 0;
  if (access.stride != more.stride)
    access.stride.reset();
  auto isWorse = [](const AccessShape &a, const AccessShape &b) {
    return std::uint64_t(a.worst_wavefronts) * std::max(b.worst_ideal, 1u) >
           std::uint64_t(b.worst_wavefronts) * std::max(a.worst_ideal, 1u);
  };
  if (isWorse(more, access)) {
    access.worst_wavefronts = more.worst_wavefronts;
    access.worst_ideal = more.worst_ideal;
  }
  access.most_collisions =
      std::max(access.most_collisions, more.most_collisions);
}

void InstructionCost::add(const InstructionCost &more) {
  counts.add(more.counts);
  addShape(more.access);
  for (const auto &[shape, count] : more.tensor)
    tensor[shape] += count;
}

void LaunchCost::add(const LaunchCost &more) {
  instructions.resize(std::max(instructions.size(), more.instructions.size()));
  for (std::size_t i = 0; i < more.instructions.size(); ++i)
    if (more.instructions[i].counts[Count::executions])
      instructions[i].add(more.instructions[i]);
  sectors.add(more.sectors);
  sectorsRead += more.sectorsRead;
  sectorsWritten += more.sectorsWritten;
}

} // namespace kiln::sim
