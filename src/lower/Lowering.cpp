// Lowering: the ordered list of MLIR passes, each with its reason.
//
// Kiln's own kernels are llvm.func with scf, arith, math and nvvm inside a
// gpu.module; a gpu.module somebody else wrote may also use gpu.func, memref,
// vector, affine and nvgpu. Both take the same road, without what the first
// kind does not need. Everything after this file is LLVM's (Codegen.cpp).
#include "lower/Lowering.h"
#include "support/Error.h"

#include "mlir/Conversion/AffineToStandard/AffineToStandard.h"
#include "mlir/Conversion/GPUToNVVM/GPUToNVVMPass.h"
#include "mlir/Conversion/NVGPUToNVVM/NVGPUToNVVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToSCF/VectorToSCF.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/Vector/Transforms/LoweringPatterns.h"
#include "mlir/Rewrite/PatternApplicator.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace kiln {

namespace {
/// One pass, why it is there, and why at this place.
struct Step {
  const char *name;
  const char *reason;
  std::unique_ptr<mlir::Pass> (*make)();
  /// On which operation it runs: the whole module or each gpu.module in it.
  enum { onModule, onGpuModule } where;
  /// Kiln's own kernels have nothing for it to do.
  bool isForOthers = false;
};
} // namespace

namespace {
/// MLIR has these patterns and no pass that runs them.
struct LowerVectorTransfers
    : mlir::PassWrapper<LowerVectorTransfers, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LowerVectorTransfers)
  llvm::StringRef getArgument() const override {
    return "lower-vector-transfers";
  }
  void runOnOperation() override {
    mlir::RewritePatternSet patterns(&getContext());
    mlir::vector::populateVectorTransferLoweringPatterns(patterns,
                                                         /*maxTransferRank=*/1);
    if (mlir::failed(
            mlir::applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

namespace {
/// Loops whose annotation asks for copies of their body get them here: LLVM
/// makes none of a body with assembly in it when it does not know the turns.
struct UnrollLoops : mlir::PassWrapper<UnrollLoops, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(UnrollLoops)
  llvm::StringRef getArgument() const override { return "unroll-loops"; }

  /// Unroll, with the upper bound raised to the lower one where it lies below:
  /// the number of turns is computed from their difference.
  static mlir::LogicalResult unroll(mlir::scf::ForOp loop, int count) {
    mlir::OpBuilder builder(loop);
    mlir::Value lower = loop.getLowerBound(), upper = loop.getUpperBound();
    mlir::Value raised = loop.getUnsignedCmp()
                             ? mlir::Value(mlir::arith::MaxUIOp::create(
                                   builder, loop.getLoc(), lower, upper))
                             : mlir::Value(mlir::arith::MaxSIOp::create(
                                   builder, loop.getLoc(), lower, upper));
    loop.setUpperBound(raised);
    return mlir::loopUnrollByFactor(loop, count);
  }
  void runOnOperation() override {
    static constexpr const char *kName = "llvm.loop_annotation";
    llvm::SmallVector<std::pair<mlir::scf::ForOp, int>> loops;
    getOperation()->walk([&](mlir::scf::ForOp loop) {
      auto annotation =
          loop->getAttrOfType<mlir::LLVM::LoopAnnotationAttr>(kName);
      if (annotation && annotation.getUnroll() &&
          annotation.getUnroll().getCount())
        loops.push_back({loop, annotation.getUnroll().getCount().getInt()});
    });
    for (auto [loop, count] : loops) {
      loop->removeAttr(kName);
      if (mlir::failed(unroll(loop, count)))
        signalPassFailure();
    }
  }
};
} // namespace

namespace {
/// MLIR's patterns without the driver of its pass, which notes every operation
/// that moves when a block is split: behind each loop and branch, all the rest.
/// The patterns of what is rarer count on that driver.
struct ScfToControlFlow
    : mlir::PassWrapper<ScfToControlFlow, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ScfToControlFlow)
  llvm::StringRef getArgument() const override { return "scf-to-cf"; }
  void getDependentDialects(mlir::DialectRegistry &registry) const override {
    registry.insert<mlir::cf::ControlFlowDialect>();
  }
  void runOnOperation() override {
    llvm::SmallVector<mlir::Operation *> ops; // the outer ones first
    bool hasRarer = false;
    getOperation()->walk<mlir::WalkOrder::PreOrder>([&](mlir::Operation *op) {
      if (mlir::isa<mlir::scf::ForOp, mlir::scf::IfOp, mlir::scf::WhileOp>(op))
        ops.push_back(op);
      else if (!mlir::isa<mlir::scf::YieldOp, mlir::scf::ConditionOp>(op))
        hasRarer |=
            mlir::isa_and_present<mlir::scf::SCFDialect>(op->getDialect());
    });
    mlir::LogicalResult isLowered = hasRarer ? lowerAll() : lower(ops);
    if (mlir::failed(isLowered))
      signalPassFailure();
  }
  mlir::LogicalResult lower(llvm::ArrayRef<mlir::Operation *> ops) {
    mlir::RewritePatternSet patterns(&getContext());
    mlir::populateSCFToControlFlowConversionPatterns(patterns);
    mlir::FrozenRewritePatternSet frozen(std::move(patterns));
    mlir::PatternApplicator applicator(frozen);
    applicator.applyDefaultCostModel();
    mlir::PatternRewriter rewriter(&getContext());
    for (mlir::Operation *op : ops) {
      rewriter.setInsertionPoint(op);
      if (mlir::failed(applicator.matchAndRewrite(op, rewriter)))
        return mlir::failure();
    }
    return mlir::success();
  }
  mlir::LogicalResult lowerAll() {
    mlir::OpPassManager manager(getOperation()->getName());
    manager.addPass(mlir::createSCFToControlFlowPass());
    return runPipeline(manager, getOperation());
  }
};
} // namespace

