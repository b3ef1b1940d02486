// bench_report: a table for people, JSON for programs.
#include "bench_report.h"
#include "support/InputFile.h"
#include "console/say.h"
#include "support/Date.h"
#include "support/text/JsonNode.h"

#include <kiln/run/compile.h>
#include <kiln/base/file.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {

std::string driver_version() {
  std::string text;
  if (readFile("/proc/driver/nvidia/version", text, 65536) != 0)
    return "unknown";
  return text.substr(0, text.find('\n'));
}

/// "cublaslt"
static std::string lower(std::string text) {
  for (char &letter : text)
    letter = static_cast<char>(std::tolower(letter));
  return text;
}

/// "  172.1 us  798.6 TFLOP/s +-0.4% 1755 MHz"
static std::string cell(const ProblemResult &result,
                        const std::vector<Samples> &samples,
                        const std::vector<Samples> &mhz, std::size_t i) {
  double us = median(samples[i]);
  std::string text =
      fmt::format("{:9.1f} us {:7.1f} TFLOP/s +-{:.1f}%", us,
                  result.operations / us / 1e6, 50 * spread(samples[i]));
  if (i < mhz.size() && !mhz[i].empty())
    text += fmt::format(" {:.0f} MHz", median(mhz[i]));
  return text;
}

/// How much faster Kiln is than contender `i`.
static double ratio(const std::vector<Samples> &samples, std::size_t i) {
  return median(samples[i]) / median(samples.front());
}

/// The same of the fastest of the others.
static double least_ratio(const std::vector<Samples> &samples) {
  double least = ratio(samples, 1);
  for (std::size_t i = 2; i < samples.size(); ++i)
    least = std::min(least, ratio(samples, i));
  return least;
}

double ProblemResult::rested_ratio() const { return least_ratio(rested); }

double ProblemResult::sustained_ratio() const { return least_ratio(sustained); }

void ProblemResult::print() const {
  say("\n{}\n{}{}{} sets of buffers\n", problem, schedule,
      schedule.empty() ? "" : ", ", buffer_sets);
  if (!note.empty())
    say("{}\n", note);
  if (contenders.empty()) {
    say("WRONG: {} of {} {}, max_rel_err={:.2e}; not timed\n",
        comparisons.front().wrong, comparisons.front().compared, compared,
        comparisons.front().max_rel_err);
    return;
  }
  say("{:<20} {:>12}  {:<48} {:<48}\n", "", "max_rel_err", "rested",
      "sustained");
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::string error = comparisons.empty()
                            ? "-"
                            : fmt::format("{:.2e}", comparisons[i].max_rel_err);
    say("{:<20} {:>12}  {:<48} {:<48}\n", contenders[i], error,
        cell(*this, rested, rested_mhz, i),
        cell(*this, sustained, sustained_mhz, i));
  }
  if (copy_gb_per_s > 0) {
    double reached = bytes / median(rested.front()) / 1e3;
    say("{:.0f} MB at {:.0f} GB/s, {:.0f}% of what a copy reaches ({:.0f})\n",
        bytes / 1e6, reached, 100 * reached / copy_gb_per_s, copy_gb_per_s);
  }
  std::fflush(stdout);
}

void BenchReport::print_header() const {
  say("{}, {}\n", machine,
      library_version.empty() ? library_missing
                              : library + " " + library_version);
}

void BenchReport::print_summary() const {
  say("\n{:<60} {:<20} {:>7} {:>10}\n", "times as fast", "as", "rested",
      "sustained");
  for (const ProblemResult &result : results)
    for (std::size_t i = 1; i < result.contenders.size(); ++i)
      say("{:<60} {:<20} {:7.3f} {:10.3f}\n", result.problem,
          result.contenders[i], ratio(result.rested, i),
          ratio(result.sustained, i));
  std::vector<SuiteMean> suites = means();
  for (const SuiteMean &suite : suites) {
    std::string what = "geometric mean";
    if (!suite.name.empty())
      what += fmt::format(" of {}, {} problems", suite.name, suite.problems);
    say("{:<60} {:<20} {:7.3f} {:10.3f}\n", what, "the best of it",
        suite.rested, suite.sustained);
  }
}

