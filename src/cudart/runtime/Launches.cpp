// Launches: of kernels, in every form, and of host functions.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"
#include "kiln/check/simulation.h"
#include "support/LaunchShape.h"

using namespace kiln::cudart;

/// What CUDA says against a launch before it is tried.
static cudaError_t refusalOf(const Launch &launch) {
  const kiln::DeviceDescription &device = Session::get().description();
  Function &function = *launch.function;
  const kiln::EntryInfo &entry = function.entry();
  for (int axis = 0; axis < 3; ++axis)
    if (launch.grid[axis] == 0 || launch.block[axis] == 0 ||
        launch.grid[axis] > static_cast<std::uint32_t>(device.max_grid[axis]) ||
        launch.block[axis] > static_cast<std::uint32_t>(device.max_block[axis]))
      return cudaErrorInvalidConfiguration;
  if (kiln::volume(launch.block) >
      static_cast<std::uint64_t>(entry.max_threads))
    return cudaErrorInvalidConfiguration;
  std::uint64_t ctas = kiln::volume(launch.cluster);
  if (ctas >
      static_cast<std::uint64_t>(function.isNonPortableClusterAllowed
                                     ? device.max_nonportable_cluster_ctas
                                     : device.max_cluster_ctas))
    return cudaErrorInvalidClusterSize;
  for (int axis = 0; axis < 3; ++axis)
    if (launch.cluster[axis] == 0 ||
        launch.grid[axis] % launch.cluster[axis] != 0)
      return cudaErrorInvalidClusterSize;
  if (launch.dynamicSmemBytes > function.maxDynamicSmemBytes)
    return cudaErrorInvalidValue;
  if (!launch.isCooperative)
    return cudaSuccess;
  auto most = static_cast<std::uint64_t>(device.sms) *
              static_cast<std::uint64_t>(Session::get().occupancy(
                  function, launch.block, launch.dynamicSmemBytes));
  return kiln::volume(launch.grid) > most
             ? static_cast<int>(cudaErrorCooperativeLaunchTooLarge)
             : static_cast<int>(cudaSuccess);
}

static std::array<std::uint32_t, 3> shapeOf(const dim3 &size) {
  return {size.x, size.y, size.z};
}

static cudaError_t launchKernel(const char *name, const void *handle,
                                Launch launch, cudaStream_t stream) {
  return call(name, [&]() -> cudaError_t {
    launch.stream = streamOf(stream);
    launch.function = Session::get().findFunction(handle);
    if (!launch.function)
      return cudaErrorInvalidDeviceFunction;
    if (!launch.parameters && !launch.packed &&
        !launch.function->entry().parameter_bytes.empty())
      return cudaErrorInvalidValue;
    if (cudaError_t error = refusalOf(launch))
      return error;
    Session::get().launch(launch);
    return cudaSuccess;
  });
}

static Launch launchOf(const dim3 &grid, const dim3 &block, void **parameters,
                       std::size_t dynamicSmemBytes) {
  Launch launch;
  launch.grid = shapeOf(grid);
  launch.block = shapeOf(block);
  launch.dynamicSmemBytes = static_cast<std::uint32_t>(dynamicSmemBytes);
  launch.parameters = parameters;
  return launch;
}

KILN_CUDA cudaError_t cudaLaunchKernel(const void *function, dim3 grid,
                                       dim3 block, void **parameters,
                                       std::size_t dynamicSmemBytes,
                                       cudaStream_t stream) {
  return launchKernel(
      "cudaLaunchKernel", function,
      launchOf(grid, block, parameters, dynamicSmemBytes), stream);
}
KILN_CUDA_ALSO(cudaLaunchKernel, _ptsz)

KILN_CUDA cudaError_t __cudaGetKernel(const void **kernel,
                                      const void *function) {
  // The address of the stub is as good a handle as any.
  *kernel = function;
  return cudaSuccess;
}
KILN_CUDA cudaError_t cudaGetKernel(const void **kernel, const void *function) {
  return __cudaGetKernel(kernel, function);
}
KILN_CUDA cudaError_t cudaGetFuncBySymbol(const void **kernel,
                                          const void *function) {
  return __cudaGetKernel(kernel, function);
}

