// Reference: the product in double on all cores, and what counts as equal.
//
// D is cut into tiles. For each, panels of A and B are converted to double once
// and multiplied from the cache; rows and columns are index lists, so that a
// whole product and a sample of it are the same code.
#include "kiln/reference.h"

#include "support/Error.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <system_error>
#include <thread>

namespace kiln {

static constexpr std::int64_t kTileRows = 64;
static constexpr std::int64_t kTileCols = 256;
static constexpr std::int64_t kPanelDepth = 256;
static constexpr std::int64_t kUnroll = 4; ///< steps of k per pass over a row
static constexpr std::size_t kMismatchesKept = 8;
static constexpr std::size_t kFillChunk = 1 << 16;

namespace {

/// Eight doubles: one register of AVX-512, two of AVX2, four of SSE2.
constexpr std::int64_t kLanes = 8;
typedef double Lanes __attribute__((vector_size(kLanes * sizeof(double))));
typedef std::int64_t LaneBits
    __attribute__((vector_size(kLanes * sizeof(double))));

/// What one thread works in: panels of A and B, and the tile they add up to.
struct Workspace {
  std::vector<double> a = std::vector<double>(kTileRows * kPanelDepth);
  std::vector<Lanes> b = std::vector<Lanes>(kPanelDepth * kTileCols / kLanes);
  std::vector<Lanes> sums = std::vector<Lanes>(kTileRows * kTileCols / kLanes);
  std::vector<Lanes> magnitudes =
      std::vector<Lanes>(kTileRows * kTileCols / kLanes);
};

/// The part of rows x cols that one piece of work covers.
struct Tile {
  std::int64_t row = 0, col = 0; ///< positions in the index lists
  std::int64_t rows = 0, cols = 0;
};

/// Elements of memory as doubles. Types of 8 and 16 bits are looked up: their
/// conversion costs more than the multiplications it feeds.
class ElementReader {
public:
  explicit ElementReader(Type type) : type_(type), bytes_(size_bytes(type)) {
    if (bytes_ > 2)
      return;
    values_.resize(std::size_t{1} << (8 * bytes_));
    for (std::size_t bits = 0; bits < values_.size(); ++bits)
      values_[bits] = from_bits(type, bits);
  }

  double operator()(const void *data, std::int64_t i) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, static_cast<const std::byte *>(data) + i * bytes_,
                static_cast<std::size_t>(bytes_));
    return values_.empty() ? from_bits(type_, bits) : values_[bits];
  }

private:
  Type type_;
  int bytes_;
  std::vector<double> values_;
};

} // namespace

/// How many threads have work.
static unsigned workersFor(std::int64_t count) {
  std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, cores));
}

/// Call work(worker, i) for every i below `count`, on `workers` threads. `work`
/// must not throw. Where the machine gives fewer threads, those do it.
template <typename Work>
static void forEach(std::int64_t count, unsigned workers, const Work &work) {
  std::atomic<std::int64_t> next = 0;
  auto loop = [&](unsigned worker) {
    for (std::int64_t i = next++; i < count; i = next++)
      work(worker, i);
  };
  std::vector<std::thread> threads;
  threads.reserve(workers);
  try {
    for (unsigned worker = 1; worker < workers; ++worker)
      threads.emplace_back(loop, worker);
  } catch (const std::system_error &) {
  }
  loop(0);
  for (std::thread &thread : threads)
    thread.join();
}

/// sums += a * b and magnitudes += |a * b| over a panel. `a` is rows x depth,
/// the others have rows of kTileCols; `depth` is a multiple of kUnroll.
// The clone is chosen while the program is loaded, before a sanitizer is ready.
#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) &&                   \
    !defined(__SANITIZE_THREAD__)
__attribute__((target_clones("arch=skylake-avx512", "arch=haswell", "default")))
#endif
static void multiplyPanel(const double *a, const Lanes *b, Lanes *sums,
                          Lanes *magnitudes, std::int64_t rows,
                          std::int64_t depth, std::int64_t vectors) {
  constexpr std::int64_t stride = kTileCols / kLanes;
  const LaneBits noSign = LaneBits{} + std::numeric_limits<std::int64_t>::max();
  for (std::int64_t i = 0; i < rows; ++i) {
    for (std::int64_t k = 0; k < depth; k += kUnroll) {
      const double *x = a + i * kPanelDepth + k;
      const Lanes *y = b + k * stride;
      for (std::int64_t j = 0; j < vectors; ++j) {
        Lanes p0 = x[0] * y[j];
        Lanes p1 = x[1] * y[j + stride];
        Lanes p2 = x[2] * y[j + 2 * stride];
        Lanes p3 = x[3] * y[j + 3 * stride];
        sums[i * stride + j] += (p0 + p1) + (p2 + p3);
        magnitudes[i * stride + j] +=
            ((Lanes)((LaneBits)p0 & noSign) + (Lanes)((LaneBits)p1 & noSign)) +
            ((Lanes)((LaneBits)p2 & noSign) + (Lanes)((LaneBits)p3 & noSign));
      }
    }
  }
}

