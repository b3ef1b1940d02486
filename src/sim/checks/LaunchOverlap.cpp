// LaunchOverlap: what a dependent launch does too early, against what the
// launches do that it may overlap.
//
// It asks for no overlap in this run: whatever the launch does without knowing
// of the other's end might have come before it.
#include "sim/checks/LaunchRaces.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "support/text/Demangle.h"

#include <fmt/format.h>

namespace kiln::sim {

static std::string kernelOf(const Machine &machine) {
  return demangle(machine.code().functions.front().function->name);
}

const LaunchRaces::Touches *LaunchRaces::find(std::uint64_t cell) const {
  auto page = pages_.find(cell / Shadow::kPageCells);
  return page == pages_.end() ? nullptr
                              : &page->second.cells[cell % Shadow::kPageCells];
}

bool LaunchRaces::isFlagged(const LaunchRaces &earlier) const {
  for (const auto &[cell, access] : early_.list()) {
    bool isWait =
        access.isStrong && !access.isWrite &&
        machine_.code().ops[access.op].effect->kind == EffectKind::load;
    const Touches *touches = isWait ? earlier.find(cell) : nullptr;
    if (touches && touches->write.cta && touches->write.isStrong &&
        (touches->write.bytes & access.bytes))
      return true;
  }
  return false;
}

void LaunchRaces::compareWith(LaunchRaces &earlier) {
  if (early_.list().empty())
    return;
  earlier.restoreAll();
  if (isFlagged(earlier))
    return;
  for (const auto &[cell, access] : early_.list()) {
    const Touches *touches = earlier.find(cell);
    if (!touches)
      continue;
    if (std::uint16_t overlap = overlapOf(touches->write, access))
      reportEarly(earlier, cell, access, overlap, touches->write, true);
    else if (access.isWrite && (overlap = overlapOf(touches->read, access)))
      reportEarly(earlier, cell, access, overlap, touches->read, false);
  }
}

/// Why the two may overlap, and what keeps them from it.
static std::string reasonOf(const Machine &mine, const Machine &earlier) {
  std::string kernel = kernelOf(earlier);
  const char *wait = "griddepcontrol.wait (cudaGridDependencySynchronize)";
  if (!earlier.gridControl().hasTriggered())
    return fmt::format(
        "{} never lets its dependents begin, so that this launch "
        "begins when the CTAs of {} have ended, which does not "
        "make their accesses visible; missing: {} before this",
        kernel, kernel, wait);
  return fmt::format("the launch of {} may begin before that of {} has ended; "
                     "missing: {} before this",
                     kernelOf(mine), kernel, wait);
}

void LaunchRaces::reportEarly(const LaunchRaces &earlier, std::uint64_t cell,
                              const Early &access, std::uint16_t overlap,
                              const Touch &other, bool isOtherWrite) {
  FindingId id = earlier.machine_.gridControl().hasTriggered()
                     ? FindingId::pdlWait
                     : FindingId::pdlWaitImplicit;
  const Op &op = machine_.code().ops[access.op];
  const ptx::Instruction &origin =
      *earlier.machine_.code().ops[other.op].origin;
  SourceLine line = earlier.machine_.findings().sourceLine(origin);
  // Their files have numbers of their own.
  PlacePair places = {placesOf(machine_, access.op, access.op).first,
                      placesOf(earlier.machine_, other.op, other.op).first};
  if (machine_.findings().isAllowed(id) || told_.isTold(machine_, id, places))
    return;
  auto ctaOf = [](const Machine &machine, std::uint32_t number) {
    const Dim3 &grid = machine.config().grid;
    return Dim3{number % grid[0], number / grid[0] % grid[1],
                number / grid[0] / grid[1]};
  };
  Dim3 itsCta = ctaOf(earlier.machine_, other.cta - 1);
  std::string actor = fmt::format(
      "thread {} of CTA ({}, {}, {}) of {}", std::uint32_t(other.thread),
      itsCta[0], itsCta[1], itsCta[2], kernelOf(earlier.machine_));
  std::uint64_t address = cell * Shadow::kCellBytes +
                          static_cast<unsigned>(std::countr_zero(overlap));
  std::string message = fmt::format(
      "this {} global address {:#x} ({}), which {} at {}:{} {}; {}",
      access.isWrite ? "writes" : "reads", address,
      machine_.memory().describe(address), actor, line.file, line.line,
      isOtherWrite ? "writes" : "reads", reasonOf(machine_, earlier.machine_));
  Region *region = machine_.memory().find(address);
  told_.findings.push_back(
      {id,
       machine_.findings().make(
           id, ctaOf(machine_, access.cta), static_cast<int>(access.thread), 0,
           op, message,
           {"global", address, region ? region->name : std::string()}),
       places});
  told_.findings.back().finding.other =
      Finding::Other{actor, line, origin.line, isOtherWrite,
                     earlier.machine_.findings().stackOf(origin)};
}

} // namespace kiln::sim
