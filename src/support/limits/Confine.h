// Confine: take from this process what it no longer needs, so that a mistake of
// Kiln's in the hands of a stranger's file reaches little.
//
// Landlock leaves it the named files and folders, seccomp the system calls of a
// computation: no program is started, no connection made, no page of code
// added. Nothing gives it back; threads that are started later have no more.
// What the kernel lacks is done without.
#pragma once

#include "kiln/base/export.h"

#include <filesystem>
#include <string>
#include <vector>

namespace KILN_API kiln {

struct Confinement {
  std::vector<std::filesystem::path> read;    ///< files
  std::vector<std::filesystem::path> written; ///< files, there or not
};

/// What there is, or is in force.
struct ConfinementKinds {
  int landlock = 0; ///< the version of its interface; 0: none
  bool has_seccomp = false;

  bool isComplete() const { return landlock > 0 && has_seccomp; }
  /// "Landlock (version 7) and seccomp", "seccomp, no Landlock"
  std::string to_string() const;
};

/// What this kernel offers to this process.
ConfinementKinds availableConfinement();

/// To be called while the process has one thread. A file of `written` may be
/// replaced by another: its folder, and what is below, can be written.
ConfinementKinds confine(const Confinement &confinement);

} // namespace kiln
