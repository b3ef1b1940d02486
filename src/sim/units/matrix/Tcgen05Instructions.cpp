// Tcgen05Instructions: the row of tcgen05 in the registry.
#include "sim/program/Effect.h"
#include "sim/units/Units.h"
#include "sim/units/matrix/Tcgen05.h"

#include <algorithm>

namespace kiln::sim {

static void decodeTcgen05(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  using Decode = void (*)(Decoder &, const ptx::Instruction &, Op &);
  static constexpr std::pair<const char *, Decode> kDecoders[] = {
      {"alloc", decodeTensorAlloc},
      {"dealloc", decodeTensorDealloc},
      {"relinquish_alloc_permit", decodeTensorRelinquish},
      {"ld", decodeTensorMove},
      {"st", decodeTensorMove},
      {"wait::ld", decodeTensorWait},
      {"wait::st", decodeTensorWait},
      {"mma", decodeTensorProduct},
      {"cp", decodeTensorCopy},
      {"shift", decodeTensorShift},
      {"commit", decodeTensorCommit},
      {"fence::before_thread_sync", decodeTensorFence},
      {"fence::after_thread_sync", decodeTensorFence},
  };
  for (const auto &[word, decode] : kDecoders)
    if (instruction.has(word))
      return decode(decoder, instruction, op);
}

static void tcgen05Effect(Decoder &decoder, const ptx::Instruction &instruction,
                          Effect &effect) {
  effect.kind = EffectKind::other;
  const auto &operands = instruction.operands;
  if (instruction.has("mma")) {
    effect.kind = EffectKind::tensorProduct;
    effect.count = ctaGroupOf(instruction);
    if (operands[1].kind == ptx::Operand::Kind::reg)
      effect.address = decoder.reg(operands[1], 8);
    effect.operand = decoder.reg(operands[2], 8);
    effect.shape = decoder.reg(operands[instruction.has("sp") ? 4 : 3], 4);
  }
  if (!instruction.has("commit"))
    return;
  effect.kind = EffectKind::barrierArrive;
  effect.isCommit = true;
  takeAddress(decoder, instruction, 0, effect.address, effect.offset);
  if (instruction.has("multicast::cluster"))
    effect.mask = decoder.reg(operands[1], 2);
}

std::vector<Instruction> tcgen05Instructions() {
  return {
      {"tcgen05",
       decodeTcgen05,
       Unit::tcgen05,
       "alloc dealloc relinquish_alloc_permit; ld and st of every shape, "
       "ld.red; mma and mma.ws of kinds f16 tf32 f8f6f4 i8, mma of mxf8f6f4 "
       "mxf4 mxf4nvf4 with scales, all of them sparse too, A in shared or "
       "tensor memory, .ashift; cp shift commit; fences and waits; cta_group 1 "
       "and 2",
       "alloc CTAGROUP, ALIGNED shared::cta b32 -> [a] u32; "
       "dealloc CTAGROUP, ALIGNED b32 -> u32 u32; "
       "relinquish_alloc_permit CTAGROUP, ALIGNED; "
       "ld red 16x32bx2 REPEAT min|max, ALIGNED abs NaN f32 u32 s32 -> ={t}* "
       "=t [a] imm; "
       "ld red 32x32b REPEAT min|max, ALIGNED abs NaN f32 u32 s32 -> ={t}* =t "
       "[a]; "
       "ld 16x32bx2 REPEAT, ALIGNED pack::16b b32 -> ={b32}* [a] imm; "
       "ld 32x32b|16x64b|16x128b|16x256b REPEAT, ALIGNED pack::16b b32 -> "
       "={b32}* [a]; "
       "st 16x32bx2 REPEAT, ALIGNED unpack::16b b32 -> [a] imm {b32}*; "
       "st 32x32b|16x64b|16x128b|16x256b REPEAT, ALIGNED unpack::16b b32 -> "
       "[a] {b32}*; "
       "wait::ld|wait::st, ALIGNED; "
       "fence::before_thread_sync|fence::after_thread_sync; "
       "mma ws sp cta_group::1 PLAINKIND, COLLECTB -> [a] u64 u64 [a] u32 p "
       "u64?; "
       "mma ws sp cta_group::1 PLAINKIND, COLLECTB -> [a] [a] u64 [a] u32 p "
       "u64?; "
       "mma ws cta_group::1 PLAINKIND, COLLECTB -> [a] u64 u64 u32 p u64?; "
       "mma ws cta_group::1 PLAINKIND, COLLECTB -> [a] [a] u64 u32 p u64?; "
       "mma sp CTAGROUP PLAINKIND, COLLECTA -> [a] u64 u64 [a] u32 {b32}* p "
       "imm?; "
       "mma sp CTAGROUP PLAINKIND, COLLECTA -> [a] u64 u64 [a] u32 p imm?; "
       "mma sp CTAGROUP PLAINKIND, COLLECTA ashift -> [a] [a] u64 [a] u32 "
       "{b32}* p imm?; "
       "mma sp CTAGROUP PLAINKIND, COLLECTA ashift -> [a] [a] u64 [a] u32 p "
       "imm?; "
       "mma CTAGROUP PLAINKIND, COLLECTA -> [a] u64 u64 u32 {b32}* p imm?; "
       "mma CTAGROUP PLAINKIND, COLLECTA -> [a] u64 u64 u32 p imm?; "
       "mma CTAGROUP PLAINKIND, COLLECTA ashift -> [a] [a] u64 u32 {b32}* p "
       "imm?; "
       "mma CTAGROUP PLAINKIND, COLLECTA ashift -> [a] [a] u64 u32 p imm?; "
       "mma sp CTAGROUP SCALEDKIND block_scale, COLLECTA SCALEVEC -> [a] u64 "
       "u64 [a] u32 [a] [a] p; "
       "mma sp CTAGROUP SCALEDKIND block_scale, COLLECTA SCALEVEC -> [a] [a] "
       "u64 [a] u32 [a] [a] p; "
       "mma CTAGROUP SCALEDKIND block_scale, COLLECTA SCALEVEC -> [a] u64 u64 "
       "u32 [a] [a] p; "
       "mma CTAGROUP SCALEDKIND block_scale, COLLECTA SCALEVEC -> [a] [a] u64 "
       "u32 [a] [a] p; "
       "cp CTAGROUP 128x256b|4x256b|128x128b|64x128b|32x128b, "
       "warpx2::02_13|warpx2::01_23|warpx4 b8x16 b6x16_p32|b4x16_p64 -> [a] "
       "u64; "
       "shift CTAGROUP down -> [a]; "
       "commit CTAGROUP mbarrier::arrive::one multicast::cluster, "
       "shared::cluster b64 -> [a] u16; "
       "commit CTAGROUP mbarrier::arrive::one, shared::cluster b64 -> [a]",
       {.effect = tcgen05Effect}},
  };
}

} // namespace kiln::sim
