// litmus_command: litmus tests on the simulator, or on a GPU as often as it
// takes for rare outcomes to show.
#include "commands.h"
#include "console/output_file.h"
#include "console/say.h"
#include "litmus_test.h"
#include "options/check_flags.h"
#include "sim/launch_files.h"

#include <kiln/check/sim.h>
#include <kiln/run/open_device.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln::cli {

/// Interleavings of a test where nobody says how many.
static constexpr std::uint64_t kInterleavings = 10;

namespace {

struct LitmusCommand {
  std::vector<std::string> paths;
  std::string device = "sim", json_path, shard;
  bool prints_ptx = false, shows_outcomes = false;
  LitmusStress stress;
  CheckFlags check;
};

/// What came of all tests.
struct Tally {
  std::map<LitmusVerdict, int> counts;
  std::map<std::string, int> refused; ///< by message
  nlohmann::json tests = nlohmann::json::array();
};

} // namespace

/// Files as they are, and all .litmus files of folders, by name.
static std::vector<std::string>
files_of(const std::vector<std::string> &paths) {
  namespace fs = std::filesystem;
  std::vector<std::string> files;
  for (const std::string &path : paths) {
    if (!fs::is_directory(path)) {
      files.push_back(path);
      continue;
    }
    std::size_t before = files.size();
    for (const fs::directory_entry &entry :
         fs::recursive_directory_iterator(path))
      if (entry.path().extension() == ".litmus")
        files.push_back(entry.path().string());
    if (files.size() == before)
      throw UserError(fmt::format("{} has no litmus tests (*.litmus)", path));
    std::sort(files.begin() + static_cast<std::ptrdiff_t>(before), files.end());
  }
  return files;
}

static nlohmann::json to_json(const LitmusTest &test,
                              const LitmusResult &result,
                              LitmusVerdict verdict) {
  nlohmann::json outcomes = nlohmann::json::object();
  for (const auto &[values, times] : result.outcomes)
    outcomes[test.to_string(values)] = times;
  nlohmann::json findings = nlohmann::json::array();
  for (const Finding &finding : result.findings)
    findings.push_back(finding.id);
  return {{"name", test.name},
          {"file", std::filesystem::path(test.file).filename().string()},
          {"expect", name(test.expectation)},
          {"verdict", name(verdict)},
          {"runs", result.runs},
          {"seen", result.count(test)},
          {"outcomes", outcomes},
          {"findings", findings}};
}

static void show(const LitmusCommand &command, const LitmusTest &test,
                 const LitmusResult &result, LitmusVerdict verdict) {
  bool is_fine =
      verdict == LitmusVerdict::agrees || verdict == LitmusVerdict::stronger;
  if (is_fine && !command.shows_outcomes)
    return;
  report("litmus", "{}: {} ({}, seen in {} of {} runs)", test.name,
         name(verdict), name(test.expectation), result.count(test),
         result.runs);
  if (!test.rule.empty())
    report("rule", "{}", test.rule);
  for (const auto &[values, times] : result.outcomes)
    report("outcome", "{:>9} {}{}", times, test.to_string(values),
           test.holds(values) ? " *" : "");
  for (const Finding &finding : result.findings)
    report("finding", "{}", finding.to_string());
}

static LitmusResult run_one(const LitmusCommand &command, Device &device,
                            const LitmusTest &test,
                            const ExploreOptions &options) {
  if (device.simulation())
    return run_litmus(device, test, options);
  return stress_litmus(device, test, command.stress);
}

static ExitStatus conclude(const LitmusCommand &command, const Device &device,
                           const Tally &tally, std::size_t count) {
  Outputs outputs;
  if (!command.json_path.empty())
    outputs.attempt([&] {
      nlohmann::json all = {{"device", device.name()}, {"tests", tally.tests}};
      write_output(command.json_path, all.dump(1) + "\n");
    });
  std::string text;
  int wrong = 0;
  for (const auto &[verdict, times] : tally.counts) {
    text += fmt::format(", {} {}", times, name(verdict));
    if (verdict != LitmusVerdict::agrees && verdict != LitmusVerdict::stronger)
      wrong += times;
  }
  for (const auto &[message, times] : tally.refused)
    report("refused", "{} tests: {}", times, message);
  say("{} {} litmus tests{}\n",
      wrong || !tally.refused.empty() ? "FAIL" : "PASS", count, text);
  return outputs.conclude(!tally.refused.empty() ? ExitStatus::refused
                          : wrong                ? ExitStatus::finding
                                                 : ExitStatus::ok);
}

