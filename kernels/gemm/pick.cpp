// pick: a schedule for a problem: the one that was measured to be fastest
// (tuned.h); else, of all that could do, the one that costs least (cost.h).
//
// What is tried is a grid of tiles and of the few other things that matter:
// who does what, how often K is divided, whether the transpose is computed. A
// schedule that the problem's layout or the device does not allow is left out
// when its turn comes.
#include "checks.h"
#include "cost.h"
#include "gemm/device/output.h"
#include "gemm/main_loops.h"
#include "tuned.h"

#include <kiln/base/error.h>

#include <algorithm>

namespace kiln {

using gemm_kernel::cost_of;
using gemm_kernel::KernelProblem;
using gemm_kernel::typical;

/// Bytes of shared memory beside the slots, roughly.
static int output_bytes(const GemmProblem &problem,
                        const GemmSchedule &schedule, bool has_tma) {
  if (!has_tma)
    return 1024; // all that goes out lies over the slots
  if (gemm_kernel::uses_sums(schedule)) {
    int share = schedule.consumer_rows() * schedule.consumer_columns();
    return schedule.is_persistent() ? schedule.consumers * share * 9 / 2 + 1024
                                    : 1024; // they lie over the slots
  }
  KernelProblem computed(problem, schedule);
  int columns = gemm_kernel::subtile_columns(computed, schedule);
  int buffer = computed.stores_by_tma()
                   ? 2 * 64 * columns * size_bytes(problem.out)
                   : staged_tile(problem.out, 64, columns).bytes();
  return schedule.consumers * buffer + 2048;
}

/// The tiles a kind is tried with.
static std::vector<GemmSchedule> tiles_of(GemmKind kind) {
  std::vector<GemmSchedule> list;
  auto add = [&](int tile_m, int consumers, int first, int last, int step,
                 GemmSplit split = GemmSplit::m) {
    for (int tile_n = first; tile_n <= last; tile_n += step)
      list.push_back({.kind = kind,
                      .tile_m = tile_m,
                      .tile_n = tile_n,
                      .consumers = consumers,
                      .split = split});
  };
  switch (kind) {
  case GemmKind::pingpong:
    add(64, 2, 64, 256, 32);
    add(128, 2, 64, 192, 16);
    break;
  case GemmKind::cooperative:
    add(128, 2, 8, 256, 8);
    add(256, 2, 64, 192, 16);
    break;
  case GemmKind::multistage:
    add(64, 1, 16, 128, 16);
    add(64, 1, 160, 256, 32);
    add(128, 1, 32, 128, 16);
    add(128, 2, 128, 256, 32, GemmSplit::n);
    add(256, 2, 64, 128, 32);
    break;
  default:
    add(64, 1, 8, 128, 8);
    add(64, 1, 144, 256, 16);
    add(128, 2, 8, 128, 8);
    add(128, 2, 144, 256, 16);
    add(256, 2, 64, 192, 16);
  }
  return list;
}

/// K tiles of a part of K, at least.
static constexpr int kShortestPart = 4;

static bool is_known(const GemmProblem &problem) {
  return problem.m.is_constant() && problem.n.is_constant() &&
         problem.k.is_constant() && problem.batch.is_constant();
}

/// How often K may be divided: never, where a CTA's part would be short.
static int most_parts(const GemmProblem &problem, const GemmSchedule &schedule,
                      const DeviceDescription &device) {
  if (!problem.k.is_constant() || schedule.is_persistent())
    return 1;
  std::int64_t tiles = problem.k.constant() / schedule.tile_k;
  return static_cast<int>(std::clamp<std::int64_t>(tiles / kShortestPart, 1,
                                                   device.max_cluster_ctas));
}

/// How many CTAs of the grid can divide K of each tile, so that all of them are
/// there at once: few tiles with a long K have more than a cluster holds.
static int most_of_grid(const GemmProblem &problem,
                        const GemmSchedule &schedule,
                        const DeviceDescription &device) {
  if (!is_known(problem) ||
      schedule.kind != gemm_kernel::main_loop_of(device).split_kind)
    return 1;
  auto tiles = KernelProblem(problem, schedule).tiles(schedule).constant();
  return static_cast<int>(
      std::min({device.sms / tiles,
                problem.k.constant() / schedule.tile_k / kShortestPart,
                std::int64_t{gemm_kernel::kMostOfGrid}}));
}

/// Whether no CTA has to wait until others have ended: those that are there
/// would copy for it.
static bool are_all_at_once(const GemmProblem &problem,
                            const GemmSchedule &schedule,
                            const DeviceDescription &device) {
  int cluster = schedule.cluster_ctas();
  Dim ctas =
      KernelProblem(problem, schedule).tiles(schedule) * schedule.split_k;
  return ctas.constant() <= std::int64_t{device.resident_clusters(cluster)} *
                                cluster * schedule.occupancy;
}

static GemmSchedule split_by_grid(GemmSchedule schedule, int parts) {
  schedule.split_k = parts;
  schedule.is_split_by_grid = true;
  return schedule;
}

/// How many CTAs of it a multiprocessor can hold: of small tiles several, so
/// that one loads while another stores. 0: not one has the registers.
static int most_ctas(const GemmProblem &problem, const GemmSchedule &schedule,
                     bool uses_tma, int producer,
                     const DeviceDescription &device) {
  int beside = gemm_kernel::registers_beside_sums(problem, schedule, device);
  constexpr int kWarpgroup = 128;
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  int sums = rows * columns / kWarpgroup;
  if (schedule.kind == GemmKind::multistage)
    return std::min(4, device.registers_per_sm / (sums + beside) /
                           (schedule.consumers * kWarpgroup));
  auto holds = [&](int ctas) {
    int groups = schedule.consumers + 1;
    int at_entry = device.registers_per_sm / ctas / (groups * kWarpgroup);
    int left = groups * (at_entry / 8 * 8) - producer;
    return std::min(left / schedule.consumers / 8 * 8,
                    device.max_consumer_registers) >= sums + beside;
  };
  bool is_alone = schedule.kind != GemmKind::warp_specialized ||
                  schedule.split_k > 1 || schedule.consumers > 1;
  int ctas = is_alone ? 1 : uses_tma ? 2 : 3;
  while (ctas > 0 && !holds(ctas))
    --ctas;
  return ctas;
}

/// The order of the tiles. What runs at once shall need little, so that it is
/// found in L2; and what neighbours load at the same time costs less.
/// Of the two operands a cluster loads one for its CTAs, so its neighbours
/// shall share the other.
static void choose_raster(const GemmProblem &problem,
                          const DeviceDescription &device,
                          GemmSchedule &schedule) {
  KernelProblem computed(problem, schedule);
  double m = typical(computed.problem.m), n = typical(computed.problem.n);
  double k = typical(computed.problem.k);
  if (m <= schedule.tile_m * schedule.cluster_m ||
      n <= schedule.tile_n * schedule.cluster_n)
    return; // there is one order
  auto take = [&](Raster raster, int group) {
    schedule.raster = raster;
    schedule.raster_group = group;
  };
  bool shares_a = schedule.cluster_n > schedule.cluster_m;
  bool shares_b = schedule.cluster_m > schedule.cluster_n;
  auto take_lines = [&](bool is_along_n) {
    take(is_along_n ? Raster::along_n : Raster::along_m, 1);
  };
  // All at once: those that share the larger operand are neighbours.
  if (is_known(problem) && are_all_at_once(problem, schedule, device))
    return take_lines(shares_b || (!shares_a && m > n));
  if (!schedule.is_persistent() || schedule.is_swapped)
    return;
  auto bytes = [&](double extent) {
    return extent * k * size_bytes(problem.type);
  };
  auto stays = [&](double bytes) {
    return bytes <= static_cast<double>(device.l2_bytes) / 3;
  };
  // Tiles of few steps: operands and D come by at the same rate. Where A stays,
  // B is walked through once; where both do, D goes out line by line.
  constexpr double kShortestK = 512, kShortK = 2048;
  if (n >= 4 * m && k <= kShortK && stays(bytes(m)))
    return take(Raster::along_m, shares_b ? 4 : 1);
  if (k <= kShortestK && stays(bytes(m) + bytes(n)))
    return take_lines(!shares_a);
  constexpr int kUsual = 8, kWide = 16;
  if (shares_b)
    return take(Raster::along_m, kWide);
  auto rows_at_once = [&](int group) {
    return double(group) * schedule.tile_m +
           double(device.sms) / group * schedule.tile_n;
  };
  bool is_wide = rows_at_once(kWide) < rows_at_once(kUsual);
  take(Raster::along_n, shares_a || is_wide ? kWide : kUsual);
}

/// The schedules that are tried, with what they cost: where rows that TMA
/// cannot take are copied first, or tile by tile.
static void add_candidates(const GemmProblem &problem, bool is_repacked,
                           const DeviceDescription &device,
                           std::vector<RankedSchedule> &list) {
  int element_bytes = size_bytes(problem.type);
  const gemm_kernel::MainLoopKind &loop = gemm_kernel::main_loop_of(device);
  KernelProblem computed(problem, {.is_repacked = is_repacked}, loop.has_tma);
  bool uses_tma = computed.uses_tma();
  int producer = computed.producer_registers();
  auto add_one = [&](GemmSchedule schedule) {
    schedule.is_repacked = is_repacked;
    if (is_repacked && !schedule.is_persistent() &&
        !are_all_at_once(problem, schedule, device))
      return;
    int slot =
        (schedule.tile_m + schedule.tile_n) * schedule.tile_k * element_bytes +
        16;
    int smem = std::min(device.max_smem_per_cta_bytes,
                        device.smem_per_sm_bytes / schedule.occupancy -
                            device.reserved_smem_per_cta_bytes);
    schedule.stages =
        std::min(loop.most_stages,
                 (smem - output_bytes(problem, schedule, loop.has_tma)) / slot);
    choose_raster(problem, device, schedule);
    if (schedule.stages >= 2)
      list.push_back({schedule, cost_of(problem, schedule, device)});
  };
  auto add = [&](GemmSchedule schedule) {
    schedule.is_repacked = is_repacked;
    int most = most_ctas(problem, schedule, uses_tma, producer, device);
    for (schedule.occupancy = 1; schedule.occupancy <= most;
         ++schedule.occupancy)
      add_one(schedule);
  };
  for (GemmKind kind : loop.kinds)
    for (GemmSchedule schedule : tiles_of(kind))
      for (int k_bytes : loop.k_bytes) {
        schedule.tile_k = k_bytes / element_bytes;
        schedule.is_swapped = false;
        // Threads that copy are slow: what they bring in is used often.
        if (!uses_tma && (schedule.tile_n % 32 || k_bytes != 128))
          continue;
        if (uses_tma && schedule.is_persistent() && schedule.tile_m >= 128) {
          GemmSchedule pair = schedule;
          pair.cluster_m = 2;
          if (loop.has_pairs)
            pair.cta_group = 2;
          add(pair);
          std::swap(pair.cluster_m, pair.cluster_n);
          if (loop.has_multicast)
            add(pair);
          // Two CTAs that multiply together load as much of A and half of B.
          bool has_two = !problem.m.is_constant() ||
                         problem.m.constant() > schedule.tile_m;
          if (loop.has_pairs && has_two)
            continue;
        }
        int parts = most_parts(problem, schedule, device);
        for (schedule.split_k = 1; schedule.split_k <= parts;
             ++schedule.split_k)
          for (bool is_swapped : {false, true}) {
            schedule.is_swapped = is_swapped;
            add(schedule);
          }
        schedule.split_k = 1;
        for (bool is_swapped : {false, true}) {
          schedule.is_swapped = is_swapped;
          int all = most_of_grid(problem, schedule, device);
          for (int parts : {all, all / 2})
            if (parts > 1)
              add(split_by_grid(schedule, parts));
        }
      }
}

static std::vector<RankedSchedule> candidates(const GemmProblem &problem,
                                              const DeviceDescription &device) {
  std::vector<RankedSchedule> list;
  add_candidates(problem, false, device, list);
  if (!KernelProblem(problem, {}).uses_tma() && is_known(problem))
    add_candidates(problem, true, device, list);
  if (problem.m == Dim(1) || problem.n == Dim(1))
    try {
      GemmSchedule vector = fit(problem, {.kind = GemmKind::vector}, device);
      list.push_back({vector, cost_of(problem, vector, device)});
    } catch (const UserError &) {
      // Not for this layout or type.
    }
  return list;
}

std::vector<RankedSchedule> rank_schedules(const GemmProblem &problem, int most,
                                           const DeviceDescription &device) {
  const gemm_kernel::MainLoopKind &loop = gemm_kernel::main_loop_of(device);
  std::vector<RankedSchedule> list = candidates(problem, device), fitting;
  std::stable_sort(list.begin(), list.end(),
                   [](const RankedSchedule &a, const RankedSchedule &b) {
                     return a.cost.total_us() < b.cost.total_us();
                   });
  for (RankedSchedule &one : list) {
    if (static_cast<int>(fitting.size()) >= most)
      break;
    if (one.schedule.kind == GemmKind::vector) { // it is complete
      fitting.push_back(one);
      continue;
    }
    try {
      one.schedule.stages = std::min(
          loop.most_stages, max_gemm_stages(problem, one.schedule, device));
      if (one.schedule.stages >= 2)
        fitting.push_back({fit(problem, one.schedule, device), one.cost});
    } catch (const UserError &) {
      // Not for this layout or type.
    }
  }
  if (fitting.empty() && most > 0) { // or fit says what is wrong
    GemmSchedule usual = fit(problem, {.kind = loop.kinds.back()}, device);
    fitting.push_back({usual, cost_of(problem, usual, device)});
  }
  return fitting;
}

GemmSchedule pick_schedule(const GemmProblem &problem,
                           const DeviceDescription &device) {
  if (auto kept = gemm_kernel::kept_schedule(problem, device))
    return *kept;
  if (auto tuned = gemm_kernel::tuned_schedule(problem, device))
    return *tuned;
  return rank_schedules(problem, 1, device).front().schedule;
}

} // namespace kiln
