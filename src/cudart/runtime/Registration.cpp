// Registration: what nvcc's code tells the runtime before main, and how its
// launches find it again.
#include "cudart/runtime/Call.h"

using namespace kiln::cudart;

KILN_CUDA void **__cudaRegisterFatBinary(void *wrapper) {
  return reinterpret_cast<void **>(Session::get().addModule(wrapper, true));
}

KILN_CUDA void __cudaRegisterFatBinaryEnd(void **) {}

KILN_CUDA void __cudaUnregisterFatBinary(void **) {
  // At the end of the program, whose destructors may still use it.
}

KILN_CUDA void __cudaRegisterFunction(void **module, const char *host, char *,
                                      const char *name, int, void *, void *,
                                      void *, void *, int *) {
  Session::get().addFunction(host, reinterpret_cast<ProgramModule *>(module),
                             name);
}

KILN_CUDA void __cudaRegisterVar(void **module, char *host, char *,
                                 const char *name, int, std::size_t bytes, int,
                                 int) {
  Session::get().addVariable(
      host, {reinterpret_cast<ProgramModule *>(module), name, bytes, nullptr});
}

KILN_CUDA void __cudaRegisterHostVar(void **, const char *, char *,
                                     std::size_t) {}

KILN_CUDA void __cudaRegisterManagedVar(void **module, void **host, char *,
                                        const char *name, int,
                                        std::size_t bytes, int, int) {
  Session::get().addVariable(
      host, {reinterpret_cast<ProgramModule *>(module), name, bytes, host});
}

KILN_CUDA void __cudaRegisterUnifiedTable(void **, void *) {}

/// Called before the host first uses a managed variable.
KILN_CUDA char __cudaInitModule(void **) {
  call("__cudaInitModule", [] {
    Session::get().placeManaged();
    return cudaSuccess;
  });
  return 1;
}

namespace {
struct Configuration {
  dim3 grid, block;
  std::size_t dynamicSmemBytes;
  void *stream;
};
} // namespace

/// Between the chevrons and the call that follows them.
static std::vector<Configuration> &configurations() {
  thread_local std::vector<Configuration> stack;
  return stack;
}

KILN_CUDA unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block,
                                               std::size_t dynamicSmemBytes,
                                               void *stream) {
  configurations().push_back({grid, block, dynamicSmemBytes, stream});
  return 0;
}

KILN_CUDA cudaError_t __cudaPopCallConfiguration(dim3 *grid, dim3 *block,
                                                 std::size_t *dynamicSmemBytes,
                                                 void *stream) {
  if (configurations().empty())
    return noteError(cudaErrorMissingConfiguration);
  Configuration last = configurations().back();
  configurations().pop_back();
  *grid = last.grid;
  *block = last.block;
  *dynamicSmemBytes = last.dynamicSmemBytes;
  *static_cast<void **>(stream) = last.stream;
  return cudaSuccess;
}
