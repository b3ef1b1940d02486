// DeviceDescription: the GPUs that Kiln knows by name.
//
// The limits of each are its architecture's (isa/Target.h); what differs from
// chip to chip is the table here. A GPU that is present is described by its
// driver instead.
#include "kiln/run/device_description.h"

#include "isa/Needs.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>

namespace kiln {

static constexpr long long kMiB = 1024 * 1024;
static constexpr long long kGiB = 1024 * kMiB;

namespace {
/// A GPU as it is published: the figures of its maker's data sheet, and what
/// its driver says where the data sheet is silent.
struct Published {
  std::string_view word, name;
  int major, minor;
  /// Whether it stands for its target where nobody names a GPU.
  bool isUsual;
  int sms;
  int memoryGiB;
  int l2MiB;
  int smMhz, memoryMhz;
  double gbPerS, f16Tflops;
  std::vector<int> activeClusters = {};
};
} // namespace

static const Published kPublished[] = {
    // NVIDIA A100 Tensor Core GPU Architecture (2020), table 4; data sheet of
    // the A100 80GB SXM (2021).
    {"a100", "NVIDIA A100 SXM4 80GB", 8, 0, true, 108, 80, 40, 1410, 1593, 2039,
     312},
    // NVIDIA A10 data sheet (2021).
    {"a10", "NVIDIA A10", 8, 6, true, 72, 24, 6, 1695, 6251, 600, 125},
    // NVIDIA L4 data sheet (2023); NVIDIA Ada GPU Architecture 2.02.
    {"l4", "NVIDIA L4", 8, 9, false, 58, 24, 48, 2040, 6251, 300, 121},
    // NVIDIA L40S data sheet (2023); NVIDIA Ada GPU Architecture 2.02.
    {"l40s", "NVIDIA L40S", 8, 9, true, 142, 48, 96, 2520, 9001, 864, 362},
    // NVIDIA Ada GPU Architecture 2.02, appendix A.
    {"rtx4090", "NVIDIA GeForce RTX 4090", 8, 9, false, 128, 24, 72, 2520,
     10501, 1008, 165.2},
    // NVIDIA H100 Tensor Core GPU Architecture 1.04 (2023); H100 data sheet.
    {"h100", "NVIDIA H100 SXM", 9, 0, false, 132, 80, 50, 1980, 2619, 3350,
     989.4},
    {"h100-pcie", "NVIDIA H100 PCIe", 9, 0, false, 114, 80, 50, 1755, 1593,
     2039, 756},
    // H100 NVL product brief PB-11773 (2024).
    {"h100-nvl", "NVIDIA H100 NVL", 9, 0, false, 132, 94, 50, 1785, 2619, 3938,
     835.5},
    // NVIDIA H20 data sheet (2023); multiprocessors and L2 as its driver says.
    {"h20", "NVIDIA H20", 9, 0, false, 78, 96, 60, 1980, 2619, 4000, 148},
    // NVIDIA H200 data sheet (2024); the rest, and how it places clusters, as
    // the driver of one says.
    {"h200",
     "NVIDIA H200",
     9,
     0,
     true,
     132,
     141,
     60,
     1980,
     3201,
     4800,
     989.4,
     {132, 66, 39, 30, 22, 17, 15, 15}},
    // NVIDIA GH200 Grace Hopper Superchip data sheet (2024), with HBM3.
    {"gh200", "NVIDIA GH200", 9, 0, false, 132, 96, 60, 1980, 2619, 4000,
     989.4},
    // NVIDIA Blackwell Architecture Technical Brief 1.1 (2024), table of HGX
    // and GB200: a B100 is a B200 at 700 W. Multiprocessors and L2 as drivers
    // say.
    {"b100", "NVIDIA B100", 10, 0, false, 148, 192, 126, 1965, 3996, 8000,
     1750},
    {"b200", "NVIDIA B200", 10, 0, true, 148, 192, 126, 1965, 3996, 8000, 2250},
    {"gb200", "NVIDIA GB200", 10, 0, false, 152, 186, 126, 2062, 3996, 8000,
     2500},
    // Inside NVIDIA Blackwell Ultra (developer.nvidia.com, 2025); HGX B300 and
    // GB300 NVL72 data sheets. Multiprocessors and L2 as those of B200 and
    // GB200.
    {"b300", "NVIDIA B300", 10, 3, true, 148, 288, 126, 1965, 3996, 8000, 2250},
    {"gb300", "NVIDIA GB300", 10, 3, false, 152, 288, 126, 2062, 3996, 8000,
     2500},
    // NVIDIA Jetson T5000 data sheet (2025): 2070 sparse fp4 TFLOP/s are an
    // eighth of that in f16. L2 as its driver says.
    {"thor", "NVIDIA Jetson AGX Thor", 11, 0, true, 20, 128, 32, 1575, 4266,
     273, 258.75},
    // NVIDIA RTX Blackwell GPU Architecture 1.1 (2025), appendix A.
    {"rtx5090", "NVIDIA GeForce RTX 5090", 12, 0, true, 170, 32, 96, 2407,
     14001, 1792, 209.5},
    // NVIDIA RTX PRO Blackwell GPU Architecture 1.0 (2025), Workstation
    // Edition.
    {"rtxpro6000", "NVIDIA RTX PRO 6000 Blackwell", 12, 0, false, 188, 96, 128,
     2617, 14001, 1792, 503.8},
    // NVIDIA DGX Spark data sheet (2025): a PFLOP/s of sparse fp4 is eight
    // times that in f16. Multiprocessors and L2 as its driver says.
    {"gb10", "NVIDIA GB10", 12, 1, true, 48, 128, 24, 2418, 4266, 273, 125},
};

static DeviceDescription describe(const Published &row) {
  DeviceDescription device = isa::describeArchitecture(row.major, row.minor);
  device.name = row.name;
  device.sms = row.sms;
  device.active_clusters = row.activeClusters;
  device.memory_bytes = row.memoryGiB * kGiB;
  device.l2_bytes = row.l2MiB * kMiB;
  device.sm_clock_mhz = row.smMhz;
  device.memory_clock_mhz = row.memoryMhz;
  device.memory_gb_per_s = row.gbPerS;
  device.f16_tflops = row.f16Tflops;
  return device;
}

namespace {
struct Known {
  std::string_view word;
  bool isUsual;
  DeviceDescription device;
};
} // namespace

static const std::vector<Known> &known() {
  static const std::vector<Known> all = [] {
    std::vector<Known> list;
    for (const Published &row : kPublished)
      list.push_back({row.word, row.isUsual, describe(row)});
    return list;
  }();
  return all;
}

/// The first that stands for its target and of which `accepts` is true.
template <typename Accepts>
static const DeviceDescription *findUsual(const Accepts &accepts) {
  for (const Known &row : known())
    if (row.isUsual && accepts(row.device))
      return &row.device;
  return nullptr;
}

static std::string usualTargets() {
  std::vector<std::string> names;
  for (const Known &row : known())
    if (row.isUsual)
      names.push_back(row.device.target());
  return fmt::format("{}", fmt::join(names, ", "));
}

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
  int number = 10 * compute_major + compute_minor;
  const isa::Architecture *row = isa::findArchitecture(number);
  return row ? isa::nativeTarget(*row).name() : fmt::format("sm_{}", number);
}

