// Devices: devices, memory, streams and events of the driver, by the runtime's
// functions.
#include "cudart/Handles.h"
#include "cudart/driver/Driver.h"

#include <algorithm>
#include <cstring>
#include <string>

using namespace kiln::cudart;

static void *pointerOf(CUdeviceptr address) {
  return reinterpret_cast<void *>(address);
}

KILN_CUDA CUresult cuInit(unsigned) { return cudaSuccess; }
KILN_CUDA CUresult cuDriverGetVersion(int *version) {
  return cudaDriverGetVersion(version);
}
KILN_CUDA CUresult cuDeviceGetCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = 0;
  return ordinal == 0 ? static_cast<int>(cudaSuccess)
                      : static_cast<int>(CUDA_ERROR_INVALID_DEVICE);
}
KILN_CUDA CUresult cuDeviceGetName(char *name, int length, CUdevice) {
  std::string text = Session::get().description().name + " (Kiln)";
  auto most = static_cast<std::size_t>(std::max(length, 1)) - 1;
  std::size_t count = std::min(text.size(), most);
  std::memcpy(name, text.data(), count);
  name[count] = 0;
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceTotalMem_v2(std::size_t *bytes, CUdevice) {
  *bytes = static_cast<std::size_t>(Session::get().description().memory_bytes);
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice) {
  if (!text || length <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  return cudaDeviceGetPCIBusId(text, length, 0);
}
KILN_CUDA CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
  if (!device || !text)
    return CUDA_ERROR_INVALID_VALUE;
  return cudaDeviceGetByPCIBusId(device, text);
}
KILN_CUDA CUresult cuDeviceCanAccessPeer(int *canAccess, CUdevice, CUdevice) {
  if (!canAccess)
    return CUDA_ERROR_INVALID_VALUE;
  *canAccess = 0;
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceComputeCapability(int *major, int *minor,
                                             CUdevice) {
  const kiln::DeviceDescription &device = Session::get().device().description();
  if (!major || !minor)
    return CUDA_ERROR_INVALID_VALUE;
  *major = device.compute_major;
  *minor = device.compute_minor;
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceGetUuid_v2(void *uuid, CUdevice) {
  std::memset(uuid, 0, 16);
  std::memcpy(uuid, "Kiln", 4);
  return cudaSuccess;
}
KILN_CUDA CUresult cuDeviceGetAttribute(int *value, int attribute,
                                        CUdevice device) {
  return cudaDeviceGetAttribute(value, attribute, device);
}

// Memory.
KILN_CUDA CUresult cuMemGetInfo_v2(std::size_t *free, std::size_t *total) {
  return cudaMemGetInfo(free, total);
}
KILN_CUDA CUresult cuMemAlloc_v2(CUdeviceptr *address, std::size_t bytes) {
  if (bytes == 0)
    return CUDA_ERROR_INVALID_VALUE;
  return cudaMalloc(reinterpret_cast<void **>(address), bytes);
}
KILN_CUDA CUresult cuMemAllocManaged(CUdeviceptr *address, std::size_t bytes,
                                     unsigned flags) {
  return cudaMallocManaged(reinterpret_cast<void **>(address), bytes, flags);
}
KILN_CUDA CUresult cuMemFree_v2(CUdeviceptr address) {
  return cudaFree(pointerOf(address));
}
KILN_CUDA CUresult cuMemAllocHost_v2(void **pointer, std::size_t bytes) {
  return cudaMallocHost(pointer, bytes);
}
KILN_CUDA CUresult cuMemHostAlloc(void **pointer, std::size_t bytes,
                                  unsigned flags) {
  return cudaHostAlloc(pointer, bytes, flags);
}
KILN_CUDA CUresult cuMemFreeHost(void *pointer) {
  return cudaFreeHost(pointer);
}
KILN_CUDA CUresult cuMemHostRegister_v2(void *pointer, std::size_t bytes,
                                        unsigned flags) {
  return cudaHostRegister(pointer, bytes, flags);
}
KILN_CUDA CUresult cuMemHostUnregister(void *pointer) {
  return cudaHostUnregister(pointer);
}
KILN_CUDA CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address,
                                                void *host, unsigned flags) {
  return cudaHostGetDevicePointer(reinterpret_cast<void **>(address), host,
                                  flags);
}
// Copies.
enum { hostToDevice = 1, deviceToHost = 2, deviceToDevice = 3, byAddress = 4 };
KILN_CUDA CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from,
                                   std::size_t bytes) {
  return cudaMemcpy(pointerOf(to), from, bytes, hostToDevice);
}
KILN_CUDA CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from,
                                   std::size_t bytes) {
  return cudaMemcpy(to, pointerOf(from), bytes, deviceToHost);
}
KILN_CUDA CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from,
                                   std::size_t bytes) {
  return cudaMemcpy(pointerOf(to), pointerOf(from), bytes, deviceToDevice);
}
KILN_CUDA CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from,
                            std::size_t bytes) {
  return cudaMemcpy(pointerOf(to), pointerOf(from), bytes, byAddress);
}
KILN_CUDA CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from,
                                        std::size_t bytes,
                                        cudaStream_t stream) {
  return cudaMemcpyAsync(pointerOf(to), from, bytes, hostToDevice, stream);
}
KILN_CUDA CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from,
                                        std::size_t bytes,
                                        cudaStream_t stream) {
  return cudaMemcpyAsync(to, pointerOf(from), bytes, deviceToHost, stream);
}
KILN_CUDA CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from,
                                        std::size_t bytes,
                                        cudaStream_t stream) {
  return cudaMemcpyAsync(pointerOf(to), pointerOf(from), bytes, deviceToDevice,
                         stream);
}
KILN_CUDA CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from,
                                 std::size_t bytes, cudaStream_t stream) {
  return cudaMemcpyAsync(pointerOf(to), pointerOf(from), bytes, byAddress,
                         stream);
}

