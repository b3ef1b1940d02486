// StreamHandles: which stream a handle means, and what is done with work for it.
#include "cudart/StreamHandles.h"
#include "cudart/Handles.h"
#include "cudart/graph/StreamCapture.h"

namespace kiln::cudart {

bool &usesThreadStream() {
  thread_local bool uses = false;
  return uses;
}

/// The default stream of this thread, made when it is first used. It goes with
/// the thread; the main thread may use it after that, from destructors.
static CudaStream *threadStream() {
  struct Owner {
    CudaStream *stream = nullptr;
    ~Owner() {
      if (!stream)
        return;
      StreamCapture::forget(stream);
      delete std::exchange(stream, nullptr);
    }
  };
  thread_local Owner owner;
  if (!owner.stream)
    owner.stream = new CudaStream{Session::get().device().create_stream(true)};
  return owner.stream;
}

CudaStream *streamHandleOf(CudaStream *stream) {
  static constexpr std::uintptr_t kLegacy = 1, kPerThread = 2;
  auto value = reinterpret_cast<std::uintptr_t>(stream);
  if (value == kPerThread || (value == 0 && usesThreadStream()))
    return threadStream();
  if (value <= kLegacy)
    return nullptr;
  Handles::get().check(stream, Handles::Kind::stream);
  return stream;
}

Stream streamOf(CudaStream *stream) {
  CudaStream *handle = streamHandleOf(stream);
  return handle ? handle->stream : Stream();
}

void submit(CudaStream *stream, Work work) {
  CudaStream *handle = streamHandleOf(stream);
  if (StreamCapture *capture = StreamCapture::of(handle))
    capture->add(handle, std::move(work));
  else
    perform(work, handle ? handle->stream : Stream());
}

} // namespace kiln::cudart
