// Lessons: the kernels of the tutorial, checked harder than a lesson does.
#include "Conformance.h"

#include "tutorial/lessons.h"

using namespace conformance;

class Lessons : public OnDevice {};
INSTANTIATE_ON_DEVICES(Lessons);

TEST_P(Lessons, HelloWorldPrints) {
  Kernel kernel = compile_checked(lessons::hello_world());
  EXPECT_EQ(count(kernel.ptx, "vprintf, "), 1);
  OPEN_OR_SKIP(device);
  EXPECT_TRUE(run(device, kernel).ok());
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