bool DeviceDescription::runs(std::string_view target) const {
  std::optional<isa::Target> needed = isa::findTarget(target);
  std::optional<isa::Target> own = isa::findTarget(this->target());
  if (needed && own)
    return isa::includes(*own, *needed);
  // A GPU that came later than Kiln runs what is common to all.
  return needed && !needed->variant &&
         needed->architecture->number <= 10 * compute_major + compute_minor;
}

bool DeviceDescription::has(std::string_view instruction) const {
  std::optional<isa::Target> own = isa::findTarget(target());
  return own && !isa::findLack(isa::spell(instruction), own, 0);
}

int DeviceDescription::resident_clusters(int ctas) const {
  auto known = static_cast<int>(active_clusters.size());
  if (ctas >= 1 && ctas <= known)
    return active_clusters[ctas - 1];
  int placed = known ? active_clusters.back() * known : sms;
  return std::max(1, placed / std::max(ctas, 1));
}

const DeviceDescription &DeviceDescription::h100() { return by_name("h100"); }
const DeviceDescription &DeviceDescription::h200() { return by_name("h200"); }
const DeviceDescription &DeviceDescription::b200() { return by_name("b200"); }

const DeviceDescription &DeviceDescription::by_name(std::string_view name) {
  for (const Known &row : known())
    if (row.word == name)
      return row.device;
  userError("there is no device description \"{}\"; there are {}", name,
            fmt::join(known_names(), ", "));
}

const DeviceDescription &
DeviceDescription::for_target(std::string_view target) {
  if (const DeviceDescription *found =
          findUsual([&](const DeviceDescription &device) {
            return device.target() == target;
          }))
    return *found;
  userError("there is no target \"{}\"; kernels are compiled for {}", target,
            usualTargets());
}

const DeviceDescription &DeviceDescription::with(TensorCore core) {
  return *findUsual([&](const DeviceDescription &device) {
    return device.tensor_core == core;
  });
}

const DeviceDescription &
DeviceDescription::to_simulate(std::string_view target) {
  if (h200().runs(target))
    return h200();
  if (const DeviceDescription *found = findUsual(
          [&](const DeviceDescription &device) { return device.runs(target); }))
    return *found;
  userError("no device that Kiln knows runs PTX of the target {}; they run {} "
            "and older targets without a letter",
            target, usualTargets());
}

std::vector<std::string_view> DeviceDescription::known_names() {
  std::vector<std::string_view> names;
  for (const Known &row : known())
    names.push_back(row.word);
  return names;
}

} // namespace kiln
