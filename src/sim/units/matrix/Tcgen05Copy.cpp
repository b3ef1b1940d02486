// Tcgen05Copy: tcgen05.cp, from shared into tensor memory, and tcgen05.shift.
//
// Rows of 128 or 256 bits lie in shared memory as a K-major operand does, and
// go to a lane each; the multicast forms put the same rows into several parts
// of the lanes.
#include "sim/units/matrix/MatrixAccess.h"
#include "sim/units/matrix/Tcgen05.h"
#include "sim/units/matrix/Tcgen05Descriptor.h"

namespace kiln::sim {

namespace {
/// A form of tcgen05.cp: rows of so many bytes, and which lanes get them.
struct CopyShape {
  const char *shape, *multicast; ///< words; null: none
  int rows, bytes;
  /// Row r goes to lane (r / block) * stride + r % block, and again `distance`
  /// lanes further on, `copies` times in all.
  int block, stride, copies, distance;
};

/// A decoded copy.
struct TensorCopy {
  const CopyShape *shape = nullptr;
  int group = 1;
  int elementBits = 8; ///< 6 or 4: they are spread to a byte each
  AddressOperand destination;
  Reg descriptor;
};
} // namespace

static constexpr CopyShape kCopyShapes[] = {
    {"128x256b", nullptr, 128, 32, 128, 128, 1, 0},
    {"4x256b", nullptr, 4, 32, 1, 32, 1, 0},
    {"128x128b", nullptr, 128, 16, 128, 128, 1, 0},
    {"64x128b", "warpx2::02_13", 64, 16, 64, 64, 2, 64},
    {"64x128b", "warpx2::01_23", 64, 16, 32, 64, 2, 32},
    {"32x128b", "warpx4", 32, 16, 32, 32, 4, 32},
};

static int laneOf(const CopyShape &shape, int row, int copy) {
  return row / shape.block * shape.stride + row % shape.block +
         copy * shape.distance;
}

/// Sixteen bytes of a row; elements of 6 or 4 bits become a byte each, those of
/// 4 bits in its middle.
static std::array<std::uint8_t, 16> spread(const std::uint8_t *bytes,
                                           int elementBits) {
  std::array<std::uint8_t, 16> result;
  for (int i = 0; i < 16; ++i) {
    auto at = static_cast<std::size_t>(i);
    if (elementBits == 8) {
      result[at] = bytes[i];
    } else if (elementBits == 4) {
      int nibble = bytes[i / 2] >> 4 * (i % 2) & 15;
      result[at] = static_cast<std::uint8_t>(nibble << 2);
    } else {
      int first = 6 * i;
      unsigned word = bytes[first / 8] | unsigned(bytes[first / 8 + 1]) << 8;
      result[at] = static_cast<std::uint8_t>(word >> first % 8 & 63);
    }
  }
  return result;
}

static void perform(Warp &warp, const Op &op, Cta &cta, const TensorCopy &copy,
                    const OperandView &view, TensorAddress to) {
  TensorMemory &memory = cta.tensorMemory();
  const CopyShape &shape = *copy.shape;
  for (int row = 0; row < shape.rows; ++row)
    for (int chunk = 0; chunk < shape.bytes / 16; ++chunk) {
      std::uint32_t at = view.address(row, 16 * chunk) - kFirstSharedAddress;
      auto bytes = spread(cta.shared.data() + at, copy.elementBits);
      bool isWritten = cta.sharedValid.all(at, 16);
      std::uint32_t origin =
          isWritten
              ? 0
              : originOf(warp, op,
                         {cta.shared.data() + at, &cta.sharedValid, at, &cta},
                         16);
      for (int i = 0; i < shape.copies; ++i)
        for (std::uint32_t word = 0; word < 4; ++word) {
          std::uint32_t lane =
              to.lane + static_cast<std::uint32_t>(laneOf(shape, row, i));
          std::uint32_t column =
              to.column + 4 * static_cast<std::uint32_t>(chunk) + word;
          std::memcpy(memory.at(lane, column), bytes.data() + 4 * word, 4);
          std::uint64_t unwritten =
              isWritten ? 0
              : copy.elementBits == 8
                  ? cta.sharedValid.unwritten(at + 4 * word, 4)
                  : 0xffffffff;
          std::size_t offset = TensorMemory::offset(lane, column);
          memory.valid.put(offset, 4, unwritten);
          if (unwritten)
            memory.valid.setOrigin(offset, 4, origin);
        }
    }
}

static Step issueCopy(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const TensorCopy *>(op.extra.get());
  Findings &findings = warp.machine().findings();
  warp.watchers().tell(AsyncBegin{warp});
  forEachLane(active, [&](int lane) {
    LaneMask bit = LaneMask(1) << lane;
    std::vector<Cta *> ctas = ctasOf(warp, op, bit, copy.group);
    TensorAddress to = tensorAddress(warp, op, copy.destination, bit);
    if (warp.poison(copy.descriptor) & bit)
      findings.fault(FindingId::uninitializedDescriptor, warp, op, bit,
                     "a descriptor depends on bytes that nobody wrote");
    std::uint64_t descriptor = warp.read(copy.descriptor, lane);
    OperandView view;
    std::string why;
    if (!readLayout(descriptor, view, why))
      findings.fault(FindingId::tcgen05Descriptor, warp, op, bit,
                     fmt::format("the descriptor of shared memory {:#x} does "
                                 "not fit: {}",
                                 descriptor, why));
    view.isA = true;
    view.elementBytes = 1;
    view.rows = copy.shape->rows;
    view.k = copy.shape->bytes;
    auto columns = static_cast<std::uint32_t>(copy.shape->bytes / 4);
    std::vector<TensorRange> ranges;
    if (copy.shape->rows == 4)
      for (std::uint32_t i = 0; i < 4; ++i)
        ranges.push_back({to.lane + 32 * i, to.column, 1, columns});
    else
      ranges.push_back({to.lane, to.column, TensorMemory::kLanes, columns});
    for (Cta *cta : ctas) {
      checkBounds(warp, op, *cta, view);
      for (const TensorRange &range : ranges)
        checkTensorRange(warp, op, bit, *cta, range, "the destination");
    }
    warp.tensor.issuers |= bit;
    warp.tensor.uncommitted |= bit;
    if (warp.watchers().wants(EventKind::access))
      for (Cta *cta : ctas) {
        tellOperands(warp, op, bit, *cta, cellsOf(*cta, {view}));
        tellTensorAccess(warp, op, bit, Completion::By::tensorOperations,
                         /*isWrite=*/true, *cta, ranges);
      }
    enqueueOperation(warp, [&warp, &op, ctas, &copy, view, to] {
      for (Cta *cta : ctas)
        perform(warp, op, *cta, copy, view, to);
    });
  });
  return Step::next;
}

void decodeTensorCopy(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  TensorCopy copy;
  for (const CopyShape &shape : kCopyShapes)
    if (instruction.has(shape.shape) &&
        (!shape.multicast || instruction.has(shape.multicast)))
      copy.shape = &shape;
  if (!copy.shape)
    decoder.refuse(instruction,
                   ".64x128b takes .warpx2::02_13 or .warpx2::01_23, .32x128b "
                   "takes .warpx4");
  copy.group = ctaGroupOf(instruction);
  if (instruction.has("b6x16_p32"))
    copy.elementBits = 6;
  if (instruction.has("b4x16_p64"))
    copy.elementBits = 4;
  copy.destination = AddressOperand::decode(decoder, instruction.operands[0]);
  copy.descriptor = expectWidth(decoder, instruction,
                                decoder.reg(instruction.operands[1], 8), 8);
  op.extra = std::make_shared<TensorCopy>(copy);
  op.handler = issueCopy;
}

/// Columns that a shift moves: 32 bytes of each lane.
static constexpr std::uint32_t kShiftedColumns = 8;

/// Each lane but the last of its quarter gets what the next one has.
static void shiftDown(Cta &cta, std::uint32_t column) {
  TensorMemory &memory = cta.tensorMemory();
  for (std::uint32_t i = column; i < column + kShiftedColumns; ++i)
    for (std::uint32_t lane = 0; lane < TensorMemory::kLanes; ++lane) {
      if (lane % 32 == 31)
        continue;
      *memory.at(lane, i) = *memory.at(lane + 1, i);
      std::size_t to = TensorMemory::offset(lane, i),
                  from = TensorMemory::offset(lane + 1, i);
      std::uint32_t origin = memory.valid.origin(from, 4);
      memory.valid.put(to, 4, memory.valid.unwritten(from, 4));
      if (origin)
        memory.valid.setOrigin(to, 4, origin);
    }
}

static Step issueShift(Warp &warp, const Op &op, LaneMask active) {
  const auto &operand = *static_cast<const AddressOperand *>(op.extra.get());
  warp.watchers().tell(AsyncBegin{warp});
  forEachLane(active, [&](int lane) {
    LaneMask bit = LaneMask(1) << lane;
    std::vector<Cta *> ctas = ctasOf(warp, op, bit, static_cast<int>(op.imm));
    TensorAddress at = tensorAddress(warp, op, operand, bit);
    TensorRange range{at.lane, at.column, TensorMemory::kLanes,
                      kShiftedColumns};
    for (Cta *cta : ctas)
      checkTensorRange(warp, op, bit, *cta, range, "tcgen05.shift");
    warp.tensor.issuers |= bit;
    warp.tensor.uncommitted |= bit;
    for (Cta *cta : ctas)
      tellTensorAccess(warp, op, bit, Completion::By::tensorOperations,
                       /*isWrite=*/true, *cta, {&range, 1});
    enqueueOperation(warp, [ctas, column = at.column] {
      for (Cta *cta : ctas)
        shiftDown(*cta, column);
    });
  });
  return Step::next;
}

void decodeTensorShift(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  op.imm = ctaGroupOf(instruction);
  op.extra = std::make_shared<AddressOperand>(
      AddressOperand::decode(decoder, instruction.operands[0]));
  op.handler = issueShift;
}

} // namespace kiln::sim
