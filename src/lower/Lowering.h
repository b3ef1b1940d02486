// Lowering: from a kernel as built to PTX, one function per seam.
#pragma once

#include "lower/Module.h"

#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"

namespace kiln {

/// Run the MLIR passes on `module` in place: afterwards it holds the llvm and
/// nvvm dialects alone. Throws UserError with the diagnostics of the pass that
/// failed.
void lowerToNvvm(mlir::ModuleOp module);

/// The LLVM module of the one gpu.module in `module`, optimised. `module` must
/// have been through lowerToNvvm.
std::unique_ptr<llvm::Module> lowerToLlvm(mlir::ModuleOp module,
                                          llvm::LLVMContext &context,
                                          const std::string &target,
                                          int optLevel);

/// PTX text of an LLVM module that lowerToLlvm made, of `ptxVersion` (80, 86)
/// or, 0, of the oldest that has all it uses. Throws UserError where that one
/// is too old.
std::string lowerToPtx(llvm::Module &module, const std::string &target,
                       int optLevel, int ptxVersion);

/// The passes of lowerToNvvm with their reasons, for documentation and tests.
struct LoweringStep {
  const char *name;
  const char *reason;
};
std::vector<LoweringStep> loweringSteps();

} // namespace kiln
