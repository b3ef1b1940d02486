// FindingId: the findings of the simulator, by the rows of one table.
//
// Errors.def, Warnings.def and Tensor.def have a row for each: its id, grade,
// whether it ends the launch, cause, a broken example, and the repair. Whoever
// reports names the row; nobody chooses a grade.
#pragma once

#include "kiln/check/sim.h"

namespace kiln::sim {

enum class FindingId : std::uint8_t {
#define FINDING(NAME, ID, GRADE, END, CAUSE, BROKEN, REPAIR) NAME,
#include "sim/findings/Errors.def"
#include "sim/findings/Warnings.def"

#include "sim/findings/Tensor.def"
#undef FINDING
};

/// The row of a finding, which is what `kiln explain` shows of it.
const Explanation &rowOf(FindingId id);

} // namespace kiln::sim
