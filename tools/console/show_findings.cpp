// show_findings: findings in colour with the line of the source, numbers, and
// timelines.
#include "show_findings.h"
#include "say.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/base/text.h>
#include <kiln/run/environment.h>

#include <csignal>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <set>
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

/// Whether a file is likely a program: a kernel's debug information names
/// files, and whoever wrote it may have named any.
static bool is_source(const std::string &file) {
  static const std::set<std::string> kinds = {
      ".c",   ".cc",  ".cpp", ".cu",   ".cuh", ".cxx", ".h",
      ".hpp", ".inc", ".inl", ".mlir", ".ptx", ".pyx", ".py"};
  return kinds.count(std::filesystem::path(file).extension().string()) > 0;
}

/// That line of a file, for people; empty where there is none to show.
static std::string line_of(const SourceLine &where) {
  constexpr std::uint64_t most_bytes = 16 << 20;
  // Findings of one kernel are of the same few files.
  static std::map<std::string, std::string> texts;
  if (!is_source(where.file))
    return "";
  auto [text, is_new] = texts.try_emplace(where.file);
  if (is_new)
    try {
      text->second = read_file(where.file, most_bytes);
    } catch (const Error &) {
    }
  std::istringstream lines(text->second);
  std::string line;
  for (unsigned i = 0; i < where.line && std::getline(lines, line); ++i)
    ;
  return lines ? printable(line) : "";
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
