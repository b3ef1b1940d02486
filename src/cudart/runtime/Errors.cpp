// Errors: their names, and the last one of each thread.
#include "cudart/CudaError.h"
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
  const char *name, *driverName, *text;
};
} // namespace

static constexpr ErrorText kErrors[] = {
#define ERROR(NUMBER, RUNTIME, DRIVER, TEXT) {NUMBER, RUNTIME, DRIVER, TEXT},
#include "cudart/runtime/Errors.def"
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
  } catch (const CudaError &error) {
    tell(error.message());
    return error.code();
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

/// Of the driver; null: it has no such error.
KILN_CUDA const char *kilnCudaDriverErrorName(cudaError_t error) {
  const ErrorText *found = findError(error);
  return found ? found->driverName : nullptr;
}

/// What every function that Kiln does not have does: say its name once.
KILN_CUDA cudaError_t kilnCudaNotSupported(const char *name) {
  Session::get().findings().unsupported(name);
  return noteError(cudaErrorNotSupported);
}
