// Streams: streams and events.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"

#include <atomic>
#include <memory>

namespace kiln::cudart {

const Stream &streamOf(cudaStream_t stream) {
  static const Stream first;
  // 0, cudaStreamLegacy and cudaStreamPerThread.
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2)
    return first;
  Handles::get().check(stream, Handles::Kind::stream);
  return stream->stream;
}

} // namespace kiln::cudart

using namespace kiln::cudart;

static constexpr unsigned kNonBlocking = 1;

KILN_CUDA cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                   unsigned flags,
                                                   int priority) {
  return call("cudaStreamCreate", [&]() -> cudaError_t {
    static std::atomic<unsigned long long> count{0};
    if (!stream)
      return cudaErrorInvalidValue;
    *stream = new CudaStream{
        Session::get().device().create_stream(!(flags & kNonBlocking)), flags,
        priority, ++count};
    Handles::get().add(*stream, Handles::Kind::stream);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream,
                                                unsigned flags) {
  return cudaStreamCreateWithPriority(stream, flags, 0);
}

KILN_CUDA cudaError_t cudaStreamCreate(cudaStream_t *stream) {
  return cudaStreamCreateWithPriority(stream, 0, 0);
}

/// Whether a handle is a stream that somebody made.
static bool isMade(cudaStream_t stream) {
  return Handles::get().has(stream, Handles::Kind::stream);
}

static bool isMade(cudaEvent_t event) {
  return Handles::get().has(event, Handles::Kind::event);
}

KILN_CUDA cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&]() -> cudaError_t {
    if (!Handles::get().remove(stream, Handles::Kind::stream))
      return cudaErrorInvalidResourceHandle;
    delete stream;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaStreamSynchronize, _ptsz)

KILN_CUDA cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&]() -> cudaError_t {
    if (!Session::get().device().is_done(streamOf(stream)))
      return cudaErrorNotReady;
    // The program knows now: a dependent launch behind it overlaps nothing.
    Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaStreamQuery, _ptsz)

KILN_CUDA cudaError_t cudaStreamWaitEvent(cudaStream_t stream,
                                          cudaEvent_t event, unsigned) {
  return call("cudaStreamWaitEvent", [&] {
    Handles::get().check(event, Handles::Kind::event);
    Session::get().device().wait(event->event, streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaStreamWaitEvent, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  if (!isMade(stream) && reinterpret_cast<std::uintptr_t>(stream) > 2)
    return noteError(cudaErrorInvalidResourceHandle);
  *flags = isMade(stream) ? stream->flags : 0;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaStreamGetFlags, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetPriority(cudaStream_t stream,
                                            int *priority) {
  if (!isMade(stream) && reinterpret_cast<std::uintptr_t>(stream) > 2)
    return noteError(cudaErrorInvalidResourceHandle);
  *priority = isMade(stream) ? stream->priority : 0;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaStreamGetPriority, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetId(cudaStream_t stream,
                                      unsigned long long *id) {
  if (!isMade(stream) && reinterpret_cast<std::uintptr_t>(stream) > 2)
    return noteError(cudaErrorInvalidResourceHandle);
  *id = isMade(stream) ? stream->id : 0;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaStreamGetId, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetDevice(cudaStream_t, int *device) {
  *device = 0;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaStreamGetDevice, _ptsz)

/// Nothing is ever captured: graphs are not supported.
KILN_CUDA cudaError_t cudaStreamIsCapturing(cudaStream_t, int *status) {
  *status = 0;
  return cudaSuccess;
}
KILN_CUDA_ALSO(cudaStreamIsCapturing, _ptsz)

KILN_CUDA cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event,
                                               unsigned flags) {
  return call("cudaEventCreate", [&]() -> cudaError_t {
    if (!event)
      return cudaErrorInvalidValue;
    *event = new CudaEvent{Session::get().device().create_event(), flags};
    Handles::get().add(*event, Handles::Kind::event);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaEventCreate(cudaEvent_t *event) {
  return cudaEventCreateWithFlags(event, 0);
}

KILN_CUDA cudaError_t cudaEventDestroy(cudaEvent_t event) {
  if (!Handles::get().remove(event, Handles::Kind::event))
    return noteError(cudaErrorInvalidResourceHandle);
  delete event;
  return cudaSuccess;
}

KILN_CUDA cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return call("cudaEventRecord", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    Session::get().device().record(event->event, streamOf(stream));
    event->isRecorded = true;
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaEventRecord, _ptsz)

KILN_CUDA cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                               cudaStream_t stream, unsigned) {
  return cudaEventRecord(event, stream);
}
KILN_CUDA_ALSO(cudaEventRecordWithFlags, _ptsz)

KILN_CUDA cudaError_t cudaEventQuery(cudaEvent_t event) {
  return call("cudaEventQuery", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    return Session::get().device().is_done(event->event) ? cudaSuccess
                                                         : cudaErrorNotReady;
  });
}

KILN_CUDA cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return call("cudaEventSynchronize", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    Session::get().device().elapsed_us(event->event, event->event);
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaEventElapsedTime(float *milliseconds,
                                           cudaEvent_t from, cudaEvent_t to) {
  return call("cudaEventElapsedTime", [&]() -> cudaError_t {
    constexpr unsigned kDisableTiming = 2;
    if (!milliseconds)
      return cudaErrorInvalidValue;
    if (!isMade(from) || !isMade(to) || !from->isRecorded || !to->isRecorded ||
        (from->flags | to->flags) & kDisableTiming)
      return cudaErrorInvalidResourceHandle;
    kiln::Device &device = Session::get().device();
    if (!device.is_done(from->event) || !device.is_done(to->event))
      return cudaErrorNotReady;
    *milliseconds =
        static_cast<float>(device.elapsed_us(from->event, to->event) / 1e3);
    return cudaSuccess;
  });
}
KILN_CUDA_ALSO(cudaEventElapsedTime, _v2)
