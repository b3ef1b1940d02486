// ReferenceEpilogue: everything around the product: leading dimensions, batch,
// layouts of D, alpha, beta, bias, activations, types of sums and outputs.
#include "kiln/kernels/gemm.h"
#include "kiln/measure/reference.h"

#include "../support/ErrorText.h"

#include <array>
#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

using namespace kiln;

namespace {

std::uint64_t bitsAt(Type type, const void *data, std::int64_t i) {
  std::uint64_t bits = 0;
  std::memcpy(&bits,
              static_cast<const std::byte *>(data) + i * size_bytes(type),
              static_cast<std::size_t>(size_bytes(type)));
  return bits;
}

double elementOf(Type type, const void *data, std::int64_t i) {
  return from_bits(type, bitsAt(type, data, i));
}

/// The memory of a product, with random numbers and a poisoned D.
struct Memory {
  ReferenceGemm gemm;
  std::vector<std::byte> a, b, c, bias, d;

  explicit Memory(const ReferenceGemm &of, double lo = -1, double hi = 1)
      : gemm(of) {
    a = make(gemm.type, gemm.a_elements(), 1, lo, hi);
    b = make(gemm.type, gemm.b_elements(), 2, lo, hi);
    c = make(gemm.out, gemm.c_elements(), 3, -4, 4);
    bias = make(gemm.bias_type(), gemm.bias_elements(), 4, -4, 4);
    d.assign(gemm.d_elements() * size_bytes(gemm.out), std::byte{0xff});
    gemm.a = a.data(), gemm.b = b.data(), gemm.c = c.data();
    gemm.bias = bias.data(), gemm.poison = 0xff;
  }

  static std::vector<std::byte> make(Type type, std::int64_t count,
                                     std::uint64_t seed, double lo, double hi) {
    std::vector<std::byte> data(count * size_bytes(type));
    fill_random(type, data.data(), count, seed, lo, hi);
    return data;
  }

  /// Where element (i, j) of product `batch` of D lies.
  std::int64_t at(std::int64_t batch, std::int64_t i, std::int64_t j) const {
    std::int64_t rows = gemm.d_row_major ? gemm.m : gemm.n;
    std::int64_t step = gemm.ldd           ? gemm.ldd
                        : gemm.d_row_major ? gemm.n
                                           : gemm.m;
    return batch * gemm.batch_stride_d.value_or(rows * step) +
           (gemm.d_row_major ? i * step + j : j * step + i);
  }

  void write(std::int64_t where, double value) {
    std::uint64_t bits = to_bits(gemm.out, value);
    std::memcpy(d.data() + where * size_bytes(gemm.out), &bits,
                static_cast<std::size_t>(size_bytes(gemm.out)));
  }

  /// Write into D what a kernel would.
  void writeAll(const ReferenceProduct &product) {
    std::size_t next = 0;
    for (std::int64_t batch = 0; batch < gemm.batch; ++batch)
      for (std::int64_t i = 0; i < gemm.m; ++i)
        for (std::int64_t j = 0; j < gemm.n; ++j)
          write(at(batch, i, j), product.d[next++]);
  }

