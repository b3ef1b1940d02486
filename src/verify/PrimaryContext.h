// PrimaryContext: the context of a GPU that CUDA's libraries work in.
//
// A library finds the GPU by the context that is current in the calling thread,
// and shares memory and streams with whoever uses the same one: the device's
// primary context, as Kiln's device does.
#pragma once

#include "runtime/CudaDriver.h"
#include "support/Error.h"

#include <charconv>
#include <memory>
#include <string>

namespace kiln {

class PrimaryContext {
public:
  /// `user`: the library it is for, in messages.
  PrimaryContext(std::shared_ptr<const CudaDriver> driver, int ordinal,
                 const char *user)
      : driver_(std::move(driver)) {
    std::string what = fmt::format("opening the GPU for {}", user);
    driver_->call(driver_->cuDeviceGet, what.c_str(), &device_, ordinal);
    driver_->call(driver_->cuDevicePrimaryCtxRetain,
                  "opening the GPU's primary context", &context_, device_);
  }
  PrimaryContext(const PrimaryContext &) = delete;
  ~PrimaryContext() { driver_->cuDevicePrimaryCtxRelease.function(device_); }

  /// Current while `action` runs.
  template <typename Action> void enter(const Action &action) const {
    driver_->call(driver_->cuCtxPushCurrent, "making the GPU's context current",
                  context_);
    struct Popper {
      const PrimaryContext &context;
      ~Popper() { context.pop(); }
    } popper{*this};
    action();
  }
  /// The same for what ends a library's objects: nothing where it fails.
  template <typename Action> void leave(const Action &action) const noexcept {
    if (driver_->cuCtxPushCurrent.function(context_) != cuda::CUDA_SUCCESS)
      return;
    action();
    pop();
  }

  /// 1 of "cuda:1". Throws UserError where the device is no GPU.
  static int ordinalOf(const std::string &device, const char *user) {
    constexpr std::string_view kPrefix = "cuda:";
    if (!device.starts_with(kPrefix))
      userError("{} runs on a GPU, not on {}", user, device);
    int ordinal = 0;
    std::from_chars(device.data() + kPrefix.size(),
                    device.data() + device.size(), ordinal);
    return ordinal;
  }

private:
  void pop() const noexcept {
    cuda::CUcontext popped = nullptr;
    driver_->cuCtxPopCurrent.function(&popped);
  }

  const std::shared_ptr<const CudaDriver> driver_;
  cuda::CUdevice device_ = 0;
  cuda::CUcontext context_ = nullptr;
};

} // namespace kiln
