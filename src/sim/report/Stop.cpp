// Stop: ends of a launch that does not end by itself: its time is up, the
// caller wants it, or a loop of it repeats itself.
#include "sim/machine/LoopWatch.h"
#include "sim/report/Endings.h"
#include "sim/report/Ledger.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln::sim {

Finding describeStop(Machine &machine, const std::vector<Cluster *> &clusters,
                     std::uint64_t done) {
  const LaunchConfig &config = machine.config();
  std::vector<Line> lines = linesOf(machine, clusters);
  bool isCancelled = config.cancel && *config.cancel;
  std::uint64_t ctas =
      std::uint64_t(config.grid[0]) * config.grid[1] * config.grid[2];
  FindingId id = FindingId::interrupted;
  std::string message = fmt::format("the launch was interrupted after {:.1f} s",
                                    machine.elapsedS());
  if (std::uint64_t bytes = machine.bytesBeyond(); bytes && !isCancelled) {
    id = FindingId::memoryLimit;
    message = fmt::format("the launch took the memory of this process to {} "
                          "bytes after {:.1f} s; the limit is {} bytes "
                          "(--memory-limit)",
                          bytes, machine.elapsedS(), config.memory_limit_bytes);
  } else if (!isCancelled) {
    id = FindingId::timeLimit;
    message = fmt::format("the launch has run for {:.1f} s and is not done; "
                          "the limit is {} s (--time-limit)",
                          machine.elapsedS(), config.time_limit_s);
  }
  message += fmt::format("; {} of {} CTAs are done", done, ctas);
  if (!lines.empty())
    message += ". Where the others are:" + showAll(machine, lines);
  Finding finding{.id = {}, .message = message};
  if (!lines.empty()) {
    const ptx::Instruction &first = *lines.front().wait.op->origin;
    finding.where = machine.findings().sourceLine(first);
    finding.ptx_line = first.line;
    finding.cta = lines.front().cta;
    finding.waits = waitsOf(machine, clusters, lines);
  }
  return machine.findings().ending(id, std::move(finding));
}

Finding describeEndless(Warp &warp, const LoopWatch &loop) {
  Machine &machine = warp.machine();
  // Those that go round together have had their turns.
  bool isCircle = loop.placeInCircle(warp).has_value();
  const Group &group = isCircle ? warp.groups().front() : warp.group();
  const Op &head = warp.code().ops[loop.head()];
  std::vector<std::string> registers =
      loop.registers(warp, firstLane(group.lanes));
  std::size_t shown = std::min(registers.size(), kPlaces);
  std::string decides;
  if (shown)
    decides = fmt::format(
        " ({}{})",
        fmt::join(registers.begin(),
                  registers.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
        registers.size() > shown ? ", ..." : "");
  std::vector<const Op *> polls = loop.polls(warp.code());
  std::string reads =
      polls.empty() ? "it reads nothing that another thread could change"
      : isCircle
          ? fmt::format("so is everything that it reads at {}, and all warps "
                        "that are left go round like that, or wait",
                        places(machine, polls))
          : fmt::format("nobody is left who could change what it "
                        "reads at {}",
                        places(machine, polls));
  std::string why = fmt::format(
      "gets nowhere: what decides about its next round{} is as it was {} "
      "before, and {}",
      decides,
      loop.period() == 1 ? "one round"
                         : fmt::format("{} rounds", loop.period()),
      reads);
  if (!loop.period())
    why = "has no way out: no instruction that ends a thread can be reached "
          "from it";
  FindingId id = FindingId::endlessLoop;
  Finding finding = machine.findings().make(
      id, warp.cta().index(), warp.thread(firstLane(group.lanes)), group.lanes,
      head,
      fmt::format("the loop of {} {}", places(machine, loop.loop(warp.code())),
                  why),
      {});
  std::vector<Line> lines = linesOf(machine, {&warp.cta().cluster()});
  finding.message += "\n  Where everyone is:" + showAll(machine, lines);
  return machine.findings().ending(id, std::move(finding));
}

} // namespace kiln::sim
