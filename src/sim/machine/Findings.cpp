// Findings: sentences with their place, who did it, and what the caller wants
// of their ids.
#include "sim/machine/Findings.h"
#include "sim/machine/Machine.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

SourceLine Findings::sourceLine(const ptx::Instruction &instruction) const {
  auto file = module_.files.find(instruction.source.file);
  if (file != module_.files.end() && instruction.source.line > 0)
    return {file->second, static_cast<unsigned>(instruction.source.line)};
  return {"PTX", static_cast<unsigned>(instruction.line)};
}

std::string Findings::placeOf(const Op &op) const {
  SourceLine line = sourceLine(*op.origin);
  return fmt::format("{}:{}", line.file, line.line);
}

const std::pair<std::string, Symbol> *
Findings::sharedVariable(std::uint64_t address) const {
  for (const auto &variable : sharedVariables_)
    if (address >= variable.second.address &&
        address - variable.second.address < variable.second.bytes)
      return &variable;
  return nullptr;
}

std::string Findings::describeShared(std::uint32_t address) const {
  const auto *variable = sharedVariable(address);
  if (!variable)
    return fmt::format("shared address {}", address);
  return fmt::format("shared address {} (byte {} of {})", address,
                     address - variable->second.address, variable->first);
}

static bool contains(const std::vector<std::string> &list,
                     const std::string &id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

Finding Findings::make(const char *id, Finding::Grade grade, const Dim3 &cta,
                       int thread, LaneMask lanes, const Op &op,
                       const std::string &message,
                       const FindingObject &object) const {
  if (contains(config_.warn, id))
    grade = Finding::Grade::warning;
  std::string who = fmt::format("thread {} of CTA ({}, {}, {})", thread, cta[0],
                                cta[1], cta[2]);
  if (countLanes(lanes) > 1)
    who += fmt::format(" and {} more of its warp", countLanes(lanes) - 1);
  return {.id = id,
          .grade = grade,
          .message = fmt::format("{}: {} [{}]", message, who, op.origin->text),
          .where = sourceLine(*op.origin),
          .ptx_line = op.origin->line,
          .cta = cta,
          .thread = thread,
          .space = object.space,
          .address = object.address,
          .buffer = object.name};
}

bool Findings::isAllowed(const std::string &id) const {
  return contains(config_.allow, id);
}

void Findings::warn(const char *id, const Warp &warp, const Op &op,
                    LaneMask lanes, const std::string &message,
                    const FindingObject &object) {
  keep(id, Finding::Grade::warning, warp, op, lanes, message, object);
}

void Findings::keep(const char *id, Finding::Grade grade, const Warp &warp,
                    const Op &op, LaneMask lanes, const std::string &message,
                    const FindingObject &object) {
  if (isAllowed(id))
    return;
  Cluster &cluster = warp.cta().cluster();
  if (cluster.told.emplace(id, op.origin->line).second)
    cluster.findings.push_back(make(id, grade, warp.cta().index(),
                                    warp.thread(lanes ? firstLane(lanes) : 0),
                                    lanes, op, message, object));
}

Finding Findings::ending(Finding finding) const {
  if (isAllowed(finding.id))
    finding.message += fmt::format(" (--allow {} cannot undo it: it ended the "
                                   "launch)",
                                   finding.id);
  if (contains(config_.warn, finding.id))
    finding.grade = Finding::Grade::warning;
  return finding;
}

void Findings::fault(const char *id, const Warp &warp, const Op &op,
                     LaneMask lanes, const std::string &message,
                     const FindingObject &object) {
  throw Fault{ending(make(id, Finding::Grade::error, warp.cta().index(),
                          warp.thread(lanes ? firstLane(lanes) : 0), lanes, op,
                          message, object))};
}

void Findings::error(const char *id, const Warp &warp, const Op &op,
                     LaneMask lanes, const std::string &message,
                     const FindingObject &object) {
  if (isAllowed(id))
    return;
  // A value that goes to memory does not change how the kernel runs: going on
  // shows the race that it mostly comes from.
  bool isEnd = std::string_view(id) != "uninitialized-store";
  if (isEnd && !contains(config_.warn, id))
    fault(id, warp, op, lanes, message, object);
  keep(id, Finding::Grade::error, warp, op, lanes, message, object);
}

} // namespace kiln::sim
