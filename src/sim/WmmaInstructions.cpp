// WmmaInstructions: wmma, whose fragments only its own instructions understand.
//
// PTX leaves open which lane holds which element. Here lane l holds the
// elements l * p to l * p + p - 1 of the matrix, row by row; where a fragment
// has room for more than p, it holds them again.
#include "sim/Access.h"
#include "sim/Execute.h"
#include "sim/Half.h"
#include "support/Error.h"

#include <cstdio>
#include <cstring>

namespace kiln::sim {

namespace {
/// A matrix in fragments.
struct WmmaMatrix {
  int rows = 0, columns = 0;
  bool isSingle = false; ///< f32; else f16

  int perLane() const { return rows * columns / kLanes; }
  int bytes() const { return isSingle ? 4 : 2; }
};

/// wmma.load and wmma.store.
struct WmmaAccess {
  WmmaMatrix matrix;
  bool isRowMajor = true;
  Space space = Space::generic;
  Reg stride; ///< in elements; not valid: without gaps
};

/// wmma.mma; Op::list holds the registers of D, A, B and C.
struct WmmaProduct {
  WmmaMatrix d, a, b, c;
};
} // namespace

static constexpr int kOperandRegisters = 8; ///< of A and of B
static constexpr int kResultRegisters = 8;  ///< of C and D as f32; f16: half

static int registersOf(const WmmaMatrix &accumulator) {
  return accumulator.isSingle ? kResultRegisters : kResultRegisters / 2;
}

/// Element (row, column) of a matrix in a warp's registers.
static float readElement(const Warp &warp, const WmmaMatrix &matrix,
                         const Reg *registers, int row, int column) {
  int index = row * matrix.columns + column;
  int lane = index / matrix.perLane(), i = index % matrix.perLane();
  if (matrix.isSingle)
    return std::bit_cast<float>(std::uint32_t(warp.read(registers[i], lane)));
  auto pair = static_cast<std::uint32_t>(warp.read(registers[i / 2], lane));
  return halfToFloat(static_cast<std::uint16_t>(pair >> (16 * (i % 2))));
}

/// Put `bits` into element `i` of a lane's registers.
static void writeElement(Warp &warp, const WmmaMatrix &matrix,
                         const Reg *registers, int lane, int i,
                         std::uint32_t bits) {
  if (matrix.isSingle)
    return warp.write(registers[i], lane, bits);
  int shift = 16 * (i % 2);
  auto pair = static_cast<std::uint32_t>(warp.read(registers[i / 2], lane));
  pair = (pair & ~(0xffffu << shift)) | bits << shift;
  warp.write(registers[i / 2], lane, pair);
}

/// The address of an element, from the first lane's operands.
static std::uint64_t elementAddress(const Warp &warp, const Op &op,
                                    const WmmaAccess &access, int index) {
  int row = index / access.matrix.columns,
      column = index % access.matrix.columns;
  if (!access.isRowMajor)
    std::swap(row, column);
  std::uint64_t stride =
      access.isRowMajor ? access.matrix.columns : access.matrix.rows;
  if (access.stride.isValid())
    stride = static_cast<std::uint32_t>(warp.read(access.stride, 0));
  return warp.read(op.src[0], 0) + static_cast<std::uint64_t>(op.imm) +
         (row * stride + column) * access.matrix.bytes();
}

static void checkOperands(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  if (op.src[0].isValid() && warp.machine().config().hasChecks &&
      (warp.poison(op.src[0]) & 1))
    warp.machine().fault("uninitialized-address", warp, op, 1,
                         "the address depends on bytes that nobody wrote");
}

static Step loadMatrix(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &access = *static_cast<const WmmaAccess *>(op.extra.get());
  const WmmaMatrix &matrix = access.matrix;
  Accessor accessor(warp, op, "an element of wmma.load");
  std::size_t bytes = static_cast<std::size_t>(matrix.bytes());
  // All elements first: the address may be in a register that is written.
  std::vector<std::uint32_t> values(matrix.rows * matrix.columns);
  LaneMask unknown = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    Place place = accessor.locate(
        access.space, elementAddress(warp, op, access, static_cast<int>(i)),
        bytes, bytes, 0, false);
    std::memcpy(&values[i], place.data, bytes);
    if (!place.isWritten(bytes))
      unknown |= LaneMask(1) << (i / matrix.perLane());
  }
  int slots = static_cast<int>(op.list.size()) * 4 / matrix.bytes();
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < slots; ++i)
      writeElement(warp, matrix, op.list.data(), lane, i,
                   values[lane * matrix.perLane() + i % matrix.perLane()]);
  for (const Reg &reg : op.list)
    warp.poison(reg) = warp.machine().config().hasChecks ? unknown : 0;
  return Step::next;
}

static Step storeMatrix(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &access = *static_cast<const WmmaAccess *>(op.extra.get());
  const WmmaMatrix &matrix = access.matrix;
  Accessor accessor(warp, op, "an element of wmma.store");
  std::size_t bytes = static_cast<std::size_t>(matrix.bytes());
  int perRegister = 4 / matrix.bytes();
  for (int i = 0; i < matrix.rows * matrix.columns; ++i) {
    int lane = i / matrix.perLane(), element = i % matrix.perLane();
    std::uint64_t address = elementAddress(warp, op, access, i);
    Place place =
        accessor.locate(access.space, address, bytes, bytes, lane, true);
    const Reg &reg = op.list[element / perRegister];
    auto bits = static_cast<std::uint32_t>(warp.read(reg, lane)) >>
                (16 * (element % perRegister));
    std::memcpy(place.data, &bits, bytes);
    if (!(warp.poison(reg) >> lane & 1))
      place.markWritten(bytes);
    else if (warp.machine().config().hasChecks && !place.owner)
      warp.machine().fault(
          "uninitialized-store", warp, op, LaneMask(1) << lane,
          "a value that depends on bytes nobody wrote goes to global memory");
  }
  return Step::next;
}

