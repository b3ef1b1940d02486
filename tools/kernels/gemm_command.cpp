// gemm_command: one product from configuration to verdict.
//
// The last line is the verdict: PASS, FAIL, or DONE where nothing was verified.
#include "commands.h"
#include "gemm_matrices.h"
#include "kernels/gemm_options.h"
#include "kernel_run.h"
#include "console/output_file.h"
#include "console/say.h"
#include "console/run_watch.h"
#include "console/show_findings.h"
#include "kernel_command.h"
#include "options/check_flags.h"
#include "sim/prove_launch.h"

#include <kiln/run/assemble.h>
#include <kiln/run/compile.h>
#include <kiln/measure/cublas.h>
#include <kiln/base/file.h>
#include <kiln/run/open_device.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

/// Launches that are timed after the verified one; the fastest is reported,
/// because the others had the clocks of an idle GPU.
static constexpr int kTimedGemms = 5;

namespace {

struct GemmCommand {
  GemmOptions gemm;
  std::string device = "auto";
  CheckFlags check;
  std::uint64_t data_seed = 0;
  std::string a_path, b_path, save_path;
  bool is_unverified = false;
  bool is_printing = false, is_proved = false;
  bool is_traced = false;
  bool is_without_cache = false;
  AssembleOptions assemble;
  std::string save_ir_folder, save_kernel_path;
};

} // namespace

static void report_configuration(const GemmCommand &command,
                                 const GemmProblem &problem,
                                 const GemmSchedule &fitted) {
  report("gemm", "{}", problem.to_string());
  if (!command.gemm.runtime_dims.empty())
    report("runtime", "{}", fmt::join(command.gemm.runtime_dims, ", "));
  std::string lowered;
  if (auto asked = command.gemm.asked_stages();
      asked.value_or(0) > fitted.stages)
    lowered =
        fmt::format(" (lowered from {}: a CTA has no more K tiles)", *asked);
  report("schedule", "{}{}", fitted.to_string(), lowered);
}

/// Every stage of the kernel in a folder, named after it.
static void save_ir(const std::string &folder, const Module &module,
                    const CompileOptions &options) {
  std::filesystem::path base = std::filesystem::path(folder) / module.name();
  for (auto [ending, stage] :
       {std::pair{".mlir", Stage::mlir}, std::pair{".nvvm.mlir", Stage::nvvm},
        std::pair{".ll", Stage::llvm}, std::pair{".ptx", Stage::ptx}})
    write_file(base.string() + ending, {emit(module, stage, options)});
  report("saved", "{}.mlir, .nvvm.mlir, .ll and .ptx", base.string());
}

static Kernel compile_gemm(const GemmCommand &command,
                           const GemmProblem &problem,
                           const GemmSchedule &schedule,
                           const DeviceDescription &device, Outputs &outputs) {
  CompileOptions::Timing timing;
  CompileOptions options;
  options.use_cache = !command.is_without_cache;
  options.timing = &timing;
  auto start = std::chrono::steady_clock::now();
  Module module =
      build_gemm(problem, schedule, {.is_traced = command.is_traced}, device);
  Kernel kernel = compile(module, options);
  std::chrono::duration<double, std::milli> elapsed =
      std::chrono::steady_clock::now() - start;
  report("compiled", "{} in {:.0f} ms{}", kernel.name, elapsed.count(),
         timing.from_cache ? " (cached)" : "");
  if (!command.save_ir_folder.empty())
    outputs.attempt([&] { save_ir(command.save_ir_folder, module, options); });
  return kernel;
}

