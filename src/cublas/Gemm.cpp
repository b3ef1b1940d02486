// Gemm: C = alpha op(A) op(B) + beta C, of all types, one or many of them.
#include "cublas/Call.h"
#include "cublas/OpenBlas.h"

using namespace kiln;
using namespace kiln::cublas;

namespace {

/// One product as programs ask for it.
struct Gemm {
  int operationA, operationB;
  std::int64_t m, n, k;
  const void *alpha, *beta;
  Element scalar, a, b, c;
  std::int64_t lda, ldb, ldc;

  Matrix matrixA(std::uint64_t address) const {
    bool isT = isTransposed(operationA);
    return {"A", address, a, isT ? k : m, isT ? m : k, lda};
  }
  Matrix matrixB(std::uint64_t address) const {
    bool isT = isTransposed(operationB);
    return {"B", address, b, isT ? n : k, isT ? k : n, ldb};
  }
  Matrix matrixC(std::uint64_t address) const {
    return {"C", address, c, m, n, ldc};
  }
};

/// Where the matrices of one product lie.
struct Places {
  std::uint64_t a, b, c;
};

} // namespace

static void check(const Gemm &gemm) {
  require(gemm.m >= 0 && gemm.n >= 0 && gemm.k >= 0);
  auto isWide = [](const Matrix &matrix) {
    return matrix.ld >= std::max<std::int64_t>(1, matrix.rows);
  };
  require(isWide(gemm.matrixA(0)) && isWide(gemm.matrixB(0)) &&
          isWide(gemm.matrixC(0)));
}

static void run(const Access &access, const Gemm &gemm, const Places &places,
                double alpha, double beta) {
  if (gemm.m == 0 || gemm.n == 0)
    return;
  Matrix a = gemm.matrixA(places.a), b = gemm.matrixB(places.b),
         c = gemm.matrixC(places.c);
  std::vector<double> product(static_cast<std::size_t>(gemm.m * gemm.n));
  // As cuBLAS: what has the factor 0 is not read.
  if (alpha != 0 && gemm.k > 0) {
    std::vector<double> left = access.read(a), right = access.read(b);
    multiply({gemm.m, gemm.n, gemm.k, left.data(), a.rows,
              isTransposed(gemm.operationA), right.data(), b.rows,
              isTransposed(gemm.operationB), product.data()});
  }
  std::vector<double> before;
  if (beta != 0)
    before = access.read(c);
  for (std::size_t i = 0; i < product.size(); ++i)
    product[i] = (alpha == 0 ? 0 : alpha * product[i]) +
                 (beta == 0 ? 0 : beta * before[i]);
  access.write(c, product);
}

/// `placesOf` gives the matrices of the product of a number.
template <typename PlacesOf>
static int runAll(const char *name, Library *library, const Gemm &gemm,
                  std::int64_t count, const PlacesOf &placesOf) {
  return call(name, library, [&](const Access &access) {
    check(gemm);
    require(count >= 0);
    double alpha = readScalar(access, *library, gemm.alpha, gemm.scalar);
    double beta = readScalar(access, *library, gemm.beta, gemm.scalar);
    auto places = placesOf(access);
    for (std::int64_t i = 0; i < count; ++i)
      run(access, gemm, places(i), alpha, beta);
  });
}

static std::uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

static int strided(const char *name, Library *library, const Gemm &gemm,
                   const void *a, std::int64_t strideA, const void *b,
                   std::int64_t strideB, void *c, std::int64_t strideC,
                   std::int64_t count) {
  return runAll(name, library, gemm, count, [&](const Access &) {
    return [&](std::int64_t i) {
      auto at = [&](const void *base, std::int64_t stride, Element element) {
        return addressOf(base) +
               static_cast<std::uint64_t>(i * stride) * bytesOf(element);
      };
      return Places{at(a, strideA, gemm.a), at(b, strideB, gemm.b),
                    at(c, strideC, gemm.c)};
    };
  });
}

static int batched(const char *name, Library *library, const Gemm &gemm,
                   const void *const *a, const void *const *b, void *const *c,
                   std::int64_t count) {
  return runAll(name, library, gemm, count, [&](const Access &access) {
    require(count >= 0);
    return [as = access.readPointers(a, count),
            bs = access.readPointers(b, count),
            cs = access.readPointers(c, count)](std::int64_t i) {
      auto at = static_cast<std::size_t>(i);
      return Places{as[at], bs[at], cs[at]};
    };
  });
}

/// The type that alpha and beta have, by cublasComputeType_t, or by the
/// cudaDataType of before CUDA 11. Throws BadArgument.
static Element scalarOf(int compute, Element c) {
  switch (compute) {
  case 64: // 16F
  case 65:
    return Element::f16;
  case 70: // 64F
  case 71:
    return Element::f64;
  case 72: // 32I, and what it is scaled to
  case 73:
    return c == Element::i32 ? Element::i32 : Element::f32;
  default:
    require(compute >= 68 && compute <= 79);
    return Element::f32;
  }
}

#define KILN_GEMM_SHAPE(I)                                                     \
  Library *library, int ta, int tb, I m, I n, I k, const void *alpha
#define KILN_GEMM_OF(E, SCALAR)                                                \
  { ta, tb, m, n, k, alpha, beta, SCALAR, E, E, E, lda, ldb, ldc }