namespace {
/// scf-to-cf hands a loop's annotation to its branch as a note; the branch of
/// LLVM has a place of its own for it.
struct KeepLoopAnnotations
    : mlir::PassWrapper<KeepLoopAnnotations, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KeepLoopAnnotations)
  llvm::StringRef getArgument() const override {
    return "keep-loop-annotations";
  }
  template <typename Branch> static void keep(Branch branch) {
    auto annotation =
        branch->template getAttrOfType<mlir::LLVM::LoopAnnotationAttr>(
            "llvm.loop_annotation");
    if (!annotation)
      return;
    branch->removeAttr("llvm.loop_annotation");
    branch.setLoopAnnotationAttr(annotation);
  }
  void runOnOperation() override {
    getOperation()->walk([](mlir::LLVM::BrOp branch) { keep(branch); });
    getOperation()->walk([](mlir::LLVM::CondBrOp branch) { keep(branch); });
  }
};
} // namespace

static const Step kSteps[] = {
    {"convert-nvgpu-to-nvvm",
     "nvgpu operations become nvvm ones while their memrefs still have shapes",
     [] { return mlir::createConvertNVGPUToNVVMPass(); }, Step::onGpuModule,
     /*isForOthers=*/true},
    {"convert-vector-to-scf",
     "multi-dimensional vector transfers become rows, unrolled: a loop over "
     "them "
     "would keep the vector in local memory",
     [] {
       mlir::VectorTransferToSCFOptions options;
       options.enableFullUnroll();
       return mlir::createConvertVectorToSCFPass(options);
     },
     Step::onGpuModule, /*isForOthers=*/true},
    {"lower-vector-transfers",
     "rows of transfers become vector loads and stores, which have an LLVM "
     "form",
     []() -> std::unique_ptr<mlir::Pass> {
       return std::make_unique<LowerVectorTransfers>();
     },
     Step::onGpuModule, /*isForOthers=*/true},
    {"expand-strided-metadata",
     "subviews become arithmetic; must precede affine lowering, which it emits",
     [] { return mlir::memref::createExpandStridedMetadataPass(); },
     Step::onGpuModule, /*isForOthers=*/true},
    {"unroll-loops",
     "loops that ask for it are unrolled; must precede scf lowering",
     []() -> std::unique_ptr<mlir::Pass> {
       return std::make_unique<UnrollLoops>();
     },
     Step::onGpuModule},
    {"lower-affine", "affine maps become arith; must precede scf lowering",
     [] { return mlir::createLowerAffinePass(); }, Step::onGpuModule,
     /*isForOthers=*/true},
    {"convert-scf-to-cf",
     "structured loops and branches become blocks, which LLVM needs",
     []() -> std::unique_ptr<mlir::Pass> {
       return std::make_unique<ScfToControlFlow>();
     },
     Step::onGpuModule},
    {"convert-gpu-to-nvvm",
     "gpu, arith, math, memref, vector, cf and index become llvm and nvvm in "
     "one conversion; printf becomes vprintf",
     [] { return mlir::createConvertGpuOpsToNVVMOps(); }, Step::onGpuModule},
    {"keep-loop-annotations",
     "how often a loop is to be unrolled reaches LLVM; needs its branches",
     []() -> std::unique_ptr<mlir::Pass> {
       return std::make_unique<KeepLoopAnnotations>();
     },
     Step::onGpuModule},
    {"convert-nvvm-to-llvm",
     "nvvm operations that are PTX text become llvm.inline_asm",
     [] { return mlir::createConvertNVVMToLLVMPass(); }, Step::onGpuModule},
    {"reconcile-unrealized-casts",
     "casts that cancel disappear; one that stays is refused when the module "
     "is "
     "translated",
     [] { return mlir::createReconcileUnrealizedCastsPass(); },
     Step::onGpuModule},
    {"ensure-debug-info-scope-on-llvm-func",
     "without a scope no line reaches PTX; directives only, because line "
     "tables "
     "turn the target into 'debug' and cost the optimisation",
     [] {
       mlir::LLVM::DIScopeForLLVMFuncOpPassOptions options;
       options.emissionKind = mlir::LLVM::DIEmissionKind::DebugDirectivesOnly;
       return mlir::LLVM::createDIScopeForLLVMFuncOpPass(options);
     },
     Step::onModule},
};

