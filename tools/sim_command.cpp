// sim_command: any PTX on the simulator, as a launch file describes it.
//
// Findings of the simulator and comparisons with what is expected make the
// verdict; the last line is PASS, FAIL, or DONE where nothing was compared.
#include "buffer_compare.h"
#include "commands.h"
#include "launch_file.h"
#include "npy.h"
#include "sim_options.h"

#include <kiln/sim.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

namespace kiln::cli {

using nlohmann::json;
using Bytes = std::vector<std::byte>;

namespace {

struct SimCommand {
  std::string ptx_path;
  std::string launch_path;
  std::string save_folder;
  std::string report_path;
  SimFlags sim;
  int schedules = 0;
  std::vector<std::string> allowed, warned; ///< ids of findings
  bool has_stats = false;
};

/// What a run can be given: everything that is the same in every order.
struct Job {
  const SimCommand &command;
  std::string ptx;
  LaunchFile file;
  std::vector<std::optional<Bytes>> initial;  ///< by buffer; nothing: poison
  std::vector<std::optional<Bytes>> expected; ///< by buffer
};

/// One order of events.
struct Schedule {
  SimOrder order = SimOrder::eager;
  std::uint64_t seed = 0;

  std::string to_string() const {
    if (order == SimOrder::random)
      return fmt::format("random, seed {}", seed);
    return order == SimOrder::eager ? "eager" : "lazy";
  }
};

/// What came of the launches in one order.
struct Run {
  Schedule schedule;
  std::vector<Bytes> memory;        ///< by buffer; empty: nobody asks for it
  std::vector<std::string> printed; ///< lines, sorted
  std::vector<LaunchResult> results;
  bool is_finished = true; ///< no finding ended it

  std::uint64_t instructions() const {
    std::uint64_t sum = 0;
    for (const LaunchResult &result : results)
      sum += result.instructions;
    return sum;
  }
  double time_us() const {
    double sum = 0;
    for (const LaunchResult &result : results)
      sum += result.time_us;
    return sum;
  }
};

/// What all runs came to.
struct Account {
  std::vector<Finding> findings;
  json comparisons = json::array();
  int compared = 0, wrong = 0;
  std::uint64_t instructions = 0;
  double time_us = 0;

  bool has_error() const {
    return std::any_of(findings.begin(), findings.end(), [](const auto &one) {
      return one.grade == Finding::Grade::error;
    });
  }
};

} // namespace

template <typename... Args>
static void report(std::string_view what, fmt::format_string<Args...> format,
                   Args &&...args) {
  fmt::print("{:<10} {}\n", what,
             fmt::format(format, std::forward<Args>(args)...));
}

static std::string read_text(const std::string &path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || std::filesystem::is_directory(path))
    throw UserError(fmt::format("{} cannot be read: {}", path,
                                std::strerror(file ? EISDIR : errno)));
  text << file.rdbuf();
  return std::move(text).str();
}

static Job load(const SimCommand &command) {
  Job job{command, read_text(command.ptx_path),
          LaunchFile::load(command.launch_path), {}, {}};
  for (const BufferSpec &buffer : job.file.buffers) {
    job.initial.push_back(initial_bytes(buffer));
    job.expected.emplace_back();
    if (!buffer.expected_path.empty())
      job.expected.back() =
          read_npy(buffer.expected_path, buffer.type, buffer.shape,
                   buffer.where + ".expected");
  }
  return job;
}

/// The orders to run; the first one's results are saved.
static std::vector<Schedule> schedules_of(const SimCommand &command,
                                          const SimOptions &options) {
  if (command.schedules < 0)
    throw UserError(fmt::format("--schedules is {}; it must not be negative",
                                command.schedules));
  if (command.schedules == 0)
    return {{options.order, options.seed}};
  std::vector<Schedule> schedules = {{SimOrder::eager}, {SimOrder::lazy}};
  for (int i = 0; i < command.schedules; ++i)
    schedules.push_back(
        {SimOrder::random, options.seed + static_cast<std::uint64_t>(i)});
  return schedules;
}

static std::string by(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}", fmt::join(size, "x"));
}

