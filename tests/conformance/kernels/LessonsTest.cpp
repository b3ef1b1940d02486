// Lessons: the kernels of the tutorial, checked harder than a lesson does.
#include "conformance/Conformance.h"

#include "tutorial/lessons.h"

#include <kiln/kernels/attention.h>
#include <kiln/measure/reference.h>
#include <kiln/run/run.h>

using namespace conformance;

class Lessons : public OnDevice {};
INSTANTIATE_ON_DEVICES(Lessons);

TEST_P(Lessons, HelloWorldPrints) {
  Kernel kernel = compile_checked(lessons::hello_world());
  EXPECT_EQ(count(kernel.ptx, "vprintf, "), 1);
  OPEN_OR_SKIP(device);
  EXPECT_TRUE(try_run(device, kernel).ok());
}

/// y += alpha * x with integers, so that every order of rounding agrees; a row
/// behind the last one must stay as it was.
static void expect_saxpy(Device &device, const Kernel &kernel, int rows,
                         unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digits(-999, 999);
  std::vector<float> x((rows + 1) * 32), y(x.size());
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = digits(random), y[i] = digits(random);
  std::vector<float> before = y;
  float alpha = digits(random);
  run(device, kernel, rows, x, y, alpha);
  for (std::size_t i = 0; i < y.size(); ++i) {
    bool is_inside = i < static_cast<std::size_t>(rows) * 32;
    ASSERT_EQ(y[i], before[i] + (is_inside ? alpha * x[i] : 0.0f))
        << "element " << i << " of " << rows << " rows";
  }
}

TEST_P(Lessons, SaxpyIsExact) {
  Kernel kernel = compile_checked(lessons::saxpy());
  EXPECT_FALSE(kernel.contract.grid[0].is_constant());
  EXPECT_EQ(kernel.contract.dynamic_smem_bytes, 0);
  OPEN_OR_SKIP(device);
  for (int rows : {256, 1, 77})
    expect_saxpy(device, kernel, rows, rows);
}

TEST_P(Lessons, SaxpyByTmaIsExact) {
  Kernel kernel = compile_checked(lessons::saxpy_tma());
  EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor.2d"), 2);
  // Two rows of 128 bytes and the barrier.
  EXPECT_EQ(kernel.contract.dynamic_smem_bytes, 2 * 128 + 8);
  OPEN_OR_SKIP(device);
  for (int rows : {256, 1, 77})
    expect_saxpy(device, kernel, rows, rows);
}

using lessons::GemmOperands;
using lessons::GemmShape;
using lessons::WgmmaOptions;

/// Integers from -4 to 4: their products and sums are exact in f32, so that
/// every order of adding gives the same.
static std::vector<std::uint8_t> digits(Type type, std::size_t count,
                                        unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_int_distribution<int> digit(-4, 4);
  std::vector<double> numbers(count);
  for (double &number : numbers)
    number = digit(random);
  return elements(type, numbers);
}

/// The GPU, or the simulator in several orders of events.
static std::vector<std::shared_ptr<Device>> in_orders(const std::string &id) {
  if (id != "sim")
    return {conformance::open(id).device};
  return {open_sim({.interleaving = Interleaving::eager}),
          open_sim({.interleaving = Interleaving::lazy}),
          open_sim({.interleaving = Interleaving::random, .seed = 1}),
          open_sim({.interleaving = Interleaving::random, .seed = 2})};
}

/// Every element, and no finding.
static void expect_product(const std::string &id, const Kernel &kernel,
                           const GemmShape &shape,
                           const GemmOperands &operands = {}) {
  std::size_t m = shape.m, n = shape.n, k = shape.k;
  auto a = digits(f16, m * k, 1), b = digits(f16, k * n, 2);
  auto c = digits(f32, m * n, 3);
  ReferenceGemm gemm{.m = shape.m, .n = shape.n, .k = shape.k};
  gemm.b_row_major = !operands.is_b_transposed;
  gemm.beta = operands.has_c ? 1 : 0;
  gemm.a = a.data(), gemm.b = b.data(), gemm.c = c.data();
  std::vector<double> want = reference_gemm(gemm).d;
  for (const auto &device : in_orders(id)) {
    auto d = poisoned(f32, m * n);
    LaunchResult result = operands.has_c ? try_run(*device, kernel, a, b, c, d)
                                         : try_run(*device, kernel, a, b, d);
    ASSERT_TRUE(result.findings.empty()) << result.to_string();
    ASSERT_EQ(values(f32, d), want)
        << kernel.name << " " << m << "x" << n << "x" << k;
  }
}

/// One tile, several with edges on each side, and a K longer than any ring.
static constexpr GemmShape kShapes[] = {
    {128, 128, 64}, {200, 264, 200}, {256, 128, 640}};

TEST_P(Lessons, GemmOfOneTileIsExact) {
  Kernel kernel = compile_checked(lessons::gemm_one_tile());
  EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async.sync.aligned.m64n128k16"), 8);
  EXPECT_EQ(count(kernel.ptx, "wgmma.commit_group"), 1);
  EXPECT_EQ(kernel.contract.dynamic_smem_bytes, 2 * 16384 + 8);
  SKIP_WITHOUT_DEVICE();
  expect_product(GetParam(), kernel, {128, 128, 64});
}

