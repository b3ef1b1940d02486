// ScalarMove: mov, between registers and between a value and its parts.
#include "sim/machine/SpecialRegisters.h"
#include "sim/units/Execute.h"
#include "sim/units/scalar/Scalar.h"
#include "sim/units/scalar/ScalarPoison.h"

#include <tuple>

namespace kiln::sim {

template <typename T>
static Step executeMove(Warp &warp, const Op &op, LaneMask active) {
  blendLanes(warp.lanes<T>(op.dst), warp.lanes<T>(op.src[0]), active);
  return Step::next;
}

/// 128 bits, or their two halves, from the same.
static Step executeMoveWide(Warp &warp, const Op &op, LaneMask active) {
  alignas(64) std::uint64_t high[kLanes];
  std::memcpy(high, warp.lanes<std::uint64_t>(op.src[1]), sizeof(high));
  blendLanes(warp.lanes<std::uint64_t>(op.dst),
             warp.lanes<std::uint64_t>(op.src[0]), active);
  blendLanes(warp.lanes<std::uint64_t>(op.dst2), high, active);
  return Step::next;
}

/// The halves of a register of 128 bits, or of {a, b}.
static std::pair<Reg, Reg> decodeHalves(Decoder &decoder,
                                        const ptx::Instruction &instruction,
                                        const ptx::Operand &operand) {
  if (operand.kind != ptx::Operand::Kind::vector) {
    Reg low = decoder.reg(operand, 16);
    if (low.bytes != 16)
      decoder.refuse(instruction, "a register of 128 bits is expected");
    return {low, highHalf(low)};
  }
  std::vector<Reg> parts = decoder.vector(operand, 8);
  if (parts.size() != 2)
    decoder.refuse(instruction, "128 bits split into two parts of 64");
  for (const Reg &part : parts)
    expectWidth(decoder, instruction, part, 8);
  return {parts[0], parts[1]};
}

static Step executeMovePred(Warp &warp, const Op &op, LaneMask active) {
  warp.setPred(op.pdst, active, warp.pred(op.psrc));
  return Step::next;
}

static Step executeIsNonzero(Warp &warp, const Op &op, LaneMask active) {
  const std::uint32_t *from = warp.lanes<std::uint32_t>(op.src[0]);
  warp.setPred(op.pdst, active,
               testLanes([=](int lane) { return from[lane] != 0; }));
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
  const ptx::Operand &to = instruction.operands[0];
  const ptx::Operand &from = instruction.operands[1];
  ptx::ScalarType type = lastType(decoder, instruction);
  if (type == ptx::ScalarType::pred) {
    op.pdst = decoder.pred(to);
    if (from.kind == Kind::special) { // %is_explicit_cluster
      op.src[0] = decoder.reg(from, 4);
      op.handler = executeIsNonzero;
      return;
    }
    op.psrc = decoder.pred(from);
    op.handler = executeMovePred;
    return;
  }
  int bytes = ptx::sizeBytes(type);
  if (bytes == 16) {
    std::tie(op.dst, op.dst2) = decodeHalves(decoder, instruction, to);
    std::tie(op.src[0], op.src[1]) = decodeHalves(decoder, instruction, from);
    op.handler = executeMoveWide;
    return;
  }
  bool isWide = bytes == 8;
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
  if (from.kind == Kind::special && isClock(from.name)) {
    op.handler =
        isWide ? executeClock<std::uint64_t> : executeClock<std::uint32_t>;
    return;
  }
  op.src[0] =
      expectWidth(decoder, instruction, decoder.reg(from, bytes), bytes);
  op.handler = isWide ? widest<executeMove<std::uint64_t>>()
                      : widest<executeMove<std::uint32_t>>();
}

std::vector<Instruction> scalarMoveInstructions() {
  return {{"mov",
           decodeMove,
           Unit::scalar,
           "pred and 8 to 128 bits, parts {a, b} and {a, b, c, d}, addresses, "
           "special registers",
           "pred -> =p p%; "
           ", DATA b128 -> =t t%&; "
           ", b16 b32 b64 b128 -> ={/} t&; "
           ", b16 b32 b64 b128 -> =t {/}",
           {.poison = movePoison, .addresses = passesOn<0b10>}}};
}

} // namespace kiln::sim
