// RegisterPool: setmaxnreg, which moves registers between warps.
#include "sim/program/Effect.h"
#include "sim/units/matrix/WgmmaProduct.h"
#include "support/Error.h"

namespace kiln::sim {

/// setmaxnreg moves registers between a warpgroup and the CTA's pool.
static Step setRegisters(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  if (warp.registers == 0) {
    warp.machine().findings().report(
        FindingId::setmaxnregIgnored, warp, op, active,
        "setmaxnreg has no effect: the entry says neither "
        ".maxnreg nor .reqntid or .maxntid, so ptxas ignores "
        "it");
    return Step::next;
  }
  int wanted = static_cast<int>(op.imm);
  bool isIncrease = op.flags != 0;
  if (isIncrease ? warp.registers > wanted : warp.registers < wanted)
    warp.machine().findings().fault(
        FindingId::setmaxnreg, warp, op, active,
        fmt::format("setmaxnreg.{} {} with {} registers at hand",
                    isIncrease ? "inc" : "dec", wanted, warp.registers));
  int change = (wanted - warp.registers) * kLanes;
  Cta &cta = warp.cta();
  if (change > cta.registerPool) {
    warp.group().wait = {WaitReason::Kind::registers, 0,
                         static_cast<std::uint32_t>(wanted)};
    return Step::blocked;
  }
  warp.group().wait = {};
  cta.registerPool -= change;
  warp.registers = wanted;
  cta.cluster().notify();
  return Step::next;
}

static void decodeSetmaxnreg(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  op.imm = static_cast<std::int64_t>(instruction.operands[0].bits);
  constexpr int kLeast = DeviceDescription::min_role_registers;
  constexpr int kMost = DeviceDescription::max_role_registers;
  if (op.imm < kLeast || op.imm > kMost || op.imm % 8)
    decoder.refuse(instruction,
                   fmt::format("{} registers; setmaxnreg takes a multiple of 8 "
                               "from {} to {}",
                               op.imm, kLeast, kMost));
  op.flags = instruction.has("inc");
  op.handler = setRegisters;
}

static void registersEffect(Decoder &, const ptx::Instruction &instruction,
                            Effect &effect) {
  effect.kind = EffectKind::registers;
  effect.isAligned = true;
  effect.isGivingUp = instruction.has("dec");
}

Instruction setmaxnregInstruction() {
  return {"setmaxnreg",
          decodeSetmaxnreg,
          Unit::wgmma,
          "inc and dec",
          "inc|dec, ALIGNED u32 -> imm",
          {.effect = registersEffect}};
}

} // namespace kiln::sim