static CUresult fill(const char *name, CUdeviceptr to, std::uint32_t value,
                     unsigned elementBytes, std::size_t count,
                     cudaStream_t stream) {
  return driverCall(name, [&] {
    if (count > 0)
      submit(stream, FillWork{.to = to,
                              .pitch = count * elementBytes,
                              .value = value,
                              .elementBytes = elementBytes,
                              .width = count});
    return cudaSuccess;
  });
}
KILN_CUDA CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value,
                                 std::size_t count) {
  return fill("cuMemsetD8", to, value, 1, count, nullptr);
}
KILN_CUDA CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value,
                                  std::size_t count) {
  return fill("cuMemsetD16", to, value, 2, count, nullptr);
}
KILN_CUDA CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value,
                                  std::size_t count) {
  return fill("cuMemsetD32", to, value, 4, count, nullptr);
}
KILN_CUDA CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value,
                                   std::size_t count, cudaStream_t stream) {
  return fill("cuMemsetD8Async", to, value, 1, count, stream);
}
KILN_CUDA CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value,
                                    std::size_t count, cudaStream_t stream) {
  return fill("cuMemsetD16Async", to, value, 2, count, stream);
}
KILN_CUDA CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value,
                                    std::size_t count, cudaStream_t stream) {
  return fill("cuMemsetD32Async", to, value, 4, count, stream);
}

