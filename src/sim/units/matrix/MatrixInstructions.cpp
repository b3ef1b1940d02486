// MatrixInstructions: matrices in the registers of one warp: mma, and ldmatrix,
// stmatrix and movmatrix, which bring 8 x 8 blocks there, away and around.
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/matrix/MatrixNumber.h"
#include "sim/units/mma/MmaSum.h"
#include "sim/units/mma/Mma.h"
#include "sim/units/matrix/MmaShapes.h"
#include "sim/units/memory/AccessTraits.h"
#include "support/Error.h"

#include <cstring>

namespace kiln::sim {

static constexpr int kBlock = 8; ///< rows and columns of ldmatrix's matrices
static constexpr std::size_t kBlockRowBytes = 16;

namespace {
/// 8 x 8 values of 16 bits, and all ones in bytes that nobody wrote.
struct Block {
  std::uint16_t value[kBlock][kBlock] = {};
  std::uint16_t unwritten[kBlock][kBlock] = {};
  std::uint32_t origin = 0; ///< of what is not written
};
/// Op::flags of ldmatrix and stmatrix, beside isGenericRow.
enum BlockFlags : std::uint32_t { isTransposed = 2 };
} // namespace

/// The values that a lane holds of a block: one row's neighbours.
static std::uint32_t fragmentOf(const Block &block, int lane, bool isSwapped,
                                std::uint32_t &unwritten) {
  std::uint32_t bits = 0;
  unwritten = 0;
  for (int half = 0; half < 2; ++half) {
    int row = lane / 4, column = 2 * (lane % 4) + half;
    if (isSwapped)
      std::swap(row, column);
    bits |= std::uint32_t(block.value[row][column]) << (16 * half);
    unwritten |= std::uint32_t(block.unwritten[row][column]) << (16 * half);
  }
  return bits;
}

/// The block whose fragments are in a register.
static Block blockOf(Warp &warp, Reg reg, bool isSwapped) {
  Block block;
  block.origin = warp.poisonOrigin(reg);
  for (int lane = 0; lane < kLanes; ++lane)
    for (int half = 0; half < 2; ++half) {
      int row = lane / 4, column = 2 * (lane % 4) + half;
      if (isSwapped)
        std::swap(row, column);
      block.value[row][column] =
          static_cast<std::uint16_t>(warp.read(reg, lane) >> (16 * half));
      block.unwritten[row][column] =
          static_cast<std::uint16_t>(warp.poisonBits(reg, lane) >> (16 * half));
    }
  return block;
}

static void putBlock(Warp &warp, Reg reg, const Block &block, bool isSwapped) {
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t unwritten;
    warp.write(reg, lane, fragmentOf(block, lane, isSwapped, unwritten));
    warp.setPoisonBits(reg, lane, unwritten);
  }
  warp.setPoisonOrigin(reg, block.origin);
}

ByteRange rowAt(Warp &warp, const Op &op, Accessor &accessor, int lane,
                bool isWrite) {
  std::uint64_t address =
      AddressOperand{op.src[0], op.imm}.read(warp, op, lane);
  Space space = op.flags & isGenericRow ? Space::generic : Space::shared;
  ByteRange row = accessor.locate(space, address, kBlockRowBytes,
                                  kBlockRowBytes, lane, isWrite);
  if (!row.owner)
    warp.machine().findings().fault(
        FindingId::matrixAddress, warp, op, LaneMask(1) << lane,
        fmt::format("the row at {:#x} is not in shared memory", address));
  return row;
}

static Step loadBlocks(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  Accessor accessor(warp, op, "a row of ldmatrix");
  // All rows first: the address may be in a register that is written.
  std::vector<Block> blocks(op.list.size());
  for (std::size_t i = 0; i < blocks.size(); ++i)
    for (int r = 0; r < kBlock; ++r) {
      int lane = static_cast<int>(i) * kBlock + r;
      ByteRange row = rowAt(warp, op, accessor, lane, false);
      std::memcpy(blocks[i].value[r], row.data, kBlockRowBytes);
      for (int column = 0; column < kBlock; ++column)
        blocks[i].unwritten[r][column] =
            static_cast<std::uint16_t>(row.behind(2 * column).unwritten(2));
      if (!blocks[i].origin && !row.isWritten(kBlockRowBytes))
        blocks[i].origin = originOf(warp, op, row, kBlockRowBytes);
    }
  for (std::size_t i = 0; i < blocks.size(); ++i)
    putBlock(warp, op.list[i], blocks[i], op.flags & isTransposed);
  return Step::next;
}

