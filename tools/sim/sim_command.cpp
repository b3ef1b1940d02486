// sim_command: any PTX on the simulator, as a launch file describes it.
//
// Findings of the simulator and comparisons with what is expected make the
// verdict; the last line is PASS, FAIL, or DONE where nothing was compared.
#include "buffer_compare.h"
#include "commands.h"
#include "launch_init.h"
#include "npy.h"
#include "console/output_file.h"
#include "sarif.h"
#include "console/say.h"
#include "options/sim_options.h"
#include "sim_run.h"

#include <kiln/base/file.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::cli {

using nlohmann::json;

namespace {

struct SimCommand {
  std::string ptx_path;
  std::string launch_path;
  std::string init_path; ///< a launch file to write; empty: none
  std::string save_folder;
  std::string report_path;
  SimFlags sim;
  int schedules = 0;
};

/// What all runs came to.
struct Account {
  LaunchResult total; ///< of all launches in all orders
  json comparisons = json::array();
  int compared = 0, wrong = 0;
  /// The findings that were told: id, place, and the other's place, or their
  /// text where they have none.
  std::set<std::array<std::string, 3>> told;
};

} // namespace

/// The orders to run; the first one's results are saved.
static std::vector<SimSchedule> schedules_of(const SimCommand &command,
                                             const SimOptions &options) {
  if (command.schedules < 0)
    throw UserError(fmt::format("--schedules is {}; it must not be negative",
                                command.schedules));
  if (!command.sim.order.empty())
    return {{options.interleaving, options.seed}};
  // What one order hides, another shows.
  constexpr int kDefault = 3;
  auto count = static_cast<std::size_t>(command.schedules ? command.schedules
                                                          : kDefault);
  std::vector<SimSchedule> schedules = {{Interleaving::eager}, {Interleaving::lazy}};
  for (std::uint64_t seed = options.seed; schedules.size() < count; ++seed)
    schedules.push_back({Interleaving::random, seed});
  schedules.resize(count);
  return schedules;
}

static std::string by(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

static void report_job(const SimJob &job, const SimOptions &options) {
  report("kernel", "{}", fmt::join(job.ptx_paths, ", "));
  for (const LaunchSpec &launch : job.file.launches)
    report("launch", "{}grid {}, block {}{}{}",
           launch.kernel.empty() ? "" : launch.kernel + ", ", by(launch.grid),
           by(launch.block),
           launch.cluster == std::array<std::uint32_t, 3>{1, 1, 1}
               ? ""
               : ", cluster " + by(launch.cluster),
           launch.dynamic_smem_bytes
               ? fmt::format(", {} bytes of dynamic shared memory",
                             launch.dynamic_smem_bytes)
               : "");
  // The simulator knows buffers by their numbers.
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    report(fmt::format("buffer {}", i), "{}: {}[{}], {}{}", buffer.name,
           name(buffer.type), fmt::join(buffer.shape, ", "), buffer.init_text,
           buffer.is_output ? ", output" : "");
  }
  report("device", "sim ({}), {} SMs{}", options.device.name,
         options.device.sms, options.checks ? "" : ", checks off");
}

/// Take a finding into the account and show it; the same one in another order
/// is told once.
static void take_finding(const Finding &finding, Account &account) {
  auto place = [](const SourceLine &where) {
    return fmt::format("{}:{}", where.file, where.line);
  };
  std::string other = finding.other ? place(finding.other->where) : "";
  if (!finding.where.is_known())
    other = finding.message;
  if (!account.told.insert({finding.id, place(finding.where), other}).second)
    return;
  show_finding(finding);
  account.total.findings.push_back(finding);
}

/// Add the findings and the numbers of a run.
static void take_run(const SimRun &run, bool has_stats, Account &account) {
  for (const LaunchResult &result : run.results) {
    if (has_stats)
      show_stats(result);
    for (const Finding &finding : result.findings)
      take_finding(finding, account);
    add_numbers(account.total, result);
  }
}

/// Compare the lines the kernel printed, as sorted lists.
static void compare_printed(const SimJob &job, const SimRun &run,
                            Account &account) {
  if (!job.file.printed)
    return;
  const std::vector<std::string> &want = *job.file.printed, &got = run.printed;
  std::vector<std::string> missing, extra;
  std::set_difference(want.begin(), want.end(), got.begin(), got.end(),
                      std::back_inserter(missing));
  std::set_difference(got.begin(), got.end(), want.begin(), want.end(),
                      std::back_inserter(extra));
  bool is_wrong = !missing.empty() || !extra.empty();
  ++account.compared;
  account.wrong += is_wrong;
  account.comparisons.push_back({{"printf", want.size()},
                                 {"order", run.schedule.to_string()},
                                 {"wrong", missing.size() + extra.size()}});
  if (!missing.empty())
    report("wrong", "printf: {} lines are missing, the first '{}'",
           missing.size(), missing[0]);
  if (!extra.empty())
    report("wrong", "printf: {} lines are not expected, the first '{}'",
           extra.size(), extra[0]);
  if (!is_wrong)
    report("compared", "printf: {} lines, all right", want.size());
}

