// device.h: one interface to whatever runs kernels.
//
// A device owns memory, copies, streams and launches. The GPU (open_cuda) and
// the simulator implement the same few virtual functions, and everything else,
// from resolving a launch contract to `run` with host arrays (run.h), is written
// once on top of them.
//
// Memory and streams that others made (torch, cuBLAS, the CUDA runtime) are
// used as they are: the GPU works in the primary context.
#pragma once

#include <kiln/base/export.h>
#include <kiln/run/buffer.h>
#include <kiln/run/device_description.h>
#include <kiln/run/kernel.h>
#include <kiln/run/launch.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// What stands behind a Device.
enum class DeviceKind : std::uint8_t { cuda, sim };

/// What not every device has. A function of something that it lacks throws
/// UserError.
enum class Facility : std::uint8_t {
  host_memory, ///< share
  modules,     ///< load
  event_waits, ///< wait
  any_copies,  ///< enqueue_copy, enqueue_fill
  completion,  ///< enqueue with a function that is told how it went
  queries,     ///< is_done
  host_calls,  ///< call
  occupancy,
};

class Simulation;

class Device {
public:
  virtual ~Device();

  virtual DeviceKind kind() const = 0;
  /// "cuda:0 (NVIDIA H200)"
  virtual std::string name() const = 0;
  virtual const DeviceDescription &description() const = 0;
  virtual bool has(Facility facility) const;
  /// What only a simulator can do; null: this is none.
  virtual Simulation *simulation();

  /// Fresh memory, contents undefined, at least 256-byte aligned.
  virtual Buffer allocate(std::size_t bytes) = 0;
  /// Memory of the host that kernels use at its own address, without a copy,
  /// for as long as the buffer is held.
  virtual Buffer share(void *data, std::size_t bytes);
  /// What findings shall call the buffer.
  virtual void set_name(const Buffer &buffer, std::string_view name);
  virtual void copy_in(const Buffer &to, const void *from, std::size_t bytes,
                       const Stream &stream = {}) = 0;
  virtual void copy_out(void *to, const Buffer &from, std::size_t bytes,
                        const Stream &stream = {}) = 0;
  virtual void fill(const Buffer &buffer, std::uint8_t byte,
                    const Stream &stream = {}) = 0;

  /// A blocking stream keeps the order with the default stream, on which the
  /// copies of a caller who names no stream run.
  virtual Stream create_stream(bool is_blocking = true) = 0;
  virtual Event create_event() = 0;
  virtual void record(const Event &event, const Stream &stream = {}) = 0;
  /// What is put into the stream from now on waits for the event.
  virtual void wait(const Event &event, const Stream &stream = {});
  /// Whether everything in the stream, or before the event, has been done.
  virtual bool is_done(const Stream &stream = {});
  virtual bool is_done(const Event &event);
  /// Copy between any two addresses, of the device or of the host, in the
  /// stream's turn; the memory must stay until then.
  virtual void enqueue_copy(std::uint64_t to, std::uint64_t from,
                            std::size_t bytes, const Stream &stream = {});
  /// Set `count` elements of 1, 2 or 4 bytes, likewise.
  virtual void enqueue_fill(std::uint64_t to, std::uint32_t value,
                            int element_bytes, std::size_t count,
                            const Stream &stream = {});
  /// Call a function of the host in its turn, from a thread that is neither the
  /// caller's nor holds a lock. It must not wait for the device.
  virtual void call(std::function<void()> function, const Stream &stream = {});
  /// Microseconds between two recorded events; waits for the later one.
  virtual double elapsed_us(const Event &from, const Event &to) = 0;
  virtual void synchronize(const Stream &stream = {}) = 0;

  /// Take PTX in once, to launch its entries and to find its variables; several
  /// texts are linked. Throws UserError where a symbol is missing or twice
  /// there.
  virtual std::shared_ptr<LoadedModule>
  load(std::span<const std::string_view> ptx);

  /// Put a launch into a stream and return; its errors surface at the next
  /// call that waits. For benchmarks and for callers with streams of their own.
  virtual void enqueue(const LaunchDescription &launch,
                       const Stream &stream = {}) = 0;
  /// The same, and `finished` is told what came of it when it has ended; from
  /// whichever thread waited for it.
  virtual void enqueue(const LaunchDescription &launch, const Stream &stream,
                       std::function<void(LaunchResult)> finished);
  /// CTAs of such a launch that one SM holds at once.
  virtual int occupancy(const LaunchDescription &launch);
  /// Check, compile and pack a launch once; the result puts it into a stream,
  /// as often and as cheaply as the device can. What the launch refers to must
  /// outlive it, and so must the device.
  virtual std::function<void(const Stream &)>
  prepare(const LaunchDescription &launch);
  /// Launch, wait, and say how it went. Throws RuntimeError where the driver
  /// fails, with the call, the result and what was launched.
  [[nodiscard]] virtual LaunchResult launch(const LaunchDescription &launch,
                                            const Stream &stream = {}) = 0;

  /// A launch of a Kernel: the contract is resolved with the arguments.
  /// Workspaces that they leave out are allocated, zeroed in the stream, and
  /// freed with the description.
  LaunchDescription describe(const Kernel &kernel,
                             std::span<const LaunchArgument> arguments,
                             const Stream &stream = {});
  /// The same, launched; workspaces are freed when the launch has ended.
  void enqueue(const Kernel &kernel, std::span<const LaunchArgument> arguments,
               const Stream &stream = {});
  [[nodiscard]] LaunchResult launch(const Kernel &kernel,
                                    std::span<const LaunchArgument> arguments,
                                    const Stream &stream = {});

  /// A view of device memory somebody else owns and keeps alive.
  Buffer wrap(void *address, std::size_t bytes) const {
    return Buffer(reinterpret_cast<std::uint64_t>(address), bytes);
  }
};

/// Fresh memory of the device, which the result holds.
std::vector<LaunchArgument>
with_workspaces(Device &device, const Kernel &kernel,
                std::span<const LaunchArgument> arguments,
                const Stream &stream = {});

/// The GPU, through the CUDA driver found at run time. Throws RuntimeError that
/// says what to install where there is none.
std::shared_ptr<Device> open_cuda(int ordinal = 0);

/// Every device that can be opened here, and for each kind that cannot, why.
struct DeviceListing {
  struct Entry {
    std::string id;   ///< "cuda:0"
    std::string name; ///< "NVIDIA H200"
    DeviceDescription description;
  };
  std::vector<Entry> devices;
  std::vector<std::string> missing; ///< "cuda: libcuda.so.1 not found: ..."
};
DeviceListing list_devices();

} // namespace kiln