static Step multiply(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &product = *static_cast<const WmmaProduct *>(op.extra.get());
  const Reg *d = op.list.data(), *a = d + registersOf(product.d);
  const Reg *b = a + kOperandRegisters, *c = b + kOperandRegisters;
  int rows = product.d.rows, columns = product.d.columns;
  std::vector<float> sums(rows * columns);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column) {
      float &sum = sums[row * columns + column];
      sum = readElement(warp, product.c, c, row, column);
      for (int k = 0; k < product.a.columns; ++k)
        sum += readElement(warp, product.a, a, row, k) *
               readElement(warp, product.b, b, k, column);
    }
  LaneMask poison = 0;
  for (const Reg *reg = a; reg != op.list.data() + op.list.size(); ++reg)
    poison |= warp.poison(*reg);
  int perLane = product.d.perLane();
  for (int i = 0; i < rows * columns; ++i) {
    std::uint32_t bits = product.d.isSingle
                             ? std::bit_cast<std::uint32_t>(canonical(sums[i]))
                             : floatToHalf(sums[i]);
    writeElement(warp, product.d, d, i / perLane, i % perLane, bits);
  }
  for (int i = 0; i < registersOf(product.d); ++i)
    warp.poison(d[i]) = poison ? kAllLanes : 0;
  return Step::next;
}

/// m16n16k16, m32n8k16 or m8n32k16.
static void shapeOf(const Decoder &decoder, const ptx::Instruction &instruction,
                    int &m, int &n, int &k) {
  for (const std::string &modifier : instruction.modifiers)
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &m, &n, &k) == 3 &&
        k == 16 && m * n == 256 && (m == 8 || m == 16 || m == 32))
      return;
  decoder.refuse(instruction, "its shape is none of m16n16k16, m32n8k16 and "
                              "m8n32k16");
}

/// Append the registers of an operand; refuse another number than `count`.
static void appendRegisters(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const ptx::Operand &operand, int count, Op &op) {
  std::vector<Reg> registers = decoder.vector(operand, 4);
  if (static_cast<int>(registers.size()) != count)
    decoder.refuse(instruction,
                   fmt::format("a fragment of {} registers, not {}", count,
                               registers.size()));
  for (const Reg &reg : registers)
    op.list.push_back(expectWidth(decoder, instruction, reg, 4));
}

static void decodeAccess(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  WmmaAccess access;
  int m, n, k;
  shapeOf(decoder, instruction, m, n, k);
  ptx::ScalarType type = lastType(decoder, instruction);
  bool isLoad = instruction.has("load");
  bool isOperand = instruction.has("a") || instruction.has("b");
  access.matrix = instruction.has("a")   ? WmmaMatrix{m, k}
                  : instruction.has("b") ? WmmaMatrix{k, n}
                                         : WmmaMatrix{m, n};
  access.matrix.isSingle = type == ptx::ScalarType::f32;
  if (type != ptx::ScalarType::f16 && (isOperand || !access.matrix.isSingle))
    decoder.refuse(instruction, "wmma is known for f16 with f16 and f32 "
                                "accumulators");
  std::size_t count = instruction.operands.size();
  if (count != 2 && count != 3)
    decoder.refuse(instruction, "it takes an address, a fragment and a stride");
  appendRegisters(decoder, instruction, instruction.operands[isLoad ? 0 : 1],
                  isOperand ? kOperandRegisters : registersOf(access.matrix),
                  op);
  op.isListWritten = isLoad;
  op.src[0] = decoder.address(instruction.operands[isLoad ? 1 : 0], op.imm);
  if (count == 3)
    access.stride = decoder.reg(instruction.operands[2], 4);
  access.isRowMajor = instruction.has("row");
  access.space = spaceOf(instruction);
  op.extra = std::make_shared<WmmaAccess>(access);
  op.handler = isLoad ? loadMatrix : storeMatrix;
}

static void decodeProduct(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  int m, n, k;
  shapeOf(decoder, instruction, m, n, k);
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  auto isHalf = [](ptx::ScalarType type) {
    return type == ptx::ScalarType::f16;
  };
  auto isSingle = [](ptx::ScalarType type) {
    return type == ptx::ScalarType::f32;
  };
  if (types.size() != 2 || !(isHalf(types[0]) || isSingle(types[0])) ||
      !(isHalf(types[1]) || isSingle(types[1])) || instruction.has("satfinite"))
    decoder.refuse(instruction, "wmma is known for f16 with f16 and f32 "
                                "accumulators");
  WmmaProduct product{{m, n, isSingle(types[0])},
                      {m, k, false},
                      {k, n, false},
                      {m, n, isSingle(types[1])}};
  expectOperands(decoder, instruction, 4);
  const int counts[] = {registersOf(product.d), kOperandRegisters,
                        kOperandRegisters, registersOf(product.c)};
  for (int i = 0; i < 4; ++i)
    appendRegisters(decoder, instruction, instruction.operands[i], counts[i],
                    op);
  op.extra = std::make_shared<WmmaProduct>(product);
  op.handler = multiply;
}

void decodeWmma(Decoder &decoder, const ptx::Instruction &instruction, Op &op) {
  if (instruction.has("mma"))
    return decodeProduct(decoder, instruction, op);
  if (instruction.has("load") || instruction.has("store"))
    return decodeAccess(decoder, instruction, op);
  decoder.refuse(instruction, "this form of wmma");
}

} // namespace kiln::sim
