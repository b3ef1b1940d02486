// Call: what every function of the runtime does around its work: errors of Kiln
// become errors of CUDA, are remembered, and are told.
#pragma once

#include "cudart/Forked.h"
#include "cudart/Session.h"
#include "cudart/runtime/CudaTypes.h"
#include "kiln/base/error.h"

#include <array>
#include <map>

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

/// Whether this thread is in a function of the host that a stream has called.
bool &isInHostFunction();
/// CUDA permits no calls there; this one is told.
cudaError_t refuseInHostFunction(const char *name);

/// Nothing works in a child of a process that has opened the device.
cudaError_t refuseInChild(const char *name);

/// Do the work of a function. Where a launch was ended by an error, nothing
/// works any more, as on a GPU.
template <typename Work> cudaError_t call(const char *name, const Work &work) {
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
  // What it waited for may have gone wrong.
  if (error == cudaSuccess)
    error = Session::get().findings().broken();
  return error == cudaSuccess || error == cudaErrorNotReady ? error
                                                            : noteError(error);
}

/// The device's stream behind a handle; the default one for 0, 1 and 2.
const Stream &streamOf(cudaStream_t stream);

} // namespace kiln::cudart

/// A stream as programs hold it.
struct CudaStream {
  kiln::Stream stream;
  unsigned flags = 0;
  int priority = 0;
  unsigned long long id = 0;
  /// What was set of cudaStreamSetAttribute's, by its number.
  std::map<int, std::array<std::byte, 64>> attributes = {};
};

struct CudaEvent {
  kiln::Event event;
  unsigned flags = 0;
  bool isRecorded = false;
};
