// problem: what the fields of a GEMM mean.
#include <kiln/kernels/gemm.h>

namespace kiln {

Type GemmProblem::accumulator() const {
  if (accumulate)
    return *accumulate;
  return is_float(type) ? Type::f32 : Type::i32;
}

Dim GemmProblem::stride_a() const {
  return lda.value_or(a_is_k_major() ? k : m);
}
Dim GemmProblem::stride_b() const {
  return ldb.value_or(b_is_k_major() ? k : n);
}
Dim GemmProblem::stride_c() const {
  return ldc.value_or(is_d_column_major ? m : n);
}
Dim GemmProblem::stride_d() const {
  return ldd.value_or(is_d_column_major ? m : n);
}

Dim GemmProblem::product_stride_a() const {
  return batch_stride_a.value_or((a_is_k_major() ? m : k) * stride_a());
}
Dim GemmProblem::product_stride_b() const {
  return batch_stride_b.value_or((b_is_k_major() ? n : k) * stride_b());
}
Dim GemmProblem::product_stride_c() const {
  return batch_stride_c.value_or((is_d_column_major ? n : m) * stride_c());
}
Dim GemmProblem::product_stride_d() const {
  return batch_stride_d.value_or((is_d_column_major ? n : m) * stride_d());
}

} // namespace kiln