static void report_job(const Job &job, const SimOptions &options) {
  report("kernel", "{}", job.command.ptx_path);
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

static LaunchDescription describe(const Job &job, const LaunchSpec &launch,
                                  const std::vector<Buffer> &memory) {
  return {.name = launch.kernel,
          .ptx = job.ptx,
          .grid = launch.grid,
          .block = launch.block,
          .cluster = launch.cluster,
          .dynamic_smem_bytes = launch.dynamic_smem_bytes,
          .parameters = bind(launch, memory)};
}

/// Launch; what is refused names its place in the PTX or in the launch file.
static LaunchResult launch(Device &device, const Job &job,
                           const LaunchSpec &spec,
                           const std::vector<Buffer> &memory) {
  const std::string &ptx_path = job.command.ptx_path;
  LaunchResult result;
  try {
    result = device.launch(describe(job, spec, memory));
  } catch (const UserError &error) {
    if (error.where().file == "PTX")
      throw UserError(SourceLine(ptx_path, error.where().line),
                      error.message());
    throw UserError(fmt::format("{}: {}", spec.where, error.what()));
  }
  for (Finding &finding : result.findings)
    if (finding.where.file == "PTX")
      finding.where.file = ptx_path;
  return result;
}

/// Refuse what cannot be launched before anything is.
static void check_launches(const Job &job, SimOptions options,
                           const std::vector<Buffer> &memory) {
  options.check_only = true;
  std::shared_ptr<Device> device = open_sim(options);
  for (const LaunchSpec &spec : job.file.launches)
    launch(*device, job, spec, memory);
}

static std::vector<std::string> sorted_lines(const std::string &text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

static Run run_once(const Job &job, SimOptions options,
                    const Schedule &schedule) {
  std::string printed;
  options.order = schedule.order;
  options.seed = schedule.seed;
  options.registers_at_entry = job.file.registers_at_entry;
  options.co_resident = job.file.is_co_resident;
  options.print = [&](const std::string &text) { printed += text; };
  std::shared_ptr<Device> device = open_sim(options);
  std::vector<Buffer> memory;
  for (std::size_t i = 0; i < job.file.buffers.size(); ++i) {
    memory.push_back(device->allocate(job.file.buffers[i].bytes()));
    if (job.initial[i] && !job.initial[i]->empty())
      device->copy_in(memory[i], job.initial[i]->data(),
                      job.initial[i]->size());
  }
  check_launches(job, options, memory);

  Run run{.schedule = schedule};
  for (const LaunchSpec &spec : job.file.launches) {
    run.results.push_back(launch(*device, job, spec, memory));
    run.is_finished = run.results.back().ok();
    if (!run.is_finished)
      break;
  }
  for (std::size_t i = 0; i < memory.size(); ++i) {
    run.memory.emplace_back();
    if (!job.file.buffers[i].is_output && !job.expected[i])
      continue;
    run.memory[i].resize(memory[i].bytes());
    if (!run.memory[i].empty())
      device->copy_out(run.memory[i].data(), memory[i], memory[i].bytes());
  }
  run.printed = sorted_lines(printed);
  return run;
}

static bool contains(const std::vector<std::string> &list,
                     const std::string &id) {
  return std::find(list.begin(), list.end(), id) != list.end();
}

/// Take a finding into the account as --allow and --warn say, and show it; the
/// same one in another order is told once.
static void take_finding(Finding finding, bool has_ended_launch,
                         const SimCommand &command, Account &account) {
  if (contains(command.allowed, finding.id)) {
    if (!has_ended_launch)
      return;
    finding.message += fmt::format(
        " (--allow {} cannot undo it: it ended the launch)", finding.id);
  }
  if (contains(command.warned, finding.id) &&
      finding.grade == Finding::Grade::error)
    finding.grade = Finding::Grade::warning;
  bool is_known = std::any_of(
      account.findings.begin(), account.findings.end(),
      [&](const Finding &known) {
        return known.id == finding.id && known.ptx_line == finding.ptx_line &&
               known.message == finding.message;
      });
  if (is_known)
    return;
  show_finding(finding);
  account.findings.push_back(std::move(finding));
}

static void take_findings(const Run &run, const SimCommand &command,
                          Account &account) {
  for (const LaunchResult &result : run.results)
    for (const Finding &finding : result.findings)
      take_finding(finding, finding.grade == Finding::Grade::error, command,
                   account);
}

/// Compare the lines the kernel printed, as sorted lists.
static void compare_printed(const Job &job, const Run &run, Account &account) {
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

static void compare_expected(const Job &job, const Run &run,
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
static void compare_orders(const Job &job, const Run &first, const Run &run,
                           Account &account) {
  auto tell = [&](bool is_error, const std::string &what) {
    take_finding({.id = "order-dependent",
                  .grade = is_error ? Finding::Grade::error
                                    : Finding::Grade::note,
                  .message = fmt::format("{} in the orders '{}' and '{}'", what,
                                         first.schedule.to_string(),
                                         run.schedule.to_string())},
                 /*has_ended_launch=*/false, job.command, account);
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

static void save_outputs(const Job &job, const Run &run) {
  const std::string &folder = job.command.save_folder;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw UserError(fmt::format("--save-dir {} cannot be made: {}", folder,
                                error.message()));
  for (std::size_t i = 0; i < run.memory.size(); ++i) {
    const BufferSpec &buffer = job.file.buffers[i];
    if (!buffer.is_output)
      continue;
    std::string path =
        (std::filesystem::path(folder) / (buffer.name + ".npy")).string();
    write_npy(path, buffer.type, buffer.shape, run.memory[i]);
    report("saved", "{}", path);
  }
}

static const char *grade_name(Finding::Grade grade) {
  return grade == Finding::Grade::error     ? "error"
         : grade == Finding::Grade::warning ? "warning"
                                            : "note";
}

static void write_report(const std::string &path, const char *verdict,
                         const Account &account) {
  json findings = json::array();
  for (const Finding &finding : account.findings)
    findings.push_back({{"id", finding.id},
                        {"grade", grade_name(finding.grade)},
                        {"message", finding.message},
                        {"file", finding.where.file},
                        {"line", finding.where.line},
                        {"ptx_line", finding.ptx_line}});
  json value = {{"verdict", verdict},
                {"findings", findings},
                {"comparisons", account.comparisons},
                {"stats",
                 {{"instructions", account.instructions},
                  {"time_us", account.time_us}}}};
  std::ofstream file(path);
  file << value.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  file.close();
  if (!file)
    throw UserError(fmt::format("--report {} cannot be written: {}", path,
                                std::strerror(errno ? errno : EIO)));
}

/// The report, the last line and the exit status.
static ExitStatus conclude(const SimCommand &command, const Account &account) {
  ExitStatus status = account.has_error() ? ExitStatus::finding
                      : account.wrong     ? ExitStatus::wrong
                                          : ExitStatus::ok;
  if (!command.report_path.empty())
    write_report(command.report_path,
                 status == ExitStatus::finding ? "error"
                 : status == ExitStatus::wrong ? "wrong"
                                               : "ok",
                 account);
  if (status == ExitStatus::finding)
    fmt::print("FAIL a check of the simulator found an error\n");
  else if (status == ExitStatus::wrong)
    fmt::print("FAIL {} of {} comparisons are wrong\n", account.wrong,
               account.compared);
  else
    fmt::print("{}\n", account.compared ? "PASS" : "DONE (not verified)");
  return status;
}

static ExitStatus simulate(const SimCommand &command) {
  SimOptions options = command.sim.options();
  std::vector<Schedule> schedules = schedules_of(command, options);
  Job job = load(command);
  report_job(job, options);
  Account account;
  Run first;
  for (const Schedule &schedule : schedules) {
    Run run = run_once(job, options, schedule);
    report("order", "{}", schedule.to_string());
    if (command.has_stats)
      for (const LaunchResult &result : run.results)
        report("stats", "{} warp instructions, {:.1f} ms simulated",
               result.instructions, result.time_us / 1e3);
    bool is_first = first.results.empty();
    if (is_first)
      for (const std::string &line : run.printed)
        report("printf", "{}", line);
    take_findings(run, command, account);
    account.instructions += run.instructions();
    account.time_us += run.time_us();
    // What an error cut short is not compared, unless the error is a warning.
    bool is_comparable = run.is_finished || !account.has_error();
    if (is_comparable)
      compare_expected(job, run, account);
    if (is_comparable && !is_first)
      compare_orders(job, first, run, account);
    if (is_first)
      first = std::move(run);
    if (!is_comparable) {
      report("compared", "nothing in this order: an error ended the launch");
      break;
    }
  }
  if (!command.save_folder.empty())
    save_outputs(job, first);
  return conclude(command, account);
}

/// What is refused goes into the report too.
static ExitStatus run_command(const SimCommand &command) {
  try {
    return simulate(command);
  } catch (const UserError &error) {
    Account account;
    account.findings.push_back({.id = "refused",
                                .message = error.message(),
                                .where = error.where(),
                                .ptx_line = static_cast<int>(
                                    error.where().file == command.ptx_path
                                        ? error.where().line
                                        : 0)});
    if (!command.report_path.empty())
      write_report(command.report_path, "refused", account);
    throw;
  }
}

void add_sim_command(CLI::App &app, Action &action) {
  CLI::App *command =
      app.add_subcommand("sim", "run any PTX on the simulator and check it");
  auto options = std::make_shared<SimCommand>();
  command->add_option("kernel", options->ptx_path, "the PTX file")->required();
  command->add_option("--launch", options->launch_path,
                      "the launch file: grid, arguments, what is expected")
      ->required();
  command->add_option("--save-dir", options->save_folder,
                      "write outputs to NAME.npy in this folder");
  command->add_option("--report", options->report_path,
                      "write verdict and findings to this JSON file");
  options->sim.add_to(*command);
  command
      ->add_option("--schedules", options->schedules,
                   "run eager, lazy and so many random orders, from --seed on")
      ->excludes(command->get_option("--order"));
  command
      ->add_option("--allow", options->allowed,
                   "do not report findings of this id")
      ->allow_extra_args(false);
  command
      ->add_option("--warn", options->warned,
                   "take errors of this id for warnings")
      ->allow_extra_args(false);
  command->add_flag("--stats", options->has_stats,
                    "instructions and time of each launch");
  command->callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
