// CorpusBlackwell: products and attention that Triton, Gluon and TileLang
// compile for sm_100a, run against references in double. Nothing here ran on
// hardware.
//
// Triton writes no tcgen05.fence, and TileLang names lane 0 in every warp:
// those are warnings, and nothing else may be found.
#include "corpus/RunCorpus.h"
#include "support/Half.h"

#include <cmath>

namespace kiln {

namespace {
/// A type of elements: random bits, and the number they are.
struct Elements {
  int exponentBits, fractionBits; ///< of a float of up to 16 bits
  bool isPacked = false;          ///< two in a byte

  std::uint32_t draw() const {
    int bits = 1 + exponentBits + fractionBits;
    auto sign = static_cast<std::uint32_t>(corpusRandom()() & 1) << (bits - 1);
    // Without the upper exponents, that sums stay small.
    std::uint32_t most = isPacked ? 8u : exponentBits == 5 ? 0x4000u : 0x48u;
    return sign | static_cast<std::uint32_t>(corpusRandom()() % most);
  }
  double number(std::uint32_t bits) const {
    int bias = (1 << (exponentBits - 1)) - 1;
    int exponent =
        static_cast<int>(bits >> fractionBits) & ((1 << exponentBits) - 1);
    double fraction =
        double(bits & ((1u << fractionBits) - 1)) / (1 << fractionBits);
    double value = exponent ? std::ldexp(1 + fraction, exponent - bias)
                            : std::ldexp(fraction, 1 - bias);
    return bits >> (exponentBits + fractionBits) & 1 ? -value : value;
  }
};

constexpr Elements kHalf = {5, 10}, kE4m3 = {4, 3}, kE2m1 = {2, 1, true};

/// Random elements in rows, as bytes and as numbers.
struct Matrix {
  std::vector<std::uint8_t> bytes;
  std::vector<double> numbers;

  Matrix(std::size_t count, const Elements &type) : numbers(count) {
    std::size_t perElement = type.exponentBits == 5 ? 2 : 1;
    bytes.resize(type.isPacked ? count / 2 : count * perElement);
    for (std::size_t i = 0; i < count; ++i) {
      std::uint32_t bits = type.draw();
      numbers[i] = type.number(bits);
      if (type.isPacked)
        bytes[i / 2] |= static_cast<std::uint8_t>(bits << 4 * (i % 2));
      else
        std::memcpy(bytes.data() + i * perElement, &bits, perElement);
    }
  }
};
} // namespace

/// Nothing was found but what the compiler is known for.
static void expectRight(const LaunchResult &result,
                        const char *known = "tcgen05-fence") {
  EXPECT_TRUE(result.is_finished);
  for (const Finding &finding : result.findings)
    if (finding.id != known)
      ADD_FAILURE() << finding.id << " at line " << finding.ptx_line << ": "
                    << finding.message;
}

static void expectNear(const std::vector<float> &got,
                       const std::vector<double> &wanted, double tolerance) {
  for (std::size_t i = 0; i < wanted.size(); ++i)
    ASSERT_NEAR(got[i], wanted[i], tolerance) << "element " << i;
}

/// c[m][n] of a[m][k] and b[k][n].
static std::vector<double> productOf(const std::vector<double> &a,
                                     const std::vector<double> &b, int m, int n,
                                     int k) {
  std::vector<double> c(m * n);
  for (int row = 0; row < m; ++row)
    for (int i = 0; i < k; ++i)
      for (int column = 0; column < n; ++column)
        c[row * n + column] += a[row * k + i] * b[i * n + column];
  return c;
}

/// A product of whole tiles: file, types, tile, CTAs of a cluster.
static void runProduct(const std::string &file, const Elements &type, int tileM,
                       int tileN, std::uint32_t smemBytes, int cluster = 1) {
  int m = tileM, n = 2 * tileN, k = 192;
  Matrix a(m * k, type), b(k * n, type);
  std::vector<double> wanted = productOf(a.numbers, b.numbers, m, n, k);
  for (Interleaving order : kSimOrders) {
    RunCorpus run(file, order);
    Buffer to = run.empty<float>(m * n);
    auto width = static_cast<std::uint32_t>(n / tileN * cluster);
    expectRight(run.launch(cluster == 1 ? "matmul" : "pair", {width, 1, 1},
                           {128, 1, 1}, smemBytes, run.buffer(a.bytes),
                           run.buffer(b.bytes), to, n, k, std::uint64_t(0),
                           std::uint64_t(0)));
    expectNear(run.read<float>(to, m * n), wanted, 2e-3);
  }
}

TEST(CorpusBlackwell, MultipliesHalves) {
  runProduct("triton_sm100_f16.ptx", kHalf, 128, 64, 32768);
}

TEST(CorpusBlackwell, MultipliesEightBitFloats) {
  runProduct("triton_sm100_e4m3.ptx", kE4m3, 128, 64, 32768);
}

TEST(CorpusBlackwell, MultipliesByPairsOfCtas) {
  runProduct("triton_sm100_pair.ptx", kHalf, 256, 64, 20488, 2);
}

TEST(CorpusBlackwell, MultipliesFloatsOfTwentyBits) {
  int m = 128, n = 128, k = 96;
  std::vector<float> a = randomNumbers<float>(m * k, -1, 1);
  std::vector<float> b = randomNumbers<float>(k * n, -1, 1);
  std::vector<double> wanted =
      productOf({a.begin(), a.end()}, {b.begin(), b.end()}, m, n, k);
  for (Interleaving order : kSimOrders) {
    RunCorpus run("triton_sm100_tf32.ptx", order);
    Buffer to = run.empty<float>(m * n);
    expectRight(run.launch("matmul", {2, 1, 1}, {128, 1, 1}, 32768,
                           run.buffer(a), run.buffer(b), to, n, k,
                           std::uint64_t(0), std::uint64_t(0)));
    // Operands are cut to 10 bits behind the point.
    expectNear(run.read<float>(to, m * n), wanted, 2e-3 * std::sqrt(k));
  }
}

/// a[m][k] and b[n][k] with a scale for each block of k.
static void runScaled(const std::string &file, const Elements &type, int block,
                      bool isPower) {
  int m = 128, n = 128, k = 256, blocks = k / block;
  Matrix a(m * k, type), b(n * k, type);
  auto makeScales = [&](int rows) {
    std::vector<std::uint8_t> scales(rows * blocks);
    for (std::uint8_t &scale : scales)
      scale = static_cast<std::uint8_t>((isPower ? 124 : 0x30) +
                                        corpusRandom()() % 6);
    return scales;
  };
  auto valueOf = [&](std::uint8_t scale) {
    return isPower ? std::ldexp(1.0, scale - 127) : kE4m3.number(scale);
  };
  std::vector<std::uint8_t> scalesA = makeScales(m), scalesB = makeScales(n);
  std::vector<double> wanted(m * n);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column)
      for (int i = 0; i < k; ++i)
        wanted[row * n + column] +=
            a.numbers[row * k + i] * b.numbers[column * k + i] *
            valueOf(scalesA[row * blocks + i / block]) *
            valueOf(scalesB[column * blocks + i / block]);
  for (Interleaving order : kSimOrders) {
    RunCorpus run(file, order);
    Buffer to = run.empty<float>(m * n);
    expectRight(run.launch("scaled", {2, 1, 1}, {128, 1, 1}, 32768,
                           run.buffer(a.bytes), run.buffer(b.bytes),
                           run.buffer(scalesA), run.buffer(scalesB), to, n, k,
                           std::uint64_t(0), std::uint64_t(0)));
    expectNear(run.read<float>(to, m * n), wanted, 5e-2);
  }
}

