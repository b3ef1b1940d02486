// WmmaInstructions: wmma, whose fragments only its own instructions understand.
//
// PTX leaves open which lane holds which element. Here lane l holds the
// elements l * p to l * p + p - 1 of the matrix, row by row; where a fragment
// has room for more than p, it holds them again.
#include "sim/units/Execute.h"
#include "isa/MatrixForms.h"
#include "sim/units/matrix/MatrixNumber.h"
#include "sim/units/mma/MmaSum.h"
#include "sim/units/mma/Mma.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <cstdio>
#include <cstring>

namespace kiln::sim {

namespace {
/// A matrix in fragments.
struct WmmaMatrix {
  int rows = 0, columns = 0;
  ptx::ScalarType type = ptx::ScalarType::f16;
  bool isOperand = false; ///< A or B; else an accumulator

  int perLane() const { return rows * columns / kLanes; }
  int bytes() const { return ptx::sizeBytes(type); }
  int registerBytes() const { return std::max(bytes(), 4); }
  int perRegister() const { return registerBytes() / bytes(); }
  /// A and B of f16 have room for 16 elements, whatever the shape.
  int registers() const {
    if (isOperand && type == ptx::ScalarType::f16)
      return 8;
    return perLane() / perRegister();
  }
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
  bool isSaturated = false;
};
} // namespace

/// The bits of element `i` of a lane.
static std::uint64_t elementBits(const Warp &warp, const WmmaMatrix &matrix,
                                 const Reg *registers, int lane, int i) {
  std::uint64_t bits = warp.read(registers[i / matrix.perRegister()], lane);
  if (matrix.bytes() >= 4)
    return bits;
  int width = 8 * matrix.bytes();
  return bits >> (width * (i % matrix.perRegister())) & ((1u << width) - 1);
}

/// Element (row, column) of a matrix in a warp's registers.
template <typename T>
static T readElement(const Warp &warp, const WmmaMatrix &matrix,
                     const Reg *registers, int row, int column) {
  int index = row * matrix.columns + column;
  return toNumber(elementBits(warp, matrix, registers, index / matrix.perLane(),
                              index % matrix.perLane()),
                  matrix.type, T());
}

/// Put `bits` into element `i` of a lane's registers.
static void writeElement(Warp &warp, const WmmaMatrix &matrix,
                         const Reg *registers, int lane, int i,
                         std::uint64_t bits) {
  const Reg &reg = registers[i / matrix.perRegister()];
  if (matrix.bytes() >= 4)
    return warp.write(reg, lane, bits);
  int width = 8 * matrix.bytes(), shift = width * (i % matrix.perRegister());
  std::uint64_t mask = (std::uint64_t(1) << width) - 1;
  warp.write(reg, lane,
             (warp.read(reg, lane) & ~(mask << shift)) | bits << shift);
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
  if (op.src[0].isValid() && warp.machine().config().checks &&
      (warp.poison(op.src[0]) & 1))
    warp.machine().findings().fault(
        FindingId::uninitializedAddress, warp, op, 1,
        "the address depends on bytes that nobody wrote");
}

static Step loadMatrix(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &access = *static_cast<const WmmaAccess *>(op.extra.get());
  const WmmaMatrix &matrix = access.matrix;
  Accessor accessor(warp, op, "an element of wmma.load");
  std::size_t bytes = static_cast<std::size_t>(matrix.bytes());
  // All elements first: the address may be in a register that is written.
  std::vector<std::uint64_t> values(matrix.rows * matrix.columns);
  LaneMask unknown = 0;
  std::uint32_t origin = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    ByteRange place = accessor.locate(
        access.space, elementAddress(warp, op, access, static_cast<int>(i)),
        bytes, bytes, 0, false);
    std::memcpy(&values[i], place.data, bytes);
    if (place.isWritten(bytes) || mayYetBeWritten(warp, place))
      continue;
    unknown |= LaneMask(1) << (i / matrix.perLane());
    if (!origin)
      origin = originOf(warp, op, place, bytes);
  }
  int slots = matrix.registers() * matrix.perRegister();
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < slots; ++i)
      writeElement(warp, matrix, op.list.data(), lane, i,
                   values[lane * matrix.perLane() + i % matrix.perLane()]);
  for (const Reg &reg : op.list) {
    warp.setPoison(reg, kAllLanes, unknown);
    warp.setPoisonOrigin(reg, origin);
  }
  return Step::next;
}

