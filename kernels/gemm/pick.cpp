// pick: a schedule for a problem, from a short list by a simple cost.
//
// A tile's cost is the time its products take on the tensor cores, at the part
// of their rate that a tile of that shape reaches, plus what it takes to begin
// and to store; a problem's cost is that times the rounds its tiles need on the
// multiprocessors. Clusters are not on the list: on the H200 the tiles they
// share come from the L2 cache fast enough, and giving a slot back to another
// CTA costs more than it saves.
#include <kiln/gemm.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace kiln {

namespace {
struct Candidate {
  GemmKind kind;
  int tile_m, tile_n;
  double rate; ///< part of the tensor core's rate on long K
};
} // namespace

static constexpr std::array kCandidates{
    Candidate{GemmKind::cooperative, 128, 256, 1.00},
    Candidate{GemmKind::cooperative, 256, 128, 0.99},
    Candidate{GemmKind::pingpong, 128, 128, 0.97},
    Candidate{GemmKind::pingpong, 64, 256, 0.85},
    Candidate{GemmKind::pingpong, 64, 128, 0.68},
    Candidate{GemmKind::pingpong, 64, 64, 0.45},
};

/// K elements' worth of time to begin and end a tile.
static constexpr double kTileOverhead = 256;

/// The value, or a typical one where it is known at launch.
static double typical(const Dim &dim) {
  return dim.is_constant() ? static_cast<double>(dim.constant()) : 4096;
}

static double cost_of(const GemmProblem &problem, const Candidate &candidate,
                      int sms) {
  auto tiles = [](double extent, int tile) { return std::ceil(extent / tile); };
  bool is_swapped = problem.is_d_column_major;
  double m = typical(is_swapped ? problem.n : problem.m);
  double n = typical(is_swapped ? problem.m : problem.n);
  double count = tiles(m, candidate.tile_m) * tiles(n, candidate.tile_n) *
                 typical(problem.batch);
  double rounds = std::ceil(count / sms);
  double area = double(candidate.tile_m) * candidate.tile_n;
  return rounds * area * (typical(problem.k) / candidate.rate + kTileOverhead);
}

/// As many stages as fit, within reason.
static constexpr int kMostStages = 8;

GemmSchedule pick_schedule(const GemmProblem &problem,
                           const DeviceDescription &device) {
  GemmSchedule best;
  double least = std::numeric_limits<double>::infinity();
  for (const Candidate &candidate : kCandidates) {
    GemmSchedule schedule{.kind = candidate.kind,
                          .tile_m = candidate.tile_m,
                          .tile_n = candidate.tile_n,
                          .tile_k = 128 / size_bytes(problem.type)};
    schedule.stages = std::min(kMostStages, max_gemm_stages(problem, schedule));
    if (schedule.stages < 2)
      continue;
    double cost = cost_of(problem, candidate, device.sms);
    if (cost >= least)
      continue;
    least = cost;
    best = schedule;
  }
  return fit(problem, best);
}

} // namespace kiln
