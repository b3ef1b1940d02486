// Conformance: what a case needs to be written once and run on every device.
//
// A case builds a kernel, passes it through compile_checked (so that it means
// something where no device is), opens its device or skips with the reason, and
// compares numbers with the host.
#pragma once

#include <kiln/kiln.h>

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

namespace conformance {

using namespace kiln;

/// The devices every case is instantiated for.
std::vector<std::string> devices();

struct OpenedDevice {
  std::shared_ptr<Device> device;
  std::string reason; ///< why there is none
};
/// Open a device once per process. On the simulator each launch runs under all
/// orders, without a finding.
const OpenedDevice &open(const std::string &id);

/// Compile; where there is a ptxas, assemble, with nothing of the C75xx family
/// and no spills.
Kernel compile_checked(const Module &module);

/// How often `text` occurs in `where`.
int count(const std::string &where, const std::string &text);

/// Elements of a type as bytes, random in [-1, 1).
std::vector<std::uint8_t> random_elements(Type type, std::size_t count,
                                          unsigned seed);
/// Elements made from the numbers they stand for, and back.
std::vector<std::uint8_t> elements(Type type,
                                   const std::vector<double> &values);
std::vector<double> values(Type type, const std::vector<std::uint8_t> &bytes);
/// Output that no kernel would write.
inline std::vector<std::uint8_t> poisoned(Type type, std::size_t count) {
  return std::vector<std::uint8_t>(count * size_bytes(type), 0xFF);
}

/// Every case: its parameter is the device.
class OnDevice : public testing::TestWithParam<std::string> {};

} // namespace conformance

/// End a case that has compiled all it has to where there is no device.
#define SKIP_WITHOUT_DEVICE()                                                  \
  if (!conformance::open(GetParam()).device)                                   \
  GTEST_SKIP() << conformance::open(GetParam()).reason

/// Inside a case: `device` from here on, or the end of the case.
#define OPEN_OR_SKIP(device)                                                   \
  SKIP_WITHOUT_DEVICE();                                                       \
  kiln::Device &device = *conformance::open(GetParam()).device

#define INSTANTIATE_ON_DEVICES(Suite)                                          \
  INSTANTIATE_TEST_SUITE_P(, Suite, testing::ValuesIn(conformance::devices()), \
                           [](const auto &info) { return info.param; })
