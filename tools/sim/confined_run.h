// confined_run: what `kiln sim` keeps of the rights of its user while a launch
// runs (support/limits/Confine.h).
#pragma once

#include "support/limits/Confine.h"

#include <kiln/check/launch_file.h>
#include <kiln/check/options.h>

namespace kiln::cli {

/// Where somebody asks for it or against it.
struct ConfinedFlags {
  bool is_wanted = false;   ///< --confined: or refuse to run
  bool is_unwanted = false; ///< --unconfined
};

/// Throws UserError where it is wanted and the kernel cannot.
void check_confined(const ConfinedFlags &flags);

/// Confine this process to the sources that its findings quote and to the files
/// it writes; `outputs` are those beside the ones of `settings`. To be called
/// when all else has been read and before threads start. Programs that launches
/// would start (ptxas) are run before. Throws UserError where it is wanted and
/// the kernel does less than it offered.
void confine_run(const ConfinedFlags &flags, const CheckSettings &settings,
                 const PreparedJob &prepared,
                 const std::vector<std::string> &outputs);

} // namespace kiln::cli