TEST_P(Lessons, GemmMultistageIsExact) {
  for (const GemmShape &shape : kShapes)
    for (int stages : {2, 3}) {
      Kernel kernel = compile_checked(lessons::gemm_multistage(shape, stages));
      // The epilogue's tile lies over the slots.
      EXPECT_EQ(kernel.contract.dynamic_smem_bytes, stages * (32768 + 8));
      if (conformance::open(GetParam()).device)
        expect_product(GetParam(), kernel, shape);
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Lessons, GemmWarpSpecializedIsExact) {
  for (const GemmShape &shape : kShapes)
    for (int stages : {2, 4}) {
      Kernel kernel =
          compile_checked(lessons::gemm_warp_specialized(shape, stages));
      EXPECT_EQ(kernel.contract.registers_at_entry, (40 + 232) / 2);
      EXPECT_EQ(count(kernel.ptx, "setmaxnreg.dec.sync.aligned.u32 \t40;"), 1);
      EXPECT_EQ(count(kernel.ptx, "setmaxnreg.inc.sync.aligned.u32 \t232;"), 1);
      if (conformance::open(GetParam()).device)
        expect_product(GetParam(), kernel, shape);
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Lessons, GemmPingPongIsExact) {
  // Of 6 tiles one CTA has all, two three each; five have one or two, so that
  // consumers have nothing to do.
  for (const GemmShape &shape : kShapes)
    for (int ctas : {1, 2, 5, 0}) {
      Kernel kernel = compile_checked(
          lessons::gemm_pingpong(shape, ctas == 1 ? 2 : 4, ctas));
      EXPECT_EQ(kernel.contract.threads(), 384);
      EXPECT_EQ(kernel.contract.registers_at_entry, 168);
      if (conformance::open(GetParam()).device)
        expect_product(GetParam(), kernel, shape);
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Lessons, GemmByMulticastIsExact) {
  // Of one row of tiles, and of three, a CTA of the last cluster has nothing
  // of D.
  for (const GemmShape &shape :
       {kShapes[0], kShapes[1], GemmShape{384, 256, 328}})
    for (int ctas : {2, 4, 0}) {
      Kernel kernel = compile_checked(lessons::gemm_multicast(shape, 4, ctas));
      EXPECT_EQ(kernel.contract.cluster[0], 2);
      // Two panels of B are multicast, the one box of A is not.
      EXPECT_EQ(count(kernel.ptx, ".multicast::cluster"), 2);
      EXPECT_EQ(count(kernel.ptx, "cp.async.bulk.tensor.2d"), 3);
      if (conformance::open(GetParam()).device)
        expect_product(GetParam(), kernel, shape);
    }
  SKIP_WITHOUT_DEVICE();
}

/// Lesson 8 in one way.
static void expect_wgmma(const std::string &id, const GemmShape &shape,
                         const WgmmaOptions &options) {
  SCOPED_TRACE(testing::Message()
               << options.tile_m << "x" << options.tile_n << "x"
               << options.tile_k << ", " << options.warpgroups
               << " warpgroups, instruction_n " << options.instruction_n
               << ", a in registers " << options.is_a_in_registers
               << ", b transposed " << options.is_b_transposed << ", c "
               << options.starts_from_c << ", in flight "
               << options.keeps_one_in_flight);
  Kernel kernel = compile_checked(lessons::gemm_wgmma(shape, options));
  if (options.instruction_n) {
    EXPECT_GT(count(kernel.ptx, "wgmma.mma_async.sync.aligned.m64n" +
                                    std::to_string(options.instruction_n) +
                                    "k16"),
              0);
  }
  if (conformance::open(id).device)
    expect_product(id, kernel, shape,
                   {options.is_b_transposed, options.starts_from_c});
}

TEST_P(Lessons, SmallWgmmaIsExact) {
  for (bool in_registers : {false, true})
    for (int warpgroups : {1, 2}) {
      expect_wgmma(GetParam(), {64, 32, 32},
                   {.tile_m = 64,
                    .tile_n = 32,
                    .tile_k = 32,
                    .warpgroups = warpgroups,
                    .instruction_n = 16,
                    .is_a_in_registers = in_registers,
                    .starts_from_c = true});
      expect_wgmma(GetParam(), {64, 256, 128},
                   {.tile_m = 64,
                    .tile_n = 256,
                    .tile_k = 128,
                    .warpgroups = warpgroups,
                    .instruction_n = 256 / warpgroups,
                    .is_a_in_registers = in_registers,
                    .starts_from_c = true});
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Lessons, EveryKnobOfWgmmaIsExact) {
  const GemmShape shape = {208, 416, 304};
  for (int bits = 0; bits < 32; ++bits) {
    WgmmaOptions options{.tile_m = 64, .tile_n = 64, .tile_k = 64};
    options.warpgroups = bits & 1 ? 2 : 1;
    options.is_a_in_registers = bits & 2;
    options.is_b_transposed = bits & 4;
    options.starts_from_c = bits & 8;
    options.keeps_one_in_flight = bits & 16;
    options.instruction_n = bits % 3 == 0 ? 16 : 0;
    // 128 registers of accumulator and 64 of A are too many for one warpgroup.
    bool is_large = bits % 5 == 0 &&
                    (options.warpgroups == 2 || !options.is_a_in_registers);
    if (is_large)
      options.tile_m = options.tile_n = options.tile_k = 128;
    expect_wgmma(GetParam(), shape, options);
  }
  SKIP_WITHOUT_DEVICE();
}

/// Whether something of one row and kind happens while something of another
/// does, in the first CTA.
static bool overlaps(const Timeline &timeline, Timeline::Row row,
                     Timeline::Kind kind, Timeline::Row other_row,
                     Timeline::Kind other_kind) {
  for (const Timeline::Event &one : timeline.events)
    for (const Timeline::Event &other : timeline.events)
      if (one.row == row && one.kind == kind && other.row == other_row &&
          other.kind == other_kind && one.cta == other.cta &&
          one.start < other.end && other.start < one.end)
        return true;
  return false;
}

/// What the simulator's clock saw of a kernel.
static Timeline timeline_of(const Module &module, const GemmShape &shape) {
  auto a = digits(f16, shape.m * shape.k, 1);
  auto b = digits(f16, shape.k * shape.n, 2);
  auto d = poisoned(f32, shape.m * shape.n);
  return run(*open_sim({.timeline = true}), compile(module), a, b, d).timeline;
}

TEST(LessonTimelines, LoadsOverlapProductsFromLessonFourOn) {
  using Kind = Timeline::Kind;
  using Agent = Timeline::Agent;
  const GemmShape shape = {128, 128, 384};
  auto loads_ahead = [](const Timeline &timeline) {
    return overlaps(timeline, {Agent::tma}, Kind::load, {Agent::wgmma, 0},
                    Kind::mma);
  };
  EXPECT_FALSE(
      loads_ahead(timeline_of(lessons::gemm_one_tile(), {128, 128, 64})));
  EXPECT_TRUE(loads_ahead(timeline_of(lessons::gemm_multistage(shape), shape)));
  EXPECT_TRUE(
      loads_ahead(timeline_of(lessons::gemm_warp_specialized(shape), shape)));
  WgmmaOptions options{.tile_n = 128};
  EXPECT_TRUE(
      loads_ahead(timeline_of(lessons::gemm_wgmma(shape, options), shape)));
  options.keeps_one_in_flight = false;
  EXPECT_FALSE(
      loads_ahead(timeline_of(lessons::gemm_wgmma(shape, options), shape)));
}

TEST(LessonTimelines, OneConsumerStoresWhileTheOtherMultiplies) {
  using Kind = Timeline::Kind;
  using Agent = Timeline::Agent;
  const GemmShape shape = {384, 512, 128}; // so that rows are checked: a store
                                           // without is over too soon
  for (const Timeline &timeline :
       {timeline_of(lessons::gemm_pingpong(shape, 3, 1), shape),
        timeline_of(lessons::gemm_multicast(shape, 3, 2), shape)}) {
    EXPECT_TRUE(overlaps(timeline, {Agent::warp, 0}, Kind::store,
                         {Agent::wgmma, 1}, Kind::mma));
    EXPECT_TRUE(overlaps(timeline, {Agent::warp, 4}, Kind::store,
                         {Agent::wgmma, 0}, Kind::mma));
  }
}

TEST_P(Lessons, AttentionIsRight) {
  for (bool overlaps : {false, true})
    for (auto [queries, keys] : {std::pair{64, 64}, std::pair{70, 200}}) {
      Kernel kernel =
          compile_checked(lessons::attention({2, queries, keys}, overlaps));
      OPEN_OR_SKIP(device);
      AttentionProblem problem{.heads = 2,
                               .queries = queries,
                               .keys = keys,
                               .head_dim = 64,
                               .type = f16};
      std::vector<std::uint16_t> q(2 * queries * 64), k(2 * keys * 64), v = k,
                                                                        o = q;
      fill_random(f16, q.data(), q.size(), 1, -2, 2);
      fill_random(f16, k.data(), k.size(), 2, -2, 2);
      fill_random(f16, v.data(), v.size(), 3, -2, 2);
      LaunchResult result = try_run(device, kernel, q, k, v, o);
      EXPECT_TRUE(result.findings.empty()) << result.to_string();
      for (int row = 0; row < 2 * queries; ++row) {
        AttentionRow want =
            reference_attention(problem, q.data(), k.data(), v.data(), row);
        for (int i = 0; i < 64; ++i)
          ASSERT_NEAR(from_bits(f16, o[row * 64 + i]), want.o[i],
                      0x1p-9 * want.magnitude[i])
              << "row " << row;
      }
    }
}
