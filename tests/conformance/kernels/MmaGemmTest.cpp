// MmaGemm: the GEMM family on the GPUs that multiply by mma.sync, every pair of
// choices under all interleavings. Simulated and assembled: no such GPU was
// there to run it.
#include "CoveringArray.h"
#include "GemmRun.h"
#include "conformance/AllOrders.h"

#include <kiln/run/assemble.h>

#include <map>

using namespace conformance;

namespace {

/// A schedule that divides the work in some way.
struct Shape {
  GemmKind kind;
  int tile_m, tile_n;
  int k_bytes = 128; ///< of a row of a K tile
  int consumers = 0;
  GemmSplit split = GemmSplit::m;
  Swizzle swizzle = Swizzle::b128;
  int split_k = 1;
  bool is_swapped = false;
  bool is_repacked = false;
};

constexpr Shape kShapes[] = {
    {GemmKind::multistage, 64, 64},
    {GemmKind::multistage, 128, 64, 64, 1},
    {GemmKind::multistage, 128, 128, 128, 2},
    {GemmKind::multistage, 64, 48, 32, 1},
    {GemmKind::multistage, 64, 128, 128, 2, GemmSplit::n},
    {GemmKind::multistage, 64, 64, 64, 1, GemmSplit::m, Swizzle::none},
    {GemmKind::multistage, 64, 64, 64, 1, GemmSplit::m, Swizzle::b128, 3},
    {GemmKind::multistage, 64, 32, 128, 1, GemmSplit::m, Swizzle::b128, 1,
     true},
    {GemmKind::multistage, 64, 64, 64, 1, GemmSplit::m, Swizzle::b128, 1, false,
     true},
    {GemmKind::warp_specialized, 64, 64},
    {GemmKind::warp_specialized, 64, 64, 128, 1, GemmSplit::m, Swizzle::b128,
     2},
    {GemmKind::cooperative, 128, 64},
    {GemmKind::cooperative, 64, 64, 64, 2, GemmSplit::n},
    {GemmKind::pingpong, 64, 64},
    {GemmKind::pingpong, 64, 24, 64, 2, GemmSplit::m, Swizzle::b128, 1, true},
};
constexpr const char *kGpus[] = {"a100", "a10", "rtx4090", "rtx5090", "gb10"};
constexpr Type kTypes[] = {f16, bf16, tf32, e4m3, e5m2, i8, u8};
constexpr Type kOuts[] = {f32, f16, bf16, e4m3, i32};
constexpr GemmLayout kLayouts[] = {GemmLayout::tn, GemmLayout::nn,
                                   GemmLayout::nt, GemmLayout::tt};
constexpr int kStages[] = {1, 2, 3, 5};

/// What is done to D on its way out, and how it lies.
struct Finish {
  bool has_alpha = false, has_beta = false;
  GemmBias bias = GemmBias::none;
  Activation act = Activation::none;
  bool is_column_major = false;
  bool has_gaps = false; ///< in A, B, C and D
  int batch = 1;
  bool has_half_sums = false;
  bool has_scales = false;
};
const Finish kFinishes[] = {
    {},
    {.has_alpha = true, .bias = GemmBias::row},
    {.has_beta = true, .act = Activation::relu, .is_column_major = true},
    {.bias = GemmBias::column, .act = Activation::gelu, .batch = 2},
    {.has_alpha = true, .has_beta = true, .has_gaps = true},
    {.act = Activation::silu, .is_column_major = true},
    {.has_half_sums = true},
    {.has_scales = true},
};
/// Multiples and none, less than a tile, one K tile and several.
constexpr GemmSize kSizes[] = {{1, 1, 1},      {128, 64, 64}, {129, 65, 7},
                               {72, 136, 264}, {64, 192, 64}, {127, 72, 129}};

const std::vector<int> kFactors = {std::size(kShapes),  std::size(kGpus),
                                   std::size(kTypes),   std::size(kOuts),
                                   std::size(kLayouts), std::size(kFinishes),
                                   std::size(kStages),  std::size(kSizes)};

/// A GPU of few multiprocessors, so that small problems are persistent ones.
DeviceDescription few(const char *gpu) {
  DeviceDescription device = DeviceDescription::by_name(gpu);
  device.sms = 4;
  return device;
}

/// A row of the array as a problem and a schedule.
struct Choice {
  const char *gpu;
  GemmProblem problem;
  GemmSchedule schedule;
  GemmSize size;