static Step storeMatrix(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &access = *static_cast<const WmmaAccess *>(op.extra.get());
  const WmmaMatrix &matrix = access.matrix;
  Accessor accessor(warp, op, "an element of wmma.store");
  std::size_t bytes = static_cast<std::size_t>(matrix.bytes());
  for (int i = 0; i < matrix.rows * matrix.columns; ++i) {
    int lane = i / matrix.perLane(), element = i % matrix.perLane();
    std::uint64_t address = elementAddress(warp, op, access, i);
    ByteRange place =
        accessor.locate(access.space, address, bytes, bytes, lane, true);
    const Reg &reg = op.list[element / matrix.perRegister()];
    std::uint64_t bits =
        elementBits(warp, matrix, op.list.data(), lane, element);
    std::memcpy(place.data, &bits, bytes);
    bool isKnown = !(warp.poison(reg) >> lane & 1);
    std::uint32_t origin = isKnown ? 0 : warp.poisonOrigin(reg);
    place.mark(bytes, isKnown ? 0 : ~std::uint64_t(0), origin);
    if (!isKnown && place.isGlobal())
      warp.machine().findings().report(
          FindingId::uninitializedStore, warp, op, LaneMask(1) << lane,
          "a value that depends on bytes nobody wrote goes to global memory" +
              warp.machine().findings().originText(warp, origin),
          {}, warp.cta().cluster().origins[origin].op);
  }
  return Step::next;
}

/// Whether the register that holds an element has unwritten bytes.
static bool isUnwritten(const Warp &warp, const WmmaMatrix &matrix,
                        const Reg *registers, int row, int column) {
  int index = row * matrix.columns + column;
  const Reg &reg = registers[index % matrix.perLane() / matrix.perRegister()];
  return warp.poison(reg) >> (index / matrix.perLane()) & 1;
}

/// The elements of D that unwritten ones reach: of A along a row, of B along a
/// column, of C in place.
static std::vector<bool> unwrittenElements(const Warp &warp,
                                           const WmmaProduct &product,
                                           const Reg *a, const Reg *b,
                                           const Reg *c) {
  int rows = product.d.rows, columns = product.d.columns;
  std::vector<bool> badRows(rows), badColumns(columns), bad(rows * columns);
  for (int k = 0; k < product.a.columns; ++k) {
    for (int row = 0; row < rows; ++row)
      if (isUnwritten(warp, product.a, a, row, k))
        badRows[row] = true;
    for (int column = 0; column < columns; ++column)
      if (isUnwritten(warp, product.b, b, k, column))
        badColumns[column] = true;
  }
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < columns; ++column)
      bad[row * columns + column] =
          badRows[row] || badColumns[column] ||
          isUnwritten(warp, product.c, c, row, column);
  return bad;
}

/// Where unwritten bytes of the operands, from `first` on, were read first.
static std::uint32_t originOfSources(const Warp &warp, const Op &op,
                                     const Reg *first) {
  for (const Reg *reg = first; reg != op.list.data() + op.list.size(); ++reg)
    if (std::uint32_t origin = warp.poison(*reg) ? warp.poisonOrigin(*reg) : 0)
      return origin;
  return 0;
}

template <typename T>
static Step multiplyFragments(Warp &warp, const Op &op, LaneMask active) {
  checkOperands(warp, op, active);
  const auto &product = *static_cast<const WmmaProduct *>(op.extra.get());
  const Reg *d = op.list.data(), *a = d + product.d.registers();
  const Reg *b = a + product.a.registers(), *c = b + product.b.registers();
  int rows = product.d.rows, columns = product.d.columns;
  int steps = product.a.columns;
  std::vector<T> matrixA(rows * steps), matrixB(steps * columns);
  std::vector<T> sums(rows * columns);
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < steps; ++k)
      matrixA[row * steps + k] = readElement<T>(warp, product.a, a, row, k);
  for (int column = 0; column < columns; ++column) {
    for (int k = 0; k < steps; ++k)
      matrixB[k * columns + column] =
          readElement<T>(warp, product.b, b, k, column);
    for (int row = 0; row < rows; ++row)
      sums[row * columns + column] =
          readElement<T>(warp, product.c, c, row, column);
  }
  addProducts({rows, columns, steps, product.a.type, product.b.type,
               product.d.type, warp.machine().config().is_mma_fast},
              matrixA.data(), matrixB.data(), sums.data());
  std::vector<bool> unwritten = unwrittenElements(warp, product, a, b, c);
  std::uint32_t origin = originOfSources(warp, op, a);
  int perLane = product.d.perLane();
  for (int i = 0; i < rows * columns; ++i)
    writeElement(warp, product.d, d, i / perLane, i % perLane,
                 fromNumber(sums[i], product.d.type, product.isSaturated));
  for (int i = 0; i < product.d.registers(); ++i) {
    warp.setPoison(d[i], kAllLanes, 0);
    warp.setPoisonOrigin(d[i], origin);
  }
  for (int i = 0; i < rows * columns; ++i)
    if (unwritten[i]) {
      LaneMask bit = LaneMask(1) << (i / perLane);
      warp.setPoison(d[i % perLane / product.d.perRegister()], bit, bit);
    }
  return Step::next;
}

/// Whether wmma has the shape for operands of a type.
static bool isShape(ptx::ScalarType type, int m, int n, int k) {
  std::string_view name = ptx::name(type);
  const isa::MatrixForm *form = isa::findMatrixForm("wmma", "", name, name);
  return form && form->hasShape(fmt::format("m{}n{}k{}", m, n, k));
}

/// Whether wmma has the shape for sums of a type, whatever they are sums of.
static bool isSumShape(ptx::ScalarType type, int m, int n, int k) {
  for (const isa::MatrixForm &form : isa::matrixForms())
    if (form.instruction == "wmma" && form.hasSum(ptx::name(type)) &&
        form.hasShape(fmt::format("m{}n{}k{}", m, n, k)))
      return true;
  return false;
}

