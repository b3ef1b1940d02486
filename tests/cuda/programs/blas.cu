// blas: cuBLAS on the host, beside plain loops, and what its accesses show.
// status: 2
// nvcc: -lcublas
// stderr: error out-of-bounds: cublasSgemm reads .* bytes of B \(5 x 3 of f32, leading dimension 5, .*past the end of buffer [0-9]+ \(56 bytes\)
// stderr: error uninitialized-store: cublasDdot reads 24 bytes of y .*no thread wrote byte 8 of them
// stderr: 1 launch, 1 checked: 2 errors, 0 warnings; [0-9]+ calls of cuBLAS ran on the host, where their memory accesses were checked and nothing else
#include "check.h"

#include <cmath>
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

#define BLAS(call)                                                             \
  do {                                                                         \
    cublasStatus_t status = call;                                              \
    if (status != CUBLAS_STATUS_SUCCESS) {                                     \
      std::printf("%s:%d: %s is %s\n", __FILE__, __LINE__, #call,              \
                  cublasGetStatusString(status));                              \
      std::exit(1);                                                            \
    }                                                                          \
  } while (false)

template <typename T> struct Array {
  std::vector<T> host;
  T *device;
  explicit Array(std::vector<T> values) : host(std::move(values)) {
    OK(cudaMalloc(&device, host.size() * sizeof(T)));
    OK(cudaMemcpy(device, host.data(), host.size() * sizeof(T),
                  cudaMemcpyHostToDevice));
  }
  std::vector<T> &back() {
    OK(cudaMemcpy(host.data(), device, host.size() * sizeof(T),
                  cudaMemcpyDeviceToHost));
    return host;
  }
};

template <typename T> static std::vector<T> numbers(int count, int seed) {
  std::vector<T> values;
  for (int i = 0; i < count; ++i)
    values.push_back(T(float((i * 7 + seed * 13) % 11 - 5)));
  return values;
}

__global__ void triple(float *x, int n) {
  if (threadIdx.x < n)
    x[threadIdx.x] *= 3;
}

static bool is_near(double one, double other) {
  return std::abs(one - other) <= 1e-5 * (1 + std::abs(other));
}

