// tune_timings: times in a file, written by one tuner and replayed by another.
//
// The form is that of bench/results/h200/schedules.json.
#include "bench/bench_report.h"
#include "support/Date.h"
#include "support/text/JsonNode.h"
#include "tuner.h"

#include <kiln/run/compile.h>
#include <kiln/base/file.h>

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln::cli {

namespace {

class ReplayTuner final : public Tuner {
public:
  ReplayTuner(std::string path, const GemmOptions &options,
              std::vector<GemmProblem> problems);

  const DeviceDescription &device() const override { return device_; }
  std::string source() const override {
    return fmt::format("{} (times of {})", device_.name, path_);
  }
  TuneResult tune(std::size_t number) override;

private:
  std::string path_;
  DeviceDescription device_;
  std::vector<GemmProblem> problems_;
  std::map<std::string, std::vector<TuneCandidate>> runs_; ///< by problem
};

} // namespace

/// The device a file is of: one that Kiln knows, or one that runs what such a
/// one does.
static DeviceDescription device_of(const JsonNode &file) {
  std::string name = file.at("device").text("the name of a GPU");
  for (std::string_view word : DeviceDescription::known_names())
    if (DeviceDescription::by_name(word).name == name)
      return DeviceDescription::by_name(word);
  if (!file.has("target"))
    file.at("device").refuse("a GPU that Kiln knows, or the file must have a "
                             "target, such as sm_90a");
  DeviceDescription device =
      file.at("target").parsed([](const std::string &target) {
        return DeviceDescription::for_target(target);
      });
  device.name = name;
  return device;
}

ReplayTuner::ReplayTuner(std::string path, const GemmOptions &options,
                         std::vector<GemmProblem> problems)
    : path_(std::move(path)), problems_(std::move(problems)) {
  const nlohmann::json json = readJson(path_);
  JsonNode file(json, path_);
  device_ = device_of(file);
  std::map<std::string, std::string> launches;
  for (const JsonNode &run : file.at("runs").list("runs")) {
    GemmProblem problem = run.at("problem").parsed(GemmProblem::parse);
    GemmSchedule schedule =
        run.at("schedule").parsed([&](const std::string &words) {
          return fit(problem, GemmSchedule::parse(words), device_);
        });
    double us = run.at("us").number();
    if (!(us > 0))
      run.at("us").refuse("a positive number");
    auto &list = runs_[problem.to_string()];
    // Times of launches made in another way cannot be compared: the last way
    // counts.
    std::string launch =
        run.has("launch") ? run.at("launch").text("a word") : "";
    if (std::exchange(launches[problem.to_string()], launch) != launch)
      list.clear();
    std::erase_if(list, [&](const TuneCandidate &one) {
      return one.schedule == schedule;
    });
    list.push_back({.schedule = schedule, .us = us});
  }
  for (GemmProblem &problem : problems_)
    problem = options.with_arguments(problem);
}

TuneResult ReplayTuner::tune(std::size_t number) {
  const GemmProblem &problem = problems_[number];
  auto found = runs_.find(problem.to_string());
  if (found == runs_.end())
    throw UserError(
        fmt::format("{} has no times of {}", path_, problem.to_string()));
  TuneResult result{problem, found->second};
  GemmSchedule usual = pick_schedule(problem, device_);
  for (TuneCandidate &one : result.candidates)
    one.is_auto = one.schedule == usual;
  sort_candidates(result.candidates);
  return result;
}

std::unique_ptr<Tuner> make_replay_tuner(const std::string &path,
                                         const GemmOptions &options,
                                         std::vector<GemmProblem> problems) {
  return std::make_unique<ReplayTuner>(path, options, std::move(problems));
}

ScheduleLists read_schedules(const std::string &path) {
  const nlohmann::json json = readJson(path);
  ScheduleLists lists;
  for (const JsonNode &run : JsonNode(json, path).at("runs").list("runs"))
    lists[run.at("problem").parsed(GemmProblem::parse).to_string()].push_back(
        run.at("schedule").parsed(GemmSchedule::parse));
  return lists;
}

void write_timings(const std::string &path, const Tuner &tuner,
                   const std::vector<TuneResult> &results) {
  nlohmann::json json = {
      {"what", "schedules of kiln::gemm, microseconds per launch, rested"},
      {"device", tuner.device().name},
      {"target", tuner.device().target()},
      {"driver", driver_version()},
      {"kiln", version()},
      {"date", dateNow()},
      {"runs", nlohmann::json::array()}};
  for (const TuneResult &result : results)
    for (const TuneCandidate &one : result.candidates)
      if (one.may_win()) {
        nlohmann::json run = {{"problem", result.problem.to_string()},
                              {"schedule", one.schedule.to_string()},
                              {"us", one.us}};
        if (one.predicted_us > 0)
          run["predicted_us"] = one.predicted_us;
        json["runs"].push_back(std::move(run));
      }
  write_file(
      path, {json.dump(1, ' ', false, nlohmann::json::error_handler_t::replace),
             "\n"});
}

} // namespace kiln::cli
