// run.h: a kernel with arrays of the host, in one call.
//
//     auto device = open_cuda();
//     std::vector<float> x = ..., y = ...;
//     run(*device, saxpy, x, y, 2.0f);     // copies in, launches, copies back
//
// Nothing that a check finds is lost: `run` throws FindingError; `try_run` and
// Device::launch hand it over in their result.
#pragma once

#include <kiln/base/export.h>
#include <kiln/run/device.h>

#include <array>
#include <cstddef>
#include <span>
#include <type_traits>
#include <variant>

namespace KILN_API kiln {

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

} // namespace kiln