static void compare_expected(const SimJob &job, const SimRun &run,
                             Account &account) {
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    if (!job.expected[i])
      continue;
    const BufferSpec &buffer = job.file.buffers[i];
    BufferComparison result =
        compare_buffer(buffer, run.memory[i], *job.expected[i]);
    ++account.compared;
    account.wrong += result.wrong != 0;
    account.comparisons.push_back({{"buffer", buffer.name},
                                   {"order", run.schedule.to_string()},
                                   {"elements", buffer.count},
                                   {"wrong", result.wrong}});
    for (const std::string &line : result.first)
      report("wrong", "{}", line);
    if (result.wrong)
      report("compared", "{}: {} of {} elements are wrong", buffer.name,
             result.wrong, buffer.count);
    else
      report("compared", "{}: {} elements, all right", buffer.name,
             buffer.count);
  }
  compare_printed(job, run, account);
}

/// Results that depend on the order are a fault where the file says they may
/// not, or where they are further apart than it allows.
static void compare_orders(const SimCommand &command, const SimJob &job,
                           const SimRun &first, const SimRun &run,
                           Account &account) {
  auto tell = [&](bool is_error, const std::string &what) {
    const Explanation &row =
        explain(is_error ? "order-dependent" : "order-rounding");
    auto has = [&](const std::vector<std::string> &list) {
      return std::find(list.begin(), list.end(), row.id) != list.end();
    };
    if (has(command.sim.allow))
      return;
    Finding finding{.id = std::string(row.id),
                    .grade = row.grade,
                    .message = fmt::format("{} in the orders '{}' and '{}'",
                                           what, first.schedule.to_string(),
                                           run.schedule.to_string())};
    if (is_error && has(command.sim.warn))
      finding.grade = Finding::Grade::warning;
    take_finding(finding, account);
  };
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    if (run.memory[i] == first.memory[i])
      continue;
    const BufferSpec &buffer = job.file.buffers[i];
    BufferSpec bitwise = buffer;
    bitwise.tolerance = {.is_exact = true};
    BufferComparison apart =
        compare_buffer(bitwise, run.memory[i], first.memory[i]);
    bool is_outside =
        buffer.tolerance.is_given &&
        compare_buffer(buffer, run.memory[i], first.memory[i]).wrong;
    tell(job.file.is_deterministic || is_outside,
         fmt::format("{} of {} elements of '{}' differ{}", apart.wrong,
                     buffer.count, buffer.name,
                     is_outside ? " by more than its tolerance" : ""));
  }
  if (run.printed != first.printed)
    tell(job.file.is_deterministic, "the printed lines differ");
}

/// Where an output is saved.
static std::string path_of(const std::string &folder,
                           const BufferSpec &buffer) {
  return (std::filesystem::path(folder) / (buffer.name + ".npy")).string();
}

/// Refuse outputs that could not be written after the run.
static void check_outputs(const SimCommand &command, const SimJob &job) {
  if (command.sim.timeline_path != "-")
    check_output("--timeline", command.sim.timeline_path);
  make_folder("--save-dir", command.save_folder);
  for (const BufferSpec &buffer : job.file.buffers)
    if (!command.save_folder.empty() && buffer.is_output)
      check_output("--save-dir", path_of(command.save_folder, buffer));
}

static void save_outputs(const std::string &folder, const SimJob &job,
                         const SimRun &run) {
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    if (!buffer.is_output)
      continue;
    std::string path = path_of(folder, buffer);
    write_npy(path, buffer.type, buffer.shape, run.memory[i]);
    report("saved", "{}", path);
  }
}

static void write_report(const std::string &path, const char *verdict,
                         const Account &account) {
  if (path.ends_with(".sarif"))
    return write_file(path, {to_sarif(account.total.findings), "\n"});
  auto value = nlohmann::ordered_json::parse(account.total.to_json());
  value["verdict"] = verdict;
  value["comparisons"] = account.comparisons;
  write_file(path,
             {value.dump(2, ' ', false, json::error_handler_t::replace), "\n"});
}

/// The report, the last line and the exit status.
static ExitStatus conclude(const SimCommand &command, const Account &account,
                           Outputs &outputs) {
  ExitStatus status = !account.total.ok() ? ExitStatus::finding
                      : account.wrong     ? ExitStatus::wrong
                                          : ExitStatus::ok;
  const char *verdict = status == ExitStatus::finding ? "error"
                        : status == ExitStatus::wrong ? "wrong"
                                                      : "ok";
  if (!command.report_path.empty())
    outputs.attempt(
        [&] { write_report(command.report_path, verdict, account); });
  if (status == ExitStatus::finding)
    show_failure();
  else if (status == ExitStatus::wrong)
    say("FAIL {} of {} comparisons are wrong\n", account.wrong,
        account.compared);
  else
    say("{}\n", account.compared ? "PASS" : "DONE (not verified)");
  return outputs.conclude(status);
}

