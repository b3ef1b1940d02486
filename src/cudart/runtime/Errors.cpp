// Errors: their names, and the last one of each thread.
#include "cudart/Handles.h"
#include "cudart/runtime/Call.h"

#include <fmt/format.h>

#include <atomic>
#include <cstdio>
#include <new>
#include <unistd.h>

namespace kiln::cudart {

namespace {
struct ErrorText {
  int code;
  const char *name, *text;
};
} // namespace

static constexpr ErrorText kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {4, "cudaErrorCudartUnloading", "driver shutting down"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {12, "cudaErrorInvalidPitchValue", "invalid pitch argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {17, "cudaErrorInvalidDevicePointer", "invalid device pointer"},
    {21, "cudaErrorInvalidMemcpyDirection",
     "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {52, "cudaErrorMissingConfiguration",
     "__global__ function call is not configured"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {200, "cudaErrorInvalidKernelImage", "device kernel image is invalid"},
    {209, "cudaErrorNoKernelImageForDevice",
     "no kernel image is available for execution on the device"},
    {215, "cudaErrorUnsupportedLimit",
     "limit is not supported on this "
     "architecture"},
    {217, "cudaErrorPeerAccessUnsupported",
     "peer access is not supported between these two devices"},
    {218, "cudaErrorInvalidPtx", "a PTX JIT compilation failed"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress",
     "an illegal memory access was encountered"},
    {701, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {710, "cudaErrorAssert", "device-side assert triggered"},
    {712, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {720, "cudaErrorCooperativeLaunchTooLarge",
     "too many blocks in cooperative launch"},
    {800, "cudaErrorNotPermitted", "operation not permitted"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {912, "cudaErrorInvalidClusterSize", "misconfigured cluster launch"},
    {999, "cudaErrorUnknown", "unknown error"},
};

static const ErrorText *findError(int code) {
  for (const ErrorText &error : kErrors)
    if (error.code == code)
      return &error;
  return nullptr;
}

cudaError_t &lastError() {
  thread_local cudaError_t last = cudaSuccess;
  return last;
}

cudaError_t noteError(cudaError_t error) { return lastError() = error; }

bool &isInHostFunction() {
  thread_local bool isIn = false;
  return isIn;
}

cudaError_t refuseInHostFunction(const char *name) {
  Session::get().findings().sayOnce(fmt::format(
      "{} was called in a function of the host that a stream has called, where "
      "CUDA permits no calls; it returned cudaErrorNotPermitted",
      name));
  return noteError(cudaErrorNotPermitted);
}

cudaError_t refuseInChild(const char *name) {
  static std::atomic<bool> isSaid = false;
  if (!isSaid.exchange(true))
    ::dprintf(STDERR_FILENO,
              "kiln: %s was called in a forked process whose parent has used "
              "CUDA before; it returned cudaErrorInitializationError\n",
              name);
  return noteError(cudaErrorInitializationError);
}

cudaError_t errorOf(const char *name, std::exception_ptr thrown) {
  auto tell = [&](const std::string &message) {
    Session::get().findings().sayOnce(fmt::format("{}: {}", name, message));
  };
  try {
    std::rethrow_exception(thrown);
  } catch (const NoKernels &error) {
    tell(error.message());
    return cudaErrorNoKernelImageForDevice;
  } catch (const InvalidPtx &error) {
    tell(error.what());
    return cudaErrorInvalidPtx;
  } catch (const InvalidHandle &error) {
    tell(error.message());
    return cudaErrorInvalidResourceHandle;
  } catch (const UserError &error) {
    tell(error.what());
    return cudaErrorInvalidValue;
  } catch (const RuntimeError &error) {
    tell(error.message());
    return cudaErrorMemoryAllocation;
  } catch (const std::bad_alloc &) {
    return cudaErrorMemoryAllocation;
  } catch (const std::exception &error) {
    tell(error.what());
    return cudaErrorUnknown;
  }
}

} // namespace kiln::cudart

using namespace kiln::cudart;

KILN_CUDA cudaError_t cudaGetLastError() {
  cudaError_t error = lastError();
  lastError() = cudaSuccess;
  int broken = Session::get().findings().broken();
  return broken ? broken : error;
}

KILN_CUDA cudaError_t cudaPeekAtLastError() {
  int broken = Session::get().findings().broken();
  return broken ? broken : lastError();
}

KILN_CUDA const char *cudaGetErrorName(cudaError_t error) {
  const ErrorText *found = findError(error);
  return found ? found->name : "unrecognized error code";
}

KILN_CUDA const char *cudaGetErrorString(cudaError_t error) {
  const ErrorText *found = findError(error);
  return found ? found->text : "unrecognized error code";
}

/// What every function that Kiln does not have does: say its name once.
KILN_CUDA cudaError_t kilnCudaNotSupported(const char *name) {
  Session::get().findings().sayOnce(
      fmt::format("{} is not supported by Kiln; it returned "
                  "cudaErrorNotSupported",
                  name));
  return noteError(cudaErrorNotSupported);
}
