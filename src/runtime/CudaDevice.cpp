// CudaDevice: the GPU as a Device, through the CUDA driver.
//
// It works in the primary context, the one that torch, cuBLAS and the CUDA
// runtime use, so that their memory and streams are ours too. The context is
// made current for each call only: the caller's thread keeps the one it had.
#include "runtime/CudaDriver.h"
#include "runtime/CudaLaunch.h"
#include "runtime/CudaLoadedModule.h"
#include "runtime/CudaModule.h"

#include "kiln/run/device.h"
#include "support/Error.h"

#include <mutex>

namespace kiln {

using namespace cuda;

namespace {

/// The primary context of one GPU and what is loaded into it. Every buffer,
/// stream and event holds it, so that they may outlive the device.
class CudaContext {
public:
  CudaContext(std::shared_ptr<const CudaDriver> driverToUse, CUdevice device)
      : driver(std::move(driverToUse)), modules(*driver), device_(device) {
    driver->call(driver->cuDevicePrimaryCtxRetain,
                 "opening the GPU's primary context", &context_, device);
  }
  CudaContext(const CudaContext &) = delete;
  ~CudaContext() {
    quietly([&] { modules.unloadAll(); });
    driver->cuDevicePrimaryCtxRelease.function(device_);
  }

  /// Makes the context current on this thread for a scope.
  class Current {
  public:
    explicit Current(const CudaContext &owner) : owner_(owner) {
      owner.driver->call(owner.driver->cuCtxPushCurrent,
                         "making the GPU's context current", owner.context_);
    }
    Current(const Current &) = delete;
    ~Current() { owner_.pop(); }

  private:
    const CudaContext &owner_;
  };

  /// Run a clean-up in the context. Its errors, and that of a context that is
  /// gone, are dropped: a destructor has nobody to tell.
  template <typename Action> void quietly(Action action) const noexcept {
    if (driver->cuCtxPushCurrent.function(context_) != CUDA_SUCCESS)
      return;
    action();
    pop();
  }

  const std::shared_ptr<const CudaDriver> driver;
  CudaModules modules;

private:
  void pop() const noexcept {
    CUcontext popped = nullptr;
    driver->cuCtxPopCurrent.function(&popped);
  }

  const CUdevice device_;
  CUcontext context_ = nullptr;
};

class CudaDevice final : public Device {
public:
  CudaDevice(std::shared_ptr<CudaContext> context, int ordinal,
             DeviceDescription description)
      : context_(std::move(context)), driver_(*context_->driver),
        ordinal_(ordinal), description_(std::move(description)) {}

  DeviceKind kind() const override { return DeviceKind::cuda; }
  std::string name() const override {
    return fmt::format("cuda:{} ({})", ordinal_, description_.name);
  }
  const DeviceDescription &description() const override { return description_; }
  bool has(Facility facility) const override {
    return facility != Facility::queries &&
           facility != Facility::host_calls && facility != Facility::occupancy;
  }

  Buffer allocate(std::size_t bytes) override;
  Buffer share(void *data, std::size_t bytes) override;
  void copy_in(const Buffer &to, const void *from, std::size_t bytes,
               const Stream &stream) override;
  void copy_out(void *to, const Buffer &from, std::size_t bytes,
                const Stream &stream) override;
  void fill(const Buffer &buffer, std::uint8_t byte,
            const Stream &stream) override;
  void enqueue_copy(std::uint64_t to, std::uint64_t from, std::size_t bytes,
                    const Stream &stream) override;
  void enqueue_fill(std::uint64_t to, std::uint32_t value, int elementBytes,
                    std::size_t count, const Stream &stream) override;
  Stream create_stream(bool isBlocking) override;
  Event create_event() override;
  void record(const Event &event, const Stream &stream) override;
  void wait(const Event &event, const Stream &stream) override;
  double elapsed_us(const Event &from, const Event &to) override;
  void synchronize(const Stream &stream) override;
  std::shared_ptr<LoadedModule>
  load(std::span<const std::string_view> ptx) override {
    return std::make_shared<CudaLoadedModule>(ptx);
  }
  void enqueue(const LaunchDescription &launch, const Stream &stream) override;
  void enqueue(const LaunchDescription &launch, const Stream &stream,
               std::function<void(LaunchResult)> finished) override;
  std::function<void(const Stream &)>
  prepare(const LaunchDescription &launch) override;
  LaunchResult launch(const LaunchDescription &launch,
                      const Stream &stream) override;

private:
  /// A launch that is checked, compiled and packed.
  struct Prepared {
    CudaEntry &entry;
    PackedParameters parameters;
  };

