// pick: a schedule for a problem: of all that could do, the one that costs
// least (cost.h).
//
// What is tried is a grid of tiles and of the few other things that matter:
// who does what, how often K is divided, whether the transpose is computed. A
// schedule that the problem's layout or the device does not allow is left out
// when its turn comes.
#include "cost.h"
#include "operands.h"
#include "sums.h"

#include <kiln/error.h>

#include <algorithm>

namespace kiln {

using gemm::cost_of;
using gemm::KernelProblem;

/// As many stages as fit, within reason.
static constexpr int kMostStages = 12;

namespace {
struct Candidate {
  GemmSchedule schedule;
  double us;
};
} // namespace

/// Bytes of shared memory beside the slots, roughly.
static int output_bytes(const GemmProblem &problem,
                        const GemmSchedule &schedule) {
  int share = schedule.consumer_rows() * schedule.consumer_columns();
  if (gemm::uses_sums(schedule))
    return schedule.consumers * share * 9 / 2 + 1024;
  int subtile = 64 * std::min(schedule.consumer_columns() *
                                  size_bytes(problem.out),
                              128);
  return schedule.consumers * 2 * subtile + 2048;
}

/// The tiles a kind is tried with.
static std::vector<GemmSchedule> tiles_of(GemmKind kind) {
  std::vector<GemmSchedule> list;
  auto add = [&](int tile_m, int consumers, int first, int last, int step) {
    for (int tile_n = first; tile_n <= last; tile_n += step)
      list.push_back({.kind = kind,
                      .tile_m = tile_m,
                      .tile_n = tile_n,
                      .consumers = consumers});
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
  default:
    add(64, 1, 8, 128, 8);
    add(64, 1, 144, 256, 16);
    add(128, 2, 8, 128, 8);
    add(128, 2, 144, 256, 16);
  }
  return list;
}

/// How often K may be divided: never, where a CTA's part would be short.
static int most_parts(const GemmProblem &problem, const GemmSchedule &schedule,
                      const DeviceDescription &device) {
  constexpr int kShortest = 4; // K tiles
  if (!problem.k.is_constant() || schedule.is_persistent())
    return 1;
  std::int64_t tiles = problem.k.constant() / schedule.tile_k;
  return static_cast<int>(std::clamp<std::int64_t>(
      tiles / kShortest, 1, device.max_cluster_ctas));
}

/// The schedules that are tried, with what they cost.
static std::vector<Candidate> candidates(const GemmProblem &problem,
                                         const DeviceDescription &device) {
  std::vector<Candidate> list;
  int element_bytes = size_bytes(problem.type);
  bool uses_tma = KernelProblem(problem, {}).uses_tma();
  auto add = [&](GemmSchedule schedule) {
    int slot = (schedule.tile_m + schedule.tile_n) * schedule.tile_k *
                   element_bytes +
               16;
    schedule.stages =
        std::min(kMostStages, (device.max_smem_per_cta_bytes -
                               output_bytes(problem, schedule)) /
                                  slot);
    if (schedule.stages >= 2)
      list.push_back({schedule, cost_of(problem, schedule, device).total_us()});
  };
  for (GemmKind kind : {GemmKind::pingpong, GemmKind::cooperative,
                        GemmKind::warp_specialized})
    for (GemmSchedule schedule : tiles_of(kind))
      for (int k_bytes : {128, 256}) {
        schedule.tile_k = k_bytes / element_bytes;
        // Threads that copy are slow: what they bring in is used often.
        if (!uses_tma && (kind == GemmKind::warp_specialized ||
                          schedule.tile_n % 64 || k_bytes != 128))
          continue;
        if (uses_tma && schedule.is_persistent() && schedule.tile_m >= 128) {
          GemmSchedule pair = schedule;
          pair.cluster_m = 2;
          add(pair);
        }
        int parts = uses_tma ? most_parts(problem, schedule, device) : 1;
        for (schedule.split_k = 1; schedule.split_k <= parts;
             ++schedule.split_k)
          for (bool is_swapped : {false, true}) {
            schedule.is_swapped = is_swapped;
            if (uses_tma || !is_swapped)
              add(schedule);
          }
      }
  return list;
}

GemmSchedule pick_schedule(const GemmProblem &problem,
                           const DeviceDescription &device) {
  std::vector<Candidate> list = candidates(problem, device);
  std::stable_sort(
      list.begin(), list.end(),
      [](const Candidate &a, const Candidate &b) { return a.us < b.us; });
  for (Candidate &candidate : list) {
    GemmSchedule &schedule = candidate.schedule;
    try {
      schedule.stages =
          std::min(schedule.stages, max_gemm_stages(problem, schedule));
      if (schedule.stages >= 2)
        return fit(problem, schedule);
    } catch (const UserError &) {
      // Not for this layout or type.
    }
  }
  return fit(problem, {}); // says what is wrong with the problem
}

} // namespace kiln
