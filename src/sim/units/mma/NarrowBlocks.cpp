// NarrowBlocks: ldmatrix and stmatrix of bytes, which come as they are or from
// elements of 6 and 4 bits.
//
// A block has rows of 16 bytes in shared memory, each at an address of its own
// lane. Without .trans (m8n16) a lane holds four neighbours of a row; with it
// (m16n16, m16n8) two neighbours of a column, and the same of the eighth column
// behind it (CUTLASS, SM100_U8x8_LDSM_T and SM100_U8x8_STSM_T).
#include "sim/units/Execute.h"
#include "sim/units/mma/Mma.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

static constexpr std::size_t kRowBytes = 16;

namespace {
/// How ldmatrix gets bytes.
enum class Spread : std::uint8_t { none, six, four };

/// A decoded ldmatrix or stmatrix.
struct NarrowBlocks {
  int rows = 8;          ///< of a block
  bool isColumns = true; ///< lanes hold parts of columns
  Spread spread = Spread::none;

  /// Registers of a block.
  int registers() const { return rows / 8; }
};

/// A row of 16 bytes, and ones in those that nobody wrote.
struct ByteRow {
  std::array<std::uint8_t, kRowBytes> value{}, unwritten{};
};
} // namespace

/// Sixteen elements in the low bits of a byte each.
static ByteRow spreadRow(const ByteRow &from, int bits) {
  ByteRow row;
  for (std::size_t i = 0; i < kRowBytes; ++i) {
    std::size_t first = i * static_cast<std::size_t>(bits);
    std::size_t next = std::min(first / 8 + 1, kRowBytes - 1);
    auto take = [&](const std::array<std::uint8_t, kRowBytes> &bytes) {
      unsigned word = bytes[first / 8] | unsigned(bytes[next]) << 8;
      return word >> first % 8 & ((1u << bits) - 1);
    };
    row.value[i] = static_cast<std::uint8_t>(take(from.value));
    row.unwritten[i] = take(from.unwritten) ? 0xff : 0;
  }
  return row;
}

/// Byte `part` of a lane's register `reg` of a block: its row and column.
static std::pair<int, int> placeOf(const NarrowBlocks &blocks, int reg,
                                   int lane, int part) {
  int group = lane / 4, inGroup = lane % 4;
  if (!blocks.isColumns)
    return {group, 4 * inGroup + part};
  int first = 2 * (inGroup * blocks.registers() + reg);
  return {first + part % 2, group + 8 * (part / 2)};
}

static ByteRow readRow(Warp &warp, const Op &op, Accessor &accessor, int lane,
                       std::uint32_t &origin) {
  ByteRange place = rowAt(warp, op, accessor, lane, /*isWrite=*/false);
  ByteRow row;
  std::memcpy(row.value.data(), place.data, kRowBytes);
  if (place.isWritten(kRowBytes))
    return row;
  for (std::size_t i = 0; i < kRowBytes; ++i)
    row.unwritten[i] = static_cast<std::uint8_t>(place.behind(i).unwritten(1));
  if (!origin)
    origin = originOf(warp, op, place, kRowBytes);
  return row;
}

static Step loadNarrow(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &blocks = *static_cast<const NarrowBlocks *>(op.extra.get());
  Accessor accessor(warp, op, "a row of ldmatrix");
  int count = static_cast<int>(op.list.size()) / blocks.registers();
  std::uint32_t origin = 0;
  // All rows first: the address may be in a register that is written.
  std::vector<ByteRow> rows;
  for (int i = 0; i < count * blocks.rows; ++i) {
    ByteRow row = readRow(warp, op, accessor, i, origin);
    if (blocks.spread != Spread::none)
      row = spreadRow(row, blocks.spread == Spread::six ? 6 : 4);
    rows.push_back(row);
  }
  for (int i = 0; i < static_cast<int>(op.list.size()); ++i) {
    int block = i / blocks.registers(), reg = i % blocks.registers();
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint32_t bits = 0, unwritten = 0;
      for (int part = 0; part < 4; ++part) {
        auto [row, column] = placeOf(blocks, reg, lane, part);
        const ByteRow &from = rows[block * blocks.rows + row];
        bits |= std::uint32_t(from.value[column]) << 8 * part;
        unwritten |= std::uint32_t(from.unwritten[column]) << 8 * part;
      }
      warp.write(op.list[i], lane, bits);
      warp.setPoisonBits(op.list[i], lane, unwritten);
    }
    warp.setPoisonOrigin(op.list[i], origin);
  }
  return Step::next;
}

static Step storeNarrow(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &blocks = *static_cast<const NarrowBlocks *>(op.extra.get());
  Accessor accessor(warp, op, "a row of stmatrix");
  constexpr int kRows = 8; // in memory, of one register's bytes
  for (int i = 0; i < static_cast<int>(op.list.size()); ++i) {
    std::array<ByteRow, kRows> rows;
    for (int lane = 0; lane < kLanes; ++lane)
      for (int part = 0; part < 4; ++part) {
        auto [row, column] = placeOf(blocks, 0, lane, part);
        rows[row].value[column] =
            static_cast<std::uint8_t>(warp.read(op.list[i], lane) >> 8 * part);
        rows[row].unwritten[column] = static_cast<std::uint8_t>(
            warp.poisonBits(op.list[i], lane) >> 8 * part);
      }
    for (int row = 0; row < kRows; ++row) {
      ByteRange place =
          rowAt(warp, op, accessor, i * kRows + row, /*isWrite=*/true);
      std::memcpy(place.data, rows[row].value.data(), kRowBytes);
      for (std::size_t at = 0; at < kRowBytes; ++at)
        place.behind(at).mark(1, rows[row].unwritten[at],
                              warp.poisonOrigin(op.list[i]));
    }
  }
  return Step::next;
}

void decodeNarrowBlocks(Decoder &decoder, const ptx::Instruction &instruction,
                        Op &op) {
  bool isLoad = instruction.opcode == "ldmatrix";
  NarrowBlocks blocks;
  blocks.rows = instruction.has("m16n16") ? 16 : 8;
  blocks.isColumns = !instruction.has("m8n16");
  if (instruction.has("b6x16_p32"))
    blocks.spread = Spread::six;
  else if (instruction.has("b4x16_p64"))
    blocks.spread = Spread::four;
  if (instruction.has("b8x16") != (blocks.spread != Spread::none))
    decoder.refuse(instruction,
                   ".b8x16 is made of .b6x16_p32 or .b4x16_p64");
  int count = instruction.has("x4") ? 4 : instruction.has("x2") ? 2 : 1;
  const auto &operands = instruction.operands;
  op.list = decoder.vector(operands[isLoad ? 0 : 1], 4);
  op.isListWritten = isLoad;
  int wanted = count * (isLoad ? blocks.registers() : 1);
  if (static_cast<int>(op.list.size()) != wanted)
    decoder.refuse(instruction, fmt::format("{} registers for {} matrices of "
                                            "{}",
                                            op.list.size(), count,
                                            wanted / count));
  for (const Reg &reg : op.list)
    expectWidth(decoder, instruction, reg, 4);
  op.src[0] = decoder.address(operands[isLoad ? 1 : 0], op.imm);
  if (spaceOf(instruction) == Space::generic)
    op.flags |= isGenericRow;
  op.extra = std::make_shared<NarrowBlocks>(blocks);
  op.handler = isLoad ? loadNarrow : storeNarrow;
}

} // namespace kiln::sim
