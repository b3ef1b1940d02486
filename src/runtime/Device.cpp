// Device: what is the same on every device, written on top of its few virtual
// functions.
#include "kiln/run/device.h"
#include "kiln/run/run.h"

#include "support/Error.h"

#include <algorithm>
#include <bit>

namespace kiln {

Buffer Buffer::slice(std::size_t offset, std::size_t bytes) const {
  if (offset > bytes_ || bytes > bytes_ - offset)
    userError(
        "a slice of {} bytes from byte {} does not lie within a buffer of "
        "{} bytes",
        bytes, offset, bytes_);
  return Buffer(address_ + offset, bytes, owner_);
}

Scalar::Scalar(int value)
    : type(Type::i32), bits(static_cast<std::uint32_t>(value)) {}
Scalar::Scalar(unsigned value) : type(Type::u32), bits(value) {}
Scalar::Scalar(long value)
    : type(Type::i64), bits(static_cast<std::uint64_t>(value)) {}
Scalar::Scalar(long long value)
    : type(Type::i64), bits(static_cast<std::uint64_t>(value)) {}
Scalar::Scalar(unsigned long value) : type(Type::u64), bits(value) {}
Scalar::Scalar(unsigned long long value) : type(Type::u64), bits(value) {}
Scalar::Scalar(float value)
    : type(Type::f32), bits(std::bit_cast<std::uint32_t>(value)) {}
Scalar::Scalar(double value)
    : type(Type::f64), bits(std::bit_cast<std::uint64_t>(value)) {}

bool LaunchResult::ok() const {
  return std::none_of(findings.begin(), findings.end(),
                      [](const Finding &finding) {
                        return finding.grade == Finding::Grade::error;
                      });
}

/// "a load of ...; and 2 more errors", with the place of the first.
static const Finding &firstError(const LaunchResult &result) {
  for (const Finding &finding : result.findings)
    if (finding.grade == Finding::Grade::error)
      return finding;
  internalError("a FindingError without an error");
}

static std::string describeErrors(const LaunchResult &result) {
  auto errors = std::count_if(result.findings.begin(), result.findings.end(),
                              [](const Finding &finding) {
                                return finding.grade == Finding::Grade::error;
                              });
  const Finding &first = firstError(result);
  std::string text = fmt::format("{}: {}", first.id, first.message);
  if (errors > 1)
    text +=
        fmt::format("; and {} more error{}", errors - 1, errors > 2 ? "s" : "");
  return text;
}

FindingError::FindingError(LaunchResult result)
    : Error(ExitStatus::finding, firstError(result).where,
            describeErrors(result)),
      result_(std::move(result)) {}

LoadedModule::~LoadedModule() = default;

Device::~Device() = default;

/// What a device cannot do that lacks a facility.
static const char *wordsOf(Facility facility) {
  switch (facility) {
  case Facility::host_memory:
    return "share memory of the host with kernels";
  case Facility::modules:
    return "load modules, it takes PTX with each launch";
  case Facility::event_waits:
    return "let a stream wait for an event";
  case Facility::any_copies:
    return "copy between any two addresses or fill memory in a stream";
  case Facility::completion:
    return "report how a launch in a stream went";
  case Facility::queries:
    return "report whether a stream or an event is done";
  case Facility::host_calls:
    return "call functions of the host from a stream";
  case Facility::occupancy:
    return "count the CTAs that an SM holds";
  }
  internalError("facility {} has no words", static_cast<int>(facility));
}

[[noreturn]] static void failWithout(const Device &device, Facility facility) {
  userError("{} does not {}; the simulator does (open_sim)", device.name(),
            wordsOf(facility));
}

bool Device::has(Facility) const { return false; }

Simulation *Device::simulation() { return nullptr; }

std::shared_ptr<LoadedModule> Device::load(std::span<const std::string_view>) {
  failWithout(*this, Facility::modules);
}

Buffer Device::share(void *, std::size_t) {
  failWithout(*this, Facility::host_memory);
}

void Device::wait(const Event &, const Stream &) {
  failWithout(*this, Facility::event_waits);
}

bool Device::is_done(const Stream &) { failWithout(*this, Facility::queries); }

bool Device::is_done(const Event &) { failWithout(*this, Facility::queries); }

void Device::enqueue_copy(std::uint64_t, std::uint64_t, std::size_t,
                          const Stream &) {
  failWithout(*this, Facility::any_copies);
}

void Device::enqueue_fill(std::uint64_t, std::uint32_t, int, std::size_t,
                          const Stream &) {
  failWithout(*this, Facility::any_copies);
}

// NOLINTBEGIN(performance-unnecessary-value-param): overriders keep them
void Device::call(std::function<void()>, const Stream &) {
  failWithout(*this, Facility::host_calls);
}

void Device::enqueue(const LaunchDescription &, const Stream &,
                     std::function<void(LaunchResult)>) {
  failWithout(*this, Facility::completion);
}
// NOLINTEND(performance-unnecessary-value-param)

int Device::occupancy(const LaunchDescription &) {
  failWithout(*this, Facility::occupancy);
}

void Device::set_name(const Buffer &, std::string_view) {}

/// Findings call buffers what the kernel calls them.
static void nameBuffers(Device &device, const Kernel &kernel,
                        std::span<const LaunchArgument> arguments) {
  std::size_t count =
      std::min(arguments.size(), kernel.contract.arguments.size());
  for (std::size_t i = 0; i < count; ++i)
    if (const auto *buffer = std::get_if<Buffer>(&arguments[i]);
        buffer && buffer->bytes())
      device.set_name(*buffer, kernel.contract.arguments[i].name);
}

std::function<void(const Stream &)>
Device::prepare(const LaunchDescription &launch) {
  return [this, launch](const Stream &stream) { enqueue(launch, stream); };
}

std::vector<LaunchArgument>
with_workspaces(Device &device, const Kernel &kernel,
                std::span<const LaunchArgument> arguments,
                const Stream &stream) {
  return with_workspaces(kernel, arguments,
                         [&](const ArgumentSpec &, std::size_t bytes) {
                           Buffer buffer = device.allocate(bytes);
                           device.fill(buffer, 0, stream);
                           return buffer;
                         });
}

LaunchDescription Device::describe(const Kernel &kernel,
                                   std::span<const LaunchArgument> arguments,
                                   const Stream &stream) {
  std::vector<LaunchArgument> all =
      with_workspaces(*this, kernel, arguments, stream);
  LaunchDescription launch = resolve(kernel, all, description());
  nameBuffers(*this, kernel, all);
  return launch;
}

void Device::enqueue(const Kernel &kernel,
                     std::span<const LaunchArgument> arguments,
                     const Stream &stream) {
  std::vector<LaunchArgument> all =
      with_workspaces(*this, kernel, arguments, stream);
  enqueue(resolve(kernel, all, description()), stream);
}

LaunchResult Device::launch(const Kernel &kernel,
                            std::span<const LaunchArgument> arguments,
                            const Stream &stream) {
  return launch(describe(kernel, arguments, stream), stream);
}

/// Whether `run` copies argument `i` back.
static bool isCopiedBack(const Kernel &kernel, std::size_t i,
                         const HostArgument &argument) {
  return !std::holds_alternative<Scalar>(argument.scalar) &&
         i < kernel.contract.arguments.size() &&
         kernel.contract.arguments[i].is_output;
}

/// What the kernel writes must be an array that can be written.
static void checkOutputs(const Kernel &kernel,
                         std::span<const HostArgument> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (isCopiedBack(kernel, i, arguments[i]) && !arguments[i].writable &&
        arguments[i].data)
      userError("kernel \"{}\" writes argument {} \"{}\", which was given as a "
                "const array; pass one that can be written",
                kernel.name, i + 1, kernel.contract.arguments[i].name);
}

/// Numbers of another size or kind than the kernel's are another array.
static void checkElements(const Kernel &kernel,
                          std::span<const HostArgument> arguments) {
  std::size_t count =
      std::min(arguments.size(), kernel.contract.arguments.size());
  for (std::size_t i = 0; i < count; ++i) {
    const HostArgument &given = arguments[i];
    const ArgumentSpec &wanted = kernel.contract.arguments[i];
    if (given.element_bytes == 0 || wanted.kind != ArgumentSpec::Kind::buffer)
      continue;
    auto size = static_cast<std::size_t>(size_bytes(wanted.type));
    // The host has no type for shorter floats: those come as their bits.
    bool isHostFloat = wanted.type == Type::f32 || wanted.type == Type::f64;
    if (given.element_bytes != size ||
        (given.is_floating ? !is_float(wanted.type) : isHostFloat))
      userError("argument {} \"{}\" of kernel \"{}\" is of {}, {} bytes an "
                "element, and the array's elements are {} of {} bytes; give an "
                "array of that type, or of bytes",
                i + 1, wanted.name, kernel.name, name(wanted.type), size,
                given.is_floating ? "floats" : "integers", given.element_bytes);
  }
}

/// The argument on the device; memory of 0 bytes is asked for as 1, because
/// drivers refuse none.
static LaunchArgument allocateFor(Device &device,
                                  const HostArgument &argument) {
  if (const auto *scalar = std::get_if<Scalar>(&argument.scalar))
    return *scalar;
  Buffer buffer = device.allocate(std::max<std::size_t>(argument.bytes, 1));
  return buffer.slice(0, argument.bytes);
}

LaunchResult try_run(Device &device, const Kernel &kernel,
                     std::span<const HostArgument> arguments) {
  checkOutputs(kernel, arguments);
  checkElements(kernel, arguments);
  std::vector<LaunchArgument> onDevice;
  for (const HostArgument &argument : arguments)
    onDevice.push_back(allocateFor(device, argument));
  // Resolved before anything is copied: a wrong argument should not cost the
  // copies of the right ones.
  std::vector<LaunchArgument> all = with_workspaces(device, kernel, onDevice);
  nameBuffers(device, kernel, all);
  LaunchDescription launch = resolve(kernel, all, device.description());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (const auto *buffer = std::get_if<Buffer>(&onDevice[i]))
      if (arguments[i].bytes != 0)
        device.copy_in(*buffer, arguments[i].data, arguments[i].bytes);
  LaunchResult result = device.launch(launch);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (isCopiedBack(kernel, i, arguments[i]) && arguments[i].bytes != 0)
      device.copy_out(arguments[i].writable, std::get<Buffer>(onDevice[i]),
                      arguments[i].bytes);
  device.synchronize();
  return result;
}

LaunchResult run(Device &device, const Kernel &kernel,
                 std::span<const HostArgument> arguments) {
  LaunchResult result = try_run(device, kernel, arguments);
  if (!result.ok())
    throw FindingError(std::move(result));
  return result;
}

} // namespace kiln
