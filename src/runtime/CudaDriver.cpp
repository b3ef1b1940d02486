// CudaDriver: load the CUDA driver and put its errors into words.
//
// A result code alone rarely says what to do about it, and the remedy depends
// on the code more than on the call. So the remedies are here, in one table,
// and every failing call comes through `fail`.
#include "runtime/CudaDriver.h"

#include "support/Error.h"

#include <dlfcn.h>

namespace kiln {

using namespace cuda;

static constexpr const char *kInstall =
    "Install the NVIDIA driver, 535 or newer; no CUDA toolkit is needed.";

/// What to do about a result, or what it means for the process; may be empty.
static const char *remedy(CUresult result) {
  switch (result) {
  case CUDA_ERROR_NOT_INITIALIZED:
    return "CUDA cannot be used in a process that was forked after CUDA was "
           "started: start it in the child only.";
  case CUDA_ERROR_STUB_LIBRARY:
    return "This libcuda is the CUDA toolkit's stub for linking: remove its "
           "folder from the library path. Install the NVIDIA driver, 535 or "
           "newer.";
  case CUDA_ERROR_NO_DEVICE:
    return "The driver is installed but finds no GPU: see what nvidia-smi "
           "lists, whether CUDA_VISIBLE_DEVICES hides it, and whether the "
           "container was given one.";
  case CUDA_ERROR_SYSTEM_NOT_READY:
    return "The machine is still starting its GPUs: see that the NVIDIA "
           "fabric manager runs.";
  case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    return "libcuda.so.1 and the NVIDIA kernel module have different versions: "
           "reboot, or reload the module.";
  case CUDA_ERROR_NO_BINARY_FOR_GPU:
  case CUDA_ERROR_INVALID_PTX:
    return "The driver cannot compile this PTX for this GPU: PTX for a target "
           "such as sm_90a runs on that architecture only.";
  case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    return "libnvidia-ptxjitcompiler.so.1, a part of the NVIDIA driver, is "
           "missing: install the whole driver.";
  case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    return "The driver is too old for the .version of this PTX: update the "
           "NVIDIA driver.";
  case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
    return "A CTA needs more registers or shared memory than an SM has: use "
           "fewer threads, or compile the kernel with fewer registers.";
  case CUDA_ERROR_INVALID_CLUSTER_SIZE:
    return "The GPU cannot place a cluster of this size: 8 CTAs are portable, "
           "16 are the most, and shared memory must leave room for them.";
  case CUDA_ERROR_ILLEGAL_ADDRESS:
  case CUDA_ERROR_LAUNCH_TIMEOUT:
  case CUDA_ERROR_ASSERT:
  case CUDA_ERROR_HARDWARE_STACK_ERROR:
  case CUDA_ERROR_ILLEGAL_INSTRUCTION:
  case CUDA_ERROR_MISALIGNED_ADDRESS:
  case CUDA_ERROR_INVALID_ADDRESS_SPACE:
  case CUDA_ERROR_INVALID_PC:
  case CUDA_ERROR_LAUNCH_FAILED:
    return "The kernel trapped and the context is lost: every later call on "
           "this GPU fails too. Start a fresh process.";
  default:
    return "";
  }
}

/// "12.4" of 12040.
static std::string formatVersion(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// The function's address in the library; the error names it where it lacks.
static void *findSymbol(void *library, const std::string &path,
                        const char *name) {
  if (void *address = dlsym(library, name))
    return address;
  std::string version = "of unknown version";
  int number = 0;
  if (auto getVersion = reinterpret_cast<CUresult (*)(int *)>(
          dlsym(library, "cuDriverGetVersion"));
      getVersion && getVersion(&number) == CUDA_SUCCESS)
    version = fmt::format("for CUDA {}", formatVersion(number));
  runtimeError("the CUDA driver {} has no {}: it is a driver {}, Kiln needs "
               "one for CUDA 12.2 or newer. {}",
               path, name, version, kInstall);
}

// The library is never closed: the driver has threads and exit handlers of its
// own, and memory may be freed as late as by the destructor of a static.
CudaDriver::CudaDriver(void *library, const std::string &path) {
#define KILN_LOAD_CALL(call, symbol, ...)                                      \
  call.function = reinterpret_cast<decltype(call.function)>(                   \
      findSymbol(library, path, #symbol));
  KILN_CUDA_SYMBOLS(KILN_LOAD_CALL)
#undef KILN_LOAD_CALL
  call(cuInit, "starting CUDA", 0u);
}

std::shared_ptr<const CudaDriver> CudaDriver::load(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    runtimeError("{} not found: {}. {}", path, why ? why : "no reason given",
                 kInstall);
  }
  // Kiln's own libcuda has this function: a simulator is not a GPU.
  if (dlsym(library, "kilnCudaDriver")) {
    dlclose(library);
    runtimeError("{} is Kiln's own, for programs on the simulator (kiln run); "
                 "the driver's was not found: remove the folder of Kiln's CUDA "
                 "libraries from LD_LIBRARY_PATH. {}",
                 path, kInstall);
  }
  return std::shared_ptr<const CudaDriver>(new CudaDriver(library, path));
}

/// Load libcuda.so.1, or libcuda.so where only that exists.
static std::shared_ptr<const CudaDriver> loadInstalled() {
  // The second name is tried only where the first is absent, so that what is
  // wrong with a driver that is there is not hidden behind "not found".
  for (const char *name : {"libcuda.so.1", "libcuda.so"}) {
    if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
      dlclose(library);
      return CudaDriver::load(name);
    }
  }
  return CudaDriver::load("libcuda.so.1");
}

std::shared_ptr<const CudaDriver> CudaDriver::ofProcess() {
  // A static whose initialisation throws is tried again at the next call.
  static const std::shared_ptr<const CudaDriver> driver = loadInstalled();
  return driver;
}

void CudaDriver::fail(CUresult result, const char *call,
                      const std::string &what,
                      const std::string &detail) const {
  const char *name = nullptr;
  const char *text = nullptr;
  if (cuGetErrorName.function(result, &name) != CUDA_SUCCESS || !name)
    name = "an unknown result";
  if (cuGetErrorString.function(result, &text) != CUDA_SUCCESS || !text)
    text = "the driver has no text for it";
  std::string message =
      fmt::format("{} failed with {} ({}: {}) while {}.", call, name,
                  static_cast<int>(result), text, what);
  if (const char *advice = remedy(result); *advice)
    message += fmt::format(" {}", advice);
  if (!detail.empty())
    message += fmt::format("\n{}", detail);
  throw RuntimeError(std::move(message));
}

std::string CudaDriver::version() const {
  int version = 0;
  call(cuDriverGetVersion, "asking for the driver's version", &version);
  return formatVersion(version);
}

} // namespace kiln
