// Reference: the product in double on all cores.
//
// D is cut into tiles. For each, panels of A and B are converted to double once
// and multiplied from the cache; rows and columns are index lists, so that a
// whole product and a sample of it are the same code.
#include "verify/Reference.h"

#include "kiln/kernels/gemm.h"
#include "support/Error.h"
#include "support/HostProcessor.h"
#include "support/Parallel.h"

#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace kiln {

static constexpr std::int64_t kTileRows = 64;
static constexpr std::int64_t kTileCols = 256;
static constexpr std::int64_t kPanelDepth = 256;
static constexpr std::int64_t kUnroll = 4; ///< steps of k per pass over a row

namespace {

/// Eight doubles: one register of AVX-512, two of AVX2, four of SSE2.
constexpr std::int64_t kLanes = 8;
using Lanes __attribute__((vector_size(kLanes * sizeof(double)))) = double;
using LaneBits __attribute__((vector_size(kLanes * sizeof(double)))) =
    std::int64_t;

/// The same where vectors of them are allocated: a vector type by itself loses
/// its alignment as a template's argument.
struct alignas(Lanes) Block {
  Lanes lanes{};
};

/// What one thread works in: panels of A and B, and the tile they add up to.
struct Workspace {
  std::vector<double> a = std::vector<double>(kTileRows * kPanelDepth);
  std::vector<Block> b = std::vector<Block>(kPanelDepth * kTileCols / kLanes);
  std::vector<Block> sums = std::vector<Block>(kTileRows * kTileCols / kLanes);
  std::vector<Block> magnitudes =
      std::vector<Block>(kTileRows * kTileCols / kLanes);
};

/// The part of rows x cols that one piece of work covers.
struct Tile {
  std::int64_t batch = 0;
  std::int64_t row = 0, col = 0; ///< positions in the index lists
  std::int64_t rows = 0, cols = 0;
};

} // namespace

ElementReader::ElementReader(Type type)
    : type_(type), bytes_(size_bytes(type)), isSubbyte_(is_subbyte(type)) {
  if (bytes_ > 2)
    return;
  values_.resize(std::size_t{1} << (8 * bytes_));
  for (std::size_t bits = 0; bits < values_.size(); ++bits)
    values_[bits] = from_bits(type, bits);
}

/// The strides of rows x cols elements, with or without a leading dimension.
static MatrixStrides stridesOf(std::int64_t rows, std::int64_t cols,
                               bool isRowMajor, std::int64_t leading,
                               std::optional<std::int64_t> batch) {
  std::int64_t contiguous = isRowMajor ? cols : rows;
  std::int64_t step = leading ? leading : contiguous;
  std::int64_t whole = (isRowMajor ? rows : cols) * step;
  if (isRowMajor)
    return {.row = step, .col = 1, .batch = batch.value_or(whole)};
  return {.row = 1, .col = step, .batch = batch.value_or(whole)};
}

static MatrixStrides stridesOfA(const ReferenceGemm &gemm) {
  return stridesOf(gemm.m, gemm.k, gemm.a_row_major, gemm.lda,
                   gemm.batch_stride_a);
}
static MatrixStrides stridesOfB(const ReferenceGemm &gemm) {
  return stridesOf(gemm.k, gemm.n, gemm.b_row_major, gemm.ldb,
                   gemm.batch_stride_b);
}
static MatrixStrides stridesOfC(const ReferenceGemm &gemm) {
  return stridesOf(gemm.m, gemm.n, gemm.d_row_major, gemm.ldc,
                   gemm.batch_stride_c);
}
MatrixStrides stridesOfD(const ReferenceGemm &gemm) {
  return stridesOf(gemm.m, gemm.n, gemm.d_row_major, gemm.ldd,
                   gemm.batch_stride_d);
}

/// Elements of all products, of which one has so many lines.
static std::int64_t elementsOf(const ReferenceGemm &gemm,
                               const MatrixStrides &strides, bool isRowMajor,
                               std::int64_t rows, std::int64_t cols) {
  if (gemm.batch == 0)
    return 0;
  std::int64_t one = isRowMajor ? rows * strides.row : cols * strides.col;
  return (gemm.batch - 1) * strides.batch + one;
}

