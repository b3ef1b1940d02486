// GpuClock: NVML, found when the program runs.
#include "kiln/measure/gpu_clock.h"

#include <dlfcn.h>

namespace kiln {

struct GpuClock::Library {
  void *handle = nullptr;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*find)(unsigned index, void **device) = nullptr;
  int (*clock)(void *device, int kind, unsigned *mhz) = nullptr;

  Library() : handle(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL)) {
    load("nvmlInit_v2", init);
    load("nvmlShutdown", shutdown);
    load("nvmlDeviceGetHandleByIndex_v2", find);
    load("nvmlDeviceGetClockInfo", clock);
  }
  ~Library() {
    if (handle)
      dlclose(handle);
  }
  bool isComplete() const { return init && shutdown && find && clock; }

private:
  template <typename Function> void load(const char *name, Function &function) {
    if (handle)
      function = reinterpret_cast<Function>(dlsym(handle, name));
  }
};

GpuClock::GpuClock(int device) : library_(std::make_unique<Library>()) {
  if (!library_->isComplete() || library_->init() != 0)
    library_.reset();
  else if (library_->find(static_cast<unsigned>(device), &device_) != 0)
    device_ = nullptr;
}

GpuClock::~GpuClock() {
  if (library_)
    library_->shutdown();
}

std::optional<unsigned> GpuClock::mhz() const {
  constexpr int kMultiprocessors = 1; // NVML_CLOCK_SM
  unsigned mhz = 0;
  if (!device_ || library_->clock(device_, kMultiprocessors, &mhz) != 0)
    return std::nullopt;
  return mhz;
}

} // namespace kiln
