// TileMath: arithmetic of register tiles, broadcasts, casts and reductions.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace conformance;

class TileMath : public OnDevice {};
INSTANTIATE_ON_DEVICES(TileMath);

/// Runs `kernel` on small integers and compares what it writes with
/// `formula(row, column, element)` of the input.
static void
expectFormula(const std::string &id, const Kernel &kernel, Type in, Type out,
              int rows, int columns,
              const std::function<double(int, int, double)> &formula,
              double tolerance = 0) {
  Device *device = conformance::open(id).device.get();
  if (!device)
    return;
  std::vector<double> x, expected;
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      x.push_back((row * 7 + column * 5) % 23 - 11);
      expected.push_back(formula(row, column, x.back()));
    }
  std::vector<std::uint8_t> a = elements(in, x);
  std::vector<std::uint8_t> b = poisoned(out, expected.size());
  EXPECT_TRUE(try_run(*device, kernel, a, b).ok());
  EXPECT_THAT(values(out, b),
              testing::Pointwise(testing::DoubleNear(tolerance), expected));
}

/// The input as expectFormula makes it.
static double input(int row, int column) {
  return (row * 7 + column * 5) % 23 - 11;
}

TEST_P(TileMath, Operators) {
  for (Type type : {f32, f16, i32}) {
    KernelBuilder kb("operators", {.threads = 128});
    Tensor x = kb.tensor("x", type, {64, 16});
    Tensor y = kb.tensor("y", type, {64, 16});
    RegisterTile a = load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0});
    Value two = constant(type, 2);
    RegisterTile b = 3 * a - two;
    b = b + a * a;
    b = max(min(b, a * 4), -a);
    b = (1 - b) / 2 * 2;
    b.store(y, {0, 0});
    Kernel kernel = compile_checked(kb.module());
    expectFormula(GetParam(), kernel, type, type, 64, 16,
                  [&](int, int, double v) {
                    double r = 3 * v - 2 + v * v;
                    r = std::max(std::min(r, v * 4), -v);
                    r = (1 - r) / 2;
                    return 2 * (type == i32 ? std::trunc(r) : r);
                  });
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMath, MapFmaAndCast) {
  KernelBuilder kb("mapped", {.threads = 32});
  Tensor x = kb.tensor("x", f16, {16, 16});
  Tensor y = kb.tensor("y", i32, {16, 16});
  RegisterTile a =
      cast(load_tile(RegisterLayout::mma_accumulator(16, 16), x, {0, 0}), f32);
  RegisterTile b = fma(a, 2, a);
  RegisterTile c =
      map([](Value u, Value v, Value w) { return select(u < 0, v, w); }, a, b,
          -b + 1);
  cast(c, i32).store(y, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  expectFormula(GetParam(), kernel, f16, i32, 16, 16,
                [](int, int, double v) { return v < 0 ? 3 * v : 1 - 3 * v; });
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMath, FunctionsAndFastDivision) {
  // Of powers of two the approximate functions are exact on the simulator, and
  // within units of 2^-22 elsewhere: lg2 of the result, 14 at most.
  KernelBuilder kb("functions", {.threads = 128});
  Tensor x = kb.tensor("x", f32, {64, 16}), y = kb.tensor("y", f32, {64, 16});
  RegisterTile a = load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0});
  RegisterTile power = exp2(a);
  RegisterTile four = rcp(rsqrt(sqrt(power * 0.0 + 256.0))); // [64, 16]
  RegisterTile rows = reduce_rows(four, Reduction::max);     // [64, 1]
  log2(fast_divide(fast_divide(power, rows), 2)).store(y, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  EXPECT_EQ(count(kernel.ptx, "rcp.approx.f32"), 8 + 2 + 1)
      << "one for each row of a thread, and one for all";
  EXPECT_EQ(count(kernel.ptx, "div."), 0);
  expectFormula(
      GetParam(), kernel, f32, f32, 64, 16,
      [](int, int, double v) { return v - 3; }, GetParam() == "sim" ? 0 : 1e-5);
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMath, HalvesStayPackedInALoop) {
  for (Type type : {bf16, f16}) {
    KernelBuilder kb("packed", {.threads = 128});
    Tensor x = kb.tensor("x", type, {64, 16}),
           y = kb.tensor("y", type, {64, 16});
    RegisterTile a = load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0});
    RegisterTile sum = a;
    for_range(0, 3, [&](Value) { sum = sum + a; }, {.unroll = 1});
    sum.store(y, {0, 0});
    Kernel kernel = compile_checked(kb.module());
    std::size_t begin = kernel.ptx.find("$L__BB"),
                end = kernel.ptx.rfind("bra");
    std::string loop = kernel.ptx.substr(begin, end - begin);
    EXPECT_EQ(count(loop, "%rs"), 0) << "a register of 16 bits in " << loop;
    expectFormula(GetParam(), kernel, type, type, 64, 16,
                  [](int, int, double v) { return 4 * v; });
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMath, RowsAndColumnsAreBroadcast) {
  const std::pair<RegisterLayout, int> cases[] = {
      {RegisterLayout::accumulator(64, 24), 128},
      {RegisterLayout::mma_accumulator(16, 8), 32},
      {RegisterLayout::row_per_thread(64, 6), 64},
      {RegisterLayout::strided(32, 4, 32, 2), 32}};
  for (const auto &[layout, threads] : cases) {
    SCOPED_TRACE(layout.to_string());
    int rows = layout.rows(), columns = layout.columns();
    KernelBuilder kb("rows", {.threads = threads});
    Tensor x = kb.tensor("x", f32, {rows, columns});
    Tensor y = kb.tensor("y", f32, {rows, columns});
    RegisterTile a = load_tile(layout, x, {0, 0});
    RegisterTile sum = reduce_rows(a, Reduction::add);
    RegisterTile least = reduce_rows(a, Reduction::min);
    ((a - reduce_rows(a, Reduction::max)) * 1000 + sum * least)
        .store(y, {0, 0});
    Kernel kernel = compile_checked(kb.module());
    expectFormula(GetParam(), kernel, f32, f32, rows, columns,
                  [&, columns = columns](int row, int, double v) {
                    double most = -99, least = 99, sum = 0;
                    for (int column = 0; column < columns; ++column) {
                      most = std::max(most, input(row, column));
                      least = std::min(least, input(row, column));
                      sum += input(row, column);
                    }
                    return (v - most) * 1000 + sum * least;
                  });
  }
  SKIP_WITHOUT_DEVICE();
}

