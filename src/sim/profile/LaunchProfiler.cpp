// LaunchProfiler: add clusters up, and name the instructions.
#include "sim/profile/LaunchProfiler.h"
#include "sim/machine/Machine.h"
#include "sim/profile/AccessPattern.h"

namespace kiln::sim {

LaunchProfiler::LaunchProfiler(const Machine &machine) : machine_(machine) {
  for (const Op &op : machine.code().ops) {
    auto count = op.row ? op.row->traits.operations : nullptr;
    operations_.push_back(count && op.origin ? count(*op.origin)
                                             : Operations());
  }
}

void LaunchProfiler::watch(Cluster &cluster) const {
  auto profiler = std::make_unique<Profiler>(machine_.code(), operations_);
  cluster.watchers().add(*profiler);
  cluster.profiler = std::move(profiler);
}

void LaunchProfiler::add(Watcher &profiler) {
  cost_.add(static_cast<Profiler &>(profiler).take());
}

std::shared_ptr<const Profile>
LaunchProfiler::conclude(ProfiledOccupancy occupancy, bool isFinished) const {
  auto profile = std::make_shared<Profile>();
  const LaunchConfig &config = machine_.config();
  profile->grid = config.grid;
  profile->block = config.block;
  profile->cluster = config.cluster;
  profile->is_finished = isFinished;
  profile->device = config.device;
  profile->occupancy = std::move(occupancy);
  SectorUse::Totals totals = cost_.sectors.totals();
  profile->traffic = {.requested_read = cost_.sectorsRead * kSectorBytes,
                      .requested_written = cost_.sectorsWritten * kSectorBytes,
                      .read_once = totals.once * kSectorBytes,
                      .read_again = totals.again * kSectorBytes,
                      .written = totals.written * kSectorBytes};
  const std::vector<Op> &ops = machine_.code().ops;
  const Findings &findings = machine_.findings();
  for (std::size_t i = 0; i < cost_.instructions.size(); ++i) {
    const InstructionCost &cost = cost_.instructions[i];
    const ptx::Instruction *origin = ops[i].origin;
    if (!cost.counts[Count::executions] || !origin)
      continue;
    profile->instructions.push_back({.ptx_line = origin->line,
                                     .where = findings.sourceLine(*origin),
                                     .stack = findings.stackOf(*origin),
                                     .text = origin->text,
                                     .counts = cost.counts,
                                     .access = cost.access,
                                     .tensor = cost.tensor});
  }
  return profile;
}

} // namespace kiln::sim
