// GemmCover: the GEMM family in breadth: every pair of choices, random ones,
// and one kernel for every M.
#include "Draws.h"
#include "CoveringArray.h"
#include "GemmRun.h"

#include <kiln/run/assemble.h>
#include <kiln/check/sim.h>

#include <map>

using namespace conformance;

class GemmCover : public OnDevice {};
INSTANTIATE_ON_DEVICES(GemmCover);

namespace {

/// What is done to D on its way out, and how it lies.
struct Finish {
  bool has_alpha = false, has_beta = false;
  GemmBias bias = GemmBias::none;
  Activation act = Activation::none;
  bool is_column_major = false;
  bool has_gaps = false; ///< in A, B, C and D
  int batch = 1;
};

constexpr GemmKind kKinds[] = {GemmKind::multistage, GemmKind::warp_specialized,
                               GemmKind::cooperative, GemmKind::pingpong};
constexpr Type kTypes[] = {f16, bf16, tf32, e4m3, e5m2, i8, u8};
constexpr Type kOuts[] = {f32, f16, bf16, e4m3, i32};
constexpr GemmLayout kLayouts[] = {GemmLayout::tn, GemmLayout::nn,
                                   GemmLayout::nt, GemmLayout::tt};
constexpr int kMostStages = 0;
constexpr int kStages[] = {1, 2, 3, kMostStages};
constexpr std::pair<int, int> kClusters[] = {{1, 1}, {2, 1}, {1, 2}, {2, 2}};
const Finish kFinishes[] = {
    {},
    {.has_alpha = true, .bias = GemmBias::row},
    {.has_beta = true, .act = Activation::relu, .is_column_major = true},
    {.bias = GemmBias::column, .act = Activation::gelu, .batch = 3},
    {.has_alpha = true, .has_beta = true, .has_gaps = true},
    {.act = Activation::silu, .is_column_major = true, .batch = 2},
    {.bias = GemmBias::row, .is_column_major = true, .has_gaps = true},
};
/// Multiples and none, one step of K, fewer than the pipeline has slots, less
/// than a tile.
constexpr GemmSize kSmall[] = {{1, 1, 1},      {7, 63, 64},   {65, 127, 129},
                               {128, 128, 64}, {129, 65, 7},  {208, 416, 304},
                               {64, 256, 512}, {63, 7, 127},  {256, 128, 192},
                               {127, 129, 65}, {136, 72, 72}, {384, 256, 128}};
/// For a GPU.
constexpr GemmSize kLarge[] = {
    {1, 1, 1},         {7, 63, 64},     {1000, 127, 129},   {2048, 2048, 1024},
    {129, 1025, 777},  {208, 416, 304}, {2000, 1000, 2000}, {8191, 4095, 1023},
    {1024, 512, 4096}, {511, 2049, 64}, {4096, 136, 520},   {1, 4096, 4096}};

/// A row of the array as a problem and a schedule.
struct Choice {
  GemmProblem problem;
  GemmSchedule schedule;
  GemmSize size;

  Choice(const Row &row, bool is_large);

  /// Whether the two go together.
  bool fits() const {
    try {
      fit(problem, schedule);
      return true;
    } catch (const UserError &) {
      return false;
    }
  }
};

Choice::Choice(const Row &row, bool is_large) {
  const Finish &finish = kFinishes[row[4]];
  size = is_large ? kLarge[row[7]] : kSmall[row[7]];
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
    problem.lda = problem.stride_a() + 8;
    problem.ldb = problem.stride_b() + 3;
    problem.ldc = problem.stride_c() + 1;
    problem.ldd = problem.stride_d() + 16;
  }
  bool is_wide = kKinds[row[0]] == GemmKind::cooperative;
  schedule = {.kind = kKinds[row[0]],
              .tile_m = is_wide ? 128 : 64,
              .tile_n = is_large && is_wide ? 256 : 64,
              .tile_k = 128 / size_bytes(problem.type),
              .stages = kStages[row[5]],
              .cluster_m = kClusters[row[6]].first,
              .cluster_n = kClusters[row[6]].second};
  if (schedule.stages == kMostStages)
    schedule.stages = max_gemm_stages(problem, schedule);
}

