// DriverEntry: functions of the driver by their names, from Kiln's own.
#include "cudart/runtime/Call.h"

#include <dlfcn.h>

#include <string>

using namespace kiln::cudart;

/// Kiln's libcuda.so.1, which lies beside this library; null: it does not.
static void *driverLibrary() {
  static void *library = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<void *>(&driverLibrary), &info);
    std::string path = info.dli_fname ? info.dli_fname : "";
    path.resize(path.rfind('/') + 1);
    return dlopen((path + "libcuda.so.1").c_str(), RTLD_NOW | RTLD_LOCAL);
  }();
  return library;
}

KILN_CUDA cudaError_t cudaGetDriverEntryPoint(const char *name, void **function,
                                              unsigned long long, int *status) {
  return call("cudaGetDriverEntryPoint", [&]() -> cudaError_t {
    using Find = void *(const char *);
    auto *find = driverLibrary()
                     ? reinterpret_cast<Find *>(
                           dlsym(driverLibrary(), "kilnCudaDriverFunction"))
                     : nullptr;
    *function = find ? find(name) : nullptr;
    if (status)
      *status = *function ? 0 : 1;
    if (*function)
      return cudaSuccess;
    // The newer forms report it in the status alone.
    return status ? cudaSuccess : cudaErrorSymbolNotFound;
  });
}
KILN_CUDA_PER_THREAD(cudaGetDriverEntryPoint, _ptsz)

KILN_CUDA cudaError_t cudaGetDriverEntryPointByVersion(const char *name,
                                                       void **function,
                                                       unsigned,
                                                       unsigned long long flags,
                                                       int *status) {
  return cudaGetDriverEntryPoint(name, function, flags, status);
}
KILN_CUDA_PER_THREAD(cudaGetDriverEntryPointByVersion, _ptsz)

KILN_CUDA cudaError_t kilnCudaCall(const char *name,
                                   cudaError_t (*work)(void *), void *data) {
  return call(name, [&] { return work(data); });
}
