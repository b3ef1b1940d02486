// Fatbin: the PTX inside the fat binaries that nvcc puts into programs.
#pragma once

#include "kiln/device_description.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cudart {

/// The PTX texts of a fat binary that one device runs, to be linked, or why
/// there are none.
struct FatbinText {
  std::vector<std::string> ptx;
  /// Where `ptx` is empty: a sentence with what would help.
  std::string missing;
};

/// The targets that PTX of a fat binary is for: "sm_90", "sm_90a".
std::vector<std::string> targetsOf(const void *wrapper);

/// Of each part the PTX for exactly that device where there is one (sm_90a on
/// 9.0), else the newest that it runs. `wrapper` is what nvcc's code registers:
/// the bytes behind it are trusted as far as their own sizes say.
FatbinText readFatbin(const void *wrapper, const DeviceDescription &device);

/// The same for a fat binary without its wrapper, or PTX text that ends with a
/// NUL (cuModuleLoadData).
FatbinText readImage(const void *image, const DeviceDescription &device);

/// nvcc's flags that make programs Kiln can run.
inline constexpr const char *kNvccFlags =
    "-cudart shared -gencode arch=compute_90a,code=compute_90a";

} // namespace kiln::cudart
