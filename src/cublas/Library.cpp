// Library: handles, their settings, and copies of matrices and vectors.
#include "cublas/Call.h"

#include <algorithm>
#include <fmt/format.h>

using namespace kiln;
using namespace kiln::cublas;
using cudart::Handles;

int kiln::cublas::refuse(const std::string &name) {
  cudart::Session::get().findings().unsupported(name, "",
                                                "CUBLAS_STATUS_NOT_SUPPORTED");
  return kNotSupported;
}

/// What every function that is not here does.
KILN_CUDA int kilnCublasNotSupported(const char *name) { return refuse(name); }

std::vector<double> kiln::cublas::readVector(const Access &access,
                                             const Matrix &x,
                                             std::int64_t step) {
  std::vector<double> values = access.read(x);
  if (step < 0)
    std::reverse(values.begin(), values.end());
  return values;
}

void kiln::cublas::writeVector(const Access &access, const Matrix &x,
                               std::int64_t step, std::vector<double> values) {
  if (step < 0)
    std::reverse(values.begin(), values.end());
  access.write(x, values);
}

double kiln::cublas::readScalar(const Access &access, const Library &library,
                                const void *from, Element element) {
  require(from != nullptr);
  Matrix one{"a scalar", reinterpret_cast<std::uint64_t>(from), element, 1, 1,
             1};
  if (library.arePointersOfDevice)
    return access.read(one).front();
  return numberAt(element, from);
}

void kiln::cublas::writeScalar(const Access &access, const Library &library,
                               void *to, Element element, double value) {
  require(to != nullptr);
  if (library.arePointersOfDevice)
    return access.write({"the result", reinterpret_cast<std::uint64_t>(to),
                         element, 1, 1, 1},
                        {value});
  putNumber(element, to, value);
}

Element kiln::cublas::elementOf(int dataType) {
  switch (dataType) {
  case 0:
    return Element::f32;
  case 1:
    return Element::f64;
  case 2:
    return Element::f16;
  case 3:
    return Element::i8;
  case 10:
    return Element::i32;
  case 14:
    return Element::bf16;
  default:
    throw BadArgument();
  }
}

KILN_CUDA int cublasCreate_v2(Library **library) {
  if (!library)
    return kInvalidValue;
  *library = new Library;
  Handles::get().add(*library, Handles::Kind::library);
  return kSuccess;
}

KILN_CUDA int cublasDestroy_v2(Library *library) {
  if (!Handles::get().remove(library, Handles::Kind::library))
    return kNotInitialized;
  delete library;
  return kSuccess;
}

/// Look at a handle, or change it.
template <typename Work>
static int withLibrary(Library *library, const Work &work) {
  if (!library || !Handles::get().has(library, Handles::Kind::library))
    return kNotInitialized;
  work();
  return kSuccess;
}

KILN_CUDA int cublasSetStream_v2(Library *library, CudaStream *stream) {
  return withLibrary(library, [&] {
    library->stream = stream;
    library->workspace = nullptr;
  });
}
KILN_CUDA int cublasGetStream_v2(Library *library, CudaStream **stream) {
  return withLibrary(library, [&] { *stream = library->stream; });
}
KILN_CUDA int cublasSetPointerMode_v2(Library *library, int mode) {
  return withLibrary(library, [&] { library->arePointersOfDevice = mode == 1; });
}
KILN_CUDA int cublasGetPointerMode_v2(Library *library, int *mode) {
  return withLibrary(library, [&] { *mode = library->arePointersOfDevice; });
}
// Precision and order: sums are of doubles here, and always in one order.
KILN_CUDA int cublasSetMathMode(Library *library, int mode) {
  return withLibrary(library, [&] { library->mathMode = mode; });
}
KILN_CUDA int cublasGetMathMode(Library *library, int *mode) {
  return withLibrary(library, [&] { *mode = library->mathMode; });
}
KILN_CUDA int cublasSetAtomicsMode(Library *library, int mode) {
  return withLibrary(library, [&] { library->atomicsMode = mode; });
}
KILN_CUDA int cublasGetAtomicsMode(Library *library, int *mode) {
  return withLibrary(library, [&] { *mode = library->atomicsMode; });
}
KILN_CUDA int cublasSetSmCountTarget(Library *library, int count) {
  return withLibrary(library, [&] { library->smCountTarget = count; });
}
KILN_CUDA int cublasGetSmCountTarget(Library *library, int *count) {
  return withLibrary(library, [&] { *count = library->smCountTarget; });
}
/// None is needed.
KILN_CUDA int cublasSetWorkspace_v2(Library *library, void *workspace,
                                    std::size_t bytes) {
  return withLibrary(library, [&] {
    library->workspace = workspace;
    library->workspaceBytes = bytes;
  });
}
KILN_CUDA int cublasGetVersion_v2(Library *, int *version) {
  if (!version)
    return kInvalidValue;
  *version = KILN_CUDART_MAJOR * 10000;
  return kSuccess;
}
KILN_CUDA int cublasGetProperty(int type, int *value) {
  if (!value || type < 0 || type > 2)
    return kInvalidValue;
  *value = type == 0 ? KILN_CUDART_MAJOR : 0;
  return kSuccess;
}
KILN_CUDA std::size_t cublasGetCudartVersion() {
  return KILN_CUDART_MAJOR * 1000;
}
KILN_CUDA int cublasLoggerConfigure(int, int, int, const char *) {
  return kSuccess; // what is wrong is said anyway
}

