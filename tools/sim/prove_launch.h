// prove_launch: what all commands that prove have in common.
#pragma once

#include <kiln/base/error.h>
#include <kiln/check/options.h>
#include <kiln/check/prove.h>

namespace kiln::cli {

/// What a command is told of the checks, for a proof: its time limit is that of
/// the whole.
ProveOptions prove_options(const CheckSettings &settings, SimOptions sim);

/// Prove one launch. On a terminal a line shows how far it is; Ctrl-C ends it
/// with what was covered.
Proof prove_launch(Device &device, const LaunchDescription &launch,
                   ProveOptions options);

/// 0 proved, 2 a counterexample, 6 gave up.
ExitStatus exit_status_of(const Proof &proof);

} // namespace kiln::cli
