// Ladder: the ten steps for Blackwell, under every order of effects. On the
// simulator, and assembled; no such GPU was there to run them.
#include "conformance/AllOrders.h"

#include <kiln/run/run.h>
#include "conformance/Conformance.h"

#include "tutorial/blackwell/ladder.h"

using namespace conformance;
using ladder::Shape;

namespace {
struct Step {
  const char *name;
  std::function<Module(const Shape &)> build;
  std::vector<Shape> shapes;

  friend std::ostream &operator<<(std::ostream &out, const Step &step) {
    return out << step.name;
  }
};

class Ladder : public testing::TestWithParam<Step> {};
} // namespace

/// One K tile, two, and more than there are slots; several tiles each way.
static std::vector<Shape> shapesOf(int tile_m, int tile_n) {
  return {{tile_m, tile_n, 64},
          {2 * tile_m, tile_n, 128},
          {2 * tile_m, 3 * tile_n, 320}};
}

static std::vector<Step> steps() {
  constexpr int kCtas = 4; // fewer than tiles, so that each takes several
  auto small = shapesOf(128, 128);
  return {
      {"OneTile",
       [](const Shape &) { return ladder::one_tile(); },
       {{128, 128, 64}}},
      {"KLoop",
       [](const Shape &s) { return ladder::k_loop(s.k); },
       {{128, 128, 64}, {128, 128, 128}, {128, 128, 448}}},
      {"ManyCtas", ladder::many_ctas, small},
      {"Tma", ladder::tma, small},
      {"SoftwarePipeline", ladder::software_pipeline, small},
      {"Persistent",
       [](const Shape &s) { return ladder::persistent(s, kCtas); }, small},
      {"WarpSpecialized",
       [](const Shape &s) { return ladder::warp_specialized(s, kCtas); },
       small},
      {"DeepPipeline",
       [](const Shape &s) { return ladder::deep_pipeline(s, kCtas); }, small},
      {"CtaPair", [](const Shape &s) { return ladder::cta_pair(s, kCtas); },
       shapesOf(256, 256)},
      {"TwoConsumers",
       [](const Shape &s) { return ladder::two_consumers(s, kCtas); },
       shapesOf(512, 256)},
  };
}

INSTANTIATE_TEST_SUITE_P(, Ladder, testing::ValuesIn(steps()),
                         [](const auto &info) {
                           return std::string(info.param.name);
                         });

TEST_P(Ladder, IsRightUnderAllOrders) {
  static std::shared_ptr<Device> device =
      open_all_orders(DeviceDescription::b200());
  unsigned seed = 1;
  for (const Shape &shape : GetParam().shapes) {
    Kernel kernel = compile_checked(GetParam().build(shape));
    EXPECT_EQ(kernel.target, "sm_100a");
    std::size_t m = shape.m, n = shape.n, k = shape.k;
    std::vector<std::uint8_t> a = random_elements(f16, m * k, ++seed),
                              b = random_elements(f16, n * k, ++seed),
                              d = poisoned(f16, m * n);
    run(*device, kernel, a, b, d);
    std::vector<double> found = values(f16, d);
    ReferenceProduct want = reference_gemm({.m = shape.m,
                                            .n = shape.n,
                                            .k = shape.k,
                                            .a = a.data(),
                                            .b = b.data()});
    for (std::size_t i = 0; i < found.size(); ++i)
      ASSERT_NEAR(found[i], want.d[i], 1e-2 + 1e-3 * std::abs(want.d[i]))
          << "element " << i << " of " << shape.m << "x" << shape.n << "x"
          << shape.k;
  }
}
