// Streams: streams and events; a null stream is the default one.
#include "mgpu/Call.h"

using namespace kiln;
using namespace kiln::mgpu;

KILN_MGPU MgpuStream *mgpuStreamCreate() {
  return attempt<MgpuStream *>("mgpuStreamCreate", nullptr, [] {
    return new MgpuStream{session().device().create_stream(false)};
  });
}

KILN_MGPU void mgpuStreamDestroy(MgpuStream *stream) {
  // What was put into it is still done: the device holds it.
  delete stream;
}

KILN_MGPU void mgpuStreamSynchronize(MgpuStream *stream) {
  attempt("mgpuStreamSynchronize",
          [&] { session().device().synchronize(streamOf(stream)); });
}

KILN_MGPU void mgpuStreamWaitEvent(MgpuStream *stream, MgpuEvent *event) {
  attempt("mgpuStreamWaitEvent", [&] {
    if (event)
      session().device().wait(event->event, streamOf(stream));
  });
}

KILN_MGPU MgpuEvent *mgpuEventCreate() {
  return attempt<MgpuEvent *>("mgpuEventCreate", nullptr, [] {
    return new MgpuEvent{session().device().create_event()};
  });
}

KILN_MGPU void mgpuEventDestroy(MgpuEvent *event) { delete event; }

KILN_MGPU void mgpuEventSynchronize(MgpuEvent *event) {
  attempt("mgpuEventSynchronize", [&] {
    if (event)
      session().device().elapsed_us(event->event, event->event);
  });
}

KILN_MGPU void mgpuEventRecord(MgpuEvent *event, MgpuStream *stream) {
  attempt("mgpuEventRecord", [&] {
    if (event)
      session().device().record(event->event, streamOf(stream));
  });
}
