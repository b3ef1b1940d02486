// cublas.h: the same product by cuBLASLt, to measure against.
//
//     auto library = open_cublaslt(*device);
//     auto plan = library->plans(gemm).front();   // its first choice
//     plan->enqueue({a, b, {}, {}, d}, stream);
//
// The library is found at run time: no header and no library of CUDA is needed
// to build Kiln.
#pragma once

#include <kiln/run/device.h>
#include <kiln/base/export.h>
#include <kiln/measure/reference.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// The memory of one product, as ReferenceGemm describes it.
struct CublasOperands {
  Buffer a, b, c, bias, d;
  Buffer a_scales = {}, b_scales = {}; ///< with Scaling::tensor
};

/// One of the ways cuBLASLt knows for a product.
class CublasPlan {
public:
  virtual ~CublasPlan();
  /// Put the product into a stream. Throws RuntimeError.
  virtual void enqueue(const CublasOperands &operands,
                       const Stream &stream = {}) const = 0;
};

class CublasLt {
public:
  virtual ~CublasLt();
  /// "13.0.2"
  virtual std::string version() const = 0;
  /// Up to `most` ways, as its heuristics rank them, with 64 MiB to work in.
  /// The pointers of `gemm` are not looked at. Throws UserError where cuBLASLt
  /// does not do this product, with the reason.
  virtual std::vector<std::shared_ptr<CublasPlan>>
  plans(const ReferenceGemm &gemm, int most = 1) = 0;
};

/// libcublasLt.so.13 or .12, where the loader or CUDA_HOME has it. Throws
/// RuntimeError that says what to install where there is none, and UserError
/// where the device is no GPU.
std::shared_ptr<CublasLt> open_cublaslt(Device &device);

/// Products D[i] = A[i] * B[g]^T for the rows i of each group g, one behind the
/// other: A[rows, k], B[groups, n, k], D[rows, n], as GroupedGemmProblem has
/// them.
struct CublasGroups {
  std::vector<int> rows; ///< of each group
  int n = 1, k = 1;
  Type type = Type::bf16, out = Type::bf16; ///< bf16, f16; the same, or f32
};

/// cuBLAS's grouped product (cublasGemmGroupedBatchedEx), which is told of the
/// rows on the host.
class CublasGrouped {
public:
  virtual ~CublasGrouped();
  virtual std::string version() const = 0;
  /// A launch for this memory; the first one is tried at once. Throws UserError
  /// where cuBLAS does not do these products, with the reason.
  virtual std::function<void(const Stream &)> plan(const CublasGroups &groups,
                                                   const Buffer &a,
                                                   const Buffer &b,
                                                   const Buffer &d) = 0;
};

/// libcublas.so.13 or .12, found as cuBLASLt is.
std::shared_ptr<CublasGrouped> open_cublas_grouped(Device &device);

} // namespace kiln
