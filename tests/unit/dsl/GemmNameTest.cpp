// GemmName: different kernels never share a name.
#include "RandomGemm.h"

#include <gtest/gtest.h>

#include <map>
#include <regex>
#include <set>

namespace kiln {

static GemmProblem square(GemmLayout layout) {
  return {.m = 4096, .n = 4096, .k = 4096, .layout = layout};
}

TEST(GemmName, OfTheRowMajorKernelHasNoSuffix) {
  GemmSchedule schedule{.stages = 3};
  EXPECT_EQ(gemm_kernel_name(square(GemmLayout::tt), schedule),
            "warpspecialized_4096x4096x4096_128x128x64_3");
  schedule.kind = GemmKind::multistage;
  EXPECT_EQ(gemm_kernel_name(square(GemmLayout::tt), schedule),
            "multistage_4096x4096x4096_128x128x64_3");
  schedule.kind = GemmKind::cooperative;
  EXPECT_EQ(gemm_kernel_name(square(GemmLayout::tt), schedule),
            "cooperative_4096x4096x4096_128x128x64_3");
  schedule.kind = GemmKind::pingpong;
  EXPECT_EQ(gemm_kernel_name(square(GemmLayout::tt), schedule),
            "pingpong_4096x4096x4096_128x128x64_3");
}

// What `fit` fills in is no difference: the kernel is the same.
TEST(GemmName, IsTheSameOnceFitted) {
  for (GemmLayout layout : {GemmLayout::tt, GemmLayout::tn})
    for (GemmKind kind : {GemmKind::multistage, GemmKind::warp_specialized}) {
      GemmSchedule schedule{.kind = kind, .stages = 3};
      GemmProblem problem = square(layout);
      EXPECT_EQ(gemm_kernel_name(problem, fit(problem, schedule)),
                gemm_kernel_name(problem, schedule));
    }
}

TEST(GemmName, EveryFieldThatIsNotTheDefaultShows) {
  std::set<std::string> names;
  int count = 0;
  auto add = [&](const GemmProblem &problem, const GemmSchedule &schedule) {
    names.insert(gemm_kernel_name(problem, schedule));
    ++count;
  };
  GemmProblem problem = square(GemmLayout::tt);
  for (auto layout :
       {GemmLayout::tt, GemmLayout::tn, GemmLayout::nn, GemmLayout::nt})
    add(square(layout), {});
  problem.type = Type::bf16;
  add(problem, {});
  problem.out = Type::bf16;
  add(problem, {});
  problem.m = Dim::argument("m");
  add(problem, {});
  add(problem, {.stages = 5});
  add(problem, {.tile_n = 64});
  add(problem, {.kind = GemmKind::multistage});
  add(problem, {.producer_registers = 24, .consumer_registers = 240});
  EXPECT_EQ(static_cast<int>(names.size()), count);
}

TEST(GemmName, DifferentKernelsHaveDifferentNames) {
  RandomGemm random(7);
  std::regex identifier("[a-zA-Z][a-zA-Z0-9_]*");
  std::map<std::string, std::string> seen;
  for (int i = 0; i < 5000; ++i) {
    GemmProblem problem = random.problem();
    // The sums of a type have a usual type, which need not be said.
    if (problem.accumulate == f32 && is_float(problem.type))
      problem.accumulate.reset();
    GemmSchedule schedule = random.schedule();
    std::string name = gemm_kernel_name(problem, schedule);
    std::string text = problem.to_string() + " " + schedule.to_string();
    EXPECT_TRUE(std::regex_match(name, identifier)) << name;
    auto [entry, is_new] = seen.emplace(name, text);
    EXPECT_EQ(entry->second, text) << name;
  }
  EXPECT_GT(seen.size(), 4900u);
}

} // namespace kiln