// cublasSgemm_v2 and its like, with 32 and 64 bits.
#define KILN_GEMMS(T, SUFFIX, E, I, WIDE)                                      \
  KILN_CUDA int cublas##T##gemm##SUFFIX(                                       \
      KILN_GEMM_SHAPE(I), const void *a, I lda, const void *b, I ldb,          \
      const void *beta, void *c, I ldc) {                                      \
    return strided("cublas" #T "gemm", library, KILN_GEMM_OF(E, E), a, 0, b,   \
                   0, c, 0, 1);                                                \
  }                                                                            \
  KILN_CUDA int cublas##T##gemmStridedBatched##WIDE(                           \
      KILN_GEMM_SHAPE(I), const void *a, I lda, long long strideA,             \
      const void *b, I ldb, long long strideB, const void *beta, void *c,      \
      I ldc, long long strideC, I count) {                                     \
    return strided("cublas" #T "gemmStridedBatched", library,                  \
                   KILN_GEMM_OF(E, E), a, strideA, b, strideB, c, strideC,     \
                   count);                                                     \
  }                                                                            \
  KILN_CUDA int cublas##T##gemmBatched##WIDE(                                  \
      KILN_GEMM_SHAPE(I), const void *const *a, I lda, const void *const *b,   \
      I ldb, const void *beta, void *const *c, I ldc, I count) {               \
    return batched("cublas" #T "gemmBatched", library, KILN_GEMM_OF(E, E), a,  \
                   b, c, count);                                               \
  }
KILN_GEMMS(S, _v2, Element::f32, int, )
KILN_GEMMS(D, _v2, Element::f64, int, )
KILN_GEMMS(H, , Element::f16, int, )
KILN_GEMMS(S, _v2_64, Element::f32, std::int64_t, _64)
KILN_GEMMS(D, _v2_64, Element::f64, std::int64_t, _64)
KILN_GEMMS(H, _64, Element::f16, std::int64_t, _64)

/// With a type for each matrix.
static int typed(const char *name, const Gemm &shape, int typeA, int typeB,
                 int typeC, int compute, const auto &work) {
  try {
    Gemm gemm = shape;
    gemm.a = elementOf(typeA);
    gemm.b = elementOf(typeB);
    gemm.c = elementOf(typeC);
    gemm.scalar = scalarOf(compute, gemm.c);
    return work(gemm);
  } catch (const BadArgument &) {
    return refuse(std::string(name) + " with these types");
  }
}

#define KILN_GEMM_EX(I, WIDE)                                                  \
  KILN_CUDA int cublasGemmEx##WIDE(                                            \
      KILN_GEMM_SHAPE(I), const void *a, int typeA, I lda, const void *b,      \
      int typeB, I ldb, const void *beta, void *c, int typeC, I ldc,           \
      int compute, int) {                                                      \
    return typed("cublasGemmEx", KILN_GEMM_OF({}, {}), typeA, typeB, typeC,    \
                 compute, [&](const Gemm &gemm) {                              \
                   return strided("cublasGemmEx", library, gemm, a, 0, b, 0,   \
                                  c, 0, 1);                                    \
                 });                                                           \
  }                                                                            \
  KILN_CUDA int cublasSgemmEx##WIDE(                                           \
      KILN_GEMM_SHAPE(I), const void *a, int typeA, I lda, const void *b,      \
      int typeB, I ldb, const void *beta, void *c, int typeC, I ldc) {         \
    return typed("cublasSgemmEx", KILN_GEMM_OF({}, {}), typeA, typeB, typeC,   \
                 68, [&](const Gemm &gemm) {                                   \
                   return strided("cublasSgemmEx", library, gemm, a, 0, b, 0,  \
                                  c, 0, 1);                                    \
                 });                                                           \
  }                                                                            \
  KILN_CUDA int cublasGemmStridedBatchedEx##WIDE(                              \
      KILN_GEMM_SHAPE(I), const void *a, int typeA, I lda, long long strideA,  \
      const void *b, int typeB, I ldb, long long strideB, const void *beta,    \
      void *c, int typeC, I ldc, long long strideC, I count, int compute,      \
      int) {                                                                   \
    return typed("cublasGemmStridedBatchedEx", KILN_GEMM_OF({}, {}), typeA,    \
                 typeB, typeC, compute, [&](const Gemm &gemm) {                \
                   return strided("cublasGemmStridedBatchedEx", library, gemm, \
                                  a, strideA, b, strideB, c, strideC, count);  \
                 });                                                           \
  }                                                                            \
  KILN_CUDA int cublasGemmBatchedEx##WIDE(                                     \
      KILN_GEMM_SHAPE(I), const void *const *a, int typeA, I lda,              \
      const void *const *b, int typeB, I ldb, const void *beta,                \
      void *const *c, int typeC, I ldc, I count, int compute, int) {           \
    return typed("cublasGemmBatchedEx", KILN_GEMM_OF({}, {}), typeA, typeB,    \
                 typeC, compute, [&](const Gemm &gemm) {                       \
                   return batched("cublasGemmBatchedEx", library, gemm, a, b,  \
                                  c, count);                                   \
                 });                                                           \
  }
KILN_GEMM_EX(int, )
KILN_GEMM_EX(std::int64_t, _64)
