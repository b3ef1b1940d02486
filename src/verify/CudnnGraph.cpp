// CudnnGraph: matrices, rows and numbers, and what is done to them.
#include "verify/CudnnGraph.h"

#include <array>

namespace kiln {

using namespace cudnn;

namespace {
using Sizes = std::array<std::int64_t, 4>; ///< batch, head, row, column

class AttentionBuilder {
public:
  AttentionBuilder(const CudnnLibrary &library, const CudnnAttention &problem)
      : library_(library), problem_(problem),
        type_(problem.type == Type::bf16 ? CUDNN_DATA_BFLOAT16
                                         : CUDNN_DATA_HALF) {}

  CudnnGraph build(cudnnHandle_t handle);

private:
  void addOperations();
  std::size_t masked(std::size_t scores);

  Sizes sizes(int rows, int columns) const {
    return {problem_.batch, problem_.heads, rows, columns};
  }
  static Sizes packed(const Sizes &sizes) {
    return {sizes[1] * sizes[2] * sizes[3], sizes[2] * sizes[3], sizes[3], 1};
  }
  /// Strides of rows of a head, as the layout has them.
  Sizes stored(int heads, int rows) const {
    std::int64_t d = problem_.head_dim;
    if (problem_.is_bshd)
      return {d * heads * rows, d, d * heads, 1};
    return packed({problem_.batch, heads, rows, d});
  }

  struct TensorOptions {
    bool isVirtual = true, isByValue = false;
    std::int64_t uid = 0;
  };
  /// Its place among the tensors.
  std::size_t add(cudnnDataType_t type, const Sizes &sizes,
                  const Sizes &strides, const TensorOptions &options) {
    constexpr std::int64_t kAlignment = 16;
    std::int64_t uid =
        options.uid ? options.uid : 100 + std::int64_t(made_.tensors.size());
    CudnnDescriptor tensor(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    tensor.set(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, uid)
        .set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, type)
        .set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, sizes.data(), 4)
        .set(CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, strides.data(), 4)
        .set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, kAlignment)
        .set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN,
             options.isVirtual)
        .set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN,
             options.isByValue)
        .finish();
    made_.tensors.push_back(std::move(tensor));
    return made_.tensors.size() - 1;
  }
  std::size_t between(cudnnDataType_t type, const Sizes &sizes) {
    return add(type, sizes, packed(sizes), {});
  }
  std::size_t number(cudnnDataType_t type, CudnnUid uid) {
    return add(type, {1, 1, 1, 1}, {1, 1, 1, 1},
               {.isVirtual = false, .isByValue = true, .uid = uid});
  }

  void multiply(std::size_t a, std::size_t b, std::size_t c) {
    CudnnDescriptor &kind =
        made_.parts.emplace_back(library_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             CUDNN_DATA_FLOAT)
        .finish();
    CudnnDescriptor operation(library_,
                              CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, made_.tensors[a])
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, made_.tensors[b])
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, made_.tensors[c])
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
        .finish();
    made_.operations.push_back(std::move(operation));
  }
  void reduce(cudnnReduceTensorOp_t with, std::size_t x, std::size_t y) {
    CudnnDescriptor &kind =
        made_.parts.emplace_back(library_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
             with)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             CUDNN_DATA_FLOAT)
        .finish();
    CudnnDescriptor operation(library_,
                              CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, made_.tensors[x])
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, made_.tensors[y])
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
        .finish();
    made_.operations.push_back(std::move(operation));
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    std::optional<std::size_t> b = {}, t = {};
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::optional<std::int64_t> axis = {};
  };
  void pointwise(const Pointwise &what, std::size_t x, std::size_t y) {
    CudnnDescriptor &kind =
        made_.parts.emplace_back(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, what.mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
             what.compute);
    if (what.axis)
      kind.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *what.axis);
    kind.finish();
    CudnnDescriptor operation(library_,
                              CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, made_.tensors[x])
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, made_.tensors[y]);
    if (what.b)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC,
                    made_.tensors[*what.b]);
    if (what.t)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC,
                    made_.tensors[*what.t]);
    operation.finish();
    made_.operations.push_back(std::move(operation));
  }

  const CudnnLibrary &library_;
  const CudnnAttention &problem_;
  cudnnDataType_t type_;
  CudnnGraph made_;
};
} // namespace

