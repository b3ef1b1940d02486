// lessons: the kernels of the tutorial, so that the tests run the same ones.
#pragma once

#include <kiln/kiln.h>

#include <cstdio>
#include <memory>

namespace lessons {

kiln::Module hello_world();
kiln::Module saxpy();
kiln::Module saxpy_tma();

/// The first GPU; where there is none, say why and return nothing.
inline std::shared_ptr<kiln::Device> find_gpu() {
  kiln::DeviceListing listing = kiln::list_devices();
  for (const auto &entry : listing.devices)
    if (entry.id == "cuda:0")
      return kiln::open_cuda();
  std::printf("There is no GPU here, so the kernel is not run.\n");
  for (const std::string &reason : listing.missing)
    std::printf("  %s\n", reason.c_str());
  return nullptr;
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
