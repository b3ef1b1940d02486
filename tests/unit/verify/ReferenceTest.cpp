// Reference: the product against a library nobody here wrote, and that the
// comparison catches what is wrong and nothing else.
#include "kiln/measure/reference.h"
#include "kiln/kernels/gemm.h"

#include "../support/ErrorText.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>
#include <limits>

#if KILN_HAS_CBLAS
#include <cblas.h>
#endif

using namespace kiln;

namespace {

/// A product with random operands.
struct Case {
  ReferenceGemm gemm;
  std::vector<std::byte> a, b;

  Case(std::int64_t m, std::int64_t n, std::int64_t k, Type type = Type::f16,
       bool aRowMajor = true, bool bRowMajor = false, double lo = -1) {
    auto bytes = static_cast<std::size_t>(size_bytes(type));
    a.resize(static_cast<std::size_t>(m * k) * bytes);
    b.resize(static_cast<std::size_t>(k * n) * bytes);
    fill_random(type, a.data(), static_cast<std::size_t>(m * k), 1, lo);
    fill_random(type, b.data(), static_cast<std::size_t>(k * n), 2, lo);
    gemm = {.m = m,
            .n = n,
            .k = k,
            .type = type,
            .a_row_major = aRowMajor,
            .b_row_major = bRowMajor,
            .a = a.data(),
            .b = b.data()};
  }
};

} // namespace

static double elementOf(Type type, const void *data, std::int64_t i) {
  std::uint64_t bits = 0;
  int bytes = size_bytes(type);
  std::memcpy(&bits, static_cast<const std::byte *>(data) + i * bytes,
              static_cast<std::size_t>(bytes));
  return from_bits(type, bits);
}

/// What a kernel would write: the reference, rounded to `out`.
static std::vector<std::byte> asKernelWrites(const ReferenceProduct &product,
                                             Type out) {
  auto bytes = static_cast<std::size_t>(size_bytes(out));
  std::vector<std::byte> d(product.d.size() * bytes);
  for (std::size_t i = 0; i < product.d.size(); ++i) {
    std::uint64_t bits = to_bits(out, product.d[i]);
    std::memcpy(d.data() + i * bytes, &bits, bytes);
  }
  return d;
}

static std::vector<float> asFloats(const ReferenceProduct &product) {
  return {product.d.begin(), product.d.end()};
}

/// Element by element, in the plainest way.
static ReferenceProduct plainProduct(const ReferenceGemm &gemm) {
  ReferenceProduct product;
  for (std::int64_t i = 0; i < gemm.m; ++i)
    for (std::int64_t j = 0; j < gemm.n; ++j) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < gemm.k; ++k) {
        double a =
            elementOf(gemm.type, gemm.a,
                      gemm.a_row_major ? i * gemm.k + k : k * gemm.m + i);
        double b =
            elementOf(gemm.type, gemm.b,
                      gemm.b_row_major ? k * gemm.n + j : j * gemm.k + k);
        sum += a * b;
        magnitude += std::fabs(a * b);
      }
      product.d.push_back(sum);
      product.magnitude.push_back(magnitude);
    }
  return product;
}

static void expectNear(const ReferenceProduct &got,
                       const ReferenceProduct &want) {
  ASSERT_EQ(got.d.size(), want.d.size());
  for (std::size_t i = 0; i < want.d.size(); ++i) {
    double bound = 1e-14 * want.magnitude[i] + 1e-300;
    ASSERT_NEAR(got.d[i], want.d[i], bound) << "element " << i;
    ASSERT_NEAR(got.magnitude[i], want.magnitude[i], bound) << "element " << i;
  }
}

TEST(Reference, EveryLayoutAtSizesThatAreNoMultiple) {
  for (bool aRowMajor : {true, false})
    for (bool bRowMajor : {true, false})
      for (auto [m, n, k] : {std::array{1, 1, 1}, std::array{3, 5, 7},
                             std::array{65, 257, 258}, std::array{7, 300, 513}})
        expectNear(
            reference_gemm(Case(m, n, k, Type::f16, aRowMajor, bRowMajor).gemm),
            plainProduct(Case(m, n, k, Type::f16, aRowMajor, bRowMajor).gemm));
}

TEST(Reference, EveryType) {
  for (Type type : {Type::f16, Type::bf16, Type::f32, Type::f64, Type::e4m3,
                    Type::e5m2, Type::i8}) {
    Case c(9, 10, 11, type);
    SCOPED_TRACE(name(type));
    expectNear(reference_gemm(c.gemm), plainProduct(c.gemm));
  }
}

