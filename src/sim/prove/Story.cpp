// Story: one line for those who go on without a break.
#include "sim/prove/Story.h"
#include "sim/program/Effect.h"
#include "support/Error.h"

#include <algorithm>
#include <charconv>

namespace kiln::sim {

static constexpr std::size_t kMostLines = 20;

std::string nameOf(const Search &search, const Process &process) {
  if (process.isWork)
    return fmt::format("{}#{}", nameOf(search, search.process(process.issuer)),
                       process.number + 1);
  return fmt::format("cta{}.warp{}.lane{}", process.cta, process.warp,
                     process.lane);
}

std::vector<std::string> namesOf(const Search &search,
                                 std::span<const std::size_t> order) {
  std::vector<std::string> names;
  for (std::size_t step : order)
    names.push_back(
        nameOf(search, search.process(search.trace()[step].process)));
  return names;
}

/// The number behind `word` at the beginning of a text, which is shortened.
static std::uint32_t takeNumber(std::string_view &text, std::string_view word,
                                const std::string &name) {
  std::uint32_t number = 0;
  if (text.starts_with(word)) {
    text.remove_prefix(word.size());
    auto [end, error] =
        std::from_chars(text.data(), text.data() + text.size(), number);
    if (error == std::errc()) {
      text.remove_prefix(static_cast<std::size_t>(end - text.data()));
      return number;
    }
  }
  userError("'{}' names nobody who can be chosen; names are like "
            "cta0.warp2.lane0 and cta0.warp2.lane0#3",
            name);
}

void replayNames(Search &search, const std::vector<std::string> &names) {
  std::vector<int> path;
  for (const std::string &name : names) {
    std::string_view text = name;
    Process lanes{.cta = takeNumber(text, "cta", name)};
    lanes.warp = static_cast<int>(takeNumber(text, ".warp", name));
    lanes.lane = static_cast<int>(takeNumber(text, ".lane", name));
    int number = search.numberOf(lanes);
    while (!text.empty())
      number = search.numberOf({.isWork = true,
                                .issuer = number,
                                .number = takeNumber(text, "#", name) - 1});
    path.push_back(number);
  }
  search.replay(path);
}

static std::string placeOf(const Op &op) {
  const ptx::Instruction &instruction = *op.origin;
  return fmt::format("PTX:{}: {}", instruction.line, instruction.fullOpcode());
}

static std::string whoIs(const Search &search, const Process &process) {
  if (!process.isWork)
    return fmt::format(
        "CTA {}, warp {}{}", process.cta, process.warp,
        process.lane ? fmt::format(", from lane {} on", process.lane) : "");
  return fmt::format("work number {} of {}", process.number + 1,
                     whoIs(search, search.process(process.issuer)));
}

std::vector<std::string> tellStory(const Search &search,
                                   std::span<const std::size_t> order,
                                   const LaunchResult &result) {
  const Trace &trace = search.trace();
  std::vector<std::string> lines;
  for (std::size_t first = 0; first < order.size();) {
    std::size_t last = first;
    int process = trace[order[first]].process;
    while (last + 1 < order.size() && trace[order[last + 1]].process == process)
      ++last;
    std::string line = whoIs(search, search.process(process));
    const Op *from = trace[order[first]].op, *to = trace[order[last]].op;
    if (!from)
      line += " is done";
    else if (first == last)
      line += fmt::format(" executes {}", placeOf(*from));
    else
      line += fmt::format(" goes on from {} to {} ({} steps)", placeOf(*from),
                          to ? placeOf(*to) : "its end", last - first + 1);
    lines.push_back(std::move(line));
    first = last + 1;
  }
  std::size_t ending = 0;
  for (const Finding &finding : result.findings)
    ending += finding.grade == Finding::Grade::error;
  std::size_t most = kMostLines - std::min<std::size_t>(ending, 3) - 1;
  if (lines.size() > most) {
    // What matters comes last.
    std::size_t left = lines.size() - most;
    lines.erase(lines.begin(),
                lines.begin() + static_cast<std::ptrdiff_t>(left));
    lines.insert(lines.begin(), fmt::format("({} turns before)", left));
  }
  for (const Finding &finding : result.findings)
    if (finding.grade == Finding::Grade::error && lines.size() < kMostLines)
      lines.push_back(
          fmt::format("{}: {}", finding.id,
                      finding.message.substr(0, finding.message.find('\n'))));
  return lines;
}

} // namespace kiln::sim
