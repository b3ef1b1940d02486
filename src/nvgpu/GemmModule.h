// GemmModule: what the parts of an NVGPU product share: the builder, the types,
// and the values of the host function that the kernel uses.
#pragma once

#include "kiln/kernels/nvgpu_gemm.h"
#include "lower/Mlir.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace kiln::nvgpu_gemm {

inline constexpr std::int64_t kBlockM = 128, kBlockN = 128, kBlockK = 64;
/// Elements of a row that one copy with the 128-byte swizzle brings.
inline constexpr std::int64_t kBoxColumns = 64;
inline constexpr std::int64_t kElementBytes = 2, kSumBytes = 4;
inline constexpr std::int64_t kTileABytes = kBlockM * kBlockK * kElementBytes;
inline constexpr std::int64_t kTileBBytes = kBlockK * kBlockN * kElementBytes;
inline constexpr std::int64_t kWarpgroup = 128;
/// Where tiles begin that keep off the barriers: MLIR gives dynamic shared
/// memory the address of its first variable, and the swizzle needs 1024 bytes.
inline constexpr std::int64_t kBarrierBytes = 1024;

/// Where the module is built, with the words that it is built of.
class Writer {
public:
  Writer(const NvgpuGemm &gemm, mlir::MLIRContext &context);

  mlir::Value constant(std::int64_t value);
  mlir::Value truth(bool value);
  mlir::Value add(mlir::Value a, mlir::Value b);
  mlir::Value multiply(mlir::Value a, mlir::Value b);
  mlir::Value remainder(mlir::Value a, std::int64_t b);
  mlir::Value divide(mlir::Value a, std::int64_t b);
  mlir::Value both(mlir::Value a, mlir::Value b);
  mlir::Value compare(mlir::arith::CmpIPredicate how, mlir::Value a,
                      mlir::Value b);
  mlir::Value equal(mlir::Value a, std::int64_t b);
  bool has(NvgpuRepair repair) const { return gemm.repairs.contains(repair); }

  const NvgpuGemm &gemm;
  mlir::ImplicitLocOpBuilder builder;
  mlir::MemRefType a, b, c; ///< of the matrices
  mlir::MemRefType bytes, tileA, tileB, boxB, sums;
  mlir::Attribute shared;
  mlir::nvgpu::TensorMapDescriptorType mapA, mapB;
};

/// What the kernel takes from the host.
struct Operands {
  mlir::Value c, mapA, mapB;
};

/// Bytes of dynamic shared memory.
std::int64_t smemBytes(const NvgpuGemm &gemm);

/// The body of the launch, at the builder's place.
void writeMultistage(Writer &writer, const Operands &operands);
void writeWarpSpecialized(Writer &writer, const Operands &operands);

/// A main that fills, calls and compares.
void writeMain(Writer &writer, mlir::func::FuncOp product);

} // namespace kiln::nvgpu_gemm
