// Matrices: sums of matrices, symmetric products, triangular systems.
#include "cublas/Call.h"
#include "cublas/OpenBlas.h"

using namespace kiln;
using namespace kiln::cublas;

static Matrix matrixOf(const char *name, const void *at, Element element,
                       std::int64_t rows, std::int64_t columns,
                       std::int64_t ld) {
  require(rows >= 0 && columns >= 0 && ld >= std::max<std::int64_t>(1, rows));
  return {name,    reinterpret_cast<std::uint64_t>(at), element, rows,
          columns, ld};
}

/// C = alpha op(A) + beta op(B)
static int geam(const char *name, Library *library, Element element, int ta,
                int tb, std::int64_t m, std::int64_t n, const void *alpha,
                const void *a, std::int64_t lda, const void *beta,
                const void *b, std::int64_t ldb, void *c, std::int64_t ldc) {
  return call(name, library, [&](const Access &access) {
    Matrix target = matrixOf("C", c, element, m, n, ldc);
    std::vector<double> sums(static_cast<std::size_t>(m * n));
    auto add = [&](const char *what, const void *at, std::int64_t ld,
                   int operation, const void *factor) {
      bool isT = isTransposed(operation);
      double by = readScalar(access, *library, factor, element);
      if (by == 0)
        return;
      Matrix matrix =
          matrixOf(what, at, element, isT ? n : m, isT ? m : n, ld);
      std::vector<double> values = access.read(matrix);
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < m; ++i)
          sums[static_cast<std::size_t>(j * m + i)] +=
              by * values[static_cast<std::size_t>(isT ? i * n + j
                                                       : j * m + i)];
    };
    add("A", a, lda, ta, alpha);
    add("B", b, ldb, tb, beta);
    access.write(target, sums);
  });
}

/// The triangle of a matrix, column by column: fill mode 0 is the lower one.
template <typename Body>
static void forTriangle(int fill, std::int64_t n, const Body &body) {
  require(fill == 0 || fill == 1);
  for (std::int64_t j = 0; j < n; ++j)
    body(j, fill == 0 ? j : 0, fill == 0 ? n - j : j + 1);
}

/// C = alpha op(A) op(A)^T + beta C, one triangle of it.
static int syrk(const char *name, Library *library, Element element, int fill,
                int operation, std::int64_t n, std::int64_t k,
                const void *alpha, const void *a, std::int64_t lda,
                const void *beta, void *c, std::int64_t ldc) {
  return call(name, library, [&](const Access &access) {
    bool isT = isTransposed(operation);
    Matrix from = matrixOf("A", a, element, isT ? k : n, isT ? n : k, lda),
           target = matrixOf("C", c, element, n, n, ldc);
    double by = readScalar(access, *library, alpha, element),
           keep = readScalar(access, *library, beta, element);
    std::vector<double> product(static_cast<std::size_t>(n * n));
    if (by != 0 && k > 0 && n > 0) {
      std::vector<double> values = access.read(from);
      multiply({n, n, k, values.data(), from.rows, isT, values.data(),
                from.rows, !isT, product.data()});
    }
    forTriangle(fill, n, [&](std::int64_t j, std::int64_t first,
                             std::int64_t count) {
      Matrix part{"C",   target.column(j) + static_cast<std::uint64_t>(first) *
                                                bytesOf(element),
                  element, count, 1, count};
      std::vector<double> before(static_cast<std::size_t>(count));
      if (keep != 0)
        before = access.read(part);
      for (std::int64_t i = 0; i < count; ++i) {
        auto at = static_cast<std::size_t>(i);
        before[at] = by * product[static_cast<std::size_t>(j * n + first + i)] +
                     (keep == 0 ? 0 : keep * before[at]);
      }
      access.write(part, before);
    });
  });
}

/// op(A) X = alpha B, or X op(A) = alpha B; B becomes X.
static int trsm(const char *name, Library *library, Element element, int side,
                int fill, int operation, int diagonal, std::int64_t m,
                std::int64_t n, const void *alpha, const void *a,
                std::int64_t lda, void *b, std::int64_t ldb) {
  return call(name, library, [&](const Access &access) {
    require((side == 0 || side == 1) && (diagonal == 0 || diagonal == 1));
    bool isLeft = side == 0, isUnit = diagonal == 1,
         isT = isTransposed(operation);
    std::int64_t size = isLeft ? m : n;
    Matrix triangle = matrixOf("A", a, element, size, size, lda),
           target = matrixOf("B", b, element, m, n, ldb);
    double by = readScalar(access, *library, alpha, element);
    if (m == 0 || n == 0)
      return;
    std::vector<double> factors(static_cast<std::size_t>(size * size));
    forTriangle(fill, size, [&](std::int64_t j, std::int64_t first,
                                std::int64_t count) {
      Matrix part{"A",   triangle.column(j) +
                           static_cast<std::uint64_t>(first) * bytesOf(element),
                  element, count, 1, count};
      std::vector<double> values = access.read(part);
      std::copy(values.begin(), values.end(),
                factors.begin() + j * size + first);
    });
    std::vector<double> values = access.read(target);
    // Both sides and forms are one: rows of op(A) or of its transpose, from
    // that end where there is one unknown.
    bool isTurned = isLeft == isT;
    auto factor = [&](std::int64_t row, std::int64_t column) {
      return factors[static_cast<std::size_t>(
          isTurned ? row * size + column : column * size + row)];
    };
    bool isForward = (fill == 0) != isTurned;
    auto at = [&](std::int64_t unknown, std::int64_t which) -> double & {
      return values[static_cast<std::size_t>(
          isLeft ? which * m + unknown : unknown * m + which)];
    };
    for (std::int64_t which = 0; which < (isLeft ? n : m); ++which)
      for (std::int64_t step = 0; step < size; ++step) {
        std::int64_t row = isForward ? step : size - 1 - step;
        double sum = by * at(row, which);
        for (std::int64_t done = 0; done < step; ++done) {
          std::int64_t column = isForward ? done : size - 1 - done;
          sum -= factor(row, column) * at(column, which);
        }
        at(row, which) = isUnit ? sum : sum / factor(row, row);
      }
    access.write(target, values);
  });
}

#define KILN_MATRICES(T, E)                                                    \
  KILN_CUDA int cublas##T##geam(Library *library, int ta, int tb, int m,       \
                                int n, const void *alpha, const void *a,       \
                                int lda, const void *beta, const void *b,      \
                                int ldb, void *c, int ldc) {                   \
    return geam("cublas" #T "geam", library, E, ta, tb, m, n, alpha, a, lda,   \
                beta, b, ldb, c, ldc);                                         \
  }                                                                            \
  KILN_CUDA int cublas##T##syrk_v2(                                            \
      Library *library, int fill, int operation, int n, int k,                 \
      const void *alpha, const void *a, int lda, const void *beta, void *c,    \
      int ldc) {                                                               \
    return syrk("cublas" #T "syrk", library, E, fill, operation, n, k, alpha,  \
                a, lda, beta, c, ldc);                                         \
  }                                                                            \
  KILN_CUDA int cublas##T##trsm_v2(Library *library, int side, int fill,       \
                                   int operation, int diagonal, int m, int n,  \
                                   const void *alpha, const void *a, int lda,  \
                                   void *b, int ldb) {                         \
    return trsm("cublas" #T "trsm", library, E, side, fill, operation,         \
                diagonal, m, n, alpha, a, lda, b, ldb);                        \
  }
KILN_MATRICES(S, Element::f32)
KILN_MATRICES(D, Element::f64)
