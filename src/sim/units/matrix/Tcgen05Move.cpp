// Tcgen05Move: tcgen05.ld and tcgen05.st, between tensor memory and the
// registers of a warp, and the waits for them.
//
// A store takes effect when the order of the run says, and at the latest at
// tcgen05.wait::st. A load is done at once: nobody may change what it reads
// before tcgen05.wait::ld, and who does is found by the order of accesses. Its
// registers may be used without the wait.
#include "sim/units/matrix/Tcgen05.h"

#include <algorithm>

namespace kiln::sim {

namespace {
/// How registers and lanes of a warp lie in tensor memory.
enum class MoveShape : std::uint8_t {
  lanes32, ///< .32x32b: a column of 32 lanes in a register
  bits64,  ///< .16x64b
  bits128, ///< .16x128b
  bits256, ///< .16x256b
  halves,  ///< .16x32bx2: half the registers' lanes from another column
};

struct MoveShapeRow {
  const char *word;
  MoveShape shape;
  std::uint32_t lanes;   ///< of tensor memory
  std::uint32_t columns; ///< for each repetition
  std::uint32_t registers;
  std::uint32_t most; ///< repetitions
};

/// A decoded ld or st; the registers are the op's list.
struct TensorMove {
  const MoveShapeRow *shape = nullptr;
  std::uint32_t repetitions = 1;
  bool isPacked = false; ///< two columns of 16 bits in a register
  AddressOperand address;
  std::uint32_t split = 0; ///< .16x32bx2: where the other half is, in columns
  std::optional<TensorReduction> reduction; ///< .ld.red, into the op's dst
};

/// Where one lane of a register is.
struct Place {
  std::uint32_t lane, column;
};
} // namespace

static constexpr MoveShapeRow kMoveShapes[] = {
    {"32x32b", MoveShape::lanes32, 32, 1, 1, 128},
    {"16x64b", MoveShape::bits64, 16, 2, 1, 128},
    {"16x128b", MoveShape::bits128, 16, 4, 2, 64},
    {"16x256b", MoveShape::bits256, 16, 8, 4, 32},
    {"16x32bx2", MoveShape::halves, 16, 1, 1, 128},
};

/// Register `r` of lane `t`, from the address on (PTX ISA, tcgen05.ld: the
/// figures of the shapes).
static Place placeOf(const TensorMove &move, std::uint32_t r, std::uint32_t t) {
  switch (move.shape->shape) {
  case MoveShape::lanes32:
    return {t, r};
  case MoveShape::bits64:
    return {t / 4 + 8 * (t & 1), (t >> 1 & 1) + 2 * r};
  case MoveShape::bits128:
    return {t / 4 + 8 * (r & 1), t % 4 + 4 * (r >> 1)};
  case MoveShape::bits256:
    return {t / 4 + 8 * (r >> 1 & 1), 2 * (t % 4) + (r & 1) + 8 * (r >> 2)};
  case MoveShape::halves:
    return {t % 16, r};
  }
  return {};
}

/// The lanes and columns that are touched: two ranges for .16x32bx2.
static std::vector<TensorRange> rangesOf(const TensorMove &move,
                                         TensorAddress at) {
  std::uint32_t columns =
      move.shape->columns * move.repetitions * (move.isPacked ? 2 : 1);
  TensorRange range{at.lane, at.column, move.shape->lanes, columns};
  if (move.shape->shape != MoveShape::halves)
    return {range};
  TensorRange other = range;
  other.column += move.split;
  return {range, other};
}

/// Where the warp goes with an address. A warp reaches the quarter of the lanes
/// that its number modulo 4 names; of the lane in the address released hardware
/// takes the place in that quarter, and the rest is not looked at.
static TensorAddress routed(Warp &warp, const Op &op, LaneMask active,
                            const TensorMove &move, TensorAddress at) {
  std::uint32_t lanes = move.shape->lanes;
  Findings &findings = warp.machine().findings();
  if (at.lane % lanes)
    findings.fault(FindingId::tcgen05Address, warp, op, active,
                   fmt::format("the address names lane {} of tensor memory; "
                               ".{} takes a multiple of {}",
                               at.lane, move.shape->word, lanes),
                   {"tensor", at.bits()});
  std::uint32_t quarter = 32 * (static_cast<std::uint32_t>(warp.index()) % 4);
  if (at.lane / 32 * 32 == quarter)
    return at;
  TensorAddress taken{quarter + at.lane % 32, at.column};
  findings.report(
      FindingId::tcgen05Lanes, warp, op, active,
      fmt::format("warp {} of the CTA names lanes {} to {} of tensor memory; "
                  "it may touch lanes {} to {}, and lanes {} to {} are taken",
                  warp.index(), at.lane, at.lane + lanes - 1, quarter,
                  quarter + 31, taken.lane, taken.lane + lanes - 1),
      {"tensor", at.bits()});
  return taken;
}

/// Call `body(register, lane, place)` for every lane of every register, the
/// place of the lower half where it is packed.
template <typename Body>
static void forEachPlace(const TensorMove &move, TensorAddress at,
                         std::size_t registers, Body &&body) {
  for (std::uint32_t r = 0; r < registers; ++r)
    for (std::uint32_t t = 0; t < kLanes; ++t) {
      Place place = placeOf(move, r, t);
      std::uint32_t column = place.column * (move.isPacked ? 2 : 1);
      if (move.shape->shape == MoveShape::halves && t >= 16)
        column += move.split;
      body(r, static_cast<int>(t), at.lane + place.lane, at.column + column);
    }
}

/// Whether the lanes of a register are those of a column, in order.
static bool isStraight(const TensorMove &move) {
  return move.shape->shape == MoveShape::lanes32 && !move.isPacked;
}

static void loadStraight(Warp &warp, const Op &op, TensorMemory &memory,
                         TensorAddress at) {
  constexpr std::size_t kBytes = kLanes * 4;
  for (std::uint32_t r = 0; r < op.list.size(); ++r) {
    const Reg &reg = op.list[r];
    std::memcpy(warp.lanes<std::uint32_t>(reg),
                memory.at(at.lane, at.column + r), kBytes);
    std::size_t offset = TensorMemory::offset(at.lane, at.column + r);
    warp.setPoison(reg, kAllLanes, 0);
    if (memory.valid.all(offset, kBytes))
      continue;
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t unwritten = memory.valid.unwritten(offset + 4 * lane, 4);
      warp.setPoisonBits(reg, lane, unwritten);
      if (unwritten)
        warp.setPoisonOrigin(
            reg, originOf(warp, op, memory,
                          at.lane + static_cast<std::uint32_t>(lane),
                          at.column + r));
    }
  }
}

