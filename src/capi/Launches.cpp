// Launches: modules, launches and kernels of the C interface.
#include "capi/Handles.h"
#include "support/Error.h"

#include <cstddef>
#include <cstdlib>
#include <dlfcn.h>

using namespace kiln;
using namespace kiln::capi;

kiln_error *kiln_module_load(kiln_device *device, const char *const *ptx,
                             size_t count, kiln_module **module) {
  return attempt([&] {
    require(device, "device");
    require(ptx, "ptx");
    require(module, "module");
    if (count == 0)
      userError("a module is made of at least one text of PTX, not of 0");
    std::vector<std::string_view> texts;
    for (size_t i = 0; i < count; ++i) {
      require(ptx[i], "a text of ptx");
      texts.emplace_back(ptx[i]);
    }
    std::shared_ptr<LoadedModule> loaded = device->device->load(texts);
    *module = new kiln_module{device->device, loaded, loaded->entries()};
  });
}
size_t kiln_module_entry_count(const kiln_module *module) {
  return module ? module->entries.size() : 0;
}
const char *kiln_module_entry_name(const kiln_module *module, size_t index) {
  return index < kiln_module_entry_count(module)
             ? module->entries[index].c_str()
             : nullptr;
}
kiln_error *kiln_module_parameters(const kiln_module *module, const char *entry,
                                   size_t *count, uint32_t *bytes,
                                   size_t capacity) {
  return attempt([&] {
    require(module, "module");
    require(entry, "entry");
    require(count, "count");
    const auto &sizes = module->module->entry(entry).parameter_bytes;
    *count = sizes.size();
    for (size_t i = 0; bytes && i < sizes.size() && i < capacity; ++i)
      bytes[i] = sizes[i];
  });
}
kiln_error *kiln_module_variable(const kiln_module *module, const char *name,
                                 uint64_t *address, size_t *bytes) {
  return attempt([&] {
    require(module, "module");
    require(name, "name");
    Buffer variable = module->module->variable(name);
    if (address)
      *address = variable.address();
    if (bytes)
      *bytes = variable.bytes();
  });
}
kiln_error *kiln_module_registers(const kiln_module *module, const char *entry,
                                  int *count) {
  return attempt([&] {
    require(module, "module");
    require(entry, "entry");
    require(count, "count");
    *count = module->module->registers(entry);
  });
}
void kiln_module_free(kiln_module *module) { delete module; }

/// Of the first version.
static constexpr std::size_t kFirstLaunchBytes =
    offsetof(kiln_launch, parameters) + sizeof(void *);

/// A shape; sizes that nobody set count as 1.
static std::array<std::uint32_t, 3> shapeOf(const uint32_t (&size)[3]) {
  return {std::max(size[0], 1u), std::max(size[1], 1u), std::max(size[2], 1u)};
}

static LaunchDescription describe(const kiln_launch &given) {
  kiln_launch launch =
      readStructure(given, kFirstLaunchBytes, "launch");
  require(launch.module, "launch->module");
  LaunchDescription description;
  description.module = launch.module->module;
  description.name = launch.entry ? launch.entry : "";
  description.grid = shapeOf(launch.grid);
  description.block = shapeOf(launch.block);
  description.cluster = shapeOf(launch.cluster);
  description.dynamic_smem_bytes = launch.dynamic_smem_bytes;
  description.cooperative = launch.is_cooperative != 0;
  description.dependent = launch.is_dependent != 0;
  const EntryInfo &entry = launch.module->module->entry(description.name);
  for (std::size_t i = 0; i < entry.parameter_bytes.size(); ++i) {
    require(launch.parameters, "launch->parameters");
    require(launch.parameters[i], "a parameter of the launch");
    const auto *from = static_cast<const std::byte *>(launch.parameters[i]);
    description.parameters.push_back(
        {std::vector<std::byte>(from, from + entry.parameter_bytes[i])});
  }
  return description;
}

kiln_error *kiln_device_launch(kiln_device *device, const kiln_launch *launch,
                               kiln_result **result) {
  return kiln_explore(device, &launch, 1, nullptr, result);
}

kiln_error *kiln_explore(kiln_device *device,
                         const kiln_launch *const *launches, size_t count,
                         const kiln_options *options, kiln_result **result) {
  return attempt([&] {
    require(device, "device");
    require(launches, "launches");
    require(result, "result");
    if (count == 0)
      userError("there is nothing to launch: count is 0");
    std::vector<LaunchDescription> descriptions;
    for (size_t i = 0; i < count; ++i) {
      require(launches[i], "launch");
      descriptions.push_back(describe(*launches[i]));
    }
    *result = exploreAll(*device, descriptions,
                         options ? settingsOf(options) : device->settings)
                  .release();
  });
}

kiln_error *kiln_kernel_load(const char *path, kiln_kernel **kernel) {
  return attempt([&] {
    require(path, "path");
    require(kernel, "kernel");
    *kernel = new kiln_kernel{Kernel::load(path)};
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

static BuildKernel *loadCompiler() {
  void *library = dlopen("libkiln.so", RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    runtimeError("kernels are compiled by libkiln.so, which was not found: {}; "
                 "install Kiln with its compiler",
                 why ? why : "no reason given");
  }
  auto *build = reinterpret_cast<BuildKernel *>(
      dlsym(library, "kiln_plugin_build_kernel"));
  if (!build)
    runtimeError("libkiln.so has no kiln_plugin_build_kernel: it is of another "
                 "version of Kiln");
  return build;
}

kiln_error *kiln_kernel_build(const kiln_device *device, const char *kind,
                              const char *problem, const char *schedule,
                              kiln_kernel **kernel) {
  return attempt([&] {
    require(kind, "kind");
    require(problem, "problem");
    require(kernel, "kernel");
    static BuildKernel *build = loadCompiler();
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

kiln_error *kiln_kernel_launch(kiln_device *device, const kiln_kernel *kernel,
                               const kiln_argument *arguments, size_t count,
                               kiln_result **result) {
  return attempt([&] {
    require(device, "device");
    require(kernel, "kernel");
    require(result, "result");
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
    LaunchDescription launch = device->device->describe(kernel->kernel, list);
    *result = exploreAll(*device, {launch}, device->settings).release();
  });
}
