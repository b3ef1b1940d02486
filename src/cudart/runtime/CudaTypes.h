// CudaTypes: the types of CUDA's runtime interface, as far as they cross it.
//
// Written down here because Kiln is built with no CUDA header. Sizes and
// offsets are the interface; what the fields mean is CUDA's documentation.
// KILN_CUDART_MAJOR says whose layouts these are, 12 or 13.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#define KILN_CUDA extern "C" __attribute__((visibility("default")))
/// The same function under another name.
#define KILN_CUDA_ALSO(name, suffix)                                           \
  KILN_CUDA decltype(name) name##suffix __attribute__((alias(#name)));
/// The same function where the default stream is the thread's own: its name in
/// programs that were compiled with --default-stream per-thread.
#define KILN_CUDA_PER_THREAD(name, suffix)                                     \
  KILN_CUDA_THROUGH(name##suffix, kiln::cudart::PerThread<&name>::call)
/// A function that is another one, whose parameters nobody needs to repeat.
#define KILN_CUDA_THROUGH(name, function)                                      \
  extern "C" __attribute__((used)) inline auto *name##_resolve() {             \
    return &function;                                                          \
  }                                                                            \
  KILN_CUDA std::remove_reference_t<decltype(function)> name                   \
      __attribute__((ifunc(#name "_resolve")));

using cudaError_t = int;
enum : int {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInitializationError = 3,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidPitchValue = 12,
  cudaErrorInvalidSymbol = 13,
  cudaErrorInvalidMemcpyDirection = 21,
  cudaErrorMissingConfiguration = 52,
  cudaErrorInvalidDeviceFunction = 98,
  cudaErrorInvalidDevice = 101,
  cudaErrorOperatingSystem = 304,
  cudaErrorLossyQuery = 909,
  cudaErrorNoKernelImageForDevice = 209,
  cudaErrorUnsupportedLimit = 215,
  cudaErrorInvalidPtx = 218,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorSymbolNotFound = 500,
  cudaErrorNotReady = 600,
  cudaErrorPeerAccessUnsupported = 217,
  cudaErrorHostMemoryAlreadyRegistered = 712,
  cudaErrorHostMemoryNotRegistered = 713,
  cudaErrorLaunchFailure = 719,
  cudaErrorCooperativeLaunchTooLarge = 720,
  cudaErrorNotPermitted = 800,
  cudaErrorNotSupported = 801,
  cudaErrorInvalidClusterSize = 912,
  cudaErrorUnknown = 999,
};

/// What every function that Kiln does not have does: say its name, and count it.
KILN_CUDA cudaError_t kilnCudaNotSupported(const char *name);

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};

struct CudaStream;
struct CudaEvent;
using cudaStream_t = CudaStream *;
using cudaEvent_t = CudaEvent *;

using cudaMemcpyKind = int; // 0 H2H, 1 H2D, 2 D2H, 3 D2D, 4 by address

struct cudaExtent {
  std::size_t width, height, depth;
};
struct cudaPos {
  std::size_t x, y, z;
};
struct cudaPitchedPtr {
  void *ptr;
  std::size_t pitch, xsize, ysize;
};
struct cudaMemcpy3DParms {
  void *srcArray;
  cudaPos srcPos;
  cudaPitchedPtr srcPtr;
  void *dstArray;
  cudaPos dstPos;
  cudaPitchedPtr dstPtr;
  cudaExtent extent;
  cudaMemcpyKind kind;
};

enum : int {
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributeProgrammaticEvent = 7,
  cudaLaunchAttributeLaunchCompletionEvent = 12,
  cudaLaunchAttributeDeviceUpdatableKernelNode = 13,
  cudaLaunchAttributeLast = 16,
};
struct cudaLaunchAttribute {
  int id;
  char pad[4];
  union {
    char bytes[64];
    std::uint64_t aligned;
    int cooperative;
    struct {
      unsigned x, y, z;
    } clusterDim;
    int programmaticStreamSerializationAllowed;
    struct {
      cudaEvent_t event;
      int flags, triggerAtBlockStart;
    } event; // programmaticEvent and launchCompletionEvent
  } value;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute *attrs;
  unsigned numAttrs;
};

struct cudaFuncAttributes {
  std::size_t sharedSizeBytes, constSizeBytes, localSizeBytes;
  int maxThreadsPerBlock, numRegs, ptxVersion, binaryVersion, cacheModeCA,
      maxDynamicSharedSizeBytes, preferredShmemCarveout, clusterDimMustBeSet,
      requiredClusterWidth, requiredClusterHeight, requiredClusterDepth,
      clusterSchedulingPolicyPreference, nonPortableClusterSizeAllowed,
      reserved[16];
};

struct cudaPointerAttributes {
  int type; // 0 unregistered, 1 host, 2 device, 3 managed
  int device;
  void *devicePointer, *hostPointer;
#if KILN_CUDART_MAJOR >= 13
  long reserved[8];
#endif
};

#if KILN_CUDART_MAJOR >= 13
#define KILN_BEFORE_13(...)
#define KILN_SINCE_13(...) __VA_ARGS__
#else
#define KILN_BEFORE_13(...) __VA_ARGS__
#define KILN_SINCE_13(...)
#endif

/// A function that has edges of graphs since CUDA 13, and had another name
/// before.
#if KILN_CUDART_MAJOR >= 13
#define KILN_WITH_EDGES(name) name
#else
#define KILN_WITH_EDGES(name) name##_v2
#endif

struct cudaDeviceProp {
  char name[256];
  char uuid[16];
  char luid[8];
  unsigned luidDeviceNodeMask;
  std::size_t totalGlobalMem, sharedMemPerBlock;
  int regsPerBlock, warpSize;
  std::size_t memPitch;
  int maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3];
  KILN_BEFORE_13(int clockRate;)
  std::size_t totalConstMem;
  int major, minor;
  std::size_t textureAlignment, texturePitchAlignment;
  KILN_BEFORE_13(int deviceOverlap;)
  int multiProcessorCount;
  KILN_BEFORE_13(int kernelExecTimeoutEnabled;)
  int integrated, canMapHostMemory;
  KILN_BEFORE_13(int computeMode;)
  int maxTexture1D, maxTexture1DMipmap;
  KILN_BEFORE_13(int maxTexture1DLinear;)
  int maxTexture2D[2], maxTexture2DMipmap[2], maxTexture2DLinear[3],
      maxTexture2DGather[2], maxTexture3D[3], maxTexture3DAlt[3],
      maxTextureCubemap, maxTexture1DLayered[2], maxTexture2DLayered[3],
      maxTextureCubemapLayered[2], maxSurface1D, maxSurface2D[2],
      maxSurface3D[3], maxSurface1DLayered[2], maxSurface2DLayered[3],
      maxSurfaceCubemap, maxSurfaceCubemapLayered[2];
  std::size_t surfaceAlignment;
  int concurrentKernels, ECCEnabled, pciBusID, pciDeviceID, pciDomainID,
      tccDriver, asyncEngineCount, unifiedAddressing;
  KILN_BEFORE_13(int memoryClockRate;)
  int memoryBusWidth, l2CacheSize, persistingL2CacheMaxSize,
      maxThreadsPerMultiProcessor, streamPrioritiesSupported,
      globalL1CacheSupported, localL1CacheSupported;
  std::size_t sharedMemPerMultiprocessor;
  int regsPerMultiprocessor, managedMemory, isMultiGpuBoard,
      multiGpuBoardGroupID, hostNativeAtomicSupported;
  KILN_BEFORE_13(int singleToDoublePrecisionPerfRatio;)
  int pageableMemoryAccess, concurrentManagedAccess, computePreemptionSupported,
      canUseHostPointerForRegisteredMem, cooperativeLaunch;
  KILN_BEFORE_13(int cooperativeMultiDeviceLaunch;)
  std::size_t sharedMemPerBlockOptin;
  int pageableMemoryAccessUsesHostPageTables, directManagedMemAccessFromHost,
      maxBlocksPerMultiProcessor, accessPolicyMaxWindowSize;
  std::size_t reservedSharedMemPerBlock;
  int hostRegisterSupported, sparseCudaArraySupported,
      hostRegisterReadOnlySupported, timelineSemaphoreInteropSupported,
      memoryPoolsSupported, gpuDirectRDMASupported;
  unsigned gpuDirectRDMAFlushWritesOptions;
  int gpuDirectRDMAWritesOrdering;
  unsigned memoryPoolSupportedHandleTypes;
  int deferredMappingCudaArraySupported, ipcEventSupported, clusterLaunch,
      unifiedFunctionPointers;
  KILN_SINCE_13(int deviceNumaConfig, deviceNumaId, mpsEnabled, hostNumaId;
                unsigned gpuPciDeviceID, gpuPciSubsystemID;
                int hostNumaMultinodeIpcSupported; int reserved[56];)
  KILN_BEFORE_13(int reserved[63];)
};
