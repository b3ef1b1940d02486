// Factors: LU of many small matrices, and what is solved and inverted with them.
//
// Row interchanges are numbers from 1 on, a row of them for each matrix; without
// them nothing is interchanged, as cuBLAS has it.
#include "cublas/Call.h"

#include <cmath>

using namespace kiln;
using namespace kiln::cublas;

namespace {
/// A square matrix, column by column.
struct Square {
  std::int64_t n;
  std::vector<double> values;

  double &at(std::int64_t row, std::int64_t column) {
    return values[static_cast<std::size_t>(column * n + row)];
  }
  void swapRows(std::int64_t one, std::int64_t other) {
    for (std::int64_t column = 0; column < n; ++column)
      std::swap(at(one, column), at(other, column));
  }
};
} // namespace

static Matrix matrixOf(const char *name, std::uint64_t address, Element element,
                       std::int64_t rows, std::int64_t columns,
                       std::int64_t ld) {
  require(rows >= 0 && columns >= 0 && ld >= std::max<std::int64_t>(1, rows));
  return {name, address, element, rows, columns, ld};
}

/// A row of integers.
static Matrix integers(const char *name, const int *at, std::int64_t first,
                       std::int64_t count) {
  return {name, reinterpret_cast<std::uint64_t>(at + first), Element::i32, count,
          1, std::max<std::int64_t>(count, 1)};
}

/// L below the diagonal and U on and above it; which of U's is the first zero on
/// it, from 1 on, or 0.
static int factorize(Square &a, std::vector<double> *pivots) {
  int info = 0;
  for (std::int64_t step = 0; step < a.n; ++step) {
    std::int64_t pivot = step;
    for (std::int64_t row = step + 1; pivots && row < a.n; ++row)
      if (std::abs(a.at(row, step)) > std::abs(a.at(pivot, step)))
        pivot = row;
    if (pivots)
      pivots->push_back(static_cast<double>(pivot + 1));
    a.swapRows(step, pivot);
    if (a.at(step, step) == 0) {
      info = info ? info : static_cast<int>(step + 1);
      continue;
    }
    for (std::int64_t row = step + 1; row < a.n; ++row) {
      double by = a.at(row, step) /= a.at(step, step);
      for (std::int64_t column = step + 1; column < a.n; ++column)
        a.at(row, column) -= by * a.at(step, column);
    }
  }
  return info;
}

/// x becomes the solution of A x = x, or of A^T x = x.
static void solve(Square &lu, const std::vector<double> &pivots, bool isTurned,
                  double *x) {
  auto interchange = [&](std::int64_t row) {
    if (!pivots.empty())
      std::swap(x[row], x[static_cast<std::int64_t>(
                              pivots[static_cast<std::size_t>(row)]) -
                          1]);
  };
  auto factor = [&](std::int64_t row, std::int64_t column) {
    return isTurned ? lu.at(column, row) : lu.at(row, column);
  };
  // L has ones on its diagonal; turned, U comes first.
  for (std::int64_t row = 0; row < lu.n && !isTurned; ++row)
    interchange(row);
  for (std::int64_t row = 0; row < lu.n; ++row) {
    for (std::int64_t column = 0; column < row; ++column)
      x[row] -= factor(row, column) * x[column];
    if (isTurned)
      x[row] /= lu.at(row, row);
  }
  for (std::int64_t row = lu.n; row-- > 0;) {
    for (std::int64_t column = row + 1; column < lu.n; ++column)
      x[row] -= factor(row, column) * x[column];
    if (!isTurned)
      x[row] /= lu.at(row, row);
  }
  for (std::int64_t row = lu.n; row-- > 0 && isTurned;)
    interchange(row);
}