TEST(CorpusBlackwell, ScalesBlocksOfEightBits) {
  runScaled("triton_sm100_mxf8.ptx", kE4m3, 32, true);
}

TEST(CorpusBlackwell, ScalesBlocksOfFourBits) {
  runScaled("triton_sm100_mxf4.ptx", kE2m1, 32, true);
  runScaled("triton_sm100_nvf4.ptx", kE2m1, 16, false);
}

/// Boxes of 64 columns by 128 rows of a matrix of halves.
static TensorMap halvesOf(const Buffer &buffer, std::uint64_t rows,
                          std::uint64_t columns) {
  return {.type = Type::f16,
          .address = buffer.address(),
          .dims = {columns, rows},
          .strides_bytes = {columns * 2},
          .box = {64, 128},
          .element_strides = {1, 1},
          .swizzle = Swizzle::b128};
}

TEST(CorpusBlackwell, MultipliesByTileLang) {
  int m = 256, n = 256, k = 192;
  Matrix a(m * k, kHalf), b(n * k, kHalf);
  for (Interleaving order : kSimOrders) {
    RunCorpus run("tilelang_sm100.ptx", order);
    Buffer from = run.buffer(a.bytes), other = run.buffer(b.bytes);
    Buffer to = run.empty<std::uint16_t>(m * n);
    expectRight(run.launch("product_kernel", {2, 2, 1}, {256, 1, 1}, 65536,
                           halvesOf(from, m, k), halvesOf(other, n, k),
                           halvesOf(to, m, n)),
                "tcgen05-lanes");
    std::vector<std::uint16_t> got = run.read<std::uint16_t>(to, m * n);
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column) {
        double sum = 0;
        for (int i = 0; i < k; ++i)
          sum += a.numbers[row * k + i] * b.numbers[column * k + i];
        ASSERT_NEAR(halfToFloat(got[row * n + column]), sum,
                    2e-3 + std::abs(sum) / 1024)
            << row << " " << column;
      }
  }
}

TEST(CorpusBlackwell, Attends) {
  int n = 128, d = 32;
  float scale = 0.17f;
  Matrix q(n * d, kHalf), k(n * d, kHalf), v(n * d, kHalf);
  std::vector<double> wanted(n * d);
  for (int row = 0; row < n; ++row) {
    std::vector<double> p(n);
    double total = 0;
    for (int key = 0; key < n; ++key) {
      double sum = 0;
      for (int i = 0; i < d; ++i)
        sum += q.numbers[row * d + i] * k.numbers[key * d + i];
      total += p[key] = std::exp(sum * scale);
    }
    for (int i = 0; i < d; ++i)
      for (int key = 0; key < n; ++key)
        wanted[row * d + i] += p[key] / total * v.numbers[key * d + i];
  }
  for (Interleaving order : kSimOrders) {
    RunCorpus run("triton_sm100_attention.ptx", order);
    Buffer to = run.empty<float>(n * d);
    expectRight(run.launch("attention", {1, 1, 1}, {128, 1, 1}, 16384,
                           run.buffer(q.bytes), run.buffer(k.bytes),
                           run.buffer(v.bytes), to, n, scale, std::uint64_t(0),
                           std::uint64_t(0)));
    expectNear(run.read<float>(to, n * d), wanted, 4e-3);
  }
}

} // namespace kiln
