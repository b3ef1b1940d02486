// CublasProblem: a product in the words of cuBLASLt.
#include "verify/CublasLt.h"

#include "kiln/kernels/gemm.h"
#include "support/Error.h"

namespace kiln {

using namespace cublas;

static cudaDataType dataType(Type type) {
  switch (type) {
  case Type::f32:
  case Type::tf32:
    return CUDA_R_32F;
  case Type::f16:
    return CUDA_R_16F;
  case Type::bf16:
    return CUDA_R_16BF;
  case Type::e4m3:
    return CUDA_R_8F_E4M3;
  case Type::e5m2:
    return CUDA_R_8F_E5M2;
  case Type::i8:
    return CUDA_R_8I;
  case Type::i32:
    return CUDA_R_32I;
  default:
    userError("cuBLASLt does not multiply {}", name(type));
  }
}

/// rows x cols in memory as columns see it: a row-major matrix is the
/// column-major one that is transposed.
static CublasProblem::Matrix stored(Type type, std::int64_t rows,
                                    std::int64_t cols, bool isRowMajor,
                                    std::int64_t leading,
                                    std::optional<std::int64_t> batch) {
  CublasProblem::Matrix matrix = {.type = dataType(type),
                                  .rows = isRowMajor ? cols : rows,
                                  .cols = isRowMajor ? rows : cols};
  matrix.leading = leading ? leading : matrix.rows;
  matrix.stride = batch.value_or(matrix.leading * matrix.cols);
  return matrix;
}

/// How sums are made, and the type of alpha and beta.
static void setCompute(const ReferenceGemm &gemm, CublasProblem &problem) {
  if (gemm.accumulate == Type::i32) {
    if (gemm.out != Type::i32)
      userError("cuBLASLt writes sums of {} as i32, not {}", name(gemm.type),
                name(gemm.out));
    problem.compute = CUBLAS_COMPUTE_32I;
    problem.scale = CUDA_R_32I;
  } else if (gemm.accumulate == Type::f16) {
    if (gemm.type != Type::f16 || gemm.out != Type::f16)
      userError("cuBLASLt adds up in f16 only f16 to f16, not {} to {}",
                name(gemm.type), name(gemm.out));
    problem.compute = CUBLAS_COMPUTE_16F;
    problem.scale = CUDA_R_16F;
  } else if (gemm.type == Type::tf32) {
    problem.compute = CUBLAS_COMPUTE_32F_FAST_TF32;
  }
}

/// Bias and activation. cuBLASLt adds a bias along its columns: along those of
/// D, or, where D is row-major, along its rows.
static void setEpilogue(const ReferenceGemm &gemm, CublasProblem &problem) {
  if (gemm.act == Activation::silu)
    userError("cuBLASLt has no silu");
  int epilogue = 0;
  if (gemm.act == Activation::relu)
    epilogue |= CUBLASLT_EPILOGUE_RELU;
  if (gemm.act == Activation::gelu)
    epilogue |= CUBLASLT_EPILOGUE_GELU;
  if (gemm.bias_kind != GemmBias::none) {
    bool isPerRow = gemm.bias_kind == GemmBias::row;
    if (isPerRow == gemm.d_row_major)
      userError("cuBLASLt adds no bias per {} where D is {}-major",
                isPerRow ? "row" : "column",
                gemm.d_row_major ? "row" : "column");
    epilogue |= CUBLASLT_EPILOGUE_BIAS;
    problem.biasType = dataType(gemm.bias_type());
  }
  problem.epilogue = epilogue ? epilogue : CUBLASLT_EPILOGUE_DEFAULT;
}

CublasProblem cublasProblem(const ReferenceGemm &gemm) {
  if (gemm.scaling != Scaling::none && gemm.scaling != Scaling::tensor)
    userError("cuBLASLt is not asked for products with factors of blocks "
              "(scales={}); use scales=none or scales=tensor",
              name(gemm.scaling));
  CublasProblem problem;
  using Matrix = CublasProblem::Matrix;
  Matrix a = stored(gemm.type, gemm.m, gemm.k, gemm.a_row_major, gemm.lda,
                    gemm.batch_stride_a);
  Matrix b = stored(gemm.type, gemm.k, gemm.n, gemm.b_row_major, gemm.ldb,
                    gemm.batch_stride_b);
  // Columns see a row-major matrix transposed; whether it must be turned
  // depends on whether all of the product is.
  problem.isSwapped = gemm.d_row_major;
  a.isTransposed = gemm.a_row_major != gemm.d_row_major;
  b.isTransposed = gemm.b_row_major != gemm.d_row_major;
  problem.first = problem.isSwapped ? b : a;
  problem.second = problem.isSwapped ? a : b;
  problem.d = stored(gemm.out, gemm.m, gemm.n, gemm.d_row_major, gemm.ldd,
                     gemm.batch_stride_d);
  problem.c = stored(gemm.out, gemm.m, gemm.n, gemm.d_row_major, gemm.ldc,
                     gemm.batch_stride_c);
  bool isFp8 = gemm.type == Type::e4m3 || gemm.type == Type::e5m2;
  // To 8-bit floats, C is of 16 bits.
  if (gemm.out == Type::e4m3 || gemm.out == Type::e5m2) {
    if (gemm.beta != 0)
      userError("cuBLASLt adds no C of type {}", name(gemm.out));
    problem.c.type = CUDA_R_16BF;
  }
  problem.batch = gemm.batch;
  problem.hasFastSums = isFp8;
  problem.hasScales = gemm.scaling == Scaling::tensor;
  setCompute(gemm, problem);
  setEpilogue(gemm, problem);
  return problem;
}

} // namespace kiln
