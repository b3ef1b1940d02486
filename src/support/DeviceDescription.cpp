// DeviceDescription: the numbers of the devices Kiln knows.
//
// Limits that all of them share are the defaults of the struct; what differs is
// written here. A device that is present is described by its driver instead.
#include "kiln/run/device_description.h"

#include "support/Error.h"

#include <algorithm>
#include <charconv>
#include <fmt/ranges.h>

namespace kiln {

static constexpr long long kMiB = 1024 * 1024;
static constexpr long long kGiB = 1024 * kMiB;

std::string_view name(TensorCore core) {
  switch (core) {
  case TensorCore::mma:
    return "mma.sync";
  case TensorCore::wgmma:
    return "wgmma";
  case TensorCore::tcgen05:
    break;
  }
  return "tcgen05";
}

std::string DeviceDescription::target() const {
  // From 9.0 on, wgmma, setmaxnreg and tcgen05 exist only in the targets that
  // are specific to one architecture, marked by the letter.
  return fmt::format("sm_{}{}{}", compute_major, compute_minor,
                     compute_major >= 9 ? "a" : "");
}

bool DeviceDescription::runs(std::string_view target) const {
  if (!target.starts_with("sm_"))
    return false;
  target.remove_prefix(3);
  int number = 0;
  auto [end, error] =
      std::from_chars(target.data(), target.data() + target.size(), number);
  if (error != std::errc())
    return false;
  int major = number / 10, minor = number % 10;
  std::string_view suffix = target.substr(end - target.data());
  bool isMajor = major == compute_major;
  if (suffix == "a")
    return isMajor && minor == compute_minor;
  if (suffix == "f")
    return isMajor && minor <= compute_minor;
  return suffix.empty() &&
         (major < compute_major || (isMajor && minor <= compute_minor));
}

int DeviceDescription::resident_clusters(int ctas) const {
  auto known = static_cast<int>(active_clusters.size());
  if (ctas >= 1 && ctas <= known)
    return active_clusters[ctas - 1];
  int placed = known ? active_clusters.back() * known : sms;
  return std::max(1, placed / std::max(ctas, 1));
}

const DeviceDescription &DeviceDescription::h100() {
  static const DeviceDescription description = {
      .name = "NVIDIA H100 SXM",
      .compute_major = 9,
      .compute_minor = 0,
      .sms = 132,
      .memory_bytes = 80 * kGiB,
      .l2_bytes = 50 * kMiB,
      .sm_clock_mhz = 1980,
      .memory_clock_mhz = 2619,
      .memory_gb_per_s = 3350,
  };
  return description;
}

const DeviceDescription &DeviceDescription::h200() {
  static const DeviceDescription description = {
      .name = "NVIDIA H200",
      .compute_major = 9,
      .compute_minor = 0,
      .sms = 132,
      // As one of them places them.
      .active_clusters = {132, 66, 39, 30, 22, 17, 15, 15},
      .memory_bytes = 141 * kGiB,
      .l2_bytes = 60 * kMiB,
      .sm_clock_mhz = 1980,
      .memory_clock_mhz = 3201,
      .memory_gb_per_s = 4800,
  };
  return description;
}

const DeviceDescription &DeviceDescription::b200() {
  static const DeviceDescription description = {
      .name = "NVIDIA B200",
      .compute_major = 10,
      .compute_minor = 0,
      .tensor_core = TensorCore::tcgen05,
      .tensor_memory_columns = 512,
      .sms = 148,
      .memory_bytes = 192 * kGiB,
      .l2_bytes = 126 * kMiB,
      .sm_clock_mhz = 1965,
      .memory_clock_mhz = 3996,
      .memory_gb_per_s = 8000,
  };
  return description;
}

/// Of what differs from a B200 only the instructions matter here: it has the
/// numbers of one otherwise.
static const DeviceDescription &b300() {
  static const DeviceDescription description = [] {
    DeviceDescription copy = DeviceDescription::b200();
    copy.name = "NVIDIA B300";
    copy.compute_minor = 3;
    return copy;
  }();
  return description;
}

/// The devices by the names that options take.
static std::vector<std::pair<std::string_view, const DeviceDescription *>>
known() {
  return {{"h100", &DeviceDescription::h100()},
          {"h200", &DeviceDescription::h200()},
          {"b200", &DeviceDescription::b200()},
          {"b300", &b300()}};
}

const DeviceDescription &DeviceDescription::by_name(std::string_view name) {
  for (auto [word, device] : known())
    if (word == name)
      return *device;
  userError("there is no device description \"{}\"; there are {}", name,
            fmt::join(known_names(), ", "));
}

const DeviceDescription &
DeviceDescription::for_target(std::string_view target) {
  for (const auto *device : {&h200(), &b200(), &b300()})
    if (device->target() == target)
      return *device;
  userError("there is no target \"{}\"; kernels are compiled for {}, {} or {}",
            target, h200().target(), b200().target(), b300().target());
}

const DeviceDescription &DeviceDescription::with(TensorCore core) {
  return core == TensorCore::tcgen05 ? b200() : h200();
}

const DeviceDescription &
DeviceDescription::to_simulate(std::string_view target) {
  for (const auto *device : {&h200(), &b200(), &b300()})
    if (device->runs(target))
      return *device;
  userError(
      "no device that Kiln knows runs PTX of the target {}; {} runs up to "
      "{}, {} up to {}",
      target, h200().name, h200().target(), b200().name, b200().target());
}

std::vector<std::string_view> DeviceDescription::known_names() {
  std::vector<std::string_view> names;
  for (auto [word, device] : known())
    names.push_back(word);
  return names;
}

} // namespace kiln