  Prepared pack(const LaunchDescription &launch);
  void submit(const Prepared &prepared, const LaunchDescription &launch,
              const Stream &stream);
  std::string waiting(const std::string &what);

  const std::shared_ptr<CudaContext> context_;
  const CudaDriver &driver_;
  const int ordinal_;
  const DeviceDescription description_;
  std::mutex mutex_;
  std::string lastLaunched_;
};

} // namespace

static CUstream native(const Stream &stream) {
  return static_cast<CUstream>(stream.native());
}

static CUevent native(const Event &event) {
  if (!event.native())
    userError("an event made by Event() is no point in a stream; make it with "
              "Device::create_event");
  return static_cast<CUevent>(event.native());
}

/// Refuse a copy of more bytes than the buffer has.
static void checkFits(const Buffer &buffer, std::size_t bytes,
                      const char *what) {
  if (bytes > buffer.bytes())
    userError("{} {} bytes, but the buffer has {}", what, bytes,
              buffer.bytes());
}

/// What is being waited for, with the kernel that is likely to blame.
std::string CudaDevice::waiting(const std::string &what) {
  std::lock_guard lock(mutex_);
  if (lastLaunched_.empty())
    return what;
  return fmt::format("{}; the last kernel launched was {}", what,
                     lastLaunched_);
}

Buffer CudaDevice::allocate(std::size_t bytes) {
  if (bytes == 0)
    return Buffer();
  CudaContext::Current current(*context_);
  CUdeviceptr address = 0;
  driver_.call(
      driver_.cuMemAlloc,
      [&] {
        std::size_t free = 0, total = 0;
        driver_.cuMemGetInfo.function(&free, &total);
        return waiting(fmt::format("allocating {} bytes on {}, which has {} of "
                                   "{} bytes free",
                                   bytes, name(), free, total));
      },
      &address, bytes);
  std::shared_ptr<void> owner(
      reinterpret_cast<void *>(address), [context = context_, address](void *) {
        context->quietly([&] { context->driver->cuMemFree.function(address); });
      });
  return Buffer(address, bytes, std::move(owner));
}

Buffer CudaDevice::share(void *data, std::size_t bytes) {
  CudaContext::Current current(*context_);
  constexpr unsigned kPortable = 1, kDeviceMap = 2; // CU_MEMHOSTREGISTER_...
  driver_.call(
      driver_.cuMemHostRegister,
      [&] {
        return waiting(fmt::format("registering {} bytes of the host's memory "
                                   "with {}",
                                   bytes, name()));
      },
      data, bytes, kPortable | kDeviceMap);
  std::shared_ptr<void> owner(data, [context = context_](void *memory) {
    context->quietly(
        [&] { context->driver->cuMemHostUnregister.function(memory); });
  });
  return Buffer(reinterpret_cast<std::uint64_t>(data), bytes, std::move(owner));
}

void CudaDevice::enqueue_copy(std::uint64_t to, std::uint64_t from,
                              std::size_t bytes, const Stream &stream) {
  CudaContext::Current current(*context_);
  driver_.call(
      driver_.cuMemcpyAsync,
      [&] { return waiting(fmt::format("copying {} bytes", bytes)); }, to, from,
      bytes, native(stream));
}

void CudaDevice::enqueue_fill(std::uint64_t to, std::uint32_t value,
                              int elementBytes, std::size_t count,
                              const Stream &stream) {
  CudaContext::Current current(*context_);
  auto what = [&] {
    return waiting(
        fmt::format("filling {} elements of {} bytes", count, elementBytes));
  };
  if (elementBytes == 1)
    driver_.call(driver_.cuMemsetD8Async, what, to,
                 static_cast<unsigned char>(value), count, native(stream));
  else if (elementBytes == 2)
    driver_.call(driver_.cuMemsetD16Async, what, to,
                 static_cast<unsigned short>(value), count, native(stream));
  else
    driver_.call(driver_.cuMemsetD32Async, what, to, value, count,
                 native(stream));
}

void CudaDevice::copy_in(const Buffer &to, const void *from, std::size_t bytes,
                         const Stream &stream) {
  checkFits(to, bytes, "cannot copy in");
  if (bytes == 0)
    return;
  CudaContext::Current current(*context_);
  auto what = [&] {
    return waiting(fmt::format("copying {} bytes to {}", bytes, name()));
  };
  driver_.call(driver_.cuMemcpyHtoDAsync, what, to.address(), from, bytes,
               native(stream));
  driver_.call(driver_.cuStreamSynchronize, what, native(stream));
}

void CudaDevice::copy_out(void *to, const Buffer &from, std::size_t bytes,
                          const Stream &stream) {
  checkFits(from, bytes, "cannot copy out");
  if (bytes == 0)
    return;
  CudaContext::Current current(*context_);
  auto what = [&] {
    return waiting(fmt::format("copying {} bytes from {}", bytes, name()));
  };
  driver_.call(driver_.cuMemcpyDtoHAsync, what, to, from.address(), bytes,
               native(stream));
  driver_.call(driver_.cuStreamSynchronize, what, native(stream));
}

void CudaDevice::fill(const Buffer &buffer, std::uint8_t byte,
                      const Stream &stream) {
  if (buffer.bytes() == 0)
    return;
  CudaContext::Current current(*context_);
  driver_.call(
      driver_.cuMemsetD8Async,
      [&] {
        return waiting(
            fmt::format("filling {} bytes on {}", buffer.bytes(), name()));
      },
      buffer.address(), byte, buffer.bytes(), native(stream));
}

Stream CudaDevice::create_stream(bool isBlocking) {
  CudaContext::Current current(*context_);
  CUstream stream = nullptr;
  constexpr unsigned kNonBlocking = 1; // CU_STREAM_NON_BLOCKING
  driver_.call(
      driver_.cuStreamCreate, [&] { return waiting("creating a stream"); },
      &stream, isBlocking ? 0u : kNonBlocking);
  std::shared_ptr<void> owner(stream, [context = context_](void *handle) {
    context->quietly([&] {
      context->driver->cuStreamDestroy.function(static_cast<CUstream>(handle));
    });
  });
  return Stream(stream, std::move(owner));
}

Event CudaDevice::create_event() {
  CudaContext::Current current(*context_);
  CUevent event = nullptr;
  driver_.call(
      driver_.cuEventCreate, [&] { return waiting("creating an event"); },
      &event, 0u);
  std::shared_ptr<void> owner(event, [context = context_](void *handle) {
    context->quietly([&] {
      context->driver->cuEventDestroy.function(static_cast<CUevent>(handle));
    });
  });
  return Event(event, std::move(owner));
}

void CudaDevice::record(const Event &event, const Stream &stream) {
  CudaContext::Current current(*context_);
  driver_.call(
      driver_.cuEventRecord, [&] { return waiting("recording an event"); },
      native(event), native(stream));
}

void CudaDevice::wait(const Event &event, const Stream &stream) {
  CudaContext::Current current(*context_);
  driver_.call(
      driver_.cuStreamWaitEvent,
      [&] { return waiting("letting a stream wait for an event"); },
      native(stream), native(event), 0u);
}

double CudaDevice::elapsed_us(const Event &from, const Event &to) {
  CudaContext::Current current(*context_);
  auto what = [&] { return waiting("waiting for an event"); };
  driver_.call(driver_.cuEventSynchronize, what, native(from));
  driver_.call(driver_.cuEventSynchronize, what, native(to));
  float milliseconds = 0;
  driver_.call(driver_.cuEventElapsedTime,
               "reading the time between two events, which must both have been "
               "recorded",
               &milliseconds, native(from), native(to));
  return 1e3 * milliseconds;
}

void CudaDevice::synchronize(const Stream &stream) {
  CudaContext::Current current(*context_);
  driver_.call(
      driver_.cuStreamSynchronize,
      [&] { return waiting("waiting for a stream"); }, native(stream));
}

CudaDevice::Prepared CudaDevice::pack(const LaunchDescription &launch) {
  auto *loaded = dynamic_cast<const CudaLoadedModule *>(launch.module.get());
  CudaEntry &entry = context_->modules.find(
      loaded ? std::string_view(loaded->ptx()) : launch.ptx, launch.name);
  checkShape(launch, entry.name(), description_);
  checkParameters(launch, entry);
  entry.allow(launch.dynamic_smem_bytes, volume(launch.cluster));
  return {entry, packParameters(driver_, launch, entry.name())};
}

void CudaDevice::submit(const Prepared &prepared,
                        const LaunchDescription &launch, const Stream &stream) {
  std::array<CUlaunchAttribute, 3> attributes{};
  unsigned count = 0;
  // A cluster of one needs no attribute: GPUs without clusters refuse it, and
  // a kernel whose PTX fixes its cluster is launched with that.
  if (volume(launch.cluster) != 1) {
    CUlaunchAttribute &cluster = attributes[count++];
    cluster.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster.value.clusterDim = {launch.cluster[0], launch.cluster[1],
                                launch.cluster[2]};
  }
  if (launch.dependent || prepared.entry.isDependent()) {
    CUlaunchAttribute &dependent = attributes[count++];
    dependent.id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    dependent.value.programmaticStreamSerializationAllowed = 1;
  }
  if (launch.cooperative) {
    CUlaunchAttribute &cooperative = attributes[count++];
    cooperative.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cooperative.value.cooperative = 1;
  }
  CUlaunchConfig config{
      launch.grid[0],
      launch.grid[1],
      launch.grid[2],
      launch.block[0],
      launch.block[1],
      launch.block[2],
      launch.dynamic_smem_bytes,
      native(stream),
      count ? attributes.data() : nullptr,
      count,
  };
  const std::string &name = prepared.entry.name();
  driver_.call(
      driver_.cuLaunchKernelEx, [&] { return describeLaunch(launch, name); },
      &config, prepared.entry.function(),
      const_cast<void **>(prepared.parameters.pointers.data()),
      static_cast<void **>(nullptr));
  std::lock_guard lock(mutex_);
  lastLaunched_ = name;
}

void CudaDevice::enqueue(const LaunchDescription &launch,
                         const Stream &stream) {
  CudaContext::Current current(*context_);
  submit(pack(launch), launch, stream);
}

void CudaDevice::enqueue(const LaunchDescription &launch, const Stream &stream,
                         std::function<void(LaunchResult)> finished) {
  enqueue(launch, stream);
  // What goes wrong surfaces where somebody waits.
  finished({});
}

std::function<void(const Stream &)>
CudaDevice::prepare(const LaunchDescription &launch) {
  CudaContext::Current current(*context_);
  // Raw bytes among the parameters are pointed to: the copy keeps them.
  auto kept = std::make_shared<const LaunchDescription>(launch);
  auto packed = std::make_shared<const Prepared>(pack(*kept));
  return [this, kept, packed](const Stream &stream) {
    CudaContext::Current inScope(*context_);
    submit(*packed, *kept, stream);
  };
}

LaunchResult CudaDevice::launch(const LaunchDescription &launch,
                                const Stream &stream) {
  CudaContext::Current current(*context_);
  // Compiled and packed before the clock starts.
  Prepared prepared = pack(launch);
  Event start = create_event();
  Event end = create_event();
  record(start, stream);
  submit(prepared, launch, stream);
  record(end, stream);
  // Waiting for the stream also prints what the kernel wrote with printf.
  driver_.call(
      driver_.cuStreamSynchronize,
      [&] { return describeLaunch(launch, prepared.entry.name()); },
      native(stream));
  LaunchResult result;
  result.time_us = elapsed_us(start, end);
  return result;
}

std::shared_ptr<Device> openCuda(std::shared_ptr<const CudaDriver> driver,
                                 int ordinal) {
  int count = countCudaDevices(*driver);
  if (count == 0)
    driver->fail(CUDA_ERROR_NO_DEVICE, driver->cuDeviceGetCount.name,
                 fmt::format("opening cuda:{}", ordinal));
  if (ordinal < 0 || ordinal >= count)
    userError("there is no cuda:{}; this machine has cuda:0{}", ordinal,
              count == 1 ? "" : fmt::format(" to cuda:{}", count - 1));
  CUdevice device = getCudaDevice(*driver, ordinal);
  DeviceDescription description = describeCudaDevice(*driver, device);
  auto context = std::make_shared<CudaContext>(std::move(driver), device);
  {
    CudaContext::Current current(*context);
    description.active_clusters =
        askActiveClusters(*context->driver, description);
  }
  return std::make_shared<CudaDevice>(std::move(context), ordinal,
                                      std::move(description));
}

std::shared_ptr<Device> open_cuda(int ordinal) {
  return openCuda(CudaDriver::ofProcess(), ordinal);
}

} // namespace kiln
