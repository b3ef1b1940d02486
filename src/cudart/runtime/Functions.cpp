// Functions: attributes of kernels, and how many CTAs of them fit.
#include "cudart/runtime/Call.h"

#include <algorithm>

using namespace kiln::cudart;

/// Do something with a kernel of the program.
template <typename Work>
static cudaError_t withFunction(const char *name, const void *handle,
                                const Work &work) {
  return call(name, [&]() -> cudaError_t {
    Function *function = Session::get().findFunction(handle);
    return function ? work(*function)
                    : static_cast<int>(cudaErrorInvalidDeviceFunction);
  });
}

KILN_CUDA cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes,
                                            const void *handle) {
  return withFunction(
      "cudaFuncGetAttributes", handle, [&](Function &function) -> cudaError_t {
        const kiln::EntryInfo &entry = function.entry();
        const kiln::DeviceDescription &device = Session::get().description();
        *attributes = {};
        attributes->sharedSizeBytes = entry.static_smem_bytes;
        attributes->localSizeBytes = entry.local_bytes;
        attributes->maxThreadsPerBlock = entry.max_threads;
        attributes->numRegs = function.module->get().registers(function.name);
        attributes->ptxVersion = attributes->binaryVersion =
            device.compute_major * 10 + device.compute_minor;
        attributes->maxDynamicSharedSizeBytes =
            static_cast<int>(function.maxDynamicSmemBytes);
        attributes->preferredShmemCarveout = function.preferredCarveout;
        attributes->nonPortableClusterSizeAllowed =
            function.isNonPortableClusterAllowed;
        attributes->clusterSchedulingPolicyPreference =
            function.clusterScheduling;
        return cudaSuccess;
      });
}

/// Default, spread, load balancing.
static constexpr int kMostClusterScheduling = 2;

KILN_CUDA cudaError_t cudaFuncSetAttribute(const void *handle, int attribute,
                                           int value) {
  enum {
    dynamicSmem = 8,
    carveout = 9,
    clusterMustBeSet = 10,
    requiredClusterDepth = 13,
    nonPortableCluster = 14,
    clusterScheduling = 15,
  };
  return withFunction(
      "cudaFuncSetAttribute", handle, [&](Function &function) -> cudaError_t {
        if (attribute == dynamicSmem) {
          int most = Session::get().description().max_smem_per_cta_bytes -
                     static_cast<int>(function.entry().static_smem_bytes);
          if (value < 0 || value > most)
            return cudaErrorInvalidValue;
          function.maxDynamicSmemBytes = static_cast<std::uint32_t>(value);
        } else if (attribute == carveout) {
          function.preferredCarveout = value;
        } else if (attribute == nonPortableCluster) {
          function.isNonPortableClusterAllowed = value != 0;
        } else if (attribute == clusterScheduling) {
          if (value < 0 || value > kMostClusterScheduling)
            return cudaErrorInvalidValue;
          function.clusterScheduling = value; // all that is resident runs
        } else if (attribute >= clusterMustBeSet &&
                   attribute <= requiredClusterDepth) {
          Session::get().findings().sayOnce(
              "a required size of clusters is not supported at run time; give "
              "the kernel .reqnctapercluster (__cluster_dims__), or the launch "
              "a cluster");
          return cudaErrorNotSupported;
        } else {
          return cudaErrorInvalidValue;
        }
        return cudaSuccess;
      });
}

KILN_CUDA cudaError_t cudaFuncSetCacheConfig(const void *, int) {
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaFuncSetSharedMemConfig(const void *, int) {
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaFuncGetName(const char **name, const void *handle) {
  return withFunction("cudaFuncGetName", handle,
                      [&](Function &function) -> cudaError_t {
                        *name = function.name.c_str();
                        return cudaSuccess;
                      });
}

KILN_CUDA cudaError_t cudaFuncGetParamInfo(const void *handle,
                                           std::size_t index,
                                           std::size_t *offset,
                                           std::size_t *bytes) {
  return withFunction("cudaFuncGetParamInfo", handle,
                      [&](Function &function) -> cudaError_t {
                        const kiln::EntryInfo &entry = function.entry();
                        if (index >= entry.parameter_bytes.size())
                          return cudaErrorInvalidValue;
                        *offset = entry.parameter_offsets[index];
                        if (bytes)
                          *bytes = entry.parameter_bytes[index];
                        return cudaSuccess;
                      });
}

/// A block of so many threads, in one row.
static std::array<std::uint32_t, 3> rowOf(int threads) {
  return {static_cast<std::uint32_t>(threads), 1, 1};
}

KILN_CUDA cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int *blocks, const void *handle, int threads, std::size_t dynamicSmemBytes,
    unsigned) {
  return withFunction(
      "cudaOccupancyMaxActiveBlocksPerMultiprocessor", handle,
      [&](Function &function) -> cudaError_t {
        if (threads <= 0)
          return cudaErrorInvalidValue;
        *blocks = threads > function.entry().max_threads
                      ? 0
                      : Session::get().occupancy(
                            function, rowOf(threads),
                            static_cast<std::uint32_t>(dynamicSmemBytes));
        return cudaSuccess;
      });
}

KILN_CUDA cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    int *blocks, const void *handle, int threads,
    std::size_t dynamicSmemBytes) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, handle, threads, dynamicSmemBytes, 0);
}

KILN_CUDA cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(
    std::size_t *bytes, const void *handle, int blocks, int) {
  return withFunction("cudaOccupancyAvailableDynamicSMemPerBlock", handle,
                      [&](Function &function) -> cudaError_t {
                        const kiln::DeviceDescription &device =
                            Session::get().description();
                        if (blocks <= 0)
                          return cudaErrorInvalidValue;
                        int each = device.smem_per_sm_bytes / blocks -
                                   device.reserved_smem_per_cta_bytes;
                        each = std::min(each, device.max_smem_per_cta_bytes) -
                               static_cast<int>(
                                   function.entry().static_smem_bytes);
                        *bytes = static_cast<std::size_t>(std::max(each, 0));
                        return cudaSuccess;
                      });
}

/// CTAs of the cluster that a configuration asks for.
static int clusterOf(const cudaLaunchConfig_t &config) {
  for (unsigned i = 0; i < config.numAttrs; ++i)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
      const auto &size = config.attrs[i].value.clusterDim;
      return static_cast<int>(size.x * size.y * size.z);
    }
  return 1;
}

KILN_CUDA cudaError_t cudaOccupancyMaxActiveClusters(
    int *clusters, const void *handle, const cudaLaunchConfig_t *config) {
  return withFunction(
      "cudaOccupancyMaxActiveClusters", handle,
      [&](Function &function) -> cudaError_t {
        const kiln::DeviceDescription &device = Session::get().description();
        int perSm = Session::get().occupancy(
            function,
            {config->blockDim.x, config->blockDim.y, config->blockDim.z},
            static_cast<std::uint32_t>(config->dynamicSmemBytes));
        *clusters = perSm == 0
                        ? 0
                        : device.resident_clusters(clusterOf(*config)) * perSm;
        return cudaSuccess;
      });
}

KILN_CUDA cudaError_t cudaOccupancyMaxPotentialClusterSize(
    int *ctas, const void *handle, const cudaLaunchConfig_t *) {
  return withFunction("cudaOccupancyMaxPotentialClusterSize", handle,
                      [&](Function &function) -> cudaError_t {
                        const kiln::DeviceDescription &device =
                            Session::get().description();
                        *ctas = function.isNonPortableClusterAllowed
                                    ? device.max_nonportable_cluster_ctas
                                    : device.max_cluster_ctas;
                        return cudaSuccess;
                      });
}
