// ProcAddress: functions of the driver by their names and versions.
#include "cudart/driver/Driver.h"

#include <cstring>
#include <dlfcn.h>
#include <string>

/// How Kiln's own loader tells this library from a driver.
KILN_CUDA int kilnCudaDriver() { return 1; }

namespace {
/// Functions whose versions take different parameters, newest first: since
/// which version of CUDA a name means which function.
struct VersionedName {
  const char *name;
  int since;
  const char *function;
};
} // namespace
static constexpr VersionedName kVersionedNames[] = {
    {"cuCtxCreate", 12050, "cuCtxCreate_v4"},
    {"cuCtxCreate", 11040, "cuCtxCreate_v3"},
    {"cuCtxCreate", 0, "cuCtxCreate_v2"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 0, "cuGetProcAddress"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamGetCaptureInfo", 11030, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamGetCaptureInfo", 0, "cuStreamGetCaptureInfo"},
};

/// This library, whoever has loaded it.
static void *self() {
  static void *library = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void *>(&kilnCudaDriver), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return library;
}

extern "C" void *const kilnStubs[]; ///< up to a null

/// A function of that name; null: there is none, or it only says so.
static void *own(const char *name) {
  void *found = dlsym(self(), name);
  for (void *const *stub = kilnStubs; found && *stub; ++stub)
    if (found == *stub)
      return nullptr;
  return found;
}

/// What a name means to a program of some version; null: there is none.
static void *findFunction(const char *name, int version) {
  for (const VersionedName &row : kVersionedNames)
    if (std::strcmp(row.name, name) == 0 && version >= row.since)
      return own(row.function);
  for (const char *suffix : {"_v2", ""})
    if (void *found = own((std::string(name) + suffix).c_str()))
      return found;
  return nullptr;
}

/// Later than every version that there is.
static constexpr int kNewest = 1'000'000;

/// The newest version of a function: cuMemAlloc is cuMemAlloc_v2.
KILN_CUDA void *kilnCudaDriverFunction(const char *name) {
  return findFunction(name, kNewest);
}

KILN_CUDA CUresult cuGetProcAddress_v2(const char *name, void **function,
                                       int version, std::uint64_t,
                                       int *status) {
  constexpr int kFound = 0, kNotFound = 1;
  if (!name || !function)
    return CUDA_ERROR_INVALID_VALUE;
  *function = findFunction(name, version);
  if (status)
    *status = *function ? kFound : kNotFound;
  return *function ? static_cast<int>(cudaSuccess)
                   : static_cast<int>(CUDA_ERROR_NOT_FOUND);
}
KILN_CUDA CUresult cuGetProcAddress(const char *name, void **function,
                                    int version, std::uint64_t flags) {
  return cuGetProcAddress_v2(name, function, version, flags, nullptr);
}

/// Tables of functions that only NVIDIA's own libraries know. NVRTC asks for
/// one and goes on without it, but not without this function.
KILN_CUDA CUresult cuGetExportTable(const void **table, const void *) {
  if (!table)
    return CUDA_ERROR_INVALID_VALUE;
  *table = nullptr;
  return CUDA_ERROR_NOT_SUPPORTED;
}
