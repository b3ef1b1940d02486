// launch_files: one report of many launch files.
#include "launch_files.h"
#include "console/run_watch.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "support/limits/Budget.h"

#include <kiln/check/launch_file.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

namespace kiln::cli {

Shard Shard::parse(std::string_view text) {
  Shard shard;
  const char *end = text.data() + text.size();
  auto index = std::from_chars(text.data(), end, shard.index);
  bool is_read = index.ec == std::errc() && index.ptr != end &&
                 *index.ptr == '/';
  if (is_read) {
    auto count = std::from_chars(index.ptr + 1, end, shard.count);
    is_read = count.ec == std::errc() && count.ptr == end;
  }
  if (!is_read || shard.index < 1 || shard.index > shard.count)
    throw UserError(fmt::format("--shard is '{}'; it must be I/N, with I from "
                                "1 to N: 2/8 is the second of eight shards",
                                text));
  return shard;
}

/// Launches of a file; one where it cannot be read, which is said where it runs.
static std::size_t launches_in(const std::string &path) {
  try {
    return LaunchFile::load(path).launches.size();
  } catch (const UserError &) {
    return 1;
  }
}

/// A JSON file that is broken is one of the folder all the same.
static bool is_launch_file(const std::string &path) {
  try {
    return names_its_ptx(path);
  } catch (const UserError &) {
    return true;
  }
}

std::vector<NumberedFile> launch_files_of(const std::string &folder) {
  std::vector<NumberedFile> files;
  std::error_code error;
  for (const auto &entry : std::filesystem::directory_iterator(folder, error))
    if (entry.path().extension() == ".json" &&
        is_launch_file(entry.path().string()))
      files.push_back({entry.path().string(), entry.path().filename().string()});
  if (error)
    throw UserError(
        fmt::format("{} cannot be read: {}", folder, error.message()));
  if (files.empty())
    throw UserError(fmt::format(
        "{} has no launch file that names its PTX; `kiln run --capture {}` "
        "writes some (docs/launch-file.md)",
        folder, folder));
  std::sort(files.begin(), files.end(),
            [](const auto &a, const auto &b) { return a.name < b.name; });
  std::uint64_t next = 1;
  for (NumberedFile &file : files) {
    file.first = next;
    next += launches_in(file.path);
  }
  return files;
}

static Report run_file(const std::string &path, const CheckSettings &settings) {
  std::optional<BudgetScope> budget;
  budget.emplace(Budget{settings.sim.time_limit_s,
                        settings.sim.memory_limit_bytes},
                 "the reading of the PTX");
  LaunchJob job = LaunchJob::load("", path);
  ExploreOptions options = settings.explore_options(
      settings.gpu.empty() ? job.device() : DeviceDescription::h200());
  budget.reset(); // launches have their own
  options.sim = job.sim_options(std::move(options.sim));
  options.sim.print = [](const std::string &) {};
  RunWatch::attach(options.sim);
  PreparedJob prepared(std::move(job), open_sim(options.sim));
  RunWatch watch;
  return check_job(prepared, options).report;
}

Report check_file(const NumberedFile &file, const CheckSettings &settings) {
  Report report;
  try {
    report = run_file(file.path, settings);
  } catch (const UserError &error) {
    report = {};
    report.refuse(error);
    report.begin({.is_checked = false});
    report.launches.back().result.is_finished = false;
  }
  report.set_file(file.name, file.first);
  return report;
}

Report check_folder(const std::string &folder, const Shard &shard,
                    const CheckSettings &settings) {
  std::vector<NumberedFile> files = launch_files_of(folder);
  report("folder", "{}: {} launch file{}{}", folder, files.size(),
         files.size() == 1 ? "" : "s",
         shard.count > 1 ? fmt::format(", shard {} of {}", shard.index,
                                       shard.count)
                         : "");
  Report all;
  all.max_findings = settings.sim.max_findings;
  for (std::size_t i = shard.index - 1; i < files.size(); i += shard.count) {
    Report one = check_file(files[i], settings);
    report("ran", "{}: {}", files[i].name, name(one.verdict()));
    for (const Finding &finding : one.findings)
      show_finding(finding);
    all.merge(one);
    if (RunWatch::signal())
      break;
  }
  return all;
}

} // namespace kiln::cli
