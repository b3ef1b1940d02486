// Cudnn: load cuDNN, ask it for its way of a graph, run it.
#include "verify/CudnnGraph.h"

#include "support/Error.h"
#include "verify/CudaLibrary.h"
#include "verify/PrimaryContext.h"

#include <algorithm>
#include <dlfcn.h>
#include <limits>
#include <optional>
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
class CudnnSession {
public:
  CudnnSession(std::shared_ptr<const CudaDriver> driver, int ordinal,
               std::shared_ptr<const CudnnLibrary> libraryToUse,
               Device &deviceToUse)
      : library(std::move(libraryToUse)),
        context(std::move(driver), ordinal, "cuDNN"), device(deviceToUse) {
    context.enter([&] {
      library->check(library->cudnnCreate(&handle), "cudnnCreate",
                     "starting cuDNN");
    });
  }
  ~CudnnSession() {
    context.leave([&] { library->cudnnDestroy(handle); });
  }

  const std::shared_ptr<const CudnnLibrary> library;
  const PrimaryContext context;
  Device &device;
  cudnnHandle_t handle = nullptr;
};

class LoadedCudnnPlan final : public CudnnPlan {
public:
  LoadedCudnnPlan(std::shared_ptr<const CudnnSession> session,
                  const CudnnAttention &problem)
      : session_(std::move(session)), problem_(problem),
        graph_(
            describeAttention(*session_->library, session_->handle, problem_)) {
    const CudnnLibrary &library = *session_->library;
    cudnnBackendHeurMode_t mode = CUDNN_HEUR_MODE_A;
    CudnnDescriptor ways(library, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    ways.set(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, *graph_.graph)
        .set(CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, mode);
    std::int64_t count = 0;
    if (ways.tryFinish() == CUDNN_STATUS_SUCCESS)
      library.cudnnBackendGetAttribute(
          ways.raw(), CUDNN_ATTR_ENGINEHEUR_RESULTS,
          CUDNN_TYPE_BACKEND_DESCRIPTOR, 0, &count, nullptr);
    std::vector<CudnnDescriptor> found;
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
      CudnnDescriptor plan(library, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
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
      CudnnDescriptor pack(library, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
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
  std::shared_ptr<const CudnnSession> session_;
  CudnnAttention problem_;
  CudnnGraph graph_;
  std::optional<CudnnDescriptor> plan_;
  Buffer workspace_;
};

class LoadedCudnn final : public Cudnn {
public:
  explicit LoadedCudnn(std::shared_ptr<const CudnnSession> session)
      : session_(std::move(session)) {}

  std::string version() const override { return versionOf(*session_->library); }

  std::shared_ptr<CudnnPlan> plan(const CudnnAttention &attention) override {
    std::shared_ptr<CudnnPlan> result;
    session_->context.enter([&] {
      result = std::make_shared<LoadedCudnnPlan>(session_, attention);
    });
    return result;
  }

private:
  std::shared_ptr<const CudnnSession> session_;
};

} // namespace

std::shared_ptr<Cudnn> openCudnn(Device &device, int ordinal,
                                 std::shared_ptr<const CudaDriver> driver,
                                 std::shared_ptr<const CudnnLibrary> library) {
  return std::make_shared<LoadedCudnn>(std::make_shared<const CudnnSession>(
      std::move(driver), ordinal, std::move(library), device));
}

std::shared_ptr<Cudnn> open_cudnn(Device &device) {
  int ordinal = PrimaryContext::ordinalOf(device.name(), "cuDNN");
  return openCudnn(device, ordinal, CudaDriver::ofProcess(),
                   CudnnLibrary::find());
}

} // namespace kiln
