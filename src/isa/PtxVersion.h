// PtxVersion: the versions of PTX. They are ten times PTX's own: 86 is PTX 8.6.
#pragma once

#include "kiln/base/export.h"

#include <string>

namespace KILN_API kiln {
namespace isa {

/// What every driver that runs kernels of Kiln takes, and the newest that LLVM
/// writes.
inline constexpr int kOldestWritable = 80, kNewestWritable = 90;

/// The newest version that Kiln has met (tests/corpus).
int newestPtxVersion();
/// Whether LLVM writes that version, and those it does, "8.0, 8.1, ...".
bool isWritablePtxVersion(int version);
std::string writablePtxVersions();
/// "8.6"
std::string ptxVersionText(int version);

} // namespace isa
} // namespace kiln
