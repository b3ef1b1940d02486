// Launches: of kernels, in every form, and of host functions.
#include "cudart/CudaError.h"
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"
#include "kiln/check/simulation.h"
#include "support/LaunchShape.h"

#include <cstring>

using namespace kiln::cudart;

cudaError_t kiln::cudart::refusalOf(const Launch &launch) {
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

namespace {
/// What a launch has beside its shape.
struct LaunchAttributes {
  const cudaLaunchAttribute *list = nullptr;
  unsigned count = 0;
};
} // namespace

void kiln::cudart::readAttribute(
    Launch &launch, int id, const decltype(cudaLaunchAttribute::value) &value) {
  if (id == cudaLaunchAttributeCooperative)
    launch.isCooperative = value.cooperative != 0;
  else if (id == cudaLaunchAttributeClusterDimension)
    launch.cluster = {value.clusterDim.x, value.clusterDim.y,
                      value.clusterDim.z};
  else if (id == cudaLaunchAttributeProgrammaticStreamSerialization)
    launch.isDependent = value.programmaticStreamSerializationAllowed != 0;
}

/// What cannot be launched with; hints are taken whatever they say.
static cudaError_t refusalOf(const LaunchAttributes &attributes) {
  for (unsigned i = 0; i < attributes.count; ++i) {
    const cudaLaunchAttribute &one = attributes.list[i];
    if (one.id < 0 || one.id > cudaLaunchAttributeLast)
      return cudaErrorInvalidValue;
    if (one.id == cudaLaunchAttributeDeviceUpdatableKernelNode)
      return kilnCudaNotSupported("cudaLaunchAttributeDeviceUpdatableKernelNode");
    if (one.id == cudaLaunchAttributeProgrammaticEvent ||
        one.id == cudaLaunchAttributeLaunchCompletionEvent)
      Handles::get().check(one.value.event.event, Handles::Kind::event);
  }
  return cudaSuccess;
}

/// Events that a launch records while it runs: when its CTAs have triggered, or
/// have begun, for which its end stands. In a graph what waits for one is a
/// dependent launch.
static void recordEvents(const LaunchAttributes &attributes, CudaStream *handle,
                         const kiln::Stream &stream, StreamCapture *capture) {
  for (unsigned i = 0; i < attributes.count; ++i) {
    const cudaLaunchAttribute &one = attributes.list[i];
    bool isProgrammatic = one.id == cudaLaunchAttributeProgrammaticEvent;
    if (!isProgrammatic && one.id != cudaLaunchAttributeLaunchCompletionEvent)
      continue;
    if (capture)
      capture->recordAt(handle, one.value.event.event,
                        isProgrammatic ? GraphEdge::programmatic
                                       : GraphEdge::atBegin);
    else if (kiln::Simulation *simulation =
                 Session::get().device().simulation();
             simulation && isProgrammatic) {
      simulation->record_trigger(one.value.event.event->event, stream);
      one.value.event.event->isRecorded = true;
    } else {
      perform(EventRecordWork{one.value.event.event}, stream);
    }
  }
}

static KernelWork nodeOf(const Launch &launch, const void *handle,
                         const LaunchAttributes &attributes) {
  KernelWork work(launch);
  work.handle = handle;
  for (unsigned i = 0; i < attributes.count; ++i)
    std::memcpy(work.attributes[attributes.list[i].id].data(),
                &attributes.list[i].value, sizeof(attributes.list[i].value));
  return work;
}

static cudaError_t launchKernel(const char *name, const void *handle,
                                Launch launch, cudaStream_t stream,
                                const LaunchAttributes &attributes = {}) {
  return begin(name, [&]() -> cudaError_t {
    CudaStream *streamHandle = streamHandleOf(stream);
    StreamCapture *capture = StreamCapture::of(streamHandle);
    launch.stream = streamHandle ? streamHandle->stream : kiln::Stream();
    launch.function = Session::get().findFunction(handle);
    if (!launch.function)
      return cudaErrorInvalidDeviceFunction;
    if (!launch.parameters && !launch.packed &&
        !launch.function->entry().parameter_bytes.empty())
      return cudaErrorInvalidValue;
    if (cudaError_t error = refusalOf(attributes))
      return error;
    if (cudaError_t error = refusalOf(launch))
      return error;
    if (capture)
      capture->add(streamHandle, nodeOf(launch, handle, attributes));
    else
      Session::get().launch(launch);
    recordEvents(attributes, streamHandle, launch.stream, capture);
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
KILN_CUDA_PER_THREAD(cudaLaunchKernel, _ptsz)

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
KILN_CUDA_PER_THREAD(__cudaLaunchKernel, _ptsz)

KILN_CUDA cudaError_t cudaLaunchCooperativeKernel(const void *function,
                                                  dim3 grid, dim3 block,
                                                  void **parameters,
                                                  std::size_t dynamicSmemBytes,
                                                  cudaStream_t stream) {
  Launch launch = launchOf(grid, block, parameters, dynamicSmemBytes);
  launch.isCooperative = true;
  return launchKernel("cudaLaunchCooperativeKernel", function, launch, stream);
}
KILN_CUDA_PER_THREAD(cudaLaunchCooperativeKernel, _ptsz)

KILN_CUDA cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t *config,
                                          const void *function,
                                          void **parameters) {
  if (!config)
    return noteError(cudaErrorInvalidValue);
  Launch launch = launchOf(config->gridDim, config->blockDim, parameters,
                           config->dynamicSmemBytes);
  LaunchAttributes attributes{config->attrs, config->numAttrs};
  if (attributes.count && !attributes.list)
    return noteError(cudaErrorInvalidValue);
  for (unsigned i = 0; i < attributes.count; ++i)
    readAttribute(launch, attributes.list[i].id, attributes.list[i].value);
  return launchKernel("cudaLaunchKernelExC", function, launch, config->stream,
                      attributes);
}
KILN_CUDA_PER_THREAD(cudaLaunchKernelExC, _ptsz)

KILN_CUDA cudaError_t cudaLaunchHostFunc(cudaStream_t stream,
                                         void (*function)(void *), void *data) {
  return call("cudaLaunchHostFunc", [&]() -> cudaError_t {
    if (!function)
      return cudaErrorInvalidValue;
    submit(stream, HostWork{function, data});
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaLaunchHostFunc, _ptsz)

KILN_CUDA cudaError_t cudaStreamAddCallback(
    cudaStream_t stream, void (*function)(cudaStream_t, cudaError_t, void *),
    void *data, unsigned) {
  return callOutsideCapture("cudaStreamAddCallback", [&]() -> cudaError_t {
    if (!function)
      return cudaErrorInvalidValue;
    CudaStream *handle = streamHandleOf(stream);
    StreamCapture::checkMayWait(handle);
    Session::get().device().call(
        [=] {
          isInHostFunction() = true;
          function(stream, cudaSuccess, data);
          isInHostFunction() = false;
        },
        streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamAddCallback, _ptsz)
