// Target: the table of architectures, and what follows from it.
//
// Limits are those of the CUDA C++ Programming Guide 13.0, "Technical
// Specifications per Compute Capability"; rates those of its "Arithmetic
// Instructions" and of the white papers of each generation; versions those of
// the PTX ISA 9.0, "Release Notes", which ptxas 13.0 confirms
// (tests/unit/isa/ptxas_answers.txt).
#include "isa/Target.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <vector>

namespace kiln::isa {

static constexpr TensorCore kMma = TensorCore::mma;
static constexpr TensorCore kWgmma = TensorCore::wgmma;
static constexpr TensorCore kTcgen05 = TensorCore::tcgen05;

// sm_101 became sm_110 with PTX 9.0: one GPU, one family.
static constexpr Architecture kArchitectures[] = {
    {10, 1, "Tesla", 10},
    {11, 1, "Tesla", 10},
    {12, 1, "Tesla", 12},
    {13, 1, "Tesla", 12},
    {20, 2, "Fermi", 20},
    {21, 2, "Fermi", 20},
    {30, 3, "Kepler", 30},
    {32, 3, "Kepler", 40},
    {35, 3, "Kepler", 31},
    {37, 3, "Kepler", 41},
    {50, 5, "Maxwell", 40, 0, 0, kMma, 0, 2048, 32, 64, 48},
    {52, 5, "Maxwell", 41, 0, 0, kMma, 0, 2048, 32, 96, 48},
    {53, 5, "Maxwell", 42, 0, 0, kMma, 0, 2048, 32, 64, 48},
    {60, 6, "Pascal", 50, 0, 0, kMma, 0, 2048, 32, 64, 48},
    {61, 6, "Pascal", 50, 0, 0, kMma, 0, 2048, 32, 96, 48},
    {62, 6, "Pascal", 50, 0, 0, kMma, 0, 2048, 32, 64, 48},
    {70, 7, "Volta", 60, 0, 0, kMma, 0, 2048, 32, 96, 96, 1, 1, 1024, 128},
    {72, 7, "Volta", 61, 0, 0, kMma, 0, 2048, 32, 96, 96, 1, 1, 1024, 128},
    {75, 7, "Turing", 63, 0, 0, kMma, 0, 1024, 16, 64, 64, 1, 1, 1024, 128},
    {80, 8, "Ampere", 70, 0, 0, kMma, 0, 2048, 32, 164, 163, 1, 1, 2048, 128},
    {86, 8, "Ampere", 71, 0, 0, kMma, 0, 1536, 16, 100, 99, 1, 1, 1024, 256},
    {87, 8, "Ampere", 74, 0, 0, kMma, 0, 1536, 16, 164, 163, 1, 1, 2048, 256},
    {88, 8, "Ampere", 73},
    {89, 8, "Ada", 78, 0, 0, kMma, 0, 1536, 24, 100, 99, 1, 1, 1024, 256},
    {90, 9, "Hopper", 78, 80, 0, kWgmma, 0, 2048, 32, 228, 227, 8, 16, 4096,
     256},
    {100, 10, "Blackwell", 86, 86, 88, kTcgen05, 512, 2048, 32, 228, 227, 8,
     16, 8192, 256},
    {101, 11, "Blackwell", 86, 86, 88, kTcgen05, 512, 1536, 24, 228, 227, 8,
     16, 8192, 256},
    {103, 10, "Blackwell", 88, 88, 88, kTcgen05, 512, 2048, 32, 228, 227, 8,
     16, 8192, 256},
    {110, 11, "Blackwell", 90, 90, 90, kTcgen05, 512, 1536, 24, 228, 227, 8,
     16, 8192, 256},
    {120, 12, "Blackwell", 87, 87, 88, kMma, 0, 1536, 24, 100, 99, 8, 8, 1024,
     256},
    {121, 12, "Blackwell", 88, 88, 88, kMma, 0, 1536, 24, 100, 99, 8, 8, 1024,
     256},
};

std::span<const Architecture> architectures() { return kArchitectures; }

const Architecture *findArchitecture(int number) {
  for (const Architecture &row : kArchitectures)
    if (row.number == number)
      return &row;
  return nullptr;
}

std::string Target::name() const {
  std::string text = fmt::format("sm_{}", architecture->number);
  if (variant)
    text += variant;
  return text;
}

int Target::since() const {
  if (variant == 'a')
    return architecture->specificSince;
  return variant == 'f' ? architecture->familySince : architecture->since;
}

std::optional<Target> findTarget(std::string_view name) {
  if (!name.starts_with("sm_"))
    return std::nullopt;
  name.remove_prefix(3);
  int number = 0;
  auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), number);
  std::string_view variant = name.substr(end - name.data());
  Target target{findArchitecture(number)};
  if (error != std::errc() || !target.architecture || variant.size() > 1)
    return std::nullopt;
  if (!variant.empty())
    target.variant = variant[0];
  bool isKnown = variant.empty() || variant == "a" || variant == "f";
  return isKnown && target.since() ? std::optional(target) : std::nullopt;
}

std::string targetNames() {
  std::vector<std::string> names;
  for (const Architecture &row : kArchitectures)
    for (char variant : {'\0', 'a', 'f'})
      if (Target target{&row, variant}; target.since())
        names.push_back(target.name());
  return fmt::format("{}", fmt::join(names, ", "));
}

bool includes(const Target &target, const Target &needed) {
  const Architecture &own = *target.architecture, &other = *needed.architecture;
  if (needed.variant == 'a')
    return target.variant == 'a' && own.number == other.number;
  if (needed.variant == 'f')
    return target.variant && own.family == other.family &&
           own.number >= other.number;
  return own.number >= other.number;
}

Target nativeTarget(const Architecture &architecture) {
  return {&architecture, architecture.specificSince ? 'a' : '\0'};
}

DeviceDescription describeArchitecture(int major, int minor) {
  DeviceDescription description;
  description.compute_major = major;
  description.compute_minor = minor;
  int number = 10 * major + minor;
  const Architecture *row = nullptr;
  for (const Architecture &known : kArchitectures)
    if (known.number <= number && (!row || known.number > row->number))
      row = &known;
  if (!row)
    return description;
  bool isKnown = row->number == number;
  description.tensor_core = isKnown ? row->tensorCore : TensorCore::mma;
  description.tensor_memory_columns = isKnown ? row->tensorMemoryColumns : 0;
  description.max_cluster_ctas = row->maxCluster;
  description.max_nonportable_cluster_ctas = row->maxNonportableCluster;
  description.f16_flops_per_clock = row->f16FlopsPerClock;
  description.f32_flops_per_clock = row->f32FlopsPerClock;
  // From 8.0 on, the system has a KiB of shared memory in each CTA.
  description.reserved_smem_per_cta_bytes = number >= 80 ? 1024 : 0;
  if (row->maxThreads) {
    description.max_threads_per_sm = row->maxThreads;
    description.max_ctas_per_sm = row->maxCtas;
    description.smem_per_sm_bytes = row->sharedKiB * 1024;
    description.max_smem_per_cta_bytes = row->maxSharedKiBOfCta * 1024;
  }
  return description;
}

} // namespace kiln::isa
