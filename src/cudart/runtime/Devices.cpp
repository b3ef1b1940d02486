// Devices: there is one, and what it can do comes from its description.
#include "cudart/runtime/Call.h"

#include <algorithm>
#include <cstring>

using namespace kiln::cudart;

static const kiln::DeviceDescription &description() {
  return Session::get().description();
}

/// What programs that ask for a version should believe.
static constexpr int kVersion =
    KILN_CUDART_MAJOR * 1000 + (KILN_CUDART_MAJOR == 12 ? 80 : 0);

/// Without the opt-in attribute.
static constexpr int kDefaultSmemBytes = 48 * 1024;

KILN_CUDA cudaError_t cudaGetDeviceCount(int *count) {
  *count = 1;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaGetDevice(int *device) {
  *device = 0;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : noteError(cudaErrorInvalidDevice);
}
KILN_CUDA cudaError_t cudaInitDevice(int device, unsigned, unsigned) {
  return cudaSetDevice(device);
}
KILN_CUDA cudaError_t cudaSetValidDevices(int *, int) { return cudaSuccess; }
KILN_CUDA cudaError_t cudaChooseDevice(int *device, const cudaDeviceProp *) {
  return cudaGetDevice(device);
}
KILN_CUDA cudaError_t cudaSetDeviceFlags(unsigned) { return cudaSuccess; }
KILN_CUDA cudaError_t cudaGetDeviceFlags(unsigned *flags) {
  *flags = 0;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaDriverGetVersion(int *version) {
  *version = kVersion;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaRuntimeGetVersion(int *version) {
  *version = kVersion;
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaDeviceSynchronize() {
  return call("cudaDeviceSynchronize", [] {
    StreamCapture::checkMayWait();
    Session::get().device().synchronize();
    return cudaSuccess;
  });
}
KILN_CUDA cudaError_t cudaThreadSynchronize() {
  return cudaDeviceSynchronize();
}

KILN_CUDA cudaError_t cudaDeviceReset() {
  Session::get().findings().repair();
  return call("cudaDeviceReset", [] {
    StreamCapture::checkMayWait();
    Session::get().reset();
    lastError() = cudaSuccess;
    return cudaSuccess;
  });
}
KILN_CUDA cudaError_t cudaThreadExit() { return cudaDeviceReset(); }

// One device has no peers.
KILN_CUDA cudaError_t cudaDeviceCanAccessPeer(int *canAccess, int, int) {
  *canAccess = 0;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaDeviceEnablePeerAccess(int, unsigned) {
  return noteError(cudaErrorInvalidDevice);
}
KILN_CUDA cudaError_t cudaDeviceDisablePeerAccess(int) {
  return noteError(cudaErrorInvalidDevice);
}

KILN_CUDA cudaError_t cudaDeviceGetStreamPriorityRange(int *least,
                                                       int *greatest) {
  if (least)
    *least = 0;
  if (greatest)
    *greatest = -5;
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaDeviceGetPCIBusId(char *text, int length, int) {
  std::strncpy(text, "0000:01:00.0", static_cast<std::size_t>(length));
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *) {
  return cudaGetDevice(device);
}

/// Limits are kept and mean nothing: stacks and heaps grow as they need.
static std::size_t &limitOf(int limit) {
  static std::size_t values[8] = {1024, 1 << 20, 8 << 20, 2, 2048, 128, 0, 0};
  return values[limit];
}
KILN_CUDA cudaError_t cudaDeviceSetLimit(int limit, std::size_t value) {
  if (limit < 0 || limit > 7)
    return noteError(cudaErrorUnsupportedLimit);
  limitOf(limit) = value;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaDeviceGetLimit(std::size_t *value, int limit) {
  if (limit < 0 || limit > 7)
    return noteError(cudaErrorUnsupportedLimit);
  *value = limitOf(limit);
  return cudaSuccess;
}

// Preferences that change nothing here.
KILN_CUDA cudaError_t cudaDeviceSetCacheConfig(int) { return cudaSuccess; }
KILN_CUDA cudaError_t cudaDeviceGetCacheConfig(int *config) {
  *config = 0;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaDeviceSetSharedMemConfig(int) { return cudaSuccess; }
KILN_CUDA cudaError_t cudaDeviceGetSharedMemConfig(int *config) {
  *config = 1; // banks of four bytes
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaProfilerStart() { return cudaSuccess; }
KILN_CUDA cudaError_t cudaProfilerStop() { return cudaSuccess; }

/// Every attribute that a description answers; others that are yes or no.
static int attributeOf(int attribute) {
  const kiln::DeviceDescription &device = description();
  switch (attribute) {
  case 1:
    return device.max_threads_per_cta;
  case 2:
  case 3:
  case 4:
    return device.max_block[static_cast<std::size_t>(attribute - 2)];
  case 5:
  case 6:
  case 7:
    return device.max_grid[static_cast<std::size_t>(attribute - 5)];
  case 8:
    return kDefaultSmemBytes;
  case 9:
    return device.max_constant_bytes;
  case 10:
    return 32;
  case 11:
    return 0x7fffffff;
  case 12:
  case 82:
    return device.registers_per_sm;
  case 13:
    return device.sm_clock_mhz * 1000;
  case 14: // alignments of textures and surfaces
  case 30:
    return 512;
  case 51:
    return 32;
  case 16:
    return device.sms;
  case 36:
    return device.memory_clock_mhz * 1000;
  case 37: // two transfers a clock
    return device.memory_clock_mhz
               ? static_cast<int>(device.memory_gb_per_s * 8 /
                                  (2e-3 * device.memory_clock_mhz))
               : 0;
  case 38:
    return static_cast<int>(device.l2_bytes);
  case 39:
    return device.max_threads_per_sm;
  case 40: // engines that copy
    return 3;
  case 75:
    return device.compute_major;
  case 76:
    return device.compute_minor;
  case 81:
    return device.smem_per_sm_bytes;
  case 87:
    return 2;
  case 97:
    return device.max_smem_per_cta_bytes;
  case 106:
    return device.max_ctas_per_sm;
  case 108:
    return static_cast<int>(device.l2_bytes / 8 * 5);
  case 111:
    return device.reserved_smem_per_cta_bytes;
  case 126:
    return 4;
  case 15:  // copies beside kernels
  case 19:  // host memory can be mapped
  case 31:  // concurrent kernels
  case 41:  // unified addresses
  case 78:  // priorities
  case 79:  // L1 caches
  case 80:  // local memory is cached too
  case 83:  // managed memory
  case 89:  // used by the host while kernels run
  case 90:  // preemption
  case 91:  // registered memory at its own address
  case 95:  // cooperative launches
  case 99:  // registration
  case 102: // virtual memory
  case 115: // memory pools
  case 120: // clusters
    return 1;
  default:
    return 0;
  }
}

KILN_CUDA cudaError_t cudaDeviceGetAttribute(int *value, int attribute,
                                             int device) {
  if (device != 0)
    return noteError(cudaErrorInvalidDevice);
  *value = attributeOf(attribute);
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties,
                                              int number) {
  if (number != 0)
    return noteError(cudaErrorInvalidDevice);
  const kiln::DeviceDescription &device = description();
  *properties = {};
  std::strncpy(properties->name, (device.name + " (Kiln)").c_str(), 255);
  properties->totalGlobalMem = static_cast<std::size_t>(device.memory_bytes);
  properties->sharedMemPerBlock = kDefaultSmemBytes;
  properties->regsPerBlock = device.registers_per_sm;
  properties->warpSize = 32;
  properties->memPitch = 0x7fffffff;
  properties->maxThreadsPerBlock = device.max_threads_per_cta;
  std::copy(device.max_block.begin(), device.max_block.end(),
            properties->maxThreadsDim);
  std::copy(device.max_grid.begin(), device.max_grid.end(),
            properties->maxGridSize);
  KILN_BEFORE_13(properties->clockRate = attributeOf(13);
                 properties->memoryClockRate = attributeOf(36);
                 properties->deviceOverlap = 1;
                 properties->singleToDoublePrecisionPerfRatio = 2;)
  properties->totalConstMem =
      static_cast<std::size_t>(device.max_constant_bytes);
  properties->major = device.compute_major;
  properties->minor = device.compute_minor;
  properties->textureAlignment = properties->surfaceAlignment = 512;
  properties->texturePitchAlignment = 32;
  properties->multiProcessorCount = device.sms;
  properties->canMapHostMemory = properties->concurrentKernels = 1;
  properties->pciBusID = 1;
  properties->asyncEngineCount = 3;
  properties->unifiedAddressing = 1;
  properties->memoryBusWidth = attributeOf(37);
  properties->l2CacheSize = static_cast<int>(device.l2_bytes);
  properties->persistingL2CacheMaxSize = attributeOf(108);
  properties->maxThreadsPerMultiProcessor = device.max_threads_per_sm;
  properties->streamPrioritiesSupported = 1;
  properties->globalL1CacheSupported = properties->localL1CacheSupported = 1;
  properties->sharedMemPerMultiprocessor =
      static_cast<std::size_t>(device.smem_per_sm_bytes);
  properties->regsPerMultiprocessor = device.registers_per_sm;
  properties->managedMemory = properties->concurrentManagedAccess = 1;
  properties->computePreemptionSupported = 1;
  properties->canUseHostPointerForRegisteredMem = 1;
  properties->cooperativeLaunch = properties->clusterLaunch = 1;
  properties->sharedMemPerBlockOptin =
      static_cast<std::size_t>(device.max_smem_per_cta_bytes);
  properties->maxBlocksPerMultiProcessor = device.max_ctas_per_sm;
  properties->reservedSharedMemPerBlock =
      static_cast<std::size_t>(device.reserved_smem_per_cta_bytes);
  properties->hostRegisterSupported = properties->memoryPoolsSupported = 1;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaGetDeviceProperties, _v2)
