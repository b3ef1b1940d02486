// Cudnn: attention as a graph of cuDNN's operations, which its engines know as
// one kernel.
#include "verify/Cudnn.h"

#include "support/Error.h"
#include "verify/CudaLibrary.h"
#include "verify/PrimaryContext.h"

#include <algorithm>
#include <array>
#include <deque>
#include <dlfcn.h>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace kiln {

using namespace cudnn;

CudnnPlan::~CudnnPlan() = default;
Cudnn::~Cudnn() = default;

CudnnLibrary::CudnnLibrary(const std::string &path) {
  // Never closed: the library has threads and exit handlers of its own.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    runtimeError("cuDNN cannot be loaded: {}", why ? why : path);
  }
#define KILN_LOAD_CALL(call, result, ...)                                      \
  call = reinterpret_cast<decltype(call)>(dlsym(library, #call));              \
  if (!call)                                                                   \
    runtimeError("{} has no {}; Kiln knows cuDNN 9", path, #call);
  KILN_CUDNN_SYMBOLS(KILN_LOAD_CALL)
#undef KILN_LOAD_CALL
}

std::shared_ptr<const CudnnLibrary> CudnnLibrary::find() {
  std::string path = findCudaLibrary({"libcudnn.so.9"});
  if (path.empty())
    runtimeError("libcudnn.so.9 not found by the loader or in the folder "
                 "CUDA_HOME names; install cuDNN 9 to compare with it");
  return std::make_shared<const CudnnLibrary>(path);
}

void CudnnLibrary::check(cudnnStatus_t status, const char *call,
                         const char *what) const {
  if (status == CUDNN_STATUS_SUCCESS)
    return;
  const char *text = cudnnGetErrorString(status);
  runtimeError("{} failed with {} ({}) while {}", call,
               text ? text : "an unknown status", static_cast<int>(status),
               what);
}

/// "9.19.0"
static std::string versionOf(const CudnnLibrary &library) {
  std::size_t number = library.cudnnGetVersion();
  return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100,
                     number % 100);
}

namespace {

/// The library, a handle, and the context it works in.
class Session {
public:
  Session(std::shared_ptr<const CudaDriver> driver, int ordinal,
          std::shared_ptr<const CudnnLibrary> libraryToUse, Device &deviceToUse)
      : library(std::move(libraryToUse)),
        context(std::move(driver), ordinal, "cuDNN"), device(deviceToUse) {
    context.enter([&] {
      library->check(library->cudnnCreate(&handle), "cudnnCreate",
                     "starting cuDNN");
    });
  }
  ~Session() {
    context.leave([&] { library->cudnnDestroy(handle); });
  }

  const std::shared_ptr<const CudnnLibrary> library;
  const PrimaryContext context;
  Device &device;
  cudnnHandle_t handle = nullptr;
};

/// One of cuDNN's objects.
class Descriptor {
public:
  Descriptor(const CudnnLibrary &library, cudnnBackendDescriptorType_t type)
      : library_(library) {
    library_.check(library_.cudnnBackendCreateDescriptor(type, &raw_),
                   "cudnnBackendCreateDescriptor", "describing attention");
  }
  Descriptor(Descriptor &&other) noexcept
      : library_(other.library_), raw_(std::exchange(other.raw_, nullptr)) {}
  ~Descriptor() {
    if (raw_)
      library_.cudnnBackendDestroyDescriptor(raw_);
  }

  template <typename T>
  Descriptor &set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const T *values,
                  std::size_t count) {
    library_.check(
        library_.cudnnBackendSetAttribute(
            raw_, name, type, static_cast<std::int64_t>(count), values),
        "cudnnBackendSetAttribute", "describing attention");
    return *this;
  }
  template <typename T>
  Descriptor &set(cudnnBackendAttributeName_t name,
                  cudnnBackendAttributeType_t type, const T &value) {
    return set(name, type, &value, 1);
  }
  Descriptor &set(cudnnBackendAttributeName_t name, const Descriptor &other) {
    return set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, other.raw_);
  }
  cudnnStatus_t tryFinish() { return library_.cudnnBackendFinalize(raw_); }
  Descriptor &finish() {
    library_.check(tryFinish(), "cudnnBackendFinalize", "describing attention");
    return *this;
  }
  cudnnBackendDescriptor_t raw() const { return raw_; }

private:
  const CudnnLibrary &library_;
  cudnnBackendDescriptor_t raw_ = nullptr;
};

using Sizes = std::array<std::int64_t, 4>; ///< batch, head, row, column

