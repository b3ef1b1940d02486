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

extern "C" {
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
cudaError_t cudaDeviceGetAttribute(int *, int, int);
cudaError_t cudaDriverGetVersion(int *);
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *, const void *);
cudaError_t cudaFuncSetAttribute(const void *, int, int);
cudaError_t
cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *, const void *, int,
                                                       std::size_t, unsigned);
const char *cudaGetErrorName(cudaError_t);
const char *cudaGetErrorString(cudaError_t);
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
