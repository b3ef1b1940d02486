// show_findings: findings in colour with the line of the source, numbers, and
// timelines.
#include "show_findings.h"
#include "say.h"
#include "support/text/SourceText.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/run/environment.h>

#include <csignal>
#include <fmt/format.h>
#include <sstream>
#include <unistd.h>

namespace kiln::cli {

/// A word in the colour of a grade, on a terminal that wants colours.
static std::string coloured(Finding::Grade grade, const std::string &word) {
  if (!wants_colour())
    return word;
  const char *colour = grade == Finding::Grade::error     ? "31"
                       : grade == Finding::Grade::warning ? "33"
                                                          : "36";
  return fmt::format("\x1b[1;{}m{}\x1b[0m", colour, word);
}

/// That line of a file, for people; empty where there is none to show.
static std::string line_of(const SourceLine &where) {
  const std::vector<std::string> &lines = sourceLines(where.file);
  return where.line && where.line <= lines.size() ? lines[where.line - 1] : "";
}

void show_finding(const Finding &finding) {
  std::string place;
  if (finding.where.is_known())
    place = fmt::format(" at {}:{}", finding.where.file, finding.where.line);
  Finding plain = finding;
  plain.where = {};
  std::string text = plain.to_string();
  std::string head = fmt::format("{} {}", name(finding.grade), finding.id);
  text.erase(0, head.size());
  std::string word = fmt::format("{:<10}", name(finding.grade));
  std::string shown = coloured(finding.grade, word);
  std::fwrite(shown.data(), 1, shown.size(), stdout);
  say(" {}{}{}\n", finding.id, place, text);
  if (!isatty(STDOUT_FILENO))
    return;
  if (std::string line = line_of(finding.where); !line.empty())
    say("{:>10} | {}\n", finding.where.line, line);
}

void show_left_out(const Report &all) {
  if (all.findings_left_out)
    report("findings", "{}", findings_left_out_text(all.findings_left_out));
}

void show_failure(int signal) {
  if (signal)
    say("FAIL the launch was interrupted by {}\n",
        signal == SIGINT ? "SIGINT" : "SIGTERM");
  else
    say("FAIL a check of the simulator found an error\n");
}

void show_stats(const LaunchResult &result) {
  LaunchResult numbers = result;
  numbers.findings.clear();
  std::istringstream lines(numbers.to_string());
  for (std::string line; std::getline(lines, line);)
    say("{:<10} {}\n", "stats", line);
}

void show_timeline(const Timeline &timeline, const std::string &path) {
  if (path == "-") {
    say("{}", timeline.to_table());
    return;
  }
  write_file(path, {timeline.to_trace()});
  say("{:<10} {}\n", "timeline", path);
}

} // namespace kiln::cli
