// TensorMapInstructions: tensor maps that a kernel changes: tensormap.replace
// in shared or global memory, and the copy that publishes them.
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

namespace kiln::sim {

namespace {
struct FieldWord {
  const char *word;
  TensorMapField field;
  bool hasOrdinal;
};
} // namespace

static constexpr FieldWord kFields[] = {
    {"global_address", TensorMapField::globalAddress, false},
    {"rank", TensorMapField::rank, false},
    {"box_dim", TensorMapField::boxDim, true},
    {"global_dim", TensorMapField::globalDim, true},
    {"global_stride", TensorMapField::globalStride, true},
    {"element_stride", TensorMapField::elementStride, true},
    {"elemtype", TensorMapField::elemtype, false},
    {"interleave_layout", TensorMapField::interleaveLayout, false},
    {"swizzle_mode", TensorMapField::swizzleMode, false},
    {"fill_mode", TensorMapField::fillMode, false},
    {"swizzle_atomicity", TensorMapField::swizzleAtomicity, false},
};

/// flags: the field; imm: the offset; src: address, value, ordinal.
static Step replaceField(Warp &warp, const Op &op, LaneMask active) {
  auto space = static_cast<Space>(op.flags >> 8);
  Accessor accessor(warp, op, "a change of a tensor map");
  forEachLane(active, [&](int lane) {
    ByteRange place =
        accessor.locate(space, warp.read(op.src[0], lane) + op.imm,
                        kTensorMapBytes, 64, lane, true);
    std::uint64_t value = warp.read(op.src[1], lane);
    std::uint64_t ordinal =
        op.src[2].isValid() ? warp.read(op.src[2], lane) : 0;
    if (!replace(place.data, static_cast<TensorMapField>(op.flags & 0xff),
                 ordinal, value))
      warp.machine().findings().fault(
          FindingId::tensorMap, warp, op, LaneMask(1) << lane,
          fmt::format("{} cannot be put into the field (index {}), or the "
                      "bytes are no tensor map",
                      value, ordinal));
    place.markWritten(kTensorMapBytes);
  });
  return Step::next;
}

/// cp_fenceproxy: the whole warp copies one map and publishes it.
static Step copyMap(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  int lane = firstLane(active);
  Accessor accessor(warp, op, "the copy of a tensor map");
  ByteRange to =
      accessor.locate(Space::global, warp.read(op.src[0], lane) + op.imm,
                      kTensorMapBytes, 128, lane, true);
  const auto &source = *static_cast<const AddressOperand *>(op.extra.get());
  ByteRange from = accessor.locate(Space::shared, source.read(warp, op, lane),
                                   kTensorMapBytes, 128, lane, false);
  std::memcpy(to.data, from.data, kTensorMapBytes);
  to.markWritten(kTensorMapBytes);
  return Step::next;
}

void decodeTensorMap(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  const auto &operands = instruction.operands;
  if (instruction.has("cp_fenceproxy")) {
    op.src[0] = decoder.address(operands[0], op.imm);
    AddressOperand source = AddressOperand::decode(decoder, operands[1]);
    op.src[1] = source.base;
    op.extra = std::make_shared<AddressOperand>(source);
    op.handler = copyMap;
    return;
  }
  for (const FieldWord &known : kFields) {
    if (!instruction.has(known.word))
      continue;
    op.src[0] = decoder.address(operands[0], op.imm);
    op.src[1] = decoder.reg(operands.back(), instruction.has("b64") ? 8 : 4);
    if (known.hasOrdinal)
      op.src[2] = decoder.reg(operands[1], 4);
    op.flags = static_cast<std::uint32_t>(known.field) |
               static_cast<std::uint32_t>(spaceOf(instruction)) << 8;
    op.handler = replaceField;
    return;
  }
  decoder.refuse(instruction, "this field of a tensor map");
}

} // namespace kiln::sim
