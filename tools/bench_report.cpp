// bench_report: a table for people, JSON for programs.
#include "bench_report.h"
#include "say.h"

#include <kiln/compile.h>
#include <kiln/error.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln::cli {

/// What the kernel module says it is; the driver's own interface tells no one.
static std::string driver_version() {
  std::ifstream file("/proc/driver/nvidia/version");
  std::string line;
  return std::getline(file, line) ? line : "unknown";
}

/// "2026-11-15T08:00:00Z"
static std::string date_now() {
  std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32] = {};
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

/// "  172.1 us  798.6 TFLOP/s +-0.4%"
static std::string cell(const ProblemResult &result, const Samples &samples) {
  double us = median(samples);
  return fmt::format("{:9.1f} us {:7.1f} TFLOP/s +-{:.1f}%", us,
                     result.operations / us / 1e6, 50 * spread(samples));
}

/// How much faster Kiln is than contender `i`.
static double ratio(const std::vector<Samples> &samples, std::size_t i) {
  return median(samples[i]) / median(samples.front());
}

void ProblemResult::print() const {
  say("\n{}\n{}, {} sets of buffers\n", problem.to_string(),
      schedule.to_string(), buffer_sets);
  if (!note.empty())
    say("{}\n", note);
  if (contenders.empty()) {
    say("WRONG: {} of {} elements, max_rel_err={:.2e}; not timed\n",
        comparisons.front().wrong, comparisons.front().compared,
        comparisons.front().max_rel_err);
    return;
  }
  say("{:<20} {:>12}  {:<38} {:<38}\n", "", "max_rel_err", "rested",
      "sustained");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::string error = comparisons.empty()
                            ? "-"
                            : fmt::format("{:.2e}", comparisons[i].max_rel_err);
    say("{:<20} {:>12}  {:<38} {:<38}\n", contenders[i], error,
        cell(*this, rested[i]), cell(*this, sustained[i]));
  }
  std::fflush(stdout);
}

void BenchReport::print_header() const {
  say("{}, {}\n", machine,
      cublas_version.empty() ? cublas_missing : "cuBLASLt " + cublas_version);
}

void BenchReport::print_summary() const {
  say("\n{:<60} {:<20} {:>7} {:>10}\n", "times as fast", "as", "rested",
      "sustained");
  double rested = 0, sustained = 0;
  int count = 0;
  for (const ProblemResult &result : results)
    for (std::size_t i = 1; i < result.contenders.size(); ++i) {
      bool is_last = i + 1 == result.contenders.size();
      double r = ratio(result.rested, i), s = ratio(result.sustained, i);
      say("{:<60} {:<20} {:7.3f} {:10.3f}\n", result.problem.to_string(),
          result.contenders[i], r, s);
      if (!is_last)
        continue;
      rested += std::log(r), sustained += std::log(s);
      ++count;
    }
  if (count)
    say("{:<60} {:<20} {:7.3f} {:10.3f}\n", "geometric mean", "the best of it",
        std::exp(rested / count), std::exp(sustained / count));
}

static nlohmann::json json_of(const ProblemResult &result) {
  nlohmann::json json = {{"problem", result.problem.to_string()},
                         {"schedule", result.schedule.to_string()},
                         {"kernel", result.kernel},
                         {"operations", result.operations},
                         {"buffer_sets", result.buffer_sets}};
  if (!result.note.empty())
    json["note"] = result.note;
  if (!result.comparisons.empty())
    json["is_right"] = result.comparisons.front().ok;
  json["contenders"] = nlohmann::json::array();
  for (std::size_t i = 0; i < result.contenders.size(); ++i) {
    nlohmann::json one = {{"name", result.contenders[i]},
                          {"rested_us", result.rested[i]},
                          {"sustained_us", result.sustained[i]},
                          {"rested_median_us", median(result.rested[i])},
                          {"sustained_median_us", median(result.sustained[i])}};
    if (!result.comparisons.empty())
      one["max_rel_err"] = result.comparisons[i].max_rel_err;
    json["contenders"].push_back(std::move(one));
  }
  return json;
}

void BenchReport::write_json(const std::string &path) const {
  nlohmann::json json = {{"machine", machine},
                         {"driver", driver_version()},
                         {"cublaslt", cublas_version},
                         {"kiln", version()},
                         {"date", date_now()},
                         {"data", "normally distributed, deviation 1"}};
  json["problems"] = nlohmann::json::array();
  for (const ProblemResult &result : results)
    json["problems"].push_back(json_of(result));
  std::ofstream file(path);
  file << json.dump(1) << '\n';
  file.close();
  if (!file)
    throw UserError(fmt::format("{} cannot be written: {}", path,
                                std::strerror(errno ? errno : EIO)));
}

bool BenchReport::is_right() const {
  for (const ProblemResult &result : results)
    if (result.contenders.empty())
      return false;
  return true;
}

} // namespace kiln::cli
