// cost: the arithmetic of it.
#include "cost.h"
#include "gemm/device/output.h"
#include "gemm/main_loops.h"

#include <algorithm>
#include <cmath>

namespace kiln::gemm_kernel {

namespace {

// Of the tensor core and its shared memory.
constexpr double kSmemBytesPerClock = 128;
constexpr double kSmemShare = 0.738; ///< clocks of it that count
constexpr double kStepClocks = 32;   ///< of a narrow wgmma, besides N / 4
constexpr double kTileStepClocks = 4.53;
/// Of a warpgroup alone, which issues, waits and hands slots back in turn.
constexpr double kOneWarpgroupClocks = 63.2;
/// Of a K tile of mma.sync, whose threads meet before it: of each warpgroup of a
/// CTA that has the multiprocessor for itself, and where another CTA multiplies
/// meanwhile. Measured on an H200, whose mma.sync is half as fast as its wgmma.
constexpr double kAloneMeetClocks = 270, kMeetClocks = 60;
/// How sharply the slowest unit stands out: the more so, the more slots are
/// loaded ahead.
constexpr double kUnitSharpness = 3.09, kUnitSharpnessPerSlot = 0.603;

// Of loads.
constexpr double kLoadBytesPerClock = 86.8; ///< of one multiprocessor
constexpr double kCrowdedLoad = 1.19; ///< where more than half of them load
constexpr double kLatencyClocks = 1120;
constexpr double kLoadWait = 0.363; ///< of a load's clocks, with it
constexpr double kHeldSlots = 1.31; ///< that consumers keep from being loaded
constexpr double kFillBytesPerClock = 161;
/// Rows that begin in the middle of a sector of 32 bytes, or of a line.
constexpr double kMisalignment = 2.35, kSectorBytes = 32;
constexpr double kLineMisalignment = 1.97, kLineBytes = 128;
/// Of a line of a tile that lies outside of the matrix, which TMA fills.
constexpr double kOutsideClocks = 1.34;

// Of copies by threads: words of a warpgroup, and the wait for those in flight.
constexpr double kCopyBytesPerClock = 20.2, kCopyWaitBytesPerClock = 90.1;
constexpr double kCopyLatencyClocks = 632;
constexpr double kCopyRows = 128, kPanelRows = 64; ///< in flight

// Of the way out: by subtiles, which TMA stores or threads do, and through sums
// in shared memory.
struct StoreClocks {
  double per_element, per_subtile;
};
constexpr double kStoreClocks = 1160;
constexpr StoreClocks kTmaStore{0.0395, 427};
constexpr StoreClocks kThreadStore{0.1, 27.6};
constexpr double kSumsClocks = 760, kSumsClocksPerElement = 0.348;
constexpr double kSumsClocksPerPart = 47.7;
/// Through a workspace, where the CTAs that divide K wait for each other.
constexpr double kPartsClocks = 3210, kPartsClocksPerElement = 0.589;
constexpr double kPartsClocksPerPart = 1.73;
/// What a cooperative schedule does not hide of a store behind its next loads.
constexpr double kUnhidden = 1.13;

// Of a vector schedule: elements of D that a multiprocessor has at once, a
// step's wait, and what comes before and behind.
constexpr double kVectorRows = 64;
constexpr double kVectorStepClocks = 700, kVectorClocks = 1500;

// Of the device.
constexpr double kClockShare = 0.876; ///< of its boost clock, at full use
/// What takes long meets the limit of power, of which every byte that is loaded
/// takes its part.
constexpr double kPowerUs = 3850, kPowerPerByte = 0.00563;
/// Of its bandwidth, where all multiprocessors read; where at most half of them
/// do, so much more of it is left for each launch; where some are idle beside
/// busy neighbours, it is read unevenly.
constexpr double kMemoryShare = 0.92, kFewReaders = 1.13, kUneven = 0.455;
/// Of the bytes of an operand that are read again by CTAs beside the first, of
/// which so many count: what is not in L2 yet is asked for by each.
constexpr double kReadAgain = 0.255, kMostReaders = 5.07;
/// Of a byte that is written, beside one that is read: in rows of 16 bytes, of
/// words, and others.
constexpr double kWrite = 1.64, kWriteWords = 2.29, kWriteElements = 2.7;
/// A launch begins while the one before it ends.
constexpr double kLaunchUs = 0.694, kClusterUs = 1.99, kClusterCtaUs = 0.0344;
/// How much two limits that are close to each other add up.
constexpr double kSharpness = 4.1;

// Of operands that are repacked: the way there and back, and all CTAs' wait.
constexpr double kRepackShare = 0.684;        ///< of the memory's bandwidth
constexpr double kRepackBytesPerClock = 26.3; ///< of one multiprocessor
constexpr double kRepackUs = 3.32, kRepackUsPerCta = 0.00173;

double tiles(double extent, int tile) { return std::ceil(extent / tile); }

/// The sizes as the kernel's tiles see them.
struct Sizes {
  double m, n, k, batch;

