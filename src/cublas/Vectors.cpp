// Vectors: sums, scalings and products of vectors, and of a matrix and a vector.
#include "cublas/Call.h"
#include "cublas/OpenBlas.h"

#include <cmath>

using namespace kiln;
using namespace kiln::cublas;

/// A number of one vector.
template <typename Reduce>
static int reduce(const char *name, Library *library, Element element,
                  std::int64_t n, const void *x, std::int64_t step,
                  void *result, Element resultElement, const Reduce &of) {
  return call(name, library, [&](const Access &access) {
    std::vector<double> values;
    if (n > 0 && step > 0)
      values = access.read(vectorOf("x", x, element, n, step));
    writeScalar(access, *library, result, resultElement, of(values));
  });
}

static double norm(const std::vector<double> &values) {
  double largest = 0, sum = 0; // scaled, so that no square is too large
  for (double value : values)
    largest = std::max(largest, std::abs(value));
  if (largest == 0 || !std::isfinite(largest))
    return largest;
  for (double value : values)
    sum += value / largest * (value / largest);
  return largest * std::sqrt(sum);
}

static double sumOfSizes(const std::vector<double> &values) {
  double sum = 0;
  for (double value : values)
    sum += std::abs(value);
  return sum;
}

/// The first of the largest or smallest sizes, counted from 1; 0: none.
template <typename Before>
static double extreme(const std::vector<double> &values, Before before) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < values.size(); ++i)
    if (before(std::abs(values[i]), std::abs(values[best])))
      best = i;
  return values.empty() ? 0 : static_cast<double>(best + 1);
}

static int dot(const char *name, Library *library, Element element,
               std::int64_t n, const void *x, std::int64_t stepX, const void *y,
               std::int64_t stepY, void *result, Element resultElement) {
  return call(name, library, [&](const Access &access) {
    double sum = 0;
    if (n > 0) {
      auto left = readVector(access, vectorOf("x", x, element, n, stepX), stepX);
      auto right =
          readVector(access, vectorOf("y", y, element, n, stepY), stepY);
      for (std::size_t i = 0; i < left.size(); ++i)
        sum += left[i] * right[i];
    }
    writeScalar(access, *library, result, resultElement, sum);
  });
}

/// y = f(x, y), element by element.
template <typename Combine>
static int combine(const char *name, Library *library, Element element,
                   std::int64_t n, const void *x, std::int64_t stepX, void *y,
                   std::int64_t stepY, bool isYRead, const Combine &of) {
  return call(name, library, [&](const Access &access) {
    if (n <= 0)
      return;
    Matrix target = vectorOf("y", y, element, n, stepY);
    auto left = readVector(access, vectorOf("x", x, element, n, stepX), stepX);
    std::vector<double> right(left.size());
    if (isYRead)
      right = readVector(access, target, stepY);
    auto scaled = of(access);
    for (std::size_t i = 0; i < left.size(); ++i)
      right[i] = scaled(left[i], right[i]);
    writeVector(access, target, stepY, std::move(right));
  });
}

static int scale(const char *name, Library *library, Element element,
                 std::int64_t n, const void *alpha, void *x,
                 std::int64_t step) {
  return call(name, library, [&](const Access &access) {
    double by = readScalar(access, *library, alpha, element);
    if (n <= 0 || step <= 0)
      return;
    Matrix vector = vectorOf("x", x, element, n, step);
    std::vector<double> values = access.read(vector);
    for (double &value : values)
      value *= by;
    access.write(vector, values);
  });
}

static int swap(const char *name, Library *library, Element element,
                std::int64_t n, void *x, std::int64_t stepX, void *y,
                std::int64_t stepY) {
  return call(name, library, [&](const Access &access) {
    if (n <= 0)
      return;
    Matrix one = vectorOf("x", x, element, n, stepX),
           other = vectorOf("y", y, element, n, stepY);
    auto left = readVector(access, one, stepX);
    auto right = readVector(access, other, stepY);
    writeVector(access, one, stepX, std::move(right));
    writeVector(access, other, stepY, std::move(left));
  });
}

/// y = alpha op(A) x + beta y
static int gemv(const char *name, Library *library, int operation,
                Element element, std::int64_t m, std::int64_t n,
                const void *alpha, const void *a, std::int64_t lda,
                const void *x, std::int64_t stepX, const void *beta, void *y,
                std::int64_t stepY) {
  return call(name, library, [&](const Access &access) {
    bool isT = isTransposed(operation);
    require(m >= 0 && n >= 0 && lda >= std::max<std::int64_t>(1, m) && stepX &&
            stepY);
    std::int64_t rows = isT ? n : m, columns = isT ? m : n;
    double by = readScalar(access, *library, alpha, element),
           keep = readScalar(access, *library, beta, element);
    if (rows == 0)
      return;
    Matrix target = vectorOf("y", y, element, rows, stepY);
    std::vector<double> sums(static_cast<std::size_t>(rows));
    if (by != 0 && columns > 0) {
      auto matrix = access.read({"A", reinterpret_cast<std::uint64_t>(a),
                                 element, m, n, lda});
      auto vector = readVector(
          access, vectorOf("x", x, element, columns, stepX), stepX);
      multiply({rows, 1, columns, matrix.data(), m, isT, vector.data(), columns,
                false, sums.data()});
    }
    std::vector<double> before(sums.size());
    if (keep != 0)
      before = readVector(access, target, stepY);
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] = by * sums[i] + (keep == 0 ? 0 : keep * before[i]);
    writeVector(access, target, stepY, std::move(sums));
  });
}

