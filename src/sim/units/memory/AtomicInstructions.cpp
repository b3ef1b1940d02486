// AtomicInstructions: atom and red of 32 and 64 bits: one lane after another,
// as the hardware serialises them.
#include "sim/program/Effect.h"
#include "sim/units/Execute.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/memory/AccessTraits.h"
#include "sim/units/memory/LaneAccess.h"
#include "sim/units/memory/Reduction.h"
#include "sim/units/memory/WarpAccess.h"

namespace kiln::sim {

namespace {
struct Atomic {
  std::optional<Reduction> reduction; ///< none: an exchange
  bool isSwap = false;                ///< only where it holds a value (cas)
  int bytes = 0;
  Space space;

  std::uint64_t apply(std::uint64_t old, std::uint64_t value,
                      std::uint64_t fresh) const;
};
} // namespace

std::uint64_t Atomic::apply(std::uint64_t old, std::uint64_t value,
                            std::uint64_t fresh) const {
  if (isSwap)
    return old == value ? fresh : old;
  if (!reduction)
    return value;
  reduction->apply(reinterpret_cast<std::uint8_t *>(&old),
                   reinterpret_cast<const std::uint8_t *>(&value), bytes);
  return old;
}

/// Where a lane needs a look of its own.
static Step atomicByLane(Warp &warp, const Op &op, LaneMask active) {
  const Atomic &what = *static_cast<const Atomic *>(op.extra.get());
  checkAddress(warp, op, active);
  Accessor accessor(warp, op, "an atomic");
  std::size_t bytes = what.bytes;
  bool hasChecks = warp.machine().config().checks;
  forEachLane(active, [&](int lane) {
    ByteRange place = accessor.locate(what.space, addressOf(warp, op, lane),
                                      bytes, bytes, lane, true);
    std::uint64_t old = 0;
    std::memcpy(&old, place.data, bytes);
    std::uint64_t extra = op.src[2].isValid() ? warp.read(op.src[2], lane) : 0;
    std::uint64_t fresh = what.apply(old, warp.read(op.src[1], lane), extra);
    std::memcpy(place.data, &fresh, bytes);
    if (fresh != old) {
      ++warp.effects;
      noteWriter(warp, op, place.data, lane);
      warp.cta().cluster().notify();
    }
    // What was there reaches the result, and the sum; an exchange replaces it.
    std::uint64_t unwritten = hasChecks ? place.unwritten(bytes) : 0;
    std::uint32_t origin = unwritten ? originOf(warp, op, place, bytes) : 0;
    const Reg &value = op.src[what.isSwap ? 2 : 1];
    bool isReplaced = what.isSwap ? fresh != old : !what.reduction;
    if (isReplaced || (!what.isSwap && !unwritten))
      markStored(warp, op, place, value, bytes, lane);
    if (!op.dst.isValid())
      return;
    warp.write(op.dst, lane, old);
    warp.setPoisonBits(op.dst, lane, unwritten);
    if (unwritten)
      warp.setPoisonOrigin(op.dst, origin);
  });
  return Step::next;
}

/// One lane after another, each of which may do it at the value there.
template <typename T, typename Combine>
static LaneMask changeLanes(Warp &warp, const Op &op, const WarpAccess &access,
                            LaneMask active, Combine &&combine) {
  const T *values = warp.lanes<T>(op.src[1]);
  T *results = op.dst.isValid() ? warp.lanes<T>(op.dst) : nullptr;
  LaneMask changed = 0;
  forEachLane(active, [&](int lane) {
    std::uint8_t *place = access.at(lane);
    T old;
    std::memcpy(&old, place, sizeof(T));
    T fresh = combine(old, values[lane], lane);
    std::memcpy(place, &fresh, sizeof(T));
    changed |= fresh != old ? kLaneBits[lane] : 0;
    if (results)
      results[lane] = old;
  });
  return changed;
}

template <typename T>
static LaneMask changeLanes(Warp &warp, const Op &op, const Atomic &what,
                            const WarpAccess &access, LaneMask active) {
  auto change = [&](auto &&combine) {
    return changeLanes<T>(warp, op, access, active, combine);
  };
  if (what.isSwap) {
    const T *fresh = warp.lanes<T>(op.src[2]);
    return change([=](T old, T expected, int lane) {
      return old == expected ? fresh[lane] : old;
    });
  }
  if (!what.reduction)
    return change([](T, T value, int) { return value; });
  bool isInteger = what.reduction->type < ptx::ScalarType::f16;
  if (isInteger && what.reduction->kind == ReductionKind::add)
    return change([](T old, T value, int) { return old + value; });
  return change([&](T old, T value, int) {
    what.reduction->apply(reinterpret_cast<std::uint8_t *>(&old),
                          reinterpret_cast<const std::uint8_t *>(&value),
                          sizeof(T));
    return old;
  });
}

static Step atomic(Warp &warp, const Op &op, LaneMask active) {
  const Atomic &what = *static_cast<const Atomic *>(op.extra.get());
  auto bytes = static_cast<std::uint32_t>(what.bytes);
  LaneMask unwritten = warp.group().inDoubt;
  for (int i : {0, 1, 2})
    if (op.src[i].isValid())
      unwritten |= warp.poison(op.src[i]);
  auto fits = [&](const Reg &reg) {
    return !reg.isValid() || reg.width == bytes;
  };
  bool isRegular = (bytes == 4 || bytes == 8) && fits(op.src[1]) &&
                   fits(op.src[2]) && fits(op.dst);
  WarpAccess access;
  if ((unwritten & active) || !isRegular ||
      !access.find(warp, op, what.space, active, bytes, /*isWrite=*/true) ||
      !access.isWritten())
    return atomicByLane(warp, op, active);
  LaneMask changed =
      bytes == 8 ? changeLanes<std::uint64_t>(warp, op, what, access, active)
                 : changeLanes<std::uint32_t>(warp, op, what, access, active);
  if (changed) {
    warp.effects += static_cast<std::uint64_t>(countLanes(changed));
    warp.cta().cluster().notify();
    if (warp.hasChecks())
      forEachLane(changed, [&](int lane) {
        noteWriter(warp, op, access.at(lane), lane);
      });
  }
  if (op.dst.isValid())
    warp.setPoison(op.dst, active, 0);
  if (warp.watchers().wants(EventKind::access))
    access.tell();
  return Step::next;
}

void decodeAtomic(Decoder &decoder, const ptx::Instruction &instruction,
                  Op &op) {
  if (instruction.has("mbarrier::complete_tx::bytes"))
    return decodeAsyncReduction(decoder, instruction, op);
  ptx::ScalarType type = lastType(decoder, instruction);
  int bytes = ptx::sizeBytes(type);
  if (isPackedAtomic(instruction, type))
    return decodePackedAtomic(decoder, instruction, type, op);
  std::size_t first = 0;
  if (instruction.opcode == "atom")
    op.dst = decoder.reg(instruction.operands[first++], bytes);
  op.src[0] = decoder.address(instruction.operands[first], op.imm);
  op.src[1] = decoder.reg(instruction.operands[first + 1], bytes);
  Atomic what{.isSwap = instruction.has("cas"),
              .bytes = bytes,
              .space = spaceOf(instruction)};
  if (what.isSwap)
    op.src[2] = decoder.reg(instruction.operands[first + 2], bytes);
  else if (!instruction.has("exch"))
    what.reduction = {reductionKind(decoder, instruction), type};
  op.extra = std::make_shared<Atomic>(what);
  op.handler = withReference(atomic, atomicByLane);
}

} // namespace kiln::sim
