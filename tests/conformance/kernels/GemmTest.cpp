// Gemm: every schedule, layout, type and kind of shape against float64.
#include "conformance/Conformance.h"
#include "GemmRun.h"

#include <kiln/kernels/gemm_reference.h>
#include <kiln/run/run.h>

using namespace conformance;

class Gemm : public OnDevice {};
INSTANTIATE_ON_DEVICES(Gemm);

static constexpr GemmKind kKinds[] = {GemmKind::multistage,
                                      GemmKind::warp_specialized};
static constexpr GemmLayout kLayouts[] = {GemmLayout::tn, GemmLayout::nn,
                                          GemmLayout::nt, GemmLayout::tt};

namespace {
/// The sizes of one launch.
struct Size {
  int m, n, k;
};

/// D against the product in float64, within the tolerance of its types.
testing::AssertionResult matches(const GemmProblem &problem, Size size,
                                 const std::vector<std::uint8_t> &a,
                                 const std::vector<std::uint8_t> &b,
                                 const std::vector<std::uint8_t> &d) {
  GemmProblem sized = problem;
  sized.m = size.m, sized.n = size.n, sized.k = size.k;
  ReferenceGemm reference = reference_of(sized);
  reference.a = a.data(), reference.b = b.data();
  Comparison result = compare_gemm(reference, d.data());
  if (result.ok)
    return testing::AssertionSuccess();
  const Mismatch &first = result.first.front();
  return testing::AssertionFailure()
         << result.wrong << " of " << result.compared << " elements of "
         << size.m << "x" << size.n << "x" << size.k << " are wrong; d["
         << first.row << "," << first.col << "] is " << first.got
         << " and should be " << first.want << " within " << first.tolerance;
}

/// Launch with random data and a poisoned output.
void expect_product(Device &device, const Kernel &kernel,
                    const GemmProblem &problem, Size size, unsigned seed) {
  auto a = random_elements(problem.type, std::size_t(size.m) * size.k, seed);
  auto b =
      random_elements(problem.type, std::size_t(size.k) * size.n, seed + 100);
  auto d = poisoned(problem.out, std::size_t(size.m) * size.n);
  std::vector<HostArgument> arguments = {a, b, d};
  for (const auto &[dim, value] :
       {std::pair{problem.m, size.m}, {problem.n, size.n}, {problem.k, size.k}})
    if (!dim.is_constant())
      arguments.push_back(value);
  LaunchResult result =
      try_run(device, kernel, std::span<const HostArgument>(arguments));
  EXPECT_TRUE(result.ok());
  EXPECT_TRUE(matches(problem, size, a, b, d)) << kernel.name;
}

GemmProblem constant_problem(Size size) {
  return {.m = size.m, .n = size.n, .k = size.k, .layout = GemmLayout::tt};
}
} // namespace

/// Compile each case on any machine; then run those that a device can.
#define EXPECT_GEMM(problem, size, schedule)                                   \
  do {                                                                         \
    Kernel kernel = compile_checked(build_gemm(problem, schedule));            \
    if (conformance::open(GetParam()).device)                                  \
      for (unsigned seed : {1u, 2u})                                           \
        expect_product(*conformance::open(GetParam()).device, kernel, problem, \
                       size, seed);                                            \
  } while (false)

TEST_P(Gemm, IssuesEachMultiplicationTwice) {
  // 128x128x64 is 2 x 4 instructions, once peeled and once in the loop.
  for (GemmKind kind : kKinds) {
    Kernel kernel = compile_checked(build_gemm(
        constant_problem({128, 128, 4096}), {.kind = kind, .stages = 3}));
    EXPECT_EQ(count(kernel.ptx, "wgmma.mma_async"), 16) << name(kind);
  }
}

