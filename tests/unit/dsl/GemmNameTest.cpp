// GemmName: different kernels never share a name.
#include <kiln/gemm.h>

#include <gtest/gtest.h>

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

} // namespace kiln