TEST(Reference, NothingToAddUp) {
  ReferenceProduct product = reference_gemm(Case(2, 3, 0).gemm);
  EXPECT_EQ(product.d, std::vector<double>(6, 0.0));
  EXPECT_TRUE(reference_gemm(Case(0, 3, 4).gemm).d.empty());
}

// One of A and one of B, whatever the batch.
TEST(Reference, FactorsOfTensors) {
  Case c(8, 10, 6, Type::e4m3);
  c.gemm.m = 4, c.gemm.n = 5, c.gemm.batch = 2;
  std::vector<float> plain = asFloats(reference_gemm(c.gemm));
  c.gemm.alpha = 1.5;
  std::vector<float> want = asFloats(reference_gemm(c.gemm));
  float ofA = 0.5, ofB = 3;
  c.gemm.alpha = 1, c.gemm.scaling = Scaling::tensor;
  c.gemm.a_scales = &ofA, c.gemm.b_scales = &ofB;
  EXPECT_EQ(c.gemm.a_scale_count(), 1);
  EXPECT_EQ(c.gemm.b_scale_count(), 1);
  EXPECT_EQ(asFloats(reference_gemm(c.gemm)), want);
  EXPECT_TRUE(compare_gemm(c.gemm, want.data()).ok);
  EXPECT_FALSE(compare_gemm(c.gemm, plain.data()).ok);
}

// The factor's own rounding counts, and the element's by it.
TEST(Reference, ToleranceOfFactorsOfTensors) {
  ReferenceGemm gemm = {.k = 1, .type = Type::e4m3};
  ReferenceElement element = {.sum = 1, .before = 1, .want = 1};
  double plain = gemm_tolerance(gemm, element);
  gemm.alpha = 1.0000001;
  double times = gemm_tolerance(gemm, element);
  gemm.scaling = Scaling::tensor;
  EXPECT_LT(plain, times);
  EXPECT_NEAR(gemm_tolerance(gemm, element) - times, 2 * 0x1p-24, 1e-10);
  gemm.alpha = 1;
  EXPECT_LT(plain, gemm_tolerance(gemm, element));
}

TEST(Reference, ChosenRowsAndColumns) {
  Case c(70, 300, 40);
  ReferenceProduct all = reference_gemm(c.gemm);
  std::vector<std::int64_t> rows = {69, 0, 3}, cols = {299, 7};
  ReferenceProduct some = reference_gemm(c.gemm, rows, cols);
  ASSERT_EQ(some.d.size(), 6u);
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 2; ++j) {
      EXPECT_EQ(some.d[i * 2 + j], all.d[rows[i] * 300 + cols[j]]);
      EXPECT_EQ(some.magnitude[i * 2 + j],
                all.magnitude[rows[i] * 300 + cols[j]]);
    }
}

TEST(Reference, RefusesWhatIsNotThere) {
  Case c(4, 5, 6);
  std::vector<std::int64_t> fine = {0}, four = {4}, below = {-1};
  EXPECT_EQ(errorText([&] { reference_gemm(c.gemm, four, fine); }),
            "there is no row 4 in a product with 4 of them");
  EXPECT_EQ(errorText([&] { reference_gemm(c.gemm, fine, below); }),
            "there is no column -1 in a product with 5 of them");
  c.gemm.n = -5;
  EXPECT_EQ(errorText([&] { reference_gemm(c.gemm); }),
            "a product of 4x-5x6, batch 1: no dimension may be below 0");
  EXPECT_EQ(errorText([&] { compare_gemm(c.gemm, nullptr); }),
            "a product of 4x-5x6, batch 1: no dimension may be below 0");
  c.gemm.n = 5;
  auto refused = [&](auto change) {
    ReferenceGemm gemm = c.gemm;
    change(gemm);
    return errorText([&] { compare_gemm(gemm, c.a.data()); });
  };
  EXPECT_EQ(refused([](auto &gemm) { gemm.out = Type::i8; }),
            "a product is compared in a float type or i32, not i8");
  EXPECT_EQ(refused([](auto &gemm) { gemm.accumulate = Type::f64; }),
            "sums are f32, f16 or i32, not f64");
  EXPECT_EQ(refused([](auto &gemm) { gemm.accumulate = Type::i32; }),
            "f16 products do not accumulate in i32");
  EXPECT_EQ(refused([](auto &gemm) { gemm.lda = 5; }),
            "the leading dimension of A is 5, but its rows have 6 elements");
  EXPECT_EQ(refused([](auto &gemm) { gemm.ldb = 5; }),
            "the leading dimension of B is 5, but its columns have 6 elements");
  EXPECT_EQ(refused([](auto &gemm) { gemm.ldd = 4; }),
            "the leading dimension of D is 4, but its rows have 5 elements");
  EXPECT_EQ(refused([](auto &gemm) { gemm.beta = 2; }),
            "beta is 2, but there is no C");
  EXPECT_EQ(refused([](auto &gemm) { gemm.bias_kind = GemmBias::row; }),
            "a bias is to be added, but there is none");
  EXPECT_EQ(refused([](auto &gemm) { gemm.scaling = Scaling::mx; }),
            "the elements are scaled (mx), but there are no factors of A");
}

