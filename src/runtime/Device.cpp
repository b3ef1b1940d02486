// Device: what is the same on every device, written on top of its few virtual
// functions.
#include "kiln/device.h"

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

Device::~Device() = default;

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

void Device::enqueue(const Kernel &kernel,
                     std::span<const LaunchArgument> arguments,
                     const Stream &stream) {
  enqueue(resolve(kernel, arguments, description()), stream);
}

LaunchResult Device::launch(const Kernel &kernel,
                            std::span<const LaunchArgument> arguments,
                            const Stream &stream) {
  LaunchDescription launched = resolve(kernel, arguments, description());
  nameBuffers(*this, kernel, arguments);
  return launch(launched, stream);
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

/// The argument on the device; memory of 0 bytes is asked for as 1, because
/// drivers refuse none.
static LaunchArgument allocateFor(Device &device,
                                  const HostArgument &argument) {
  if (const auto *scalar = std::get_if<Scalar>(&argument.scalar))
    return *scalar;
  Buffer buffer = device.allocate(std::max<std::size_t>(argument.bytes, 1));
  return buffer.slice(0, argument.bytes);
}

LaunchResult run(Device &device, const Kernel &kernel,
                 std::span<const HostArgument> arguments) {
  checkOutputs(kernel, arguments);
  std::vector<LaunchArgument> onDevice;
  for (const HostArgument &argument : arguments)
    onDevice.push_back(allocateFor(device, argument));
  // Resolved before anything is copied: a wrong argument should not cost the
  // copies of the right ones.
  LaunchDescription launch = resolve(kernel, onDevice, device.description());
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

} // namespace kiln