  explicit Sizes(const GemmProblem &computed)
      : m(typical(computed.m)), n(typical(computed.n)), k(typical(computed.k)),
        batch(typical(computed.batch)) {}
};

/// How much longer it takes to load the rows of tiles that do not begin where
/// lines do: `step` elements from one tile to the next along them. Those of a
/// copy begin there.
double misalignment(const StoredMatrix &matrix, const GemmProblem &problem,
                    bool suits_tma, double step) {
  double pitch = suits_tma ? typical(matrix.stride) : 0;
  if (step >= typical(matrix.columns))
    step = 0; // there is one tile
  auto divides = [&](double bytes) {
    int size = size_bytes(problem.type);
    return std::fmod(pitch * size, bytes) == 0 &&
           std::fmod(step * size, bytes) == 0;
  };
  return divides(kLineBytes)     ? 1
         : divides(kSectorBytes) ? kLineMisalignment
                                 : kMisalignment;
}

/// Whether more than half of the device's multiprocessors are busy.
bool is_crowded(double sms, const DeviceDescription &device) {
  return sms > device.sms / 2.0;
}

/// How long the slowest of them takes, with what the others add to it.
double together(std::initializer_list<double> units, double sharpness) {
  double slowest = std::max(units), sum = 0;
  for (double unit : units)
    sum += std::pow(unit / slowest, sharpness);
  return slowest * std::pow(sum, 1 / sharpness);
}

/// Clocks in which the tensor core is busy with a K tile: by the rate of the
/// device, or, of wgmma and tcgen05, that of the H200.
double busy_clocks(const GemmProblem &problem, const GemmSchedule &schedule,
                   const DeviceDescription &device) {
  double flops = 2.0 * schedule.tile_m * schedule.tile_n * schedule.tile_k;
  double halves = 2.0 / size_bytes(problem.type); // of f16
  constexpr int kFitted = 4096;
  bool is_mma = device.tensor_core == TensorCore::mma;
  return flops / ((is_mma ? device.f16_flops_per_clock : kFitted) * halves);
}

/// What a K tile takes of the tensor core, reads of shared memory, how much of
/// that counts, and what comes on top where so many CTAs share a
/// multiprocessor.
struct CoreWork {
  double clocks, bytes, share, step;
};

CoreWork core_work(const KernelProblem &computed, const GemmSchedule &schedule,
                   double ctas, const DeviceDescription &device) {
  int columns = schedule.consumer_columns();
  double k_bytes = double(schedule.tile_k) * size_bytes(computed.problem.type);
  // One wgmma, or what four warps multiply at once: 64 rows, `columns`, 32
  // bytes of K.
  double steps = double(schedule.tile_m) / 64 *
                 (double(schedule.tile_n) / columns) * (k_bytes / 32);
  if (device.tensor_core == TensorCore::mma) {
    // Each warp reads B, for all its rows.
    double blocks = double(schedule.consumer_rows()) / 64;
    return {busy_clocks(computed.problem, schedule, device),
            steps * (64 + 4 * columns / blocks) * 32, 1,
            ctas > 1 ? ctas * kMeetClocks
                     : schedule.consumers * kAloneMeetClocks};
  }
  double clocks = steps * std::max(columns / 2.0, kStepClocks + columns / 4.0);
  bool is_pingpong = schedule.kind == GemmKind::pingpong;
  if (schedule.tile_m == 64 && (is_pingpong || schedule.consumers == 1))
    clocks += kOneWarpgroupClocks;
  return {clocks, steps * (64 + columns) * 32, kSmemShare, kTileStepClocks};
}

/// Clocks of all K tiles of each of `ctas` that share a multiprocessor; a
/// producer goes on with the next of `rounds` tiles.
double multiply_clocks(const KernelProblem &computed,
                       const GemmSchedule &schedule, double k_tiles,
                       double rounds, double ctas, bool has_neighbours,
                       const DeviceDescription &device) {
  double k_bytes = double(schedule.tile_k) * size_bytes(computed.problem.type);
  CoreWork work = core_work(computed, schedule, ctas, device);
  double core = work.clocks;
  double slot_bytes = (schedule.tile_m + schedule.tile_n) * k_bytes;
  double smem = (work.bytes + slot_bytes) / kSmemBytesPerClock * work.share;
  double load = 0, wait = 0;
  double rate = kLoadBytesPerClock / (has_neighbours ? kCrowdedLoad : 1);
  auto add_load = [&](const StoredMatrix &matrix, bool uses_tma, bool suits_tma,
                      bool is_k_major, int rows, int sharers) {
    double step = is_k_major ? schedule.tile_k : rows;
    if (!is_k_major)
      rows = stored_extent(computed.problem, schedule, rows);
    double bytes = rows * k_bytes;
    if (!uses_tma) {
      load += bytes / kCopyBytesPerClock;
      wait += bytes / kCopyWaitBytesPerClock +
              std::ceil(rows / (is_k_major ? kCopyRows : kPanelRows)) *
                  kCopyLatencyClocks;
      return;
    }
    load += bytes / sharers / rate *
            misalignment(matrix, computed.problem, suits_tma, step);
    double outside = is_k_major ? rows - typical(matrix.rows) : 0;
    load += std::max(outside, 0.0) * k_bytes / kLineBytes * kOutsideClocks;
  };
  const GemmProblem &problem = computed.problem;
  add_load(computed.a(), computed.a_uses_tma(), computed.a_suits_tma(),
           problem.a_is_k_major(), schedule.tile_m, schedule.cluster_n);
  add_load(computed.b(), computed.b_uses_tma(), computed.b_suits_tma(),
           problem.b_is_k_major(), schedule.tile_n, schedule.cluster_m);
  double ahead = std::max(
      std::min<double>(schedule.stages, k_tiles * rounds) - kHeldSlots, 0.4);
  double arrival = (kLatencyClocks + kLoadWait * ctas * load) / ahead;
  return k_tiles *
         (together({ctas * core, ctas * smem, ctas * load + wait, arrival},
                   kUnitSharpness + kUnitSharpnessPerSlot * ahead) +
          work.step);
}

/// Copying the operands that TMA cannot take.
double repack_us(const KernelProblem &computed, const GemmSchedule &schedule,
                 double sms, const DeviceDescription &device) {
  if (!computed.is_repacked)
    return 0;
  double elements = 0;
  const Dim &batch = computed.problem.batch;
  auto add = [&](const StoredMatrix &matrix, bool suits_tma) {
    if (!suits_tma)
      elements += typical(matrix.rows) * typical(matrix.columns) *
                  (matrix.has_batch(batch) ? typical(batch) : 1);
  };
  add(computed.a(), computed.a_suits_tma());
  add(computed.b(), computed.b_suits_tma());
  double bytes = elements * size_bytes(computed.problem.type);
  double memory_us = 2 * bytes / (device.memory_gb_per_s * kRepackShare) * 1e-3;
  double copy_us = bytes / (sms * kRepackBytesPerClock) /
                   (device.sm_clock_mhz * kClockShare);
  return kRepackUs + sms * schedule.occupancy * kRepackUsPerCta +
         std::max(memory_us, copy_us);
}

double store_clocks(const KernelProblem &computed,
                    const GemmSchedule &schedule) {
  double elements = double(schedule.tile_m) * schedule.tile_n;
  if (schedule.is_split_by_grid)
    return kPartsClocks + elements * kPartsClocksPerElement +
           schedule.split_k * kPartsClocksPerPart;
  if (uses_sums(schedule))
    return kSumsClocks + elements * kSumsClocksPerElement +
           schedule.split_k * kSumsClocksPerPart;
  double subtiles =
      double(schedule.consumer_rows()) / 64 *
      tiles(schedule.consumer_columns(), subtile_columns(computed, schedule));
  const StoreClocks &store =
      computed.stores_by_tma() ? kTmaStore : kThreadStore;
  return kStoreClocks + elements * store.per_element +
         subtiles * store.per_subtile;
}

/// Of a vector schedule: warps wait for their pieces, turn by turn.
double vector_clocks(const Sizes &sizes, const GemmSchedule &schedule,
                     const DeviceDescription &device) {
  double rounds = std::ceil(sizes.m * sizes.n * sizes.batch /
                            (double(device.sms) * kVectorRows));
  return rounds * (std::ceil(sizes.k / schedule.tile_k) * kVectorStepClocks +
                   kVectorClocks);
}

/// What a byte of D counts beside one that is read.
double write_weight(const GemmProblem &problem) {
  double row_bytes = typical(problem.stride_d()) * size_bytes(problem.out);
  auto divides = [&](double bytes) { return std::fmod(row_bytes, bytes) == 0; };
  return divides(16) ? kWrite : divides(4) ? kWriteWords : kWriteElements;
}

/// Over the bus: every byte once, and operands again that several clusters of
/// CTAs read at about the same time.
double moved_bytes(const Sizes &sizes, const GemmProblem &problem,
                   const GemmSchedule &schedule) {
  auto reads = [&](double extent, int tile, int cluster) {
    if (schedule.kind == GemmKind::vector)
      return 1.0;
    double readers = std::ceil(tiles(extent, tile) / cluster);
    return 1 + kReadAgain * std::min(readers - 1, kMostReaders);
  };
  double of_a = reads(sizes.n, schedule.tile_n, schedule.cluster_n);
  double of_b = reads(sizes.m, schedule.tile_m, schedule.cluster_m);
  return sizes.batch *
         ((sizes.m * of_a + sizes.n * of_b) * sizes.k *
              size_bytes(problem.type) +
          sizes.m * sizes.n * size_bytes(problem.out) * write_weight(problem));
}

/// Of `bytes` by so many multiprocessors.
double memory_us(double bytes, double sms, const DeviceDescription &device) {
  double share = is_crowded(sms, device) ? std::pow(sms / device.sms, kUneven)
                                         : kFewReaders;
  return bytes / (device.memory_gb_per_s * kMemoryShare * share) * 1e-3;
}

} // namespace

GemmCost cost_of(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device) {
  KernelProblem computed(problem, schedule, main_loop_of(device).has_tma);
  Sizes sizes(computed.problem);
  GemmCost cost;
  double bytes = moved_bytes(sizes, problem, schedule);
  if (schedule.kind == GemmKind::vector) {
    cost.launch_us = kLaunchUs;
    cost.memory_us = memory_us(bytes, device.sms, device);
    cost.tiles_us = vector_clocks(sizes, schedule, device) /
                    (device.sm_clock_mhz * kClockShare);
    return cost;
  }
  int element_bytes = size_bytes(problem.type);
  int cluster = schedule.cluster_ctas();
  double blocks =
      std::ceil(tiles(sizes.m, schedule.tile_m) / schedule.cluster_m) *
      std::ceil(tiles(sizes.n, schedule.tile_n) / schedule.cluster_n) *
      sizes.batch * (schedule.is_split_by_grid ? schedule.split_k : 1);
  double at_once = device.resident_clusters(cluster);
  double k_tiles =
      std::ceil(tiles(sizes.k, schedule.tile_k) / schedule.split_k);
  double store = store_clocks(computed, schedule);
  double sms = std::min(blocks, at_once) * cluster;
  double fill = double(schedule.tile_m + schedule.tile_n) * schedule.tile_k *
                element_bytes / kFillBytesPerClock;
  double rounds = std::ceil(blocks / at_once);
  // One tile each of so many CTAs of a multiprocessor.
  auto multiply = [&](double ctas) {
    return multiply_clocks(computed, schedule, k_tiles,
                           schedule.is_persistent() ? rounds : 1, ctas,
                           is_crowded(sms, device), device);
  };
  // All but the last store, when nothing is left to load.
  double clocks = 0;
  switch (schedule.kind) {
  case GemmKind::pingpong: { // one stores while the other multiplies or stores
    double one = multiply(1);
    clocks = fill + rounds * std::max(one, (one + store) / 2);
    break;
  }
  case GemmKind::cooperative:
    clocks = fill + rounds * multiply(1) + (rounds - 1) * kUnhidden * store;
    break;
  default: {
    double full = std::floor(rounds / schedule.occupancy);
    double last = rounds - full * schedule.occupancy;
    // Of CTAs side by side one multiplies while another fills or stores.
    auto round = [&](double ctas) {
      return multiply(ctas) + (fill + store) / ctas;
    };
    clocks = full * round(schedule.occupancy);
    if (last > 0)
      clocks += round(last);
    store /= last > 0 ? last : schedule.occupancy;
    clocks -= store;
  }
  }
  cost.launch_us =
      kLaunchUs + (cluster > 1 ? kClusterUs + cluster * kClusterCtaUs : 0);
  cost.memory_us = memory_us(bytes, sms, device);
  cost.repack_us = repack_us(computed, schedule, sms, device);
  // The busier the tensor core, the lower the clock that its power leaves.
  double use = std::min(
      1.0, rounds * k_tiles * busy_clocks(computed.problem, schedule, device) /
               (clocks + store));
  double clocks_per_us = device.sm_clock_mhz * (1 - (1 - kClockShare) * use);
  cost.tiles_us = clocks / clocks_per_us;
  double bytes_per_clock = 4096.0 / schedule.tile_m + 4096.0 / schedule.tile_n;
  cost.tiles_us *= 1 + kPowerPerByte * bytes_per_clock * use * cost.tiles_us /
                           (cost.tiles_us + kPowerUs);
  cost.store_us = store / clocks_per_us;
  return cost;
}

} // namespace kiln::gemm_kernel

namespace kiln {

double GemmCost::total_us() const {
  return launch_us + repack_us + store_us +
         gemm_kernel::together({tiles_us, memory_us}, gemm_kernel::kSharpness);
}

} // namespace kiln