static void loadPlaces(Warp &warp, const Op &op, const TensorMove &move,
                       TensorMemory &memory, TensorAddress at) {
  forEachPlace(
      move, at, op.list.size(),
      [&](std::uint32_t r, int t, std::uint32_t lane, std::uint32_t column) {
        std::uint32_t bits = *memory.at(lane, column);
        std::size_t offset = TensorMemory::offset(lane, column);
        auto unwritten = memory.valid.unwritten(offset, 4);
        if (move.isPacked) {
          bits = (bits & 0xffff) | *memory.at(lane, column + 1) << 16;
          std::size_t next = TensorMemory::offset(lane, column + 1);
          unwritten = (unwritten & 0xffff) | memory.valid.unwritten(next, 2)
                                                 << 16;
        }
        warp.write(op.list[r], t, bits);
        warp.setPoisonBits(op.list[r], t, unwritten);
        if (unwritten)
          warp.setPoisonOrigin(
              op.list[r],
              originOf(warp, op, memory, lane,
                       column + (unwritten & 0xffff ? 0 : move.isPacked)));
      });
}

/// Where it goes, checked, and told to who watches.
static TensorAddress begin(Warp &warp, const Op &op, const TensorMove &move,
                           LaneMask active, bool isWrite) {
  checkWholeWarp(warp, op, active);
  TensorAddress at = routed(warp, op, active, move,
                            tensorAddress(warp, op, move.address, active));
  std::vector<TensorRange> ranges = rangesOf(move, at);
  for (const TensorRange &range : ranges)
    checkTensorRange(warp, op, active, warp.cta(), range,
                     isWrite ? "tcgen05.st" : "tcgen05.ld");
  warp.watchers().tell(TensorMoveBegin{warp, op, /*isLoad=*/!isWrite});
  tellTensorAccess(warp, op, active,
                   isWrite ? Completion::By::tensorStores
                           : Completion::By::tensorLoads,
                   isWrite, warp.cta(), ranges);
  return at;
}

static Step load(Warp &warp, const Op &op, LaneMask active) {
  const auto &move = *static_cast<const TensorMove *>(op.extra.get());
  TensorAddress at = begin(warp, op, move, active, /*isWrite=*/false);
  TensorMemory &memory = warp.cta().tensorMemory();
  if (isStraight(move))
    loadStraight(warp, op, memory, at);
  else
    loadPlaces(warp, op, move, memory, at);
  if (move.reduction)
    reduceRegisters(warp, op, *move.reduction);
  return Step::next;
}

namespace {
/// What a store has read of the registers.
struct StoredWords {
  std::vector<std::uint32_t> words;     ///< [register][lane]
  std::vector<std::uint64_t> unwritten; ///< ones in bytes; empty: none
  std::vector<std::uint32_t> origins;   ///< of each register, of those bytes
};
} // namespace

