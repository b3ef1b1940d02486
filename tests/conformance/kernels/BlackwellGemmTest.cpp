// BlackwellGemm: the GEMM family for Blackwell, every pair of choices under all
// orders of effects. Simulated and assembled; no such GPU was there to run it.
#include "conformance/AllOrders.h"
#include "CoveringArray.h"
#include "GemmRun.h"

#include <kiln/run/assemble.h>

using namespace conformance;

namespace {

/// A schedule that divides the work among consumers in some way.
struct Shape {
  GemmKind kind;
  int tile_m, tile_n;
  GemmSplit split = GemmSplit::m;
  int consumers = 0;
  int cta_group = 1;
  int instruction_n = 0;
  bool is_swapped = false;
};

constexpr Shape kShapes[] = {
    {GemmKind::warp_specialized, 128, 64},
    {GemmKind::warp_specialized, 128, 32, GemmSplit::m, 1, 1, 16},
    {GemmKind::cooperative, 256, 32},
    {GemmKind::cooperative, 128, 64, GemmSplit::n, 2},
    {GemmKind::pingpong, 128, 64},
    {GemmKind::cooperative, 128, 64, GemmSplit::m, 1, 2},
    {GemmKind::cooperative, 256, 64, GemmSplit::m, 2, 2},
    {GemmKind::pingpong, 128, 64, GemmSplit::m, 2, 2},
    {GemmKind::warp_specialized, 128, 64, GemmSplit::m, 1, 2},
    {GemmKind::pingpong, 128, 16, GemmSplit::m, 2, 1, 0, true},
};
constexpr Type kTypes[] = {f16, bf16, tf32, e4m3, e5m2, i8, u8};
constexpr Type kOuts[] = {f32, f16, bf16, e4m3, i32};
constexpr GemmLayout kLayouts[] = {GemmLayout::tn, GemmLayout::nn,
                                   GemmLayout::nt, GemmLayout::tt};
constexpr int kStages[] = {1, 2, 4};

/// What is done to D on its way out, and how it lies.
struct Finish {
  bool has_alpha = false, has_beta = false;
  GemmBias bias = GemmBias::none;
  Activation act = Activation::none;
  bool is_column_major = false;
  bool has_gaps = false; ///< in A, B, C and D
  int batch = 1;
};
const Finish kFinishes[] = {
    {},
    {.has_alpha = true, .bias = GemmBias::row},
    {.has_beta = true, .act = Activation::relu, .is_column_major = true},
    {.bias = GemmBias::column, .act = Activation::gelu, .batch = 2},
    {.has_alpha = true, .has_beta = true, .has_gaps = true},
    {.act = Activation::silu, .is_column_major = true},
};
/// Multiples and none, less than a tile, one K tile and several.
constexpr GemmSize kSizes[] = {{1, 1, 1},       {128, 64, 64},  {129, 65, 7},
                               {200, 136, 264}, {384, 192, 64}, {256, 128, 320},
                               {127, 72, 129},  {136, 8, 72}};

const std::vector<int> kFactors = {std::size(kShapes),   std::size(kTypes),
                                   std::size(kOuts),     std::size(kLayouts),
                                   std::size(kFinishes), std::size(kStages),
                                   std::size(kSizes)};

/// A B200 of few multiprocessors, so that small problems are persistent ones.
DeviceDescription few() {
  DeviceDescription device = DeviceDescription::b200();
  device.sms = 4;
  return device;
}

/// A row of the array as a problem and a schedule.
struct Choice {
  GemmProblem problem;
  GemmSchedule schedule;
  GemmSize size;

