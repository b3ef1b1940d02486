// Control: loops, branches, variables, and tensors of every rank.
#include "Conformance.h"

#include <numeric>

using namespace conformance;

class Control : public OnDevice {};
INSTANTIATE_ON_DEVICES(Control);

TEST_P(Control, VarAcrossForRange) {
  KernelBuilder kb("sums", {.threads = 64});
  Dim n = kb.dim("n");
  Tensor x = kb.tensor("x", i32, {n});
  Tensor y = kb.tensor("y", i32, {64});
  Var sum(i32, 0);
  for_range(thread_id(), n, 64, [&](Value i) { sum = sum + x(i); });
  y(thread_id()) = sum;
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  for (int n : {1, 64, 1000}) {
    std::vector<int> x(n), y(64, -1), expected(64, 0);
    std::iota(x.begin(), x.end(), 3);
    for (int i = 0; i < n; ++i)
      expected[i % 64] += x[i];
    run(device, kernel, n, x, y);
    EXPECT_EQ(y, expected) << n;
  }
}

TEST_P(Control, ForRangeOfEveryIntegerType) {
  // Unsigned loops count beyond the signed end.
  KernelBuilder kb("ranges", {.threads = 1});
  Tensor out = kb.tensor("out", i32, {4});
  int slot = 0;
  auto trips = [&](Value from, Value to) {
    Var count(i32, 0);
    for_range(from, to, [&](Value) { count = count + 1; });
    out(slot++) = count;
  };
  Value zero = cast(thread_id(), u32);
  trips(zero + 0x7ffffffe, zero + 0x80000003);
  trips(cast(zero, i64) - 2, cast(zero, i64) + 3);
  trips(thread_id() - 5, thread_id() - 1);
  trips(cast(zero, u64), cast(zero, u64));
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(4, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{5, 5, 4, 0}));
}

TEST_P(Control, WhileCountsCollatzSteps) {
  KernelBuilder kb("collatz", {.threads = 128});
  Tensor steps = kb.tensor("steps", i32, {128});
  Var number(i32, thread_id() + 1), count(i32, 0);
  while_([&] { return number != 1; },
         [&] {
           if_(
               Value(number) % 2 == 0, [&] { number = number / 2; },
               [&] { number = 3 * Value(number) + 1; });
           count = count + 1;
         });
  steps(thread_id()) = count;
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(128, -1), expected;
  for (int i = 1; i <= 128; ++i) {
    int count = 0;
    for (int n = i; n != 1; n = n % 2 ? 3 * n + 1 : n / 2)
      ++count;
    expected.push_back(count);
  }
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Control, NestedLoopsAndBranches) {
  // Divisors of each number, with the largest one below it.
  KernelBuilder kb("divisors", {.threads = 96});
  Tensor out = kb.tensor("out", i32, {96, 2});
  Value n = thread_id() + 1;
  Var count(i32, 0), largest(i32, 0);
  for_range(1, n + 1, [&](Value a) {
    Var is_divisor(i32, 0);
    for_range(1, n + 1,
              [&](Value b) { if_(a * b == n, [&] { is_divisor = 1; }); });
    if_(is_divisor == 1, [&] {
      count = count + 1;
      if_(a < n, [&] { largest = a; }, [&] { largest = largest + 0; });
    });
  });
  out(thread_id(), 0) = count;
  out(thread_id(), 1) = largest;
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(192, -1), expected;
  for (int n = 1; n <= 96; ++n) {
    int count = 0, largest = 0;
    for (int a = 1; a <= n; ++a)
      if (n % a == 0) {
        ++count;
        largest = a < n ? a : largest;
      }
    expected.push_back(count);
    expected.push_back(largest);
  }
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Control, VarsOfEveryKindAndDims) {
  KernelBuilder kb("vars", {.threads = 32});
  Dim n = kb.dim("n");
  Tensor out = kb.tensor("out", f64, {5, 32});
  Value i = thread_id();
  Var wide(i64, 1), real(f32, 0.5), flag(i1, false), small(u8, 250);
  for_range(0, n, [&](Value k) {
    wide = wide * 3;
    real = real * 2;
    flag = !flag;
    small = small + 1;
    if_(k > i, [&] { real = real + 1; });
  });
  out(0, i) = cast(wide, f64);
  out(1, i) = cast(real, f64);
  out(2, i) = cast(flag, f64);
  out(3, i) = cast(small, f64);
  out(4, i) = cast(value_of(ceil_div(n, 4) * 2 - n / 3 + n % 5), f64);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  const int n_value = 11;
  std::vector<double> found(5 * 32, -1), expected(5 * 32);
  for (int i = 0; i < 32; ++i) {
    float real = 0.5;
    for (int k = 0; k < n_value; ++k)
      real = real * 2 + (k > i ? 1 : 0);
    double all[] = {177147, real, 1, 5, 3 * 2 - 3 + 1};
    for (int k = 0; k < 5; ++k)
      expected[k * 32 + i] = all[k];
  }
  run(device, kernel, n_value, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Control, TensorsOfRanksAndStrides) {
  KernelBuilder kb("ranks", {.threads = 30});
  Tensor line = kb.tensor("line", i32, {30}, {2});
  Tensor plane = kb.tensor("plane", i16, {5, 6}, {1, 5}); // column-major
  Tensor cube = kb.tensor("cube", i64, {2, 3, 5}, {40, 10, 2});
  Tensor out = kb.tensor("out", i64, {3, 2, 15});
  Value t = thread_id();
  out(0, t / 15, t % 15) = cast(line(t), i64);
  out(1, t / 15, t % 15) = cast(plane(t / 6, t % 6), i64);
  out.at({2, t / 15, t % 15}) = cube(t / 15, t / 5 % 3, t % 5);
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> line_data(59);
  std::vector<std::int16_t> plane_data(30);
  std::vector<std::int64_t> cube_data(40 + 20 + 8 + 1);
  std::iota(line_data.begin(), line_data.end(), 100);
  std::iota(plane_data.begin(), plane_data.end(), 1000);
  std::iota(cube_data.begin(), cube_data.end(), 10000);
  std::vector<std::int64_t> found(90, -1), expected(90);
  for (int t = 0; t < 30; ++t) {
    expected[t] = line_data[2 * t];
    expected[30 + t] = plane_data[t / 6 + t % 6 * 5];
    expected[60 + t] = cube_data[t / 15 * 40 + t / 5 % 3 * 10 + t % 5 * 2];
  }
  run(device, kernel, line_data, plane_data, cube_data, found);
  EXPECT_EQ(found, expected);
}

TEST_P(Control, VectorStores) {
  KernelBuilder kb("vectors", {.threads = 32});
  Tensor out = kb.tensor("out", f32, {32, 8});
  Value t = thread_id(), x = cast(t, f32);
  out.store_vector({t, 0}, {x, x + 0.5, x + 0.25, x - 1});
  out.store_vector({t, 4}, {x * 2, x * 3});
  out.store_vector({t, 6}, {-x});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "st.global.v4"), 1);
  OPEN_OR_SKIP(device);
  std::vector<float> found(256, -7), expected;
  for (int t = 0; t < 32; ++t)
    for (float value : {t + 0.f, t + 0.5f, t + 0.25f, t - 1.f, t * 2.f, t * 3.f,
                        -1.f * t, -7.f})
      expected.push_back(value);
  run(device, kernel, found);
  EXPECT_EQ(found, expected);
}