/// The product at rows x cols of one tile, into the workspace.
static void computeTile(const ReferenceGemm &gemm, const ElementReader &read,
                        std::span<const std::int64_t> rows,
                        std::span<const std::int64_t> cols, const Tile &tile,
                        Workspace &work) {
  std::int64_t vectors = (tile.cols + kLanes - 1) / kLanes;
  std::fill(work.sums.begin(), work.sums.end(), Lanes{});
  std::fill(work.magnitudes.begin(), work.magnitudes.end(), Lanes{});
  auto *b = reinterpret_cast<double *>(work.b.data());
  for (std::int64_t start = 0; start < gemm.k; start += kPanelDepth) {
    std::int64_t depth = std::min(kPanelDepth, gemm.k - start);
    std::int64_t padded = (depth + kUnroll - 1) / kUnroll * kUnroll;
    std::fill(work.a.begin(), work.a.end(), 0.0);
    std::fill(work.b.begin(), work.b.end(), Lanes{});
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      std::int64_t row = rows[tile.row + i];
      for (std::int64_t k = 0; k < depth; ++k)
        work.a[i * kPanelDepth + k] =
            read(gemm.a, gemm.a_row_major ? row * gemm.k + start + k
                                          : (start + k) * gemm.m + row);
    }
    for (std::int64_t j = 0; j < tile.cols; ++j) {
      std::int64_t col = cols[tile.col + j];
      for (std::int64_t k = 0; k < depth; ++k)
        b[k * kTileCols + j] =
            read(gemm.b, gemm.b_row_major ? (start + k) * gemm.n + col
                                          : col * gemm.k + start + k);
    }
    multiplyPanel(work.a.data(), work.b.data(), work.sums.data(),
                  work.magnitudes.data(), tile.rows, padded, vectors);
  }
}

/// Compute rows x cols and call use(worker, row, col, d, magnitude) for each
/// element, with positions in the index lists.
template <typename Use>
static void forEachElement(const ReferenceGemm &gemm,
                           std::span<const std::int64_t> rows,
                           std::span<const std::int64_t> cols, const Use &use) {
  std::int64_t rowCount = std::ssize(rows), colCount = std::ssize(cols);
  std::int64_t tilesDown = (rowCount + kTileRows - 1) / kTileRows;
  std::int64_t tilesAcross = (colCount + kTileCols - 1) / kTileCols;
  std::int64_t tiles = tilesDown * tilesAcross;
  ElementReader read(gemm.type);
  std::vector<Workspace> workspaces(workersFor(tiles));
  forEach(tiles, workersFor(tiles), [&](unsigned worker, std::int64_t index) {
    Workspace &work = workspaces[worker];
    Tile tile = {.row = index / tilesAcross * kTileRows,
                 .col = index % tilesAcross * kTileCols};
    tile.rows = std::min(kTileRows, rowCount - tile.row);
    tile.cols = std::min(kTileCols, colCount - tile.col);
    computeTile(gemm, read, rows, cols, tile, work);
    auto *sums = reinterpret_cast<const double *>(work.sums.data());
    auto *magnitudes = reinterpret_cast<const double *>(work.magnitudes.data());
    for (std::int64_t i = 0; i < tile.rows; ++i)
      for (std::int64_t j = 0; j < tile.cols; ++j)
        use(worker, tile.row + i, tile.col + j, sums[i * kTileCols + j],
            magnitudes[i * kTileCols + j]);
  });
}

static std::vector<std::int64_t> allBelow(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

static void checkGemm(const ReferenceGemm &gemm) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0)
    userError("a product of {}x{}x{}: no dimension may be below 0", gemm.m,
              gemm.n, gemm.k);
}

static void checkIndices(const char *what, std::int64_t count,
                         std::span<const std::int64_t> indices) {
  for (std::int64_t index : indices)
    if (index < 0 || index >= count)
      userError("there is no {} {} in a product with {} of them", what, index,
                count);
}

ReferenceProduct reference_gemm(const ReferenceGemm &gemm,
                                std::span<const std::int64_t> rows,
                                std::span<const std::int64_t> cols) {
  checkGemm(gemm);
  checkIndices("row", gemm.m, rows);
  checkIndices("column", gemm.n, cols);
  ReferenceProduct product;
  product.d.resize(rows.size() * cols.size());
  product.magnitude.resize(product.d.size());
  forEachElement(gemm, rows, cols,
                 [&](unsigned, std::int64_t i, std::int64_t j, double d,
                     double magnitude) {
                   std::int64_t at = i * std::ssize(cols) + j;
                   product.d[at] = d;
                   product.magnitude[at] = magnitude;
                 });
  return product;
}