static Step storeBlocks(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  Accessor accessor(warp, op, "a row of stmatrix");
  for (std::size_t i = 0; i < op.list.size(); ++i) {
    Block block = blockOf(warp, op.list[i], op.flags & isTransposed);
    for (int r = 0; r < kBlock; ++r) {
      int lane = static_cast<int>(i) * kBlock + r;
      ByteRange row = rowAt(warp, op, accessor, lane, true);
      accessor.noteValue(
          row.isWritten(kBlockRowBytes) &&
          std::memcmp(row.data, block.value[r], kBlockRowBytes) == 0);
      std::memcpy(row.data, block.value[r], kBlockRowBytes);
      for (int column = 0; column < kBlock; ++column)
        row.behind(2 * column)
            .mark(2, block.unwritten[r][column], block.origin);
    }
  }
  return Step::next;
}

static Step transposeBlock(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  putBlock(warp, op.dst, blockOf(warp, op.src[0], /*isSwapped=*/true),
           /*isSwapped=*/false);
  return Step::next;
}

static void decodeBlocks(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  bool isLoad = instruction.opcode == "ldmatrix";
  if (instruction.has("b8") || instruction.has("b8x16"))
    return decodeNarrowBlocks(decoder, instruction, op);
  if (!instruction.has("m8n8") ||
      lastType(decoder, instruction) != ptx::ScalarType::b16)
    decoder.refuse(instruction, "only matrices m8n8 of b16 are known");
  std::size_t count = instruction.has("x4") ? 4 : instruction.has("x2") ? 2 : 1;
  const auto &operands = instruction.operands;
  op.list = decoder.vector(operands[isLoad ? 0 : 1], 4);
  op.isListWritten = isLoad;
  if (op.list.size() != count)
    decoder.refuse(instruction, fmt::format("{} registers for {} matrices",
                                            op.list.size(), count));
  for (const Reg &reg : op.list)
    expectWidth(decoder, instruction, reg, 4);
  op.src[0] = decoder.address(operands[isLoad ? 1 : 0], op.imm);
  if (instruction.has("trans"))
    op.flags |= isTransposed;
  if (spaceOf(instruction) == Space::generic)
    op.flags |= isGenericRow;
  op.handler = isLoad ? loadBlocks : storeBlocks;
}

static void decodeMovmatrix(Decoder &decoder,
                            const ptx::Instruction &instruction, Op &op) {
  op.dst = destination(decoder, instruction, instruction.operands[0], 4);
  op.src[0] =
      source<std::uint32_t>(decoder, instruction, instruction.operands[1]);
  op.handler = transposeBlock;
}

/// Element `index` of a lane's registers, `packed` to a register: its value,
/// or all ones in those of its bytes that nobody wrote.
static std::uint64_t elementBits(const Warp &warp, const Reg *registers,
                                 int packed, int lane, int index,
                                 bool isPoison = false) {
  const Reg &reg = registers[index / packed];
  int bits = 8 * reg.width / packed;
  std::uint64_t word =
      isPoison ? warp.poisonBits(reg, lane) : warp.read(reg, lane);
  word >>= bits * (index % packed);
  return bits == 64 ? word : word & ((std::uint64_t(1) << bits) - 1);
}

/// Unwritten elements of A spoil their row of D, those of B their column, those
/// of C themselves. Call it before D, which may lie over C, is written.
static std::vector<std::array<bool, kLanes>>
poisonOfProduct(const Warp &warp, const Op &op, const MmaShape &shape) {
  const Reg *a = op.list.data() + shape.registersOf(shape.typeD);
  const Reg *b = a + shape.registersA(), *c = b + shape.registersB();
  int packedC = MmaShape::packedAccumulators(shape.typeC);
  auto isBad = [&](const Reg *registers, int packed, int lane, int i) {
    return elementBits(warp, registers, packed, lane, i, true) != 0;
  };
  std::array<bool, 16> rows{};
  std::array<bool, 8> columns{};
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < shape.m * shape.k / kLanes; ++i)
      rows[elementA(shape, lane, i).row] |= isBad(a, shape.packed(), lane, i);
    for (int i = 0; i < shape.k * shape.n / kLanes; ++i)
      columns[elementB(shape, lane, i).column] |=
          isBad(b, shape.packed(), lane, i);
  }
  std::vector<std::array<bool, kLanes>> poison(shape.m * shape.n / kLanes);
  for (std::size_t i = 0; i < poison.size(); ++i)
    for (int lane = 0; lane < kLanes; ++lane) {
      MatrixElement at = elementC(lane, static_cast<int>(i));
      poison[i][lane] = rows[at.row] || columns[at.column] ||
                        isBad(c, packedC, lane, static_cast<int>(i));
    }
  return poison;
}