// Streams and events.
KILN_CUDA CUresult cuStreamCreate(cudaStream_t *stream, unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}
KILN_CUDA CUresult cuStreamCreateWithPriority(cudaStream_t *stream,
                                              unsigned flags, int priority) {
  return cudaStreamCreateWithPriority(stream, flags, priority);
}
KILN_CUDA CUresult cuStreamDestroy_v2(cudaStream_t stream) {
  return cudaStreamDestroy(stream);
}
KILN_CUDA CUresult cuStreamSynchronize(cudaStream_t stream) {
  return cudaStreamSynchronize(stream);
}
KILN_CUDA CUresult cuStreamQuery(cudaStream_t stream) {
  return cudaStreamQuery(stream);
}
KILN_CUDA CUresult cuStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                     unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
KILN_CUDA CUresult cuStreamIsCapturing(cudaStream_t stream, int *status) {
  return status ? cudaStreamIsCapturing(stream, status)
                : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuStreamGetCaptureInfo(cudaStream_t stream, int *status,
                                          unsigned long long *id) {
  return kilnCudaCaptureInfo(stream, status, id, nullptr, nullptr, nullptr,
                             nullptr);
}
KILN_CUDA CUresult cuStreamGetCaptureInfo_v2(cudaStream_t stream, int *status,
                                             unsigned long long *id,
                                             void **graph,
                                             const void *const **dependencies,
                                             std::size_t *count) {
  return kilnCudaCaptureInfo(stream, status, id, graph, dependencies, nullptr,
                             count);
}
KILN_CUDA CUresult cuStreamGetCaptureInfo_v3(
    cudaStream_t stream, int *status, unsigned long long *id, void **graph,
    const void *const **dependencies, const void **edges, std::size_t *count) {
  return kilnCudaCaptureInfo(stream, status, id, graph, dependencies, edges,
                             count);
}
KILN_CUDA CUresult cuStreamSetAttribute(cudaStream_t stream, int attribute,
                                        const void *value) {
  return cudaStreamSetAttribute(stream, attribute, value);
}
KILN_CUDA CUresult cuStreamGetAttribute(cudaStream_t stream, int attribute,
                                        void *value) {
  return cudaStreamGetAttribute(stream, attribute, value);
}
KILN_CUDA CUresult cuStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return cudaStreamCopyAttributes(to, from);
}
KILN_CUDA CUresult cuStreamGetPriority(cudaStream_t stream, int *priority) {
  return priority ? cudaStreamGetPriority(stream, priority)
                  : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  return flags ? cudaStreamGetFlags(stream, flags)
               : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuStreamGetId(cudaStream_t stream, unsigned long long *id) {
  return id ? cudaStreamGetId(stream, id)
            : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuStreamGetCtx(cudaStream_t, void **context) {
  return giveContext(context);
}
KILN_CUDA CUresult cuStreamGetDevice(cudaStream_t, CUdevice *device) {
  return cuCtxGetDevice(device);
}
KILN_CUDA CUresult cuEventCreate(cudaEvent_t *event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
KILN_CUDA CUresult cuEventDestroy_v2(cudaEvent_t event) {
  return cudaEventDestroy(event);
}
KILN_CUDA CUresult cuEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecord(event, stream);
}
KILN_CUDA CUresult cuEventRecordWithFlags(cudaEvent_t event,
                                          cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
KILN_CUDA CUresult cuEventSynchronize(cudaEvent_t event) {
  return cudaEventSynchronize(event);
}
KILN_CUDA CUresult cuEventQuery(cudaEvent_t event) {
  return cudaEventQuery(event);
}
KILN_CUDA CUresult cuEventElapsedTime(float *milliseconds, cudaEvent_t from,
                                      cudaEvent_t to) {
  return cudaEventElapsedTime(milliseconds, from, to);
}
KILN_CUDA_ALSO(cuEventElapsedTime, _v2)
KILN_CUDA CUresult cuLaunchHostFunc(cudaStream_t stream,
                                    void (*function)(void *), void *data) {
  return cudaLaunchHostFunc(stream, function, data);
}

// Errors, and functions by name.
KILN_CUDA CUresult cuGetErrorName(CUresult error, const char **text) {
  if (!text)
    return CUDA_ERROR_INVALID_VALUE;
  *text = kilnCudaDriverErrorName(error);
  return *text ? static_cast<int>(cudaSuccess)
               : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuGetErrorString(CUresult error, const char **text) {
  CUresult result = cuGetErrorName(error, text);
  if (result == cudaSuccess)
    *text = cudaGetErrorString(error);
  return result;
}

// The names without a version, which programs look up by dlsym.
KILN_CUDA_PLAIN(cuDeviceTotalMem, _v2)
KILN_CUDA_PLAIN(cuDeviceGetUuid, _v2)
KILN_CUDA_PLAIN(cuMemGetInfo, _v2)
KILN_CUDA_PLAIN(cuMemAlloc, _v2)
KILN_CUDA_PLAIN(cuMemFree, _v2)
KILN_CUDA_PLAIN(cuMemAllocHost, _v2)
KILN_CUDA_PLAIN(cuMemHostRegister, _v2)
KILN_CUDA_PLAIN(cuMemHostGetDevicePointer, _v2)
KILN_CUDA_PLAIN(cuMemcpyHtoD, _v2)
KILN_CUDA_PLAIN(cuMemcpyDtoH, _v2)
KILN_CUDA_PLAIN(cuMemcpyDtoD, _v2)
KILN_CUDA_PLAIN(cuMemcpyHtoDAsync, _v2)
KILN_CUDA_PLAIN(cuMemcpyDtoHAsync, _v2)
KILN_CUDA_PLAIN(cuMemcpyDtoDAsync, _v2)
KILN_CUDA_PLAIN(cuMemsetD8, _v2)
KILN_CUDA_PLAIN(cuMemsetD16, _v2)
KILN_CUDA_PLAIN(cuMemsetD32, _v2)
KILN_CUDA_PLAIN(cuStreamDestroy, _v2)
KILN_CUDA_PLAIN(cuEventDestroy, _v2)
