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

/// PTX text of an LLVM module that lowerToLlvm made.
std::string lowerToPtx(llvm::Module &module, const std::string &target,
                       int optLevel);

/// The passes of lowerToNvvm with their reasons, for documentation and tests.
struct LoweringStep {
  const char *name;
  const char *reason;
};
std::vector<LoweringStep> loweringSteps();

} // namespace kiln
