// Modules: the kernels of a program, and their launches.
#include "cudart/Fatbin.h"
#include "mgpu/Call.h"

#include <algorithm>
#include <limits>

using namespace kiln;
using namespace kiln::mgpu;
using cudart::Function;
using cudart::ProgramModule;

/// Keep an image, with a NUL behind it: the program's is gone when it unloads
/// itself. Loaded when a kernel of it is first looked for, so that the device
/// can be chosen by all modules.
static ProgramModule *keep(std::string image) {
  static std::mutex mutex;
  static auto *kept = new std::vector<std::unique_ptr<std::string>>;
  std::lock_guard lock(mutex);
  kept->push_back(std::make_unique<std::string>(std::move(image)));
  return session().addModule(kept->back()->c_str(), false);
}

KILN_MGPU ProgramModule *mgpuModuleLoadJIT(const char *ptx, int) {
  return attempt<ProgramModule *>("mgpuModuleLoadJIT", nullptr,
                                  [&] { return keep(ptx); });
}

KILN_MGPU ProgramModule *mgpuModuleLoad(const void *image, std::size_t bytes) {
  return attempt<ProgramModule *>("mgpuModuleLoad", nullptr, [&] {
    std::uint64_t wanted = cudart::imageBytes(image, bytes);
    if (wanted > bytes)
      userError("the fat binary has {} bytes, and its header says {}", bytes,
                wanted);
    return keep(std::string(static_cast<const char *>(image), bytes));
  });
}

KILN_MGPU void mgpuModuleUnload(ProgramModule *module) {
  attempt("mgpuModuleUnload", [&] {
    if (!module || isEnding())
      return;
    // What still runs may hold a kernel of it; a module that was never used
    // opens no device.
    if (module->isLoaded())
      session().device().synchronize();
    session().removeModule(module);
  });
}

KILN_MGPU Function *mgpuModuleGetFunction(ProgramModule *module,
                                          const char *name) {
  return attempt<Function *>("mgpuModuleGetFunction", nullptr, [&] {
    return module ? session().functionOf(module, name) : nullptr;
  });
}

/// Three sizes of a launch, as the device counts them.
static std::array<std::uint32_t, 3> shapeOf(const char *what, std::int64_t x,
                                            std::int64_t y, std::int64_t z) {
  for (std::int64_t size : {x, y, z})
    if (size < 1 || size > std::numeric_limits<std::int32_t>::max())
      userError("{} of {} x {} x {} cannot be launched; each number must be at "
                "least 1",
                what, x, y, z);
  return {static_cast<std::uint32_t>(x), static_cast<std::uint32_t>(y),
          static_cast<std::uint32_t>(z)};
}

static cudart::Launch launchOf(Function *function,
                               std::array<std::int64_t, 3> grid,
                               std::array<std::int64_t, 3> block,
                               std::int32_t dynamicSmemBytes,
                               const MgpuStream *stream, void **parameters) {
  cudart::Launch launch;
  launch.function = function;
  launch.grid = shapeOf("a grid", grid[0], grid[1], grid[2]);
  launch.block = shapeOf("a block", block[0], block[1], block[2]);
  if (dynamicSmemBytes < 0)
    userError("{} bytes of dynamic shared memory cannot be launched",
              dynamicSmemBytes);
  launch.dynamicSmemBytes = static_cast<std::uint32_t>(dynamicSmemBytes);
  launch.parameters = parameters;
  launch.stream = streamOf(stream);
  return launch;
}

/// A launch that is refused is told with its number, by the session.
static void run(const char *name, const cudart::Launch &launch) {
  try {
    session().launch(launch);
  } catch (const Error &error) {
    session().findings().fail(fmt::format("{} has launched nothing", name),
                              error.exit_status());
  }
}

KILN_MGPU void mgpuLaunchKernel(Function *function, std::int64_t gridX,
                                std::int64_t gridY, std::int64_t gridZ,
                                std::int64_t blockX, std::int64_t blockY,
                                std::int64_t blockZ,
                                std::int32_t dynamicSmemBytes,
                                MgpuStream *stream, void **parameters, void **,
                                std::size_t count) {
  attempt("mgpuLaunchKernel", [&] {
    if (!function || isBroken())
      return;
    std::size_t wanted = function->entry().parameter_bytes.size();
    if (wanted != count)
      userError("{} takes {} parameters and was given {}", function->name,
                wanted, count);
    run("mgpuLaunchKernel",
        launchOf(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
                 dynamicSmemBytes, stream, parameters));
  });
}

KILN_MGPU void mgpuLaunchClusterKernel(
    Function *function, std::int64_t clusterX, std::int64_t clusterY,
    std::int64_t clusterZ, std::int64_t gridX, std::int64_t gridY,
    std::int64_t gridZ, std::int64_t blockX, std::int64_t blockY,
    std::int64_t blockZ, std::int32_t dynamicSmemBytes, MgpuStream *stream,
    void **parameters, void **) {
  attempt("mgpuLaunchClusterKernel", [&] {
    if (!function || isBroken())
      return;
    cudart::Launch launch =
        launchOf(function, {gridX, gridY, gridZ}, {blockX, blockY, blockZ},
                 dynamicSmemBytes, stream, parameters);
    launch.cluster = shapeOf("a cluster", clusterX, clusterY, clusterZ);
    run("mgpuLaunchClusterKernel", launch);
  });
}
