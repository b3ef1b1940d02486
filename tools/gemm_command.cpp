// gemm_command: one product from configuration to verdict.
//
// The last line is the verdict: PASS, FAIL, or DONE where nothing was verified.
#include "commands.h"
#include "gemm_options.h"
#include "sim_options.h"

#include <kiln/assemble.h>
#include <kiln/compile.h>
#include <kiln/gemm.h>
#include <kiln/reference.h>
#include <kiln/sim.h>

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

/// Launches that are timed after the verified one; the fastest is reported,
/// because the others had the clocks of an idle GPU.
static constexpr int kTimedLaunches = 5;

namespace {

struct GemmCommand {
  GemmOptions gemm;
  std::string device = "auto";
  SimFlags sim;
  std::uint64_t data_seed = 0;
  bool is_unverified = false;
  bool is_without_cache = false;
  AssembleOptions assemble;
  std::string save_path;
};

/// The matrices on the host. D begins as NaN in every type, so that an element
/// nobody wrote cannot pass.
struct HostMatrices {
  std::vector<std::byte> a, b, d;
};

} // namespace

/// One line of the account: a word, then what there is to say.
template <typename... Args>
static void report(std::string_view what, fmt::format_string<Args...> format,
                   Args &&...args) {
  fmt::print("{:<10} {}\n", what,
             fmt::format(format, std::forward<Args>(args)...));
}

static void report_configuration(const GemmCommand &command,
                                 const GemmSchedule &fitted) {
  report("gemm", "{}", command.gemm.sized_problem().to_string());
  if (!command.gemm.runtime_dims.empty())
    report("runtime", "{}", fmt::join(command.gemm.runtime_dims, ", "));
  std::string lowered;
  if (fitted.stages != command.gemm.stages)
    lowered = fmt::format(" (lowered from {}: K has no more tiles)",
                          command.gemm.stages);
  report("schedule", "{}{}", fitted.to_string(), lowered);
}

static Kernel compile_gemm(const GemmCommand &command,
                           const GemmSchedule &schedule) {
  CompileOptions::Timing timing;
  CompileOptions options;
  options.use_cache = !command.is_without_cache;
  options.timing = &timing;
  auto start = std::chrono::steady_clock::now();
  Kernel kernel =
      compile(build_gemm(command.gemm.problem(), schedule), options);
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  report("compiled", "{} in {:.0f} ms{}", kernel.name, elapsed.count(),
         timing.from_cache ? " (cached)" : "");
  return kernel;
}

static void assemble_gemm(const GemmCommand &command, const Kernel &kernel) {
  AssembleOptions options = command.assemble;
  options.target = kernel.target;
  options.use_cache = !command.is_without_cache;
  if (!find_ptxas(options)) {
    report("assembled", "no: there is no ptxas here; nothing is lost, the "
                        "driver assembles PTX by itself");
    return;
  }
  Assembly assembly = assemble(kernel.ptx, kernel.name, options);
  const ResourceUse &use = assembly.resources;
  report("assembled",
         "{} registers, {} bytes spilled, {} bytes of shared memory (ptxas {})",
         use.registers, use.spill_store_bytes + use.spill_load_bytes,
         use.static_smem_bytes + kernel.contract.dynamic_smem_bytes,
         assembly.ptxas_version);
  for (const AssembleDiagnostic &diagnostic : assembly.diagnostics)
    if (diagnostic.severity != "info")
      report("ptxas", "{}", diagnostic.to_string());
}

static void check_device(const std::string &choice) {
  if (choice != "auto" && choice != "none" && choice != "cuda" &&
      choice != "sim")
    throw UserError(fmt::format(
        "'{}' is no device; --device takes auto, sim, cuda or none", choice));
}

/// The device to run on, or nothing where none is wanted.
static std::shared_ptr<Device> choose_device(const GemmCommand &command) {
  if (command.device == "none") {
    report("device", "none, as asked");
    return nullptr;
  }
  return open_device(command.device, command.sim.options());
}

static HostMatrices make_matrices(const GemmProblem &problem,
                                  std::uint64_t seed) {
  auto m = static_cast<std::size_t>(problem.m.constant());
  auto n = static_cast<std::size_t>(problem.n.constant());
  auto k = static_cast<std::size_t>(problem.k.constant());
  auto bytes = static_cast<std::size_t>(size_bytes(problem.type));
  HostMatrices host;
  host.a.resize(m * k * bytes);
  host.b.resize(k * n * bytes);
  host.d.assign(m * n * static_cast<std::size_t>(size_bytes(problem.out)),
                std::byte{0xff});
  fill_random(problem.type, host.a.data(), m * k, seed);
  fill_random(problem.type, host.b.data(), k * n, seed + 1);
  return host;
}

/// The sizes the kernel takes as arguments, in its order.
static std::vector<LaunchArgument> runtime_sizes(const Kernel &kernel,
                                                 const GemmProblem &problem) {
  std::vector<LaunchArgument> sizes;
  for (const ArgumentSpec &argument : kernel.contract.arguments) {
    if (argument.kind != ArgumentSpec::Kind::scalar)
      continue;
    const Dim &dim = argument.name == "m"   ? problem.m
                     : argument.name == "n" ? problem.n
                                            : problem.k;
    sizes.emplace_back(
        Scalar(argument.type, static_cast<std::uint64_t>(dim.constant())));
  }
  return sizes;
}

