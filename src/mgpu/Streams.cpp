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
/// What programs were given and have not given back.
struct Handles {
  std::mutex mutex;
  std::unordered_set<const void *> streams, events;

  /// For as long as the process lasts: programs let go of theirs last of all.
  static Handles &get() {
    static auto *handles = new Handles;
    return *handles;
  }
  bool isStream(const void *handle) {
    std::lock_guard lock(mutex);
    return streams.contains(handle);
  }
  /// Refuse what is neither.
  void check(const void *handle) {
    std::lock_guard lock(mutex);
    if (!events.contains(handle) && !streams.contains(handle))
      userError("{} is not an event of this program; mgpuEventCreate makes one",
                handle);
  }
};
} // namespace

/// Of an event, or of a stream in its place: what it holds by now.
static Event eventOf(MgpuEvent *event) {
  Handles &handles = Handles::get();
  handles.check(event);
  if (!handles.isStream(event))
    return event->event;
  Device &device = session().device();
  Event fresh = device.create_event();
  device.record(fresh, reinterpret_cast<MgpuStream *>(event)->stream);
  return fresh;
}

KILN_MGPU MgpuStream *mgpuStreamCreate() {
  return attempt<MgpuStream *>("mgpuStreamCreate", nullptr, [] {
    auto *stream = new MgpuStream{session().device().create_stream(false)};
    Handles &handles = Handles::get();
    std::lock_guard lock(handles.mutex);
    handles.streams.insert(stream);
    return stream;
  });
}

KILN_MGPU void mgpuStreamDestroy(MgpuStream *stream) {
  Handles &handles = Handles::get();
  std::lock_guard lock(handles.mutex);
  // What was put into it is still done: the device holds it.
  if (handles.streams.erase(stream))
    delete stream;
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
    auto *event = new MgpuEvent{session().device().create_event()};
    Handles &handles = Handles::get();
    std::lock_guard lock(handles.mutex);
    handles.events.insert(event);
    return event;
  });
}

KILN_MGPU void mgpuEventDestroy(MgpuEvent *event) {
  Handles &handles = Handles::get();
  std::lock_guard lock(handles.mutex);
  if (handles.events.erase(event))
    delete event;
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
    Handles::get().check(event);
    if (!Handles::get().isStream(event))
      session().device().record(event->event, streamOf(stream));
  });
}
