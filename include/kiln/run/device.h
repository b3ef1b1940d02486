// device.h: one interface to whatever runs kernels.
//
// A device owns memory, copies, streams and launches. The GPU (open_cuda) and
// the simulator implement the same few virtual functions, and everything else,
// from resolving a launch contract to `run` with host arrays, is written once
// on top of them.
//
//     auto device = open_cuda();
//     std::vector<float> x = ..., y = ...;
//     run(*device, saxpy, x, y, 2.0f);     // copies in, launches, copies back
//
// Nothing that a check finds is lost: `run` throws FindingError; `try_run` and
// `launch` hand it over in their result.
//
// Memory and streams that others made (torch, cuBLAS, the CUDA runtime) are
// used as they are: the GPU works in the primary context.
#pragma once

#include <kiln/run/device_description.h>
#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/run/kernel.h>
#include <kiln/check/timeline.h>

#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

namespace KILN_API kiln {

class Device;
class LoadedModule;

/// Device memory. Copies share it; the last one frees it, unless it is a view
/// of memory somebody else owns (Device::wrap).
class Buffer {
public:
  Buffer() = default;
  Buffer(std::uint64_t address, std::size_t bytes,
         std::shared_ptr<void> owner = nullptr)
      : address_(address), bytes_(bytes), owner_(std::move(owner)) {}

  std::uint64_t address() const { return address_; }
  std::size_t bytes() const { return bytes_; }
  /// The bytes [offset, offset + bytes) of it; keeps the whole alive.
  Buffer slice(std::size_t offset, std::size_t bytes) const;

private:
  std::uint64_t address_ = 0;
  std::size_t bytes_ = 0;
  std::shared_ptr<void> owner_;
};

/// An ordered queue of work; a default-constructed one is the default stream.
/// `native` is the driver's handle, so that a CUstream or cudaStream_t of
/// another library can be used: Stream(reinterpret_cast<void*>(theirs)).
class Stream {
public:
  Stream() = default;
  explicit Stream(void *native, std::shared_ptr<void> owner = nullptr)
      : native_(native), owner_(std::move(owner)) {}
  void *native() const { return native_; }

private:
  void *native_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A point in a stream, for timing.
class Event {
public:
  Event() = default;
  explicit Event(void *native, std::shared_ptr<void> owner = nullptr)
      : native_(native), owner_(std::move(owner)) {}
  void *native() const { return native_; }

private:
  void *native_ = nullptr;
  std::shared_ptr<void> owner_;
};

/// A scalar argument: a number and its type.
struct Scalar {
  Type type = Type::i32;
  std::uint64_t bits = 0;

  Scalar() = default;
  Scalar(Type type, std::uint64_t bits) : type(type), bits(bits) {}
  Scalar(int value);
  Scalar(unsigned value);
  Scalar(long value);
  Scalar(long long value);
  Scalar(unsigned long value);
  Scalar(unsigned long long value);
  Scalar(float value);
  Scalar(double value);

  double value() const { return from_bits(type, bits); }
};

/// One argument of a launch.
using LaunchArgument = std::variant<Buffer, Scalar>;

/// One parameter of an explicit launch: what the PTX entry takes.
struct LaunchParameter {
  std::variant<Buffer, Scalar, TensorMap, std::vector<std::byte>> value;
};

/// What an entry of a module takes and needs.
struct EntryInfo {
  std::string name;
  std::vector<std::uint32_t> parameter_bytes; ///< of each parameter
  /// Where each begins in the entry's parameter space, and where that ends.
  std::vector<std::uint32_t> parameter_offsets;
  int max_threads = 0; ///< of a CTA
  std::uint32_t static_smem_bytes = 0;
  std::uint32_t local_bytes = 0; ///< per thread
};

/// PTX that a device has taken in, once. It stays with its device for as long
/// as somebody holds it.
class LoadedModule {
public:
  virtual ~LoadedModule();

