// lessons: the kernels of the tutorial, so that the tests run the same ones.
#pragma once

#include <kiln/kiln.h>

#include <cstdio>
#include <memory>

namespace lessons {

kiln::Module hello_world();
kiln::Module saxpy();
kiln::Module saxpy_tma();

/// Run either saxpy on random numbers and compare with the host; defined in
/// lesson 1. What `main` should return.
int launch_saxpy(const kiln::Kernel &kernel);

/// The GPU where there is one, else the simulator.
inline std::shared_ptr<kiln::Device> open_device() {
  auto device = kiln::open_device("auto");
  std::printf("Running on %s.\n", device->name().c_str());
  return device;
}

/// Show what the simulator found; true where the launch is right.
inline bool is_clean(const kiln::LaunchResult &result) {
  for (const kiln::Finding &finding : result.findings)
    std::printf("%s:%u: %s\n", finding.where.file.c_str(), finding.where.line,
                finding.message.c_str());
  return result.ok();
}

/// Say what was compiled.
inline void describe(const kiln::Kernel &kernel) {
  std::printf("Compiled %s for %s: %d threads per CTA, %d bytes of shared "
              "memory, %zu bytes of PTX.\n",
              kernel.name.c_str(), kernel.target.c_str(),
              kernel.contract.threads(), kernel.contract.dynamic_smem_bytes,
              kernel.ptx.size());
}

} // namespace lessons
