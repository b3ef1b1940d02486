// Fatbin: the PTX inside the fat binaries that nvcc puts into programs.
#pragma once

#include "kiln/run/device_description.h"

#include <cstdint>
#include <string>
#include <vector>

namespace kiln::cudart {

/// The PTX texts of a fat binary that one device runs, to be linked, or why
/// there are none.
struct FatbinText {
  std::vector<std::string> ptx;
  /// Where `ptx` is empty: what there is instead.
  std::string missing;
};

/// The targets that the PTX of an image is for: "sm_90", "sm_90a".
std::vector<std::string> targetsOf(const void *image);

/// How many bytes an image says that it has, of which `given` are there.
std::uint64_t imageBytes(const void *image, std::size_t given);

/// Whether an image is neither a fat binary nor machine code, and its text,
/// which ends with a NUL. All of these throw UserError where memory that cannot
/// be read comes first.
bool isText(const void *image);
std::string textOf(const void *image);

/// Of each part the PTX for exactly that device where there is one (sm_90a on
/// 9.0), else the newest that it runs. `wrapper` is what nvcc's code registers.
FatbinText readFatbin(const void *wrapper, const DeviceDescription &device);

/// Modules as one text, from which readImage has them again.
std::string joinModules(const std::vector<std::string> &modules);

/// The same for a fat binary without its wrapper, or PTX text that ends with a
/// NUL (cuModuleLoadData): of one module or of several that were joined.
FatbinText readImage(const void *image, const DeviceDescription &device);

} // namespace kiln::cudart
