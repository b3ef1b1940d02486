// Call: what every function of cuBLAS does around its work.
//
// The work is done when it is asked for, on the host, behind what is in the
// stream. Errors become those of cuBLAS.
#pragma once

#include "cublas/Matrix.h"
#include "cudart/CudaError.h"
#include "cudart/Handles.h"
#include "cudart/StreamHandles.h"
#include "cudart/graph/StreamCapture.h"
#include "cudart/runtime/CudaTypes.h"

#include <cstring>

namespace kiln::cublas {

enum Status : int {
  kSuccess = 0,
  kNotInitialized = 1,
  kAllocFailed = 3,
  kInvalidValue = 7,
  kExecutionFailed = 13,
  kInternalError = 14,
  kNotSupported = 15,
};

struct Library {
  CudaStream *stream = nullptr;
  bool arePointersOfDevice = false;
  int mathMode = 0, atomicsMode = 0, smCountTarget = 0;
  void *workspace = nullptr;
  std::size_t workspaceBytes = 0;
};

/// Thrown where an argument is wrong; the sentence has been said.
struct BadArgument {};

inline void require(bool isRight) {
  if (!isRight)
    throw BadArgument();
}

/// Name a function that is not supported, and count the call.
int refuse(const std::string &name);

template <typename Work>
int call(const char *name, Library *library, const Work &work) {
  using cudart::Handles;
  if (!library || !Handles::get().has(library, Handles::Kind::library))
    return kNotInitialized;
  cudart::Session &session = cudart::Session::get();
  if (session.findings().broken())
    return kExecutionFailed;
  try {
    CudaStream *stream = cudart::streamHandleOf(library->stream);
    if (cudart::StreamCapture::of(stream)) {
      cudart::StreamCapture::invalidate(stream);
      return refuse(std::string(name) + " in a stream capture");
    }
    session.device().synchronize(stream ? stream->stream : Stream());
    work(Access(name));
    session.findings().countHostCall();
    return session.findings().broken() ? kExecutionFailed : kSuccess;
  } catch (const BadArgument &) {
    return kInvalidValue;
  } catch (const BadAccess &) {
    session.findings().countHostCall();
    return kExecutionFailed;
  } catch (const std::bad_alloc &) {
    return kAllocFailed;
  } catch (const Error &error) {
    session.findings().sayOnce(std::string(name) + ": " + error.message());
    return kInternalError;
  }
}

/// Whether a matrix of the program's is transposed. Throws BadArgument.
inline bool isTransposed(int operation) {
  require(operation >= 0 && operation <= 2); // conjugation changes no real one
  return operation != 0;
}

/// A vector's elements are |step| apart; it is read backwards where step < 0.
inline Matrix vectorOf(const char *name, const void *x, Element element,
                       std::int64_t count, std::int64_t step) {
  auto address = reinterpret_cast<std::uint64_t>(x);
  if (std::abs(step) == 1)
    return {name, address, element, count, 1, count};
  return {name, address, element, 1, count, std::abs(step)};
}
/// Its numbers in order.
std::vector<double> readVector(const Access &access, const Matrix &x,
                               std::int64_t step);
void writeVector(const Access &access, const Matrix &x, std::int64_t step,
                 std::vector<double> values);

/// A number that the program points to, on the host or on the device.
double readScalar(const Access &access, const Library &library,
                  const void *from, Element element);
void writeScalar(const Access &access, const Library &library, void *to,
                 Element element, double value);

/// The element that a cudaDataType names. Throws BadArgument.
Element elementOf(int dataType);

} // namespace kiln::cublas