ReferenceProduct reference_gemm(const ReferenceGemm &gemm) {
  checkGemm(gemm);
  return reference_gemm(gemm, allBelow(gemm.m), allBelow(gemm.n));
}

/// Half of the last place, relative to the value.
static double halfUlp(Type out) {
  switch (out) {
  case Type::f64:
    return 0x1p-53;
  case Type::f32:
    return 0x1p-24;
  case Type::f16:
  case Type::tf32:
    return 0x1p-11;
  case Type::bf16:
    return 0x1p-8;
  case Type::e4m3:
    return 0x1p-4;
  case Type::e5m2:
    return 0x1p-3;
  default:
    userError("a product is compared in a float type, not {}", name(out));
  }
}

/// Half of the distance between the smallest numbers of the type.
static double halfSmallest(Type out) { return from_bits(out, 1) / 2; }

// Tensor cores do not round sums to nearest. Per instruction they align 16
// products and the accumulator to the largest of them and truncate, each by
// less than eps = 2^-24 of it, then truncate the sum to f32, by less than
// 2 eps: at most about K eps |p| over all of K, where |p| is how large the
// running sum was. Truncation loses half of its bound on average, and a sum
// that climbs to |want| is half as large on average: K/4 eps |want|. Terms of
// random sign stray further on the way, by a few times S / sqrt(K), where
// S = sum|a||b|:
//
//     (2 + sqrt(K)) eps S + K/4 eps |want|
//
// An H200 stays below half of that for K from 512 to 65536, with terms of
// random sign and of one sign. Terms in an order that first climbs to S / 2 and
// then returns to nothing may exceed it by right; that is the price of catching
// one lost product at large K. The cap is what users of such kernels accept at
// most. Then half an ulp for the rounding to the type of D.
double gemm_tolerance(Type out, std::int64_t k, double want, double magnitude) {
  constexpr double eps = 0x1p-24;
  double depth = static_cast<double>(k);
  double size = std::fabs(want);
  double sum =
      (2 + std::sqrt(depth)) * eps * magnitude + depth / 4 * eps * size;
  double total = sum + std::max(halfUlp(out) * (size + sum), halfSmallest(out));
  return out == Type::f32 ? std::min(total, 5e-3 * size + 1e-1) : total;
}

/// A number beyond what the type holds is written as infinity, or as the
/// largest there is: `want` as the type would hold it.
static double asStored(Type out, double want) {
  return from_bits(out, to_bits(out, want));
}

static bool isClose(Type out, const Mismatch &pair) {
  if (std::isnan(pair.got) || std::isnan(pair.want))
    return false;
  if (std::fabs(pair.got - pair.want) <= pair.tolerance)
    return true;
  double limit = std::copysign(pair.tolerance, pair.want);
  return std::isinf(pair.got) && pair.got == asStored(out, pair.want + limit);
}

/// Keep the mismatches that come first by row, then column, whatever the order
/// in which threads find them.
static void keepFirst(std::vector<Mismatch> &kept, const Mismatch &mismatch) {
  auto before = [](const Mismatch &x, const Mismatch &y) {
    return std::pair(x.row, x.col) < std::pair(y.row, y.col);
  };
  if (kept.size() == kMismatchesKept && !before(mismatch, kept.back()))
    return;
  if (kept.size() == kMismatchesKept)
    kept.pop_back();
  kept.insert(std::upper_bound(kept.begin(), kept.end(), mismatch, before),
              mismatch);
}

/// Judge one element.
static void judge(Type out, std::int64_t k, Mismatch pair, double magnitude,
                  Comparison &result) {
  pair.tolerance = gemm_tolerance(out, k, pair.want, magnitude);
  ++result.compared;
  double error = std::fabs(pair.got - pair.want);
  double relative = error == 0 ? 0 : error / magnitude;
  if (std::isnan(relative))
    relative = std::numeric_limits<double>::infinity();
  bool isFine = isClose(out, pair);
  // An infinity that is right has no error that could be measured.
  if (!isFine || !std::isinf(pair.got))
    result.max_rel_err = std::max(result.max_rel_err, relative);
  if (isFine)
    return;
  ++result.wrong;
  keepFirst(result.first, pair);
}

static void add(Comparison &total, const Comparison &part) {
  total.max_rel_err = std::max(total.max_rel_err, part.max_rel_err);
  total.compared += part.compared;
  total.wrong += part.wrong;
  for (const Mismatch &mismatch : part.first)
    keepFirst(total.first, mismatch);
}

