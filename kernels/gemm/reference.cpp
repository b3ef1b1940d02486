// reference: a problem as the reference computes it.
#include <kiln/kernels/gemm_reference.h>

namespace kiln {

ReferenceGemm reference_of(const GemmProblem &problem) {
  ReferenceGemm gemm;
  gemm.m = problem.m.constant();
  gemm.n = problem.n.constant();
  gemm.k = problem.k.constant();
  gemm.batch = problem.batch.constant();
  gemm.type = problem.type;
  gemm.out = problem.out;
  gemm.accumulate = problem.accumulator();
  gemm.a_row_major = problem.a_is_k_major();
  gemm.b_row_major = !problem.b_is_k_major();
  gemm.d_row_major = !problem.is_d_column_major;
  gemm.lda = problem.stride_a().constant();
  gemm.ldb = problem.stride_b().constant();
  gemm.ldc = problem.stride_c().constant();
  gemm.ldd = problem.stride_d().constant();
  gemm.batch_stride_a = problem.product_stride_a().constant();
  gemm.batch_stride_b = problem.product_stride_b().constant();
  gemm.batch_stride_c = problem.product_stride_c().constant();
  gemm.batch_stride_d = problem.product_stride_d().constant();
  gemm.bias_kind = problem.bias;
  gemm.act = problem.act;
  gemm.scaling = problem.scaling;
  return gemm;
}

} // namespace kiln
