// ScalarMove: mov, between registers and between a value and its parts.
#include "sim/Execute.h"
#include "sim/Scalar.h"

namespace kiln::sim {

template <typename T>
static Step executeMove(Warp &warp, const Op &op, LaneMask active) {
  blendLanes(warp.lanes<T>(op.dst), warp.lanes<T>(op.src[0]), active);
  return Step::next;
}

static Step executeMovePred(Warp &warp, const Op &op, LaneMask active) {
  warp.setPred(op.pdst, active, warp.pred(op.psrc));
  return Step::next;
}

/// d = {a, b, ...}: the first part is the lowest.
template <typename T>
static Step executePack(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) T result[kLanes] = {};
  int bits = int(op.imm);
  T mask = T(~std::uint64_t(0) >> (64 - bits));
  int shift = 0;
  for (const Reg &part : op.list) {
    const std::uint32_t *from = warp.lanes<std::uint32_t>(part);
    for (int lane = 0; lane < kLanes; ++lane)
      result[lane] |= (T(from[lane]) & mask) << shift;
    shift += bits;
  }
  blendLanes(warp.lanes<T>(op.dst), result, active);
  return Step::next;
}

/// {a, b, ...} = s. The source is copied first: it may be one of the parts.
template <typename T>
static Step executeUnpack(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) T whole[kLanes];
  std::memcpy(whole, warp.lanes<T>(op.src[0]), sizeof(whole));
  int bits = int(op.imm);
  T mask = T(~std::uint64_t(0) >> (64 - bits));
  int shift = 0;
  for (const Reg &part : op.list) {
    storeLanes<std::uint32_t>(warp, part, active, [&](int lane) {
      return std::uint32_t(whole[lane] >> shift & mask);
    });
    shift += bits;
  }
  return Step::next;
}

/// Clocks count the instructions of the warp: they grow, and a seed's run
/// repeats them.
template <typename T>
static Step executeClock(Warp &warp, const Op &op, LaneMask active) {
  T now = T(warp.instructions);
  storeLanes<T>(warp, op.dst, active, [=](int) { return now; });
  return Step::next;
}

/// The registers of `{a, b, ...}`, each of a part of `bytes`.
static std::vector<Reg> decodeParts(Decoder &decoder,
                                    const ptx::Instruction &instruction,
                                    const ptx::Operand &operand, int bytes,
                                    Op &op) {
  int count = int(operand.elements.size());
  if (count < 2 || bytes % count != 0)
    decoder.refuse(instruction, fmt::format("{} bytes do not split into {} "
                                            "parts",
                                            bytes, count));
  int partBytes = bytes / count;
  op.imm = 8 * partBytes;
  std::vector<Reg> parts = decoder.vector(operand, partBytes);
  for (const Reg &part : parts)
    expectWidth(decoder, instruction, part, partBytes);
  return parts;
}

static void decodeMove(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  using Kind = ptx::Operand::Kind;
  expectModifiers(decoder, instruction, {});
  expectOperands(decoder, instruction, 2);
  const ptx::Operand &to = instruction.operands[0];
  const ptx::Operand &from = instruction.operands[1];
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::pred) {
    op.pdst = decoder.pred(to);
    op.psrc = decoder.pred(from);
    op.handler = executeMovePred;
    return;
  }
  int bytes = ptx::sizeBytes(type);
  if (bytes > 8)
    decoder.refuse(instruction, "values of 128 bits are not known here");
  bool isWide = bytes == 8;
  if (to.kind == Kind::vector && from.kind == Kind::vector)
    decoder.refuse(instruction, "one of its operands must be a single value");
  if (to.kind == Kind::vector) {
    op.list = decodeParts(decoder, instruction, to, bytes, op);
    op.isListWritten = true;
    op.src[0] =
        expectWidth(decoder, instruction, decoder.reg(from, bytes), bytes);
    op.handler =
        isWide ? executeUnpack<std::uint64_t> : executeUnpack<std::uint32_t>;
    return;
  }
  op.dst = destination(decoder, instruction, to, bytes);
  if (from.kind == Kind::vector) {
    op.list = decodeParts(decoder, instruction, from, bytes, op);
    op.handler =
        isWide ? executePack<std::uint64_t> : executePack<std::uint32_t>;
    return;
  }
  if (from.kind == Kind::special && (from.name.starts_with("%clock") ||
                                     from.name.starts_with("%globaltimer"))) {
    op.handler =
        isWide ? executeClock<std::uint64_t> : executeClock<std::uint32_t>;
    return;
  }
  op.src[0] =
      expectWidth(decoder, instruction, decoder.reg(from, bytes), bytes);
  op.handler = isWide ? executeMove<std::uint64_t> : executeMove<std::uint32_t>;
}

std::vector<Instruction> scalarMoveInstructions() {
  return {{"mov", decodeMove, "scalar",
           "pred and 8 to 64 bits, parts {a, b} and {a, b, c, d}, addresses, "
           "special registers"}};
}

} // namespace kiln::sim
