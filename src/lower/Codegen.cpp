// Codegen: LLVM's half of the lowering, from the llvm dialect to PTX text.
#include "isa/Needs.h"
#include "isa/PtxVersion.h"
#include "kiln/base/text.h"
#include "lower/Lowering.h"
#include "support/Error.h"
#include "support/text/PtxText.h"

#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Analysis/TargetTransformInfo.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SmallVectorMemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

// Only the NVPTX back end is linked; the headers that declare all of LLVM's
// targets would ask for every one of them.
extern "C" {
void LLVMInitializeNVPTXTarget();
void LLVMInitializeNVPTXTargetInfo();
void LLVMInitializeNVPTXTargetMC();
void LLVMInitializeNVPTXAsmPrinter();
}

namespace kiln {

static constexpr const char *kTriple = "nvptx64-nvidia-cuda";

/// The oldest PTX version that knows `target` and that is written.
static int oldestVersion(const std::string &target) {
  auto known = isa::findTarget(target);
  return std::max(isa::kOldestWritable, known ? known->since() : 0);
}

namespace {
/// What the instructions of a module need: those of inline assembly, and LLVM's
/// intrinsics for NVIDIA's GPUs, which have the names of the instructions. The
/// back end aborts the process on one that the target lacks.
class ModuleNeeds {
public:
  ModuleNeeds(const std::string &target, int asked)
      : target_(isa::findTarget(target)), asked_(asked) {}

  void add(const llvm::CallInst &call);
  /// LLVM's own atomics and fences, which say their scope in words.
  void addScope(const llvm::Instruction &instruction);
  int version() const { return version_; }

private:
  void add(const isa::Spelled &spelled, const llvm::Instruction &where);

  std::optional<isa::Target> target_;
  int asked_;
  int version_ = 0;
};
} // namespace

/// Refuse at the C++ line of an instruction.
[[noreturn]] static void refuseAt(const llvm::Instruction &where,
                                  const std::string &message) {
  const llvm::DebugLoc &loc = where.getDebugLoc();
  if (!loc)
    userError("{}", message);
  userErrorAt({loc->getFilename().str(), loc.getLine()}, "{}", message);
}

void ModuleNeeds::add(const isa::Spelled &spelled,
                      const llvm::Instruction &where) {
  using isa::ptxVersionText;
  if (auto lack = isa::findLack(spelled, target_, asked_)) {
    if (lack->version)
      refuseAt(where,
               fmt::format("{} came with PTX {}, and PTX {} is asked for",
                           lack->what, ptxVersionText(lack->version),
                           ptxVersionText(asked_)));
    refuseAt(where, fmt::format("{} needs {}; the kernel is compiled for {}",
                                lack->what, lack->needed(), target_->name()));
  }
  int needed = target_ ? isa::neededVersion(spelled, *target_) : 0;
  if (needed > isa::kNewestWritable)
    refuseAt(where, fmt::format("{} came with PTX {}, and PTX {} is the newest "
                                "that LLVM writes",
                                spelled.opcode, ptxVersionText(needed),
                                ptxVersionText(isa::kNewestWritable)));
  version_ = std::max(version_, needed);
}

void ModuleNeeds::add(const llvm::CallInst &call) {
  if (const auto *text =
          llvm::dyn_cast<llvm::InlineAsm>(call.getCalledOperand())) {
    std::string blanked = blankCommentsAndStrings(text->getAsmString());
    for (const isa::Spelled &spelled : isa::spellAll(blanked))
      add(spelled, call);
    return;
  }
  const llvm::Function *callee = call.getCalledFunction();
  llvm::StringRef name = callee ? callee->getName() : "";
  if (name.starts_with("llvm.nvvm.read.ptx.sreg.cluster."))
    add(isa::Spelled{"%cluster_ctaid", {}, 0}, call);
  else if (name.consume_front("llvm.nvvm.") && !name.starts_with("read."))
    // Conversions are "e5m2x2.to.f16x2.rn".
    add(isa::spell(name.contains(".to.") ? fmt::format("cvt.{}", name.str())
                                         : name.str()),
        call);
}

void ModuleNeeds::addScope(const llvm::Instruction &instruction) {
  std::optional<llvm::SyncScope::ID> scope =
      llvm::getAtomicSyncScopeID(&instruction);
  if (!scope)
    return;
  llvm::SmallVector<llvm::StringRef> names;
  instruction.getContext().getSyncScopeNames(names);
  llvm::StringRef name = names[*scope];
  constexpr llvm::StringRef kKnown[] = {"", "singlethread", "block", "cluster",
                                        "device"};
  if (!llvm::is_contained(kKnown, name))
    refuseAt(instruction,
             fmt::format("syncscope(\"{}\") is no scope of a GPU; use block, "
                         "cluster or device, or none for the whole system",
                         printable(name.str())));
  if (name == "cluster")
    for (const isa::Spelled &spelled : isa::spellAll("fence.acq_rel.cluster;"))
      add(spelled, instruction);
}

/// The PTX version to write: what was asked for, or the oldest that has all
/// that the module uses.
static int chooseVersion(const llvm::Module &module, const std::string &target,
                         int asked) {
  if (asked && !isa::isWritablePtxVersion(asked))
    userError("PTX version {} (ten times PTX's own) is not one that can be "
              "written; those are {}",
              asked, isa::writablePtxVersions());
  int oldest = oldestVersion(target);
  if (asked && asked < oldest)
    userError("PTX {} does not know {}; it came with {}",
              isa::ptxVersionText(asked), target, isa::ptxVersionText(oldest));
  ModuleNeeds needs(target, asked);
  for (const llvm::Function &function : module)
    for (const llvm::BasicBlock &block : function)
      for (const llvm::Instruction &instruction : block) {
        needs.addScope(instruction);
        if (const auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction))
          needs.add(*call);
      }
  return asked ? asked : std::max(oldest, needs.version());
}

