// StoreInstructions: st.
#include "sim/program/Effect.h"
#include "sim/units/Execute.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/memory/AccessTraits.h"
#include "sim/units/memory/LaneAccess.h"
#include "sim/units/memory/WarpAccess.h"

namespace kiln::sim {

/// Each lane by itself.
static Step storeByLane(Warp &warp, const Op &op, LaneMask active) {
  checkAddress(warp, op, active);
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  // Read when the accessor ends, which tells of the store.
  std::array<std::uint8_t,
             ThreadAccess::kValueBytes * kLanes + Shadow::kCellBytes>
      values;
  Accessor accessor(warp, op, "a store");
  std::size_t total = flags.bytes * op.list.size();
  bool isAllSame = true;
  const Watchers &watchers = warp.watchers();
  bool isWatched = watchers.wants(EventKind::access);
  bool isKept = watchers.wants(EventKind::storedValue) &&
                flags.space != Space::shared && !op.semantics.isStrong;
  if (isKept)
    accessor.setValues(values.data());
  forEachLane(active, [&](int lane) {
    std::uint64_t address = addressOf(warp, op, lane);
    for (std::size_t i = 0; isKept && i < op.list.size(); ++i) {
      std::uint64_t bits = warp.read(op.list[i], lane);
      std::memcpy(
          &values[static_cast<std::size_t>(lane) * ThreadAccess::kValueBytes +
                  i * flags.bytes],
          &bits, sizeof(bits));
    }
    ByteRange place =
        accessor.locate(flags.space, address, total, total, lane, true);
    // Who watches asks for every lane, others whether all are.
    bool isSame = (isWatched || isAllSame) && place.isWritten(total);
    for (std::size_t i = 0; isSame && i < op.list.size(); ++i) {
      std::uint64_t bits = warp.read(op.list[i], lane);
      isSame = !std::memcmp(place.data + i * flags.bytes, &bits, flags.bytes);
    }
    isAllSame &= isSame;
    accessor.noteValue(isSame);
    for (std::size_t i = 0; i < op.list.size(); ++i) {
      std::uint64_t bits = warp.read(op.list[i], lane);
      std::memcpy(place.data + i * flags.bytes, &bits, flags.bytes);
      markStored(warp, op, place.behind(i * flags.bytes), op.list[i],
                 flags.bytes, lane);
    }
    if (op.effect->isStrong)
      noteWriter(warp, op, place.data, lane);
  });
  return isAllSame ? Step::same : Step::next;
}

/// Store the values of a warp's lanes; those that were there already.
template <typename M, typename S>
[[gnu::always_inline]] static inline LaneMask
moveOut(const Warp &warp, const Op &op, const WarpAccess &access,
        LaneMask active) {
  if (op.list.size() == 1 && active == kAllLanes && access.isDense()) {
    const S *from = warp.lanes<S>(op.list[0]);
    alignas(64) M values[kLanes], before[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = static_cast<M>(from[lane]);
    std::uint8_t *to = access.at(0);
    copyLanes(before, to);
    copyLanes(reinterpret_cast<M *>(to), values);
    return testLanes([&](int lane) { return values[lane] == before[lane]; });
  }
  LaneMask same = active;
  forEachLane(active, [&](int lane) {
    std::uint8_t *to = access.at(lane);
    for (const Reg &reg : op.list) {
      auto value = static_cast<M>(warp.lanes<S>(reg)[lane]);
      M before;
      std::memcpy(&before, to, sizeof(M));
      std::memcpy(to, &value, sizeof(M));
      to += sizeof(M);
      if (before != value)
        same &= ~kLaneBits[lane];
    }
  });
  return same;
}

template <typename M, typename S>
KILN_WIDE_LANES static LaneMask moveOutWide(const Warp &warp, const Op &op,
                                            const WarpAccess &access,
                                            LaneMask active) {
  return moveOut<M, S>(warp, op, access, active);
}

/// The values that lanes store, one behind the other.
template <typename M, typename S>
static void keepValues(const Warp &warp, const Op &op, LaneMask active,
                       std::uint8_t *to) {
  std::size_t count = op.list.size();
  if (count == 1 && sizeof(M) == sizeof(S)) {
    std::memcpy(to, warp.lanes<S>(op.list[0]), sizeof(S) * kLanes);
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const S *from = warp.lanes<S>(op.list[i]);
    forEachLane(active, [&](int lane) {
      auto value = static_cast<M>(from[lane]);
      std::memcpy(to + (static_cast<std::size_t>(lane) * count + i) * sizeof(M),
                  &value, sizeof(M));
    });
  }
}

template <typename M, typename S>
static Step store(Warp &warp, const Op &op, LaneMask active) {
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  WarpAccess access;
  auto bytes = static_cast<std::uint32_t>(sizeof(M) * op.list.size());
  bool hasChecks = warp.hasChecks();
  LaneMask unwritten =
      (warp.group().inDoubt | warp.poison(op.src[0])) & active;
  for (const Reg &reg : op.list)
    unwritten |= warp.poison(reg) & active;
  if (unwritten || (hasChecks && op.effect->isStrong) ||
      !access.find(warp, op, flags.space, active, bytes, /*isWrite=*/true))
    return storeByLane(warp, op, active);
  // Where bytes were not written, each lane says which.
  LaneMask same = 0;
  bool wasWritten = access.isWritten();
  if (wasWritten)
    same = active;
  else if (!access.isDense())
    forEachLane(active, [&](int lane) {
      // One that a lane before it writes is written by then.
      if (access.place(lane).isWritten(bytes))
        same |= kLaneBits[lane];
      access.place(lane).markWritten(bytes);
    });
  else
    forEachLane(active, [&](int lane) {
      if (access.place(lane).isWritten(bytes))
        same |= kLaneBits[lane];
    });
  same &= hasWideLanes() ? moveOutWide<M, S>(warp, op, access, active)
                         : moveOut<M, S>(warp, op, access, active);
  if (!wasWritten)
    access.markWritten();
  const Watchers &watchers = warp.watchers();
  if (watchers.wants(EventKind::access)) {
    bool isKept = watchers.wants(EventKind::storedValue) &&
                  access.isGlobal() && !op.semantics.isStrong;
    std::array<std::uint8_t,
               ThreadAccess::kValueBytes * kLanes + Shadow::kCellBytes>
        values; // readable a cell further
    if (isKept)
      keepValues<M, S>(warp, op, active, values.data());
    access.tell(same, isKept ? values.data() : nullptr);
  }
  return same == active ? Step::same : Step::next;
}

template <typename M> static Handler storeHandler(int width) {
  if constexpr (sizeof(M) < 8)
    if (width != 8)
      return store<M, std::uint32_t>;
  return store<M, std::uint64_t>;
}

static Handler storeHandler(const std::vector<Reg> &list, int bytes) {
  if (!isRegular(list, bytes))
    return storeByLane;
  int width = list.front().width;
  return withReference(bytes == 1   ? storeHandler<std::uint8_t>(width)
                       : bytes == 2 ? storeHandler<std::uint16_t>(width)
                       : bytes == 4 ? storeHandler<std::uint32_t>(width)
                                    : storeHandler<std::uint64_t>(width),
                       storeByLane);
}

void decodeStore(Decoder &decoder, const ptx::Instruction &instruction,
                 Op &op) {
  if (instruction.has("mbarrier::complete_tx::bytes"))
    return decodeAsyncStore(decoder, instruction, op);
  if (instruction.has("bulk"))
    return decodeBulkStore(decoder, instruction, op);
  int bytes = ptx::sizeBytes(lastType(decoder, instruction));
  op.src[0] = decoder.address(instruction.operands[0], op.imm);
  op.list = elementsOf(decoder, instruction, instruction.operands[1], bytes);
  op.handler = storeHandler(op.list, bytes);
  op.flags = MemoryFlags::pack(
      decoder.spaceOfAddress(instruction.operands[0], spaceOf(instruction)),
      bytes, false);
}

} // namespace kiln::sim
