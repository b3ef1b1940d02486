// ControlInstructions: branches, tables of branches, and the end of a kernel.
#include "sim/program/Effect.h"
#include "sim/units/Units.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

namespace kiln::sim {

static Step branch(Warp &warp, const Op &op, LaneMask active) {
  warp.branch(active, op.target, op.reconverge);
  return Step::jumped;
}

static void decodeBranch(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  op.target = decoder.firstInstruction() + instruction.operands[0].target;
  op.handler = branch;
}

/// brx.idx: lanes go where their index says; one target at a time.
static Step branchIndexed(Warp &warp, const Op &op, LaneMask active) {
  const auto &targets = *static_cast<const std::vector<int> *>(op.extra.get());
  int lane = firstLane(active);
  std::uint64_t index = warp.read(op.src[0], lane);
  if (index >= targets.size())
    warp.machine().findings().fault(
        FindingId::branchTable, warp, op, LaneMask(1) << lane,
        fmt::format("the index {} is outside a table of {} "
                    "targets",
                    index, targets.size()));
  LaneMask same = 0;
  forEachLane(active, [&](int other) {
    if (warp.read(op.src[0], other) == index)
      same |= LaneMask(1) << other;
  });
  int target = targets[index] + static_cast<int>(op.flags);
  if (same == warp.group().lanes) {
    warp.group().pc = target;
    return Step::jumped;
  }
  // The rest comes back to this instruction.
  int here = warp.group().pc;
  warp.branch(same, target, op.reconverge);
  for (Group &group : warp.groups())
    if (group.pc == here + 1 && (group.lanes & ~same & active))
      group.pc = here;
  return Step::jumped;
}

static void decodeBranchIndexed(Decoder &decoder,
                                const ptx::Instruction &instruction, Op &op) {
  const auto &tables = decoder.function().branchTargets;
  auto table = tables.find(instruction.operands[1].name);
  if (table == tables.end())
    decoder.refuse(instruction, "its table of targets is declared nowhere");
  op.src[0] = decoder.reg(instruction.operands[0], 4);
  // The table itself, which may be large and belong to many branches.
  op.extra = std::shared_ptr<const void>(std::shared_ptr<const void>(),
                                         &table->second);
  op.flags = static_cast<std::uint32_t>(decoder.firstInstruction());
  op.handler = branchIndexed;
}

static Step leaveKernel(Warp &warp, const Op &, LaneMask active) {
  bool isAll = active == warp.group().lanes;
  if (!isAll)
    ++warp.group().pc;
  warp.exit(active);
  return Step::jumped;
}

static void decodeExit(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = leaveKernel;
}

static Step leaveFunction(Warp &warp, const Op &, LaneMask active) {
  if (active != warp.group().lanes) // they come back here as a group
    warp.branch(active, warp.group().pc, -1);
  else
    warp.leave();
  return Step::jumped;
}

void decodeReturn(Decoder &decoder, const ptx::Instruction &, Op &op) {
  op.handler = decoder.function().isEntry ? leaveKernel : leaveFunction;
}

static Step trap(Warp &warp, const Op &op, LaneMask active) {
  warp.machine().findings().fault(FindingId::trap, warp, op, active,
                                  "the kernel executed a trap");
}

static void decodeTrap(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = trap;
}

/// Nothing to do in a simulator.
static Step nothing(Warp &, const Op &, LaneMask) { return Step::next; }

static void decodeNothing(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = nothing;
}

static void otherEffect(Decoder &, const ptx::Instruction &, Effect &effect) {
  effect.kind = EffectKind::other;
}

std::vector<Instruction> controlInstructions() {
  return {
      {"bra",
       decodeBranch,
       Unit::control,
       ".uni accepted",
       ", uni -> label",
       {.flow = Flow::branch}},
      {"brx",
       decodeBranchIndexed,
       Unit::control,
       ".idx",
       "idx, uni -> u32 name",
       {.flow = Flow::branchTable}},
      {"ret",
       decodeReturn,
       Unit::control,
       ".uni accepted",
       ", uni",
       {.effect = otherEffect, .flow = Flow::leave}},
      {"exit",
       decodeExit,
       Unit::control,
       "",
       "",
       {.effect = otherEffect, .flow = Flow::leave}},
      {"trap",
       decodeTrap,
       Unit::control,
       "",
       "",
       {.effect = otherEffect, .flow = Flow::leave}},
      {"brkpt", decodeNothing, Unit::control, "ignored", ""},
      {"call",
       decodeCall,
       Unit::control,
       "device functions, by name or by address; vprintf, __assertfail, malloc "
       "and free",
       ", uni -> f ()? name?; "
       ", uni -> f name; "
       ", uni -> =() f ()? name?; "
       ", uni -> =() f name; "
       ", uni -> r64 ()? name; "
       ", uni -> =() r64 ()? name",
       {.effect = otherEffect}},
      {"griddepcontrol",
       decodeGridControl,
       Unit::control,
       "dependent launches may overlap",
       "wait|launch_dependents",
       {.effect = gridControlEffect}},
  };
}

} // namespace kiln::sim