/// op.list holds the registers of D, A, B and C in this order.
template <typename T>
static Step multiply(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &shape = *static_cast<const MmaShape *>(op.extra.get());
  int m = shape.m, n = shape.n, k = shape.k;
  const Reg *d = op.list.data(), *a = d + shape.registersOf(shape.typeD);
  const Reg *b = a + shape.registersA(), *c = b + shape.registersB();
  std::array<T, 16 * 32> matrixA;
  std::array<T, 32 * 8> matrixB;
  std::array<T, 16 * 8> sums;
  int packedC = MmaShape::packedAccumulators(shape.typeC);
  int packedD = MmaShape::packedAccumulators(shape.typeD);
  for (int lane = 0; lane < kLanes; ++lane) {
    for (int i = 0; i < m * k / kLanes; ++i) {
      MatrixElement at = elementA(shape, lane, i);
      matrixA[at.row * k + at.column] = toNumber(
          elementBits(warp, a, shape.packed(), lane, i), shape.typeA, T());
    }
    for (int i = 0; i < k * n / kLanes; ++i) {
      MatrixElement at = elementB(shape, lane, i);
      matrixB[at.row * n + at.column] = toNumber(
          elementBits(warp, b, shape.packed(), lane, i), shape.typeB, T());
    }
    for (int i = 0; i < m * n / kLanes; ++i) {
      MatrixElement at = elementC(lane, i);
      sums[at.row * n + at.column] =
          toNumber(elementBits(warp, c, packedC, lane, i), shape.typeC, T());
    }
  }
  addProducts({shape.m, shape.n, shape.k, shape.typeA, shape.typeB, shape.typeD,
               warp.machine().config().is_mma_fast},
              matrixA.data(), matrixB.data(), sums.data());
  LaneMask unwritten = 0;
  for (const Reg *reg = a; reg != op.list.data() + op.list.size(); ++reg)
    unwritten |= warp.poison(*reg);
  std::vector<std::array<bool, kLanes>> poison;
  std::uint32_t origin = 0;
  if (unwritten) {
    poison = poisonOfProduct(warp, op, shape);
    for (const Reg *reg = a; reg != op.list.data() + op.list.size(); ++reg)
      if (!origin && warp.poison(*reg))
        origin = warp.poisonOrigin(*reg);
  }
  for (int i = 0; i < shape.registersOf(shape.typeD); ++i) {
    warp.setPoison(d[i], kAllLanes, 0);
    warp.setPoisonOrigin(d[i], origin);
    for (int lane = 0; lane < kLanes; ++lane) {
      std::uint64_t bits = 0, bad = 0;
      for (int part = 0; part < packedD; ++part) {
        MatrixElement at = elementC(lane, i * packedD + part);
        bits |= fromNumber(sums[at.row * n + at.column], shape.typeD,
                           shape.isSaturated)
                << (16 * part);
        if (unwritten && poison[i * packedD + part][lane])
          bad |= (packedD == 1 ? ~std::uint64_t(0) : 0xffff) << (16 * part);
      }
      warp.write(d[i], lane, bits);
      if (bad)
        warp.setPoisonBits(d[i], lane, bad);
    }
  }
  return Step::next;
}

void decodeMmaRegisters(Decoder &decoder, const ptx::Instruction &instruction,
                        const MmaShape &shape, Op &op) {
  const int counts[] = {shape.registersOf(shape.typeD), shape.registersA(),
                        shape.registersB(), shape.registersOf(shape.typeC)};
  int bytes = shape.registerBytes();
  for (int i = 0; i < 4; ++i) {
    std::vector<Reg> registers = decoder.vector(instruction.operands[i], bytes);
    if (static_cast<int>(registers.size()) != counts[i])
      decoder.refuse(instruction,
                     fmt::format("{} registers for {}, which has {}",
                                 registers.size(), "DABC"[i], counts[i]));
    for (const Reg &reg : registers)
      op.list.push_back(expectWidth(decoder, instruction, reg, bytes));
  }
}

static void decodeMma(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  MmaShape shape;
  std::string why;
  if (!parseMma(instruction.modifiers, shape, why))
    decoder.refuse(instruction, why);
  decodeMmaRegisters(decoder, instruction, shape, op);
  if (!shape.isPlain())
    return decodeMmaProduct(decoder, instruction, shape, op);
  if (shape.typeC == ptx::ScalarType::s32)
    op.handler = multiply<std::int64_t>;
  else if (shape.typeC == ptx::ScalarType::f64)
    op.handler = multiply<double>;
  else
    op.handler = multiply<float>;
  op.extra = std::make_shared<MmaShape>(shape);
}

