// Target: the architectures of NVIDIA's GPUs, and which PTX each of them takes.
//
// "sm_100a" is an architecture, 10.0, and a variant: what is specific to it (a)
// or common to its family from there on (f). One rule says which includes what,
// for a module that uses an instruction and for a GPU that is given a module:
//
//     sm_90      everything from 9.0 on
//     sm_90a     9.0 alone, in its own variant
//     sm_100f    10.0 and what is newer in its family, in either variant
#pragma once

#include "kiln/run/device_description.h"

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace KILN_API kiln {
namespace isa {

/// What all GPUs of one architecture have. Versions are ten times PTX's own: 86
/// is PTX 8.6.
struct Architecture {
  int number; ///< 90 of sm_90
  int family; ///< those that share their `f` variants have one number
  std::string_view generation; ///< "Hopper"
  /// The PTX version that brought it, its `a` and its `f` variant; 0: there is
  /// none.
  int since, specificSince = 0, familySince = 0;
  TensorCore tensorCore = TensorCore::mma;
  int tensorMemoryColumns = 0;
  // Of a multiprocessor; zeros: nobody has published them.
  int maxThreads = 0, maxCtas = 0, sharedKiB = 0;
  int maxSharedKiBOfCta = 0;
  int maxCluster = 1, maxNonportableCluster = 1;
  /// Of f16 with f32 sums, dense, of a multiprocessor.
  int f16FlopsPerClock = 0;
  /// Of f32, an fma being two.
  int f32FlopsPerClock = 0;
};

std::span<const Architecture> architectures();
/// Null: Kiln does not know it.
const Architecture *findArchitecture(int number);

struct Target {
  const Architecture *architecture;
  char variant = 0; ///< 'a', 'f' or none
  std::string name() const;
  /// The PTX version that brought it.
  int since() const;
};

/// "sm_90a"; nothing where there is no such target.
std::optional<Target> findTarget(std::string_view name);
/// "sm_80, sm_86, ..., sm_121f"
std::string targetNames();

/// Whether a module or a GPU of `target` has what `needed` has.
bool includes(const Target &target, const Target &needed);

/// What kernels for a GPU of that architecture are compiled for.
Target nativeTarget(const Architecture &architecture);

/// The limits of a GPU of that compute capability; where Kiln does not know it,
/// those of the newest that it knows below, without its tensor core.
DeviceDescription describeArchitecture(int major, int minor);

} // namespace isa
} // namespace kiln
