// GroupedGemm: products of groups whose rows are known on the device alone,
// against the reference, under every order.
#include "Draws.h"
#include "conformance/Conformance.h"

#include <kiln/kernels/grouped_gemm.h>
#include <kiln/measure/reference.h>
#include <kiln/run/run.h>

#include <fmt/format.h>

#include <numeric>

using namespace conformance;

class GroupedGemm : public OnDevice {};
INSTANTIATE_ON_DEVICES(GroupedGemm);

/// Run a kernel for groups of these rows; what no group has stays as it was.
static void check_on(Device &device, const Kernel &kernel,
                     const GroupedGemmProblem &problem,
                     const std::vector<int> &rows, unsigned seed) {
  auto stored = static_cast<std::size_t>(problem.stored_rows());
  std::size_t n = problem.n, k = problem.k, bytes = size_bytes(problem.out);
  std::size_t in = size_bytes(problem.type),
              b_count = problem.groups * problem.b_rows() * k;
  std::vector<std::uint8_t> a(stored * k * in), b(b_count * in);
  std::vector<std::uint8_t> d(stored * n * bytes, 0xff);
  fill_random(problem.type, a.data(), stored * k, seed);
  fill_random(problem.type, b.data(), b_count, seed + 1);
  std::vector<std::int32_t> numbers = row_numbers(problem, rows);
  std::vector<float> a_scales(problem.k_blocks() * stored);
  std::vector<float> b_scales(problem.groups * problem.halves() *
                              problem.n_blocks() * problem.k_blocks());
  fill_random(f32, a_scales.data(), a_scales.size(), seed + 2, 0.1, 3);
  fill_random(f32, b_scales.data(), b_scales.size(), seed + 3, -2, 2);
  LaunchResult result =
      problem.scaling == Scaling::none
          ? try_run(device, kernel, a, b, numbers, d)
          : try_run(device, kernel, a, b, numbers, d, a_scales, b_scales);
  EXPECT_TRUE(result.findings.empty()) << result.to_string();
  GroupedComparison comparison = compare_grouped_gemm(
      problem, rows, {a.data(), b.data(), a_scales.data(), b_scales.data()},
      d.data());
  EXPECT_TRUE(comparison.ok()) << comparison.first_wrong;
}

/// On the simulator under all orders, with few multiprocessors, so that each
/// CTA has several tiles.
static void check(const std::string &id, const GroupedGemmProblem &problem,
                  const std::vector<int> &rows,
                  const GroupedGemmSchedule &schedule = {}, unsigned seed = 1) {
  SCOPED_TRACE(
      fmt::format("{}: {}", problem.to_string(), fmt::join(rows, " ")));
  Kernel kernel = compile_checked(build_grouped_gemm(problem, schedule));
  if (id != "sim") {
    if (Device *device = conformance::open(id).device.get())
      check_on(*device, kernel, problem, rows, seed);
    return;
  }
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    SimOptions options{.interleaving = order, .seed = seed};
    options.device.sms = 3;
    check_on(*open_sim(options), kernel, problem, rows, seed);
  }
}

