// Probes: small kernels that ask the hardware one question each.
//
// The recorder (record.cpp) runs them on an H200 and keeps the answers in
// h200.json; GoldenTest replays them on the simulator and compares. A probe
// makes its inputs itself, from fill_random and seeds or from lists of edge
// values, so that only answers are kept.
#pragma once

#include <kiln/run/device.h>
#include <kiln/measure/reference.h>
#include <kiln/language/memory/tensor_map.h>

#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>

namespace kiln::golden {

using Bytes = std::vector<std::uint8_t>;

/// How far the simulator may be from the hardware where bits need not be equal;
/// NaNs and infinities must agree.
struct Near {
  Type type = Type::f32; ///< of the output's elements
  double absolute = 0;
  double relative = 0;
  std::string reason = {}; ///< where the bound comes from
};

/// A tensor map over one of the probe's buffers.
struct ProbeMap {
  TensorMap map;  ///< its address is filled in when the probe runs
  int buffer = 0; ///< 0: the output; 1..: an input
};

/// One launch. The entry `probe` takes the address of the output, then those of
/// the inputs, then the tensor maps.
struct Probe {
  std::string group, name;
  std::string ptx = {};
  std::uint32_t ctas = 1, threads = 32, cluster = 1, smemBytes = 0;
  std::vector<Bytes> inputs = {};
  std::vector<ProbeMap> maps = {};
  std::size_t outputBytes = 0;   ///< every byte is kPoison before the launch
  std::size_t rowBytes = 0;      ///< one hash for each; 0: one for all
  std::optional<Near> near = {}; ///< left out: bit for bit
  /// The finding that stands for a trap of the hardware.
  std::string trap = {};
  /// Why the simulator is known to differ; empty: it must agree.
  std::string differs = {};
};

inline constexpr std::uint8_t kPoison = 0xcd;

/// All of them, with different names.
std::vector<Probe> probes();

// The units of the machine, a file each.
void addTmaProbes(std::vector<Probe> &list);
void addWgmmaProbes(std::vector<Probe> &list);
void addMatrixProbes(std::vector<Probe> &list);
void addConversionProbes(std::vector<Probe> &list);
void addApproximationProbes(std::vector<Probe> &list);
void addMbarrierProbes(std::vector<Probe> &list);
void addClusterProbes(std::vector<Probe> &list);
void addPracticeProbes(std::vector<Probe> &list);
void addReleasedProbes(std::vector<Probe> &list);
void addSparseProbes(std::vector<Probe> &list);
void addTensorCoreProbes(std::vector<Probe> &list);
void addRandomProbes(std::vector<Probe> &list);

/// fill_random into fresh bytes.
Bytes randomBytes(Type type, std::size_t count, std::uint64_t seed,
                  double lo = -1, double hi = 1);
template <typename T> Bytes bytesOf(const std::vector<T> &values) {
  auto *first = reinterpret_cast<const std::uint8_t *>(values.data());
  return Bytes(first, first + values.size() * sizeof(T));
}

/// A module whose entry has loaded its parameters: %out, %in1, %in2, ... are
/// global addresses, %map0, ... generic ones of the maps, %t the thread in its
/// CTA, and %smem the shared address of the dynamic memory, aligned to 1024
/// bytes if it is 1024 or more. Registers of `body` that it declares itself.
std::string moduleText(int inputs, int maps, const std::string &body);

/// Run a probe; the output. Throws RuntimeError where the hardware traps; on
/// the simulator findings are for the caller to judge.
Bytes runProbe(Device &device, const Probe &probe, LaunchResult &result);

/// What is kept of an output: the bytes in hexadecimal where they are few or
/// only near, else a hash of each row.
std::vector<std::string> summary(const Probe &probe, const Bytes &output);
Bytes fromHex(const std::string &text);

} // namespace kiln::golden
