// confined_run: which files, and what has to happen before.
#include "confined_run.h"
#include "support/text/SourceText.h"

#include <kiln/base/error.h>
#include <kiln/check/sim.h>

#include <algorithm>
#include <fmt/format.h>

namespace kiln::cli {

/// Let ptxas say what the launches would ask it.
static void ask_ptxas(const CheckSettings &settings,
                      const PreparedJob &prepared) {
  const LaunchJob &job = prepared.job();
  bool is_moving =
      std::any_of(job.ptx.begin(), job.ptx.end(), [](const std::string &ptx) {
        return ptx.find("setmaxnreg") != std::string::npos;
      });
  if (!is_moving && !job.file.is_co_resident && !settings.sim.profile)
    return;
  for (const LaunchDescription &launch : prepared.descriptions())
    try {
      prepared.device().simulation()->check(launch);
    } catch (const UserError &) {
      // The launch itself says so, with what comes before it.
      return;
    }
}

void check_confined(const ConfinedFlags &flags) {
  if (flags.is_wanted && flags.is_unwanted)
    throw UserError("--confined and --unconfined exclude each other");
  ConfinementKinds available = availableConfinement();
  if (flags.is_wanted && !available.isComplete())
    throw UserError(
        fmt::format("--confined takes Landlock and seccomp, and this "
                    "kernel has {}; without the option, `kiln sim` "
                    "does with what there is",
                    available.to_string()));
}

void confine_run(const ConfinedFlags &flags, const CheckSettings &settings,
                 const PreparedJob &prepared,
                 const std::vector<std::string> &outputs) {
  if (flags.is_unwanted)
    return;
  ask_ptxas(settings, prepared);
  Confinement confinement;
  for (const std::string &path : prepared.job().ptx_paths)
    confinement.read.emplace_back(path);
  for (const std::string &ptx : prepared.job().ptx)
    for (std::string &source : namedSources(ptx))
      confinement.read.emplace_back(std::move(source));
  for (const std::string &path :
       {settings.report_path, settings.timeline_path, settings.profile_path})
    if (!path.empty() && path != "-")
      confinement.written.emplace_back(path);
  for (const std::string &path : outputs)
    confinement.written.emplace_back(path);
  ConfinementKinds kinds = confine(confinement);
  if (flags.is_wanted && !kinds.isComplete())
    throw UserError(fmt::format("--confined: the kernel has allowed {}",
                                kinds.to_string()));
}

} // namespace kiln::cli
