// WmmaLines: wmma of 4-bit integers and of bits.
//
// An operand has eight lines, the rows of A or the columns of B, of four words
// each. PTX leaves open which lane holds what; here lane 4 * l + w holds word w
// of line l, and the sums lie as those of the other shapes do: a lane has the
// elements 2 * l and 2 * l + 1, row by row.
#include "sim/units/Execute.h"
#include "sim/units/mma/Mma.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

static constexpr int kLines = 8, kWords = 4;

namespace {
/// wmma.load of an operand; Op::src: address, and stride in elements.
struct LineAccess {
  int elementBits = 4;
  Space space = Space::generic;
};

/// wmma.mma; Op::list holds the registers of D, A, B and C.
struct LineProduct {
  ptx::ScalarType type = ptx::ScalarType::s4;
  bool isExclusive = false, isSaturated = false;
};
} // namespace

static int bitsOf(ptx::ScalarType type) {
  return type == ptx::ScalarType::b1 ? 1 : 4;
}

static Step loadLines(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &access = *static_cast<const LineAccess *>(op.extra.get());
  for (const Reg &reg : {op.src[0], op.src[1]})
    if (reg.isValid() && warp.machine().config().checks &&
        (warp.poison(reg) & 1))
      warp.machine().findings().fault(
          FindingId::uninitializedAddress, warp, op, 1,
          "the address depends on bytes that nobody wrote");
  std::uint64_t stride = kWords * 4;
  if (op.src[1].isValid())
    stride = static_cast<std::uint32_t>(warp.read(op.src[1], 0)) *
             std::uint64_t(access.elementBits) / 8;
  std::uint64_t base =
      warp.read(op.src[0], 0) + static_cast<std::uint64_t>(op.imm);
  Accessor accessor(warp, op, "a word of wmma.load");
  std::array<std::uint32_t, kLanes> words;
  std::array<std::uint64_t, kLanes> unwritten;
  std::uint32_t origin = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    ByteRange place =
        accessor.locate(access.space,
                        base + stride * (lane / kWords) + 4 * (lane % kWords),
                        4, 4, 0, /*isWrite=*/false);
    std::memcpy(&words[lane], place.data, 4);
    unwritten[lane] = place.unwritten(4);
    if (unwritten[lane] && !origin)
      origin = originOf(warp, op, place, 4);
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    warp.write(op.list[0], lane, words[lane]);
    warp.setPoisonBits(op.list[0], lane, unwritten[lane]);
  }
  warp.setPoisonOrigin(op.list[0], origin);
  return Step::next;
}

/// The sum of the products of two words.
static std::int64_t multiplyWords(const LineProduct &product, std::uint32_t a,
                                  std::uint32_t b) {
  if (product.type == ptx::ScalarType::b1)
    return std::popcount(product.isExclusive ? a ^ b : a & b);
  std::int64_t sum = 0;
  for (int i = 0; i < 32; i += 4) {
    std::uint32_t x = a >> i & 15, y = b >> i & 15;
    auto signedOf = [](std::uint32_t bits) {
      return static_cast<std::int32_t>(bits << 28) >> 28;
    };
    sum += product.type == ptx::ScalarType::s4
               ? signedOf(x) * signedOf(y)
               : static_cast<std::int32_t>(x * y);
  }
  return sum;
}

static Step multiplyLines(Warp &warp, const Op &op, LaneMask active) {
  checkWholeWarp(warp, op, active);
  const auto &product = *static_cast<const LineProduct *>(op.extra.get());
  const Reg *d = op.list.data(), &a = d[2], &b = d[3], *c = d + 4;
  std::array<std::array<std::uint64_t, kLanes>, 2> sums;
  std::array<LaneMask, 2> bad{};
  std::uint32_t origin = 0;
  for (const Reg *reg = d + 2; reg != d + 6; ++reg)
    if (!origin && warp.poison(*reg))
      origin = warp.poisonOrigin(*reg);
  auto isBad = [&](const Reg &reg, int line) {
    return (warp.poison(reg) >> (line * kWords) & 15) != 0;
  };
  for (int lane = 0; lane < kLanes; ++lane)
    for (int i = 0; i < 2; ++i) {
      int row = (2 * lane + i) / kLines, column = (2 * lane + i) % kLines;
      auto sum = std::int64_t(
          static_cast<std::int32_t>(warp.read(c[i], lane)));
      for (int w = 0; w < kWords; ++w)
        sum += multiplyWords(
            product, static_cast<std::uint32_t>(warp.read(a, row * kWords + w)),
            static_cast<std::uint32_t>(warp.read(b, column * kWords + w)));
      if (product.isSaturated)
        sum = std::clamp<std::int64_t>(sum, INT32_MIN, INT32_MAX);
      sums[i][lane] = static_cast<std::uint32_t>(sum);
      if (isBad(a, row) || isBad(b, column) || (warp.poison(c[i]) >> lane & 1))
        bad[i] |= LaneMask(1) << lane;
    }
  for (int i = 0; i < 2; ++i) {
    for (int lane = 0; lane < kLanes; ++lane)
      warp.write(d[i], lane, sums[i][lane]);
    warp.setPoison(d[i], kAllLanes, bad[i]);
    warp.setPoisonOrigin(d[i], origin);
  }
  return Step::next;
}

/// The registers of an operand; refuse another number than `count`.
static void append(Decoder &decoder, const ptx::Instruction &instruction,
                   const ptx::Operand &operand, std::size_t count, Op &op) {
  std::vector<Reg> registers = decoder.vector(operand, 4);
  if (registers.size() != count)
    decoder.refuse(instruction,
                   fmt::format("a fragment of {} registers, not {}", count,
                               registers.size()));
  for (const Reg &reg : registers)
    op.list.push_back(expectWidth(decoder, instruction, reg, 4));
}

void decodeWmmaLines(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  const auto &operands = instruction.operands;
  bool isLines = instruction.has("a") ? instruction.has("row")
                                      : instruction.has("col");
  if (!isLines)
    decoder.refuse(instruction, "of 4 bits and of one, A is row-major and B "
                                "column-major");
  append(decoder, instruction, operands[0], 1, op);
  op.isListWritten = true;
  op.src[0] = decoder.address(operands[1], op.imm);
  if (operands.size() == 3)
    op.src[1] = decoder.reg(operands[2], 4);
  op.extra = std::make_shared<LineAccess>(
      LineAccess{bitsOf(lastType(decoder, instruction)), spaceOf(instruction)});
  op.handler = loadLines;
}

void decodeWmmaOfLines(Decoder &decoder, const ptx::Instruction &instruction,
                       ptx::ScalarType type, Op &op) {
  const std::size_t counts[] = {2, 1, 1, 2};
  for (std::size_t i = 0; i < 4; ++i)
    append(decoder, instruction, instruction.operands[i], counts[i], op);
  op.extra = std::make_shared<LineProduct>(LineProduct{
      type, instruction.has("xor"), instruction.has("satfinite")});
  op.handler = multiplyLines;
}

} // namespace kiln::sim