KILN_CUDA cudaError_t __cudaLaunchKernel(const void *kernel, dim3 grid,
                                         dim3 block, void **parameters,
                                         std::size_t dynamicSmemBytes,
                                         cudaStream_t stream) {
  return launchKernel(
      "the launch of a kernel", kernel,
      launchOf(grid, block, parameters, dynamicSmemBytes), stream);
}
KILN_CUDA_ALSO(__cudaLaunchKernel, _ptsz)

KILN_CUDA cudaError_t cudaLaunchCooperativeKernel(const void *function,
                                                  dim3 grid, dim3 block,
                                                  void **parameters,
                                                  std::size_t dynamicSmemBytes,
                                                  cudaStream_t stream) {
  Launch launch = launchOf(grid, block, parameters, dynamicSmemBytes);
  launch.isCooperative = true;
  return launchKernel("cudaLaunchCooperativeKernel", function, launch, stream);
}
KILN_CUDA_ALSO(cudaLaunchCooperativeKernel, _ptsz)

/// The launch before it in the stream tells of its trigger by the event.
static cudaError_t recordTrigger(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaLaunchKernelExC", [&]() -> cudaError_t {
    if (!Handles::get().has(event, Handles::Kind::event))
      return cudaErrorInvalidResourceHandle;
    kiln::Device &device = Session::get().device();
    if (kiln::Simulation *simulation = device.simulation())
      simulation->record_trigger(event->event, streamOf(stream));
    else
      device.record(event->event, streamOf(stream));
    event->isRecorded = true;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                          const void *function,
                                          void **parameters) {
  if (!config)
    return noteError(cudaErrorInvalidValue);
  Launch launch = launchOf(config->gridDim, config->blockDim, parameters,
                           config->dynamicSmemBytes);
  cudaEvent_t triggered = nullptr;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute &attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative)
      launch.isCooperative = attribute.value.cooperative != 0;
    else if (attribute.id == cudaLaunchAttributeClusterDimension)
      launch.cluster = {attribute.value.clusterDim.x,
                        attribute.value.clusterDim.y,
                        attribute.value.clusterDim.z};
    else if (attribute.id == cudaLaunchAttributeProgrammaticStreamSerialization)
      launch.isDependent =
          attribute.value.programmaticStreamSerializationAllowed != 0;
    else if (attribute.id == cudaLaunchAttributeProgrammaticEvent)
      triggered = attribute.value.programmaticEvent.event;
  }
  cudaError_t error =
      launchKernel("cudaLaunchKernelExC", function, launch, config->stream);
  if (error != cudaSuccess || !triggered)
    return error;
  return recordTrigger(triggered, config->stream);
}
KILN_CUDA_ALSO(cudaLaunchKernelExC, _ptsz)

/// Put a function of the host into a stream.
template <typename Body>
static cudaError_t callInStream(const char *name, cudaStream_t stream,
                                const Body &body) {
  return call(name, [&] {
    Session::get().device().call(
        [body] {
          isInHostFunction() = true;
          body();
          isInHostFunction() = false;
        },
        streamOf(stream));
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaLaunchHostFunc(cudaStream_t stream,
                                         void (*function)(void *), void *data) {
  return callInStream("cudaLaunchHostFunc", stream, [=] { function(data); });
}
KILN_CUDA_ALSO(cudaLaunchHostFunc, _ptsz)

KILN_CUDA cudaError_t cudaStreamAddCallback(
    cudaStream_t stream, void (*function)(cudaStream_t, cudaError_t, void *),
    void *data, unsigned) {
  return callInStream("cudaStreamAddCallback", stream,
                      [=] { function(stream, cudaSuccess, data); });
}
KILN_CUDA_ALSO(cudaStreamAddCallback, _ptsz)