std::vector<SuiteMean> BenchReport::means() const {
  std::vector<SuiteMean> suites;
  for (const ProblemResult &result : results) {
    if (result.contenders.size() < 2)
      continue;
    auto suite = std::ranges::find(suites, result.suite, &SuiteMean::name);
    if (suite == suites.end())
      suite = suites.insert(suite, {result.suite});
    // Logarithms, until all are there.
    if (suite->problems++ == 0)
      suite->rested = suite->sustained = 0;
    suite->rested += std::log(result.rested_ratio());
    suite->sustained += std::log(result.sustained_ratio());
  }
  for (SuiteMean &suite : suites) {
    suite.rested = std::exp(suite.rested / suite.problems);
    suite.sustained = std::exp(suite.sustained / suite.problems);
  }
  return suites;
}

StoredRun StoredRun::read(const std::string &path) {
  StoredRun run{path, {}};
  nlohmann::json json = readJson(path);
  for (const JsonNode &problem :
       JsonNode(json, path).at("problems").list("problems")) {
    std::string name = problem.at("problem").text("a problem in words");
    auto contenders = problem.at("contenders").list("contenders");
    if (contenders.empty()) // it was wrong
      continue;
    double us = contenders.front().at("rested_median_us").number();
    if (!(us > 0))
      contenders.front().at("rested_median_us").refuse("a positive number");
    run.rested_us[name] = us;
  }
  return run;
}

void BenchReport::print_against(const StoredRun &before) const {
  say("\n{:<60} {:>11} {:>11} {:>7}\n", fmt::format("against {}", before.path),
      "before", "now", "ratio");
  double sum = 0;
  int count = 0;
  for (const ProblemResult &result : results) {
    std::string name = result.problem;
    auto stored = before.rested_us.find(name);
    if (result.contenders.empty() || stored == before.rested_us.end()) {
      say("{:<60} {:>11}\n", name,
          result.contenders.empty() ? "wrong now" : "not in it");
      continue;
    }
    double now = median(result.rested.front());
    say("{:<60} {:8.1f} us {:8.1f} us {:7.3f}\n", name, stored->second, now,
        stored->second / now);
    sum += std::log(stored->second / now);
    ++count;
  }
  if (count)
    say("{:<60} {:>31.3f}\n", "geometric mean", std::exp(sum / count));
}

static nlohmann::json json_of(const ProblemResult &result) {
  nlohmann::json json = {{"problem", result.problem},
                         {"schedule", result.schedule},
                         {"kernel", result.kernel},
                         {"operations", result.operations},
                         {"buffer_sets", result.buffer_sets}};
  if (result.bytes > 0)
    json["bytes"] = result.bytes;
  if (result.copy_gb_per_s > 0)
    json["copy_gb_per_s"] = result.copy_gb_per_s;
  if (!result.suite.empty())
    json["suite"] = result.suite;
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
    if (i < result.rested_mhz.size() && !result.rested_mhz[i].empty())
      one["rested_mhz"] = median(result.rested_mhz[i]);
    if (i < result.sustained_mhz.size() && !result.sustained_mhz[i].empty())
      one["sustained_mhz"] = median(result.sustained_mhz[i]);
    if (!result.comparisons.empty())
      one["max_rel_err"] = result.comparisons[i].max_rel_err;
    json["contenders"].push_back(std::move(one));
  }
  return json;
}

void BenchReport::write_json(const std::string &path) const {
  nlohmann::json json = {{"machine", machine},
                         {"driver", driver_version()},
                         {lower(library), library_version},
                         {"kiln", version()},
                         {"date", dateNow()},
                         {"data", "normally distributed, deviation 1"}};
  json["problems"] = nlohmann::json::array();
  for (const ProblemResult &result : results)
    json["problems"].push_back(json_of(result));
  write_file(
      path, {json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace),
             "\n"});
}

bool BenchReport::is_right() const {
  for (const ProblemResult &result : results)
    if (result.contenders.empty())
      return false;
  return true;
}

} // namespace kiln::cli
