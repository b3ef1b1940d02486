// Streams: streams and events.
#include "cudart/CudaError.h"
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"

#include <algorithm>
#include <atomic>
#include <memory>

using namespace kiln::cudart;

static constexpr unsigned kNonBlocking = 1;
/// The range of an H200; nothing that is computed depends on it.
static constexpr int kGreatestPriority = -5;
/// Of records and waits in a capture: a node of its own.
static constexpr unsigned kExternal = 1;

KILN_CUDA cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                   unsigned flags,
                                                   int priority) {
  return call("cudaStreamCreate", [&]() -> cudaError_t {
    static std::atomic<unsigned long long> count{0};
    if (!stream)
      return cudaErrorInvalidValue;
    *stream = new CudaStream{
        Session::get().device().create_stream(!(flags & kNonBlocking)), flags,
        std::clamp(priority, kGreatestPriority, 0), ++count};
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

/// Whether a handle is an event that somebody made.
static bool isMade(cudaEvent_t event) {
  return Handles::get().has(event, Handles::Kind::event);
}

KILN_CUDA cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return call("cudaStreamDestroy", [&]() -> cudaError_t {
    if (!Handles::get().remove(stream, Handles::Kind::stream))
      return cudaErrorInvalidResourceHandle;
    StreamCapture::forget(stream);
    delete stream;
    return cudaSuccess;
  });
}

KILN_CUDA cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return call("cudaStreamSynchronize", [&] {
    StreamCapture::checkMayWait(streamHandleOf(stream));
    Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamSynchronize, _ptsz)

KILN_CUDA cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return call("cudaStreamQuery", [&]() -> cudaError_t {
    StreamCapture::checkMayWait(streamHandleOf(stream));
    if (!Session::get().device().is_done(streamOf(stream)))
      return cudaErrorNotReady;
    // The program knows now: a dependent launch behind it overlaps nothing.
    Session::get().device().synchronize(streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamQuery, _ptsz)

KILN_CUDA cudaError_t cudaStreamWaitEvent(cudaStream_t stream,
                                          cudaEvent_t event,
                                          unsigned flags) {
  return call("cudaStreamWaitEvent", [&] {
    Handles::get().check(event, Handles::Kind::event);
    StreamCapture::wait(streamHandleOf(stream), event, flags & kExternal);
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamWaitEvent, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags) {
  return call("cudaStreamGet", [&] {
    CudaStream *handle = streamHandleOf(stream);
    *flags = handle ? handle->flags : 0;
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamGetFlags, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetPriority(cudaStream_t stream,
                                            int *priority) {
  return call("cudaStreamGet", [&] {
    CudaStream *handle = streamHandleOf(stream);
    *priority = handle ? handle->priority : 0;
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamGetPriority, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetId(cudaStream_t stream,
                                      unsigned long long *id) {
  return call("cudaStreamGet", [&] {
    CudaStream *handle = streamHandleOf(stream);
    *id = handle ? handle->id : 0;
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaStreamGetId, _ptsz)

KILN_CUDA cudaError_t cudaStreamGetDevice(cudaStream_t, int *device) {
  *device = 0;
  return cudaSuccess;
}
KILN_CUDA_PER_THREAD(cudaStreamGetDevice, _ptsz)

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

KILN_CUDA cudaError_t cudaEventRecordWithFlags(cudaEvent_t event,
                                               cudaStream_t stream,
                                               unsigned flags) {
  return call("cudaEventRecord", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    CudaStream *handle = streamHandleOf(stream);
    if (StreamCapture *capture = StreamCapture::of(handle))
      capture->record(handle, event, flags & kExternal);
    else
      perform(EventRecordWork{event}, streamOf(stream));
    return cudaSuccess;
  });
}
KILN_CUDA_PER_THREAD(cudaEventRecordWithFlags, _ptsz)

KILN_CUDA cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return cudaEventRecordWithFlags(event, stream, 0);
}
KILN_CUDA_PER_THREAD(cudaEventRecord, _ptsz)

/// The host cannot wait for what is captured.
static void checkNotCaptured(cudaEvent_t event, const char *name) {
  if (event->point.capture)
    throw CudaError(kCapturedEvent,
                    std::string(name) +
                        ": the event was last recorded in a stream that is "
                        "being captured");
}

KILN_CUDA cudaError_t cudaEventQuery(cudaEvent_t event) {
  return callOutsideCapture("cudaEventQuery", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    checkNotCaptured(event, "cudaEventQuery");
    return Session::get().device().is_done(event->event) ? cudaSuccess
                                                         : cudaErrorNotReady;
  });
}

KILN_CUDA cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return callOutsideCapture("cudaEventSynchronize", [&]() -> cudaError_t {
    if (!isMade(event))
      return cudaErrorInvalidResourceHandle;
    checkNotCaptured(event, "cudaEventSynchronize");
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
