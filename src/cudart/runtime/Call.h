// Call: what every function of the runtime does around its work: errors of Kiln
// become errors of CUDA, are remembered, and are told.
#pragma once

#include "cudart/Forked.h"
#include "cudart/Session.h"
#include "cudart/StreamHandles.h"
#include "cudart/graph/StreamCapture.h"
#include "cudart/runtime/CudaTypes.h"
#include "kiln/base/error.h"

namespace kiln::cudart {

/// Where something is, as the simulator counts.
inline std::uint64_t addressOf(const void *pointer) {
  return reinterpret_cast<std::uint64_t>(pointer);
}

/// The last error of this thread, until it is asked for.
cudaError_t &lastError();

/// Remember it, and return it.
cudaError_t noteError(cudaError_t error);

/// What CUDA calls an error that was thrown while `name` worked; it is told.
cudaError_t errorOf(const char *name, std::exception_ptr thrown);

/// CUDA permits no calls there; this one is told.
cudaError_t refuseInHostFunction(const char *name);

/// A function of the runtime as code calls it whose default stream is the
/// thread's own.
template <auto Function> struct PerThread;
template <typename Result, typename... Arguments,
          Result (*Function)(Arguments...)>
struct PerThread<Function> {
  static Result call(Arguments... arguments) {
    bool before = std::exchange(usesThreadStream(), true);
    Result result = Function(arguments...);
    usesThreadStream() = before;
    return result;
  }
};

/// What CUDA says against a launch before it is tried.
cudaError_t refusalOf(const Launch &launch);
/// What a launch attribute makes of a launch; those that are hints, or of no
/// consequence here, nothing.
void readAttribute(Launch &launch, int id,
                   const decltype(cudaLaunchAttribute::value) &value);
/// Where a variable of the program lies; null: it is none.
void *findSymbol(const void *symbol, std::size_t *bytes);
/// A copy in three dimensions; throws CudaError where it is between arrays.
CopyWork copyOf(const cudaMemcpy3DParms &copy);

/// Nothing works in a child of a process that has opened the device.
cudaError_t refuseInChild(const char *name);

/// Do the work of a function that does not wait for what it begins: how that
/// ends is for later calls to say. Where a launch was ended by an error, nothing
/// works any more, as on a GPU.
template <typename Work> cudaError_t begin(const char *name, const Work &work) {
  if (isForkedChild())
    return refuseInChild(name);
  if (isInHostFunction())
    return refuseInHostFunction(name);
  if (int broken = Session::get().findings().broken())
    return noteError(broken);
  cudaError_t error = cudaSuccess;
  try {
    error = work();
  } catch (...) {
    error = errorOf(name, std::current_exception());
  }
  return error == cudaSuccess || error == cudaErrorNotReady ? error
                                                            : noteError(error);
}

/// The same of any other: what it waited for may have gone wrong.
template <typename Work> cudaError_t call(const char *name, const Work &work) {
  cudaError_t error = begin(name, work);
  if (error != cudaSuccess || isForkedChild() || isInHostFunction())
    return error;
  int broken = Session::get().findings().broken();
  return broken ? noteError(broken) : error;
}

/// The same for a call that a capture of a stream may not permit.
template <typename Work>
cudaError_t callOutsideCapture(const char *name, const Work &work) {
  return call(name, [&]() -> cudaError_t {
    StreamCapture::checkPermitted();
    return work();
  });
}

} // namespace kiln::cudart