std::int64_t ReferenceGemm::a_elements() const {
  return elementsOf(*this, stridesOfA(*this), a_row_major, m, k);
}
std::int64_t ReferenceGemm::b_elements() const {
  return elementsOf(*this, stridesOfB(*this), b_row_major, k, n);
}
std::int64_t ReferenceGemm::c_elements() const {
  return elementsOf(*this, stridesOfC(*this), d_row_major, m, n);
}
std::int64_t ReferenceGemm::d_elements() const {
  return elementsOf(*this, stridesOfD(*this), d_row_major, m, n);
}
std::int64_t ReferenceGemm::bias_elements() const {
  if (bias_kind == GemmBias::none)
    return 0;
  return bias_kind == GemmBias::row ? m : n;
}

static ScaledOperand operandA(const ReferenceGemm &gemm) {
  return {.is_a = true, .rows = gemm.m, .k = gemm.k};
}
static ScaledOperand operandB(const ReferenceGemm &gemm) {
  return {.is_a = false, .rows = gemm.n, .k = gemm.k};
}
/// Factors of all products: of a tensor there is one for all of them.
static std::int64_t scaleCount(const ReferenceGemm &gemm,
                               const ScaledOperand &operand) {
  return (gemm.scaling == Scaling::tensor ? 1 : gemm.batch) *
         scale_count(gemm.scaling, operand);
}
std::int64_t ReferenceGemm::a_scale_count() const {
  return scaleCount(*this, operandA(*this));
}
std::int64_t ReferenceGemm::b_scale_count() const {
  return scaleCount(*this, operandB(*this));
}

namespace {

/// The factors of an operand.
class Factors {
public:
  Factors(const ReferenceGemm &gemm, bool isA)
      : scaling_(gemm.scaling), operand_(isA ? operandA(gemm) : operandB(gemm)),
        data_(isA ? gemm.a_scales : gemm.b_scales),
        read_(block_of(gemm.scaling).type),
        perProduct_(
            scaling_ == Scaling::tensor ? 0 : scale_count(scaling_, operand_)) {
  }

  /// Multiply elements of one row of an operand, `step` apart, from `start` on
  /// along K.
  void apply(std::int64_t batch, std::int64_t row, std::int64_t start,
             std::int64_t depth, double *elements, std::int64_t step) const {
    if (scaling_ == Scaling::none)
      return;
    for (std::int64_t k = 0; k < depth; ++k)
      elements[k * step] *=
          read_(data_, batch * perProduct_ +
                           scale_index(scaling_, operand_, row, start + k));
  }

private:
  Scaling scaling_;
  ScaledOperand operand_;
  const void *data_;
  ElementReader read_;
  std::int64_t perProduct_; ///< from one product's to the next one's
};

} // namespace

/// sums += a * b and magnitudes += |a * b| over a panel. `a` is rows x depth,
/// the others have rows of kTileCols; `depth` is a multiple of kUnroll.
KILN_WIDEST_VECTORS
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
  std::fill(work.sums.begin(), work.sums.end(), Block{});
  std::fill(work.magnitudes.begin(), work.magnitudes.end(), Block{});
  auto *b = reinterpret_cast<double *>(work.b.data());
  MatrixStrides ofA = stridesOfA(gemm), ofB = stridesOfB(gemm);
  Factors factorsA(gemm, true), factorsB(gemm, false);
  for (std::int64_t start = 0; start < gemm.k; start += kPanelDepth) {
    std::int64_t depth = std::min(kPanelDepth, gemm.k - start);
    std::int64_t padded = (depth + kUnroll - 1) / kUnroll * kUnroll;
    std::fill(work.a.begin(), work.a.end(), 0.0);
    std::fill(work.b.begin(), work.b.end(), Block{});
    for (std::int64_t i = 0; i < tile.rows; ++i) {
      std::int64_t first = ofA.at(tile.batch, rows[tile.row + i], start);
      for (std::int64_t k = 0; k < depth; ++k)
        work.a[i * kPanelDepth + k] = read(gemm.a, first + k * ofA.col);
      factorsA.apply(tile.batch, rows[tile.row + i], start, depth,
                     &work.a[i * kPanelDepth], 1);
    }
    for (std::int64_t j = 0; j < tile.cols; ++j) {
      std::int64_t first = ofB.at(tile.batch, start, cols[tile.col + j]);
      for (std::int64_t k = 0; k < depth; ++k)
        b[k * kTileCols + j] = read(gemm.b, first + k * ofB.row);
      factorsB.apply(tile.batch, cols[tile.col + j], start, depth, b + j,
                     kTileCols);
    }
    multiplyPanel(work.a.data(), &work.b.front().lanes,
                  &work.sums.front().lanes, &work.magnitudes.front().lanes,
                  tile.rows, padded, vectors);
  }
}

