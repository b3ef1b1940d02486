// ScaledGemm: products with factors of 1x128 elements of A and 128x128 of B, in
// every schedule that has them, against float64.
#include "Conformance.h"
#include "GemmRun.h"

using namespace conformance;

class ScaledGemm : public OnDevice {};
INSTANTIATE_ON_DEVICES(ScaledGemm);

TEST_P(ScaledGemm, IsRight) {
  struct Choice {
    const char *schedule;
    GemmSize size;
    bool has_finish = false;
  };
  unsigned seed = 0;
  for (const Choice &choice :
       {Choice{"warp-specialized 64x128x128 stages=2", {65, 130, 7}},
        Choice{"warp-specialized 128x64x128 stages=2 consumers=2 split-k=2",
               {129, 200, 528}},
        Choice{"cooperative 128x128x128 stages=2", {300, 264, 400}, true},
        Choice{"cooperative 128x128x128 stages=2 cluster=2x1",
               {200, 136, 272, 2}},
        Choice{"pingpong 64x128x128 stages=3", {192, 300, 640}}}) {
    GemmProblem problem{
        .m = choice.size.m,
        .n = choice.size.n,
        .k = choice.size.k,
        .batch = choice.size.batch,
        .type = e4m3,
        .out = choice.has_finish ? bf16 : f32,
        .has_alpha = choice.has_finish,
        .bias = choice.has_finish ? GemmBias::column : GemmBias::none,
        .act = choice.has_finish ? Activation::silu : Activation::none,
        .scaling = Scaling::blocks};
    SCOPED_TRACE(problem.to_string() + " | " + choice.schedule);
    Kernel kernel = compile_checked(
        build_gemm(problem, GemmSchedule::parse(choice.schedule)));
    OPEN_OR_SKIP(device);
    expect_gemm(device, kernel, problem, choice.size, ++seed);
  }
}

// One kernel for every M and K.
TEST_P(ScaledGemm, OfRuntimeSizes) {
  GemmProblem problem{.m = Dim::argument("m"),
                      .n = 136,
                      .k = Dim::argument("k"),
                      .type = e4m3,
                      .scaling = Scaling::blocks};
  Kernel kernel = compile_checked(build_gemm(
      problem, GemmSchedule::parse("cooperative 128x128x128 stages=2")));
  OPEN_OR_SKIP(device);
  for (auto [m, k] : {std::pair{1, 16}, {130, 300}, {257, 128}})
    expect_gemm(device, kernel, problem, {m, 136, k}, m);
}

TEST(ScaledGemmPick, FitsEverySize) {
  for (int m : {1, 64, 4096})
    for (int n : {8, 4096}) {
      GemmProblem problem{
          .m = m, .n = n, .k = 2048, .type = e4m3, .scaling = Scaling::blocks};
      GemmSchedule schedule = pick_schedule(problem);
      EXPECT_EQ(schedule.tile_k, 128) << schedule.to_string();
      EXPECT_EQ(fit(problem, schedule), schedule);
    }
}