int main() {
  cublasHandle_t blas;
  BLAS(cublasCreate(&blas));
  const int m = 4, n = 3, k = 5;
  const float two = 2, half = 0.5f;
  // Every form of operands, with gaps between the columns.
  for (int form = 0; form < 4; ++form) {
    bool ta = form & 1, tb = form & 2;
    int lda = (ta ? k : m) + 1, ldb = (tb ? n : k) + 2, ldc = m + 1;
    Array<float> a(numbers<float>(lda * (ta ? m : k), 1)),
        b(numbers<float>(ldb * (tb ? k : n), 2)),
        c(numbers<float>(ldc * n, 3));
    std::vector<float> wanted = c.host;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i < m; ++i) {
        float sum = 0;
        for (int l = 0; l < k; ++l)
          sum += a.host[ta ? i * lda + l : l * lda + i] *
                 b.host[tb ? l * ldb + j : j * ldb + l];
        wanted[j * ldc + i] = 2 * sum + 0.5f * wanted[j * ldc + i];
      }
    BLAS(cublasSgemm(blas, ta ? CUBLAS_OP_T : CUBLAS_OP_N,
                     tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k, &two, a.device,
                     lda, b.device, ldb, &half, c.device, ldc));
    CHECK(c.back() == wanted);
  }
  // Behind a kernel in its stream; of halves, in batches.
  cudaStream_t stream;
  OK(cudaStreamCreate(&stream));
  BLAS(cublasSetStream(blas, stream));
  Array<float> x({1, -2, 3, -4});
  triple<<<1, 32, 0, stream>>>(x.device, 4);
  float sum = 0, norm = 0;
  int largest = 0;
  BLAS(cublasSasum(blas, 4, x.device, 1, &sum));
  BLAS(cublasSnrm2(blas, 4, x.device, 1, &norm));
  BLAS(cublasIsamax(blas, 4, x.device, 1, &largest));
  CHECK(sum == 30 && is_near(norm, std::sqrt(270.0)) && largest == 4);
  Array<__half> ah(numbers<__half>(3 * 4, 1)), bh(numbers<__half>(3 * 4, 2)),
      ch(numbers<__half>(3 * 4, 3));
  const float one = 1, zero = 0;
  BLAS(cublasGemmStridedBatchedEx(
      blas, CUBLAS_OP_N, CUBLAS_OP_N, 2, 2, 2, &one, ah.device, CUDA_R_16F, 2, 4,
      bh.device, CUDA_R_16F, 2, 4, &zero, ch.device, CUDA_R_16F, 2, 4, 3,
      CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  ch.back();
  for (int i = 0; i < 3; ++i)
    CHECK(float(ch.host[4 * i + 1]) ==
          float(ah.host[4 * i + 1]) * float(bh.host[4 * i]) +
              float(ah.host[4 * i + 3]) * float(bh.host[4 * i + 1]));
  Array<__nv_bfloat16> ab(numbers<__nv_bfloat16>(4, 1)),
      bb(numbers<__nv_bfloat16>(4, 2));
  Array<float> cf(std::vector<float>(4));
  BLAS(cublasGemmEx(blas, CUBLAS_OP_T, CUBLAS_OP_N, 2, 2, 2, &one, ab.device,
                    CUDA_R_16BF, 2, bb.device, CUDA_R_16BF, 2, &zero, cf.device,
                    CUDA_R_32F, 2, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT));
  CHECK(cf.back()[2] == float(ab.host[0]) * float(bb.host[2]) +
                            float(ab.host[1]) * float(bb.host[3]));
  Array<float *> as({x.device, x.device}), cs({cf.device, cf.device + 1});
  BLAS(cublasSgemmBatched(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, &one,
                          as.device, 1, as.device, 1, &zero, cs.device, 1, 2));
  CHECK(cf.back()[1] == 9);
  // Triangles: solve, and multiply again.
  for (int form = 0; form < 16; ++form) {
    auto side = form & 1 ? CUBLAS_SIDE_RIGHT : CUBLAS_SIDE_LEFT;
    auto fill = form & 2 ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    auto op = form & 4 ? CUBLAS_OP_T : CUBLAS_OP_N;
    auto diagonal = form & 8 ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const int size = 3;
    std::vector<double> triangle(9), full(9);
    for (int j = 0; j < size; ++j)
      for (int i = 0; i < size; ++i) {
        bool is_in = form & 2 ? i <= j : i >= j;
        triangle[j * 3 + i] = i == j ? 4 + i : 1 + i + 2 * j;
        full[j * 3 + i] = !is_in ? 0 : i == j && form & 8 ? 1 : triangle[j * 3 + i];
      }
    Array<double> a(triangle), f(full), b(numbers<double>(9, form)),
        product(std::vector<double>(9));
    const double one = 1, zero = 0, three = 3;
    BLAS(cublasDtrsm(blas, side, fill, op, diagonal, 3, 3, &three, a.device, 3,
                     b.device, 3));
    std::vector<double> before = b.host;
    if (form & 1)
      BLAS(cublasDgemm(blas, CUBLAS_OP_N, op, 3, 3, 3, &one, b.device, 3,
                       f.device, 3, &zero, product.device, 3));
    else
      BLAS(cublasDgemm(blas, op, CUBLAS_OP_N, 3, 3, 3, &one, f.device, 3,
                       b.device, 3, &zero, product.device, 3));
    product.back();
    for (int i = 0; i < 9; ++i)
      CHECK(is_near(product.host[i], 3 * before[i]));
  }
  // Vectors, one backwards; scalars of the device; sums of matrices.
  Array<double> u(numbers<double>(6, 1)), v(numbers<double>(6, 2)),
      result(std::vector<double>(1));
  BLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_DEVICE));
  BLAS(cublasDdot(blas, 3, u.device, 2, v.device, -1, result.device));
  CHECK(result.back()[0] == u.host[0] * v.host[2] + u.host[2] * v.host[1] +
                                u.host[4] * v.host[0]);
  BLAS(cublasSetPointerMode(blas, CUBLAS_POINTER_MODE_HOST));
  double by = 2, keep = -1;
  std::vector<double> wanted = v.host;
  for (int i = 0; i < 6; ++i)
    wanted[i] += 2 * u.host[i];
  BLAS(cublasDaxpy(blas, 6, &by, u.device, 1, v.device, 1));
  CHECK(v.back() == wanted);
  BLAS(cublasDgemv(blas, CUBLAS_OP_T, 3, 2, &by, u.device, 3, v.device, 1, &keep,
                   v.device + 4, 1));
  CHECK(v.back()[5] == 2 * (u.host[3] * wanted[0] + u.host[4] * wanted[1] +
                            u.host[5] * wanted[2]) - wanted[5]);
  BLAS(cublasDgeam(blas, CUBLAS_OP_T, CUBLAS_OP_N, 2, 3, &by, u.device, 3, &keep,
                   u.device, 2, v.device, 2));
  CHECK(v.back()[1] == 2 * u.host[3] - u.host[1]);
  Array<double> w(std::vector<double>(4, 7.0));
  double zero_d = 0;
  BLAS(cublasDsyrk(blas, CUBLAS_FILL_MODE_UPPER, CUBLAS_OP_N, 2, 3, &by,
                   u.device, 2, &zero_d, w.device, 2));
  CHECK(w.back()[1] == 7 && w.host[2] == 2 * (u.host[0] * u.host[1] +
                                              u.host[2] * u.host[3] +
                                              u.host[4] * u.host[5]));
  // LU of two matrices, of which the second is singular.
  {
    std::vector<double> a = {0, 2, 1, 3, 1, 4, 2, 5, 7},
                        ones(9, 1), right = {5, 8, 12};
    std::vector<double> both = a;
    both.insert(both.end(), ones.begin(), ones.end());
    Array<double> matrices(both), inverse(std::vector<double>(18)), x(right);
    Array<int> pivots(std::vector<int>(6)), infos(std::vector<int>(2));
    Array<double *> as({matrices.device, matrices.device + 9}),
        cs({inverse.device, inverse.device + 9}), xs({x.device});
    BLAS(cublasDgetrfBatched(blas, 3, as.device, 3, pivots.device, infos.device,
                             2));
    CHECK(infos.back()[0] == 0 && infos.host[1] == 2);
    CHECK(pivots.back()[0] == 2 && pivots.host[1] == 3 && pivots.host[3] == 1);
    BLAS(cublasDgetriBatched(blas, 3, as.device, 3, pivots.device, cs.device, 3,
                             infos.device, 2));
    CHECK(infos.back()[1] == 2);
    inverse.back();
    for (int i = 0; i < 3; ++i)
      for (int j = 0; j < 3; ++j) {
        double sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += a[k * 3 + i] * inverse.host[j * 3 + k];
        CHECK(std::abs(sum - (i == j)) < 1e-12);
      }
    int info = 7;
    for (auto operation : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      OK(cudaMemcpy(x.device, right.data(), 24, cudaMemcpyHostToDevice));
      BLAS(cublasDgetrsBatched(blas, operation, 3, 1, as.device, 3,
                               pivots.device, xs.device, 3, &info, 1));
      CHECK(info == 0);
      x.back();
      for (int i = 0; i < 3; ++i) {
        double sum = 0;
        for (int k = 0; k < 3; ++k)
          sum += (operation == CUBLAS_OP_T ? a[i * 3 + k] : a[k * 3 + i]) *
                 x.host[k];
        CHECK(std::abs(sum - right[i]) < 1e-12);
      }
    }
  }
  // What is wrong.
  CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 4, 4, &one, x.device, 3,
                    x.device, 4, &zero, x.device, 4) ==
        CUBLAS_STATUS_INVALID_VALUE);
  CHECK(cublasCgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 1, 1, 1, nullptr, nullptr, 1,
                    nullptr, 1, nullptr, nullptr, 1) ==
        CUBLAS_STATUS_NOT_SUPPORTED);
  double *fresh, value;
  OK(cudaMalloc(&fresh, 24));
  OK(cudaMemset(fresh, 0, 8));
  BLAS(cublasDdot(blas, 3, u.device, 1, fresh, 1, &value));
  Array<float> small(numbers<float>(14, 1)), left(numbers<float>(20, 1)),
      out(std::vector<float>(12));
  CHECK(cublasSgemm(blas, CUBLAS_OP_N, CUBLAS_OP_N, 4, 3, 5, &one, left.device,
                    4, small.device, 5, &zero, out.device, 4) ==
        CUBLAS_STATUS_EXECUTION_FAILED);
  BLAS(cublasDestroy(blas));
  CHECK(cublasSetStream(blas, stream) == CUBLAS_STATUS_NOT_INITIALIZED);
  std::printf("PASS\n");
}