static void assemble_gemm(const GemmCommand &command, const Kernel &kernel) {
  if (command.is_traced) {
    report("assembled", "no: prints stand between products and their wait, "
                        "which ptxas takes for slow code");
    return;
  }
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

static double operations_of(const ReferenceGemm &gemm) {
  return 2.0 * static_cast<double>(gemm.batch) * static_cast<double>(gemm.m) *
         static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
}

/// Run once into `host.d`; on a GPU some times more, for the time. False where
/// the simulator found an error.
static bool run_gemm(Device &device, const Kernel &kernel,
                     const ReferenceGemm &gemm, const GemmBuffers &buffers,
                     const CheckSettings &settings, GemmMatrices &host,
                     Outputs &outputs) {
  return run_kernel(device, kernel, launch_arguments(kernel, gemm, buffers),
                    {kTimedGemms, operations_of(gemm)}, settings, outputs, [&] {
                      device.copy_out(host.d.data(), buffers.d, host.d.size());
                      return std::vector<std::span<const std::byte>>{host.d};
                    });
}

/// What another library makes of the same numbers, on a GPU that has it.
static void run_cublas(Device &device, const ReferenceGemm &gemm,
                       const GemmBuffers &buffers, std::size_t d_bytes) {
  if (device.kind() != DeviceKind::cuda)
    return;
  try {
    std::shared_ptr<CublasLt> library = open_cublaslt(device);
    std::shared_ptr<CublasPlan> plan = library->plans(gemm).front();
    std::vector<std::byte> d(d_bytes, std::byte{*gemm.poison});
    Buffer to = device.allocate(d_bytes);
    device.copy_in(to, d.data(), d_bytes);
    plan->enqueue({buffers.a, buffers.b, buffers.c, buffers.bias, to,
                   buffers.a_scales, buffers.b_scales});
    device.copy_out(d.data(), to, d_bytes);
    report("cublaslt", "max_rel_err={:.2e} (version {})",
           compare_gemm(gemm, d.data()).max_rel_err, library->version());
  } catch (const Error &error) {
    report("cublaslt", "no: {}", error.message());
  }
}

/// "[1, 2]", with the product in front where there are several.
static std::string place(const ReferenceGemm &gemm, const Mismatch &wrong) {
  if (gemm.batch == 1)
    return fmt::format("[{}, {}]", wrong.row, wrong.col);
  return fmt::format("[{}, {}, {}]", wrong.batch, wrong.row, wrong.col);
}

static ExitStatus verify(const ReferenceGemm &gemm, const GemmMatrices &host) {
  Comparison result = compare_gemm(gemm, host.d.data());
  if (result.is_sampled)
    report("compared", "{} elements, rows and columns spread over D",
           result.compared);
  for (const Mismatch &wrong : result.first)
    report("wrong", "D{} is {:.9g}, should be {:.9g} within {:.2g}",
           place(gemm, wrong), wrong.got, wrong.want, wrong.tolerance);
  if (result.ok) {
    say("PASS max_rel_err={:.2e}\n", result.max_rel_err);
    return ExitStatus::ok;
  }
  std::string gaps;
  if (result.touched_gaps)
    gaps = fmt::format(", {} elements between the rows of D were written",
                       result.touched_gaps);
  say("FAIL max_rel_err={:.2e}, {} of {} elements are wrong{}\n",
      result.max_rel_err, result.wrong, result.compared, gaps);
  return ExitStatus::wrong;
}

/// In every interleaving, each of which is verified.
static ExitStatus prove_gemm(Device &device, const Kernel &kernel,
                             const ReferenceGemm &gemm,
                             const GemmBuffers &buffers,
                             const CheckSettings &settings,
                             GemmMatrices &host) {
  ProveOptions options = prove_options(
      settings, settings.explore_options(device.description()).sim);
  options.judge = [&]() -> std::string {
    device.copy_out(host.d.data(), buffers.d, host.d.size());
    Comparison result = compare_gemm(gemm, host.d.data());
    return result.ok ? ""
                     : fmt::format("{} of {} elements of D are wrong",
                                   result.wrong, result.compared);
  };
  LaunchDescription launch =
      device.describe(kernel, launch_arguments(kernel, gemm, buffers));
  Proof proof = prove_launch(device, launch, std::move(options));
  for (const Finding &finding : proof.result.findings)
    show_finding(finding);
  say("{}", proof.to_string());
  return exit_status_of(proof);
}

static ExitStatus run_on(Device &device, const GemmCommand &command,
                         const CheckSettings &settings, const Kernel &kernel,
                         const GemmProblem &problem, Outputs &outputs) {
  report("device", "{}", device.name());
  ReferenceGemm gemm = command.gemm.reference(problem);
  GemmMatrices host(gemm, problem.has_beta, command.data_seed);
  gemm = host.of(gemm);
  if (!command.a_path.empty())
    read_a(command.a_path, gemm, host.a);
  if (!command.b_path.empty())
    read_b(command.b_path, gemm, host.b);
  GemmBuffers buffers = copy_in(device, host);
  if (command.is_proved)
    return prove_gemm(device, kernel, gemm, buffers, settings, host);
  if (!run_gemm(device, kernel, gemm, buffers, settings, host, outputs)) {
    show_failure(RunWatch::signal());
    return ExitStatus::finding;
  }
  if (command.is_printing)
    print_matrices(gemm, host);
  if (!command.save_path.empty())
    outputs.attempt([&] {
      write_d(command.save_path, gemm, host.d);
      report("saved", "{}", command.save_path);
    });
  if (command.is_unverified) {
    say("DONE (not verified)\n");
    return ExitStatus::ok;
  }
  run_cublas(device, gemm, buffers, host.d.size());
  return verify(gemm, host);
}

/// Refuse outputs that could not be written after the run.
static void check_outputs(const GemmCommand &command) {
  command.check.check_outputs();
  check_output("--save", command.save_path);
  check_output("--save-kernel", command.save_kernel_path);
  make_folder("--save-ir", command.save_ir_folder);
}

static ExitStatus run_command(const GemmCommand &command) {
  GemmProblem sized = command.gemm.sized_problem();
  CheckSettings settings = command.check.settings();
  if (command.device != "none")
    check_memory(command.gemm.reference(sized), sized.has_beta);
  check_outputs(command);
  Outputs outputs;
  GemmProblem problem = command.gemm.with_arguments(sized);
  std::shared_ptr<Device> device = choose_device(
      command.device,
      settings.sim_options(command.gemm.target.empty()
                               ? DeviceDescription::h200()
                               : DeviceDescription::for_target(
                                     command.gemm.target)));
  const DeviceDescription target = command.gemm.built_for(device.get());
  GemmSchedule schedule = command.gemm.fitted_schedule(sized, target);
  report_configuration(command, sized, schedule);
  Kernel kernel = compile_gemm(command, problem, schedule, target, outputs);
  assemble_gemm(command, kernel);
  if (!command.save_kernel_path.empty())
    outputs.attempt([&] {
      kernel.save(command.save_kernel_path);
      report("saved", "{}", command.save_kernel_path);
    });
  if (device)
    return outputs.conclude(run_on(*device, command, settings, kernel, sized, outputs));
  report("device", "none, as asked");
  say("DONE (not verified)\n");
  return outputs.conclude(ExitStatus::ok);
}

void add_gemm_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "gemm", "build, run and verify D = act(alpha * A * B + beta * C + bias)");
  auto options = std::make_shared<GemmCommand>();
  command.add_option("sizes", options->gemm.sizes, "M N K")
      .value_name("N")
      .required()
      .expected(3);
  options->gemm.add_to(command);
  command.add_option("--device", options->device,
                     "auto, sim, cuda, cuda:N or none")
      .value_name("NAME")
      .capture_default_str();
  // Ids of --allow are findings or ptxas' warnings.
  options->check.add_to(command, door_launches, {"allow"});
  command.add_option("--data-seed", options->data_seed, "of the numbers")
      .capture_default_str();
  command.add_option("--a", options->a_path, "A, from a .npy file")
      .value_name("FILE");
  command.add_option("--b", options->b_path, "B, from a .npy file")
      .value_name("FILE");
  command.add_option("--save", options->save_path, "D, to a .npy file")
      .value_name("FILE");
  command.add_flag("--debug-print", options->is_traced,
                   "each role prints what it waits for, loads and multiplies "
                   "(multistage and warp-specialized)");
  command.add_flag("--prove", options->is_proved,
                   "run it in every interleaving on the simulator, and say "
                   "proved, counterexample or gave up (`kiln prove`)");
  command.add_flag("--print", options->is_printing,
                   "A, B and D, where they are small");
  command.add_flag("--no-verify", options->is_unverified,
                   "do not compare with the reference");
  command.add_flag("--no-cache", options->is_without_cache,
                   "compile again, keep nothing");
  add_to(command, options->assemble);
  command
      .add_option("--save-ir", options->save_ir_folder,
                  "write every stage of the kernel into this folder")
      .value_name("FOLDER");
  command
      .add_option("--save-kernel", options->save_kernel_path,
                  "write the kernel to this file")
      .value_name("FILE");
  command.callback([&action, options] {
    // One list on the command line: ptxas says C7508, the simulator words.
    std::vector<std::string> &allowed = options->assemble.allow;
    std::erase_if(allowed, [&](const std::string &id) {
      bool is_finding = !id.starts_with('C');
      if (is_finding)
        options->check.give("allow", id);
      return is_finding;
    });
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