/// act(x). gelu is its tanh form.
static double activate(Activation act, double x) {
  switch (act) {
  case Activation::none:
    return x;
  case Activation::relu:
    return std::isnan(x) ? x : std::max(x, 0.0);
  case Activation::gelu: {
    double inner = std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
    return 0.5 * x * (1 + std::tanh(inner));
  }
  case Activation::silu:
    return x / (1 + std::exp(-x));
  }
  return x;
}

/// A sum of integers as 32 bits hold it: what is beyond wraps around.
static double wrapped(double sum) {
  return static_cast<std::int32_t>(
      static_cast<std::uint32_t>(static_cast<std::int64_t>(sum)));
}

namespace {

/// From sums to elements of D.
class Finish {
public:
  explicit Finish(const ReferenceGemm &gemm)
      : gemm_(gemm), readC_(gemm.out), readBias_(gemm.bias_type()),
        ofC_(stridesOfC(gemm)) {}

  /// The element at (row, col) of product `batch`.
  ReferenceElement operator()(std::int64_t batch, std::int64_t row,
                              std::int64_t col, double sum,
                              double magnitude) const {
    ReferenceElement element = {.sum = sum, .magnitude = magnitude};
    if (gemm_.accumulate == Type::i32)
      element.sum = wrapped(sum);
    double c = 0, bias = 0;
    if (gemm_.beta != 0)
      c = gemm_.beta * readC_(gemm_.c, ofC_.at(batch, row, col));
    if (gemm_.bias_kind != GemmBias::none)
      bias =
          readBias_(gemm_.bias, gemm_.bias_kind == GemmBias::row ? row : col);
    element.added = std::fabs(c) + std::fabs(bias);
    element.before = gemm_.alpha * element.sum + c + bias;
    element.want = activate(gemm_.act, element.before);
    return element;
  }

private:
  const ReferenceGemm &gemm_;
  ElementReader readC_, readBias_;
  MatrixStrides ofC_;
};

} // namespace

void forEachElement(const ReferenceGemm &gemm,
                    std::span<const std::int64_t> rows,
                    std::span<const std::int64_t> cols, const UseElement &use) {
  std::int64_t rowCount = std::ssize(rows), colCount = std::ssize(cols);
  std::int64_t tilesDown = (rowCount + kTileRows - 1) / kTileRows;
  std::int64_t tilesAcross = (colCount + kTileCols - 1) / kTileCols;
  std::int64_t perProduct = tilesDown * tilesAcross;
  std::int64_t tiles = gemm.batch * perProduct;
  ElementReader read(gemm.type);
  Finish finish(gemm);
  std::vector<Workspace> workspaces(workersFor(tiles));
  forEach(tiles, workersFor(tiles), [&](unsigned worker, std::int64_t index) {
    Workspace &work = workspaces[worker];
    Tile tile = {.batch = index / perProduct,
                 .row = index % perProduct / tilesAcross * kTileRows,
                 .col = index % tilesAcross * kTileCols};
    tile.rows = std::min(kTileRows, rowCount - tile.row);
    tile.cols = std::min(kTileCols, colCount - tile.col);
    computeTile(gemm, read, rows, cols, tile, work);
    auto *sums = reinterpret_cast<const double *>(work.sums.data());
    auto *magnitudes = reinterpret_cast<const double *>(work.magnitudes.data());
    for (std::int64_t i = 0; i < tile.rows; ++i)
      for (std::int64_t j = 0; j < tile.cols; ++j) {
        ElementPlace place = {tile.batch, tile.row + i, tile.col + j};
        use(worker, place,
            finish(tile.batch, rows[place.row], cols[place.col],
                   sums[i * kTileCols + j], magnitudes[i * kTileCols + j]));
      }
  });
}

