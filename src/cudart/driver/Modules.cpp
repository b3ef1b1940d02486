// Modules: PTX that programs load by themselves, and launches of its kernels.
#include "cudart/Fatbin.h"
#include "cudart/Handles.h"
#include "cudart/driver/Driver.h"
#include "kiln/base/file.h"

#include <memory>

using namespace kiln::cudart;

/// Images that Kiln has copied, for as long as the process lives.
static const void *keep(std::string text) {
  static std::mutex mutex;
  static auto *kept = new std::vector<std::unique_ptr<std::string>>;
  std::lock_guard lock(mutex);
  kept->push_back(std::make_unique<std::string>(std::move(text)));
  return kept->back()->c_str();
}

/// PTX may be gone after the call; fat binaries belong to the program.
static const void *keepImage(const void *image) {
  return isText(image) ? keep(textOf(image)) : image;
}

/// A module of the program from now on, if its kernels can be read.
static cudaError_t load(CUmodule *module, const void *image) {
  CUmodule made = Session::get().addModule(image, false);
  try {
    made->get();
  } catch (...) {
    Session::get().removeModule(made);
    throw;
  }
  Handles::get().add(made, Handles::Kind::module);
  *module = made;
  return cudaSuccess;
}

void checkModule(CUmodule module) {
  Handles::get().check(module, Handles::Kind::module);
}

bool isMade(CUfunction function) {
  return function && Session::get().findFunction(function) == function;
}

KILN_CUDA CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  return driverCall("cuModuleLoadData", [&]() -> CUresult {
    if (!module || !image)
      return CUDA_ERROR_INVALID_VALUE;
    return load(module, keepImage(image));
  });
}
KILN_CUDA CUresult cuModuleLoadDataEx(CUmodule *module, const void *image,
                                      unsigned, int *, void **) {
  return cuModuleLoadData(module, image);
}
KILN_CUDA CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image) {
  return cuModuleLoadData(module, image);
}
KILN_CUDA CUresult cuModuleLoad(CUmodule *module, const char *path) {
  return driverCall("cuModuleLoad", [&]() -> CUresult {
    if (!module || !path)
      return CUDA_ERROR_INVALID_VALUE;
    return load(module, keep(kiln::read_file(path)));
  });
}
KILN_CUDA CUresult cuModuleUnload(CUmodule module) {
  return driverCall("cuModuleUnload", [&] {
    checkModule(module);
    Session::get().device().synchronize();
    Handles::get().remove(module, Handles::Kind::module);
    Session::get().removeModule(module);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuModuleGetFunction(CUfunction *function, CUmodule module,
                                       const char *name) {
  return driverCall("cuModuleGetFunction", [&]() -> CUresult {
    checkModule(module);
    if (!function || !name)
      return CUDA_ERROR_INVALID_VALUE;
    std::vector<std::string> names = module->get().entries();
    if (std::find(names.begin(), names.end(), name) == names.end())
      return CUDA_ERROR_NOT_FOUND;
    *function = Session::get().functionOf(module, name);
    return cudaSuccess;
  });
}

KILN_CUDA CUresult cuModuleGetGlobal_v2(CUdeviceptr *address,
                                        std::size_t *bytes, CUmodule module,
                                        const char *name) {
  return driverCall("cuModuleGetGlobal", [&]() -> CUresult {
    checkModule(module);
    if (!name)
      return CUDA_ERROR_INVALID_VALUE;
    try {
      kiln::Buffer buffer = module->get().variable(name);
      if (address)
        *address = buffer.address();
      if (bytes)
        *bytes = buffer.bytes();
    } catch (const kiln::UserError &) {
      return CUDA_ERROR_NOT_FOUND;
    }
    return cudaSuccess;
  });
}

// Launches.

/// Parameters by pointers, or packed (CU_LAUNCH_PARAM_BUFFER_POINTER).
static std::vector<void *> parametersOf(CUfunction function, void **parameters,
                                        void **extra) {
  const kiln::EntryInfo &entry = function->entry();
  std::vector<void *> pointers;
  char *packed = nullptr;
  std::size_t bytes = 0;
  for (; extra && *extra; extra += 2)
    if (*extra == reinterpret_cast<void *>(1))
      packed = static_cast<char *>(extra[1]);
    else if (*extra == reinterpret_cast<void *>(2))
      bytes = *static_cast<std::size_t *>(extra[1]);
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    if (!packed && !parameters)
      throw kiln::UserError(function->name +
                            " takes parameters and was given none");
    if (!packed) {
      pointers.push_back(parameters[i]);
      continue;
    }
    if (entry.parameter_offsets[i] + entry.parameter_bytes[i] > bytes)
      throw kiln::UserError(function->name +
                            " was given fewer bytes of parameters than it "
                            "takes");
    pointers.push_back(packed + entry.parameter_offsets[i]);
  }
  return pointers;
}

KILN_CUDA CUresult cuLaunchKernelEx(const CUlaunchConfig *config,
                                    CUfunction function, void **parameters,
                                    void **extra) {
  std::vector<void *> pointers;
  CUresult error = driverCall("cuLaunchKernelEx", [&]() -> cudaError_t {
    if (!isMade(function))
      return cudaErrorInvalidResourceHandle;
    pointers = parametersOf(function, parameters, extra);
    return cudaSuccess;
  });
  if (error)
    return error;
  cudaLaunchConfig_t runtime = runtimeConfig(*config);
  return cudaLaunchKernelExC(&runtime, function, pointers.data());
}

KILN_CUDA CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy,
                                  unsigned gz, unsigned bx, unsigned by,
                                  unsigned bz, unsigned smemBytes,
                                  cudaStream_t stream, void **parameters,
                                  void **extra) {
  CUlaunchConfig config{{gx, gy, gz}, {bx, by, bz}, smemBytes,
                        stream,       nullptr,      0};
  return cuLaunchKernelEx(&config, function, parameters, extra);
}

KILN_CUDA CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned gx,
                                             unsigned gy, unsigned gz,
                                             unsigned bx, unsigned by,
                                             unsigned bz, unsigned smemBytes,
                                             cudaStream_t stream,
                                             void **parameters) {
  cudaLaunchAttribute cooperative{};
  cooperative.id = cudaLaunchAttributeCooperative;
  cooperative.value.cooperative = 1;
  CUlaunchConfig config{{gx, gy, gz}, {bx, by, bz}, smemBytes,
                        stream,       &cooperative, 1};
  return cuLaunchKernelEx(&config, function, parameters, nullptr);
}
KILN_CUDA_PLAIN(cuModuleGetGlobal, _v2)