  virtual std::vector<std::string> entries() const = 0;
  /// Throws UserError that lists the entries where there is none of that name.
  virtual const EntryInfo &entry(std::string_view name) const = 0;
  /// Registers per thread of an entry: ptxas' count where one is found, else
  /// what the directives of the PTX leave it at most.
  virtual int registers(std::string_view name) const = 0;
  /// A global or constant variable: its address and size, for copies and as an
  /// argument. Throws UserError where there is none of that name.
  virtual Buffer variable(std::string_view name) const = 0;
};

/// An explicit launch of any PTX: nothing is derived.
struct LaunchDescription {
  std::string name;     ///< the entry; empty: the module's only one
  std::string_view ptx; ///< must outlive the launch
  std::array<std::uint32_t, 3> grid = {1, 1, 1}; ///< CTAs
  std::array<std::uint32_t, 3> block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t dynamic_smem_bytes = 0;
  std::vector<LaunchParameter> parameters;
  /// All CTAs are there at once and may wait for each other (grid.sync): a grid
  /// that the device cannot hold is refused.
  bool cooperative = false;
  /// Instead of `ptx`: what Device::load made of it.
  std::shared_ptr<const LoadedModule> module = nullptr;
  std::vector<SharedObject> shared_objects = {}; ///< for what is said of them
};

/// Something a check found; only the simulator has any.
struct Finding {
  enum class Grade : std::uint8_t { note, warning, error };

  std::string id; ///< `kiln explain ID` and explain() say what it means
  Grade grade = Grade::error;
  std::string message = {};
  SourceLine where = {}; ///< from .loc, else the line of the PTX
  int ptx_line = 0;
  // What it is about, where that applies.
  std::optional<std::array<std::uint32_t, 3>> cta = std::nullopt;
  int thread = -1;                                     ///< in its CTA; -1: none
  std::string space = {};                              ///< "global", "shared"
  std::optional<std::uint64_t> address = std::nullopt; ///< in that space
  std::string buffer = {}; ///< the name of what lies there, or nearest

  std::string instruction = {}; ///< of the PTX, as it is written
  std::uint64_t count = 1;      ///< how often it was found at these places

  /// Where a line is of a function that was inlined: from there out to the
  /// kernel, each with its line.
  struct Frame {
    std::string function = {};
    SourceLine where = {};
  };
  /// `where` is the innermost of the kernel's own file.
  std::vector<Frame> stack = {};

  /// The access that it collides with, where there is one.
  struct Other {
    std::string who = {}; ///< "thread 32 of CTA (0, 0, 0)"
    SourceLine where = {};
    int ptx_line = 0;
    bool is_write = false;
    std::vector<Frame> stack = {};
  };
  std::optional<Other> other = std::nullopt;

  /// "error out-of-bounds at gemm.cpp:12: a load of 4 bytes ..."
  std::string to_string() const;
};

/// "note", "warning", "error"
const char *name(Finding::Grade grade);

/// Where the time of a simulated launch went.
struct LaunchStats {
  struct Cost {
    std::string name; ///< scalar, memory, tma, wgmma, barrier, checks, other
    std::uint64_t instructions = 0; ///< warp instructions
    double time_us = 0;             ///< of all host threads together
  };
  std::vector<Cost> costs; ///< empty where nobody asked for them
  /// Memory of the host that the checks need beside the data.
  std::uint64_t shadow_bytes = 0;
};

/// What a launch came to, once it has finished.
struct LaunchResult {
  double time_us = 0; ///< of the kernel itself, by the device's clock
  std::uint64_t instructions = 0; ///< warp instructions; the simulator's count
  std::vector<Finding> findings;
  bool is_finished = true; ///< no finding ended it
  /// Registers per thread at entry, and who says so: "the launch", "ptxas",
  /// ".maxnreg", ".reqntid and .minnctapersm"; 0: nobody does.
  int registers = 0;
  std::string registers_from;
  std::uint64_t resident_ctas = 0; ///< that the device holds at once
  LaunchStats stats;
  Timeline timeline; ///< empty where nobody asked for it