static std::unique_ptr<llvm::TargetMachine>
makeTargetMachine(const std::string &target, int optLevel, int ptxVersion) {
  static const bool isInitialised = [] {
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)isInitialised;
  llvm::Triple triple(kTriple);
  std::string error;
  const llvm::Target *backend =
      llvm::TargetRegistry::lookupTarget(triple, error);
  if (!backend)
    internalError("LLVM has no NVPTX back end: {}", error);
  auto level = static_cast<llvm::CodeGenOptLevel>(optLevel);
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(
      triple, target, fmt::format("+ptx{}", ptxVersion), {}, std::nullopt,
      std::nullopt, level));
}

/// Inline assembly as MLIR writes it is not convergent, and LLVM did move a
/// `.sync.aligned` into divergent arms. Every piece with side effects may be
/// one.
static void markInlineAsmConvergent(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block)
        if (auto *call = llvm::dyn_cast<llvm::CallInst>(&instruction)) {
          auto *text =
              llvm::dyn_cast<llvm::InlineAsm>(call->getCalledOperand());
          if (text && text->hasSideEffects())
            call->setConvergent();
          else if (text) // a pure function of its operands
            call->setDoesNotAccessMemory();
        }
}

/// Leave out passes of LLVM's pipeline that find nothing to do in a kernel.
static void skipIdlePasses(llvm::PassInstrumentationCallbacks &callbacks) {
  callbacks.registerShouldRunOptionalPassCallback(
      [isBehindVectorizer = false](llvm::StringRef pass,
                                   const llvm::Any &) mutable {
        // InstCombine is the most expensive one. Its last three of eight runs
        // tidy up behind the vectorizers and the unroller, which are off.
        isBehindVectorizer |= pass == "LoopVectorizePass";
        if (pass == "InstCombinePass")
          return !isBehindVectorizer;
        // Nothing calls through a pointer.
        return pass != "CalledValuePropagationPass";
      });
}

