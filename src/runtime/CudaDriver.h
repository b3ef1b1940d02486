// CudaDriver: the CUDA driver's functions, found at run time.
//
// Kiln must start on machines that have no GPU, and run on machines that have
// a driver and no CUDA toolkit. So the driver is opened with dlopen, and the
// few types and functions used are declared here, as the driver's binary
// interface fixes them. KILN_CUDA_SYMBOLS is the one list of what is used: a
// function not in it cannot be called, and one the driver lacks is named when
// the driver is loaded.
#pragma once

#include "kiln/base/export.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

namespace KILN_API kiln {

class Device;
struct DeviceDescription;
struct DeviceListing;

/// The driver's own names, values and layouts, so that its manual applies.
namespace cuda {

using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUcontext = struct CUctx_st *;
using CUmodule = struct CUmod_st *;
using CUfunction = struct CUfunc_st *;
using CUstream = struct CUstream_st *;
using CUevent = struct CUevent_st *;

enum CUresult : int {
  CUDA_SUCCESS = 0,
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_OUT_OF_MEMORY = 2,
  CUDA_ERROR_NOT_INITIALIZED = 3,
  CUDA_ERROR_STUB_LIBRARY = 34,
  CUDA_ERROR_NO_DEVICE = 100,
  CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
  CUDA_ERROR_INVALID_PTX = 218,
  CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
  CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_ILLEGAL_ADDRESS = 700,
  CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
  CUDA_ERROR_LAUNCH_TIMEOUT = 702,
  CUDA_ERROR_ASSERT = 710,
  CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
  CUDA_ERROR_ILLEGAL_INSTRUCTION = 715,
  CUDA_ERROR_MISALIGNED_ADDRESS = 716,
  CUDA_ERROR_INVALID_ADDRESS_SPACE = 717,
  CUDA_ERROR_INVALID_PC = 718,
  CUDA_ERROR_LAUNCH_FAILED = 719,
  CUDA_ERROR_SYSTEM_NOT_READY = 802,
  CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
  CUDA_ERROR_INVALID_CLUSTER_SIZE = 912,
  CUDA_ERROR_UNKNOWN = 999,
};

enum CUdevice_attribute : int {
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
  CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
  CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
  CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
  CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
  CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
  CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
  CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
  CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
  CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
  CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR = 106,
  CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK = 111,
  CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH = 120,
};

enum CUfunction_attribute : int {
  CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
  CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14,
};

enum CUjit_option : int {
  CU_JIT_INFO_LOG_BUFFER = 3,
  CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
  CU_JIT_ERROR_LOG_BUFFER = 5,
  CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
  CU_JIT_GENERATE_LINE_INFO = 13,
};

enum CUtensorMapDataType : int {
  CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
  CU_TENSOR_MAP_DATA_TYPE_UINT16,
  CU_TENSOR_MAP_DATA_TYPE_UINT32,
  CU_TENSOR_MAP_DATA_TYPE_INT32,
  CU_TENSOR_MAP_DATA_TYPE_UINT64,
  CU_TENSOR_MAP_DATA_TYPE_INT64,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
  CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
  CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
  CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
  CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B, ///< two elements to a byte
};
enum CUtensorMapInterleave : int {
  CU_TENSOR_MAP_INTERLEAVE_NONE = 0,
  CU_TENSOR_MAP_INTERLEAVE_16B,
  CU_TENSOR_MAP_INTERLEAVE_32B,
};
enum CUtensorMapSwizzle : int {
  CU_TENSOR_MAP_SWIZZLE_NONE = 0,
  CU_TENSOR_MAP_SWIZZLE_32B,
  CU_TENSOR_MAP_SWIZZLE_64B,
  CU_TENSOR_MAP_SWIZZLE_128B,
};
enum CUtensorMapL2promotion : int {
  CU_TENSOR_MAP_L2_PROMOTION_NONE = 0,
  CU_TENSOR_MAP_L2_PROMOTION_L2_64B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
  CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
};
enum CUtensorMapFloatOOBfill : int {
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
  CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
};
struct alignas(64) CUtensorMap {
  std::uint64_t opaque[16];
};
static_assert(sizeof(CUtensorMap) == 128);

enum CUlaunchAttributeID : int {
  CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
  CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
  CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};
struct CUlaunchAttribute {
  CUlaunchAttributeID id;
  char pad[4];
  union {
    std::uint64_t aligned;
    char bytes[64];
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
    int cooperative;
  } value;
};
static_assert(sizeof(CUlaunchAttribute) == 72);

struct CUlaunchConfig {
  unsigned gridDimX, gridDimY, gridDimZ;
  unsigned blockDimX, blockDimY, blockDimZ;
  unsigned sharedMemBytes;
  CUstream hStream;
  CUlaunchAttribute *attrs;
  unsigned numAttrs;
};
static_assert(sizeof(CUlaunchConfig) == 56);

} // namespace cuda

/// X(call, symbol, parameters...): `call` is the name in the driver's manual,
/// `symbol` the version of it that the library exports. cuEventElapsedTime has
/// a _v2 too, but only drivers newer than those Kiln asks for export it.
#define KILN_CUDA_SYMBOLS(X)                                                   \
  X(cuDriverGetVersion, cuDriverGetVersion, int *)                             \
  X(cuGetErrorName, cuGetErrorName, cuda::CUresult, const char **)             \
  X(cuGetErrorString, cuGetErrorString, cuda::CUresult, const char **)         \
  X(cuInit, cuInit, unsigned)                                                  \
  X(cuDeviceGetCount, cuDeviceGetCount, int *)                                 \
  X(cuDeviceGet, cuDeviceGet, cuda::CUdevice *, int)                           \
  X(cuDeviceGetName, cuDeviceGetName, char *, int, cuda::CUdevice)             \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, int *,                         \
    cuda::CUdevice_attribute, cuda::CUdevice)                                  \
  X(cuDeviceTotalMem, cuDeviceTotalMem_v2, std::size_t *, cuda::CUdevice)      \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, cuda::CUcontext *,     \
    cuda::CUdevice)                                                            \
  X(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, cuda::CUdevice)   \
  X(cuCtxPushCurrent, cuCtxPushCurrent_v2, cuda::CUcontext)                    \
  X(cuCtxPopCurrent, cuCtxPopCurrent_v2, cuda::CUcontext *)                    \
  X(cuMemAlloc, cuMemAlloc_v2, cuda::CUdeviceptr *, std::size_t)               \
  X(cuMemFree, cuMemFree_v2, cuda::CUdeviceptr)                                \
  X(cuMemGetInfo, cuMemGetInfo_v2, std::size_t *, std::size_t *)               \
  X(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, cuda::CUdeviceptr, const void *,  \
    std::size_t, cuda::CUstream)                                               \
  X(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, void *, cuda::CUdeviceptr,        \
    std::size_t, cuda::CUstream)                                               \
  X(cuMemcpyAsync, cuMemcpyAsync, cuda::CUdeviceptr, cuda::CUdeviceptr,        \
    std::size_t, cuda::CUstream)                                               \
  X(cuMemHostRegister, cuMemHostRegister_v2, void *, std::size_t, unsigned)    \
  X(cuMemHostUnregister, cuMemHostUnregister, void *)                          \
  X(cuMemsetD8Async, cuMemsetD8Async, cuda::CUdeviceptr, unsigned char,        \
    std::size_t, cuda::CUstream)                                               \
  X(cuMemsetD16Async, cuMemsetD16Async, cuda::CUdeviceptr, unsigned short,     \
    std::size_t, cuda::CUstream)                                               \
  X(cuMemsetD32Async, cuMemsetD32Async, cuda::CUdeviceptr, unsigned,           \
    std::size_t, cuda::CUstream)                                               \
  X(cuStreamCreate, cuStreamCreate, cuda::CUstream *, unsigned)                \
  X(cuStreamDestroy, cuStreamDestroy_v2, cuda::CUstream)                       \
  X(cuStreamSynchronize, cuStreamSynchronize, cuda::CUstream)                  \
  X(cuStreamWaitEvent, cuStreamWaitEvent, cuda::CUstream, cuda::CUevent,       \
    unsigned)                                                                  \
  X(cuEventCreate, cuEventCreate, cuda::CUevent *, unsigned)                   \
  X(cuEventDestroy, cuEventDestroy_v2, cuda::CUevent)                          \
  X(cuEventRecord, cuEventRecord, cuda::CUevent, cuda::CUstream)               \
  X(cuEventSynchronize, cuEventSynchronize, cuda::CUevent)                     \
  X(cuEventElapsedTime, cuEventElapsedTime, float *, cuda::CUevent,            \
    cuda::CUevent)                                                             \
  X(cuModuleLoadDataEx, cuModuleLoadDataEx, cuda::CUmodule *, const void *,    \
    unsigned, cuda::CUjit_option *, void **)                                   \
  X(cuModuleUnload, cuModuleUnload, cuda::CUmodule)                            \
  X(cuModuleGetFunction, cuModuleGetFunction, cuda::CUfunction *,              \
    cuda::CUmodule, const char *)                                              \
  X(cuFuncSetAttribute, cuFuncSetAttribute, cuda::CUfunction,                  \
    cuda::CUfunction_attribute, int)                                           \
  X(cuLaunchKernelEx, cuLaunchKernelEx, const cuda::CUlaunchConfig *,          \
    cuda::CUfunction, void **, void **)                                        \
  X(cuOccupancyMaxActiveClusters, cuOccupancyMaxActiveClusters, int *,         \
    cuda::CUfunction, const cuda::CUlaunchConfig *)                            \
  X(cuTensorMapEncodeTiled, cuTensorMapEncodeTiled, cuda::CUtensorMap *,       \
    cuda::CUtensorMapDataType, std::uint32_t, void *, const std::uint64_t *,   \
    const std::uint64_t *, const std::uint32_t *, const std::uint32_t *,       \
    cuda::CUtensorMapInterleave, cuda::CUtensorMapSwizzle,                     \
    cuda::CUtensorMapL2promotion, cuda::CUtensorMapFloatOOBfill)