  bool ok() const; ///< no finding of grade error
  /// Findings and numbers, a line each.
  std::string to_string() const;
  /// An object with `verdict` (ok or error), `findings` and `stats`.
  std::string to_json() const;
};

/// Thrown where a check found an error and nobody asked for the result.
class FindingError : public Error {
public:
  /// `result` has an error at least.
  explicit FindingError(LaunchResult result);
  const LaunchResult &result() const { return result_; }

private:
  LaunchResult result_;
};

/// Resolve a contract with the arguments at hand. Throws UserError where they
/// do not fit: count, kind, type, a buffer smaller than its shape.
LaunchDescription resolve(const Kernel &kernel,
                          std::span<const LaunchArgument> arguments,
                          const DeviceDescription &device);

/// The arguments, and after them the workspaces that they leave out: `allocate`
/// gives memory of so many bytes, all of them zero.
std::vector<LaunchArgument> with_workspaces(
    const Kernel &kernel, std::span<const LaunchArgument> arguments,
    const std::function<Buffer(const ArgumentSpec &, std::size_t)> &allocate);
/// Fresh memory of the device, which the result holds.
std::vector<LaunchArgument>
with_workspaces(Device &device, const Kernel &kernel,
                std::span<const LaunchArgument> arguments,
                const Stream &stream = {});

/// What stands behind a Device.
enum class DeviceKind : std::uint8_t { cuda, sim };

/// What a device lacks it refuses with a UserError: is_done, call and occupancy
/// are the simulator's alone.
class Device {
public:
  virtual ~Device();

  virtual DeviceKind kind() const = 0;
  /// "cuda:0 (NVIDIA H200)"
  virtual std::string name() const = 0;
  virtual const DeviceDescription &description() const = 0;

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

  /// The same for a Kernel: the contract is resolved with the arguments.
  /// Workspaces that they leave out are allocated, and freed when the launch
  /// has ended.
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

/// A host array or a scalar, for `run`. Arrays that are not const are copied
/// back where the kernel writes them.
struct HostArgument {
  std::variant<std::monostate, Scalar> scalar;
  const void *data = nullptr;
  void *writable = nullptr;
  std::size_t bytes = 0;
  /// Of an array of numbers, so that one of another type is refused; 0: bytes.
  std::size_t element_bytes = 0;
  bool is_floating = false; ///< its elements are float or double

  template <typename T>
    requires std::is_arithmetic_v<T>
  HostArgument(T value) : scalar(Scalar(value)) {}
  HostArgument(Scalar value) : scalar(value) {}
  template <typename T>
    requires requires(T &array) { std::span(array); }
  HostArgument(T &array) {
    auto span = std::span(array);
    using Element = std::remove_cv_t<typename decltype(span)::element_type>;
    data = span.data();
    bytes = span.size_bytes();
    if constexpr (std::is_arithmetic_v<Element> && sizeof(Element) > 1)
      element_bytes = sizeof(Element);
    is_floating = std::is_floating_point_v<Element>;
    if constexpr (!std::is_const_v<typename decltype(span)::element_type>)
      writable = span.data();
  }
};

/// Copy in, launch, copy back what the kernel writes. The result says what was
/// found, errors too.
[[nodiscard]] LaunchResult try_run(Device &device, const Kernel &kernel,
                                   std::span<const HostArgument> arguments);
template <typename... Arguments>
[[nodiscard]] LaunchResult try_run(Device &device, const Kernel &kernel,
                                   Arguments &&...arguments) {
  const std::array<HostArgument, sizeof...(Arguments)> list = {
      HostArgument(arguments)...};
  return try_run(device, kernel, std::span<const HostArgument>(list));
}

/// The same for whoever expects no error: throws FindingError where one was
/// found, once everything is copied back.
LaunchResult run(Device &device, const Kernel &kernel,
                 std::span<const HostArgument> arguments);
template <typename... Arguments>
LaunchResult run(Device &device, const Kernel &kernel,
                 Arguments &&...arguments) {
  const std::array<HostArgument, sizeof...(Arguments)> list = {
      HostArgument(arguments)...};
  return run(device, kernel, std::span<const HostArgument>(list));
}

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