/// Show what the simulator found; false where the launch failed.
static bool show_findings(const LaunchResult &result) {
  for (const Finding &finding : result.findings)
    show_finding(finding);
  return result.ok();
}

/// Run once into `host.d`; on a GPU some times more, for the time. False where
/// the simulator found an error.
static bool run_gemm(Device &device, const Kernel &kernel,
                     const GemmProblem &problem, HostMatrices &host) {
  std::vector<LaunchArgument> arguments;
  for (const std::vector<std::byte> *matrix : {&host.a, &host.b, &host.d}) {
    Buffer buffer = device.allocate(matrix->size());
    device.copy_in(buffer, matrix->data(), matrix->size());
    arguments.push_back(buffer);
  }
  Buffer d = std::get<Buffer>(arguments.back());
  for (const LaunchArgument &size : runtime_sizes(kernel, problem))
    arguments.push_back(size);
  report("device", "{}", device.name());
  LaunchResult result = device.launch(kernel, arguments);
  device.copy_out(host.d.data(), d, host.d.size());
  device.synchronize();
  if (!show_findings(result))
    return false;
  if (result.instructions) {
    report("time", "{:.1f} ms simulated, {} warp instructions",
           result.time_us / 1e3, result.instructions);
    return true;
  }

  double fastest_us = device.launch(kernel, arguments).time_us;
  for (int i = 1; i < kTimedLaunches; ++i)
    fastest_us = std::min(fastest_us, device.launch(kernel, arguments).time_us);
  double operations = 2.0 * static_cast<double>(problem.m.constant()) *
                      static_cast<double>(problem.n.constant()) *
                      static_cast<double>(problem.k.constant());
  report("time", "{:.1f} us, {:.1f} TFLOP/s, the fastest of {}", fastest_us,
         operations / fastest_us / 1e6, kTimedLaunches);
  return true;
}

static ExitStatus verify(const GemmProblem &problem, const HostMatrices &host) {
  Comparison result = compare_gemm({.m = problem.m.constant(),
                                    .n = problem.n.constant(),
                                    .k = problem.k.constant(),
                                    .type = problem.type,
                                    .a_row_major = problem.a_is_k_major(),
                                    .b_row_major = !problem.b_is_k_major(),
                                    .a = host.a.data(),
                                    .b = host.b.data()},
                                   problem.out, host.d.data());
  if (result.is_sampled)
    report("compared", "{} elements, rows and columns spread over D",
           result.compared);
  for (const Mismatch &wrong : result.first)
    report("wrong", "D[{}, {}] is {:.9g}, should be {:.9g} within {:.2g}",
           wrong.row, wrong.col, wrong.got, wrong.want, wrong.tolerance);
  if (result.ok) {
    fmt::print("PASS max_rel_err={:.2e}\n", result.max_rel_err);
    return ExitStatus::ok;
  }
  fmt::print("FAIL max_rel_err={:.2e}, {} of {} elements are wrong\n",
             result.max_rel_err, result.wrong, result.compared);
  return ExitStatus::wrong;
}

static ExitStatus run_command(const GemmCommand &command) {
  check_device(command.device);
  GemmSchedule schedule = command.gemm.fitted_schedule();
  GemmProblem problem = command.gemm.sized_problem();
  report_configuration(command, schedule);
  Kernel kernel = compile_gemm(command, schedule);
  assemble_gemm(command, kernel);
  if (!command.save_path.empty()) {
    kernel.save(command.save_path);
    report("saved", "{}", command.save_path);
  }
  std::shared_ptr<Device> device = choose_device(command);
  if (device) {
    HostMatrices host = make_matrices(problem, command.data_seed);
    if (!run_gemm(*device, kernel, problem, host)) {
      fmt::print("FAIL a check of the simulator found an error\n");
      return ExitStatus::finding;
    }
    if (!command.is_unverified)
      return verify(problem, host);
  }
  fmt::print("DONE (not verified)\n");
  return ExitStatus::ok;
}

void add_gemm_command(CLI::App &app, Action &action) {
  CLI::App *command = app.add_subcommand(
      "gemm", "build, run and verify D[M,N] = A[M,K] * B[K,N]");
  auto options = std::make_shared<GemmCommand>();
  command->add_option("sizes", options->gemm.sizes, "M N K")
      ->required()
      ->expected(3);
  options->gemm.add_to(*command);
  command->add_option("--device", options->device, "auto, sim, cuda or none")
      ->capture_default_str();
  options->sim.add_to(*command);
  command->add_option("--data-seed", options->data_seed, "of the numbers")
      ->capture_default_str();
  command->add_flag("--no-verify", options->is_unverified,
                    "do not compare with the reference");
  command->add_flag("--no-cache", options->is_without_cache,
                    "compile again, keep nothing");
  add_to(*command, options->assemble);
  command->add_option("--save", options->save_path,
                      "write the kernel to this file");
  command->callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
