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
                     std::string_view id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

Finding::Grade Findings::gradeOf(FindingId id) const {
  const Explanation &row = rowOf(id);
  bool isTurnedDown = contains(config_.warn, row.id);
  return std::min(row.grade, isTurnedDown ? Finding::Grade::warning
                                          : Finding::Grade::error);
}

Finding Findings::make(FindingId id, const Dim3 &cta, int thread,
                       LaneMask lanes, const Op &op, const std::string &message,
                       const FindingObject &object) const {
  std::string who = fmt::format("thread {} of CTA ({}, {}, {})", thread, cta[0],
                                cta[1], cta[2]);
  if (countLanes(lanes) > 1)
    who += fmt::format(" and {} more of its warp", countLanes(lanes) - 1);
  return {.id = std::string(rowOf(id).id),
          .grade = gradeOf(id),
          .message = fmt::format("{}: {} [{}]", message, who, op.origin->text),
          .where = sourceLine(*op.origin),
          .ptx_line = op.origin->line,
          .cta = cta,
          .thread = thread,
          .space = object.space,
          .address = object.address,
          .buffer = object.name};
}

bool Findings::isAllowed(FindingId id) const {
  return contains(config_.allow, rowOf(id).id);
}

bool Findings::isEnd(FindingId id) const {
  return rowOf(id).ends_launch && !isAllowed(id) &&
         !contains(config_.warn, rowOf(id).id);
}

Finding Findings::ending(FindingId id, Finding finding) const {
  finding.id = rowOf(id).id;
  finding.grade = gradeOf(id);
  if (isAllowed(id)) {
    finding.grade = Finding::Grade::note;
    finding.message += fmt::format("\n  It is allowed (--allow {}), and the "
                                   "launch ended here",
                                   finding.id);
  }
  return finding;
}

void Findings::report(FindingId id, const Warp &warp, const Op &op,
                      LaneMask lanes, const std::string &message,
                      const FindingObject &object) {
  if (isAllowed(id))
    return;
  Cluster &cluster = warp.cta().cluster();
  bool isLast = isEnd(id);
  if (!isLast && !cluster.told.emplace(rowOf(id).id, op.origin->line).second)
    return;
  Finding finding =
      make(id, warp.cta().index(), warp.thread(lanes ? firstLane(lanes) : 0),
           lanes, op, message, object);
  if (isLast)
    throw Fault{std::move(finding)};
  cluster.findings.push_back(std::move(finding));
}

void Findings::fault(FindingId id, const Warp &warp, const Op &op,
                     LaneMask lanes, const std::string &message,
                     const FindingObject &object) {
  report(id, warp, op, lanes, message, object);
  throw LeftOut{};
}

} // namespace kiln::sim
