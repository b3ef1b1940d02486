// The cost of schedules, held against those that were measured on an H200.
#include "../../../kernels/gemm/cost.h"
#include "../../../kernels/gemm/tuned.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>

using namespace kiln;

namespace {
struct Measured {
  GemmSchedule schedule;
  double us, predicted_us = 0;
  std::ptrdiff_t rank = 0; ///< among the model's candidates
};
using ByProblem = std::map<std::string, std::vector<Measured>>;
} // namespace

/// By problem, with what the model says of each: those that it might choose, or
/// `has_all`.
static ByProblem measured(bool has_all = false) {
  std::ifstream file(KILN_SOURCE_DIR "/bench/results/h200/schedules.json");
  const nlohmann::json table = nlohmann::json::parse(file);
  constexpr int kMost = 300;
  std::map<std::string, std::vector<RankedSchedule>> candidates;
  ByProblem runs;
  for (const auto &run : table["runs"]) {
    std::string words = run["problem"];
    GemmProblem problem = GemmProblem::parse(words);
    GemmSchedule schedule;
    try {
      schedule =
          fit(problem, GemmSchedule::parse(run["schedule"].get<std::string>()));
    } catch (const UserError &) {
      continue; // D of any alignment needed no shared memory then
    }
    Measured one{schedule, run["us"]};
    if (!has_all) {
      auto &known = candidates[words];
      if (known.empty())
        known = rank_schedules(problem, kMost);
      auto found =
          std::ranges::find(known, schedule, &RankedSchedule::schedule);
      if (found == known.end())
        continue; // or in another order of tiles
      one.rank = found - known.begin();
    }
    one.predicted_us =
        gemm_kernel::cost_of(problem, schedule, DeviceDescription::h200())
            .total_us();
    runs[words].push_back(one);
  }
  return runs;
}

TEST(GemmCost, ChoosesWhatWasMeasuredFast) {
  // How much longer than the fastest of its problem the schedule takes that
  // seems cheapest: none by more than a third, or by 3 us where that is more; a
  // few percent in the mean.
  double sum = 0;
  int problems = 0;
  for (const auto &[words, runs] : measured()) {
    if (runs.size() < 5)
      continue; // too few to choose from
    Measured chosen = *std::ranges::min_element(runs, {}, &Measured::rank);
    double fastest = std::ranges::min_element(runs, {}, &Measured::us)->us;
    double ratio = chosen.us / fastest;
    EXPECT_LT(chosen.us, std::max(1.34 * fastest, fastest + 3))
        << words << ": " << chosen.schedule.to_string();
    sum += std::log(ratio);
    ++problems;
  }
  EXPECT_GT(problems, 80);
  EXPECT_LT(std::exp(sum / problems), 1.04);
}

TEST(GemmCost, ComesCloseToWhatWasMeasured) {
  double squares = 0;
  int count = 0;
  for (const auto &[words, runs] : measured())
    for (const Measured &run : runs) {
      squares += std::pow(std::log(run.predicted_us / run.us), 2);
      ++count;
    }
  EXPECT_GT(count, 1200);
  EXPECT_LT(std::sqrt(squares / count), 0.15);
}

TEST(GemmCost, TunedSchedulesAreTheFastestMeasured) {
  int found = 0;
  const auto &device = DeviceDescription::h200();
  for (const auto &[words, runs] : measured(true)) {
    GemmProblem problem = GemmProblem::parse(words);
    auto tuned = gemm_kernel::tuned_schedule(problem, device);
    if (!tuned)
      continue;
    ++found;
    EXPECT_EQ(pick_schedule(problem, device), *tuned);
    double best = runs.front().us, own = 0;
    for (const Measured &run : runs) {
      best = std::min(best, run.us);
      if (run.schedule == *tuned && (own == 0 || run.us < own))
        own = run.us;
    }
    EXPECT_GT(own, 0) << words << " was not measured with "
                      << tuned->to_string();
    EXPECT_LE(own, 1.02 * best) << words;
  }
  EXPECT_GE(found, 9);
  GemmProblem decode = GemmProblem::parse("16x4096x14336 bf16 -> bf16 tn");
  EXPECT_FALSE(gemm_kernel::tuned_schedule(decode, DeviceDescription::h100()));
}