/// The scores with -infinity where a key comes behind its query's place.
std::size_t AttentionBuilder::masked(std::size_t scores) {
  Sizes all = sizes(problem_.queries, problem_.keys);
  std::size_t row = between(CUDNN_DATA_INT32, all),
              column = between(CUDNN_DATA_INT32, all);
  pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 2}, scores, row);
  pointwise({.mode = CUDNN_POINTWISE_GEN_INDEX, .axis = 3}, scores, column);
  if (problem_.keys != problem_.queries)
    for (auto [mode, uid] : {std::pair{CUDNN_POINTWISE_ADD, kKeys},
                             {CUDNN_POINTWISE_SUB, kQueries}}) {
      std::size_t moved = between(CUDNN_DATA_INT32, all);
      std::size_t by = number(CUDNN_DATA_INT32, uid);
      pointwise({.mode = mode, .b = by, .compute = CUDNN_DATA_INT32, .axis = 3},
                row, moved);
      row = moved;
    }
  std::size_t isSeen = between(CUDNN_DATA_BOOLEAN, all);
  pointwise({.mode = CUDNN_POINTWISE_CMP_GE,
             .b = column,
             .compute = CUDNN_DATA_BOOLEAN},
            row, isSeen);
  std::size_t rest = number(CUDNN_DATA_FLOAT, kMasked);
  std::size_t result = between(CUDNN_DATA_FLOAT, all);
  pointwise({.mode = CUDNN_POINTWISE_BINARY_SELECT, .b = rest, .t = isSeen},
            scores, result);
  return result;
}

void AttentionBuilder::addOperations() {
  int d = problem_.head_dim;
  Sizes all = sizes(problem_.queries, problem_.keys);
  Sizes each = sizes(problem_.queries, 1);
  auto operand = [&](CudnnUid uid, int heads, int rows) {
    return add(type_, {problem_.batch, heads, rows, d}, stored(heads, rows),
               {.isVirtual = false, .uid = uid});
  };
  std::size_t q = operand(kQ, problem_.heads, problem_.queries);
  Sizes keys = stored(problem_.kv_heads, problem_.keys);
  std::swap(keys[2], keys[3]);
  std::size_t k =
      add(type_, {problem_.batch, problem_.kv_heads, d, problem_.keys}, keys,
          {.isVirtual = false, .uid = kK});
  std::size_t v = operand(kV, problem_.kv_heads, problem_.keys);
  std::size_t o = operand(kO, problem_.heads, problem_.queries);

  std::size_t products = between(CUDNN_DATA_FLOAT, all);
  multiply(q, k, products);
  std::size_t scores = between(CUDNN_DATA_FLOAT, all);
  std::size_t scale = number(CUDNN_DATA_FLOAT, kScale);
  pointwise({.mode = CUDNN_POINTWISE_MUL, .b = scale}, products, scores);
  if (problem_.is_causal)
    scores = masked(scores);

  std::size_t most = between(CUDNN_DATA_FLOAT, each);
  reduce(CUDNN_REDUCE_TENSOR_MAX, scores, most);
  std::size_t below = between(CUDNN_DATA_FLOAT, all);
  pointwise({.mode = CUDNN_POINTWISE_SUB, .b = most}, scores, below);
  std::size_t powers = between(CUDNN_DATA_FLOAT, all);
  pointwise({.mode = CUDNN_POINTWISE_EXP}, below, powers);
  std::size_t sum = between(CUDNN_DATA_FLOAT, each);
  reduce(CUDNN_REDUCE_TENSOR_ADD, powers, sum);
  // The log-sum-exp, which nobody reads, belongs to the pattern.
  std::size_t logarithm = between(CUDNN_DATA_FLOAT, each);
  pointwise({.mode = CUDNN_POINTWISE_LOG}, sum, logarithm);
  std::size_t lse = between(CUDNN_DATA_FLOAT, each);
  pointwise({.mode = CUDNN_POINTWISE_ADD, .b = logarithm}, most, lse);
  std::size_t p = between(type_, all);
  pointwise({.mode = CUDNN_POINTWISE_DIV, .b = sum}, powers, p);
  multiply(p, v, o);
}

CudnnGraph AttentionBuilder::build(cudnnHandle_t handle) {
  addOperations();
  std::vector<cudnnBackendDescriptor_t> operations;
  for (const CudnnDescriptor &one : made_.operations)
    operations.push_back(one.raw());
  made_.graph.emplace(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  made_.graph->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, handle)
      .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
           operations.data(), operations.size())
      .finish();
  return std::move(made_);
}

CudnnGraph describeAttention(const CudnnLibrary &library, cudnnHandle_t handle,
                             const CudnnAttention &attention) {
  return AttentionBuilder(library, attention).build(handle);
}

} // namespace kiln
