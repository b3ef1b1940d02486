// Cudnn: cuDNN's graph interface, found at run time.
//
// As with cuBLASLt (CublasLt.h), the few types, numbers and functions used are
// declared here as the library's binary interface fixes them, and
// KILN_CUDNN_SYMBOLS is the one list of what is used.
#pragma once

#include "kiln/measure/cudnn.h"
#include "runtime/CudaDriver.h"

namespace kiln {

/// The library's own names and values, so that its manual applies.
namespace cudnn {

using cudnnHandle_t = struct cudnnContext *;
using cudnnBackendDescriptor_t = void *;

enum cudnnStatus_t : int { CUDNN_STATUS_SUCCESS = 0 };
enum cudnnDataType_t : int {
  CUDNN_DATA_FLOAT = 0,
  CUDNN_DATA_HALF = 2,
  CUDNN_DATA_INT32 = 4,
  CUDNN_DATA_BFLOAT16 = 9,
  CUDNN_DATA_BOOLEAN = 11,
};
enum cudnnBackendDescriptorType_t : int {
  CUDNN_BACKEND_POINTWISE_DESCRIPTOR = 0,
  CUDNN_BACKEND_ENGINECFG_DESCRIPTOR = 3,
  CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR = 4,
  CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR = 5,
  CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR = 13,
  CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR = 15,
  CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR = 16,
  CUDNN_BACKEND_TENSOR_DESCRIPTOR = 17,
  CUDNN_BACKEND_MATMUL_DESCRIPTOR = 18,
  CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR = 19,
  CUDNN_BACKEND_REDUCTION_DESCRIPTOR = 21,
  CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR = 22,
};
enum cudnnBackendAttributeType_t : int {
  CUDNN_TYPE_HANDLE = 0,
  CUDNN_TYPE_DATA_TYPE = 1,
  CUDNN_TYPE_BOOLEAN = 2,
  CUDNN_TYPE_INT64 = 3,
  CUDNN_TYPE_VOID_PTR = 6,
  CUDNN_TYPE_HEUR_MODE = 8,
  CUDNN_TYPE_POINTWISE_MODE = 14,
  CUDNN_TYPE_BACKEND_DESCRIPTOR = 15,
  CUDNN_TYPE_REDUCTION_OPERATOR_TYPE = 18,
};
enum cudnnBackendAttributeName_t : int {
  CUDNN_ATTR_POINTWISE_MODE = 0,
  CUDNN_ATTR_POINTWISE_MATH_PREC = 1,
  CUDNN_ATTR_POINTWISE_AXIS = 9,
  CUDNN_ATTR_ENGINEHEUR_MODE = 200,
  CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH = 201,
  CUDNN_ATTR_ENGINEHEUR_RESULTS = 202,
  CUDNN_ATTR_EXECUTION_PLAN_HANDLE = 400,
  CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG = 401,
  CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE = 402,
  CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR = 750,
  CUDNN_ATTR_OPERATION_POINTWISE_XDESC = 751,
  CUDNN_ATTR_OPERATION_POINTWISE_BDESC = 752,
  CUDNN_ATTR_OPERATION_POINTWISE_YDESC = 753,
  CUDNN_ATTR_OPERATION_POINTWISE_TDESC = 758,
  CUDNN_ATTR_OPERATIONGRAPH_HANDLE = 800,
  CUDNN_ATTR_OPERATIONGRAPH_OPS = 801,
  CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT = 900,
  CUDNN_ATTR_TENSOR_DATA_TYPE = 901,
  CUDNN_ATTR_TENSOR_DIMENSIONS = 902,
  CUDNN_ATTR_TENSOR_STRIDES = 903,
  CUDNN_ATTR_TENSOR_UNIQUE_ID = 906,
  CUDNN_ATTR_TENSOR_IS_VIRTUAL = 907,
  CUDNN_ATTR_TENSOR_IS_BY_VALUE = 908,
  CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS = 1000,
  CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS = 1001,
  CUDNN_ATTR_VARIANT_PACK_WORKSPACE = 1003,
  CUDNN_ATTR_MATMUL_COMP_TYPE = 1500,
  CUDNN_ATTR_OPERATION_MATMUL_ADESC = 1520,
  CUDNN_ATTR_OPERATION_MATMUL_BDESC = 1521,
  CUDNN_ATTR_OPERATION_MATMUL_CDESC = 1522,
  CUDNN_ATTR_OPERATION_MATMUL_DESC = 1523,
  CUDNN_ATTR_REDUCTION_OPERATOR = 1600,
  CUDNN_ATTR_REDUCTION_COMP_TYPE = 1601,
  CUDNN_ATTR_OPERATION_REDUCTION_XDESC = 1610,
  CUDNN_ATTR_OPERATION_REDUCTION_YDESC = 1611,
  CUDNN_ATTR_OPERATION_REDUCTION_DESC = 1612,
};
enum cudnnPointwiseMode_t : int {
  CUDNN_POINTWISE_ADD = 0,
  CUDNN_POINTWISE_MUL = 1,
  CUDNN_POINTWISE_DIV = 6,
  CUDNN_POINTWISE_SUB = 9,
  CUDNN_POINTWISE_EXP = 13,
  CUDNN_POINTWISE_LOG = 15,
  CUDNN_POINTWISE_CMP_GE = 303,
  CUDNN_POINTWISE_GEN_INDEX = 501,
  CUDNN_POINTWISE_BINARY_SELECT = 601,
};
enum cudnnReduceTensorOp_t : int {
  CUDNN_REDUCE_TENSOR_ADD = 0,
  CUDNN_REDUCE_TENSOR_MAX = 3,
};
enum cudnnBackendHeurMode_t : int { CUDNN_HEUR_MODE_A = 3 };

} // namespace cudnn

/// X(call, result, parameters...)
#define KILN_CUDNN_SYMBOLS(X)                                                  \
  X(cudnnGetVersion, std::size_t)                                              \
  X(cudnnGetErrorString, const char *, cudnn::cudnnStatus_t)                   \
  X(cudnnCreate, cudnn::cudnnStatus_t, cudnn::cudnnHandle_t *)                 \
  X(cudnnDestroy, cudnn::cudnnStatus_t, cudnn::cudnnHandle_t)                  \
  X(cudnnSetStream, cudnn::cudnnStatus_t, cudnn::cudnnHandle_t,                \
    cuda::CUstream)                                                            \
  X(cudnnBackendCreateDescriptor, cudnn::cudnnStatus_t,                        \
    cudnn::cudnnBackendDescriptorType_t, cudnn::cudnnBackendDescriptor_t *)    \
  X(cudnnBackendDestroyDescriptor, cudnn::cudnnStatus_t,                       \
    cudnn::cudnnBackendDescriptor_t)                                           \
  X(cudnnBackendSetAttribute, cudnn::cudnnStatus_t,                            \
    cudnn::cudnnBackendDescriptor_t, cudnn::cudnnBackendAttributeName_t,       \
    cudnn::cudnnBackendAttributeType_t, std::int64_t, const void *)            \
  X(cudnnBackendGetAttribute, cudnn::cudnnStatus_t,                            \
    cudnn::cudnnBackendDescriptor_t, cudnn::cudnnBackendAttributeName_t,       \
    cudnn::cudnnBackendAttributeType_t, std::int64_t, std::int64_t *, void *)  \
  X(cudnnBackendFinalize, cudnn::cudnnStatus_t,                                \
    cudnn::cudnnBackendDescriptor_t)                                           \
  X(cudnnBackendExecute, cudnn::cudnnStatus_t, cudnn::cudnnHandle_t,           \
    cudnn::cudnnBackendDescriptor_t, cudnn::cudnnBackendDescriptor_t)

/// The loaded library.
class CudnnLibrary {
public:
  /// Throws RuntimeError where the file is none, or lacks a function.
  explicit CudnnLibrary(const std::string &path);
  /// The library of this machine. Throws RuntimeError that says where it was
  /// looked for.
  static std::shared_ptr<const CudnnLibrary> find();

  /// Throw RuntimeError where `status` is one of failure.
  void check(cudnn::cudnnStatus_t status, const char *call,
             const char *what) const;

#define KILN_DECLARE_CALL(call, result, ...)                                   \
  result (*call)(__VA_ARGS__) = nullptr;
  KILN_CUDNN_SYMBOLS(KILN_DECLARE_CALL)
#undef KILN_DECLARE_CALL
};

/// open_cudnn with a driver and a library of one's own.
std::shared_ptr<Cudnn> openCudnn(Device &device, int ordinal,
                                 std::shared_ptr<const CudaDriver> driver,
                                 std::shared_ptr<const CudnnLibrary> library);

} // namespace kiln
