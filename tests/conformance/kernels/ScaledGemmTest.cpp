// ScaledGemm: products with factors of 1x128 elements of A and 128x128 of B,
// and of whole tensors, in every schedule that has them, against float64.
#include "conformance/Conformance.h"
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
  for (Scaling scaling : {Scaling::blocks, Scaling::tensor}) {
    GemmProblem problem{.m = Dim::argument("m"),
                        .n = 136,
                        .k = Dim::argument("k"),
                        .type = e4m3,
                        .scaling = scaling};
    Kernel kernel = compile_checked(build_gemm(
        problem, GemmSchedule::parse("cooperative 128x128x128 stages=2")));
    OPEN_OR_SKIP(device);
    for (auto [m, k] : {std::pair{1, 16}, {130, 300}, {257, 128}})
      expect_gemm(device, kernel, problem, {m, 136, k}, m);
  }
}

// One factor of A and one of B, however the sums are made and go out.
TEST_P(ScaledGemm, OfTensors) {
  expect_gemms(
      GetParam(),
      {
          {"65x130x7 e4m3 scales=tensor", "multistage 64x128x32 stages=2"},
          {"70x40x144 e5m2 -> bf16 alpha beta bias=row act=relu scales=tensor",
           "multistage 64x40x64 stages=2 a-from=regs"},
          {"9x130x528 e4m3 -> bf16 beta bias=column act=gelu scales=tensor",
           "warp-specialized 64x16x128 stages=2 swap=on split-k=2"},
          {"129x100x333 e5m2 -> e4m3 alpha scales=tensor",
           "warp-specialized 128x96x64 stages=2 consumers=2 split-k=2"},
          {"200x136x272 e4m3 -> e4m3 batch=3 bias=column act=silu "
           "scales=tensor",
           "cooperative 128x128x128 stages=2"},
          {"200x136x272 e5m2 d=column scales=tensor",
           "cooperative 128x64x64 stages=2 cluster=2x1"},
          {"130x72x100 e4m3 -> f16 alpha scales=tensor",
           "cooperative 128x72x64 stages=2 repack=on"},
          {"192x300x640 e4m3 -> bf16 beta scales=tensor",
           "pingpong 64x128x128 stages=3"},
      });
  SKIP_WITHOUT_DEVICE();
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

// They cost nothing in the main loop.
TEST(ScaledGemmPick, TakesOfTensorsWhatItTakesOfNone) {
  for (const char *words :
       {"4096x4096x4096 e4m3 -> bf16", "16x4096x7168 e5m2"}) {
    GemmProblem problem = GemmProblem::parse(words), scaled = problem;
    scaled.scaling = Scaling::tensor;
    EXPECT_EQ(pick_schedule(scaled), pick_schedule(problem)) << words;
  }
}
