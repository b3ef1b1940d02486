// Streams: streams and events; a null stream is the default one.
//
// Where async.execute yields a token, MLIR 22 hands over the stream itself, as
// the event that others wait for and destroy, once each. A stream in the place
// of an event stands for what has been put into it, and is kept.
#include "mgpu/Call.h"

#include <mutex>
#include <unordered_set>

using namespace kiln;
using namespace kiln::mgpu;

namespace {
/// Of one kind, what programs were given and have not given back.
template <typename T> class Handles {
public:
  /// For as long as the process lasts: programs let go of theirs last of all.
  static Handles &get() {
    static auto *handles = new Handles;
    return *handles;
  }
  T *keep(T made) {
    std::lock_guard lock(mutex_);
    return *live_.insert(new T(std::move(made))).first;
  }
  void destroy(T *handle) {
    std::lock_guard lock(mutex_);
    if (live_.erase(handle))
      delete handle;
  }
  /// The handle where it is one of these; null: it is not.
  T *find(void *handle) {
    std::lock_guard lock(mutex_);
    auto *asked = static_cast<T *>(handle);
    return live_.contains(asked) ? asked : nullptr;
  }

private:
  std::mutex mutex_;
  std::unordered_set<T *> live_;
};
using Streams = Handles<MgpuStream>;
using Events = Handles<MgpuEvent>;
} // namespace

/// Of an event, or of a stream in its place: what it holds by now.
static Event eventOf(MgpuEvent *event) {
  if (Events::get().find(event))
    return event->event;
  MgpuStream *stream = Streams::get().find(event);
  if (!stream)
    userError("{} is not an event of this program; mgpuEventCreate makes one",
              static_cast<void *>(event));
  Device &device = session().device();
  Event fresh = device.create_event();
  device.record(fresh, stream->stream);
  return fresh;
}

KILN_MGPU MgpuStream *mgpuStreamCreate() {
  return attempt<MgpuStream *>("mgpuStreamCreate", nullptr, [] {
    return Streams::get().keep({session().device().create_stream(false)});
  });
}

KILN_MGPU void mgpuStreamDestroy(MgpuStream *stream) {
  // What was put into it is still done: the device holds it.
  Streams::get().destroy(stream);
}

KILN_MGPU void mgpuStreamSynchronize(MgpuStream *stream) {
  attempt("mgpuStreamSynchronize",
          [&] { session().device().synchronize(streamOf(stream)); });
}

KILN_MGPU void mgpuStreamWaitEvent(MgpuStream *stream, MgpuEvent *event) {
  attempt("mgpuStreamWaitEvent", [&] {
    if (event)
      session().device().wait(eventOf(event), streamOf(stream));
  });
}

KILN_MGPU MgpuEvent *mgpuEventCreate() {
  return attempt<MgpuEvent *>("mgpuEventCreate", nullptr, [] {
    return Events::get().keep({session().device().create_event()});
  });
}

KILN_MGPU void mgpuEventDestroy(MgpuEvent *event) {
  Events::get().destroy(event);
}

KILN_MGPU void mgpuEventSynchronize(MgpuEvent *event) {
  attempt("mgpuEventSynchronize", [&] {
    if (!event)
      return;
    Event point = eventOf(event);
    session().device().elapsed_us(point, point);
  });
}

KILN_MGPU void mgpuEventRecord(MgpuEvent *event, MgpuStream *stream) {
  attempt("mgpuEventRecord", [&] {
    if (!event)
      return;
    Event point = eventOf(event);
    if (Events::get().find(event))
      session().device().record(point, streamOf(stream));
  });
}