static void wmmaEffect(Decoder &decoder, const ptx::Instruction &instruction,
                       Effect &effect) {
  if (instruction.has("load"))
    loadEffect(decoder, instruction, effect);
  else if (instruction.has("store"))
    storeEffect(decoder, instruction, effect);
}

static AddressUse wmmaAddresses(const ptx::Instruction &instruction) {
  return {.read = instruction.has("load") ? OperandSet(0b10) : OperandSet(0),
          .written =
              instruction.has("store") ? OperandSet(0b1) : OperandSet(0)};
}

std::vector<Instruction> matrixInstructions() {
  return {
      {"ldmatrix",
       decodeBlocks,
       Unit::matrix,
       "m8n8 x1 x2 x4 of b16, trans; m16n16 x1 x2 of b8, trans, and m8n16 x1 "
       "x2 x4, from 6 and 4 bits",
       "m16n16 x1|x2 trans, ALIGNED shared shared::cta b8 b8x16 "
       "b6x16_p32|b4x16_p64 -> ={b32}* [a]; "
       "m8n16 x1|x2|x4 b6x16_p32|b4x16_p64, ALIGNED shared shared::cta b8x16 "
       "-> ={b32}* [a]; "
       "x1|x2|x4, ALIGNED m8n8 trans shared shared::cta b16 -> ={b32}* [a]",
       {.effect = loadEffect, .semantics = accessSemantics}},
      {"stmatrix",
       decodeBlocks,
       Unit::matrix,
       "m8n8 x1 x2 x4 of b16, trans; m16n8 x1 x2 x4 of b8, trans",
       "m16n8 x1|x2|x4 trans, ALIGNED shared shared::cta b8 -> [a] {b32}*; "
       "x1|x2|x4, ALIGNED m8n8 trans shared shared::cta b16 -> [a] {b32}*",
       {.effect = storeEffect, .semantics = accessSemantics}},
      {"movmatrix", decodeMovmatrix, Unit::matrix, "m8n8 trans of b16",
       "trans, ALIGNED m8n8 b16 -> =b32 b32"},
      {"mma", decodeMma, Unit::matrix,
       "every shape of f16, bf16, tf32, f64, s8, u8, s4, u4, b1, e4m3, e5m2, "
       "e2m3, e3m2 and e2m1; sparse; with block scales of kinds mxf8f6f4, mxf4 "
       "and mxf4nvf4",
       "sp|sp::ordered_metadata block_scale SCALEDKIND, ALIGNED mNnNkN row col "
       "SCALES f32 NARROW -> ={*} {*} {*} {*} b32 imm {b32} {u16}* {b32} {u16}*; "
       "sp|sp::ordered_metadata, ALIGNED mNnNkN row col satfinite "
       "kind::f8f6f4 TYPE NARROW u4 s4 -> ={*} {*} {*} {*} b32 imm; "
       "block_scale SCALEDKIND, ALIGNED mNnNkN row col SCALES f32 NARROW -> "
       "={*} {*} {*} {*} {b32} {u16}* {b32} {u16}*; "
       "xor|and popc, ALIGNED mNnNkN row col s32 b1 -> ={*} {*} {*} {*}; "
       ", ALIGNED mNnNkN row col rn satfinite kind::f8f6f4 TYPE NARROW u4 s4 "
       "-> ={*} {*} {*} {*}",
       {.operations = productOperations<1>}},
      {"wmma",
       decodeWmma,
       Unit::matrix,
       "load, store and mma: m16n16k16, m32n8k16 and m8n32k16 of f16 with f16 "
       "and f32 accumulators, bf16, s8 and u8; m16n16k8 of tf32; m8n8k4 of "
       "f64; m8n8k32 of s4 and u4, m8n8k128 of b1",
       "load a|b|c, ALIGNED mNnNkN row col TYPE u4 s4 b1 SPACE -> ={*} [a] "
       "u32?; "
       "store d, ALIGNED mNnNkN row col TYPE SPACE -> [a] {*} u32?; "
       "mma xor|and popc, ALIGNED mNnNkN row col s32 b1 -> ={*} {*} {*} {*}; "
       "mma, ALIGNED mNnNkN row col rn satfinite TYPE u4 s4 -> ={*} {*} {*} "
       "{*}",
       {.effect = wmmaEffect,
        .semantics = accessSemantics,
        .addresses = wmmaAddresses,
        .operations = productOperations<1>}},
  };
}

} // namespace kiln::sim