/// A function of the driver and its name, so that its errors can say it.
template <typename... Parameters> struct CudaCall {
  using Function = cuda::CUresult (*)(Parameters...);

  const char *name;
  Function function = nullptr;
};

/// The loaded and initialised driver.
class CudaDriver {
public:
  /// The driver of this machine, loaded at the first call. Throws RuntimeError
  /// that says what to install where there is none.
  static std::shared_ptr<const CudaDriver> ofProcess();
  /// The driver in that file.
  static std::shared_ptr<const CudaDriver> load(const std::string &path);

  /// Call, and throw RuntimeError where the driver reports one. `what` is what
  /// is being done, as text or as a function that makes it when it is needed:
  /// "allocating 16 bytes".
  template <typename What, typename... Parameters, typename... Arguments>
  void call(const CudaCall<Parameters...> &symbol, What &&what,
            Arguments... arguments) const {
    cuda::CUresult result = symbol.function(arguments...);
    if (result == cuda::CUDA_SUCCESS)
      return;
    if constexpr (std::is_invocable_v<What>)
      fail(result, symbol.name, what());
    else
      fail(result, symbol.name, what);
  }

  /// The error of a call that returned `result`; `detail` is added at its end.
  [[noreturn]] void fail(cuda::CUresult result, const char *call,
                         const std::string &what,
                         const std::string &detail = "") const;

  /// "12.4": the newest CUDA the driver supports.
  std::string version() const;

#define KILN_DECLARE_CALL(call, symbol, ...) CudaCall<__VA_ARGS__> call{#call};
  KILN_CUDA_SYMBOLS(KILN_DECLARE_CALL)
#undef KILN_DECLARE_CALL

private:
  CudaDriver(void *library, const std::string &path);
};

int countCudaDevices(const CudaDriver &driver);
cuda::CUdevice getCudaDevice(const CudaDriver &driver, int ordinal);
/// DeviceDescription::active_clusters, asked of the driver in the GPU's
/// context; empty where it does not tell.
std::vector<int> askActiveClusters(const CudaDriver &driver,
                                   const DeviceDescription &description);
DeviceDescription describeCudaDevice(const CudaDriver &driver,
                                     cuda::CUdevice device);

/// open_cuda and list_devices with a driver that is already there.
std::shared_ptr<Device> openCuda(std::shared_ptr<const CudaDriver> driver,
                                 int ordinal);
DeviceListing listCudaDevices(const CudaDriver &driver);

} // namespace kiln
