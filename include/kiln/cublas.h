// cublas.h: the same product by cuBLASLt, to measure against.
//
//     auto library = open_cublaslt(*device);
//     auto plan = library->plans(gemm).front();   // its first choice
//     plan->enqueue({a, b, {}, {}, d}, stream);
//
// The library is found at run time: no header and no library of CUDA is needed
// to build Kiln.
#pragma once

#include <kiln/device.h>
#include <kiln/export.h>
#include <kiln/reference.h>

#include <memory>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// The memory of one product, as ReferenceGemm describes it.
struct CublasOperands {
  Buffer a, b, c, bias, d;
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

} // namespace kiln