std::vector<LoweringStep> loweringSteps() {
  std::vector<LoweringStep> steps;
  for (const Step &step : kSteps)
    steps.push_back({step.name, step.reason});
  return steps;
}

/// Whether there is an operation that Kiln's own kernels do not have.
static bool isOfOthers(mlir::ModuleOp module) {
  static constexpr llvm::StringRef kOwn[] = {"llvm", "nvvm", "arith",
                                             "scf",  "math", "builtin"};
  return module
      .walk([](mlir::Operation *op) {
        bool isOwn =
            llvm::is_contained(kOwn, op->getName().getDialectNamespace()) ||
            llvm::isa<mlir::gpu::GPUModuleOp>(op);
        return isOwn ? mlir::WalkResult::advance()
                     : mlir::WalkResult::interrupt();
      })
      .wasInterrupted();
}

void lowerToNvvm(mlir::ModuleOp module) {
  mlir::PassManager manager(module.getContext(),
                            mlir::ModuleOp::getOperationName());
  // Every operation was verified when the module was finished or parsed, and is
  // verified once more after the last pass.
  manager.enableVerifier(false);
  bool hasOthers = isOfOthers(module);
  for (const Step &step : kSteps) {
    if (step.isForOthers && !hasOthers)
      continue;
    if (step.where == Step::onGpuModule)
      manager.addNestedPass<mlir::gpu::GPUModuleOp>(step.make());
    else
      manager.addPass(step.make());
  }
  DiagnosticCollector diagnostics(*module.getContext());
  if (mlir::failed(manager.run(module)) || mlir::failed(mlir::verify(module)))
    diagnostics.raise("the module cannot be lowered to NVVM");
}

} // namespace kiln
