// Driver: the words of CUDA's driver interface, and the functions of Kiln's
// runtime that it is made of.
//
// The two share their error numbers, streams, events and addresses.
#pragma once

#include "cudart/Session.h"
#include "cudart/runtime/Call.h"

using CUresult = int;
using CUdevice = int;
using CUdeviceptr = std::uint64_t;
using CUfunction = kiln::cudart::Function *;
using CUmodule = kiln::cudart::ProgramModule *;

enum : int {
  CUDA_ERROR_INVALID_VALUE = 1,
  CUDA_ERROR_INVALID_DEVICE = 101,
  CUDA_ERROR_NOT_FOUND = 500,
  CUDA_ERROR_NOT_SUPPORTED = 801,
};

/// The name of a function without its version, which must be in this file.
#define KILN_CUDA_PLAIN(name, version)                                         \
  KILN_CUDA decltype(name##version) name                                       \
      __attribute__((alias(#name #version)));

struct CUlaunchConfig {
  unsigned grid[3], block[3], sharedMemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attributes;
  unsigned attributeCount;
};
/// The same in the runtime's words.
inline cudaLaunchConfig_t runtimeConfig(const CUlaunchConfig &config) {
  cudaLaunchConfig_t runtime{};
  runtime.gridDim = {config.grid[0], config.grid[1], config.grid[2]};
  runtime.blockDim = {config.block[0], config.block[1], config.block[2]};
  runtime.dynamicSmemBytes = config.sharedMemBytes;
  runtime.stream = config.stream;
  runtime.attrs = config.attributes;
  runtime.numAttrs = config.attributeCount;
  return runtime;
}

/// Throws InvalidHandle where it is no module of this program.
void checkModule(CUmodule module);
/// Whether a handle is a kernel that this library gave.
bool isMade(CUfunction function);
/// The one context.
CUresult giveContext(void **context);

extern "C" {
CUresult cuCtxGetDevice(CUdevice *);
CUresult cuModuleLoad(CUmodule *, const char *path);
CUresult cuModuleLoadData(CUmodule *, const void *image);
CUresult cuModuleUnload(CUmodule);
CUresult cuModuleGetFunction(CUfunction *, CUmodule, const char *name);
CUresult cuModuleGetGlobal_v2(CUdeviceptr *, std::size_t *, CUmodule,
                              const char *name);
cudaError_t cudaMalloc(void **, std::size_t);
cudaError_t cudaFree(void *);
cudaError_t cudaMallocHost(void **, std::size_t);
cudaError_t cudaMallocManaged(void **, std::size_t, unsigned);
cudaError_t cudaHostAlloc(void **, std::size_t, unsigned);
cudaError_t cudaFreeHost(void *);
cudaError_t cudaHostRegister(void *, std::size_t, unsigned);
cudaError_t cudaHostUnregister(void *);
cudaError_t cudaHostGetDevicePointer(void **, void *, unsigned);
cudaError_t cudaMemGetInfo(std::size_t *, std::size_t *);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *, const void *);
cudaError_t cudaMemcpy(void *, const void *, std::size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void *, const void *, std::size_t, cudaMemcpyKind,
                            cudaStream_t);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t *, unsigned, int);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamQuery(cudaStream_t);
cudaError_t cudaStreamIsCapturing(cudaStream_t, int *);
cudaError_t cudaStreamSetAttribute(cudaStream_t, int, const void *);
cudaError_t cudaStreamGetAttribute(cudaStream_t, int, void *);
cudaError_t cudaStreamCopyAttributes(cudaStream_t, cudaStream_t);
cudaError_t cudaStreamGetPriority(cudaStream_t, int *);
cudaError_t cudaStreamGetFlags(cudaStream_t, unsigned *);
cudaError_t cudaStreamGetId(cudaStream_t, unsigned long long *);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *, unsigned);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventQuery(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float *, cudaEvent_t, cudaEvent_t);
cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*)(void *), void *);
cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *, const void *,
                                void **);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaDeviceGetLimit(std::size_t *, int);
cudaError_t cudaDeviceSetLimit(int, std::size_t);
cudaError_t cudaDeviceGetStreamPriorityRange(int *, int *);
cudaError_t cudaDeviceGetCacheConfig(int *);
cudaError_t cudaDeviceSetCacheConfig(int);
cudaError_t cudaDeviceGetPCIBusId(char *, int, int);
cudaError_t cudaDeviceGetByPCIBusId(int *, const char *);
cudaError_t cudaCtxResetPersistingL2Cache();
cudaError_t cudaDeviceGetAttribute(int *, int, int);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *);
cudaError_t cudaFuncSetAttribute(const void *, int, int);
cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, const void *, int,
                                                       std::size_t, unsigned);
cudaError_t cudaFuncGetParamInfo(const void *, std::size_t, std::size_t *,
                                 std::size_t *);
cudaError_t cudaFuncSetCacheConfig(const void *, int);
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t *,
                                                      const void *, int, int);
cudaError_t cudaOccupancyMaxActiveClusters(int *, const void *,
                                           const cudaLaunchConfig_t *);
cudaError_t cudaOccupancyMaxPotentialClusterSize(int *, const void *,
                                                 const cudaLaunchConfig_t *);
const char *kilnCudaDriverErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);
/// Every version of the functions that tell what captures a stream.
cudaError_t kilnCudaCaptureInfo(cudaStream_t, int *status,
                                unsigned long long *id, void **graph,
                                const void *const **dependencies,
                                const void **edges, std::size_t *count);
/// Run a piece of the driver's work as the runtime runs its own.
cudaError_t kilnCudaCall(const char *name, cudaError_t (*work)(void *),
                         void *data);
}

/// The same with a lambda.
template <typename Work>
CUresult driverCall(const char *name, const Work &work) {
  return kilnCudaCall(
      name,
      [](void *data) -> cudaError_t {
        return (*static_cast<const Work *>(data))();
      },
      const_cast<Work *>(&work));
}
