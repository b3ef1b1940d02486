// prove_launch: progress, Ctrl-C, and the exit status.
#include "prove_launch.h"
#include "console/run_watch.h"

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

static constexpr int kLineWidth = 78;

ProveOptions prove_options(const CheckSettings &settings, SimOptions sim) {
  ProveOptions options;
  options.sim = std::move(sim);
  options.time_limit_s = settings.sim.time_limit_s;
  return options;
}

static void draw(const std::string &text) {
  std::fputs(fmt::format("\r{:<{}}\r{}", "", kLineWidth, text).c_str(), stderr);
  std::fflush(stderr);
}

Proof prove_launch(Device &device, const LaunchDescription &launch,
                   ProveOptions options) {
  RunWatch::attach(options.sim);
  bool is_seen = isatty(STDERR_FILENO);
  if (is_seen)
    options.progress = [](std::uint64_t interleavings, double explored) {
      draw(fmt::format("{} interleavings, {:.1f}% of the known alternatives "
                       "explored",
                       interleavings, 100 * explored));
    };
  RunWatch watch;
  Proof proof = prove(device, launch, options);
  if (is_seen)
    draw("");
  return proof;
}

ExitStatus exit_status_of(const Proof &proof) {
  switch (proof.verdict) {
  case ProofVerdict::proved:
    return ExitStatus::ok;
  case ProofVerdict::counterexample:
    return ExitStatus::finding;
  case ProofVerdict::gave_up:
    break;
  }
  return ExitStatus::unsupported;
}

} // namespace kiln::cli
