// compile.h: from a built kernel to PTX, in process.
//
// A KernelBuilder leaves a Module: the kernel as MLIR, with its launch
// contract. `compile` lowers it to a Kernel; `emit` shows it at any stage on
// the way. Compiled kernels are kept in a cache on disk, so that a second
// process that builds the same kernel gets it in milliseconds.
#pragma once

#include <kiln/base/export.h>
#include <kiln/run/kernel.h>

#include <memory>
#include <string>
#include <string_view>

namespace KILN_API kiln {

struct CompileOptions {
  bool use_cache = true;
  int opt_level = 3; ///< of LLVM, 0 to 3
  /// Of the PTX, times ten: 86 is PTX 8.6. What needs a newer one is refused.
  /// 0: the oldest that suffices, so that the widest range of drivers takes it.
  int ptx_version = 0;
  /// Microseconds per phase are added to these where they are not null.
  struct Timing {
    double lower_us = 0; ///< MLIR to the NVVM dialect
    double llvm_us = 0;  ///< translation and LLVM's passes
    double ptx_us = 0;   ///< code generation
    bool from_cache = false;
  };
  Timing *timing = nullptr;
};

/// The stages a kernel passes through, in order.
enum class Stage : std::uint8_t {
  mlir, ///< as built: gpu.module, llvm.func, scf, arith, nvvm
  nvvm, ///< after every MLIR pass: the llvm and nvvm dialects alone
  llvm, ///< LLVM IR after its passes
  ptx,
};

/// One kernel as MLIR, and how it must be launched. Move-only; made by a
/// KernelBuilder or by `parse_module`.
class Module {
public:
  struct Impl;
  Module(Module &&) noexcept;
  Module &operator=(Module &&) noexcept;
  ~Module();

  const std::string &name() const;
  const std::string &target() const;
  const LaunchContract &contract() const;
  Impl &impl() const { return *impl_; }

private:
  friend struct Make;
  explicit Module(std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

/// MLIR text that holds one gpu.module, whoever wrote it. It has no contract
/// but what its function attributes say. Throws UserError with the parser's
/// words and lines.
Module parse_module(std::string_view text, const std::string &file_name,
                    const std::string &target = "sm_90a");

/// Lower to PTX. Throws UserError where the module cannot be lowered, with the
/// diagnostics of the pass that failed and the lines they point at.
Kernel compile(const Module &module, const CompileOptions &options = {});

/// The text of a stage.
std::string emit(const Module &module, Stage stage,
                 const CompileOptions &options = {});

/// "0.1.0 (LLVM 22.1.8)"
std::string version();

} // namespace kiln
