// CublasGrouped: cuBLAS's products of several groups in one call.
#include "support/Error.h"
#include "verify/CublasLt.h"
#include "verify/CudaLibrary.h"
#include "verify/PrimaryContext.h"

#include <dlfcn.h>

namespace kiln {

using namespace cublas;

CublasGrouped::~CublasGrouped() = default;

namespace {

using cublasHandle_t = struct cublasContext *;

/// The few functions of cuBLAS that are used, as its binary interface has them.
struct Library {
  explicit Library(const std::string &path) {
    // Never closed: the library has threads and exit handlers of its own.
    void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
      const char *why = dlerror();
      runtimeError("cuBLAS cannot be loaded: {}", why ? why : path);
    }
    auto load = [&](auto &call, const char *name) {
      call = reinterpret_cast<std::remove_reference_t<decltype(call)>>(
          dlsym(library, name));
      if (!call)
        runtimeError("{} has no {}; grouped products need cuBLAS 12.5 or newer",
                     path, name);
    };
    load(create, "cublasCreate_v2");
    load(destroy, "cublasDestroy_v2");
    load(version, "cublasGetVersion_v2");
    load(setStream, "cublasSetStream_v2");
    load(statusName, "cublasGetStatusName");
    load(multiply, "cublasGemmGroupedBatchedEx");
  }

  void check(cublasStatus_t status, const char *call) const {
    if (status == CUBLAS_STATUS_SUCCESS)
      return;
    const char *text = statusName(status);
    runtimeError("{} failed with {} ({})", call,
                 text ? text : "an unknown status", static_cast<int>(status));
  }

  cublasStatus_t (*create)(cublasHandle_t *) = nullptr;
  cublasStatus_t (*destroy)(cublasHandle_t) = nullptr;
  cublasStatus_t (*version)(cublasHandle_t, int *) = nullptr;
  cublasStatus_t (*setStream)(cublasHandle_t, cuda::CUstream) = nullptr;
  const char *(*statusName)(cublasStatus_t) = nullptr;
  cublasStatus_t (*multiply)(cublasHandle_t, const cublasOperation_t *,
                             const cublasOperation_t *, const int *,
                             const int *, const int *, const void *,
                             const void *const *, cudaDataType, const int *,
                             const void *const *, cudaDataType, const int *,
                             const void *, void *const *, cudaDataType,
                             const int *, int, const int *,
                             cublasComputeType_t) = nullptr;
};

struct GroupedSession {
  GroupedSession(std::shared_ptr<const CudaDriver> driver, int ordinal,
                 std::shared_ptr<const Library> libraryToUse)
      : library(std::move(libraryToUse)),
        context(std::move(driver), ordinal, "cuBLAS") {
    context.enter(
        [&] { library->check(library->create(&handle), "cublasCreate"); });
  }
  GroupedSession(const GroupedSession &) = delete;
  ~GroupedSession() {
    context.leave([&] { library->destroy(handle); });
  }

  const std::shared_ptr<const Library> library;
  const PrimaryContext context;
  cublasHandle_t handle = nullptr;
};

/// The products in cuBLAS's words, which knows columns alone: the transposed of
/// D[g] is B[g] * A[g]^T. Groups without rows are none.
struct Products {
  std::vector<cublasOperation_t> transposed, plain;
  std::vector<int> m, n, k, ones;
  std::vector<float> alpha, beta;
  cudaDataType type, out;
  Buffer pointers; ///< to B, A and D, of each group