static void shapeOf(const Decoder &decoder, const ptx::Instruction &instruction,
                    int &m, int &n, int &k) {
  for (const std::string &modifier : instruction.modifiers)
    if (std::sscanf(modifier.c_str(), "m%dn%dk%d", &m, &n, &k) == 3)
      return;
  decoder.refuse(instruction, "it names no shape");
}

static void refuseTypes(const Decoder &decoder,
                        const ptx::Instruction &instruction) {
  decoder.refuse(instruction,
                 "wmma is known as m16n16k16, m32n8k16 and m8n32k16 of f16, "
                 "bf16, s8 and u8, m16n16k8 of tf32, m8n8k4 of f64, m8n8k32 of "
                 "s4 and u4 and m8n8k128 of b1");
}

/// Append the registers of an operand; refuse another number than `count`.
static void appendRegisters(Decoder &decoder,
                            const ptx::Instruction &instruction,
                            const ptx::Operand &operand,
                            const WmmaMatrix &matrix, Op &op) {
  int count = matrix.registers();
  std::vector<Reg> registers = decoder.vector(operand, matrix.registerBytes());
  if (static_cast<int>(registers.size()) != count)
    decoder.refuse(instruction,
                   fmt::format("a fragment of {} registers, not {}", count,
                               registers.size()));
  for (const Reg &reg : registers)
    op.list.push_back(
        expectWidth(decoder, instruction, reg, matrix.registerBytes()));
}

static void decodeAccess(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  WmmaAccess access;
  int m, n, k;
  shapeOf(decoder, instruction, m, n, k);
  using enum ptx::ScalarType;
  ptx::ScalarType type = lastType(decoder, instruction);
  bool isLoad = instruction.has("load");
  bool isOperand = instruction.has("a") || instruction.has("b");
  access.matrix = instruction.has("a")   ? WmmaMatrix{m, k, type, true}
                  : instruction.has("b") ? WmmaMatrix{k, n, type, true}
                                         : WmmaMatrix{m, n, type, false};
  // An accumulator does not say what it is the sum of.
  bool isKnown =
      isOperand ? isShape(type, m, n, k) : isSumShape(type, m, n, k);
  if (!isKnown)
    refuseTypes(decoder, instruction);
  if (isOperand && (type == s4 || type == u4 || type == b1))
    return decodeWmmaLines(decoder, instruction, op);
  appendRegisters(decoder, instruction, instruction.operands[isLoad ? 0 : 1],
                  access.matrix, op);
  op.isListWritten = isLoad;
  op.src[0] = decoder.address(instruction.operands[isLoad ? 1 : 0], op.imm);
  if (instruction.operands.size() == 3)
    access.stride = decoder.reg(instruction.operands[2], 4);
  access.isRowMajor = instruction.has("row");
  access.space = spaceOf(instruction);
  op.extra = std::make_shared<WmmaAccess>(access);
  op.handler = isLoad ? loadMatrix : storeMatrix;
}

static void decodeWmmaMma(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  int m, n, k;
  shapeOf(decoder, instruction, m, n, k);
  using enum ptx::ScalarType;
  // D, A, B and C; for f16 only D and C are named.
  std::vector<ptx::ScalarType> types = allTypes(instruction);
  if (types.size() == 2)
    types = {types[0], f16, f16, types[1]};
  if (types.size() == 4 && k >= 32 && types[1] == types[2] &&
      isShape(types[1], m, n, k))
    return decodeWmmaOfLines(decoder, instruction, types[1], op);
  auto isSum = [&](ptx::ScalarType type) {
    return types[1] == f16                    ? type == f16 || type == f32
           : types[1] == f64                  ? type == f64
           : types[1] == s8 || types[1] == u8 ? type == s32
                                              : type == f32;
  };
  if (types.size() != 4 || types[1] != types[2] || !isSum(types[0]) ||
      !isSum(types[3]) || !isShape(types[1], m, n, k))
    refuseTypes(decoder, instruction);
  WmmaProduct product{{m, n, types[0], false},
                      {m, k, types[1], true},
                      {k, n, types[2], true},
                      {m, n, types[3], false},
                      instruction.has("satfinite")};
  const WmmaMatrix *matrices[] = {&product.d, &product.a, &product.b,
                                  &product.c};
  for (int i = 0; i < 4; ++i)
    appendRegisters(decoder, instruction, instruction.operands[i], *matrices[i],
                    op);
  op.handler = types[0] == f64   ? multiplyFragments<double>
               : types[0] == s32 ? multiplyFragments<std::int64_t>
                                 : multiplyFragments<float>;
  op.extra = std::make_shared<WmmaProduct>(product);
}

void decodeWmma(Decoder &decoder, const ptx::Instruction &instruction, Op &op) {
  if (instruction.has("mma"))
    return decodeWmmaMma(decoder, instruction, op);
  decodeAccess(decoder, instruction, op);
}

} // namespace kiln::sim