TEST_P(Gemm, SeedShapes) {
  for (GemmKind kind : kKinds)
    for (Size size : {Size{128, 128, 4096}, Size{256, 1024, 512}})
      EXPECT_GEMM(constant_problem(size), size,
                  (GemmSchedule{.kind = kind, .stages = 3}));
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, OneStageAndTheMost) {
  Size size{128, 256, 1024};
  GemmProblem problem = constant_problem(size);
  for (GemmKind kind : kKinds)
    for (int stages : {1, 2, max_gemm_stages(problem, {})})
      EXPECT_GEMM(problem, size,
                  (GemmSchedule{.kind = kind, .stages = stages}));
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, Layouts) {
  Size size{256, 128, 320};
  for (GemmKind kind : kKinds)
    for (GemmLayout layout : kLayouts) {
      GemmProblem problem = constant_problem(size);
      problem.layout = layout;
      EXPECT_GEMM(problem, size, (GemmSchedule{.kind = kind, .stages = 3}));
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, Types) {
  Size size{128, 128, 256};
  for (Type type : {f16, bf16})
    for (Type out : {f32, f16, bf16}) {
      GemmProblem problem = constant_problem(size);
      problem.type = type;
      problem.out = out;
      EXPECT_GEMM(problem, size, (GemmSchedule{.stages = 3}));
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, Tiles) {
  Size size{192, 256, 256};
  for (auto [m, n, k] : {std::array{64, 64, 64}, std::array{192, 128, 64},
                         std::array{128, 192, 64}, std::array{128, 64, 128}}) {
    GemmSchedule schedule{.tile_m = m, .tile_n = n, .tile_k = k, .stages = 2};
    EXPECT_GEMM(constant_problem(size), size, schedule);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, WidestTile) {
  // One instruction of 256 columns holds 128 registers at once, more than the
  // producer and the consumer have on average.
  Size size{64, 256, 256};
  for (GemmKind kind : kKinds) {
    GemmSchedule schedule{
        .kind = kind, .tile_m = 64, .tile_n = 256, .stages = 2};
    EXPECT_GEMM(constant_problem(size), size, schedule);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, RaggedShapes) {
  for (Size size : {Size{200, 136, 264}, Size{1, 8, 8}, Size{129, 264, 72}})
    for (GemmKind kind : kKinds)
      EXPECT_GEMM(constant_problem(size), size,
                  (GemmSchedule{.kind = kind, .stages = 3}));
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, OddWidth) {
  // B's rows are K long, so N may be anything; D is written one by one.
  for (Size size : {Size{129, 257, 72}, Size{5, 1, 8}})
    for (GemmKind kind : kKinds) {
      GemmProblem problem = constant_problem(size);
      problem.layout = GemmLayout::tn;
      EXPECT_GEMM(problem, size, (GemmSchedule{.kind = kind, .stages = 3}));
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, RowsThatTmaCannotTake) {
  // A, B or both are copied by threads, with sums in registers and through
  // shared memory.
  for (GemmLayout layout : kLayouts)
    for (Size size :
         {Size{131, 136, 200}, Size{72, 129, 201}, Size{7, 200, 65}})
      for (int split_k : {1, 2}) {
        GemmProblem problem = constant_problem(size);
        problem.layout = layout;
        problem.type = bf16, problem.out = bf16;
        EXPECT_GEMM(
            problem, size,
            (GemmSchedule{
                .tile_m = 64, .tile_n = 64, .stages = 3, .split_k = split_k}));
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, RepackedRows) {
  // A, B or both are copied into a workspace first.
  for (GemmLayout layout : kLayouts)
    for (Size size : {Size{131, 136, 200}, Size{72, 129, 201}})
      for (GemmKind kind : {GemmKind::warp_specialized, GemmKind::pingpong}) {
        GemmProblem problem = constant_problem(size);
        problem.layout = layout;
        problem.type = bf16, problem.out = bf16;
        bool has_parts = kind == GemmKind::warp_specialized;
        EXPECT_GEMM(problem, size,
                    (GemmSchedule{.kind = kind,
                                  .tile_m = 64,
                                  .tile_n = 64,
                                  .stages = 3,
                                  .split_k = has_parts ? 2 : 1,
                                  .is_repacked = true}));
      }
  SKIP_WITHOUT_DEVICE();
}

/// The arguments of a kernel, workspaces with a star.
static std::vector<std::string> argument_names(const LaunchContract &contract) {
  std::vector<std::string> names;
  for (const ArgumentSpec &argument : contract.arguments)
    names.push_back(argument.name + (argument.is_workspace ? "*" : ""));
  return names;
}

TEST_P(Gemm, RepackingTakesWorkspacesAndAPlainLaunch) {
  GemmProblem problem = constant_problem({72, 129, 201});
  Kernel kernel =
      compile_checked(build_gemm(problem, {.tile_m = 64, .is_repacked = true}));
  const LaunchContract &contract = kernel.contract;
  EXPECT_FALSE(contract.is_cooperative);
  EXPECT_EQ(argument_names(contract),
            (std::vector<std::string>{"a", "b", "d", "a_rows*", "b_rows*",
                                      "claims*"}));
  // Where TMA takes both there is nothing to copy.
  problem.n = 136, problem.k = 200;
  EXPECT_FALSE(fit(problem, {.is_repacked = true}).is_repacked);
}

TEST_P(Gemm, SumsOverSlots) {
  // Two consumers, one of which is done while the other still multiplies.
  Size size{200, 120, 512};
  for (bool is_swapped : {false, true})
    for (int split_k : {1, 4}) {
      GemmSchedule schedule{.tile_m = 128,
                            .tile_n = 64,
                            .stages = 3,
                            .consumers = 2,
                            .split_k = split_k,
                            .is_swapped = is_swapped};
      GemmProblem problem = constant_problem(size);
      EXPECT_GEMM(problem, size, schedule);
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, PartsOfTheGridTakeWorkspacesAndAPlainLaunch) {
  GemmSchedule schedule{.tile_m = 64, .split_k = 3, .is_split_by_grid = true};
  Kernel kernel =
      compile_checked(build_gemm(constant_problem({72, 136, 256}), schedule));
  EXPECT_FALSE(kernel.contract.is_cooperative);
  EXPECT_EQ(argument_names(kernel.contract),
            (std::vector<std::string>{"a", "b", "d", "parts*", "meetings*",
                                      "meetings_shares*"}));
}

TEST_P(Gemm, ColumnsThatFillNoRowOfTheSwizzle) {
  // B is stored with N contiguous; a tile ends in the middle of a panel.
  for (GemmLayout layout : {GemmLayout::nt, GemmLayout::tt})
    for (int tile_n : {72, 152, 232}) {
      Size size{130, 304, 136};
      GemmProblem problem = constant_problem(size);
      problem.layout = layout;
      EXPECT_GEMM(problem, size,
                  (GemmSchedule{.tile_m = 64, .tile_n = tile_n, .stages = 2}));
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, WaitsForWhatIsAhead) {
  Kernel kernel =
      compile_checked(build_gemm(constant_problem({128, 128, 128}), {}));
  std::size_t wait = kernel.ptx.find("griddepcontrol.wait");
  EXPECT_NE(wait, std::string::npos);
  // Barriers are ready before, nothing has been loaded.
  EXPECT_LT(kernel.ptx.find("mbarrier.init"), wait);
  EXPECT_GT(kernel.ptx.find("cp.async.bulk.tensor"), wait);
  EXPECT_EQ(count(kernel.ptx, "griddepcontrol.launch_dependents"), 1);
}

TEST_P(Gemm, RuntimeM) {
  GemmProblem problem{.m = Dim::argument("m"), .n = 128, .k = 192};
  for (GemmKind kind : kKinds) {
    Kernel kernel = compile_checked(build_gemm(problem, {.kind = kind}));
    if (Device *device = conformance::open(GetParam()).device.get())
      for (int m : {1, 128, 129, 300})
        expect_product(*device, kernel, problem, {m, 128, 192}, m);
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Gemm, RuntimeEverything) {
  GemmProblem problem{.m = Dim::argument("m"),
                      .n = Dim::argument("n"),
                      .k = Dim::argument("k")};
  for (GemmLayout layout : kLayouts)
    for (GemmKind kind : kKinds) {
      problem.layout = layout;
      Kernel kernel =
          compile(build_gemm(problem, {.kind = kind}), {.use_cache = false});
      // Fewer K tiles than stages, as many, and more.
      if (Device *device = conformance::open(GetParam()).device.get())
        for (Size size : {Size{128, 128, 64}, Size{200, 136, 256},
                          Size{8, 8, 8}, Size{128, 264, 1000}})
          expect_product(*device, kernel, problem, size, size.k);
    }
  SKIP_WITHOUT_DEVICE();
}

// A producer that loads the next output tiles into slots that one has no use
// for, and rows of D that TMA cannot take, in tiles of any width.
TEST_P(Gemm, ShortKOfManyTiles) {
  expect_gemms(GetParam(),
               {{"700x331x47 bf16 -> bf16 tn",
                 "pingpong 128x160x64 stages=4 ctas=2 repack=on"},
                {"500x330x100 bf16 -> bf16 nn",
                 "cooperative 128x176x64 stages=3 ctas=1"},
                {"300x301x64 bf16 -> f32 tn alpha beta bias=column act=gelu",
                 "pingpong 64x104x64 stages=5 ctas=2"},
                {"200x203x64 e4m3 -> e4m3 tn batch=2",
                 "cooperative 128x104x64 stages=3 ctas=2"}});
  SKIP_WITHOUT_DEVICE();
}

// Products side by side in rows of A and D, one matrix for all of them, gaps
// that TMA can step over and others that it cannot.
TEST_P(Gemm, StridesOfProducts) {
  expect_gemms(
      GetParam(),
      {{"100x72x64 f16 -> f32 tn batch=3 lda=192 ldd=216 stride-a=64 "
        "stride-c=0 stride-d=72 beta",
        "64x72x64 stages=2"},
       {"100x72x64 bf16 -> bf16 nn batch=3 stride-a=0 stride-d=7208",
        "cooperative 128x72x64 stages=2"},
       {"100x71x63 bf16 -> bf16 tt batch=2 stride-a=6301 stride-b=0 "
        "stride-d=7103",
        "pingpong 64x64x64 stages=2 repack=on"},
       {"70x90x200 f16 -> f16 tn batch=3 stride-b=0 stride-c=6301 "
        "stride-d=6303 beta",
        "64x64x64 stages=2 split-k=2 swap=on"},
       {"60x50x64 f16 -> f32 nt batch=2 stride-a=0 stride-b=3201 d=column",
        "multistage 64x64x64 stages=2"},
       {"1x77x512 bf16 -> bf16 tn batch=3 stride-a=514 stride-b=0", "vector"},
       {"33x40x64 f16 -> f32 tn batch=2 stride-a=0 stride-d=1400",
        "64x40x64 stages=1"}});
  SKIP_WITHOUT_DEVICE();
}