  Products(Device &device, const CublasGroups &groups, const Buffer &a,
           const Buffer &b, const Buffer &d)
      : type(groups.type == Type::bf16 ? CUDA_R_16BF : CUDA_R_16F),
        out(groups.out == Type::f32    ? CUDA_R_32F
            : groups.out == Type::bf16 ? CUDA_R_16BF
                                       : CUDA_R_16F) {
    std::vector<std::uint64_t> lists[3];
    std::uint64_t row = 0;
    auto bytes = static_cast<std::uint64_t>(size_bytes(groups.type));
    auto outBytes = static_cast<std::uint64_t>(size_bytes(groups.out));
    for (std::size_t g = 0; g < groups.rows.size(); ++g) {
      if (groups.rows[g] == 0)
        continue;
      lists[0].push_back(b.address() + g * groups.n * groups.k * bytes);
      lists[1].push_back(a.address() + row * groups.k * bytes);
      lists[2].push_back(d.address() + row * groups.n * outBytes);
      n.push_back(groups.rows[g]);
      row += static_cast<std::uint64_t>(groups.rows[g]);
    }
    std::size_t count = n.size();
    transposed.assign(count, CUBLAS_OP_T);
    plain.assign(count, CUBLAS_OP_N);
    m.assign(count, groups.n);
    k.assign(count, groups.k);
    ones.assign(count, 1);
    alpha.assign(count, 1);
    beta.assign(count, 0);
    std::vector<std::uint64_t> all;
    for (const auto &list : lists)
      all.insert(all.end(), list.begin(), list.end());
    pointers = device.allocate(std::max<std::size_t>(8 * all.size(), 8));
    if (!all.empty())
      device.copy_in(pointers, all.data(), 8 * all.size());
  }

  cublasStatus_t run(const GroupedSession &session,
                     const Stream &stream) const {
    const Library &library = *session.library;
    auto count = static_cast<int>(n.size());
    if (count == 0)
      return CUBLAS_STATUS_SUCCESS;
    auto list = [&](std::uint64_t index) {
      return reinterpret_cast<void **>(
          pointers.address() + 8 * index * static_cast<std::uint64_t>(count));
    };
    cublasStatus_t status = library.setStream(
        session.handle, static_cast<cuda::CUstream>(stream.native()));
    if (status != CUBLAS_STATUS_SUCCESS)
      return status;
    return library.multiply(session.handle, transposed.data(), plain.data(),
                            m.data(), n.data(), k.data(), alpha.data(), list(0),
                            type, k.data(), list(1), type, k.data(),
                            beta.data(), list(2), out, m.data(), count,
                            ones.data(), CUBLAS_COMPUTE_32F);
  }
};

class LoadedCublasGrouped final : public CublasGrouped {
public:
  LoadedCublasGrouped(Device &device,
                      std::shared_ptr<const GroupedSession> session)
      : device_(device), session_(std::move(session)) {}

  std::string version() const override {
    int number = 0;
    session_->library->check(
        session_->library->version(session_->handle, &number),
        "cublasGetVersion");
    return fmt::format("{}.{}.{}", number / 10000, number / 100 % 100,
                       number % 100);
  }

  std::function<void(const Stream &)> plan(const CublasGroups &groups,
                                           const Buffer &a, const Buffer &b,
                                           const Buffer &d) override {
    auto products = std::make_shared<const Products>(device_, groups, a, b, d);
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    session_->context.enter([&] { status = products->run(*session_, {}); });
    if (status == CUBLAS_STATUS_NOT_SUPPORTED)
      userError("cuBLAS {} has no grouped product of {} to {}", version(),
                name(groups.type), name(groups.out));
    session_->library->check(status, "cublasGemmGroupedBatchedEx");
    return [session = session_, products](const Stream &stream) {
      session->context.enter([&] {
        session->library->check(products->run(*session, stream),
                                "cublasGemmGroupedBatchedEx");
      });
    };
  }

private:
  Device &device_;
  std::shared_ptr<const GroupedSession> session_;
};

} // namespace

std::shared_ptr<CublasGrouped>
openCublasGrouped(Device &device, int ordinal,
                  std::shared_ptr<const CudaDriver> driver,
                  const std::string &library) {
  return std::make_shared<LoadedCublasGrouped>(
      device, std::make_shared<const GroupedSession>(
                  std::move(driver), ordinal,
                  std::make_shared<const Library>(library)));
}

std::shared_ptr<CublasGrouped> open_cublas_grouped(Device &device) {
  int ordinal = PrimaryContext::ordinalOf(device.name(), "cuBLAS");
  std::string library = findCudaLibrary({"libcublas.so.13", "libcublas.so.12"});
  if (library.empty())
    runtimeError("libcublas.so.13 and .12 not found by the loader or in the "
                 "folder CUDA_HOME names; install cuBLAS 12.5 or newer to "
                 "compare with it");
  return openCublasGrouped(device, ordinal, CudaDriver::ofProcess(), library);
}

} // namespace kiln
