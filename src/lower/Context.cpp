// Context: the dialects Kiln knows, and how MLIR's complaints reach the user.
#include "lower/Module.h"
#include "support/Error.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/IndexToLLVM/IndexToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Conversion/NVVMToLLVM/NVVMToLLVM.h"
#include "mlir/Conversion/UBToLLVM/UBToLLVM.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVM.h"
#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Index/IR/IndexDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/GPU/GPUToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"

namespace kiln {

/// The registry is the same for every context and costs a millisecond to fill.
static const mlir::DialectRegistry &registry() {
  static const mlir::DialectRegistry instance = [] {
    mlir::DialectRegistry registry;
    registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect,
                    mlir::cf::ControlFlowDialect, mlir::func::FuncDialect,
                    mlir::gpu::GPUDialect, mlir::index::IndexDialect,
                    mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                    mlir::memref::MemRefDialect, mlir::NVVM::NVVMDialect,
                    mlir::nvgpu::NVGPUDialect, mlir::scf::SCFDialect,
                    mlir::ub::UBDialect, mlir::vector::VectorDialect>();
    // convert-gpu-to-nvvm asks each dialect how it becomes LLVM.
    mlir::arith::registerConvertArithToLLVMInterface(registry);
    mlir::cf::registerConvertControlFlowToLLVMInterface(registry);
    mlir::registerConvertFuncToLLVMInterface(registry);
    mlir::index::registerConvertIndexToLLVMInterface(registry);
    mlir::registerConvertMathToLLVMInterface(registry);
    mlir::registerConvertMemRefToLLVMInterface(registry);
    mlir::registerConvertNVVMToLLVMInterface(registry);
    mlir::ub::registerConvertUBToLLVMInterface(registry);
    mlir::vector::registerConvertVectorToLLVMInterface(registry);
    mlir::registerBuiltinDialectTranslation(registry);
    mlir::registerGPUDialectTranslation(registry);
    mlir::registerLLVMDialectTranslation(registry);
    mlir::registerNVVMDialectTranslation(registry);
    return registry;
  }();
  return instance;
}

std::unique_ptr<mlir::MLIRContext> makeContext() {
  auto context = std::make_unique<mlir::MLIRContext>(
      registry(), mlir::MLIRContext::Threading::DISABLED);
  context->loadDialect<mlir::arith::ArithDialect, mlir::gpu::GPUDialect,
                       mlir::LLVM::LLVMDialect, mlir::math::MathDialect,
                       mlir::NVVM::NVVMDialect, mlir::scf::SCFDialect>();
  return context;
}

/// The file and line a location stands for, looking through names and calls.
static SourceLine lineOf(mlir::Location location) {
  if (auto line = location->findInstanceOf<mlir::FileLineColLoc>())
    return {line.getFilename().str(), line.getLine()};
  return {};
}

DiagnosticCollector::DiagnosticCollector(mlir::MLIRContext &context)
    : handler_(&context, [this](mlir::Diagnostic &diagnostic) {
        SourceLine line = lineOf(diagnostic.getLocation());
        if (messages_.empty())
          first_ = line;
        std::string text = diagnostic.str();
        messages_.push_back(
            line.is_known()
                ? fmt::format("{}:{}: {}", line.file, line.line, text)
                : text);
        return mlir::success();
      }) {}

void DiagnosticCollector::raise(const std::string &what) const {
  std::string text = what;
  for (const std::string &message : messages_)
    text += "\n  " + message;
  throw UserError(first_, text);
}

} // namespace kiln