#if KILN_HAS_CBLAS
TEST(Reference, AgreesWithBlasInDouble) {
  int m = 130, n = 270, k = 515;
  for (bool aRowMajor : {true, false})
    for (bool bRowMajor : {true, false}) {
      Case c(m, n, k, Type::f64, aRowMajor, bRowMajor);
      ReferenceProduct got = reference_gemm(c.gemm), want = got;
      cblas_dgemm(CblasRowMajor, aRowMajor ? CblasNoTrans : CblasTrans,
                  bRowMajor ? CblasNoTrans : CblasTrans, m, n, k, 1.0,
                  reinterpret_cast<double *>(c.a.data()), aRowMajor ? k : m,
                  reinterpret_cast<double *>(c.b.data()), bRowMajor ? n : k,
                  0.0, want.d.data(), n);
      expectNear(got, want);
    }
}

// A float product of another's making is what a kernel is like.
TEST(Reference, AcceptsTheFloatProductOfBlas) {
  int m = 120, n = 200, k = 2000;
  for (double lo : {-1.0, 0.0}) {
    Case c(m, n, k, Type::f32, true, false, lo);
    std::vector<float> d(static_cast<std::size_t>(m * n));
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f,
                reinterpret_cast<float *>(c.a.data()), k,
                reinterpret_cast<float *>(c.b.data()), k, 0.0f, d.data(), n);
    Comparison result = compare_gemm(c.gemm, d.data());
    EXPECT_TRUE(result.ok) << result.wrong;
    EXPECT_GT(result.max_rel_err, 0);
    EXPECT_LT(result.max_rel_err, 1e-6);
  }
}
#else
TEST(Reference, AgreesWithBlasInDouble) {
  GTEST_SKIP() << "built without OpenBLAS; install libopenblas-dev";
}
#endif

TEST(Reference, AcceptsARoundedProductOfEveryOutputType) {
  Case c(65, 130, 200);
  ReferenceProduct product = reference_gemm(c.gemm);
  for (Type out : {Type::f32, Type::f16, Type::bf16, Type::e4m3}) {
    c.gemm.out = out;
    Comparison result =
        compare_gemm(c.gemm, asKernelWrites(product, out).data());
    SCOPED_TRACE(name(out));
    EXPECT_TRUE(result.ok) << result.wrong;
    EXPECT_EQ(result.compared, 65 * 130);
    EXPECT_FALSE(result.is_sampled);
  }
}

// Products of a tensor core: added 16 at a time, truncated to 24 bits.
TEST(Reference, AcceptsTruncatedSums) {
  for (double lo : {-1.0, 0.0}) {
    Case c(40, 40, 4096, Type::f16, true, false, lo);
    std::vector<float> d;
    for (std::int64_t i = 0; i < 40 * 40; ++i) {
      float sum = 0;
      for (std::int64_t k = 0; k < 4096; k += 16) {
        double exact = sum;
        for (std::int64_t s = k; s < k + 16; ++s)
          exact += elementOf(Type::f16, c.gemm.a, i / 40 * 4096 + s) *
                   elementOf(Type::f16, c.gemm.b, i % 40 * 4096 + s);
        sum = static_cast<float>(exact);
        if (std::fabs(sum) > std::fabs(exact))
          sum = std::nextafter(sum, 0.0f);
      }
      d.push_back(sum);
    }
    Comparison result = compare_gemm(c.gemm, d.data());
    EXPECT_TRUE(result.ok) << result.wrong << " from " << lo;
  }
}

