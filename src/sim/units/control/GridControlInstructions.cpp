// GridControlInstructions: griddepcontrol, between a launch and the ones ahead
// of it and behind it.
//
// Both are hints where a launch stands alone. The wait alone hands memory over;
// launch_dependents makes nothing visible (PTX ISA, griddepcontrol).
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "sim/units/Units.h"

namespace kiln::sim {

static Step waitForPrimary(Warp &warp, const Op &, LaneMask active) {
  GridControl &grid = warp.machine().gridControl();
  if (!grid.isPrimaryOver()) {
    warp.group().wait = {WaitReason::Kind::primary, 0, 0};
    return Step::blocked;
  }
  warp.group().wait = {};
  if (!grid.isDependent())
    return Step::next;
  grid.noteWait();
  warp.watchers().tell(PrimaryWait{warp, active});
  return Step::next;
}

static Step launchDependents(Warp &warp, const Op &, LaneMask) {
  bool knowsPrimary = false;
  warp.watchers().tell(DependentsLaunch{warp, knowsPrimary});
  warp.machine().gridControl().noteTrigger(knowsPrimary);
  warp.cta().cluster().trigger(warp.cta());
  return warp.cta().cluster().isHeld ? Step::yield : Step::next;
}

void decodeGridControl(Decoder &, const ptx::Instruction &instruction, Op &op) {
  op.handler = instruction.has("wait") ? waitForPrimary : launchDependents;
}

void gridControlEffect(Decoder &, const ptx::Instruction &instruction,
                       Effect &effect) {
  effect.isTrigger = instruction.has("launch_dependents");
  effect.isPrimaryWait = !effect.isTrigger;
}

} // namespace kiln::sim