/// A simulator for each target, or the one GPU.
static Device &device_for(const LitmusCommand &command, const LitmusTest &test,
                          const CheckSettings &settings,
                          std::map<std::string, std::shared_ptr<Device>> &all) {
  bool is_sim = command.device == "sim";
  std::shared_ptr<Device> &device = all[is_sim ? test.target : ""];
  if (!device && is_sim)
    device = open_sim(
        settings.sim_options(sim_device_for(test.ptx(/*is_stress=*/false))));
  else if (!device)
    device = open_device(command.device);
  return *device;
}

/// Whether a GPU has something to say: it runs the target, and the test cannot
/// hang there.
static bool is_for_gpu(const LitmusTest &test) {
  return test.target == "sm_90a" &&
         std::find(test.findings.begin(), test.findings.end(), "deadlock") ==
             test.findings.end();
}

static ExitStatus run_command(const LitmusCommand &command) {
  std::vector<std::string> files = files_of(command.paths);
  Shard shard = command.shard.empty() ? Shard{} : Shard::parse(command.shard);
  CheckSettings settings = command.check.settings();
  if (!settings.interleavings.only && !settings.interleavings.count)
    settings.interleavings.count = kInterleavings;
  if (!command.json_path.empty())
    check_output("--json", command.json_path);
  std::map<std::string, std::shared_ptr<Device>> devices;
  Tally tally;
  std::size_t count = 0;
  Device *last = nullptr;
  for (std::size_t i = shard.index - 1; i < files.size(); i += shard.count) {
    LitmusTest test = LitmusTest::load(files[i]);
    if (command.prints_ptx) {
      write_output("", test.ptx(command.device != "sim"));
      continue;
    }
    ++count;
    Device &device = device_for(command, test, settings, devices);
    if (!device.simulation() && !is_for_gpu(test)) {
      --count;
      continue;
    }
    last = &device;
    try {
      ExploreOptions options = settings.explore_options(device.description());
      LitmusResult result = run_one(command, device, test, options);
      LitmusVerdict verdict = device.simulation()
                                  ? judge(test, result)
                                  : judge_outcomes(test, result);
      ++tally.counts[verdict];
      tally.tests.push_back(to_json(test, result, verdict));
      show(command, test, result, verdict);
    } catch (const UserError &error) {
      report("refused", "{}: {}", files[i], error.what());
      ++tally.refused[error.message()];
    }
  }
  if (command.prints_ptx || !last)
    return ExitStatus::ok;
  return conclude(command, *last, tally, count);
}

void add_litmus_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "litmus", "run litmus tests: what may come of a few threads of PTX");
  auto options = std::make_shared<LitmusCommand>();
  command
      .add_option("tests", options->paths,
                  "litmus tests (docs/litmus.md), or folders of them")
      .required()
      .expected(1, -1);
  command
      .add_option("--device", options->device,
                  "sim, or cuda: many instances of each test at once, again "
                  "and again")
      .capture_default_str();
  command
      .add_option("--launches", options->stress.launches,
                  "on a GPU: launches of each test")
      .capture_default_str();
  command
      .add_option("--instances", options->stress.instances,
                  "on a GPU: instances of a test in a launch")
      .capture_default_str();
  command.add_option("--shard", options->shard, "run the I-th of N parts")
      .value_name("I/N");
  command.add_option("--json", options->json_path,
                     "write the outcomes of all tests to this file");
  command.add_flag("--outcomes", options->shows_outcomes,
                   "show the outcomes of every test");
  command.add_flag("--ptx", options->prints_ptx,
                   "print the kernels, and run nothing");
  options->check.add_to(command, door_launches,
                        {"report", "timeline", "profile", "detail"});
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
