// ReferenceCompare: D against the reference, element by element.
#include "support/FillRandom.h"
#include "support/Parallel.h"
#include "verify/Reference.h"

#include <cmath>
#include <limits>
#include <tuple>

namespace kiln {

static constexpr std::size_t kMismatchesKept = 8;

double asStored(Type type, double x) {
  return from_bits(type, to_bits(type, x));
}

/// Whether adding up in f16 gives infinity by right.
static bool overflows(const ReferenceGemm &gemm,
                      const ReferenceElement &element) {
  return gemm.accumulate == Type::f16 &&
         std::isinf(asStored(Type::f16, element.magnitude));
}

/// A number beyond what the type holds is written as infinity, or as the
/// largest there is.
static bool isClose(const ReferenceGemm &gemm, const ReferenceElement &element,
                    const Mismatch &pair) {
  if (std::isnan(pair.got) || std::isnan(pair.want))
    return false;
  if (std::fabs(pair.got - pair.want) <= pair.tolerance)
    return true;
  double limit = std::copysign(pair.tolerance, pair.want);
  double largest = asStored(gemm.out, pair.want + limit);
  if (std::isinf(pair.got))
    return pair.got == largest || overflows(gemm, element);
  // Types that saturate: e4m3 and e5m2.
  return pair.got == largest && std::fabs(largest) < std::fabs(pair.want) &&
         largest == asStored(gemm.out, std::copysign(INFINITY, pair.want));
}

/// Keep the mismatches that come first by batch, row, then column, whatever the
/// order in which threads find them.
static void keepFirst(std::vector<Mismatch> &kept, const Mismatch &mismatch) {
  auto before = [](const Mismatch &x, const Mismatch &y) {
    return std::tie(x.batch, x.row, x.col) < std::tie(y.batch, y.row, y.col);
  };
  if (kept.size() == kMismatchesKept && !before(mismatch, kept.back()))
    return;
  if (kept.size() == kMismatchesKept)
    kept.pop_back();
  kept.insert(std::upper_bound(kept.begin(), kept.end(), mismatch, before),
              mismatch);
}

/// Judge one element.
static void judge(const ReferenceGemm &gemm, const ReferenceElement &element,
                  Mismatch pair, Comparison &result) {
  pair.want = element.want;
  pair.tolerance = gemm_tolerance(gemm, element);
  ++result.compared;
  double error = std::fabs(pair.got - pair.want);
  double scale = std::fabs(gemm.alpha) * element.magnitude + element.added;
  double relative = error == 0 ? 0 : error / scale;
  if (std::isnan(relative))
    relative = std::numeric_limits<double>::infinity();
  bool isFine = isClose(gemm, element, pair);
  // A number the type cannot hold has no error that could be measured.
  if (!isFine || error <= pair.tolerance)
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
static void compareAt(const ReferenceGemm &gemm, const void *d,
                      std::span<const std::int64_t> rows,
                      std::span<const std::int64_t> cols, Comparison &result) {
  ElementReader read(gemm.out);
  MatrixStrides ofD = stridesOfD(gemm);
  std::vector<Comparison> parts(
      std::max(1u, std::thread::hardware_concurrency()));
  for (Comparison &part : parts)
    reserveBounded(part.first, kMismatchesKept);
  forEachElement(gemm, rows, cols,
                 [&](unsigned worker, const ElementPlace &place,
                     const ReferenceElement &element) {
                   Mismatch pair = {.batch = place.batch,
                                    .row = rows[place.row],
                                    .col = cols[place.col]};
                   pair.got = read(d, ofD.at(pair.batch, pair.row, pair.col));
                   judge(gemm, element, pair, parts[worker]);
                 });
  for (const Comparison &part : parts)
    add(result, part);
}

/// The elements between the rows (or columns, as stored) and products of D that
/// are no longer what they were.
static std::int64_t countTouchedGaps(const ReferenceGemm &gemm,
                                     const std::byte *d) {
  MatrixStrides ofD = stridesOfD(gemm);
  std::int64_t lines = gemm.d_row_major ? gemm.m : gemm.n;
  std::int64_t length = gemm.d_row_major ? gemm.n : gemm.m;
  std::int64_t step = gemm.d_row_major ? ofD.row : ofD.col;
  std::int64_t all = gemm.d_elements();
  if (all == gemm.batch * lines * length)
    return 0; // there are none
  std::vector<bool> isElement(static_cast<std::size_t>(all));
  for (std::int64_t product = 0; product < gemm.batch; ++product)
    for (std::int64_t line = 0; line < lines; ++line)
      std::fill_n(isElement.begin() + product * ofD.batch + line * step, length,
                  true);
  std::int64_t bytes = size_bytes(gemm.out), touched = 0;
  for (std::int64_t i = 0; i < all; ++i)
    touched +=
        !isElement[static_cast<std::size_t>(i)] &&
        !std::all_of(d + i * bytes, d + (i + 1) * bytes, [&](std::byte byte) {
          return byte == std::byte{*gemm.poison};
        });
  return touched;
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

Comparison compare_gemm(const ReferenceGemm &gemm, const void *d,
                        std::int64_t max_products) {
  checkGemm(gemm);
  Comparison result;
  auto depth = static_cast<double>(gemm.batch) * static_cast<double>(gemm.k);
  double perRow = static_cast<double>(gemm.n) * depth;
  double perCol = static_cast<double>(gemm.m) * depth;
  auto budget = static_cast<double>(max_products);
  std::vector<std::int64_t> allCols = allBelow(gemm.n);
  if (perRow * static_cast<double>(gemm.m) <= budget) {
    compareAt(gemm, d, allBelow(gemm.m), allCols, result);
  } else {
    result.is_sampled = true;
    auto rows = sample(gemm.m, static_cast<std::int64_t>(budget / 2 / perRow));
    auto cols = sample(gemm.n, static_cast<std::int64_t>(budget / 2 / perCol));
    compareAt(gemm, d, rows, allCols, result);
    std::vector<std::int64_t> otherRows;
    for (std::int64_t row = 0; row < gemm.m; ++row)
      if (!std::binary_search(rows.begin(), rows.end(), row))
        otherRows.push_back(row);
    compareAt(gemm, d, otherRows, cols, result);
  }
  if (gemm.poison)
    result.touched_gaps =
        countTouchedGaps(gemm, static_cast<const std::byte *>(d));
  result.ok = result.wrong == 0 && result.touched_gaps == 0;
  return result;
}

} // namespace kiln