  explicit Choice(const Row &row);
  bool fits() const {
    try {
      fit(problem, schedule, few(gpu));
      return true;
    } catch (const UserError &) {
      return false;
    }
  }
};

Choice::Choice(const Row &row) : gpu(kGpus[row[1]]) {
  const Shape &shape = kShapes[row[0]];
  const Finish &finish = kFinishes[row[5]];
  size = kSizes[row[7]];
  size.batch = finish.batch;
  problem = {.m = size.m,
             .n = size.n,
             .k = size.k,
             .batch = size.batch,
             .type = kTypes[row[2]],
             .out = kOuts[row[3]],
             .layout = kLayouts[row[4]],
             .is_d_column_major = finish.is_column_major,
             .has_alpha = finish.has_alpha,
             .has_beta = finish.has_beta,
             .bias = finish.bias,
             .act = finish.act,
             .scaling = finish.has_scales ? Scaling::tensor : Scaling::none};
  if (finish.has_half_sums)
    problem.accumulate = f16;
  if (finish.has_gaps) {
    problem.lda = problem.stride_a() + 16;
    problem.ldb = problem.stride_b() + 3;
    problem.ldc = problem.stride_c() + 1;
    problem.ldd = problem.stride_d() + 16;
  }
  schedule = {.kind = shape.kind,
              .tile_m = shape.tile_m,
              .tile_n = shape.tile_n,
              .tile_k = shape.k_bytes / size_bytes(problem.type),
              .stages = kStages[row[6]],
              .consumers = shape.consumers,
              .split = shape.split,
              .swizzle = shape.swizzle,
              .split_k = shape.split_k,
              .is_split_by_grid = shape.split_k > 1,
              .is_swapped = shape.is_swapped,
              .is_repacked = shape.is_repacked};
}

Kernel compiled(const GemmProblem &problem, const GemmSchedule &schedule,
                const DeviceDescription &device) {
  return compile(build_gemm(problem, schedule, {}, device),
                 {.use_cache = false});
}

} // namespace

/// In parts, which run side by side.
class MmaGemmCover : public testing::TestWithParam<int> {};
static constexpr int kParts = 4;
INSTANTIATE_TEST_SUITE_P(, MmaGemmCover, testing::Range(0, kParts));

TEST_P(MmaGemmCover, EveryPairOfChoices) {
  CoveringArray array(kFactors,
                      [](const Row &row) { return Choice(row).fits(); });
  RecordProperty("rows", static_cast<int>(array.rows().size()));
  EXPECT_GT(array.rows().size(), 60u);
  std::map<std::string, std::shared_ptr<Device>> devices;
  unsigned number = 0;
  for (const Row &row : array.rows()) {
    if (static_cast<int>(number++ % kParts) != GetParam())
      continue;
    Choice choice(row);
    SCOPED_TRACE(std::string(choice.gpu) + ": " + choice.problem.to_string() +
                 " | " + choice.schedule.to_string());
    DeviceDescription gpu = few(choice.gpu);
    auto &device = devices[choice.gpu];
    if (!device)
      device = open_all_orders(gpu);
    Kernel kernel = compiled(choice.problem, choice.schedule, gpu);
    EXPECT_EQ(kernel.target, gpu.target());
    expect_gemm(*device, kernel, choice.problem, choice.size, number);
  }
}

// Shared memory is counted before anything is built, and counted right.
TEST(MmaGemm, WhatFitsIsBuilt) {
  std::mt19937 random(1);
  int fitting = 0;
  for (int i = 0; i < 4000 && fitting < 40; ++i) {
    Row row;
    for (int size : kFactors)
      row.push_back(static_cast<int>(random() % size));
    Choice choice(row);
    DeviceDescription device = few(choice.gpu);
    choice.problem.k = Dim::argument("k"); // which would limit the stages
    GemmSchedule &schedule = choice.schedule;
    schedule.stages = 1;
    SCOPED_TRACE(std::string(choice.gpu) + ": " + choice.problem.to_string() +
                 " | " + schedule.to_string());
    if (!choice.fits())
      continue;
    ++fitting;
    schedule.stages = max_gemm_stages(choice.problem, schedule, device);
    EXPECT_NO_THROW(build_gemm(choice.problem, schedule, {}, device));
    ++schedule.stages;
    EXPECT_FALSE(choice.fits());
  }
  EXPECT_EQ(fitting, 40);
}

TEST(MmaGemm, OneKernelForEveryM) {
  GemmProblem problem{.m = Dim::argument("m"), .n = 72, .k = 136, .out = f16};
  for (const char *gpu : {"a100", "rtx5090"}) {
    SCOPED_TRACE(gpu);
    Kernel kernel =
        compiled(problem, pick_schedule(problem, few(gpu)), few(gpu));
    auto device = open_all_orders(few(gpu));
    for (int m : {1, 127, 128, 129, 300})
      expect_gemm(*device, kernel, problem, {m, 72, 136}, m);
  }
}
