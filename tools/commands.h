// commands.h: the commands of `kiln`, one function and one file each.
//
// Adding a command declares its options; what it does is an Action that runs
// after everything was parsed, so that no option is looked at twice.
#pragma once

#include "options/command_line.h"

#include <kiln/base/error.h>

#include <functional>
#include <string>

namespace kiln::cli {

/// What the command line asks for; set while it is parsed.
using Action = std::function<ExitStatus()>;

// The compiler's (tools/kernels, tools/bench, tools/tune).
void add_gemm_command(Command app, Action &action);
void add_attention_command(Command app, Action &action);
void add_grouped_gemm_command(Command app, Action &action);
void add_emit_command(Command app, Action &action);
void add_bench_command(Command app, Action &action);
void add_tune_command(Command app, Action &action);
/// All of these; in a command that is built without the compiler, words that
/// say what is missing (without_compiler.cpp).
void add_compiler_commands(Command app, Action &action);
/// "kiln 0.1.0 (LLVM 22.1.8)"
std::string version_line();

// Everybody's.
void add_sim_command(Command app, Action &action);
void add_litmus_command(Command app, Action &action);
void add_prove_command(Command app, Action &action);
void add_report_command(Command app, Action &action);
void add_run_command(Command app, Action &action);
void add_profile_command(Command app, Action &action);
void add_debug_command(Command app, Action &action);
void add_build_command(Command app, Action &action);
void add_layout_command(Command app, Action &action);
/// env, devices, cache
void add_info_commands(Command app, Action &action);

} // namespace kiln::cli