static StoredWords readRegisters(Warp &warp, const Op &op) {
  StoredWords stored;
  stored.words.resize(op.list.size() * kLanes);
  bool isPoisoned = false;
  for (std::size_t r = 0; r < op.list.size(); ++r) {
    std::memcpy(stored.words.data() + r * kLanes,
                warp.lanes<std::uint32_t>(op.list[r]), kLanes * 4);
    isPoisoned |= warp.poison(op.list[r]) != 0;
  }
  if (!isPoisoned)
    return stored;
  stored.unwritten.resize(stored.words.size());
  for (const Reg &reg : op.list)
    stored.origins.push_back(warp.poisonOrigin(reg));
  for (std::size_t r = 0; r < op.list.size(); ++r)
    for (int lane = 0; lane < kLanes; ++lane)
      stored.unwritten[r * kLanes + static_cast<std::size_t>(lane)] =
          warp.poisonBits(op.list[r], lane);
  return stored;
}

static void storePlaces(TensorMemory &memory, const TensorMove &move,
                        TensorAddress at, const StoredWords &stored) {
  auto put = [&](std::uint32_t r, std::uint32_t lane, std::uint32_t column,
                 std::uint64_t unwritten) {
    std::size_t offset = TensorMemory::offset(lane, column);
    memory.valid.put(offset, 4, unwritten);
    if (unwritten)
      memory.valid.setOrigin(offset, 4, stored.origins[r]);
  };
  forEachPlace(
      move, at, stored.words.size() / kLanes,
      [&](std::uint32_t r, int t, std::uint32_t lane, std::uint32_t column) {
        std::size_t index = r * kLanes + static_cast<std::size_t>(t);
        std::uint32_t bits = stored.words[index];
        std::uint64_t unwritten =
            stored.unwritten.empty() ? 0 : stored.unwritten[index];
        if (move.isPacked) {
          *memory.at(lane, column + 1) = bits >> 16;
          put(r, lane, column + 1, unwritten >> 16);
          bits &= 0xffff;
          unwritten &= 0xffff;
        }
        *memory.at(lane, column) = bits;
        put(r, lane, column, unwritten);
      });
}

static Step store(Warp &warp, const Op &op, LaneMask active) {
  const auto &move = *static_cast<const TensorMove *>(op.extra.get());
  TensorAddress at = begin(warp, op, move, active, /*isWrite=*/true);
  TensorMemory &memory = warp.cta().tensorMemory();
  OrderedWork &stores = warp.tensor.stores;
  std::uint64_t number =
      stores.add([&memory, &move, at, stored = readRegisters(warp, op)] {
        storePlaces(memory, move, at, stored);
      });
  warp.cta().cluster().enqueue([&stores, number] { stores.finish(number); });
  return Step::next;
}

static Step waitForLoads(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  warp.tensor.loads.clear();
  warp.watchers().tell(TensorMoveEnd{warp, active, /*isLoad=*/true});
  return Step::next;
}

static Step waitForStores(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  warp.tensor.stores.finishAll();
  warp.watchers().tell(TensorMoveEnd{warp, active, /*isLoad=*/false});
  return Step::next;
}

/// The number of `.x8`.
static std::uint32_t repetitionsOf(const ptx::Instruction &instruction) {
  for (const std::string &modifier : instruction.modifiers)
    if (unsigned n; std::sscanf(modifier.c_str(), "x%u", &n) == 1)
      return n;
  return 1;
}

void decodeTensorMove(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  TensorMove move;
  for (const MoveShapeRow &row : kMoveShapes)
    if (instruction.has(row.word))
      move.shape = &row;
  move.repetitions = repetitionsOf(instruction);
  bool isLoad = instruction.has("ld");
  move.isPacked =
      instruction.has("pack::16b") || instruction.has("unpack::16b");
  if (move.repetitions > move.shape->most)
    decoder.refuse(
        instruction,
        fmt::format(".{} goes up to .x{}", move.shape->word, move.shape->most));
  const auto &operands = instruction.operands;
  std::size_t at = isLoad ? 1 : 0;
  if (instruction.has("red")) {
    op.dst = destination(decoder, instruction, operands[at++], 4);
    decoder.markLoaded(op.dst);
    move.reduction = decodeTensorReduction(decoder, instruction);
  }
  move.address = AddressOperand::decode(decoder, operands[at++]);
  if (move.shape->shape == MoveShape::halves)
    move.split = static_cast<std::uint32_t>(operands[at].bits);
  op.list = decoder.vector(isLoad ? operands[0] : operands.back(), 4);
  op.isListWritten = isLoad;
  std::size_t wanted = move.shape->registers * move.repetitions;
  if (op.list.size() != wanted)
    decoder.refuse(instruction,
                   fmt::format("{} registers for .{}.x{}, which has {}",
                               op.list.size(), move.shape->word,
                               move.repetitions, wanted));
  for (const Reg &reg : op.list) {
    expectWidth(decoder, instruction, reg, 4);
    if (isLoad)
      decoder.markLoaded(reg);
  }
  op.extra = std::make_shared<TensorMove>(move);
  op.handler = isLoad ? load : store;
}

void decodeTensorWait(Decoder &, const ptx::Instruction &instruction, Op &op) {
  op.handler = instruction.has("wait::ld") ? waitForLoads : waitForStores;
}

} // namespace kiln::sim