const std::vector<int> kFactors = {std::size(kKinds),    std::size(kTypes),
                                   std::size(kOuts),     std::size(kLayouts),
                                   std::size(kFinishes), std::size(kStages),
                                   std::size(kClusters), std::size(kSmall)};

/// The device of a case. The simulator has few multiprocessors, so that small
/// problems are persistent ones, and takes one of three orders.
Device *device_for(const std::string &id, unsigned number) {
  if (id != "sim")
    return conformance::open(id).device.get();
  static std::map<unsigned, std::shared_ptr<Device>> devices;
  constexpr Interleaving kOrders[] = {Interleaving::eager, Interleaving::lazy,
                                  Interleaving::random};
  auto &device = devices[number % 3];
  if (!device) {
    SimOptions options{.interleaving = kOrders[number % 3], .seed = number};
    options.device.sms = 4;
    device = open_sim(options);
  }
  return device.get();
}

void check(const std::string &id, const Choice &choice, unsigned number) {
  Kernel kernel = compile(build_gemm(choice.problem, choice.schedule),
                          {.use_cache = false});
  if (Device *device = device_for(id, number))
    expect_gemm(*device, kernel, choice.problem, choice.size, number);
}

/// The same choices each time, others with --gtest_random_seed.
unsigned first_seed() {
  int asked_for = GTEST_FLAG_GET(random_seed);
  return asked_for == 0 ? 1 : static_cast<unsigned>(asked_for);
}

/// A problem and a schedule that go together, of sizes that are no multiples.
Choice random_choice(std::mt19937 &random) {
  auto pick = [&](std::initializer_list<int> list) {
    return list.begin()[random() % list.size()];
  };
  while (true) {
    Row row;
    for (int size : kFactors)
      row.push_back(static_cast<int>(random() % size));
    Choice choice(row, false);
    GemmSize &size = choice.size;
    size = {pick({1, 5, 64, 100, 192, 257}), pick({1, 8, 72, 128, 200, 321}),
            pick({1, 16, 72, 128, 136, 333}), size.batch};
    GemmProblem &problem = choice.problem;
    problem.m = size.m, problem.n = size.n, problem.k = size.k;
    problem.lda = problem.ldb = problem.ldc = problem.ldd = std::nullopt;
    if (random() % 4 == 0)
      problem.m = Dim::argument("m");
    if (random() % 4 == 0 && size.batch > 1)
      problem.batch = Dim::argument("batch");
    if (random() % 8 == 0)
      problem.accumulate = f16;
    GemmSchedule &schedule = choice.schedule;
    schedule.tile_m = pick({64, 128, 192, 256});
    schedule.tile_n = pick({8, 24, 64, 96, 128, 192, 256});
    schedule.tile_k = pick({16, 32, 64, 128});
    schedule.stages = pick({1, 2, 3, 5});
    schedule.instruction_n = pick({0, 0, 0, 8, 32, 64});
    schedule.consumers = pick({0, 0, 1, 2});
    schedule.split = random() % 2 ? GemmSplit::m : GemmSplit::n;
    schedule.is_a_in_registers = random() % 4 == 0;
    schedule.swizzle =
        static_cast<Swizzle>(pick({0, 32, 64, 128, 128, 128, 128}));
    schedule.is_multicast = random() % 2;
    schedule.raster = random() % 2 ? Raster::along_m : Raster::along_n;
    schedule.raster_group = pick({1, 2, 8});
    schedule.split_k = pick({1, 1, 2, 3});
    schedule.is_swapped = random() % 3 == 0;
    // Of CTAs that all of the device's few multiprocessors hold.
    schedule.is_repacked = random() % 3 == 0 && schedule.is_persistent();
    if (choice.fits())
      return choice;
  }
}

} // namespace