std::vector<std::int64_t> allBelow(std::int64_t count) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(count));
  std::iota(indices.begin(), indices.end(), 0);
  return indices;
}

/// Refuse a leading dimension shorter than a row.
static void checkLeading(const char *matrix, std::int64_t leading,
                         std::int64_t contiguous, bool isRowMajor) {
  if (leading != 0 && leading < contiguous)
    userError("the leading dimension of {} is {}, but its {} have {} elements",
              matrix, leading, isRowMajor ? "rows" : "columns", contiguous);
}

void checkGemm(const ReferenceGemm &gemm) {
  if (gemm.m < 0 || gemm.n < 0 || gemm.k < 0 || gemm.batch < 0)
    userError("a product of {}x{}x{}, batch {}: no dimension may be below 0",
              gemm.m, gemm.n, gemm.k, gemm.batch);
  for (const auto &stride : {gemm.batch_stride_a, gemm.batch_stride_b,
                             gemm.batch_stride_c, gemm.batch_stride_d})
    if (stride.value_or(0) < 0)
      userError("products {} elements apart: the next one lies behind, not "
                "before",
                *stride);
  checkLeading("A", gemm.lda, gemm.a_row_major ? gemm.k : gemm.m,
               gemm.a_row_major);
  checkLeading("B", gemm.ldb, gemm.b_row_major ? gemm.n : gemm.k,
               gemm.b_row_major);
  for (auto [matrix, leading] : {std::pair{"C", gemm.ldc}, {"D", gemm.ldd}})
    checkLeading(matrix, leading, gemm.d_row_major ? gemm.n : gemm.m,
                 gemm.d_row_major);
  if (gemm.scaling != Scaling::none && (!gemm.a_scales || !gemm.b_scales))
    userError("the elements are scaled ({}), but there are no factors of {}",
              name(gemm.scaling), gemm.a_scales ? "B" : "A");
  if (gemm.beta != 0 && !gemm.c)
    userError("beta is {}, but there is no C", gemm.beta);
  if (gemm.bias_kind != GemmBias::none && !gemm.bias)
    userError("a bias is to be added, but there is none");
  if (gemm.accumulate != Type::f32 && gemm.accumulate != Type::f16 &&
      gemm.accumulate != Type::i32)
    userError("sums are f32, f16 or i32, not {}", name(gemm.accumulate));
  if (gemm.accumulate == Type::i32 && is_float(gemm.type))
    userError("{} products do not accumulate in i32", name(gemm.type));
  if (!is_float(gemm.out) && gemm.out != Type::i32)
    userError("a product is compared in a float type or i32, not {}",
              name(gemm.out));
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
  product.d.resize(static_cast<std::size_t>(gemm.batch) * rows.size() *
                   cols.size());
  product.magnitude.resize(product.d.size());
  forEachElement(gemm, rows, cols,
                 [&](unsigned, const ElementPlace &place,
                     const ReferenceElement &element) {
                   std::int64_t at =
                       (place.batch * std::ssize(rows) + place.row) *
                           std::ssize(cols) +
                       place.col;
                   product.d[at] = element.want;
                   product.magnitude[at] = element.magnitude;
                 });
  return product;
}

ReferenceProduct reference_gemm(const ReferenceGemm &gemm) {
  checkGemm(gemm);
  return reference_gemm(gemm, allBelow(gemm.m), allBelow(gemm.n));
}

} // namespace kiln
