// emit_command: a kernel at any stage on its way to machine code.
#include "commands.h"
#include "console/output_file.h"
#include "kernels/gemm_options.h"

#include <kiln/base/file.h>
#include <kiln/check/launch_file.h>
#include <kiln/kernels/nvgpu_gemm.h>
#include <kiln/run/assemble.h>
#include <kiln/run/compile.h>

#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

namespace {

struct EmitOptions {
  GemmOptions gemm;
  std::vector<std::string> source; ///< gemm M N K, or a file
  std::string form = "ptx";
  std::string output;
  std::string launch_path; ///< where the launch file goes
  CompileOptions compile;
  AssembleOptions assemble;
  bool is_without_cache = false;
  bool is_faithful = false;         ///< --ir nvgpu: without repairs
  std::vector<std::string> repairs; ///< but these
};

} // namespace

static Module module_of(const EmitOptions &options) {
  if (options.source.front() == "gemm") {
    GemmProblem sized = options.gemm.sized_problem();
    const DeviceDescription device = options.gemm.built_for(nullptr);
    return build_gemm(options.gemm.with_arguments(sized),
                      options.gemm.fitted_schedule(sized, device), {}, device);
  }
  if (options.source.size() != 1)
    throw UserError(fmt::format(
        "'{}' is not expected after {}; emit takes gemm M N K, or one file",
        options.source[1], options.source[0]));
  return parse_module(read_file(options.source.front()), options.source.front(),
                      options.gemm.target.empty()
                          ? DeviceDescription::h200().target()
                          : options.gemm.target);
}

/// The product as a module of the nvgpu dialect, for MLIR's own tools.
static std::string nvgpu_text(const EmitOptions &options) {
  const GemmOptions &asked = options.gemm;
  if (options.source.front() != "gemm")
    throw UserError("--ir nvgpu is for products: kiln emit gemm M N K --ir "
                    "nvgpu");
  GemmProblem problem = asked.sized_problem();
  if (problem.type != Type::f16 || problem.out != Type::f32)
    throw UserError(fmt::format("--ir nvgpu multiplies f16 into f32, not {} "
                                "into {}",
                                name(problem.type), name(problem.out)));
  NvgpuGemm gemm;
  gemm.m = problem.m.constant();
  gemm.n = problem.n.constant();
  gemm.k = problem.k.constant();
  const std::string &schedule = asked.schedule_kind;
  gemm.is_warp_specialized = schedule == "warp-specialized";
  if (!gemm.is_warp_specialized && schedule != "multistage" &&
      schedule != "auto")
    throw UserError(fmt::format("'{}' is not a schedule of --ir nvgpu; use "
                                "multistage or warp-specialized",
                                schedule));
  gemm.stages = asked.asked_stages().value_or(gemm.stages);
  if (options.is_faithful)
    gemm.repairs.clear();
  if (!options.repairs.empty() && !options.is_faithful)
    throw UserError("--repair is for --faithful; without it every repair is "
                    "there");
  for (const std::string &word : options.repairs)
    gemm.repairs.insert(parse_nvgpu_repair(word));
  return nvgpu_module(gemm);
}

static std::optional<Stage> parse_stage(const std::string &form) {
  for (auto [word, stage] :
       {std::pair{"mlir", Stage::mlir}, std::pair{"nvvm", Stage::nvvm},
        std::pair{"llvm", Stage::llvm}, std::pair{"ptx", Stage::ptx}})
    if (form == word)
      return stage;
  return std::nullopt;
}

/// The kernel in the form asked for.
static std::string text_of(const EmitOptions &options) {
  if (options.form == "nvgpu")
    return nvgpu_text(options);
  if (options.is_faithful || !options.repairs.empty())
    throw UserError("--faithful and --repair are for --ir nvgpu");
  std::optional<Stage> stage = parse_stage(options.form);
  if (!stage && options.form != "cubin" && options.form != "sass")
    throw UserError(fmt::format("'{}' is not a form of a kernel; --ir takes "
                                "mlir, nvvm, llvm, ptx, cubin, "
                                "sass or nvgpu",
                                options.form));
  if (options.form == "cubin" && options.output.empty() &&
      isatty(STDOUT_FILENO))
    throw UserError("a cubin is binary and stdout is a terminal; name a file "
                    "with -o");
  Module module = module_of(options);
  if (stage)
    return emit(module, *stage, options.compile);
  Kernel kernel = compile(module, options.compile);
  AssembleOptions assemble_options = options.assemble;
  assemble_options.target = kernel.target;
  Assembly assembly = assemble(kernel.ptx, kernel.name, assemble_options);
  if (options.form == "sass")
    return disassemble(assembly, assemble_options);
  return {reinterpret_cast<const char *>(assembly.cubin.data()),
          assembly.cubin.size()};
}

/// The launch file of the kernel, beside its PTX.
static void save_launch(const EmitOptions &options) {
  if (options.form == "nvgpu")
    throw UserError("--save-launch is for kernels; a program of --ir nvgpu "
                    "launches its own (kiln run)");
  if (options.source.front() != "gemm")
    throw UserError(fmt::format("--save-launch is for gemm M N K; how {} is "
                                "launched is for its program to say",
                                options.source.front()));
  ReferenceGemm gemm = options.gemm.reference(options.gemm.sized_problem());
  Kernel kernel = compile(module_of(options), options.compile);
  auto number = [](std::int64_t value) { return static_cast<double>(value); };
  write_output(options.launch_path,
               launch_file_of(kernel, {{"m", number(gemm.m)},
                                       {"n", number(gemm.n)},
                                       {"k", number(gemm.k)},
                                       {"batch", number(gemm.batch)},
                                       {"alpha", gemm.alpha},
                                       {"beta", gemm.beta}})
                   .to_json());
}

void add_emit_command(Command app, Action &action) {
  Command command =
      app.add_subcommand("emit", "show a kernel at any stage of compilation");
  auto options = std::make_shared<EmitOptions>();
  command
      .add_option("source", options->source,
                  "gemm M N K, or a file of MLIR with one gpu.module")
      .required()
      .expected(1, 4);
  options->gemm.add_to(command);
  command
      .add_option("--ir", options->form,
                  "mlir, nvvm, llvm, ptx, cubin, sass; nvgpu: the whole "
                  "program in MLIR's nvgpu dialect")
      .capture_default_str();
  command.add_flag("--faithful", options->is_faithful,
                   "--ir nvgpu: the kernel as it was published, without "
                   "repairs");
  command
      .add_option("--repair", options->repairs,
                  "of a faithful kernel: init-once, init-fence, tiles-apart, "
                  "await-products")
      .one_value_each();
  command.add_option("-o,--output", options->output,
                     "write there and not to stdout");
  command.add_option("--save-launch", options->launch_path,
                     "write the launch file that `kiln sim` runs it with");
  add_to(command, options->assemble);
  command.add_flag("--no-cache", options->is_without_cache,
                   "compile again, keep nothing");
  command.callback([&action, options] {
    options->compile.use_cache = !options->is_without_cache;
    options->assemble.use_cache = !options->is_without_cache;
    options->gemm.sizes.assign(options->source.begin() + 1,
                               options->source.end());
    action = [options] {
      check_output("-o", options->output);
      check_output("--save-launch", options->launch_path);
      if (!options->launch_path.empty())
        save_launch(*options);
      write_output(options->output, text_of(*options));
      return ExitStatus::ok;
    };
  });
}

} // namespace kiln::cli
