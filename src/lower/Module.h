// Module: what a kiln::Module holds, for the rooms that may see MLIR.
#pragma once

#include "kiln/run/compile.h"
#include "kiln/base/error.h"
#include "lower/Mlir.h"

namespace kiln {

/// The context is declared first: it must outlive the operations in it.
struct Module::Impl {
  std::unique_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  std::string name;   ///< of the kernel
  std::string target; ///< "sm_90a"
  LaunchContract contract;
};

/// A context that knows every dialect Kiln reads or writes, without threads of
/// its own: kernels are built in many threads, one context each.
std::unique_ptr<mlir::MLIRContext> makeContext();

/// Collects MLIR's diagnostics while it lives, so that they end up in an error
/// of ours and not on stderr.
class DiagnosticCollector {
public:
  explicit DiagnosticCollector(mlir::MLIRContext &context);

  /// Throw a UserError that says `what` and what was collected.
  [[noreturn]] void raise(const std::string &what) const;

private:
  std::vector<std::string> messages_;
  SourceLine first_;
  mlir::ScopedDiagnosticHandler handler_;
};

} // namespace kiln
