// CublasLt: cuBLASLt's functions, found at run time.
//
// As with the driver (CudaDriver.h), the few types and functions used are
// declared here as the library's binary interface fixes them, and
// KILN_CUBLASLT_SYMBOLS is the one list of what is used. Versions 12 and 13
// agree on all of it.
#pragma once

#include "kiln/measure/cublas.h"
#include "runtime/CudaDriver.h"

namespace kiln {

/// The library's own names, values and layouts, so that its manual applies.
namespace cublas {

using cublasLtHandle_t = struct cublasLtContext *;
using cublasLtMatmulDesc_t = struct cublasLtMatmulDescOpaque *;
using cublasLtMatrixLayout_t = struct cublasLtMatrixLayoutOpaque *;
using cublasLtMatmulPreference_t = struct cublasLtMatmulPreferenceOpaque *;

enum cublasStatus_t : int {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
};
enum cublasComputeType_t : int {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77,
};
enum cublasOperation_t : int { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 };
enum cudaDataType : int {
  CUDA_R_32F = 0,
  CUDA_R_16F = 2,
  CUDA_R_8I = 3,
  CUDA_R_32I = 10,
  CUDA_R_16BF = 14,
  CUDA_R_8F_E4M3 = 28,
  CUDA_R_8F_E5M2 = 29,
};
enum cublasLtMatrixLayoutAttribute_t : int {
  CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT = 5,          ///< int32_t
  CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET = 6, ///< int64_t, elements
};
enum cublasLtMatmulDescAttributes_t : int {
  CUBLASLT_MATMUL_DESC_TRANSA = 3,           ///< int32_t
  CUBLASLT_MATMUL_DESC_TRANSB = 4,           ///< int32_t
  CUBLASLT_MATMUL_DESC_EPILOGUE = 7,         ///< uint32_t
  CUBLASLT_MATMUL_DESC_BIAS_POINTER = 8,     ///< const void *
  CUBLASLT_MATMUL_DESC_A_SCALE_POINTER = 17, ///< const float *
  CUBLASLT_MATMUL_DESC_B_SCALE_POINTER = 18, ///< const float *
  CUBLASLT_MATMUL_DESC_FAST_ACCUM = 25,      ///< int8_t
  CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE = 26,  ///< int32_t
};
enum cublasLtMatmulPreferenceAttributes_t : int {
  CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1, ///< uint64_t
};
enum cublasLtEpilogue_t : int {
  CUBLASLT_EPILOGUE_DEFAULT = 1,
  CUBLASLT_EPILOGUE_RELU = 2,
  CUBLASLT_EPILOGUE_BIAS = 4,
  CUBLASLT_EPILOGUE_GELU = 32,
};
struct cublasLtMatmulAlgo_t {
  std::uint64_t data[8];
};
struct cublasLtMatmulHeuristicResult_t {
  cublasLtMatmulAlgo_t algo;
  std::size_t workspaceSize;
  cublasStatus_t state;
  float wavesCount;
  int reserved[4];
};
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == 96);

} // namespace cublas