  Comparison compare() const { return compare_gemm(gemm, d.data()); }
};

/// The same element in the plainest way.
double plainElement(const ReferenceGemm &gemm, std::int64_t batch,
                    std::int64_t i, std::int64_t j) {
  auto place = [&](std::int64_t row, std::int64_t col, std::int64_t rows,
                   std::int64_t cols, bool isRowMajor, std::int64_t leading) {
    if (!isRowMajor) {
      std::swap(row, col);
      std::swap(rows, cols);
    }
    std::int64_t step = leading ? leading : cols;
    return batch * rows * step + row * step + col;
  };
  double sum = 0;
  for (std::int64_t k = 0; k < gemm.k; ++k)
    sum += elementOf(gemm.type, gemm.a,
                     place(i, k, gemm.m, gemm.k, gemm.a_row_major, gemm.lda)) *
           elementOf(gemm.type, gemm.b,
                     place(k, j, gemm.k, gemm.n, gemm.b_row_major, gemm.ldb));
  double x = gemm.alpha * sum;
  x += gemm.beta *
       elementOf(gemm.out, gemm.c,
                 place(i, j, gemm.m, gemm.n, gemm.d_row_major, gemm.ldc));
  if (gemm.bias_kind != GemmBias::none)
    x += elementOf(gemm.bias_type(), gemm.bias,
                   gemm.bias_kind == GemmBias::row ? i : j);
  if (gemm.act == Activation::relu)
    return x > 0 ? x : 0;
  if (gemm.act == Activation::gelu)
    return 0.5 * x *
           (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  if (gemm.act == Activation::silu)
    return x / (1 + std::exp(-x));
  return x;
}

void expectPlain(const Memory &memory) {
  ReferenceProduct product = reference_gemm(memory.gemm);
  const ReferenceGemm &gemm = memory.gemm;
  std::size_t next = 0;
  for (std::int64_t batch = 0; batch < gemm.batch; ++batch)
    for (std::int64_t i = 0; i < gemm.m; ++i)
      for (std::int64_t j = 0; j < gemm.n; ++j) {
        double want = plainElement(gemm, batch, i, j);
        ASSERT_NEAR(product.d[next], want, 1e-12 * (1 + std::fabs(want)))
            << batch << ", " << i << ", " << j;
        ++next;
      }
}

} // namespace

TEST(ReferenceEpilogue, LeadingDimensionsAndBatchInEveryLayout) {
  for (int layout = 0; layout < 8; ++layout) {
    ReferenceGemm gemm = {.m = 7, .n = 9, .k = 5, .batch = 3};
    gemm.a_row_major = layout & 1;
    gemm.b_row_major = layout & 2;
    gemm.d_row_major = layout & 4;
    gemm.lda = 11, gemm.ldb = 13, gemm.ldc = 12, gemm.ldd = 10;
    gemm.beta = 0.5;
    Memory memory(gemm);
    SCOPED_TRACE(layout);
    expectPlain(memory);
    memory.writeAll(reference_gemm(memory.gemm));
    Comparison result = memory.compare();
    EXPECT_TRUE(result.ok) << result.wrong << ", " << result.touched_gaps;
    EXPECT_EQ(result.compared, 3 * 7 * 9);
  }
}

TEST(ReferenceEpilogue, AlphaBetaBiasActivation) {
  for (GemmBias bias : {GemmBias::none, GemmBias::row, GemmBias::column})
    for (Activation act : {Activation::none, Activation::relu, Activation::gelu,
                           Activation::silu})
      for (Type out : {Type::f32, Type::f16, Type::bf16, Type::e4m3}) {
        ReferenceGemm gemm = {.m = 6, .n = 70, .k = 33, .out = out};
        gemm.alpha = -1.75, gemm.beta = 0.25;
        gemm.bias_kind = bias, gemm.act = act;
        Memory memory(gemm);
        SCOPED_TRACE(name(out));
        expectPlain(memory);
        memory.writeAll(reference_gemm(memory.gemm));
        EXPECT_TRUE(memory.compare().ok);
      }
}

TEST(ReferenceEpilogue, CatchesEachPartLeftOut) {
  ReferenceGemm gemm = {.m = 16, .n = 32, .k = 64};
  gemm.alpha = 1.5, gemm.beta = 0.5;
  gemm.bias_kind = GemmBias::row, gemm.act = Activation::silu;
  Memory memory(gemm);
  auto wrongWith = [&](auto change) {
    ReferenceGemm other = memory.gemm;
    change(other);
    memory.writeAll(reference_gemm(other));
    return memory.compare().wrong;
  };
  EXPECT_EQ(wrongWith([](auto &) {}), 0);
  EXPECT_GT(wrongWith([](auto &g) { g.alpha = 1; }), 400);
  EXPECT_GT(wrongWith([](auto &g) { g.beta = 0; }), 400);
  EXPECT_GT(wrongWith([](auto &g) { g.bias_kind = GemmBias::none; }), 400);
  EXPECT_GT(wrongWith([](auto &g) { g.act = Activation::none; }), 400);
  EXPECT_GT(wrongWith([](auto &g) { g.act = Activation::gelu; }), 400);
}

// What tanh.approx and ex2.approx of the hardware may be off by.
TEST(ReferenceEpilogue, AcceptsApproximateFunctions) {
  for (Activation act : {Activation::gelu, Activation::silu}) {
    ReferenceGemm gemm = {.m = 64, .n = 64, .k = 16, .act = act};
    Memory memory(gemm, -2, 2);
    ReferenceProduct sums = reference_gemm(memory.gemm), off = sums;
    memory.gemm.act = Activation::none;
    sums = reference_gemm(memory.gemm);
    memory.gemm.act = act;
    for (std::size_t i = 0; i < off.d.size(); ++i)
      off.d[i] += std::fabs(sums.d[i]) *
                  (act == Activation::gelu ? 0.49 * 0x1p-11 : 0x1p-22);
    memory.writeAll(off);
    EXPECT_TRUE(memory.compare().ok) << static_cast<int>(act);
  }
}

TEST(ReferenceEpilogue, GapsMustStayAsTheyWere) {
  for (bool isRowMajor : {true, false}) {
    ReferenceGemm gemm = {.m = 5, .n = 6, .k = 8, .batch = 2, .ldd = 9};
    gemm.d_row_major = isRowMajor;
    Memory memory(gemm);
    memory.writeAll(reference_gemm(memory.gemm));
    EXPECT_TRUE(memory.compare().ok);
    memory.write(isRowMajor ? 6 : 5, 0.0);
    memory.write(9 * (isRowMajor ? 5 : 6) * 2 - 1, 1.0); // the very last
    Comparison result = memory.compare();
    EXPECT_FALSE(result.ok);
    EXPECT_EQ(result.wrong, 0);
    EXPECT_EQ(result.touched_gaps, 2);
    memory.gemm.poison.reset();
    EXPECT_TRUE(memory.compare().ok);
  }
}

TEST(ReferenceEpilogue, GapsBetweenProducts) {
  // Side by side: 6 + 2 elements each in rows of 20.
  ReferenceGemm gemm = {.m = 5, .n = 6, .k = 8, .batch = 2, .ldd = 20};
  gemm.batch_stride_d = 8;
  EXPECT_EQ(gemm.d_elements(), 8 + 5 * 20);
  Memory memory(gemm);
  memory.writeAll(reference_gemm(memory.gemm));
  EXPECT_TRUE(memory.compare().ok);
  memory.write(7, 0.0);  // between the two
  memory.write(14, 0.0); // behind both
  EXPECT_EQ(memory.compare().touched_gaps, 2);
  // One matrix of all products.
  gemm = {.m = 5, .n = 6, .k = 8, .batch = 3};
  gemm.batch_stride_a = 0;
  EXPECT_EQ(gemm.a_elements(), 5 * 8);
  gemm.batch_stride_b = -1;
  EXPECT_EQ(errorText([&] { (void)reference_gemm(gemm); }),
            "products -1 elements apart: the next one lies behind, not before");
}

TEST(ReferenceEpilogue, MismatchesNameTheProduct) {
  Memory memory({.m = 4, .n = 4, .k = 4, .batch = 3});
  memory.writeAll(reference_gemm(memory.gemm));
  memory.write(memory.at(2, 1, 3), 99);
  memory.write(memory.at(1, 3, 0), 99);
  Comparison result = memory.compare();
  ASSERT_EQ(result.first.size(), 2u);
  EXPECT_EQ(result.first[0].batch, 1);
  EXPECT_EQ(result.first[1].batch, 2);
  EXPECT_EQ(result.first[1].row, 1);
  EXPECT_EQ(result.first[1].col, 3);
}

TEST(ReferenceEpilogue, SamplesEveryProductOfALargeBatch) {
  Memory memory({.m = 40, .n = 50, .k = 32, .batch = 4});
  ReferenceProduct product = reference_gemm(memory.gemm);
  memory.writeAll(product);
  Comparison good = compare_gemm(memory.gemm, memory.d.data(), 1 << 16);
  EXPECT_TRUE(good.ok);
  EXPECT_TRUE(good.is_sampled);
  EXPECT_LT(good.compared, 4 * 40 * 50 / 2);
  for (std::int64_t i = 0; i < 40 * 50; ++i)
    product.d[3 * 40 * 50 + i] = 0;
  memory.writeAll(product);
  EXPECT_GT(compare_gemm(memory.gemm, memory.d.data(), 1 << 16).wrong, 0);
}

TEST(ReferenceEpilogue, IntegersAreExact) {
  for (Type type : {Type::i8, Type::u8}) {
    ReferenceGemm gemm = {.m = 8, .n = 8, .k = 300, .type = type};
    gemm.out = gemm.accumulate = Type::i32;
    Memory memory(gemm, type == Type::i8 ? -128 : 0, 127);
    expectPlain(memory);
    ReferenceProduct product = reference_gemm(memory.gemm);
    memory.writeAll(product);
    EXPECT_TRUE(memory.compare().ok);
    memory.write(memory.at(0, 3, 3), product.d[3 * 8 + 3] + 1);
    EXPECT_EQ(memory.compare().wrong, 1);
  }
}

TEST(ReferenceEpilogue, SumsOfIntegersWrapAround) {
  ReferenceGemm gemm = {.m = 1, .n = 1, .k = 40000, .type = Type::u8};
  gemm.out = gemm.accumulate = Type::i32;
  Memory memory(gemm, 255, 255);
  double sum = 255.0 * 255 * 40000;
  EXPECT_EQ(reference_gemm(memory.gemm).d[0], sum - 0x1p32);
}

TEST(ReferenceEpilogue, IntegersIntoFloats) {
  ReferenceGemm gemm = {.m = 4, .n = 4, .k = 4000, .type = Type::i8};
  gemm.accumulate = Type::i32;
  Memory memory(gemm, -128, 127);
  ReferenceProduct product = reference_gemm(memory.gemm);
  memory.writeAll(product);
  EXPECT_TRUE(memory.compare().ok);
  memory.write(0, product.d[0] + 1);
  EXPECT_EQ(memory.compare().wrong, 1);
}

TEST(ReferenceEpilogue, TooLargeForEightBitsIsTheLargest) {
  ReferenceGemm gemm = {.m = 1, .n = 1, .k = 600, .out = Type::e4m3};
  Memory memory(gemm, 1, 1);
  for (auto [value, isRight] :
       {std::pair{448.0, true}, std::pair{-448.0, false},
        std::pair{416.0, false}}) {
    memory.write(0, value);
    EXPECT_EQ(memory.compare().ok, isRight) << value;
  }
}

// The sums of a tensor core for 8-bit floats: 32 at a time, aligned to the
// largest with 13 bits behind its first, truncated.
TEST(ReferenceEpilogue, AcceptsThirteenBitsOfEightBitFloats) {
  for (double lo : {-1.0, 0.0}) {
    ReferenceGemm gemm = {.m = 16, .n = 16, .k = 512, .type = Type::e4m3};
    Memory memory(gemm, lo, 1);
    ReferenceProduct product = reference_gemm(memory.gemm), exact = product;
    for (std::int64_t at = 0; at < 16 * 16; ++at) {
      double sum = 0;
      for (std::int64_t k = 0; k < 512; k += 32) {
        std::array<double, 33> terms{};
        terms[32] = sum;
        for (std::int64_t s = 0; s < 32; ++s)
          terms[s] =
              elementOf(Type::e4m3, memory.a.data(), at / 16 * 512 + k + s) *
              elementOf(Type::e4m3, memory.b.data(), at % 16 * 512 + k + s);
        double largest = 0;
        for (double term : terms)
          largest = std::max(largest, std::fabs(term));
        double unit = std::ldexp(1, std::ilogb(largest) - 13);
        sum = 0;
        for (double term : terms)
          sum += std::trunc(term / unit) * unit;
      }
      product.d[at] = sum;
    }
    memory.writeAll(product);
    Comparison result = memory.compare();
    EXPECT_TRUE(result.ok) << result.wrong << " from " << lo;
    // In f16 sums of f16 that would be far too much.
    EXPECT_GT(result.max_rel_err, 0x1p-16);
    exact.d[17] += 0.05 * exact.magnitude[17];
    memory.writeAll(exact);
    EXPECT_EQ(memory.compare().wrong, 1);
  }
}

TEST(ReferenceEpilogue, AcceptsSumsInHalf) {
  for (double lo : {-1.0, 0.0}) {
    ReferenceGemm gemm = {.m = 16, .n = 16, .k = 512};
    gemm.accumulate = Type::f16;
    Memory memory(gemm, lo, 1);
    ReferenceProduct product = reference_gemm(memory.gemm), exact = product;
    for (std::int64_t at = 0; at < 16 * 16; ++at) {
      double sum = 0;
      for (std::int64_t k = 0; k < 512; ++k) {
        sum += elementOf(Type::f16, memory.a.data(), at / 16 * 512 + k) *
               elementOf(Type::f16, memory.b.data(), at % 16 * 512 + k);
        if (k % 16 == 15)
          sum = from_bits(Type::f16, to_bits(Type::f16, sum));
      }
      product.d[at] = sum;
    }
    memory.writeAll(product);
    EXPECT_TRUE(memory.compare().ok) << "from " << lo;
    memory.gemm.accumulate = Type::f32;
    EXPECT_FALSE(memory.compare().ok) << "from " << lo;
  }
}

TEST(ReferenceEpilogue, LowBitsOfTf32AreNotRead) {
  std::uint32_t a = 0x3f801fff, b = 0x40000000; // 1 and a bit, 2
  ReferenceGemm gemm = {.m = 1, .n = 1, .k = 1, .type = Type::tf32};
  gemm.a = &a, gemm.b = &b;
  EXPECT_EQ(reference_gemm(gemm).d[0], 2);
}

TEST(ReferenceTolerance, NeverLooserThanItsUsersAccept) {
  for (Type type : {Type::f16, Type::bf16}) {
    ReferenceGemm gemm = {.k = 1 << 24, .type = type};
    ReferenceElement element = {.sum = 100, .magnitude = 1e6};
    element.before = element.want = 100;
    EXPECT_EQ(gemm_tolerance(gemm, element), 0.1 + 0.1);
    gemm.k = 64;
    element.magnitude = 200;
    EXPECT_LT(gemm_tolerance(gemm, element), 0.01);
  }
}

TEST(ReferenceTolerance, GrowsWithDepthTypeAndScale) {
  auto tolerance = [](Type type, Type accumulate, Type out, std::int64_t k,
                      double alpha = 1) {
    ReferenceGemm gemm = {.k = k, .type = type, .out = out};
    gemm.accumulate = accumulate, gemm.alpha = alpha;
    double size = static_cast<double>(k);
    return gemm_tolerance(
        gemm, {.sum = 10, .magnitude = size, .before = 10, .want = 10});
  };
  double plain = tolerance(Type::f16, Type::f32, Type::f32, 1024);
  EXPECT_LT(tolerance(Type::f16, Type::f32, Type::f32, 64), plain);
  EXPECT_GT(tolerance(Type::tf32, Type::f32, Type::f32, 1024), plain);
  EXPECT_GT(tolerance(Type::e4m3, Type::f32, Type::f32, 1024), 100 * plain);
  EXPECT_GT(tolerance(Type::f16, Type::f16, Type::f32, 1024), 100 * plain);
  EXPECT_NEAR(tolerance(Type::f16, Type::f32, Type::f32, 1024, 3), 3 * plain,
              plain / 10);
  EXPECT_GE(tolerance(Type::f16, Type::f32, Type::bf16, 64), 10 * 0x1p-8);
  EXPECT_EQ(tolerance(Type::i8, Type::i32, Type::i32, 64), 0);
  // Below the normal numbers of f16 its steps count.
  ReferenceGemm tiny = {.k = 1, .type = Type::f16, .out = Type::f32};
  tiny.accumulate = Type::f16;
  ReferenceElement element = {.sum = 1e-7, .magnitude = 1e-7, .want = 1e-7};
  EXPECT_GE(gemm_tolerance(tiny, element), 0x1p-25);
}