TEST_P(GemmCover, EveryPairOfChoices) {
  SKIP_WITHOUT_DEVICE();
  bool is_large = GetParam() != "sim";
  CoveringArray array(
      kFactors, [&](const Row &row) { return Choice(row, is_large).fits(); });
  RecordProperty("rows", static_cast<int>(array.rows().size()));
  EXPECT_GT(array.rows().size(), 60u);
  // What cannot be: eight bits and tf32 in other layouts than tn, i32 from
  // floats, and their like.
  EXPECT_LT(array.impossible(), 60);
  unsigned number = 0;
  for (const Row &row : array.rows())
    check(GetParam(), Choice(row, is_large), number++);
}

TEST_P(GemmCover, RandomChoices) {
  SKIP_WITHOUT_DEVICE();
  unsigned seed = first_seed();
  SCOPED_TRACE(testing::Message() << "--gtest_random_seed=" << seed);
  std::mt19937 random(seed);
  for (int done = 0; done < draws(60); ++done) {
    Choice choice = random_choice(random);
    SCOPED_TRACE(choice.problem.to_string() + " | " +
                 choice.schedule.to_string());
    check(GetParam(), choice, seed + done);
  }
}

// Shared memory is counted before anything is built, and counted right.
TEST(GemmCoverFit, WhatFitsIsBuilt) {
  unsigned seed = first_seed();
  SCOPED_TRACE(testing::Message() << "--gtest_random_seed=" << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 100; ++i) {
    Choice choice = random_choice(random);
    choice.problem.k = Dim::argument("k"); // which would limit the stages
    GemmSchedule &schedule = choice.schedule;
    schedule.stages = max_gemm_stages(choice.problem, schedule);
    SCOPED_TRACE(choice.problem.to_string() + " | " + schedule.to_string());
    if (!choice.fits())
      continue;
    EXPECT_NO_THROW(build_gemm(choice.problem, schedule));
    ++schedule.stages;
    EXPECT_FALSE(choice.fits());
  }
}

TEST_P(GemmCover, OneKernelForEveryM) {
  GemmProblem problem{.m = Dim::argument("m"), .n = 72, .k = 136, .out = f16};
  Kernel kernel = compile(build_gemm(problem, pick_schedule(problem)),
                          {.use_cache = false});
  SKIP_WITHOUT_DEVICE();
  std::vector<int> sizes;
  for (int m = 1; m <= 300; ++m)
    sizes.push_back(m);
  if (GetParam() != "sim")
    for (int m : {511, 512, 513, 1000, 2047, 4096, 5555, 8191})
      sizes.push_back(m);
  for (int m : sizes)
    expect_gemm(*device_for(GetParam(), m), kernel, problem, {m, 72, 136}, m);
}

TEST(GemmDefaults, AssembleWithoutSpills) {
  if (!find_ptxas())
    GTEST_SKIP() << "there is no ptxas here";
  for (GemmSize size : {GemmSize{4096, 4096, 4096}, {64, 2112, 7168}})
    for (Type out : {f32, bf16})
      for (GemmLayout layout : {GemmLayout::tn, GemmLayout::tt}) {
        GemmProblem problem{.m = size.m,
                            .n = size.n,
                            .k = size.k,
                            .type = bf16,
                            .out = out,
                            .layout = layout};
        compile_checked(build_gemm(problem, pick_schedule(problem)));
        for (GemmKind kind : kKinds)
          compile_checked(build_gemm(problem, {.kind = kind}));
      }
}

/// The full product in shards: --gtest_also_run_disabled_tests
/// --gtest_filter=*FullProduct*
class GemmFullProduct : public testing::TestWithParam<int> {};
static constexpr int kShards = 64;
INSTANTIATE_TEST_SUITE_P(, GemmFullProduct, testing::Range(0, kShards));

TEST_P(GemmFullProduct, DISABLED_FullProduct) {
  Row row(kFactors.size());
  unsigned number = 0;
  auto next = [&] {
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (++row[i] < kFactors[i])
        return true;
      row[i] = 0;
    }
    return false;
  };
  do {
    if (static_cast<int>(number++ % kShards) != GetParam())
      continue;
    Choice choice(row, false);
    if (choice.fits())
      check("sim", choice, number);
  } while (next());
}
