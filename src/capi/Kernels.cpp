// Kernels: saved kernels, their contracts and launches, in the C interface.
#include "capi/Handles.h"
#include "support/Error.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace kiln;
using namespace kiln::capi;

kiln_error *kiln_kernel_load(const char *path, kiln_kernel **kernel) {
  return attempt([&] {
    require(path, "path");
    require(kernel, "kernel");
    *kernel = new kiln_kernel{Kernel::load(path)};
  });
}
kiln_error *kiln_kernel_json(kiln_kernel *kernel, const char **text) {
  return attempt([&] {
    require(kernel, "kernel");
    require(text, "text");
    if (kernel->json.empty())
      kernel->json = kernel->kernel.serialize();
    *text = kernel->json.c_str();
  });
}
kiln_error *kiln_kernel_save(const kiln_kernel *kernel, const char *path) {
  return attempt([&] {
    require(kernel, "kernel");
    require(path, "path");
    kernel->kernel.save(path);
  });
}

/// What libkiln has for us (KernelPlugin.cpp): the bytes of a saved kernel, or a
/// message and an exit status; both are to be freed.
using BuildKernel = int(const char *, const char *, const char *, const char *,
                        int, char **, std::size_t *);

static BuildKernel *loadCompiler(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    runtimeError("kernels are compiled by libkiln.so, which was not found: {}; "
                 "install Kiln with its compiler",
                 why ? why : "no reason given");
  }
  auto *build = reinterpret_cast<BuildKernel *>(
      dlsym(library, "kiln_plugin_build_kernel"));
  if (!build)
    runtimeError("{} has no kiln_plugin_build_kernel: it is of another version "
                 "of Kiln",
                 path);
  return build;
}

/// The one in use: kiln_compiler_load's, else what the system finds.
static std::atomic<BuildKernel *> chosenCompiler = nullptr;

static BuildKernel *compiler() {
  if (!chosenCompiler)
    chosenCompiler = loadCompiler("libkiln.so");
  return chosenCompiler;
}

kiln_error *kiln_compiler_load(const char *path) {
  return attempt([&] {
    require(path, "path");
    chosenCompiler = loadCompiler(path);
  });
}

kiln_error *kiln_kernel_build(const kiln_device *device, const char *kind,
                              const char *problem, const char *schedule,
                              kiln_kernel **kernel) {
  return attempt([&] {
    require(kind, "kind");
    require(problem, "problem");
    require(kernel, "kernel");
    BuildKernel *build = compiler();
    std::string target;
    int sms = 0;
    if (device) {
      target = device->device->description().target();
      sms = device->device->description().sms;
    }
    char *text = nullptr;
    std::size_t bytes = 0;
    int status = build(kind, problem, schedule,
                       device ? target.c_str() : nullptr, sms, &text, &bytes);
    std::unique_ptr<char, decltype(&std::free)> owner(text, std::free);
    std::string result(text ? text : "", text ? bytes : 0);
    if (status == static_cast<int>(ExitStatus::refused))
      throw UserError(result);
    if (status != 0)
      throw RuntimeError(result);
    *kernel = new kiln_kernel{Kernel::deserialize(result)};
  });
}
kiln_error *kiln_gemm_build(const char *problem, const char *schedule,
                            kiln_kernel **kernel) {
  return kiln_kernel_build(nullptr, "gemm", problem, schedule, kernel);
}
const char *kiln_kernel_name(const kiln_kernel *kernel) {
  return kernel ? kernel->kernel.name.c_str() : "";
}
const char *kiln_kernel_ptx(const kiln_kernel *kernel) {
  return kernel ? kernel->kernel.ptx.c_str() : "";
}
void kiln_kernel_free(kiln_kernel *kernel) { delete kernel; }

static std::vector<LaunchArgument> argumentsOf(const kiln_argument *arguments,
                                               size_t count) {
  if (count)
    require(arguments, "arguments");
  std::vector<LaunchArgument> list;
  for (size_t i = 0; i < count; ++i) {
    if (arguments[i].buffer) {
      list.emplace_back(arguments[i].buffer->buffer);
      continue;
    }
    require(arguments[i].type, "the type of a scalar");
    list.emplace_back(
        Scalar(parse_type(arguments[i].type), arguments[i].bits));
  }
  return list;
}

kiln_error *kiln_kernel_launch(kiln_device *device, const kiln_kernel *kernel,
                               const kiln_argument *arguments, size_t count,
                               kiln_result **result) {
  return kiln_kernel_explore(device, kernel, arguments, count, nullptr, result);
}

kiln_error *kiln_kernel_explore(kiln_device *device, const kiln_kernel *kernel,
                                const kiln_argument *arguments, size_t count,
                                const kiln_options *options,
                                kiln_result **result) {
  return attempt([&] {
    require(device, "device");
    require(kernel, "kernel");
    require(result, "result");
    LaunchDescription launch = device->device->describe(
        kernel->kernel, argumentsOf(arguments, count));
    *result = exploreAll(*device, {launch},
                         options ? settingsOf(options) : device->settings)
                  .release();
  });
}

kiln_error *kiln_kernel_enqueue(kiln_device *device, const kiln_kernel *kernel,
                                const kiln_argument *arguments, size_t count,
                                void *stream) {
  return attempt([&] {
    require(device, "device");
    require(kernel, "kernel");
    device->device->enqueue(kernel->kernel, argumentsOf(arguments, count),
                            Stream(stream));
  });
}
