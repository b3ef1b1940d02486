// cost: the arithmetic of it.
#include "cost.h"
#include "output.h"

#include <algorithm>
#include <cmath>

namespace kiln::gemm {

namespace {

// Of the tensor core and its shared memory.
constexpr double kSmemBytesPerClock = 128;
constexpr double kSmemShare = 0.947; ///< clocks of it that count
constexpr double kStepClocks = 14.1; ///< of a narrow wgmma, besides N / 4
constexpr double kTileStepClocks = 7.11;

// Of loads.
constexpr double kLoadBytesPerClock = 70.5; ///< of one multiprocessor
constexpr double kLatencyClocks = 1148;
constexpr double kHeldSlots = 1.54; ///< that consumers keep from being loaded
constexpr double kFillClocks = 1.85, kFillBytesPerClock = 40.2;
/// Rows that begin in the middle of a sector of 32 bytes.
constexpr double kMisalignment = 2.27, kSectorBytes = 32;

// Of the way out: by subtiles, and through sums in shared memory.
constexpr double kStoreClocks = 816, kStoreClocksPerElement = 0.0193;
constexpr double kSubtileClocks = 289;
constexpr double kSumsClocks = 1891, kSumsClocksPerElement = 0.192;
constexpr double kSumsClocksPerPart = 147;
/// What a cooperative schedule does not hide of a store behind its next loads.
constexpr double kUnhidden = 0.793;

// Of the device.
constexpr double kClockShare = 0.840;  ///< of its boost clock
constexpr double kMemoryShare = 0.933; ///< of its bandwidth
constexpr double kLaunchUs = 2.49, kClusterUs = 0.972, kClusterCtaUs = 0.113;
/// How much two limits that are close to each other add up.
constexpr double kSharpness = 2.01;

/// The value, or a typical one where it is known at launch.
double typical(const Dim &dim) {
  return dim.is_constant() ? static_cast<double>(dim.constant()) : 4096;
}

double tiles(double extent, int tile) { return std::ceil(extent / tile); }

/// The sizes as the kernel's tiles see them.
struct Sizes {
  double m, n, k, batch;

  explicit Sizes(const GemmProblem &computed)
      : m(typical(computed.m)), n(typical(computed.n)), k(typical(computed.k)),
        batch(typical(computed.batch)) {}
};

/// Clocks of all K tiles of one CTA.
double multiply_clocks(const KernelProblem &computed,
                       const GemmSchedule &schedule, double k_tiles) {
  int element_bytes = size_bytes(computed.problem.type);
  int columns = schedule.consumer_columns();
  double k_bytes = double(schedule.tile_k) * element_bytes;
  // One wgmma: 64 rows, `columns`, 32 bytes of K.
  double wgmmas = double(schedule.tile_m) / 64 * (schedule.tile_n / columns) *
                  (k_bytes / 32);
  double core = wgmmas * std::max(columns / 2.0, kStepClocks + columns / 4.0);
  double slot_bytes = (schedule.tile_m + schedule.tile_n) * k_bytes;
  double smem = (wgmmas * (64 + columns) * 32 + slot_bytes) /
                kSmemBytesPerClock * kSmemShare;
  auto slowness = [&](const StoredMatrix &matrix) {
    double pitch_bytes = typical(matrix.stride) * element_bytes;
    return std::fmod(pitch_bytes, kSectorBytes) != 0 ? kMisalignment : 1;
  };
  double load =
      (double(schedule.tile_m) / schedule.cluster_n * slowness(computed.a()) +
       double(schedule.tile_n) / schedule.cluster_m * slowness(computed.b())) *
      k_bytes / kLoadBytesPerClock;
  double ahead = std::max(
      std::min<double>(schedule.stages, k_tiles) - kHeldSlots, 0.4);
  return k_tiles * (std::max({core, smem, load, kLatencyClocks / ahead}) +
                    kTileStepClocks);
}

double store_clocks(const GemmSchedule &schedule, Type out) {
  double elements = double(schedule.tile_m) * schedule.tile_n;
  if (uses_sums(schedule))
    return kSumsClocks + elements * kSumsClocksPerElement +
           schedule.split_k * kSumsClocksPerPart;
  double subtiles = double(schedule.consumer_rows()) / 64 *
                    schedule.consumer_columns() /
                    subtile_columns(schedule, out);
  return kStoreClocks + elements * kStoreClocksPerElement +
         subtiles * kSubtileClocks;
}

} // namespace

double Cost::total_us() const {
  return launch_us + std::pow(std::pow(tiles_us, kSharpness) +
                                  std::pow(memory_us, kSharpness),
                              1 / kSharpness);
}

Cost cost_of(const GemmProblem &problem, const GemmSchedule &schedule,
             const DeviceDescription &device) {
  KernelProblem computed(problem, schedule);
  Sizes sizes(computed.problem);
  int element_bytes = size_bytes(problem.type);
  int cluster = schedule.cluster_m * schedule.cluster_n * schedule.split_k;
  double blocks =
      std::ceil(tiles(sizes.m, schedule.tile_m) / schedule.cluster_m) *
      std::ceil(tiles(sizes.n, schedule.tile_n) / schedule.cluster_n) *
      sizes.batch;
  double rounds = std::ceil(blocks / device.resident_clusters(cluster));
  double k_tiles =
      std::ceil(tiles(sizes.k, schedule.tile_k) / schedule.split_k);
  double multiply = multiply_clocks(computed, schedule, k_tiles);
  double store = store_clocks(schedule, problem.out);
  double fill = kFillClocks + double(schedule.tile_m + schedule.tile_n) *
                                  schedule.tile_k * element_bytes /
                                  kFillBytesPerClock;
  double clocks = 0;
  switch (schedule.kind) {
  case GemmKind::pingpong: // stores are hidden, but for the last
    clocks = fill + rounds * multiply + store;
    break;
  case GemmKind::cooperative:
    clocks = fill + rounds * (multiply + kUnhidden * store) +
             (1 - kUnhidden) * store;
    break;
  default:
    clocks = rounds * (fill + multiply + store);
  }
  double bytes = sizes.batch * ((sizes.m + sizes.n) * sizes.k * element_bytes +
                                sizes.m * sizes.n * size_bytes(problem.out));
  Cost cost;
  cost.launch_us =
      kLaunchUs + (cluster > 1 ? kClusterUs + cluster * kClusterCtaUs : 0);
  cost.tiles_us = clocks / (device.sm_clock_mhz * kClockShare);
  cost.memory_us = bytes / (device.memory_gb_per_s * kMemoryShare) * 1e-3;
  return cost;
}

} // namespace kiln::gemm
