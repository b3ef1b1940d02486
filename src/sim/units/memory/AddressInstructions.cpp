// AddressInstructions: arithmetic on addresses: into and out of the windows of
// spaces, and between the CTAs of a cluster.
#include "sim/units/Execute.h"
#include "sim/units/Units.h"
#include "sim/units/memory/Access.h"

namespace kiln::sim {

/// dst = src + imm: into or out of a window.
static Step shiftWide(Warp &warp, const Op &op, LaneMask active) {
  const std::uint64_t *from = warp.lanes<std::uint64_t>(op.src[0]);
  auto distance = static_cast<std::uint64_t>(op.imm);
  storeLanes<std::uint64_t>(warp, op.dst, active,
                            [=](int lane) { return from[lane] + distance; });
  return Step::next;
}

/// The same of registers of any width.
static Step shiftAddress(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    warp.write(op.dst, lane, warp.read(op.src[0], lane) + op.imm);
  });
  return Step::next;
}

static void decodeCvta(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  std::int64_t window = 0;
  switch (spaceOf(instruction)) {
  case Space::shared:
    window = kSharedWindow;
    break;
  case Space::local:
    window = kLocalWindow;
    break;
  case Space::param:
    window = decoder.function().isEntry ? kParamWindow : kLocalWindow;
    break;
  default:
    break;
  }
  op.imm = instruction.has("to") ? -window : window;
  op.dst = decoder.reg(instruction.operands[0], 8);
  op.src[0] = decoder.reg(instruction.operands[1], 8);
  bool isWide = op.dst.width == 8 && op.src[0].width == 8;
  op.handler =
      isWide ? withReference(widest<shiftWide>(), shiftAddress) : shiftAddress;
}

static Step isInSpace(Warp &warp, const Op &op, LaneMask active) {
  LaneMask yes = 0;
  auto space = static_cast<Space>(op.flags);
  forEachLane(active, [&](int lane) {
    std::uint64_t window = warp.read(op.src[0], lane) >> kWindowShift;
    Space actual = window == 1   ? Space::shared
                   : window == 2 ? Space::param
                   : window == 3 ? Space::local
                                 : Space::global;
    if (actual == space)
      yes |= LaneMask(1) << lane;
  });
  warp.setPred(op.pdst, active, yes);
  return Step::next;
}

static void decodeIsspacep(Decoder &decoder,
                           const ptx::Instruction &instruction, Op &op) {
  op.pdst = decoder.pred(instruction.operands[0]);
  op.src[0] = decoder.reg(instruction.operands[1], 8);
  op.flags = static_cast<std::uint32_t>(spaceOf(instruction));
  op.handler = isInSpace;
}

/// mapa: the same shared address in another CTA of the cluster.
static Step mapAddress(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    std::uint64_t address = warp.read(op.src[0], lane);
    std::uint64_t window = op.flags ? 0 : kSharedWindow;
    std::uint64_t plain = (address - window) & ((1u << kRankShift) - 1);
    std::uint64_t rank = warp.read(op.src[1], lane);
    warp.write(op.dst, lane, window + plain + (rank << kRankShift));
  });
  return Step::next;
}

static void decodeMapa(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  int bytes = instruction.has("u32") ? 4 : 8;
  op.dst = decoder.reg(instruction.operands[0], bytes);
  op.src[0] = decoder.reg(instruction.operands[1], bytes);
  op.src[1] = decoder.reg(instruction.operands[2], 4);
  op.flags = spaceOf(instruction) == Space::shared;
  op.handler = mapAddress;
}

/// getctarank: whose shared memory an address lies in.
static Step rankOfAddress(Warp &warp, const Op &op, LaneMask active) {
  std::uint64_t window = op.flags ? 0 : kSharedWindow;
  forEachLane(active, [&](int lane) {
    warp.write(op.dst, lane,
               (warp.read(op.src[0], lane) - window) >> kRankShift);
  });
  return Step::next;
}

static void decodeGetctarank(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  op.dst = decoder.reg(instruction.operands[0], 4);
  op.src[0] =
      decoder.reg(instruction.operands[1], instruction.has("u32") ? 4 : 8);
  op.flags = spaceOf(instruction) == Space::shared;
  op.handler = rankOfAddress;
}

static AddressUse convertedAddress(const ptx::Instruction &) {
  return {.passed = 0b10, .isConverted = true};
}

std::vector<Instruction> addressInstructions() {
  return {
      {"cvta",
       decodeCvta,
       Unit::address,
       "to and from every space",
       "to SPACE, u32 u64 -> =t t; "
       "SPACE, u32 u64 -> =t t&",
       {.addresses = convertedAddress}},
      {"isspacep", decodeIsspacep, Unit::memory, "every space",
       "SPACE -> =p u64; SPACE -> =p u32"},
      {"getctarank", decodeGetctarank, Unit::address,
       "u32 and u64, shared::cluster and generic",
       ", shared::cluster u32 u64 -> =u32 t&"},
      {"mapa", decodeMapa, Unit::address,
       "u32 and u64, shared::cluster and generic",
       ", shared::cluster u32 u64 -> =t t& u32"},
  };
}

} // namespace kiln::sim
