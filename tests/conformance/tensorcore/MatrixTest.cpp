// Matrix: matrices in the registers of a warp: moved, transposed, multiplied.
#include "conformance/Conformance.h"

#include <kiln/run/run.h>

#include <numeric>

using namespace conformance;

class Matrix : public OnDevice {};
INSTANTIATE_ON_DEVICES(Matrix);

namespace {
constexpr int kLanes = 32;

/// Numbers of a tile of 16x16 as a lane's words hold them: matrix, lane, half.
int element_of(int matrix, int lane, int half, bool transpose) {
  int row = lane / 4, column = lane % 4 * 2 + half;
  if (transpose)
    std::swap(row, column);
  return (row + matrix % 2 * 8) * 16 + column + matrix / 2 * 8;
}
} // namespace

/// Reads `count` matrices of a tile that holds 0, 1, 2, ...
static Kernel reader(int count, bool transpose, Swizzle swizzle) {
  KernelBuilder kb("reader", {.threads = kLanes});
  Tensor y = kb.tensor("y", f16, {count, kLanes, 2});
  SharedTile tile =
      kb.shared({.type = f16, .rows = 16, .columns = 16, .swizzle = swizzle});
  Value lane = thread_id();
  for (int i = 0; i < 8; ++i) {
    Value element = lane * 8 + i;
    tile(element / 16, element % 16) = cast(element, f16);
  }
  sync_threads();
  Values words =
      ldmatrix(tile(lane % 16, lane / 16 * 8), count, {.transpose = transpose});
  for (int i = 0; i < count; ++i)
    y.store_vector({i, lane, 0}, unpack(words[i], f16));
  return compile_checked(kb.module());
}

TEST_P(Matrix, Loads) {
  for (Swizzle swizzle : {Swizzle::none, Swizzle::b32})
    for (bool transpose : {false, true})
      for (int count : {1, 2, 4}) {
        Kernel kernel = reader(count, transpose, swizzle);
        Device *device = conformance::open(GetParam()).device.get();
        if (!device)
          continue;
        std::vector<std::uint8_t> y = poisoned(f16, count * kLanes * 2);
        run(*device, kernel, y);
        std::vector<double> expected;
        for (int i = 0; i < count; ++i)
          for (int lane = 0; lane < kLanes; ++lane)
            for (int half : {0, 1})
              expected.push_back(element_of(i, lane, half, transpose));
        EXPECT_EQ(values(f16, y), expected) << count << transpose;
      }
  SKIP_WITHOUT_DEVICE();
}

/// Writes `count` matrices whose words are numbered like those of `reader`, so
/// that the tile holds 0, 1, 2, ... where a matrix was written.
static Kernel writer(int count, bool transpose, Swizzle swizzle) {
  KernelBuilder kb("writer", {.threads = kLanes});
  Tensor y = kb.tensor("y", f16, {16, 16});
  SharedTile tile =
      kb.shared({.type = f16, .rows = 16, .columns = 16, .swizzle = swizzle});
  Value lane = thread_id();
  for (int i = 0; i < 8; ++i)
    tile((lane * 8 + i) / 16, (lane * 8 + i) % 16) = constant(f16, -1);
  sync_threads();
  Values words;
  for (int i = 0; i < count; ++i) {
    Value row = lane / 4, column = lane % 4 * 2;
    Value first = transpose ? column * 16 + row : row * 16 + column;
    first = first + (i % 2 * 8 * 16 + i / 2 * 8);
    words.push_back(
        pack({cast(first, f16), cast(first + (transpose ? 16 : 1), f16)}));
  }
  stmatrix(tile(lane % 16, lane / 16 * 8), words, {.transpose = transpose});
  sync_threads();
  for (int i = 0; i < 8; ++i)
    y((lane * 8 + i) / 16, (lane * 8 + i) % 16) =
        tile((lane * 8 + i) / 16, (lane * 8 + i) % 16);
  return compile_checked(kb.module());
}

TEST_P(Matrix, Stores) {
  for (Swizzle swizzle : {Swizzle::none, Swizzle::b32})
    for (bool transpose : {false, true})
      for (int count : {1, 2, 4}) {
        Kernel kernel = writer(count, transpose, swizzle);
        Device *device = conformance::open(GetParam()).device.get();
        if (!device)
          continue;
        std::vector<std::uint8_t> y = poisoned(f16, 256);
        run(*device, kernel, y);
        std::vector<double> expected(256, -1);
        for (int i = 0; i < count; ++i)
          for (int lane = 0; lane < kLanes; ++lane)
            for (int half : {0, 1}) {
              int element = element_of(i, lane, half, false);
              expected[element] = element;
            }
        EXPECT_EQ(values(f16, y), expected) << count << transpose;
      }
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Matrix, Transposed) {
  KernelBuilder kb("transposed", {.threads = kLanes});
  Tensor y = kb.tensor("y", f16, {kLanes, 2});
  Value lane = thread_id();
  Value word = pack({cast(lane * 2, f16), cast(lane * 2 + 1, f16)});
  y.store_vector({lane, 0}, unpack(movmatrix(word), f16));
  Kernel kernel = compile_checked(kb.module());
  OPEN_OR_SKIP(device);
  std::vector<std::uint8_t> found = poisoned(f16, 64);
  run(device, kernel, found);
  std::vector<double> expected(64);
  for (int row = 0; row < 8; ++row)
    for (int column = 0; column < 8; ++column)
      expected[row * 8 + column] = column * 8 + row;
  EXPECT_EQ(values(f16, found), expected);
}

