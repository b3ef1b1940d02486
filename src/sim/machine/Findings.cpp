// Findings: sentences with their place, who did it, and what the caller wants
// of their ids.
#include "sim/machine/Findings.h"
#include "kiln/base/text.h"
#include "sim/machine/Machine.h"
#include "support/text/Demangle.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

SourceLine Findings::lineOf(const ptx::SourceRef &source) const {
  auto file = module_.files.find(source.file);
  if (file == module_.files.end() || source.line <= 0)
    return {};
  return {quote(file->second), static_cast<unsigned>(source.line)};
}

const ptx::Function *
Findings::functionOf(const ptx::Instruction &instruction) const {
  for (const ptx::Function &function : module_.functions)
    if (!function.body.empty() && &instruction >= &function.body.front() &&
        &instruction <= &function.body.back())
      return &function;
  return nullptr;
}

/// The name of a function as its source has it; `label` is of .debug_str.
static std::string nameOf(const ptx::Module &module, const std::string &label) {
  auto text = module.debugStrings.find(label);
  return text == module.debugStrings.end() ? std::string()
                                           : quote(demangle(text->second));
}

/// Innermost frames that a stack has, beside the kernel itself: a chain of
/// thousands is nothing to read.
static constexpr std::size_t kMostFrames = 31;

std::vector<Finding::Frame>
Findings::stackOf(const ptx::Instruction &instruction) const {
  std::vector<Finding::Frame> stack;
  if (instruction.source.inlined < 0)
    return stack;
  const ptx::Function *function = functionOf(instruction);
  if (!function)
    return stack;
  ptx::SourceRef source = instruction.source;
  // An inlined place is of an earlier .loc, so the numbers fall.
  while (source.inlined >= 0) {
    const ptx::Inlined &inlined =
        function->inlined[static_cast<std::size_t>(source.inlined)];
    if (stack.size() < kMostFrames)
      stack.push_back({nameOf(module_, inlined.name), lineOf(source)});
    source = inlined.at;
  }
  stack.push_back({quote(demangle(function->name)), lineOf(source)});
  return stack;
}

/// Whether a file is of a library that many programs use, and no program's own:
/// of the system, of CUDA's toolkit or of CUTLASS.
static bool isOfLibrary(std::string_view file) {
  if (file.starts_with("/usr/"))
    return true;
  for (std::string_view folder :
       {"/site-packages/", "/include/cutlass/", "/include/cute/",
        "/include/cub/", "/include/thrust/", "/include/cuda/",
        "/include/cccl/"})
    if (file.find(folder) != std::string_view::npos)
      return true;
  return false;
}

SourceLine Findings::sourceLine(const ptx::Instruction &instruction) const {
  SourceLine line = lineOf(instruction.source);
  if (!line.is_known())
    return {"PTX", static_cast<unsigned>(instruction.line)};
  if (instruction.source.inlined < 0)
    return line;
  std::vector<Finding::Frame> stack = stackOf(instruction);
  if (stack.empty())
    return line;
  // A kernel of a library is not where anybody looks: what it was made of is.
  const std::string &kernel = stack.back().where.file;
  bool isLibrary = isOfLibrary(kernel);
  for (const Finding::Frame &frame : stack)
    if (isLibrary ? !isOfLibrary(frame.where.file) : frame.where.file == kernel)
      return frame.where;
  return line;
}

std::string Findings::originText(const Warp &warp, std::uint32_t origin) const {
  if (!origin)
    return "";
  const Cluster::Origin &first = warp.cta().cluster().origins[origin];
  return fmt::format("; they were read at {}: {}", placeOf(*first.op),
                     first.bytes);
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

Findings::Findings(const ptx::Module &module, const LaunchConfig &config,
                   std::vector<std::pair<std::string, Symbol>> sharedVariables)
    : module_(module), config_(config),
      sharedVariables_(std::move(sharedVariables)) {
  for (auto &[name, symbol] : sharedVariables_) {
    if (const ptx::Variable *variable = module.findVariable(name);
        variable && variable->isExtern)
      dynamicShared_ = symbol.address;
    name = variableName(name);
  }
}

std::vector<Findings::Named> Findings::namedAt(std::uint32_t address) const {
  std::vector<Named> found;
  if (!dynamicShared_ || address < dynamicShared_)
    return found;
  std::uint64_t offset = address - dynamicShared_;
  for (const SharedObject &object : config_.sharedObjects) {
    auto first = static_cast<std::uint64_t>(object.offset);
    auto size = static_cast<std::uint64_t>(object.element_bytes);
    if (offset < first || offset - first >= size * object.count)
      continue;
    std::uint64_t at = offset - first;
    found.push_back({&object,
                     object.count == 1
                         ? object.name
                         : fmt::format("{}[{}]", object.name, at / size),
                     at % size});
  }
  return found;
}

std::string Findings::sharedName(std::uint32_t address) const {
  std::string names; // of all that lie over one another there
  for (const Named &named : namedAt(address))
    names += fmt::format("{}{}", names.empty() ? "" : " or ", named.name);
  if (!names.empty())
    return names;
  const auto *variable = sharedVariable(address);
  return variable ? variable->first : "";
}

std::string Findings::describeShared(std::uint32_t address) const {
  std::vector<Named> named = namedAt(address);
  if (named.size() > 1)
    return fmt::format("{} (shared address {})", sharedName(address), address);
  if (!named.empty()) {
    const auto &[object, name, byte] = named.front();
    return fmt::format("{}{} (shared address {}{})",
                       byte ? fmt::format("byte {} of ", byte) : "", name,
                       address,
                       object->line ? fmt::format(", declared at {}:{}",
                                                  object->file, object->line)
                                    : "");
  }
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
          .message = fmt::format("{}: {} [{}]", message, who,
                                 quote(op.origin->text)),
          .where = sourceLine(*op.origin),
          .ptx_line = op.origin->line,
          .cta = cta,
          .thread = thread,
          .space = object.space,
          .address = object.address,
          .buffer = object.name,
          .instruction = quote(op.origin->text),
          .stack = stackOf(*op.origin)};
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
                      const FindingObject &object, const Op *cause) {
  if (isAllowed(id))
    return;
  Cluster &cluster = warp.cta().cluster();
  bool isLast = isEnd(id);
  std::pair key(id, (cause ? cause : &op)->origin);
  auto known = cluster.told.find(key);
  if (!isLast && known != cluster.told.end()) {
    ++cluster.findings[known->second].count;
    return;
  }
  if (!isLast && !cluster.quota.admit(gradeOf(id), id, key.second->line))
    return;
  cluster.told.try_emplace(key, cluster.findings.size());
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