TEST(Reference, CatchesOneWrongElement) {
  Case c(130, 270, 512);
  std::vector<float> d = asFloats(reference_gemm(c.gemm));
  double want = d[77 * 270 + 201];
  d[77 * 270 + 201] += 0.01f;
  Comparison result = compare_gemm(c.gemm, d.data());
  EXPECT_FALSE(result.ok);
  EXPECT_EQ(result.wrong, 1);
  ASSERT_EQ(result.first.size(), 1u);
  EXPECT_EQ(result.first[0].row, 77);
  EXPECT_EQ(result.first[0].col, 201);
  EXPECT_NEAR(result.first[0].want, want, 1e-5);
  EXPECT_NEAR(result.first[0].got - want, 0.01, 1e-5);
  EXPECT_LT(result.first[0].tolerance, 0.005);
}

TEST(Reference, CatchesALostProductAtLargeK) {
  Case c(8, 8, 4096);
  ReferenceProduct product = reference_gemm(c.gemm);
  std::vector<float> d = asFloats(product);
  d[9] += 0.25f; // the mean |a||b|
  EXPECT_EQ(compare_gemm(c.gemm, d.data()).wrong, 1);
}

TEST(Reference, CatchesNanAndInfinity) {
  Case c(20, 20, 64);
  std::vector<float> good = asFloats(reference_gemm(c.gemm));
  for (float wrong : {std::numeric_limits<float>::quiet_NaN(),
                      std::numeric_limits<float>::infinity()}) {
    std::vector<float> d = good;
    d[5] = wrong;
    Comparison result = compare_gemm(c.gemm, d.data());
    EXPECT_EQ(result.wrong, 1);
    EXPECT_EQ(result.first.at(0).col, 5);
    EXPECT_TRUE(std::isinf(result.max_rel_err));
  }
  std::vector<std::byte> poison(20 * 20 * 4, std::byte{0xff});
  EXPECT_EQ(compare_gemm(c.gemm, poison.data()).wrong, 400);
}

TEST(Reference, CatchesATransposedResult) {
  Case c(96, 96, 64);
  std::vector<float> d = asFloats(reference_gemm(c.gemm)), transposed(d.size());
  for (std::size_t i = 0; i < 96; ++i)
    for (std::size_t j = 0; j < 96; ++j)
      transposed[j * 96 + i] = d[i * 96 + j];
  Comparison result = compare_gemm(c.gemm, transposed.data());
  EXPECT_GT(result.wrong, 9000);
  ASSERT_EQ(result.first.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i)
    EXPECT_EQ(result.first[i].row, 0) << "the first ones are not the first";
}

TEST(Reference, InfinityIsRightWhereTheTypeOverflows) {
  std::uint16_t large = static_cast<std::uint16_t>(to_bits(Type::f16, 300));
  std::vector<std::uint16_t> a = {large}, b = {large};
  ReferenceGemm gemm = {
      .m = 1, .n = 1, .k = 1, .out = Type::f16, .a = a.data(), .b = b.data()};
  for (auto [value, isRight] :
       {std::pair{INFINITY, true}, std::pair{-INFINITY, false},
        std::pair{65504.0f, false}}) {
    auto d = static_cast<std::uint16_t>(to_bits(Type::f16, value));
    EXPECT_EQ(compare_gemm(gemm, &d).ok, isRight) << value;
  }
}

TEST(Reference, SamplesLargeProducts) {
  Case c(300, 500, 32);
  std::vector<float> d = asFloats(reference_gemm(c.gemm));
  Comparison result = compare_gemm(c.gemm, d.data(), 1 << 20);
  EXPECT_TRUE(result.ok);
  EXPECT_TRUE(result.is_sampled);
  EXPECT_LE(result.compared, (1 << 20) / 32);
  EXPECT_GE(result.compared, (1 << 20) / 32 / 2);
  // A wrong row or column meets a sampled column or row, and a tile meets both.
  std::vector<float> wrongRow = d, wrongTile = d;
  for (std::size_t j = 0; j < 500; ++j)
    wrongRow[123 * 500 + j] = 0;
  EXPECT_GT(compare_gemm(c.gemm, wrongRow.data(), 1 << 20).wrong, 0);
  for (std::size_t i = 128; i < 192; ++i)
    for (std::size_t j = 320; j < 384; ++j)
      wrongTile[i * 500 + j] = 0;
  EXPECT_GT(compare_gemm(c.gemm, wrongTile.data(), 1 << 20).wrong, 0);
}
