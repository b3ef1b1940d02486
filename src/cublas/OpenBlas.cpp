// OpenBlas: found at run time; without it a plain loop, which is slower.
#include "cublas/OpenBlas.h"

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <limits>

namespace kiln::cublas {

using Gemm = void(int order, int transA, int transB, int m, int n, int k,
                  double alpha, const double *a, int lda, const double *b,
                  int ldb, double beta, double *c, int ldc);

/// Null: it is not installed.
static Gemm *openBlas() {
  static Gemm *gemm = []() -> Gemm * {
    // Threads of its own would look like threads of the program.
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    void *library = nullptr;
    for (const char *name : {"libopenblas.so.0", "libopenblas.so"})
      if (!library)
        library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    return library ? reinterpret_cast<Gemm *>(dlsym(library, "cblas_dgemm"))
                   : nullptr;
  }();
  return gemm;
}

static void multiplyPlainly(const Product &p) {
  std::fill(p.c, p.c + p.m * p.n, 0.0);
  for (std::int64_t j = 0; j < p.n; ++j)
    for (std::int64_t l = 0; l < p.k; ++l) {
      double b = p.isBTransposed ? p.b[l * p.ldb + j] : p.b[j * p.ldb + l];
      for (std::int64_t i = 0; i < p.m; ++i)
        p.c[j * p.m + i] +=
            b * (p.isATransposed ? p.a[i * p.lda + l] : p.a[l * p.lda + i]);
    }
}

void multiply(const Product &p) {
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  constexpr int kColumnMajor = 102, kPlain = 111, kTransposed = 112;
  if (p.m == 0 || p.n == 0)
    return;
  bool isSmall = std::max({p.m, p.n, p.k, p.lda, p.ldb}) <= kMost;
  Gemm *gemm = p.k > 0 && isSmall ? openBlas() : nullptr;
  if (!gemm)
    return multiplyPlainly(p);
  auto whole = [](std::int64_t value) { return static_cast<int>(value); };
  gemm(kColumnMajor, p.isATransposed ? kTransposed : kPlain,
       p.isBTransposed ? kTransposed : kPlain, whole(p.m), whole(p.n),
       whole(p.k), 1, p.a, whole(p.lda), p.b, whole(p.ldb), 0, p.c, whole(p.m));
}

} // namespace kiln::cublas