/// Compare D where those rows and columns cross.
static void compareAt(const ReferenceGemm &gemm, Type out, const void *d,
                      std::span<const std::int64_t> rows,
                      std::span<const std::int64_t> cols, Comparison &result) {
  ElementReader read(out);
  std::vector<Comparison> parts(
      std::max(1u, std::thread::hardware_concurrency()));
  for (Comparison &part : parts)
    part.first.reserve(kMismatchesKept);
  forEachElement(gemm, rows, cols,
                 [&](unsigned worker, std::int64_t i, std::int64_t j,
                     double want, double magnitude) {
                   Mismatch pair = {.row = rows[i], .col = cols[j]};
                   pair.got = read(d, pair.row * gemm.n + pair.col);
                   pair.want = want;
                   judge(out, gemm.k, pair, magnitude, parts[worker]);
                 });
  for (const Comparison &part : parts)
    add(result, part);
}

/// The i-th number of the SplitMix64 generator that starts at `seed`.
static std::uint64_t splitMix64(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = seed + (i + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

/// Uniform in [0, 1).
static double unitRandom(std::uint64_t seed, std::uint64_t i) {
  return static_cast<double>(splitMix64(seed, i) >> 11) * 0x1p-53;
}

/// `wanted` indices below `count`: the first, the last, and one at a random
/// place of each stretch between, so that every place of a tile comes up.
static std::vector<std::int64_t> sample(std::int64_t count,
                                        std::int64_t wanted) {
  if (wanted >= count)
    return allBelow(count);
  std::vector<std::int64_t> indices = {0, count - 1};
  double stretch = static_cast<double>(count) / static_cast<double>(wanted);
  for (std::int64_t i = 1; i + 1 < wanted; ++i) {
    double at = (static_cast<double>(i) + unitRandom(0, i)) * stretch;
    indices.push_back(std::min(static_cast<std::int64_t>(at), count - 1));
  }
  std::sort(indices.begin(), indices.end());
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  return indices;
}

Comparison compare_gemm(const ReferenceGemm &gemm, Type out, const void *d,
                        std::int64_t max_products) {
  checkGemm(gemm);
  halfUlp(out); // Refuses a type here, where it can throw: threads must not.
  Comparison result;
  double perRow = static_cast<double>(gemm.n) * static_cast<double>(gemm.k);
  double perCol = static_cast<double>(gemm.m) * static_cast<double>(gemm.k);
  auto budget = static_cast<double>(max_products);
  std::vector<std::int64_t> allCols = allBelow(gemm.n);
  if (perRow * static_cast<double>(gemm.m) <= budget) {
    compareAt(gemm, out, d, allBelow(gemm.m), allCols, result);
  } else {
    result.is_sampled = true;
    auto rows = sample(gemm.m, static_cast<std::int64_t>(budget / 2 / perRow));
    auto cols = sample(gemm.n, static_cast<std::int64_t>(budget / 2 / perCol));
    compareAt(gemm, out, d, rows, allCols, result);
    std::vector<std::int64_t> otherRows;
    for (std::int64_t row = 0; row < gemm.m; ++row)
      if (!std::binary_search(rows.begin(), rows.end(), row))
        otherRows.push_back(row);
    compareAt(gemm, out, d, otherRows, cols, result);
  }
  result.ok = result.wrong == 0;
  return result;
}

/// One random number in the bits of the type.
static std::uint64_t randomBits(Type type, double unit, double lo, double hi) {
  if (!is_float(type))
    return to_bits(type, std::floor(lo + unit * (hi - lo + 1)));
  std::uint64_t bits = to_bits(type, lo + unit * (hi - lo));
  double value = from_bits(type, bits);
  if (value < hi || lo >= hi)
    return bits;
  // Rounded up to hi, which is excluded: the number before it. A float's bits
  // are sign and magnitude, in units of the last place (tf32: of the 13th).
  std::uint64_t step = type == Type::tf32 ? 1 << 13 : 1;
  return std::signbit(value) ? bits + step : bits - step;
}

void fill_random(Type type, void *data, std::size_t count, std::uint64_t seed,
                 double lo, double hi) {
  if (!(lo <= hi))
    userError("random numbers from {} to {}: the first must not be larger", lo,
              hi);
  auto bytes = static_cast<std::size_t>(size_bytes(type));
  auto chunks =
      static_cast<std::int64_t>((count + kFillChunk - 1) / kFillChunk);
  forEach(chunks, workersFor(chunks), [&](unsigned, std::int64_t chunk) {
    std::size_t begin = static_cast<std::size_t>(chunk) * kFillChunk;
    std::size_t end = std::min(count, begin + kFillChunk);
    for (std::size_t i = begin; i < end; ++i) {
      std::uint64_t bits = randomBits(type, unitRandom(seed, i), lo, hi);
      std::memcpy(static_cast<std::byte *>(data) + i * bytes, &bits, bytes);
    }
  });
}

} // namespace kiln
