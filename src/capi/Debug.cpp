// Debug: the debugger of the C interface.
#include "capi/Handles.h"
#include "kiln/debug/debugger.h"

using namespace kiln;
using namespace kiln::capi;

struct kiln_debugger {
  std::unique_ptr<Debugger> debugger;
  std::string answer, text;
};

kiln_error *kiln_debugger_open(const char *ptx_path, const char *launch_path,
                               const kiln_options *options,
                               kiln_debugger **debugger) {
  return attempt([&] {
    require(launch_path, "launch_path");
    require(debugger, "debugger");
    CheckSettings settings = settingsOf(options);
    LaunchJob job = LaunchJob::load(ptx_path ? ptx_path : "", launch_path);
    DebugOptions debug;
    debug.has_device = true;
    debug.sim = settings.sim_options(
        settings.gpu.empty() ? job.device() : DeviceDescription::h200());
    if (!settings.interleavings.only)
      settings.interleavings.only = Interleaving::eager;
    SeededInterleaving chosen = settings.interleavings.list().front();
    debug.sim.interleaving = chosen.kind;
    debug.sim.seed = chosen.seed;
    *debugger = new kiln_debugger{
        std::make_unique<Debugger>(std::move(job), debug), {}, {}};
  });
}

kiln_error *kiln_debugger_request(kiln_debugger *debugger, const char *command,
                                  const char **answer) {
  return attempt([&] {
    require(debugger, "debugger");
    require(command, "command");
    require(answer, "answer");
    debugger->answer = debugger->debugger->request(command);
    debugger->text = debug_text(debugger->answer);
    *answer = debugger->answer.c_str();
  });
}

const char *kiln_debugger_text(const kiln_debugger *debugger) {
  return debugger ? debugger->text.c_str() : "";
}

void kiln_debugger_interrupt(kiln_debugger *debugger) {
  if (debugger)
    debugger->debugger->interrupt();
}

void kiln_debugger_free(kiln_debugger *debugger) { delete debugger; }