/// The numbers of the tensors that a plan is given.
enum Uid : std::int64_t {
  kQ = 1,
  kK,
  kV,
  kO,
  kScale,
  kMasked,
  kKeys,
  kQueries
};

/// The operations of one attention, in the order in which cuDNN knows them.
class AttentionGraph {
public:
  AttentionGraph(const Session &session, const CudnnAttention &problem)
      : library_(*session.library), problem_(problem),
        type_(problem.type == Type::bf16 ? CUDNN_DATA_BFLOAT16
                                         : CUDNN_DATA_HALF) {
    build();
    std::vector<cudnnBackendDescriptor_t> operations;
    for (const Descriptor &one : operations_)
      operations.push_back(one.raw());
    graph_.emplace(library_, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    graph_
        ->set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE,
              session.handle)
        .set(CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR,
             operations.data(), operations.size())
        .finish();
  }

  const Descriptor &graph() const { return *graph_; }

private:
  void build();
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
        options.uid ? options.uid : 100 + std::int64_t(tensors_.size());
    Descriptor tensor(library_, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
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
    tensors_.push_back(std::move(tensor));
    return tensors_.size() - 1;
  }
  std::size_t between(cudnnDataType_t type, const Sizes &sizes) {
    return add(type, sizes, packed(sizes), {});
  }
  std::size_t number(cudnnDataType_t type, Uid uid) {
    return add(type, {1, 1, 1, 1}, {1, 1, 1, 1},
               {.isVirtual = false, .isByValue = true, .uid = uid});
  }

  void multiply(std::size_t a, std::size_t b, std::size_t c) {
    Descriptor &kind =
        parts_.emplace_back(library_, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    kind.set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             CUDNN_DATA_FLOAT)
        .finish();
    Descriptor operation(library_, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, tensors_[a])
        .set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, tensors_[b])
        .set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, tensors_[c])
        .set(CUDNN_ATTR_OPERATION_MATMUL_DESC, kind)
        .finish();
    operations_.push_back(std::move(operation));
  }
  void reduce(cudnnReduceTensorOp_t with, std::size_t x, std::size_t y) {
    Descriptor &kind =
        parts_.emplace_back(library_, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
    kind.set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE,
             with)
        .set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE,
             CUDNN_DATA_FLOAT)
        .finish();
    Descriptor operation(library_,
                         CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, tensors_[x])
        .set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, tensors_[y])
        .set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, kind)
        .finish();
    operations_.push_back(std::move(operation));
  }

  struct Pointwise {
    cudnnPointwiseMode_t mode;
    std::optional<std::size_t> b = {}, t = {};
    cudnnDataType_t compute = CUDNN_DATA_FLOAT;
    std::optional<std::int64_t> axis = {};
  };
  void pointwise(const Pointwise &what, std::size_t x, std::size_t y) {
    Descriptor &kind =
        parts_.emplace_back(library_, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    kind.set(CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, what.mode)
        .set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE,
             what.compute);
    if (what.axis)
      kind.set(CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, *what.axis);
    kind.finish();
    Descriptor operation(library_,
                         CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kind)
        .set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, tensors_[x])
        .set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, tensors_[y]);
    if (what.b)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, tensors_[*what.b]);
    if (what.t)
      operation.set(CUDNN_ATTR_OPERATION_POINTWISE_TDESC, tensors_[*what.t]);
    operation.finish();
    operations_.push_back(std::move(operation));
  }

  const CudnnLibrary &library_;
  const CudnnAttention &problem_;
  cudnnDataType_t type_;
  std::vector<Descriptor> tensors_, operations_;
  std::deque<Descriptor> parts_;
  std::optional<Descriptor> graph_;
};

