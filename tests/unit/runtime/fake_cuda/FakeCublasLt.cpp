// FakeCublasLt: the part of cuBLASLt that Kiln uses; it multiplies nothing, it
// writes down what it was asked to do.
#include "unit/runtime/fake_cuda/FakeCublasLt.h"

#include <cstring>

using namespace kiln::cublas;
using kiln::test::FakeCublasLt;

extern "C" FakeCublasLt *fakeCublasLt() {
  static FakeCublasLt state;
  return &state;
}

#define ENTER                                                                  \
  if (fakeCublasLt()->failCall == __func__)                                    \
  return fakeCublasLt()->failStatus

/// The bytes of an attribute as a number.
static std::int64_t numberOf(const void *data, std::size_t bytes) {
  std::int64_t number = 0;
  std::memcpy(&number, data, bytes);
  return number;
}

template <typename Handle, typename Object>
static void create(Handle *handle, Object object) {
  *handle = reinterpret_cast<Handle>(new Object(std::move(object)));
  ++fakeCublasLt()->live;
}

template <typename Object, typename Handle> static void destroy(Handle handle) {
  delete reinterpret_cast<Object *>(handle);
  --fakeCublasLt()->live;
}

extern "C" {

std::size_t cublasLtGetVersion() { return 130002; }

const char *cublasLtGetStatusName(cublasStatus_t status) {
  return status == CUBLAS_STATUS_INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE"
                                               : nullptr;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle) {
  ENTER;
  create(handle, int{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  destroy<int>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc,
                                        cublasComputeType_t compute,
                                        cudaDataType scale) {
  ENTER;
  create(desc, FakeCublasLt::Operation{compute, scale, {}});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) {
  destroy<FakeCublasLt::Operation>(desc);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc,
                               cublasLtMatmulDescAttributes_t attribute,
                               const void *data, std::size_t bytes) {
  ENTER;
  reinterpret_cast<FakeCublasLt::Operation *>(desc)->attributes[attribute] =
      numberOf(data, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout,
                                          cudaDataType type, std::uint64_t rows,
                                          std::uint64_t cols,
                                          std::int64_t leading) {
  ENTER;
  create(layout, FakeCublasLt::Layout{type, rows, cols, leading, {}});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  destroy<FakeCublasLt::Layout>(layout);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                 cublasLtMatrixLayoutAttribute_t attribute,
                                 const void *data, std::size_t bytes) {
  ENTER;
  reinterpret_cast<FakeCublasLt::Layout *>(layout)->attributes[attribute] =
      numberOf(data, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t
cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
  ENTER;
  create(preference, int{});
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t
cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  destroy<int>(preference);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(
    cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t attribute,
    const void *data, std::size_t bytes) {
  ENTER;
  if (attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)
    fakeCublasLt()->preferredWorkspaceBytes =
        static_cast<std::uint64_t>(numberOf(data, bytes));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
    cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
    cublasLtMatmulPreference_t, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *count) {
  ENTER;
  *count = std::min(wanted, fakeCublasLt()->ways);
  for (int i = 0; i < *count; ++i) {
    results[i] = {};
    results[i].algo.data[0] = static_cast<std::uint64_t>(100 + i);
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t operation,
                              const void *alpha, const void *a,
                              cublasLtMatrixLayout_t aLayout, const void *b,
                              cublasLtMatrixLayout_t bLayout, const void *beta,
                              const void *c, cublasLtMatrixLayout_t cLayout,
                              void *d, cublasLtMatrixLayout_t dLayout,
                              const cublasLtMatmulAlgo_t *algo, void *,
                              std::size_t workspaceBytes,
                              kiln::cuda::CUstream stream) {
  ENTER;
  auto layout = [](cublasLtMatrixLayout_t handle) {
    return *reinterpret_cast<FakeCublasLt::Layout *>(handle);
  };
  fakeCublasLt()->matmuls.push_back(
      {*reinterpret_cast<FakeCublasLt::Operation *>(operation),
       layout(aLayout),
       layout(bLayout),
       layout(cLayout),
       layout(dLayout),
       {a, b, c, d},
       static_cast<std::uint32_t>(numberOf(alpha, 4)),
       static_cast<std::uint32_t>(numberOf(beta, 4)),
       algo->data[0],
       workspaceBytes,
       stream});
  return CUBLAS_STATUS_SUCCESS;
}

} // extern "C"