/// X(call, result, parameters...)
#define KILN_CUBLASLT_SYMBOLS(X)                                               \
  X(cublasLtGetVersion, std::size_t)                                           \
  X(cublasLtGetStatusName, const char *, cublas::cublasStatus_t)               \
  X(cublasLtCreate, cublas::cublasStatus_t, cublas::cublasLtHandle_t *)        \
  X(cublasLtDestroy, cublas::cublasStatus_t, cublas::cublasLtHandle_t)         \
  X(cublasLtMatmulDescCreate, cublas::cublasStatus_t,                          \
    cublas::cublasLtMatmulDesc_t *, cublas::cublasComputeType_t,               \
    cublas::cudaDataType)                                                      \
  X(cublasLtMatmulDescDestroy, cublas::cublasStatus_t,                         \
    cublas::cublasLtMatmulDesc_t)                                              \
  X(cublasLtMatmulDescSetAttribute, cublas::cublasStatus_t,                    \
    cublas::cublasLtMatmulDesc_t, cublas::cublasLtMatmulDescAttributes_t,      \
    const void *, std::size_t)                                                 \
  X(cublasLtMatrixLayoutCreate, cublas::cublasStatus_t,                        \
    cublas::cublasLtMatrixLayout_t *, cublas::cudaDataType, std::uint64_t,     \
    std::uint64_t, std::int64_t)                                               \
  X(cublasLtMatrixLayoutDestroy, cublas::cublasStatus_t,                       \
    cublas::cublasLtMatrixLayout_t)                                            \
  X(cublasLtMatrixLayoutSetAttribute, cublas::cublasStatus_t,                  \
    cublas::cublasLtMatrixLayout_t, cublas::cublasLtMatrixLayoutAttribute_t,   \
    const void *, std::size_t)                                                 \
  X(cublasLtMatmulPreferenceCreate, cublas::cublasStatus_t,                    \
    cublas::cublasLtMatmulPreference_t *)                                      \
  X(cublasLtMatmulPreferenceDestroy, cublas::cublasStatus_t,                   \
    cublas::cublasLtMatmulPreference_t)                                        \
  X(cublasLtMatmulPreferenceSetAttribute, cublas::cublasStatus_t,              \
    cublas::cublasLtMatmulPreference_t,                                        \
    cublas::cublasLtMatmulPreferenceAttributes_t, const void *, std::size_t)   \
  X(cublasLtMatmulAlgoGetHeuristic, cublas::cublasStatus_t,                    \
    cublas::cublasLtHandle_t, cublas::cublasLtMatmulDesc_t,                    \
    cublas::cublasLtMatrixLayout_t, cublas::cublasLtMatrixLayout_t,            \
    cublas::cublasLtMatrixLayout_t, cublas::cublasLtMatrixLayout_t,            \
    cublas::cublasLtMatmulPreference_t, int,                                   \
    cublas::cublasLtMatmulHeuristicResult_t *, int *)                          \
  X(cublasLtMatmul, cublas::cublasStatus_t, cublas::cublasLtHandle_t,          \
    cublas::cublasLtMatmulDesc_t, const void *, const void *,                  \
    cublas::cublasLtMatrixLayout_t, const void *,                              \
    cublas::cublasLtMatrixLayout_t, const void *, const void *,                \
    cublas::cublasLtMatrixLayout_t, void *, cublas::cublasLtMatrixLayout_t,    \
    const cublas::cublasLtMatmulAlgo_t *, void *, std::size_t, cuda::CUstream)

/// The loaded library.
class CublasLibrary {
public:
  /// Throws RuntimeError where the file is none, or lacks a function.
  explicit CublasLibrary(const std::string &path);
  /// The library of this machine. Throws RuntimeError that says where it was
  /// looked for.
  static std::shared_ptr<const CublasLibrary> find();

  /// Throw RuntimeError where `status` is one of failure.
  void check(cublas::cublasStatus_t status, const char *call,
             const std::string &what) const;

#define KILN_DECLARE_CALL(call, result, ...)                                   \
  result (*call)(__VA_ARGS__) = nullptr;
  KILN_CUBLASLT_SYMBOLS(KILN_DECLARE_CALL)
#undef KILN_DECLARE_CALL
};

/// A product in the words of cuBLASLt, which knows columns alone: where D is
/// row-major, it is told to compute the transposed of D, B^T * A^T.
struct CublasProblem {
  /// A matrix: `rows` contiguous elements, `cols` times.
  struct Matrix {
    cublas::cudaDataType type = cublas::CUDA_R_32F;
    std::int64_t rows = 0, cols = 0, leading = 0, stride = 0;
    bool isTransposed = false;
  };
  Matrix first, second, c, d; ///< first and second are A and B, or B and A
  bool isSwapped = false;     ///< first is B
  std::int64_t batch = 1;
  cublas::cublasComputeType_t compute = cublas::CUBLAS_COMPUTE_32F;
  cublas::cudaDataType scale = cublas::CUDA_R_32F; ///< of alpha and beta
  int epilogue = cublas::CUBLASLT_EPILOGUE_DEFAULT;
  cublas::cudaDataType biasType = cublas::CUDA_R_32F;
  bool hasFastSums = false; ///< of 8-bit floats, as wgmma adds them
  bool hasScales = false;   ///< a factor of all of A, and of all of B
};

/// Throws UserError where cuBLASLt has no words for the product.
CublasProblem cublasProblem(const ReferenceGemm &gemm);

/// open_cublaslt with a driver and a library that are already there.
std::shared_ptr<CublasLt>
openCublasLt(Device &device, int ordinal,
             std::shared_ptr<const CudaDriver> driver,
             std::shared_ptr<const CublasLibrary> library);

/// open_cublas_grouped with a driver and a library of one's own.
std::shared_ptr<CublasGrouped>
openCublasGrouped(Device &device, int ordinal,
                  std::shared_ptr<const CudaDriver> driver,
                  const std::string &library);

} // namespace kiln