/// The scores with -infinity where a key comes behind its query's place.
std::size_t AttentionGraph::masked(std::size_t scores) {
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

void AttentionGraph::build() {
  int d = problem_.head_dim;
  Sizes all = sizes(problem_.queries, problem_.keys);
  Sizes each = sizes(problem_.queries, 1);
  auto operand = [&](Uid uid, int heads, int rows) {
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

class Plan final : public CudnnPlan {
public:
  Plan(std::shared_ptr<const Session> session, const CudnnAttention &problem)
      : session_(std::move(session)), problem_(problem),
        graph_(*session_, problem_) {
    const CudnnLibrary &library = *session_->library;
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    Descriptor ways(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ways.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, graph_.graph())
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    std::int64_t count = 0;
    if (ways.tryFinish() == CUDNN_STATUS_SUCCESS)
      library.cudnnBackendGetAttribute(
          ways.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
    std::vector<Descriptor> found;
    std::vector<cudnnBackendDescriptor_t> raw;
    for (std::int64_t i = 0; i < count; ++i)
      raw.push_back(
          found.emplace_back(library, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)
              .raw());
    if (count > 0)
      library.check(library.cudnnBackendGetAttribute(
                        ways.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
                        CUDNN_TYPE_BACKEND_DESCRIPTOR, count, &count,
                        raw.data()),
                    "cudnnBackendGetAttribute", "asking for ways");
    for (std::int64_t i = 0; i < count && !plan_; ++i) {
      Descriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
      plan.set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE,
               session_->handle)
          .set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, found[i]);
      if (plan.tryFinish() == CUDNN_STATUS_SUCCESS)
        plan_.emplace(std::move(plan));
    }
    if (!plan_)
      userError("cuDNN {} has no way for attention of {} heads, {} queries, {} "
                "keys and {} elements a head{}",
                versionOf(library), problem_.heads, problem_.queries,
                problem_.keys, problem_.head_dim,
                problem_.is_causal ? ", causal" : "");
    std::int64_t bytes = 0, one = 0;
    library.check(library.cudnnBackendGetAttribute(
                      plan_->raw(), CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE,
                      CUDNN_TYPE_INT64, 1, &one, &bytes),
                  "cudnnBackendGetAttribute", "asking for the workspace");
    workspace_ = session_->device.allocate(std::max<std::int64_t>(bytes, 16));
  }

  void enqueue(const CudnnOperands &operands,
               const Stream &stream) const override {
    const CudnnLibrary &library = *session_->library;
    session_->context.enter([&] {
      // Host memory of numbers is read while it is put into the stream.
      float scale = problem_.scale;
      float masked = -std::numeric_limits<float>::infinity();
      std::int32_t keys = problem_.keys, queries = problem_.queries;
      auto at = [](const Buffer &buffer) {
        return reinterpret_cast<void *>(buffer.address());
      };
      std::vector<std::int64_t> uids = {kQ, kK, kV, kO, kScale};
      std::vector<void *> pointers = {at(operands.q), at(operands.k),
                                      at(operands.v), at(operands.o), &scale};
      if (problem_.is_causal) {
        uids.push_back(kMasked);
        pointers.push_back(&masked);
      }
      if (problem_.is_causal && keys != queries) {
        uids.insert(uids.end(), {kKeys, kQueries});
        pointers.insert(pointers.end(), {&keys, &queries});
      }
      Descriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
      pack.set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64,
               uids.data(), uids.size())
          .set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
               pointers.data(), pointers.size())
          .set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR,
               at(workspace_))
          .finish();
      library.check(
          library.cudnnSetStream(session_->handle,
                                 static_cast<cuda::CUstream>(stream.native())),
          "cudnnSetStream", "running attention");
      library.check(library.cudnnBackendExecute(session_->handle, plan_->raw(),
                                                pack.raw()),
                    "cudnnBackendExecute", "running attention");
    });
  }

private:
  std::shared_ptr<const Session> session_;
  CudnnAttention problem_;
  AttentionGraph graph_;
  std::optional<Descriptor> plan_;
  Buffer workspace_;
};

class LoadedCudnn final : public Cudnn {
public:
  explicit LoadedCudnn(std::shared_ptr<const Session> session)
      : session_(std::move(session)) {}

  std::string version() const override { return versionOf(*session_->library); }

  std::shared_ptr<CudnnPlan> plan(const CudnnAttention &attention) override {
    std::shared_ptr<CudnnPlan> result;
    session_->context.enter(
        [&] { result = std::make_shared<Plan>(session_, attention); });
    return result;
  }

private:
  std::shared_ptr<const Session> session_;
};

} // namespace

std::shared_ptr<Cudnn> openCudnn(Device &device, int ordinal,
                                 std::shared_ptr<const CudaDriver> driver,
                                 std::shared_ptr<const CudnnLibrary> library) {
  return std::make_shared<LoadedCudnn>(std::make_shared<const Session>(
      std::move(driver), ordinal, std::move(library), device));
}

std::shared_ptr<Cudnn> open_cudnn(Device &device) {
  int ordinal = PrimaryContext::ordinalOf(device.name(), "cuDNN");
  return openCudnn(device, ordinal, CudaDriver::ofProcess(),
                   CudnnLibrary::find());
}

} // namespace kiln
