// Stop: ends of a launch that does not end by itself: its time is up, the
// caller wants it, or a loop of it repeats itself.
#include "sim/Ledger.h"
#include "sim/LoopWatch.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln::sim {

void Machine::reportStop(const std::vector<Cluster *> &clusters,
                         std::uint64_t done) {
  std::vector<Line> lines = linesOf(*this, clusters);
  bool isCancelled = config_.cancel && *config_.cancel;
  std::uint64_t ctas =
      std::uint64_t(config_.grid[0]) * config_.grid[1] * config_.grid[2];
  std::string id = "interrupted";
  std::string message =
      fmt::format("the launch was interrupted after {:.1f} s", elapsedS());
  if (!isCancelled) {
    id = "time-limit";
    message = fmt::format("the launch has run for {:.1f} s and is not done; "
                          "the limit is {} s (--time-limit)",
                          elapsedS(), config_.timeLimitS);
  }
  message += fmt::format("; {} of {} CTAs are done", done, ctas);
  if (!lines.empty())
    message += ". Where the others are:" + showAll(*this, lines);
  Finding finding{.id = id, .message = message};
  if (!lines.empty()) {
    const ptx::Instruction &first = *lines.front().wait.op->origin;
    finding.where = sourceLine(first);
    finding.ptx_line = first.line;
    finding.cta = lines.front().cta;
  }
  end(std::move(finding));
}

void Machine::reportEndless(Warp &warp, const LoopWatch &loop) {
  const Group &group = warp.group();
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
                    : fmt::format("nobody is left who could change what it "
                                  "reads at {}",
                                  places(*this, polls));
  const char *id = "endless-loop";
  Finding finding = makeFinding(
      id, Finding::Grade::error, warp.cta().index(),
      warp.thread(firstLane(group.lanes)), group.lanes, head,
      fmt::format("the loop of {} gets nowhere: what decides about its next "
                  "round{} is as it was {} before, and {}",
                  places(*this, loop.loop(warp.code())), decides,
                  loop.period() == 1 ? "one round"
                                     : fmt::format("{} rounds", loop.period()),
                  reads),
      {});
  std::vector<Line> lines = linesOf(*this, {&warp.cta().cluster()});
  finding.message += "\n  Where everyone is:" + showAll(*this, lines);
  end(std::move(finding));
}

} // namespace kiln::sim