/// Run LLVM's standard pipeline.
static void optimize(llvm::Module &module, llvm::TargetMachine &machine,
                     int optLevel) {
  // A k-loop unrolled or peeled behind our back duplicates aligned barriers
  // and quadruples the code; a C++ loop in the kernel's source unrolls where
  // that is wanted.
  llvm::PipelineTuningOptions tuning;
  tuning.LoopUnrolling = false;
  tuning.LoopVectorization = false;
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassInstrumentationCallbacks callbacks;
  skipIdlePasses(callbacks);
  llvm::PassBuilder builder(&machine, tuning, std::nullopt, &callbacks);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  const llvm::OptimizationLevel kLevels[] = {
      llvm::OptimizationLevel::O0, llvm::OptimizationLevel::O1,
      llvm::OptimizationLevel::O2, llvm::OptimizationLevel::O3};
  llvm::OptimizationLevel level = kLevels[optLevel];
  llvm::ModulePassManager passes =
      optLevel == 0 ? builder.buildO0DefaultPipeline(level)
                    : builder.buildPerModuleDefaultPipeline(level);
  passes.run(module, modules);
}

/// Refuse calls that neither the module nor the driver can answer; MLIR turns
/// some math operations into calls of CUDA's libdevice.
static void checkCallees(const llvm::Module &module) {
  static constexpr llvm::StringRef kOfTheDriver[] = {"vprintf", "__assertfail",
                                                     "malloc", "free"};
  for (const llvm::Function &function : module)
    if (function.isDeclaration() && !function.isIntrinsic() &&
        !function.use_empty() &&
        !llvm::is_contained(kOfTheDriver, function.getName()))
      userError("the module calls {}, which is defined nowhere; Kiln links no "
                "device library: write it with the operations of arith, or "
                "define it in the module",
                function.getName().str());
}

std::unique_ptr<llvm::Module> lowerToLlvm(mlir::ModuleOp module,
                                          llvm::LLVMContext &context,
                                          const std::string &target,
                                          int optLevel) {
  auto gpuModules = module.getOps<mlir::gpu::GPUModuleOp>();
  // Checked when the module was built or parsed: it holds exactly one.
  assert(!gpuModules.empty());
  auto machine = makeTargetMachine(target, optLevel, oldestVersion(target));
  // The translation gives accesses the alignment of the layout it knows: with
  // LLVM's default one, eight-byte integers would be accessed in two halves.
  mlir::Operation *gpuModule = *gpuModules.begin();
  gpuModule->setAttr(
      mlir::LLVM::LLVMDialect::getDataLayoutAttrName(),
      mlir::StringAttr::get(
          module.getContext(),
          machine->createDataLayout().getStringRepresentation()));
  DiagnosticCollector diagnostics(*module.getContext());
  std::unique_ptr<llvm::Module> llvmModule =
      mlir::translateModuleToLLVMIR(gpuModule, context, "kiln");
  if (!llvmModule)
    diagnostics.raise("the module cannot be translated to LLVM IR");
  llvmModule->setTargetTriple(llvm::Triple(kTriple));
  llvmModule->setDataLayout(machine->createDataLayout());
  markInlineAsmConvergent(*llvmModule);
  optimize(*llvmModule, *machine, optLevel);
  checkCallees(*llvmModule);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*llvmModule, &stream))
    internalError("LLVM IR does not verify: {}", problem);
  return llvmModule;
}

namespace {
/// Back-end errors as text: LLVM's default handler would exit the process.
struct CollectErrors : llvm::DiagnosticHandler {
  std::string &errors;
  explicit CollectErrors(std::string &errors) : errors(errors) {}
  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    if (info.getSeverity() != llvm::DS_Error)
      return true;
    llvm::raw_string_ostream stream(errors);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    stream << "\n  ";
    info.print(printer);
    return true;
  }
};
} // namespace

std::string lowerToPtx(llvm::Module &module, const std::string &target,
                       int optLevel, int ptxVersion) {
  auto machine = makeTargetMachine(target, optLevel,
                                   chooseVersion(module, target, ptxVersion));
  std::string errors;
  module.getContext().setDiagnosticHandler(
      std::make_unique<CollectErrors>(errors));
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr,
                                   llvm::CodeGenFileType::AssemblyFile))
    internalError("LLVM's NVPTX back end cannot emit assembly");
  passes.run(module);
  if (!errors.empty())
    userError("LLVM cannot generate PTX for {}:{}", target, errors);
  return std::string(text);
}

} // namespace kiln