/// A += alpha x y^T
static int ger(const char *name, Library *library, Element element,
               std::int64_t m, std::int64_t n, const void *alpha,
               const void *x, std::int64_t stepX, const void *y,
               std::int64_t stepY, void *a, std::int64_t lda) {
  return call(name, library, [&](const Access &access) {
    require(m >= 0 && n >= 0 && lda >= std::max<std::int64_t>(1, m) && stepX &&
            stepY);
    double by = readScalar(access, *library, alpha, element);
    if (m == 0 || n == 0 || by == 0)
      return;
    Matrix target{"A", reinterpret_cast<std::uint64_t>(a), element, m, n, lda};
    auto values = access.read(target);
    auto left = readVector(access, vectorOf("x", x, element, m, stepX), stepX);
    auto right = readVector(access, vectorOf("y", y, element, n, stepY), stepY);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] += by * left[i % left.size()] * right[i / left.size()];
    access.write(target, values);
  });
}

#define KILN_VECTORS(T, t, E, I, WIDE)                                         \
  KILN_CUDA int cublas##T##nrm2_v2##WIDE(Library *library, I n,                \
                                         const void *x, I step,                \
                                         void *result) {                       \
    return reduce("cublas" #T "nrm2", library, E, n, x, step, result, E,       \
                  norm);                                                       \
  }                                                                            \
  KILN_CUDA int cublas##T##asum_v2##WIDE(Library *library, I n,                \
                                         const void *x, I step,                \
                                         void *result) {                       \
    return reduce("cublas" #T "asum", library, E, n, x, step, result, E,       \
                  sumOfSizes);                                                 \
  }                                                                            \
  KILN_CUDA int cublas##T##dot_v2##WIDE(Library *library, I n, const void *x,  \
                                        I stepX, const void *y, I stepY,       \
                                        void *result) {                        \
    return dot("cublas" #T "dot", library, E, n, x, stepX, y, stepY, result,   \
               E);                                                             \
  }                                                                            \
  KILN_CUDA int cublas##T##axpy_v2##WIDE(Library *library, I n,                \
                                         const void *alpha, const void *x,     \
                                         I stepX, void *y, I stepY) {          \
    return combine("cublas" #T "axpy", library, E, n, x, stepX, y, stepY,      \
                   true, [&](const Access &access) {                           \
                     double by = readScalar(access, *library, alpha, E);       \
                     return [by](double one, double other) {                   \
                       return by * one + other;                                \
                     };                                                        \
                   });                                                         \
  }                                                                            \
  KILN_CUDA int cublas##T##copy_v2##WIDE(Library *library, I n,                \
                                         const void *x, I stepX, void *y,      \
                                         I stepY) {                            \
    return combine("cublas" #T "copy", library, E, n, x, stepX, y, stepY,      \
                   false, [&](const Access &) {                                \
                     return [](double one, double) { return one; };            \
                   });                                                         \
  }                                                                            \
  KILN_CUDA int cublas##T##swap_v2##WIDE(Library *library, I n, void *x,       \
                                         I stepX, void *y, I stepY) {          \
    return swap("cublas" #T "swap", library, E, n, x, stepX, y, stepY);        \
  }                                                                            \
  KILN_CUDA int cublas##T##scal_v2##WIDE(Library *library, I n,                \
                                         const void *alpha, void *x, I step) { \
    return scale("cublas" #T "scal", library, E, n, alpha, x, step);           \
  }                                                                            \
  KILN_CUDA int cublas##T##gemv_v2##WIDE(                                      \
      Library *library, int operation, I m, I n, const void *alpha,            \
      const void *a, I lda, const void *x, I stepX, const void *beta, void *y, \
      I stepY) {                                                               \
    return gemv("cublas" #T "gemv", library, operation, E, m, n, alpha, a,     \
                lda, x, stepX, beta, y, stepY);                                \
  }                                                                            \
  KILN_CUDA int cublas##T##ger_v2##WIDE(                                       \
      Library *library, I m, I n, const void *alpha, const void *x, I stepX,   \
      const void *y, I stepY, void *a, I lda) {                                \
    return ger("cublas" #T "ger", library, E, m, n, alpha, x, stepX, y, stepY, \
               a, lda);                                                        \
  }
KILN_VECTORS(S, s, Element::f32, int, )
KILN_VECTORS(D, d, Element::f64, int, )
KILN_VECTORS(S, s, Element::f32, std::int64_t, _64)
KILN_VECTORS(D, d, Element::f64, std::int64_t, _64)

#define KILN_EXTREMES(t, E)                                                    \
  KILN_CUDA int cublasI##t##amax_v2(Library *library, int n, const void *x,    \
                                    int step, int *result) {                   \
    return reduce("cublasI" #t "amax", library, E, n, x, step, result,         \
                  Element::i32, [](const std::vector<double> &values) {        \
                    return extreme(values, std::greater<>());                  \
                  });                                                          \
  }                                                                            \
  KILN_CUDA int cublasI##t##amin_v2(Library *library, int n, const void *x,    \
                                    int step, int *result) {                   \
    return reduce("cublasI" #t "amin", library, E, n, x, step, result,         \
                  Element::i32, [](const std::vector<double> &values) {        \
                    return extreme(values, std::less<>());                     \
                  });                                                          \
  }
KILN_EXTREMES(s, Element::f32)
KILN_EXTREMES(d, Element::f64)
