// BulkStore: st.bulk, with which a thread fills shared memory with zeros.
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

/// Its address and its size are multiples of this.
static constexpr std::uint64_t kUnit = 8;

static Step storeZeros(Warp &warp, const Op &op, LaneMask active) {
  const auto &operand = *static_cast<const AddressOperand *>(op.extra.get());
  Findings &findings = warp.machine().findings();
  auto space = static_cast<Space>(op.flags);
  Accessor accessor(warp, op, "st.bulk");
  forEachLane(active, [&](int lane) {
    LaneMask bit = LaneMask(1) << lane;
    if (warp.machine().config().checks && (warp.poison(op.src[1]) & bit))
      findings.fault(FindingId::uninitializedSize, warp, op, bit,
                     "the size depends on bytes that nobody wrote");
    std::uint64_t bytes = warp.read(op.src[1], lane);
    if (bytes % kUnit)
      findings.fault(FindingId::bulkSize, warp, op, bit,
                     fmt::format("st.bulk of {} bytes; its size is a multiple "
                                 "of {}",
                                 bytes, kUnit));
    std::uint64_t address = operand.read(warp, op, lane);
    for (std::uint64_t at = 0; at < bytes; at += kUnit) {
      ByteRange place = accessor.locate(space, address + at, kUnit, kUnit, lane,
                                        /*isWrite=*/true);
      if (!place.owner)
        findings.fault(FindingId::outOfBounds, warp, op, bit,
                       fmt::format("st.bulk at {:#x}, which is not in shared "
                                   "memory",
                                   address));
      std::memset(place.data, 0, kUnit);
      place.markWritten(kUnit);
    }
  });
  return Step::next;
}

void decodeBulkStore(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  if (instruction.operands[2].bits != 0)
    decoder.refuse(instruction, "st.bulk stores zeros; its last operand is 0");
  auto operand = AddressOperand::decode(decoder, instruction.operands[0]);
  op.src[0] = operand.base;
  op.src[1] = decoder.reg(instruction.operands[1], 8);
  op.flags = static_cast<std::uint32_t>(spaceOf(instruction));
  op.extra = std::make_shared<AddressOperand>(operand);
  op.handler = storeZeros;
}

} // namespace kiln::sim
