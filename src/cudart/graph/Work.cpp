// Work: how each kind reaches the device.
#include "cudart/graph/Work.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"
#include "cudart/StreamHandles.h"

#include <fmt/format.h>

namespace kiln::cudart {

KernelWork::KernelWork(const Launch &from) : launch(from) {
  const EntryInfo &entry = launch.function->entry();
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    const auto *at = static_cast<const std::byte *>(launch.parameters[i]);
    values.emplace_back(at, at + entry.parameter_bytes[i]);
  }
  point();
  launch.parameters = nullptr;
  launch.stream = {};
}

KernelWork::KernelWork(const KernelWork &other)
    : launch(other.launch), values(other.values), handle(other.handle),
      attributes(other.attributes) {
  point();
}

KernelWork &KernelWork::operator=(KernelWork other) {
  // A vector that is moved or swapped keeps its bytes where they are.
  std::swap(launch, other.launch);
  values.swap(other.values);
  pointers.swap(other.pointers);
  std::swap(handle, other.handle);
  attributes.swap(other.attributes);
  return *this;
}

void KernelWork::point() {
  pointers.clear();
  for (std::vector<std::byte> &value : values)
    pointers.push_back(value.data());
}

bool &isInHostFunction() {
  thread_local bool isIn = false;
  return isIn;
}

namespace {
class Performer {
public:
  explicit Performer(const Stream &stream)
      : stream_(stream), device_(Session::get().device()) {}

  void operator()(const KernelWork &work) const {
    std::vector<void *> pointers;
    for (const std::vector<std::byte> &value : work.values)
      pointers.push_back(const_cast<std::byte *>(value.data()));
    Launch launch = work.launch;
    launch.parameters = pointers.data();
    launch.stream = stream_;
    Session::get().launch(launch);
  }
  void operator()(const CopyWork &work) const {
    if (work.width == 0)
      return;
    for (std::size_t slice = 0; slice < work.depth; ++slice)
      for (std::size_t row = 0; row < work.height; ++row)
        device_.enqueue_copy(
            work.to + slice * work.toSlice + row * work.toPitch,
            work.from + slice * work.fromSlice + row * work.fromPitch,
            work.width, stream_);
  }
  void operator()(const FillWork &work) const {
    for (std::size_t row = 0; row < work.height && work.width; ++row)
      device_.enqueue_fill(work.to + row * work.pitch, work.value,
                           static_cast<int>(work.elementBytes), work.width,
                           stream_);
  }
  void operator()(const HostWork &work) const {
    device_.call(
        [work] {
          isInHostFunction() = true;
          work.function(work.data);
          isInHostFunction() = false;
        },
        stream_);
  }
  void operator()(const EmptyWork &) const {}
  void operator()(const EventRecordWork &work) const {
    Handles::get().check(work.handle, Handles::Kind::event);
    device_.record(work.handle->event, stream_);
    work.handle->isRecorded = true;
    work.handle->point = {};
  }
  void operator()(const EventWaitWork &work) const {
    Handles::get().check(work.handle, Handles::Kind::event);
    device_.wait(work.handle->event, stream_);
  }
  void operator()(const AllocWork &work) const {
    Session::get().reviveAsync(work.address, work.bytes, stream_);
  }
  void operator()(const FreeWork &work) const {
    if (!Session::get().freeAsync(work.address, stream_))
      throw CudaError(kInvalidValue,
                      fmt::format("nothing that can be freed begins at {:#x}",
                                  work.address));
  }
  void operator()(const ChildWork &) const {}       // GraphExec's
  void operator()(const ConditionalWork &) const {} // likewise

private:
  const Stream &stream_;
  Device &device_;
};
} // namespace

void perform(const Work &work, const Stream &stream) {
  std::visit(Performer(stream), work);
}

} // namespace kiln::cudart
