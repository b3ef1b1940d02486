// Targets: the table.
#include "fuzz/Target.h"

#include <fmt/format.h>
#include <stdexcept>

namespace kiln::fuzz {

static constexpr Target kTargets[] = {
    {"ptx", runPtx, mutatePtx},
    {"debug_info", runDebugInfo, nullptr},
    {"fatbin", runFatbin, nullptr},
    {"saved_kernel", runSavedKernel, mutateJson},
    {"launch_file", runLaunchFile, mutateJson},
    {"npy", runNpy, nullptr},
    {"mlir_text", runMlirText, nullptr},
#ifdef KILN_FUZZ_PRODUCTS
    {"database", runDatabase, nullptr},
    {"problem", runProblem, nullptr},
#endif
};

std::span<const Target> targets() { return kTargets; }

const Target &findTarget(std::string_view name) {
  std::string known;
  for (const Target &target : kTargets) {
    if (target.name == name)
      return target;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", target.name);
  }
  throw std::runtime_error(
      fmt::format("there is no target '{}'; there are {}", name, known));
}

} // namespace kiln::fuzz
