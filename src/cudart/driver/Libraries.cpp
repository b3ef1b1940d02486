// Libraries: modules that no context owns, and the kernels in them.
#include "cudart/driver/Driver.h"
#include "support/text/PtxText.h"

#include <algorithm>

using namespace kiln::cudart;

KILN_CUDA CUresult cuLibraryLoadData(CUmodule *library, const void *image,
                                     int *, void **, unsigned, int *, void **,
                                     unsigned) {
  return cuModuleLoadData(library, image);
}
KILN_CUDA CUresult cuLibraryLoadFromFile(CUmodule *library, const char *path,
                                         int *, void **, unsigned, int *,
                                         void **, unsigned) {
  return cuModuleLoad(library, path);
}
KILN_CUDA CUresult cuLibraryUnload(CUmodule library) {
  return cuModuleUnload(library);
}
KILN_CUDA CUresult cuLibraryGetKernel(CUfunction *kernel, CUmodule library,
                                      const char *name) {
  return cuModuleGetFunction(kernel, library, name);
}
KILN_CUDA CUresult cuLibraryGetModule(CUmodule *module, CUmodule library) {
  return driverCall("cuLibraryGetModule", [&]() -> CUresult {
    checkModule(library);
    if (!module)
      return CUDA_ERROR_INVALID_VALUE;
    *module = library;
    return cudaSuccess;
  });
}
KILN_CUDA CUresult cuLibraryGetGlobal(CUdeviceptr *address, std::size_t *bytes,
                                      CUmodule library, const char *name) {
  return cuModuleGetGlobal_v2(address, bytes, library, name);
}

/// Whether the statement that declares a variable makes it a managed one.
static bool isManaged(const ProgramModule &module, const char *name) {
  for (const std::string &text : module.texts()) {
    std::string ptx = kiln::blankCommentsAndStrings(text);
    std::size_t at = kiln::findWord(ptx, name);
    if (at == std::string::npos)
      continue;
    std::size_t begin = ptx.find_last_of(";}", at);
    begin = begin == std::string::npos ? 0 : begin;
    return ptx.substr(begin, at - begin).find(".managed") != std::string::npos;
  }
  return false;
}

KILN_CUDA CUresult cuLibraryGetManaged(CUdeviceptr *address, std::size_t *bytes,
                                       CUmodule library, const char *name) {
  CUresult error = driverCall("cuLibraryGetManaged", [&]() -> CUresult {
    checkModule(library);
    if (!name)
      return CUDA_ERROR_INVALID_VALUE;
    return isManaged(*library, name) ? static_cast<int>(cudaSuccess)
                                     : static_cast<int>(CUDA_ERROR_NOT_FOUND);
  });
  return error ? error : cuModuleGetGlobal_v2(address, bytes, library, name);
}

static CUresult countKernels(const char *call, unsigned *count,
                             CUmodule library) {
  return driverCall(call, [&]() -> CUresult {
    checkModule(library);
    if (!count)
      return CUDA_ERROR_INVALID_VALUE;
    *count = static_cast<unsigned>(library->get().entries().size());
    return cudaSuccess;
  });
}

/// As many of them as there is room for.
static CUresult listKernels(const char *call, CUfunction *kernels,
                            unsigned room, CUmodule library) {
  return driverCall(call, [&]() -> CUresult {
    checkModule(library);
    if (!kernels && room > 0)
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string> names = library->get().entries();
    for (std::size_t i = 0; i < std::min<std::size_t>(room, names.size()); ++i)
      kernels[i] = Session::get().functionOf(library, names[i]);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuLibraryGetKernelCount(unsigned *count, CUmodule library) {
  return countKernels("cuLibraryGetKernelCount", count, library);
}
KILN_CUDA CUresult cuLibraryEnumerateKernels(CUfunction *kernels, unsigned room,
                                             CUmodule library) {
  return listKernels("cuLibraryEnumerateKernels", kernels, room, library);
}
KILN_CUDA CUresult cuModuleGetFunctionCount(unsigned *count, CUmodule module) {
  return countKernels("cuModuleGetFunctionCount", count, module);
}
KILN_CUDA CUresult cuModuleEnumerateFunctions(CUfunction *functions,
                                              unsigned room, CUmodule module) {
  return listKernels("cuModuleEnumerateFunctions", functions, room, module);
}
/// Modules are loaded when they are handed over.
KILN_CUDA CUresult cuModuleGetLoadingMode(int *mode) {
  constexpr int kEager = 1;
  if (!mode)
    return CUDA_ERROR_INVALID_VALUE;
  *mode = kEager;
  return cudaSuccess;
}