static int getrf(const char *name, Library *library, Element element, int n,
                 void *const *a, int lda, int *pivots, int *infos, int count) {
  return call(name, library, [&](const Access &access) {
    require(count >= 0);
    std::vector<std::uint64_t> matrices = access.readPointers(a, count);
    for (int i = 0; i < count; ++i) {
      Matrix matrix = matrixOf("A", matrices[static_cast<std::size_t>(i)],
                               element, n, n, lda);
      Square square{n, access.read(matrix)};
      std::vector<double> rows;
      int info = factorize(square, pivots ? &rows : nullptr);
      access.write(matrix, square.values);
      if (pivots)
        access.write(integers("P", pivots, std::int64_t(i) * n, n), rows);
      access.write(integers("info", infos, i, 1), {double(info)});
    }
  });
}

/// Solve for every column of `b`; without `b`, for those of the identity.
static void solveAll(const Access &access, Element element, int n,
                     const void *const *a, int lda, const int *pivots,
                     bool isTurned, std::int64_t columns, bool isInverse,
                     void *const *b, int ldb, int count,
                     const std::function<void(int i, int info)> &tell) {
  require(count >= 0);
  std::vector<std::uint64_t> matrices = access.readPointers(a, count),
                             targets = access.readPointers(b, count);
  for (int i = 0; i < count; ++i) {
    auto at = static_cast<std::size_t>(i);
    Square lu{n, access.read(matrixOf("A", matrices[at], element, n, n, lda))};
    std::vector<double> rows;
    if (pivots)
      rows = access.read(integers("P", pivots, std::int64_t(i) * n, n));
    for (double row : rows)
      require(row >= 1 && row <= n);
    Matrix target = matrixOf("B", targets[at], element, n, columns, ldb);
    std::vector<double> values(static_cast<std::size_t>(n * columns));
    for (std::int64_t j = 0; isInverse && j < n; ++j)
      values[static_cast<std::size_t>(j * n + j)] = 1;
    if (!isInverse)
      values = access.read(target);
    int info = 0;
    for (std::int64_t row = 0; row < n && !info; ++row)
      info = lu.at(row, row) == 0 ? static_cast<int>(row + 1) : 0;
    for (std::int64_t j = 0; j < columns; ++j)
      solve(lu, rows, isTurned, values.data() + j * n);
    if (!info || !isInverse)
      access.write(target, values);
    tell(i, info);
  }
}

#define KILN_FACTORS(T, E)                                                     \
  KILN_CUDA int cublas##T##getrfBatched(Library *library, int n,               \
                                        void *const *a, int lda, int *pivots,  \
                                        int *infos, int count) {               \
    return getrf("cublas" #T "getrfBatched", library, E, n, a, lda, pivots,    \
                 infos, count);                                                \
  }                                                                            \
  KILN_CUDA int cublas##T##getriBatched(                                       \
      Library *library, int n, const void *const *a, int lda,                  \
      const int *pivots, void *const *c, int ldc, int *infos, int count) {     \
    return call("cublas" #T "getriBatched", library,                           \
                [&](const Access &access) {                                    \
                  solveAll(access, E, n, a, lda, pivots, false, n, true, c,    \
                           ldc, count, [&](int i, int info) {                  \
                             access.write(integers("info", infos, i, 1),       \
                                          {double(info)});                     \
                           });                                                 \
                });                                                            \
  }                                                                            \
  KILN_CUDA int cublas##T##getrsBatched(                                       \
      Library *library, int operation, int n, int columns,                     \
      const void *const *a, int lda, const int *pivots, void *const *b,        \
      int ldb, int *info, int count) {                                         \
    return call("cublas" #T "getrsBatched", library,                           \
                [&](const Access &access) {                                    \
                  require(info);                                               \
                  *info = 0; /* of the host: of arguments */                   \
                  solveAll(access, E, n, a, lda, pivots,                       \
                           isTransposed(operation), columns, false, b, ldb,    \
                           count, [](int, int) {});                            \
                });                                                            \
  }
KILN_FACTORS(S, Element::f32)
KILN_FACTORS(D, Element::f64)