namespace {
struct StatusText {
  int code;
  const char *name, *text;
};
} // namespace
static constexpr StatusText kStatuses[] = {
    {0, "CUBLAS_STATUS_SUCCESS", "success"},
    {1, "CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    {3, "CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    {7, "CUBLAS_STATUS_INVALID_VALUE", "an unsupported value or parameter was "
                                       "passed to the function"},
    {8, "CUBLAS_STATUS_ARCH_MISMATCH", "the function requires an architectural "
                                       "feature absent from the device"},
    {11, "CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    {13, "CUBLAS_STATUS_EXECUTION_FAILED", "the function failed to launch on "
                                           "the GPU"},
    {14, "CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    {15, "CUBLAS_STATUS_NOT_SUPPORTED", "the functionality requested is not "
                                        "supported"},
};
static const StatusText *statusOf(int code) {
  for (const StatusText &status : kStatuses)
    if (status.code == code)
      return &status;
  return nullptr;
}
KILN_CUDA const char *cublasGetStatusName(int code) {
  const StatusText *status = statusOf(code);
  return status ? status->name : "CUBLAS_STATUS_UNKNOWN";
}
KILN_CUDA const char *cublasGetStatusString(int code) {
  const StatusText *status = statusOf(code);
  return status ? status->text : "an unknown error";
}

// Copies of columns, by the device's own.

/// Copy rows of some bytes between the host and the device.
static int copyRows(const void *from, std::size_t fromPitch, void *to,
                    std::size_t toPitch, std::size_t width, std::int64_t height,
                    CudaStream *stream, bool isAsync) {
  try {
    require(height >= 0 && width <= fromPitch && width <= toPitch);
    cudart::submit(stream,
                   cudart::CopyWork{
                       .to = reinterpret_cast<std::uint64_t>(to),
                       .from = reinterpret_cast<std::uint64_t>(from),
                       .toPitch = toPitch,
                       .fromPitch = fromPitch,
                       .width = width,
                       .height = static_cast<std::size_t>(height)});
    if (!isAsync)
      cudart::Session::get().device().synchronize(cudart::streamOf(stream));
    return kSuccess;
  } catch (const BadArgument &) {
    return kInvalidValue;
  } catch (const Error &error) {
    cudart::Session::get().findings().sayOnce(
        fmt::format("cublasSetMatrix: {}", error.message()));
    return 11;
  }
}

#define KILN_COPY(NAME)                                                        \
  KILN_CUDA int cublas##NAME##Matrix(int rows, int columns, int bytes,         \
                                     const void *from, int lda, void *to,      \
                                     int ldb) {                                \
    std::size_t size = static_cast<std::size_t>(bytes);                        \
    return copyRows(from, size * lda, to, size * ldb, size * rows, columns,    \
                    nullptr, false);                                           \
  }                                                                            \
  KILN_CUDA int cublas##NAME##MatrixAsync(int rows, int columns, int bytes,    \
                                          const void *from, int lda, void *to, \
                                          int ldb, CudaStream *stream) {       \
    std::size_t size = static_cast<std::size_t>(bytes);                        \
    return copyRows(from, size * lda, to, size * ldb, size * rows, columns,    \
                    stream, true);                                             \
  }                                                                            \
  KILN_CUDA int cublas##NAME##Vector(int count, int bytes, const void *from,   \
                                     int stepFrom, void *to, int stepTo) {     \
    std::size_t size = static_cast<std::size_t>(bytes);                        \
    return copyRows(from, size * stepFrom, to, size * stepTo, size, count,     \
                    nullptr, false);                                           \
  }                                                                            \
  KILN_CUDA int cublas##NAME##VectorAsync(int count, int bytes,                \
                                          const void *from, int stepFrom,      \
                                          void *to, int stepTo,                \
                                          CudaStream *stream) {                \
    std::size_t size = static_cast<std::size_t>(bytes);                        \
    return copyRows(from, size * stepFrom, to, size * stepTo, size, count,     \
                    stream, true);                                             \
  }
KILN_COPY(Set)
KILN_COPY(Get)