/// Registers at entry matter to setmaxnreg and to residency.
static void report_registers(const SimRun &run) {
  for (const LaunchResult &result : run.results)
    if (result.registers)
      report("registers", "{} per thread at entry ({})", result.registers,
             result.registers_from);
}

static ExitStatus simulate(const SimCommand &command) {
  SimOptions options = command.sim.options();
  std::vector<SimSchedule> schedules = schedules_of(command, options);
  SimJob job = load_job(command.ptx_path, command.launch_path);
  if (command.sim.gpu.empty())
    command.sim.set_device(options, device_for(job));
  check_outputs(command, job);
  report_job(job, options);
  Account account;
  Outputs outputs;
  SimRun first;
  for (const SimSchedule &schedule : schedules) {
    SimRun run = run_once(job, options, schedule);
    bool is_first = first.results.empty();
    if (is_first)
      report_registers(run);
    report("order", "{}", schedule.to_string());
    if (is_first)
      for (const std::string &line : run.printed)
        report("printf", "{}", line);
    take_run(run, command.sim.has_stats, account);
    if (is_first && !command.sim.timeline_path.empty())
      outputs.attempt(
          [&] { show_timeline(run.timeline(), command.sim.timeline_path); });
    // What an error cut short is not compared, unless the error is a warning.
    bool is_comparable = run.is_finished || account.total.ok();
    if (is_comparable)
      compare_expected(job, run, account);
    if (is_comparable && !is_first)
      compare_orders(command, job, first, run, account);
    if (is_first)
      first = std::move(run);
    if (!is_comparable) {
      report("compared", "nothing in this order: an error ended the launch");
      break;
    }
  }
  if (!command.save_folder.empty())
    outputs.attempt([&] { save_outputs(command.save_folder, job, first); });
  return conclude(command, account, outputs);
}

/// Write a first launch file.
static ExitStatus init(const SimCommand &command) {
  check_output("--init", command.init_path);
  if (std::filesystem::exists(command.init_path))
    throw UserError(
        fmt::format("--init {}: the file is there already; name one "
                    "that is not",
                    command.init_path));
  std::string text;
  try {
    text = first_launch_file(read_kernel(command.ptx_path));
  } catch (const UserError &error) {
    if (error.where().file != "PTX")
      throw;
    throw UserError(SourceLine(command.ptx_path, error.where().line),
                    error.message());
  }
  write_file(command.init_path, {text});
  report("wrote", "{}; fill it in: docs/launch-file.md", command.init_path);
  return ExitStatus::ok;
}

/// What is refused goes into the report too.
static ExitStatus run_command(SimCommand command) {
  if (command.launch_path.empty() && command.init_path.empty() &&
      names_its_ptx(command.ptx_path))
    std::swap(command.launch_path, command.ptx_path);
  if (command.launch_path.empty() == command.init_path.empty())
    throw UserError("`kiln sim` takes --launch FILE, or --init FILE to write a "
                    "first one");
  if (!command.init_path.empty())
    return init(command);
  check_output("--report", command.report_path);
  try {
    return simulate(command);
  } catch (const UserError &error) {
    Account account;
    account.total.findings.push_back(
        {.id = "refused",
         .message = error.message(),
         .where = error.where(),
         .ptx_line = static_cast<int>(error.where().line)});
    Outputs outputs;
    if (!command.report_path.empty())
      outputs.attempt(
          [&] { write_report(command.report_path, "refused", account); });
    outputs.conclude(ExitStatus::refused);
    throw;
  }
}

void add_sim_command(Command app, Action &action) {
  Command command =
      app.add_subcommand("sim", "run any PTX on the simulator and check it");
  auto options = std::make_shared<SimCommand>();
  command
      .add_option("kernel", options->ptx_path,
                  "the PTX file, a saved kernel, or a launch file that names "
                  "its PTX")
      .required();
  command.add_option("--launch", options->launch_path,
                     "the launch file: grid, arguments, what is expected");
  command.add_option("--init", options->init_path,
                     "write a first launch file from the PTX, to be filled "
                     "in");
  command.add_option("--save-dir", options->save_folder,
                     "write outputs to NAME.npy in this folder");
  command.add_option("--report", options->report_path,
                     "write verdict and findings to this JSON file; to a "
                     "name that ends in .sarif as SARIF 2.1.0");
  options->sim.add_to(command);
  command
      .add_option("--schedules", options->schedules,
                  "run so many orders: eager, lazy, and random ones from "
                  "--seed on; 3 unless --order says one")
      .excludes(command.get_option("--order"));
  command
      .add_option("--allow", options->sim.allow,
                  "do not report findings of this id (`kiln explain`)")
      .one_value_each();
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
