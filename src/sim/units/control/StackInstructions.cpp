// StackInstructions: alloca, stacksave and stackrestore.
//
// What a thread allocates lies behind the frame of its function, up to the top
// that the thread has for itself; the frames of functions that it calls lie
// behind the tops of all the threads that call, and a return gives back
// whatever the callee has allocated (Calls.cpp).
#include "sim/units/Execute.h"
#include "support/Error.h"

#include <bit>

namespace kiln::sim {

/// Where the next allocation of a lane may begin.
static std::uint64_t topOf(const Warp &warp, int lane) {
  return std::max<std::uint64_t>(warp.frameEnd(), warp.stackTops[lane]);
}

static void checkTop(Warp &warp, const Op &op, int lane, std::uint64_t top) {
  auto most = static_cast<std::uint64_t>(
      warp.machine().config().device.max_local_bytes_per_thread);
  if (top > most)
    warp.machine().findings().fault(
        FindingId::stackOverflow, warp, op, LaneMask(1) << lane,
        fmt::format("the stack of a thread reaches {} bytes; it may have {}",
                    top, most));
}

/// imm: the alignment.
static Step allocate(Warp &warp, const Op &op, LaneMask active) {
  auto align = static_cast<std::uint64_t>(op.imm);
  LaneMask bad = warp.poison(op.src[0]) & active;
  if (bad && warp.machine().config().checks)
    warp.machine().findings().fault(
        FindingId::uninitializedSize, warp, op, bad,
        "the size depends on bytes that nobody wrote");
  forEachLane(active, [&](int lane) {
    std::uint64_t bytes = warp.read(op.src[0], lane);
    std::uint64_t address = (topOf(warp, lane) + align - 1) / align * align;
    checkTop(warp, op, lane, std::max(bytes, address + bytes));
    warp.reserveLocal(static_cast<std::uint32_t>(address + bytes));
    warp.stackTops[lane] = static_cast<std::uint32_t>(address + bytes);
    warp.localValid.clear(std::size_t(warp.localBytes) * lane + address, bytes);
    warp.write(op.dst, lane, address);
  });
  warp.setPoison(op.dst, active, 0);
  return Step::next;
}

static Step saveTop(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active,
              [&](int lane) { warp.write(op.dst, lane, topOf(warp, lane)); });
  warp.setPoison(op.dst, active, 0);
  return Step::next;
}

static Step restoreTop(Warp &warp, const Op &op, LaneMask active) {
  LaneMask bad = warp.poison(op.src[0]) & active;
  if (bad && warp.machine().config().checks)
    warp.machine().findings().fault(
        FindingId::uninitializedAddress, warp, op, bad,
        "the top of the stack depends on bytes that nobody wrote");
  forEachLane(active, [&](int lane) {
    std::uint64_t top = warp.read(op.src[0], lane);
    if (top < warp.frameEnd() || top > topOf(warp, lane))
      warp.machine().findings().fault(
          FindingId::outOfBounds, warp, op, LaneMask(1) << lane,
          fmt::format("stackrestore to {}, which is no top that stacksave gave "
                      "in this function; it is between {} and {}",
                      top, warp.frameEnd(), topOf(warp, lane)));
    // What lay above it is gone, whoever reads it later.
    warp.localValid.clear(std::size_t(warp.localBytes) * lane + top,
                          topOf(warp, lane) - top);
    warp.stackTops[lane] = static_cast<std::uint32_t>(top);
  });
  return Step::next;
}

static int bytesOf(const Decoder &decoder,
                   const ptx::Instruction &instruction) {
  return ptx::sizeBytes(lastType(decoder, instruction));
}

static void decodeAlloca(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  constexpr std::uint64_t kUsual = 8, kMost = 1 << 20;
  const auto &operands = instruction.operands;
  int bytes = bytesOf(decoder, instruction);
  std::uint64_t align = operands.size() > 2 ? operands[2].bits : kUsual;
  if (!std::has_single_bit(align) || align > kMost)
    decoder.refuse(instruction,
                   fmt::format("an alignment of {}; a power of two up to {} "
                               "is accepted",
                               align, kMost));
  op.dst = destination(decoder, instruction, operands[0], bytes);
  op.src[0] = decoder.reg(operands[1], bytes);
  op.imm = static_cast<std::int64_t>(align);
  op.handler = allocate;
}

static void decodeSave(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  op.dst = destination(decoder, instruction, instruction.operands[0],
                       bytesOf(decoder, instruction));
  op.handler = saveTop;
}

static void decodeRestore(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  op.src[0] =
      decoder.reg(instruction.operands[0], bytesOf(decoder, instruction));
  op.handler = restoreTop;
}

std::vector<Instruction> stackInstructions() {
  return {
      {"alloca", decodeAlloca, Unit::control, "u32 and u64",
       ", u32 u64 -> =t t imm?"},
      {"stacksave", decodeSave, Unit::control, "u32 and u64",
       ", u32 u64 -> =t"},
      {"stackrestore", decodeRestore, Unit::control, "u32 and u64",
       ", u32 u64 -> t"},
  };
}

} // namespace kiln::sim
