// Contexts: the one context of the driver, which is always current, and what
// can be set and asked of it.
#include "cudart/driver/Driver.h"

#include <cstdint>

CUresult giveContext(void **context) {
  static char theContext;
  if (!context)
    return CUDA_ERROR_INVALID_VALUE;
  *context = &theContext;
  return cudaSuccess;
}

KILN_CUDA CUresult cuDevicePrimaryCtxRetain(void **context, CUdevice) {
  return giveContext(context);
}
KILN_CUDA CUresult cuDevicePrimaryCtxRelease_v2(CUdevice) {
  return cudaSuccess;
}
KILN_CUDA CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice, unsigned) {
  return cudaSuccess;
}
KILN_CUDA CUresult cuDevicePrimaryCtxGetState(CUdevice, unsigned *flags,
                                              int *active) {
  *flags = 0;
  *active = 1;
  return cudaSuccess;
}
KILN_CUDA CUresult cuDevicePrimaryCtxReset_v2(CUdevice) {
  return cudaDeviceReset();
}
KILN_CUDA CUresult cuCtxCreate_v2(void **context, unsigned, CUdevice) {
  return giveContext(context);
}
KILN_CUDA CUresult cuCtxCreate_v3(void **context, void *, int, unsigned,
                                  CUdevice) {
  return giveContext(context);
}
KILN_CUDA CUresult cuCtxCreate_v4(void **context, void *, unsigned, CUdevice) {
  return giveContext(context);
}
KILN_CUDA CUresult cuCtxDestroy_v2(void *) { return cudaSuccess; }
KILN_CUDA CUresult cuCtxGetCurrent(void **context) {
  return giveContext(context);
}
KILN_CUDA CUresult cuCtxSetCurrent(void *) { return cudaSuccess; }
KILN_CUDA CUresult cuCtxPushCurrent_v2(void *) { return cudaSuccess; }
KILN_CUDA CUresult cuCtxPopCurrent_v2(void **context) {
  return context ? giveContext(context) : static_cast<int>(cudaSuccess);
}
KILN_CUDA CUresult cuCtxGetDevice(CUdevice *device) {
  if (!device)
    return CUDA_ERROR_INVALID_VALUE;
  *device = 0;
  return cudaSuccess;
}
KILN_CUDA CUresult cuCtxSynchronize() { return cudaDeviceSynchronize(); }

KILN_CUDA CUresult cuCtxGetId(void *, unsigned long long *id) {
  if (!id)
    return CUDA_ERROR_INVALID_VALUE;
  *id = 1;
  return cudaSuccess;
}
KILN_CUDA CUresult cuCtxGetFlags(unsigned *flags) {
  if (!flags)
    return CUDA_ERROR_INVALID_VALUE;
  *flags = 0;
  return cudaSuccess;
}
/// Of the newest functions that a context was made by.
KILN_CUDA CUresult cuCtxGetApiVersion(void *, unsigned *version) {
  constexpr unsigned kApiVersion = 3020;
  if (!version)
    return CUDA_ERROR_INVALID_VALUE;
  *version = kApiVersion;
  return cudaSuccess;
}

KILN_CUDA CUresult cuCtxGetLimit(std::size_t *value, int limit) {
  return value ? cudaDeviceGetLimit(value, limit)
               : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuCtxSetLimit(int limit, std::size_t value) {
  return cudaDeviceSetLimit(limit, value);
}
KILN_CUDA CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
  return cudaDeviceGetStreamPriorityRange(least, greatest);
}
KILN_CUDA CUresult cuCtxResetPersistingL2Cache() {
  return cudaCtxResetPersistingL2Cache();
}
KILN_CUDA CUresult cuCtxGetCacheConfig(int *config) {
  return config ? cudaDeviceGetCacheConfig(config)
                : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuCtxSetCacheConfig(int config) {
  return cudaDeviceSetCacheConfig(config);
}

// The names without a version, which programs look up by dlsym.
KILN_CUDA_PLAIN(cuDevicePrimaryCtxRelease, _v2)
KILN_CUDA_PLAIN(cuDevicePrimaryCtxSetFlags, _v2)
KILN_CUDA_PLAIN(cuDevicePrimaryCtxReset, _v2)
KILN_CUDA_PLAIN(cuCtxCreate, _v2)
KILN_CUDA_PLAIN(cuCtxDestroy, _v2)
KILN_CUDA_PLAIN(cuCtxPushCurrent, _v2)
KILN_CUDA_PLAIN(cuCtxPopCurrent, _v2)