TEST_P(GroupedGemm, EmptyAndOneRowGroups) {
  check(GetParam(), {.groups = 5, .rows = 334, .n = 136, .k = 72},
        {0, 1, 200, 0, 128}, {.tile_n = 64});
  check(GetParam(), {.groups = 2, .rows = 10, .n = 64, .k = 64}, {0, 0});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, Masked) {
  check(GetParam(),
        {.groups = 3,
         .rows = 150,
         .n = 72,
         .k = 128,
         .type = f16,
         .out = f32,
         .layout = GroupLayout::masked},
        {150, 0, 77}, {.tile_n = 64, .stages = 2});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, SwiGlu) {
  check(GetParam(),
        {.groups = 3, .rows = 231, .n = 136, .k = 72, .is_swiglu = true},
        {130, 1, 100}, {.tile_n = 128});
  check(GetParam(),
        {.groups = 2,
         .rows = 140,
         .n = 77,
         .k = 64,
         .type = f16,
         .out = f16,
         .layout = GroupLayout::masked,
         .is_swiglu = true},
        {140, 50});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, FactorsOfBlocks) {
  for (bool is_swiglu : {false, true})
    check(GetParam(),
          {.groups = 3,
           .rows = 300,
           .n = 200,
           .k = 336,
           .type = e4m3,
           .out = is_swiglu ? bf16 : f32,
           .scaling = Scaling::blocks,
           .is_swiglu = is_swiglu},
          {170, 0, 120});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, EightBitsWithoutFactors) {
  check(GetParam(),
        {.groups = 2, .rows = 200, .n = 96, .k = 144, .type = e4m3, .out = f16},
        {130, 70});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, RowsThatTmaCannotStore) {
  check(GetParam(), {.groups = 2, .rows = 200, .n = 75, .k = 64}, {130, 70},
        {.tile_n = 128});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(GroupedGemm, RandomGroups) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937 random(2025);
  for (int draw = 0; draw < draws(16); ++draw) {
    GroupedGemmProblem problem{.groups = 1 + static_cast<int>(random() % 9)};
    std::vector<int> rows;
    for (int i = 0; i < problem.groups; ++i)
      rows.push_back(random() % 3 ? static_cast<int>(random() % 200) : 0);
    bool is_masked = random() % 2;
    problem.layout = is_masked ? GroupLayout::masked : GroupLayout::contiguous;
    problem.rows =
        is_masked ? std::max(1, *std::max_element(rows.begin(), rows.end()))
                  : std::max(1, std::accumulate(rows.begin(), rows.end(), 0)) +
                        static_cast<int>(random() % 50);
    problem.n = 1 + static_cast<int>(random() % 200);
    problem.k = 16 + 16 * static_cast<int>(random() % 15);
    problem.type = std::vector<Type>{f16, bf16, e4m3}[random() % 3];
    bool is_fp8 = problem.type == e4m3;
    problem.out = random() % 2 ? (is_fp8 ? bf16 : problem.type) : f32;
    if (is_fp8 && random() % 3)
      problem.scaling = Scaling::blocks;
    problem.is_swiglu = random() % 3 == 0;
    int least = 64 * problem.halves();
    int most = problem.scaling == Scaling::none ? 256 : 128;
    GroupedGemmSchedule schedule{
        .tile_n = least * static_cast<int>(random() % (most / least + 1)),
        .stages = static_cast<int>(random() % 4)};
    SCOPED_TRACE(fmt::format("draw {}: {}, rows {}", draw, problem.to_string(),
                             fmt::join(rows, " ")));
    Kernel kernel =
        compile(build_grouped_gemm(problem, schedule), {.use_cache = false});
    if (GetParam() != "sim") {
      check_on(*conformance::open(GetParam()).device, kernel, problem, rows,
               draw);
      continue;
    }
    SimOptions options{.interleaving = static_cast<Interleaving>(draw % 3),
                       .seed = static_cast<std::uint64_t>(draw)};
    options.device.sms = 1 + static_cast<int>(random() % 8);
    check_on(*open_sim(options), kernel, problem, rows, draw);
  }
}

TEST(GroupedGemmReference, SeesWhatIsWrong) {
  GroupedGemmProblem problem{.groups = 2, .rows = 3, .n = 2, .k = 8};
  std::vector<int> rows = {1, 1};
  std::vector<std::uint16_t> ones(3 * 8, 0x3f80), b(2 * 2 * 8, 0x3f80);
  std::vector<std::uint16_t> d(3 * 2, 0x4100); // 8
  auto first_wrong = [&] {
    return compare_grouped_gemm(problem, rows, {ones.data(), b.data()},
                                d.data())
        .first_wrong;
  };
  EXPECT_EQ(first_wrong(), "row 2 of D is no group's and was written");
  d[4] = d[5] = 0xffff;
  EXPECT_EQ(first_wrong(), "");
  d[3] = 0x4110; // 9
  EXPECT_EQ(first_wrong(), "row 0, column 1 of group 1 is 9, expected 8");
}
