// gpu_clock.h: how fast the GPU's multiprocessors are clocked at the moment, as
// the driver's management library (NVML) tells.
//
//     GpuClock clock(0);
//     if (auto mhz = clock.mhz()) ...
#pragma once

#include <kiln/base/export.h>

#include <memory>
#include <optional>

namespace KILN_API kiln {

class GpuClock {
public:
  /// Of the GPU with that number, counted as CUDA counts where all are visible.
  explicit GpuClock(int device);
  ~GpuClock();
  GpuClock(const GpuClock &) = delete;

  /// Nothing where there is no such library, or it does not tell.
  std::optional<unsigned> mhz() const;

private:
  struct Library;
  std::unique_ptr<Library> library_;
  void *device_ = nullptr;
};

} // namespace kiln
