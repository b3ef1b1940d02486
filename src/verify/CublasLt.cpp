// CublasLt: load cuBLASLt, ask it for its ways, run them.
#include "verify/CublasLt.h"

#include "support/Error.h"
#include "verify/CudaLibrary.h"
#include "verify/PrimaryContext.h"

#include <array>
#include <bit>
#include <dlfcn.h>

namespace kiln {

using namespace cublas;
using namespace cuda;

/// What cuBLAS wants on Hopper to be at its best, and then some.
static constexpr std::size_t kWorkspaceBytes = 64 << 20;

CublasPlan::~CublasPlan() = default;
CublasLt::~CublasLt() = default;

CublasLibrary::CublasLibrary(const std::string &path) {
  // Never closed: the library has threads and exit handlers of its own.
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    runtimeError("cuBLASLt cannot be loaded: {}", why ? why : path);
  }
#define KILN_LOAD_CALL(call, result, ...)                                      \
  call = reinterpret_cast<decltype(call)>(dlsym(library, #call));              \
  if (!call)                                                                   \
    runtimeError("{} has no {}; Kiln knows cuBLASLt 12 and 13", path, #call);
  KILN_CUBLASLT_SYMBOLS(KILN_LOAD_CALL)
#undef KILN_LOAD_CALL
}

std::shared_ptr<const CublasLibrary> CublasLibrary::find() {
  std::string path = findCudaLibrary(
      {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"});
  if (path.empty())
    runtimeError("libcublasLt.so.13 and .12 not found by the loader or in the "
                 "folder CUDA_HOME names; install cuBLAS 12 or 13 to compare "
                 "with it");
  return std::make_shared<const CublasLibrary>(path);
}

void CublasLibrary::check(cublasStatus_t status, const char *call,
                          const std::string &what) const {
  if (status == CUBLAS_STATUS_SUCCESS)
    return;
  const char *text = cublasLtGetStatusName(status);
  runtimeError("{} failed with {} ({}) while {}", call,
               text ? text : "an unknown status", static_cast<int>(status),
               what);
}

namespace {

/// The library, a handle, and the context it works in.
class LtSession {
public:
  LtSession(std::shared_ptr<const CudaDriver> driver, int ordinal,
            std::shared_ptr<const CublasLibrary> libraryToUse, Buffer memory)
      : library(std::move(libraryToUse)), workspace(std::move(memory)),
        context(std::move(driver), ordinal, "cuBLASLt") {
    context.enter([&] {
      library->check(library->cublasLtCreate(&handle), "cublasLtCreate",
                     "starting cuBLASLt");
    });
  }
  LtSession(const LtSession &) = delete;
  ~LtSession() {
    context.leave([&] { library->cublasLtDestroy(handle); });
  }

  const std::shared_ptr<const CublasLibrary> library;
  const Buffer workspace;
  const PrimaryContext context;
  cublasLtHandle_t handle = nullptr;
};

/// The descriptions of one product, which all its plans share.
class Descriptions {
public:
  Descriptions(std::shared_ptr<const LtSession> sessionToUse,
               const ReferenceGemm &gemm)
      : session(std::move(sessionToUse)), problem(cublasProblem(gemm)),
        alpha(scaleBits(gemm.alpha)), beta(scaleBits(gemm.beta)),
        library(*session->library) {
    check(library.cublasLtMatmulDescCreate(&operation, problem.compute,
                                           problem.scale),
          "cublasLtMatmulDescCreate");
    set(CUBLASLT_MATMUL_DESC_TRANSA, operationOf(problem.first));
    set(CUBLASLT_MATMUL_DESC_TRANSB, operationOf(problem.second));
    set(CUBLASLT_MATMUL_DESC_EPILOGUE,
        static_cast<std::uint32_t>(problem.epilogue));
    if (hasBias())
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE,
          static_cast<std::int32_t>(problem.biasType));
    if (problem.hasFastSums)
      set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{1});
    if (problem.hasScales) // the heuristics see that there are some
      setScales(session->workspace, session->workspace);
    layout(first, problem.first);
    layout(second, problem.second);
    layout(c, problem.c);
    layout(d, problem.d);
  }
  Descriptions(const Descriptions &) = delete;
  ~Descriptions() {
    for (cublasLtMatrixLayout_t matrix : {first, second, c, d})
      if (matrix)
        library.cublasLtMatrixLayoutDestroy(matrix);
    if (operation)
      library.cublasLtMatmulDescDestroy(operation);
  }

  bool hasBias() const { return problem.epilogue & CUBLASLT_EPILOGUE_BIAS; }
  void setBias(const Buffer &bias) const {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias.address());
  }
  /// Of the first and the second operand.
  void setScales(const Buffer &ofFirst, const Buffer &ofSecond) const {
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, ofFirst.address());
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, ofSecond.address());
  }
  void check(cublasStatus_t status, const char *call) const {
    library.check(status, call, "describing a product to cuBLASLt");
  }

  const std::shared_ptr<const LtSession> session;
  const CublasProblem problem;
  const std::uint32_t alpha, beta; ///< bits of the type `scale`
  const CublasLibrary &library;
  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatrixLayout_t first = nullptr, second = nullptr, c = nullptr,
                         d = nullptr;

private:
  std::uint32_t scaleBits(double number) const {
    Type type = problem.scale == CUDA_R_32I   ? Type::i32
                : problem.scale == CUDA_R_16F ? Type::f16
                                              : Type::f32;
    return static_cast<std::uint32_t>(to_bits(type, number));
  }

  static std::int32_t operationOf(const CublasProblem::Matrix &matrix) {
    return matrix.isTransposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  template <typename T>
  void set(cublasLtMatmulDescAttributes_t attribute, T value) const {
    check(library.cublasLtMatmulDescSetAttribute(operation, attribute, &value,
                                                 sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  }

  void layout(cublasLtMatrixLayout_t &to, const CublasProblem::Matrix &from) {
    check(library.cublasLtMatrixLayoutCreate(
              &to, from.type, static_cast<std::uint64_t>(from.rows),
              static_cast<std::uint64_t>(from.cols), from.leading),
          "cublasLtMatrixLayoutCreate");
    if (problem.batch == 1)
      return;
    auto count = static_cast<std::int32_t>(problem.batch);
    const char *call = "cublasLtMatrixLayoutSetAttribute";
    check(library.cublasLtMatrixLayoutSetAttribute(
              to, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof(count)),
          call);
    check(library.cublasLtMatrixLayoutSetAttribute(
              to, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &from.stride,
              sizeof(from.stride)),
          call);
  }
};

class LtPlan final : public CublasPlan {
public:
  LtPlan(std::shared_ptr<const Descriptions> of,
         const cublasLtMatmulAlgo_t &algo)
      : of_(std::move(of)), algo_(algo) {}

  void enqueue(const CublasOperands &operands,
               const Stream &stream) const override {
    auto pointer = [](const Buffer &buffer) {
      return reinterpret_cast<void *>(buffer.address());
    };
    const LtSession &session = *of_->session;
    const Buffer *first = &operands.a, *second = &operands.b;
    const Buffer *ofFirst = &operands.a_scales, *ofSecond = &operands.b_scales;
    if (of_->problem.isSwapped) {
      std::swap(first, second);
      std::swap(ofFirst, ofSecond);
    }
    const Buffer &c = operands.c.address() ? operands.c : operands.d;
    session.context.enter([&] {
      if (of_->hasBias())
        of_->setBias(operands.bias);
      if (of_->problem.hasScales)
        of_->setScales(*ofFirst, *ofSecond);
      session.library->check(
          session.library->cublasLtMatmul(
              session.handle, of_->operation, &of_->alpha, pointer(*first),
              of_->first, pointer(*second), of_->second, &of_->beta, pointer(c),
              of_->c, pointer(operands.d), of_->d, &algo_,
              pointer(session.workspace), session.workspace.bytes(),
              static_cast<CUstream>(stream.native())),
          "cublasLtMatmul", "multiplying");
    });
  }

private:
  std::shared_ptr<const Descriptions> of_;
  cublasLtMatmulAlgo_t algo_;
};

class LoadedCublasLt final : public CublasLt {
public:
  explicit LoadedCublasLt(std::shared_ptr<const LtSession> session)
      : session_(std::move(session)) {}

  std::string version() const override {
    std::size_t number = session_->library->cublasLtGetVersion();
    return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100,
                       number % 100);
  }

  std::vector<std::shared_ptr<CublasPlan>> plans(const ReferenceGemm &gemm,
                                                 int most) override;

private:
  std::shared_ptr<const LtSession> session_;
};

} // namespace

std::vector<std::shared_ptr<CublasPlan>>
LoadedCublasLt::plans(const ReferenceGemm &gemm, int most) {
  const CublasLibrary &library = *session_->library;
  auto described = std::make_shared<const Descriptions>(session_, gemm);
  cublasLtMatmulPreference_t preference = nullptr;
  described->check(library.cublasLtMatmulPreferenceCreate(&preference),
                   "cublasLtMatmulPreferenceCreate");
  std::shared_ptr<void> owner(preference, [&](void *) {
    library.cublasLtMatmulPreferenceDestroy(preference);
  });
  std::uint64_t bytes = session_->workspace.bytes();
  described->check(library.cublasLtMatmulPreferenceSetAttribute(
                       preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                       &bytes, sizeof(bytes)),
                   "cublasLtMatmulPreferenceSetAttribute");
  std::vector<cublasLtMatmulHeuristicResult_t> found(
      static_cast<std::size_t>(std::max(most, 1)));
  int count = 0;
  cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
  session_->context.enter([&] {
    status = library.cublasLtMatmulAlgoGetHeuristic(
        session_->handle, described->operation, described->first,
        described->second, described->c, described->d, preference,
        static_cast<int>(found.size()), found.data(), &count);
  });
  std::vector<std::shared_ptr<CublasPlan>> plans;
  for (int i = 0; i < count; ++i)
    if (found[i].state == CUBLAS_STATUS_SUCCESS)
      plans.push_back(std::make_shared<LtPlan>(described, found[i].algo));
  if (status == CUBLAS_STATUS_NOT_SUPPORTED || plans.empty())
    userError("cuBLASLt {} has no way to multiply {}x{}x{} of {} to {}",
              version(), gemm.m, gemm.n, gemm.k, name(gemm.type),
              name(gemm.out));
  library.check(status, "cublasLtMatmulAlgoGetHeuristic",
                "asking for ways to multiply");
  return plans;
}

std::shared_ptr<CublasLt>
openCublasLt(Device &device, int ordinal,
             std::shared_ptr<const CudaDriver> driver,
             std::shared_ptr<const CublasLibrary> library) {
  return std::make_shared<LoadedCublasLt>(std::make_shared<const LtSession>(
      std::move(driver), ordinal, std::move(library),
      device.allocate(kWorkspaceBytes)));
}

std::shared_ptr<CublasLt> open_cublaslt(Device &device) {
  int ordinal = PrimaryContext::ordinalOf(device.name(), "cuBLASLt");
  return openCublasLt(device, ordinal, CudaDriver::ofProcess(),
                      CublasLibrary::find());
}

} // namespace kiln
