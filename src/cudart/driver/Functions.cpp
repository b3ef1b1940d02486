// Functions: attributes of kernels, and how many CTAs of them fit.
#include "cudart/driver/Driver.h"

using namespace kiln::cudart;

/// What hands something of a kernel over, where there are both.
template <typename Give>
static CUresult giveOf(CUfunction function, const void *to, const Give &give) {
  if (!isMade(function))
    return cudaErrorInvalidResourceHandle;
  if (!to)
    return CUDA_ERROR_INVALID_VALUE;
  give();
  return cudaSuccess;
}

KILN_CUDA CUresult cuKernelGetFunction(CUfunction *function,
                                       CUfunction kernel) {
  return giveOf(kernel, function, [&] { *function = kernel; });
}
KILN_CUDA CUresult cuKernelGetLibrary(CUmodule *library, CUfunction kernel) {
  return giveOf(kernel, library, [&] { *library = kernel->module; });
}
KILN_CUDA CUresult cuFuncGetModule(CUmodule *module, CUfunction function) {
  return giveOf(function, module, [&] { *module = function->module; });
}
KILN_CUDA CUresult cuFuncGetName(const char **name, CUfunction function) {
  return giveOf(function, name, [&] { *name = function->name.c_str(); });
}
KILN_CUDA CUresult cuKernelGetName(const char **name, CUfunction kernel) {
  return cuFuncGetName(name, kernel);
}
/// Kernels are loaded with their modules.
KILN_CUDA CUresult cuFuncIsLoaded(int *state, CUfunction function) {
  constexpr int kLoaded = 1;
  return giveOf(function, state, [&] { *state = kLoaded; });
}
KILN_CUDA CUresult cuFuncLoad(CUfunction function) {
  return isMade(function) ? static_cast<int>(cudaSuccess)
                          : static_cast<int>(cudaErrorInvalidResourceHandle);
}
KILN_CUDA CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index,
                                      std::size_t *offset, std::size_t *bytes) {
  return offset ? cudaFuncGetParamInfo(function, index, offset, bytes)
                : static_cast<int>(CUDA_ERROR_INVALID_VALUE);
}
KILN_CUDA CUresult cuKernelGetParamInfo(CUfunction kernel, std::size_t index,
                                        std::size_t *offset,
                                        std::size_t *bytes) {
  return cuFuncGetParamInfo(kernel, index, offset, bytes);
}

KILN_CUDA CUresult cuFuncGetAttribute(int *value, int attribute,
                                      CUfunction function) {
  cudaFuncAttributes attributes{};
  if (!value)
    return CUDA_ERROR_INVALID_VALUE;
  if (CUresult error = cudaFuncGetAttributes(&attributes, function))
    return error;
  const int values[] = {
      attributes.maxThreadsPerBlock,
      static_cast<int>(attributes.sharedSizeBytes),
      static_cast<int>(attributes.constSizeBytes),
      static_cast<int>(attributes.localSizeBytes),
      attributes.numRegs,
      attributes.ptxVersion,
      attributes.binaryVersion,
      attributes.cacheModeCA,
      attributes.maxDynamicSharedSizeBytes,
      attributes.preferredShmemCarveout,
      attributes.clusterDimMustBeSet,
      attributes.requiredClusterWidth,
      attributes.requiredClusterHeight,
      attributes.requiredClusterDepth,
      attributes.nonPortableClusterSizeAllowed,
      attributes.clusterSchedulingPolicyPreference,
  };
  if (attribute < 0 || attribute >= static_cast<int>(std::size(values)))
    return CUDA_ERROR_INVALID_VALUE;
  *value = values[attribute];
  return cudaSuccess;
}
KILN_CUDA CUresult cuKernelGetAttribute(int *value, int attribute,
                                        CUfunction kernel, CUdevice) {
  return cuFuncGetAttribute(value, attribute, kernel);
}

KILN_CUDA CUresult cuFuncSetAttribute(CUfunction function, int attribute,
                                      int value) {
  return cudaFuncSetAttribute(function, attribute, value);
}
KILN_CUDA CUresult cuKernelSetAttribute(int attribute, int value,
                                        CUfunction kernel, CUdevice) {
  return cuFuncSetAttribute(kernel, attribute, value);
}
KILN_CUDA CUresult cuFuncSetCacheConfig(CUfunction function, int config) {
  return cudaFuncSetCacheConfig(function, config);
}
KILN_CUDA CUresult cuKernelSetCacheConfig(CUfunction kernel, int config,
                                          CUdevice) {
  return cudaFuncSetCacheConfig(kernel, config);
}

KILN_CUDA CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, CUfunction function, int threads, std::size_t smemBytes,
    unsigned flags) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, smemBytes, flags);
}
KILN_CUDA CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, CUfunction function, int threads, std::size_t smemBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, function, threads, smemBytes, 0);
}
KILN_CUDA CUresult cuOccupancyAvailableDynamicSMemPerBlock(std::size_t *bytes,
                                                           CUfunction function,
                                                           int blocks,
                                                           int threads) {
  return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks,
                                                   threads);
}

/// The block with which most threads are resident, the largest of those.
KILN_CUDA CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(
    int *grid, int *block, CUfunction function,
    std::size_t (*smemBytesOf)(int threads), std::size_t smemBytes, int limit,
    unsigned flags) {
  if (!grid || !block)
    return CUDA_ERROR_INVALID_VALUE;
  constexpr int kWarp = 32;
  int most = 0;
  if (CUresult error = cuFuncGetAttribute(&most, 0, function))
    return error;
  if (limit > 0 && limit < most)
    most = limit;
  int best = 0;
  *grid = *block = 0;
  for (int threads = most; threads > 0;
       threads = (threads - 1) / kWarp * kWarp) {
    int count = 0;
    if (CUresult error =
            cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &count, function, threads,
                smemBytesOf ? smemBytesOf(threads) : smemBytes, flags))
      return error;
    if (count * threads <= best)
      continue;
    best = count * threads;
    *block = threads;
    *grid = count * Session::get().description().sms;
  }
  return cudaSuccess;
}
KILN_CUDA CUresult cuOccupancyMaxPotentialBlockSize(
    int *grid, int *block, CUfunction function,
    std::size_t (*smemBytesOf)(int threads), std::size_t smemBytes,
    int limit) {
  return cuOccupancyMaxPotentialBlockSizeWithFlags(
      grid, block, function, smemBytesOf, smemBytes, limit, 0);
}

/// Ask the runtime, with the configuration in its words.
static CUresult askOfClusters(int *count, CUfunction function,
                              const CUlaunchConfig *config,
                              decltype(cudaOccupancyMaxActiveClusters) *ask) {
  if (!count || !config)
    return CUDA_ERROR_INVALID_VALUE;
  cudaLaunchConfig_t runtime = runtimeConfig(*config);
  return ask(count, function, &runtime);
}
KILN_CUDA CUresult cuOccupancyMaxActiveClusters(int *clusters,
                                                CUfunction function,
                                                const CUlaunchConfig *config) {
  return askOfClusters(clusters, function, config,
                       cudaOccupancyMaxActiveClusters);
}
KILN_CUDA CUresult cuOccupancyMaxPotentialClusterSize(
    int *ctas, CUfunction function, const CUlaunchConfig *config) {
  return askOfClusters(ctas, function, config,
                       cudaOccupancyMaxPotentialClusterSize);
}
