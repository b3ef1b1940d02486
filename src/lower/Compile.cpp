// Compile: the public road from a Module to a Kernel, with the cache beside it.
#include "kiln/run/compile.h"
#include "kiln/base/text.h"
#include "lower/Fingerprint.h"
#include "lower/Lowering.h"
#include "lower/MemoryNeed.h"
#include "support/Cache.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/Make.h"

#include "mlir/Parser/Parser.h"

#include "llvm/Config/llvm-config.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

#include <chrono>
#include <optional>

namespace kiln {

std::string version() { return KILN_VERSION " (LLVM " LLVM_VERSION_STRING ")"; }

Module::Module(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Module::Module(Module &&) noexcept = default;
Module &Module::operator=(Module &&) noexcept = default;
Module::~Module() = default;

const std::string &Module::name() const { return impl_->name; }
const std::string &Module::target() const { return impl_->target; }
const LaunchContract &Module::contract() const { return impl_->contract; }

/// The kernels of a gpu.module: gpu.func kernels and llvm.func with
/// nvvm.kernel.
static std::vector<mlir::Operation *> kernelsOf(mlir::gpu::GPUModuleOp module) {
  std::vector<mlir::Operation *> kernels;
  for (mlir::Operation &op : module.getBodyRegion().getOps())
    if (op.hasAttr(mlir::gpu::GPUDialect::getKernelFuncAttrName()) ||
        op.hasAttr(mlir::NVVM::NVVMDialect::getKernelFuncAttrName()))
      kernels.push_back(&op);
  return kernels;
}

Module parse_module(std::string_view text, const std::string &file_name,
                    const std::string &target) {
  // Bytecode is not written by hand, and its reader trusts it.
  if (text.starts_with("ML\xefR"))
    userError("{} is MLIR bytecode; Kiln reads MLIR as text (mlir-opt prints "
              "it)",
              file_name);
  check_nesting(text, TextFormat::mlir, file_name);
  MemoryNeed need;
  auto impl = std::make_unique<Module::Impl>();
  impl->context = makeContext();
  impl->target = target;
  DiagnosticCollector diagnostics(*impl->context);
  mlir::ParserConfig config(impl->context.get());
  impl->module = mlir::parseSourceString<mlir::ModuleOp>(
      llvm::StringRef(text.data(), text.size()), config, file_name);
  if (!impl->module)
    diagnostics.raise(
        fmt::format("{} is not MLIR that Kiln can read", file_name));
  auto gpuModules =
      llvm::to_vector(impl->module->getOps<mlir::gpu::GPUModuleOp>());
  if (gpuModules.size() != 1)
    userError("{} holds {} gpu.module operations at its top level; Kiln lowers "
              "files with exactly one",
              file_name, gpuModules.size());
  auto kernels = kernelsOf(gpuModules.front());
  if (kernels.empty())
    userError("the gpu.module @{} of {} has no kernel: mark a gpu.func with "
              "'kernel' or an llvm.func with 'nvvm.kernel'",
              gpuModules.front().getName().str(), file_name);
  impl->name = mlir::SymbolTable::getSymbolName(kernels.front()).str();
  auto threads = kernels.front()->getAttrOfType<mlir::DenseI32ArrayAttr>(
      mlir::NVVM::NVVMDialect::getReqntidAttrName());
  for (int axis = 0; threads && axis < threads.size() && axis < 3; ++axis)
    impl->contract.block[axis] = threads[axis];
  return Make::a<Module>(std::move(impl));
}

/// Everything the PTX depends on, in one key.
static std::string cacheKey(Module::Impl &impl, const CompileOptions &options) {
  MemoryNeed need;
  return hashHex(fmt::format(
      "kernel\n{}\n{}\n{}\n{}\n{}\n{}", version(), impl.target,
      options.opt_level, options.ptx_version,
      hashHex(Kernel{impl.name, impl.target, "", impl.contract}.serialize()),
      hashHex(fingerprint(impl.module.get()))));
}

namespace {
/// Adds the time it lived to a counter.
class Stopwatch {
public:
  explicit Stopwatch(double *us) : us_(us) {}
  ~Stopwatch() {
    if (us_)
      *us_ += std::chrono::duration<double, std::micro>(
                  std::chrono::steady_clock::now() - start_)
                  .count();
  }

private:
  double *us_;
  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
};
} // namespace

static void checkOptions(const CompileOptions &options) {
  if (options.opt_level < 0 || options.opt_level > 3)
    userError("optimisation level {} does not exist; use 0, 1, 2 or 3",
              options.opt_level);
}

/// The text of `op` with its locations.
static std::string printOp(mlir::Operation *op) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  op->print(stream, mlir::OpPrintingFlags().enableDebugInfo());
  return text + "\n";
}

std::string emit(const Module &module, Stage stage,
                 const CompileOptions &options) {
  checkOptions(options);
  MemoryNeed need;
  Module::Impl &impl = module.impl();
  if (stage == Stage::mlir)
    return printOp(impl.module.get());
  CompileOptions::Timing unused;
  auto &timing = options.timing ? *options.timing : unused;
  mlir::OwningOpRef<mlir::ModuleOp> lowered(impl.module->clone());
  {
    Stopwatch watch(&timing.lower_us);
    lowerToNvvm(*lowered);
  }
  if (stage == Stage::nvvm)
    return printOp(*lowered);
  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule;
  {
    Stopwatch watch(&timing.llvm_us);
    llvmModule = lowerToLlvm(*lowered, context, impl.target, options.opt_level);
  }
  if (stage == Stage::llvm) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvmModule->print(stream, nullptr);
    return text;
  }
  Stopwatch watch(&timing.ptx_us);
  return lowerToPtx(*llvmModule, impl.target, options.opt_level,
                    options.ptx_version);
}

/// The kernel that the cache holds under a key; nothing where the entry is not
/// what `compile` would make of the module.
static std::optional<Kernel> findCached(Cache &cache, const std::string &key,
                                        const Module::Impl &impl) {
  std::optional<std::string> bytes = cache.get(key);
  if (!bytes)
    return std::nullopt;
  try {
    Kernel kernel = Kernel::deserialize(*bytes, "cache entry " + key);
    if (kernel.name == impl.name && kernel.target == impl.target &&
        kernel.contract == impl.contract)
      return kernel;
  } catch (const UserError &) {
    // An entry that cannot be read is written again.
  }
  return std::nullopt;
}

Kernel compile(const Module &module, const CompileOptions &options) {
  checkOptions(options);
  Module::Impl &impl = module.impl();
  Cache &cache = Cache::ofProcess();
  bool useCache = options.use_cache && cache.isOn();
  std::string key = useCache ? cacheKey(impl, options) : std::string();
  if (useCache) {
    if (auto kernel = findCached(cache, key, impl)) {
      if (options.timing)
        options.timing->from_cache = true;
      return *std::move(kernel);
    }
  }
  Kernel kernel{impl.name, impl.target, emit(module, Stage::ptx, options),
                impl.contract};
  try {
    if (useCache)
      cache.put(key, kernel.serialize());
  } catch (const UserError &) {
    // What cannot be saved, for a file name that is not UTF-8, is not kept.
  }
  return kernel;
}

} // namespace kiln