  explicit Choice(const Row &row);
  bool fits() const {
    try {
      fit(problem, schedule, DeviceDescription::b200());
      return true;
    } catch (const UserError &) {
      return false;
    }
  }
};

Choice::Choice(const Row &row) {
  const Shape &shape = kShapes[row[0]];
  const Finish &finish = kFinishes[row[4]];
  size = kSizes[row[6]];
  size.batch = finish.batch;
  problem = {.m = size.m,
             .n = size.n,
             .k = size.k,
             .batch = size.batch,
             .type = kTypes[row[1]],
             .out = kOuts[row[2]],
             .layout = kLayouts[row[3]],
             .is_d_column_major = finish.is_column_major,
             .has_alpha = finish.has_alpha,
             .has_beta = finish.has_beta,
             .bias = finish.bias,
             .act = finish.act};
  if (finish.has_gaps) {
    problem.lda = problem.stride_a() + 16;
    problem.ldb = problem.stride_b() + 3;
    problem.ldc = problem.stride_c() + 1;
    problem.ldd = problem.stride_d() + 16;
  }
  schedule = {.kind = shape.kind,
              .tile_m = shape.tile_m,
              .tile_n = shape.tile_n,
              .tile_k = 128 / size_bytes(problem.type),
              .stages = kStages[row[5]],
              .instruction_n = shape.instruction_n,
              .consumers = shape.consumers,
              .split = shape.split,
              .cluster_m = shape.cta_group,
              .is_swapped = shape.is_swapped,
              .cta_group = shape.cta_group};
}

Kernel compiled(const GemmProblem &problem, const GemmSchedule &schedule,
                const DeviceDescription &device) {
  return compile(build_gemm(problem, schedule, {}, device),
                 {.use_cache = false});
}

} // namespace

TEST(BlackwellGemm, EveryPairOfChoices) {
  CoveringArray array(kFactors,
                      [](const Row &row) { return Choice(row).fits(); });
  EXPECT_GT(array.rows().size(), 60u);
  auto device = open_all_orders(few());
  unsigned number = 0;
  for (const Row &row : array.rows()) {
    Choice choice(row);
    SCOPED_TRACE(choice.problem.to_string() + " | " +
                 choice.schedule.to_string());
    Kernel kernel = compiled(choice.problem, choice.schedule, few());
    EXPECT_EQ(kernel.target, "sm_100a");
    expect_gemm(*device, kernel, choice.problem, choice.size, ++number);
  }
}

// Shared memory is counted before anything is built, and counted right.
TEST(BlackwellGemm, WhatFitsIsBuilt) {
  const DeviceDescription &device = DeviceDescription::b200();
  std::mt19937 random(1);
  for (int i = 0; i < 40; ++i) {
    Row row;
    for (int size : kFactors)
      row.push_back(static_cast<int>(random() % size));
    Choice choice(row);
    choice.problem.k = Dim::argument("k"); // which would limit the stages
    GemmSchedule &schedule = choice.schedule;
    schedule.stages = max_gemm_stages(choice.problem, schedule, device);
    SCOPED_TRACE(choice.problem.to_string() + " | " + schedule.to_string());
    if (!choice.fits())
      continue;
    EXPECT_NO_THROW(build_gemm(choice.problem, schedule, {}, device));
    ++schedule.stages;
    EXPECT_FALSE(choice.fits());
  }
}

TEST(BlackwellGemm, OneKernelForEveryM) {
  GemmProblem problem{.m = Dim::argument("m"), .n = 72, .k = 136, .out = f16};
  GemmSchedule schedule = pick_schedule(problem, few());
  Kernel kernel = compiled(problem, schedule, few());
  auto device = open_all_orders(few());
  for (int m : {1, 127, 128, 129, 300, 513})
    expect_gemm(*device, kernel, problem, {m, 72, 136}, m);
}

// What is picked for large problems has two accumulators, of a pair of CTAs.
TEST(BlackwellGemm, PicksForLargeProblems) {
  for (Type type : {f16, e4m3}) {
    GemmProblem problem{.m = 8192, .n = 8192, .k = 8192, .type = type};
    GemmSchedule schedule = pick_schedule(problem, DeviceDescription::b200());
    EXPECT_EQ(schedule.kind, GemmKind::pingpong) << schedule.to_string();
    EXPECT_EQ(schedule.cta_group, 2) << schedule.to_string();
  }
}

TEST(BlackwellGemm, Assembles) {
  if (!find_ptxas())
    GTEST_SKIP() << "there is no ptxas here";
  for (const Shape &shape : kShapes)
    for (Type type : {f16, tf32, e4m3, i8}) {
      GemmProblem problem{.m = 1024, .n = 1024, .k = 1024, .type = type};
      GemmSchedule schedule{.kind = shape.kind,
                            .tile_m = shape.tile_m,
                            .tile_n = shape.tile_n,
                            .tile_k = 128 / size_bytes(type),
                            .consumers = shape.consumers,
                            .split = shape.split,
                            .cluster_m = shape.cta_group,
                            .is_swapped = shape.is_swapped,
                            .cta_group = shape.cta_group};
      compile_checked(
          build_gemm(problem, schedule, {}, DeviceDescription::b200()));
    }
}