// Products, with fragments as PTX lays them out.

namespace {
/// The registers of one operand: row and column of the i-th element of
/// register r, where a register holds `each` elements along K.
Values load_fragment(const Tensor &from, int registers, bool is_a, int m) {
  int each = std::max(1, 4 / size_bytes(from.type()));
  Value group = thread_id() / 4, inside = thread_id() % 4;
  Values result;
  for (int r = 0; r < registers; ++r) {
    int row = is_a && m == 16 ? r % 2 * 8 : 0;
    int block = is_a && m == 16 ? r / 2 : r;
    Values elements;
    for (int i = 0; i < each; ++i) {
      Value outer = group + row, k = inside * each + (block * 4 * each + i);
      elements.push_back(is_a ? Value(from(outer, k)) : Value(from(k, outer)));
    }
    result.push_back(each > 1                   ? pack(elements)
                     : from.type() == Type::f64 ? elements[0]
                                                : bitcast(elements[0], u32));
  }
  return result;
}
} // namespace

static Kernel product(const MmaForm &form) {
  KernelBuilder kb("product", {.threads = kLanes});
  Tensor a = kb.tensor("a", form.a, {form.m, form.k});
  Tensor b = kb.tensor("b", form.b, {form.k, form.n});
  Tensor d = kb.tensor("d", form.accumulator, {form.m, form.n});
  Value row = thread_id() / 4, column = thread_id() % 4 * 2;
  bool is_packed = form.accumulator == f16;
  Values c(form.accumulators(), is_packed ? pack(Values(2, constant(f16, 1)))
                                          : constant(form.accumulator, 1));
  c = mma(form, load_fragment(a, form.a_registers(), true, form.m),
          load_fragment(b, form.b_registers(), false, form.m), c);
  Values sums;
  for (const Value &value : c)
    for (const Value &sum : is_packed ? unpack(value, f16) : Values{value})
      sums.push_back(sum);
  for (int i = 0; i < static_cast<int>(sums.size()); ++i)
    d(row + i / 2 * 8, column + i % 2) = sums[i];
  return compile_checked(kb.module());
}

TEST_P(Matrix, Products) {
  const MmaForm forms[] = {
      {16, 8, 8, f16, f16, f32},   {16, 8, 16, f16, f16, f32},
      {16, 8, 8, f16, f16, f16},   {16, 8, 16, f16, f16, f16},
      {16, 8, 8, bf16, bf16, f32}, {16, 8, 16, bf16, bf16, f32},
      {16, 8, 4, tf32, tf32, f32}, {16, 8, 8, tf32, tf32, f32},
      {8, 8, 16, i8, u8, i32},     {16, 8, 16, u8, i8, i32},
      {16, 8, 32, i8, i8, i32},    {8, 8, 4, f64, f64, f64},
      {16, 8, 4, f64, f64, f64},   {16, 8, 8, f64, f64, f64},
      {16, 8, 16, f64, f64, f64}};
  for (const MmaForm &form : forms) {
    Kernel kernel = product(form);
    Device *device = conformance::open(GetParam()).device.get();
    if (!device)
      continue;
    // Small integers: every sum is exact, also in f16.
    std::mt19937 random(7);
    auto numbers = [&](Type type, int count) {
      std::uniform_int_distribution<int> digits(
          is_unsigned_integer(type) ? 0 : -3, 3);
      std::vector<double> result(count);
      for (double &value : result)
        value = digits(random);
      return result;
    };
    auto a = numbers(form.a, form.m * form.k);
    auto b = numbers(form.b, form.k * form.n);
    std::vector<double> expected(form.m * form.n, 1);
    for (int i = 0; i < form.m; ++i)
      for (int j = 0; j < form.n; ++j)
        for (int l = 0; l < form.k; ++l)
          expected[i * form.n + j] += a[i * form.k + l] * b[l * form.n + j];
    auto a_bytes = elements(form.a, a), b_bytes = elements(form.b, b);
    auto d = poisoned(form.accumulator, expected.size());
    run(*device, kernel, a_bytes, b_bytes, d);
    EXPECT_EQ(values(form.accumulator, d), expected) << form.to_string();
  }
  SKIP_WITHOUT_DEVICE();
}
