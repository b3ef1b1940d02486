// FakeCublas: the part of cuBLAS that Kiln uses; it writes down what it was
// asked to do. Memory of the fake device is the host's.
#include "unit/runtime/fake_cuda/FakeCublas.h"

using namespace kiln::cublas;
using kiln::test::FakeCublas;

extern "C" {

FakeCublas *fakeCublas() {
  static FakeCublas state;
  return &state;
}

cublasStatus_t cublasCreate_v2(void **handle) {
  *handle = fakeCublas();
  ++fakeCublas()->live;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy_v2(void *) {
  --fakeCublas()->live;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion_v2(void *, int *version) {
  *version = 130100;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream_v2(void *, void *) {
  return CUBLAS_STATUS_SUCCESS;
}
const char *cublasGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : nullptr;
}

cublasStatus_t cublasGemmGroupedBatchedEx(
    void *, const cublasOperation_t *opA, const cublasOperation_t *opB,
    const int *m, const int *n, const int *k, const float *alpha,
    const void *const *a, cudaDataType type, const int *lda,
    const void *const *b, cudaDataType, const int *ldb, const float *beta,
    void *const *c, cudaDataType out, const int *ldc, int groups,
    const int *sizes, cublasComputeType_t) {
  FakeCublas &state = *fakeCublas();
  state.type = type;
  state.out = out;
  auto &call = state.calls.emplace_back();
  for (int i = 0; i < groups; ++i)
    call.push_back({opA[i],
                    opB[i],
                    m[i],
                    n[i],
                    k[i],
                    lda[i],
                    ldb[i],
                    ldc[i],
                    sizes[i],
                    alpha[i],
                    beta[i],
                    {a[i], b[i], c[i]}});
  return state.status;
}

} // extern "C"