namespace {
/// A product with factors, and a schedule of each kind.
struct ScaledChoice {
  Type type;
  Scaling scaling;
  const char *schedule;
  GemmSize size;
  bool has_finish = false;
};
} // namespace

// Types, kinds and pairs of CTAs; odd sizes, a batch, a K of part of a piece.
TEST(BlackwellGemm, WithFactors) {
  auto device = open_all_orders(few());
  unsigned seed = 0;
  for (const ScaledChoice &choice : {
           ScaledChoice{e4m3,
                        Scaling::mx,
                        "warp-specialized 128x128x128 stages=2",
                        {129, 65, 7}},
           {e4m3,
            Scaling::mx,
            "pingpong 128x128x128 stages=2",
            {300, 264, 400}},
           {e5m2,
            Scaling::mx,
            "cooperative 256x128x128 stages=2 consumers=2",
            {200, 136, 272, 2},
            true},
           {e4m3,
            Scaling::mx,
            "pingpong 128x128x128 stages=2 cluster=2x1 cta-group=2",
            {384, 200, 336}},
           {e2m3,
            Scaling::mx,
            "warp-specialized 128x256x128 stages=2",
            {130, 300, 176}},
           {e3m2,
            Scaling::none,
            "pingpong 128x128x128 stages=2",
            {130, 136, 176}},
           {e2m1,
            Scaling::mx,
            "pingpong 128x128x256 stages=2",
            {300, 130, 544}},
           {e2m1,
            Scaling::mx,
            "warp-specialized 128x128x128 stages=3",
            {64, 64, 32}},
           {e2m1,
            Scaling::nv,
            "pingpong 128x128x256 stages=2 cluster=2x1 cta-group=2",
            {257, 264, 608}},
           {e2m1,
            Scaling::nv,
            "cooperative 128x256x256 stages=2 consumers=1",
            {200, 520, 320, 2},
            true},
           {e4m3,
            Scaling::tensor,
            "warp-specialized 128x48x64 stages=2",
            {129, 65, 7}},
           {e5m2,
            Scaling::tensor,
            "pingpong 128x64x128 stages=2 cluster=2x1 cta-group=2",
            {384, 200, 336}},
           {e4m3,
            Scaling::tensor,
            "cooperative 256x32x64 stages=2 consumers=2",
            {200, 136, 272, 2},
            true},
           {e5m2,
            Scaling::tensor,
            "pingpong 128x16x64 stages=2 swap=on",
            {12, 300, 100},
            true},
       }) {
    GemmProblem problem{
        .m = choice.size.m,
        .n = choice.size.n,
        .k = choice.size.k,
        .batch = choice.size.batch,
        .type = choice.type,
        .out = choice.has_finish ? bf16 : f32,
        .is_d_column_major = choice.has_finish,
        .has_alpha = choice.has_finish,
        .bias = choice.has_finish ? GemmBias::row : GemmBias::none,
        .act = choice.has_finish ? Activation::relu : Activation::none,
        .scaling = choice.scaling};
    SCOPED_TRACE(problem.to_string() + " | " + choice.schedule);
    EXPECT_EQ(GemmProblem::parse(problem.to_string()), problem);
    Module module =
        build_gemm(problem, GemmSchedule::parse(choice.schedule), {}, few());
    expect_gemm(*device, compile_checked(module), problem, choice.size, ++seed);
  }
}

TEST(BlackwellGemm, PicksForFactors) {
  for (auto [type, scaling] : {std::pair{e4m3, Scaling::mx},
                               {e2m1, Scaling::mx},
                               {e2m1, Scaling::nv}}) {
    GemmProblem problem{
        .m = 8192, .n = 8192, .k = 8192, .type = type, .scaling = scaling};
    GemmSchedule schedule = pick_schedule(problem, DeviceDescription::b200());
    EXPECT_TRUE(schedule.is_persistent()) << schedule.to_string();
    EXPECT_EQ(schedule.cta_group, 2) << schedule.to_string();
  }
}