TEST(GemmCost, PicksWithoutIdleMultiprocessors) {
  auto pick = [](const char *problem) {
    return pick_schedule(GemmProblem::parse(problem));
  };
  EXPECT_GT(pick("256x256x16384 bf16 -> bf16 tn").split_k, 1);
  EXPECT_TRUE(pick("16x4096x14336 bf16 -> bf16 tn").is_swapped);
  EXPECT_EQ(pick("1x6144x4096 bf16 -> bf16 tn").kind, GemmKind::vector);
  EXPECT_EQ(pick("4096x4096x4096 bf16 -> bf16 tn").split_k, 1);
  // K at run time cannot be divided; it can where rows are copied.
  EXPECT_EQ(pick("256x256xk bf16 -> bf16 tn").split_k, 1);
  EXPECT_GT(pick("256x256x16383 bf16 -> bf16 tn").split_k, 1);
}

TEST(GemmCost, NeighboursShareWhatTheirClusterDoesNot) {
  auto check = [](const char *words, Raster pairs_of_rows, Raster of_columns,
                  int group) {
    int rows = 0, columns = 0;
    for (const RankedSchedule &one :
         rank_schedules(GemmProblem::parse(words), 400)) {
      const GemmSchedule &schedule = one.schedule;
      if (schedule.cluster_m * schedule.cluster_n == 1 || schedule.tile_n < 128)
        continue;
      bool is_pair_of_rows = schedule.cluster_m == 2;
      ++(is_pair_of_rows ? rows : columns);
      EXPECT_EQ(schedule.raster, is_pair_of_rows ? pairs_of_rows : of_columns)
          << words << ": " << schedule.to_string();
      EXPECT_EQ(schedule.raster_group, group) << schedule.to_string();
    }
    EXPECT_GT(rows, 0);
    EXPECT_GT(columns, 0);
  };
  check("8192x8192x8192 bf16 -> bf16 tn", Raster::along_m, Raster::along_n, 16);
  // All at once: line by line.
  check("1024x1024x2048 bf16 -> bf16 tn", Raster::along_n, Raster::along_m, 1);
  // Without clusters, those that share the larger operand.
  auto first = [](const char *words) {
    return rank_schedules(GemmProblem::parse(words), 1).front().schedule;
  };
  EXPECT_EQ(first("4096x256x7168 bf16 -> bf16 tn").raster, Raster::along_n);
  EXPECT_EQ(first("4096x256x7168 bf16 -> bf16 tn").raster_group, 1);
}

TEST(GemmCost, NearbySchedulesAreOthersAndFit) {
  const char *problems[] = {
      "128x1280x8192 bf16 -> bf16 tn", "4096x4096x4096 bf16 -> bf16 nt",
      "164x22x7207 bf16 -> bf16 nt", "64x2112x7168 e4m3 -> bf16 tn", "mxnxk"};
  for (const char *words : problems) {
    GemmProblem problem = GemmProblem::parse(words);
    GemmSchedule known = pick_schedule(problem);
    std::vector<RankedSchedule> near = nearby_schedules(problem, known);
    EXPECT_GE(near.size(), 5u) << words;
    for (std::size_t i = 0; i < near.size(); ++i) {
      const GemmSchedule &one = near[i].schedule;
      EXPECT_EQ(fit(problem, one), one);
      EXPECT_NE(one, known) << words;
      EXPECT_GT(near[i].cost.total_us(), 0);
      for (std::size_t j = 0; j < i; ++j)
        EXPECT_NE(one, near[j].schedule) << words << ": " << one.to_string();
    }
  }
  GemmProblem vector = GemmProblem::parse("1x6144x4096 bf16 -> bf16 tn");
  EXPECT_TRUE(nearby_schedules(vector, pick_schedule(vector)).empty());
  // A tile beside the fastest is among them, K divided anew.
  GemmProblem few = GemmProblem::parse("128x1280x8192 bf16 -> bf16 tn");
  GemmSchedule from = fit(
      few, {.tile_m = 64, .stages = 8, .split_k = 6, .is_split_by_grid = true});
  bool has_narrower = false;
  for (const RankedSchedule &one : nearby_schedules(few, from))
    has_narrower |= one.schedule.tile_n == 120 && one.schedule.split_k > 1;
  EXPECT_TRUE(has_narrower);
}
