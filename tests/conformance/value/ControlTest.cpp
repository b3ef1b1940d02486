// Control: loops, branches, variables, and tensors of every rank.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <cmath>
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

TEST_P(Control, ForRangeCountsDown) {
  KernelBuilder kb("down", {.threads = 1});
  Dim n = kb.dim("n");
  Tensor order = kb.tensor("order", i32, {3, 16});
  auto record =
      [&](int row,
          const std::function<void(const std::function<void(Value)> &)> &loop) {
        Var at(i32, 0);
        loop([&](Value i) {
          order(row, at) = cast(i, i32);
          at = at + 1;
        });
      };
  record(0, [&](auto &body) { for_range(n, -1, -1, body); });
  record(1, [&](auto &body) { for_range(n, 0, -3, body); });
  Value high = cast(value_of(n), u32) + 0x80000000u;
  record(2, [&](auto &body) {
    for_range(high, high - 3, -2, [&](Value i) { body(i - 0x80000000u); });
  });
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  for (int n : {0, 7, 9}) {
    std::vector<int> found(48, -1), expected(48, -1);
    for (int i = n, at = 0; i > -1; --i)
      expected[at++] = i;
    for (int i = n, at = 16; i > 0; i -= 3)
      expected[at++] = i;
    expected[32] = n;
    expected[33] = n - 2;
    run(device, kernel, n, found);
    EXPECT_EQ(found, expected) << n;
  }
}

TEST_P(Control, ForRangeStepsByAValue) {
  KernelBuilder kb("strides", {.threads = 4});
  Tensor y = kb.tensor("y", i32, {4});
  Var sum(i32, 0);
  for_range(0, 20, thread_id() + 1, [&](Value i) { sum = sum + i; });
  y(thread_id()) = sum;
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(4, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{190, 90, 63, 40}));
}

TEST_P(Control, CarriedValues) {
  KernelBuilder kb("fibonacci", {.threads = 32});
  Tensor y = kb.tensor("y", i32, {32});
  Tensor z = kb.tensor("z", f32, {32});
  Value zero = constant(i32, 0), one = constant(i32, 1);
  Values last = for_range(0, thread_id(), 1, {zero, one, constant(f32, 1)},
                          [&](Value, Values carried) {
                            return Values{carried[1], carried[0] + carried[1],
                                          carried[2] * 0.5};
                          });
  y(thread_id()) = last[0];
  z(thread_id()) = last[2];
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<int> found(32, -1), expected = {0, 1};
  std::vector<float> halves(32, -1);
  while (expected.size() < 32)
    expected.push_back(expected.end()[-1] + expected.end()[-2]);
  run(device, kernel, found, halves);
  EXPECT_EQ(found, expected);
  for (int i = 0; i < 32; ++i)
    EXPECT_EQ(halves[i], std::ldexp(1.f, -i));
}

TEST_P(Control, UnrolledLoops) {
  for (int unroll : {0, 1, 4}) {
    KernelBuilder kb("copies", {.threads = 32});
    Dim n = kb.dim("n");
    Tensor x = kb.tensor("x", i32, {n, 32});
    for_range(0, n, [&](Value i) { reduce_add(x(i, thread_id()), i); },
              {.unroll = unroll});
    Kernel kernel = compile_checked(kb.module());
    EXPECT_EQ(count(kernel.ptx, "red.relaxed.gpu.global.add"),
              unroll == 4 ? 5 : 1)
        << unroll;
    EXPECT_EQ(count(kernel.ptx, ".pragma \"nounroll\""), unroll == 1 ? 1 : 0)
        << unroll;
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    int rows = 11;
    std::vector<int> found(rows * 32, 1), expected(rows * 32);
    for (int i = 0; i < rows * 32; ++i)
      expected[i] = 1 + i / 32;
    run(*device, kernel, rows, found);
    EXPECT_EQ(found, expected) << unroll;
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Control, UnrolledLoopsOfAnyBounds) {
  // Bounds in either order, with and without turns to spare; the carried value
  // sees the turns in their order.
  for (Type type : {i32, u32})
    for (int step : {1, 3}) {
      int shift = type == i32 ? 5 : 0;
      KernelBuilder kb("bounds", {.threads = 64});
      Tensor y = kb.tensor("y", i32, {64});
      Value t = thread_id();
      Value lower = cast(t / 8 - shift, type);
      Value upper = cast(t % 8 * 2 - shift, type);
      y(t) = for_range(lower, upper, step, {constant(i32, 1)},
                       [&](Value i, Values carried) {
                         return Values{carried[0] * 3 + cast(i, i32)};
                       },
                       {.unroll = 2})[0];
      Kernel kernel = compile_checked(kb.module());
      Device *device = conformance::open(GetParam()).device.get();
      if (!device)
        continue;
      std::vector<int> found(64, -1), expected(64, 1);
      for (int t = 0; t < 64; ++t)
        for (int i = t / 8 - shift; i < t % 8 * 2 - shift; i += step)
          expected[t] = expected[t] * 3 + i;
      run(*device, kernel, found);
      EXPECT_EQ(found, expected) << name(type) << " " << step;
    }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Control, UnrolledHasNumbers) {
  KernelBuilder kb("numbers", {.threads = 1});
  Tensor y = kb.tensor("y", i32, {8});
  std::vector<int> seen;
  unrolled(7, -1, -2, [&](int i) {
    seen.push_back(i);
    y(i) = 10 * i;
  });
  EXPECT_EQ(seen, (std::vector<int>{7, 5, 3, 1}));
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "bra"), 0);
  OPEN_OR_SKIP(device);
  std::vector<int> found(8, -1);
  run(device, kernel, found);
  EXPECT_EQ(found, (std::vector<int>{-1, 10, -1, 30, -1, 50, -1, 70}));
}