/// y = x - (sum of its column), by way of a scratch tile where the layout needs
/// one.
static Kernel lessColumnSums(const RegisterLayout &layout, int threads,
                             bool hasBarrier) {
  KernelBuilder kb("columns", {.threads = threads});
  Tensor x = kb.tensor("x", f32, {layout.rows(), layout.columns()});
  Tensor y = kb.tensor("y", f32, {layout.rows(), layout.columns()});
  SharedTile scratch = kb.shared({f32, layout.columns(), 4});
  ReduceOptions options{scratch};
  if (hasBarrier)
    options.barrier = kb.named_barriers(1, layout.threads())[0];
  if_(thread_id() < layout.threads(), [&] {
    RegisterTile a = load_tile(layout, x, {0, 0});
    RegisterTile sums = reduce_columns(a, Reduction::add, options);
    (a - sums).store(y, {0, 0});
  });
  return compile_checked(kb.module());
}

TEST_P(TileMath, ReductionsThroughSharedMemory) {
  for (const auto &[layout, threads] :
       {std::pair{RegisterLayout::accumulator(64, 16), 128},
        {RegisterLayout::strided(128, 32, 32, 4), 128},
        {RegisterLayout::accumulator(64, 8), 256}}) {
    SCOPED_TRACE(layout.to_string());
    Kernel kernel = lessColumnSums(layout, threads, threads > 128);
    expectFormula(GetParam(), kernel, f32, f32, layout.rows(), layout.columns(),
                  [&, rows = layout.rows()](int, int column, double v) {
                    for (int row = 0; row < rows; ++row)
                      v -= input(row, column);
                    return v;
                  });
  }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(TileMath, OneOfTheCopiesIsStored) {
  KernelBuilder kb("sums", {.threads = 128});
  Tensor x = kb.tensor("x", f32, {64, 16});
  Tensor y = kb.tensor("y", f32, {64, 1});
  RegisterTile a = load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0});
  reduce_rows(a, Reduction::max).store(y, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<double> numbers, expected;
  for (int row = 0; row < 64; ++row) {
    for (int column = 0; column < 16; ++column)
      numbers.push_back(input(row, column));
    expected.push_back(*std::max_element(numbers.end() - 16, numbers.end()));
  }
  std::vector<std::uint8_t> in = elements(f32, numbers);
  std::vector<std::uint8_t> out = poisoned(f32, 64);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(values(f32, out), expected);
}

TEST_P(TileMath, BecomesTheseInstructions) {
  KernelBuilder kb("form", {.threads = 128});
  Tensor x = kb.tensor("x", f32, {64, 16});
  Tensor y = kb.tensor("y", f16, {64, 16});
  RegisterTile a = load_tile(RegisterLayout::accumulator(64, 16), x, {0, 0},
                             {.is_inside = true});
  a = a - reduce_rows(a, Reduction::max);
  RegisterTile b = cast(a, f16);
  fma(b, b, 1).store(y, {0, 0}, {.is_inside = true});
  std::string ptx = compile_checked(kb.module()).ptx;
  // A thread holds parts of two rows, each spread over four lanes.
  EXPECT_EQ(count(ptx, "shfl.sync.bfly.b32"), 4);
  EXPECT_EQ(count(ptx, "bar.sync"), 0);
  // Neighbours go together.
  EXPECT_EQ(count(ptx, "ld.global.v2.b32"), 4);
  EXPECT_EQ(count(ptx, "cvt.rn.f16x2.f32"), 4);
  EXPECT_EQ(count(ptx, "fma.rn.f16x2"), 4);
  EXPECT_EQ(count(ptx, "st.global.b32"), 4);
}

TEST_P(TileMath, EightBitFloats) {
  KernelBuilder kb("bytes", {.threads = 32});
  Tensor x = kb.tensor("x", e4m3, {9, 16});
  Tensor y = kb.tensor("y", f32, {16, 16});
  RegisterTile a = load_tile(RegisterLayout::mma_accumulator(16, 16), x, {0, 0},
                             {.fill = 0.5});
  (cast(a, f32) * 2).store(y, {0, 0});
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<double> numbers, expected;
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 16; ++column) {
      if (row < 9)
        numbers.push_back((row * 3 + column) % 15 - 7);
      expected.push_back(row < 9 ? 2 * numbers.back() : 1);
    }
  std::vector<std::uint8_t> in = elements(e4m3, numbers);
  std::vector<std::uint8_t> out = poisoned(f32, 256);
  EXPECT_TRUE(try_run(device, kernel, in, out).ok());
  EXPECT_EQ(values(f32, out), expected);
}
