// PlainRuns: instructions that are executed one behind the other with nothing
// to look at between them.
//
// Most of a program is arithmetic: pure functions of registers, lane by lane. A
// warp executes such a run without asking, after each instruction, what others
// may have noticed of it or where its lanes meet. Where nobody checks, weak
// loads and stores are part of such a run.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// Set Op::isTracked; when everything else about the instructions is known.
void markTracked(Code &code);
/// Set Op::plainCount and what goes with it, and Op::straightCount; likewise.
void markPlain(Code &code);

} // namespace kiln::sim
