// Report: what came of a launch, in words.
#include "kiln/run/device.h"
#include "kiln/check/run_status.h"
#include "kiln/base/text.h"

#include <fmt/format.h>

namespace kiln {

const char *name(Finding::Grade grade) {
  return grade == Finding::Grade::error     ? "error"
         : grade == Finding::Grade::warning ? "warning"
                                            : "note";
}

std::string Finding::to_string() const {
  std::string place;
  if (where.is_known())
    place = fmt::format(" at {}:{}", where.file, where.line);
  std::string text =
      fmt::format("{} {}{}: {}", name(grade), id, place, message);
  if (count > 1)
    text += fmt::format(" ({} times)", count);
  auto add = [&](const std::vector<Frame> &frames, const char *first) {
    for (const Frame &frame : frames)
      text += fmt::format("\n  {} {}:{}{}{}",
                          &frame == &frames.front() ? first : "inlined at",
                          frame.where.file, frame.where.line,
                          frame.function.empty() ? "" : ", ", frame.function);
  };
  add(stack, "in");
  if (other)
    add(other->stack, "the other access in");
  return printable(text);
}

std::string Finding::identity() const {
  auto place = [](const SourceLine &line, int ptxLine) {
    return line.is_known() ? fmt::format("{}:{}", line.file, line.line)
                           : fmt::format("PTX:{}", ptxLine);
  };
  std::string text = fmt::format("{}|{}", id, place(where, ptx_line));
  if (other)
    text += "|" + place(other->where, other->ptx_line);
  // What has no place is its sentence.
  if (!where.is_known() && !ptx_line)
    text += "|" + message;
  return text;
}

/// Average time of a warp instruction, by the clock of the simulation.
static double nsPerInstruction(const LaunchResult &result) {
  return result.instructions
             ? result.time_us * 1e3 / static_cast<double>(result.instructions)
             : 0;
}

std::string findings_left_out_text(std::uint64_t count) {
  return fmt::format("{} more {} found and left out (--max-findings)", count,
                     count == 1 ? "finding was" : "findings were");
}

std::string LaunchResult::to_string() const {
  std::string text;
  for (const Finding &finding : findings)
    text += finding.to_string() + '\n';
  if (findings_left_out)
    text += findings_left_out_text(findings_left_out) + '\n';
  if (registers)
    text += fmt::format("{} registers per thread at entry ({})\n", registers,
                        registers_from);
  text += fmt::format("{} warp instructions in {:.1f} ms, {:.1f} ns each\n",
                      instructions, time_us / 1e3, nsPerInstruction(*this));
  double total = 0;
  for (const LaunchStats::Cost &cost : stats.costs)
    total += cost.time_us;
  for (const LaunchStats::Cost &cost : stats.costs) {
    text += fmt::format("{:<8} {:5.1f}% {:10.1f} ms", cost.name,
                        total > 0 ? 100 * cost.time_us / total : 0,
                        cost.time_us / 1e3);
    if (cost.instructions)
      text += fmt::format(
          " {:12} instructions, {:.1f} ns each", cost.instructions,
          cost.time_us * 1e3 / static_cast<double>(cost.instructions));
    text += '\n';
  }
  if (!stats.costs.empty())
    text += fmt::format("{} bytes of shadow memory\n", stats.shadow_bytes);
  return text;
}

static std::string counted(std::uint64_t count, const char *one,
                           const char *many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

void RunStatus::count_unsupported(std::string_view name) {
  ++unsupported;
  std::string_view known(unsupported_names);
  std::string list = fmt::format(", {}, ", known);
  if (list.find(fmt::format(", {}, ", name)) != std::string::npos)
    return;
  std::string more = fmt::format("{}{}", known.empty() ? "" : ", ", name);
  if (known.size() + more.size() < sizeof(unsupported_names))
    more.copy(unsupported_names + known.size(), more.size());
}

std::string RunStatus::to_string() const {
  if (magic != kMagic)
    return "the program has used no CUDA library of Kiln: it launched nothing, "
           "or its runtime is linked statically (nvcc -cudart shared)";
  std::string text = fmt::format(
      "{}, {} checked: {}, {}", counted(launches, "launch", "launches"),
      checked.load(), counted(errors, "error", "errors"),
      counted(warnings, "warning", "warnings"));
  if (refused)
    text += fmt::format("; {} refused", refused.load());
  if (failed)
    text += fmt::format("; {} failed", counted(failed, "call", "calls"));
  if (captured)
    text += fmt::format("; {} captured", captured.load());
  if (repeated)
    text += fmt::format("; {} not run again: kernel, arguments and memory were "
                        "those of an earlier one",
                        counted(repeated, "launch was", "launches were"));
  if (ended)
    text += fmt::format("; {} ended by an error", ended.load());
  if (host_calls)
    text += fmt::format("; {} of cuBLAS ran on the host, where {} memory accesses "
                        "were checked and nothing else",
                        counted(host_calls, "call", "calls"),
                        host_calls == 1 ? "its" : "their");
  // The page is the program's to write: it need not end with a zero.
  if (unsupported)
    text += fmt::format(
        "; {} not supported: {}",
        counted(unsupported, "call was", "calls were"),
        std::string_view(unsupported_names,
                         strnlen(unsupported_names,
                                 sizeof(unsupported_names))));
  return text;
}

} // namespace kiln
