// SpinLoop: which registers decide whether a loop goes round once more.
//
// Every wait in PTX is a loop that reads until what it reads is different. Such
// a loop stands still when a round has touched nothing that others can see and
// leaves the registers that decide about the next round as they were: then the
// next round does the same, unless somebody else changes what it reads.
// Registers that decide nothing, like a counter of rounds, may change.
#pragma once

#include "sim/program/Program.h"

namespace kiln::sim {

/// The loop that a branch backwards closes.
struct SpinLoop {
  int length = 0; ///< instructions before the branch that belong to it
  std::vector<Reg> registers;
  std::vector<Pred> predicates;
};

/// Give the branches backwards of the function whose instructions are those
/// from `first` on their loops (Op::spin); none where a loop reads nothing that
/// another could write, and so is no wait. Instructions whose results decide
/// about such a loop are marked (Op::decidesLoop).
void addSpinLoops(Decoder &decoder, std::vector<Op> &ops, int first);

} // namespace kiln::sim
