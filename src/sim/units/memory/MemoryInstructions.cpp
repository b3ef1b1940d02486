// MemoryInstructions: ld, st, atom, red, and arithmetic on addresses.
#include "sim/program/Effect.h"
#include "sim/units/Execute.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/memory/AccessTraits.h"
#include "sim/units/memory/Reduction.h"
#include "sim/units/memory/WarpAccess.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln::sim {

namespace {
/// What `flags` of a memory instruction holds.
struct MemoryFlags {
  Space space;
  std::uint8_t bytes;
  bool isSigned;

  static std::uint32_t pack(Space space, int bytes, bool isSigned) {
    return static_cast<std::uint32_t>(space) | std::uint32_t(bytes) << 8 |
           std::uint32_t(isSigned) << 16;
  }
  static MemoryFlags unpack(std::uint32_t flags) {
    return {static_cast<Space>(flags & 0xff),
            static_cast<std::uint8_t>(flags >> 8 & 0xff),
            (flags >> 16 & 1) != 0};
  }
};
} // namespace

static bool isSigned(ptx::ScalarType type) {
  return type == ptx::ScalarType::s8 || type == ptx::ScalarType::s16 ||
         type == ptx::ScalarType::s32 || type == ptx::ScalarType::s64;
}

/// Complain about addresses computed from bytes that nobody wrote.
static void checkAddress(Warp &warp, const Op &op, LaneMask active) {
  LaneMask bad = warp.poison(op.src[0]) & active;
  if (bad && warp.machine().config().checks)
    warp.machine().findings().report(
        FindingId::uninitializedAddress, warp, op, bad,
        "the address depends on bytes that nobody wrote" +
            warp.machine().findings().originText(warp,
                                                 warp.poisonOrigin(op.src[0])));
}

static std::uint64_t addressOf(const Warp &warp, const Op &op, int lane) {
  return warp.read(op.src[0], lane) + static_cast<std::uint64_t>(op.imm);
}

static std::uint64_t extend(std::uint64_t bits, const MemoryFlags &flags,
                            const Reg &reg) {
  if (!flags.isSigned || flags.bytes == 8)
    return bits;
  int shift = 64 - 8 * flags.bytes;
  auto wide = static_cast<std::uint64_t>(
      static_cast<std::int64_t>(bits << shift) >> shift);
  if (reg.bytes < 8)
    wide &= (std::uint64_t(1) << (8 * reg.bytes)) - 1;
  return wide;
}

/// A value was stored; unwritten bytes may not reach global memory.
static void markStored(Warp &warp, const Op &op, const ByteRange &place,
                       const Reg &value, std::size_t bytes, int lane) {
  std::uint64_t unwritten = warp.poisonBits(value, lane);
  if (warp.group().inDoubt >> lane & 1)
    unwritten = ~std::uint64_t(0);
  if (bytes < 8)
    unwritten &= (std::uint64_t(1) << (8 * bytes)) - 1;
  std::uint32_t origin = unwritten ? warp.poisonOrigin(value) : 0;
  place.mark(bytes, unwritten, origin);
  if (!unwritten)
    return;
  auto &stores = warp.cta().cluster().unwrittenStores;
  constexpr std::size_t kBytes = Cluster::UnwrittenStore::kBytes;
  bool isNoted =
      !place.isGlobal() || stores.size() < Cluster::UnwrittenStore::kMostGlobal;
  for (std::size_t at = 0; isNoted && at < bytes; at += kBytes)
    stores[{place.valid, (place.offset + at) / kBytes}] = {&op, origin};
  if (!place.isGlobal())
    return;
  // Whatever stores it, what was not loaded is one defect.
  warp.machine().findings().report(
      FindingId::uninitializedStore, warp, op, LaneMask(1) << lane,
      "a value that depends on bytes nobody wrote goes to global memory" +
          warp.machine().findings().originText(warp, origin),
      {}, warp.cta().cluster().origins[origin].op);
}

/// Which of the bytes that lanes have loaded nobody has written.
template <typename PlaceOf>
static void poisonLoaded(Warp &warp, const Op &op, const MemoryFlags &flags,
                         LaneMask active, PlaceOf &&placeOf) {
  std::size_t total = flags.bytes * op.list.size();
  forEachLane(active, [&](int lane) {
    const ByteRange &place = placeOf(lane);
    bool isWhole = place.isWritten(total) || mayYetBeWritten(warp, place);
    for (std::size_t i = 0; !isWhole && i < op.list.size(); ++i) {
      // What extends a value is as unwritten as its sign.
      ByteRange part = place.behind(i * flags.bytes);
      std::uint64_t bits = part.unwritten(flags.bytes);
      warp.setPoisonBits(op.list[i], lane, extend(bits, flags, op.list[i]));
      if (bits)
        warp.setPoisonOrigin(op.list[i], originOf(warp, op, part, flags.bytes));
    }
  });
}

/// Each lane by itself.
static Step loadByLane(Warp &warp, const Op &op, LaneMask active) {
  checkAddress(warp, op, active);
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  Accessor accessor(warp, op, "a load");
  std::size_t total = flags.bytes * op.list.size();
  std::array<ByteRange, kLanes> places;
  forEachLane(active, [&](int lane) {
    ByteRange &place = places[lane];
    place = accessor.locate(flags.space, addressOf(warp, op, lane), total,
                            total, lane, false);
    for (std::size_t i = 0; i < op.list.size(); ++i) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, place.data + i * flags.bytes, flags.bytes);
      warp.write(op.list[i], lane, extend(bits, flags, op.list[i]));
    }
  });
  if (!warp.hasChecks())
    return Step::next;
  CheckTime time(warp.watchers().clock());
  for (const Reg &reg : op.list)
    warp.setPoison(reg, active, 0);
  poisonLoaded(warp, op, flags, active,
               [&](int lane) { return places[lane]; });
  return Step::next;
}

/// A value in memory as a lane of a register has it.
template <typename M, typename S, bool isSigned>
static S extendTo(const std::uint8_t *data, S mask) {
  M value;
  std::memcpy(&value, data, sizeof(M));
  if constexpr (isSigned)
    return static_cast<S>(static_cast<std::make_signed_t<M>>(value)) & mask;
  else
    return value;
}

/// The values of a warp's lanes, from where they are.
template <typename M, typename S, bool isSigned>
static void moveIn(Warp &warp, const Op &op, const WarpAccess &access,
                   LaneMask active) {
  std::size_t stride = sizeof(M) * op.list.size();
  for (std::size_t i = 0; i < op.list.size(); ++i) {
    const Reg &reg = op.list[i];
    S *to = warp.lanes<S>(reg);
    S mask = reg.bytes >= sizeof(S) ? ~S(0) : (S(1) << (8 * reg.bytes)) - 1;
    const std::uint8_t *from = access.at(access.first()) + i * sizeof(M);
    switch (access.pattern()) {
    case Pattern::uniform: {
      S value = extendTo<M, S, isSigned>(from, mask);
      if (active == kAllLanes)
        std::fill_n(to, kLanes, value);
      else
        forEachLane(active, [&](int lane) { to[lane] = value; });
      break;
    }
    case Pattern::consecutive:
      if (active == kAllLanes && stride == sizeof(S) && sizeof(M) == sizeof(S))
        std::memcpy(to, from, sizeof(S) * kLanes);
      else if (active == kAllLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          to[lane] = extendTo<M, S, isSigned>(from + lane * stride, mask);
      else
        forEachLane(active, [&](int lane) {
          std::size_t behind = static_cast<std::size_t>(lane - access.first());
          to[lane] = extendTo<M, S, isSigned>(from + behind * stride, mask);
        });
      break;
    case Pattern::scattered:
      forEachLane(active, [&](int lane) {
        to[lane] =
            extendTo<M, S, isSigned>(access.at(lane) + i * sizeof(M), mask);
      });
    }
  }
}

template <typename M, typename S, bool isSigned>
static Step load(Warp &warp, const Op &op, LaneMask active) {
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  WarpAccess access;
  auto bytes = static_cast<std::uint32_t>(sizeof(M) * op.list.size());
  if ((warp.poison(op.src[0]) & active) ||
      !access.find(warp, op, flags.space, active, bytes, /*isWrite=*/false))
    return loadByLane(warp, op, active);
  moveIn<M, S, isSigned>(warp, op, access, active);
  if (warp.hasChecks()) {
    CheckTime time(warp.watchers().clock());
    for (const Reg &reg : op.list)
      warp.setPoison(reg, active, 0);
    if (!access.isWritten())
      poisonLoaded(warp, op, flags, active,
                   [&](int lane) { return access.place(lane); });
  }
  if (!op.isMasked && warp.watchers().wants(EventKind::access))
    access.tell();
  return Step::next;
}

void tellOrderOfLoad(Warp &warp, const Op &op, LaneMask lanes,
                     std::uint32_t elements) {
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  Accessor accessor(warp, op, "a load", /*isBehind=*/true);
  // Elements that follow each other are one access.
  auto first = static_cast<unsigned>(std::countr_zero(elements));
  while (first < op.list.size()) {
    auto count = static_cast<unsigned>(std::countr_one(elements >> first));
    std::size_t bytes = std::size_t(count) * flags.bytes;
    forEachLane(lanes, [&](int lane) {
      accessor.locate(flags.space,
                      addressOf(warp, op, lane) + first * flags.bytes, bytes,
                      flags.bytes, lane, false);
    });
    std::uint32_t left = elements >> first >> count << count << first;
    first = left ? static_cast<unsigned>(std::countr_zero(left)) : ~0u;
  }
}

/// For the ledger of a deadlock.
static void noteWriter(Warp &warp, const Op &op, const void *data, int lane) {
  if (warp.machine().config().checks)
    warp.cta().cluster().lastWriters().note(warp, op, data, lane);
}

/// Each lane by itself.
static Step storeByLane(Warp &warp, const Op &op, LaneMask active) {
  checkAddress(warp, op, active);
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  Accessor accessor(warp, op, "a store");
  std::size_t total = flags.bytes * op.list.size();
  bool isAllSame = true;
  const Watchers &watchers = warp.watchers();
  bool isWatched = watchers.wants(EventKind::access);
  bool isKept = watchers.wants(EventKind::storedValue) &&
                flags.space != Space::shared && !op.semantics.isStrong;
  std::array<std::uint8_t,
             ThreadAccess::kValueBytes * kLanes + Shadow::kCellBytes>
      values;
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
static LaneMask moveOut(const Warp &warp, const Op &op,
                        const WarpAccess &access, LaneMask active) {
  if (op.list.size() == 1 && active == kAllLanes && access.isDense()) {
    const S *from = warp.lanes<S>(op.list[0]);
    alignas(64) M values[kLanes], before[kLanes];
    for (int lane = 0; lane < kLanes; ++lane)
      values[lane] = static_cast<M>(from[lane]);
    std::uint8_t *to = access.at(0);
    std::memcpy(before, to, sizeof(before));
    std::memcpy(to, values, sizeof(values));
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
  if (access.isWritten())
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
  same &= moveOut<M, S>(warp, op, access, active);
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

/// The handler for elements of `bytes` in lanes of `width`.
template <typename M>
static Handler loadHandler(int width, bool isSigned) {
  using U32 = std::uint32_t;
  using U64 = std::uint64_t;
  if constexpr (sizeof(M) < 8)
    if (width != 8)
      return isSigned ? load<M, U32, true> : load<M, U32, false>;
  return isSigned ? load<M, U64, true> : load<M, U64, false>;
}

/// Whether elements of `bytes` are in lanes of one width that holds them.
static bool isRegular(const std::vector<Reg> &list, int bytes) {
  return !list.empty() &&
         std::all_of(list.begin(), list.end(), [&](const Reg &reg) {
           return reg.width == list.front().width && reg.width >= bytes;
         });
}

static Handler loadHandler(const std::vector<Reg> &list, int bytes,
                           bool isSigned) {
  if (!isRegular(list, bytes))
    return loadByLane;
  int width = list.front().width;
  return bytes == 1   ? loadHandler<std::uint8_t>(width, isSigned)
         : bytes == 2 ? loadHandler<std::uint16_t>(width, isSigned)
         : bytes == 4 ? loadHandler<std::uint32_t>(width, isSigned)
                      : loadHandler<std::uint64_t>(width, false);
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
  return bytes == 1   ? storeHandler<std::uint8_t>(width)
         : bytes == 2 ? storeHandler<std::uint16_t>(width)
         : bytes == 4 ? storeHandler<std::uint32_t>(width)
                      : storeHandler<std::uint64_t>(width);
}

/// The registers of a value or a vector. 128 bits are two of 64: `bytes` says
/// so afterwards.
static std::vector<Reg> elementsOf(Decoder &decoder,
                                   const ptx::Instruction &instruction,
                                   const ptx::Operand &operand, int &bytes) {
  constexpr std::size_t kMost = ThreadAccess::kValueBytes;
  std::vector<Reg> list = decoder.vector(operand, bytes);
  if (list.size() * static_cast<std::size_t>(bytes) > kMost)
    decoder.refuse(instruction,
                   fmt::format("{} bytes at once; a thread loads or stores "
                               "at most {}",
                               list.size() * bytes, kMost));
  if (bytes != 16)
    return list;
  bytes = 8;
  return {list[0], highHalf(list[0])};
}

void decodeLoad(Decoder &decoder, const ptx::Instruction &instruction,
                Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  int bytes = ptx::sizeBytes(type);
  op.list = elementsOf(decoder, instruction, instruction.operands[0], bytes);
  op.handler = loadHandler(op.list, bytes, isSigned(type));
  op.isListWritten = true;
  op.src[0] = decoder.address(instruction.operands[1], op.imm);
  op.flags = MemoryFlags::pack(
      decoder.spaceOfAddress(instruction.operands[1], spaceOf(instruction)),
      bytes, isSigned(type));
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

// Atomics: one lane after another, as the hardware serialises them.

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
  auto fits = [&](const Reg &reg) { return !reg.isValid() || reg.width == bytes; };
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
  op.handler = atomic;
}

std::vector<Instruction> memoryInstructions() {
  return {
      {"ld",
       decodeLoad,
       Unit::memory,
       "all spaces, 8 to 128 bits, vectors of up to 256; cache and order "
       "modifiers accepted",
       "b128, ORDER SPACE CACHE -> =t [a] policy; "
       ", ORDER SPACE CACHE VECTOR DATA -> ={~t} [a] policy",
       {.effect = laneLoadEffect,
        .semantics = accessSemantics,
        .addresses = readsAt<1>}},
      {"ldu",
       decodeLoad,
       Unit::memory,
       "as ld",
       ", global v2|v4 DATA -> ={~t} [a]",
       {.effect = laneLoadEffect,
        .semantics = accessSemantics,
        .addresses = readsAt<1>}},
      {"st",
       decodeStore,
       Unit::memory,
       "all spaces, 8 to 128 bits, vectors of up to 256; async; bulk",
       "bulk, weak shared::cta -> [a] u64 imm; "
       "async mbarrier::complete_tx::bytes, weak SHARED v2|v4 b32 b64 u32 u64 "
       "s32 s64 f32 f64 -> [a] {t} [a]; "
       "async release|relaxed, SCOPE mmio global DATA -> [a] ~t; "
       "b128, ORDER SPACE CACHE -> [a] t policy; "
       ", ORDER SPACE CACHE VECTOR DATA -> [a] {~t} policy",
       {.effect = storeEffect,
        .semantics = accessSemantics,
        .addresses = writesAt<0>}},
      {"atom",
       decodeAtomic,
       Unit::memory,
       "add min max inc dec and or xor exch cas of 32 and 64 bits; add min "
       "max of f16, bf16, pairs and vectors; cas of 16, cas and exch of 128 "
       "bits",
       "cas, ORDER SPACE L2::cache_hint DATA b128 -> =_t [a] t t policy; "
       "VECTOR add|min|max, ORDER SPACE L2::cache_hint noftz HALF f32 -> ={t} "
       "[a] {t} policy; "
       "REDUCE|exch, ORDER SPACE L2::cache_hint noftz DATA b128 HALF -> =_t "
       "[a] t policy",
       {.effect = atomicEffect,
        .semantics = atomicSemantics,
        .addresses = changesAt<1>}},
      {"red",
       decodeAtomic,
       Unit::memory,
       "add min max inc dec and or xor of 32 and 64 bits; add min max of f16, "
       "bf16, pairs and vectors; async",
       "async REDUCE mbarrier::complete_tx::bytes, relaxed cluster SHARED u32 "
       "s32 u64 s64 b32 b64 -> [a] t [a]; "
       "async release|relaxed add, SCOPE mmio global u32 s32 u64 -> [a] t; "
       "VECTOR add|min|max, ORDER SPACE L2::cache_hint noftz HALF f32 -> [a] "
       "{t} policy; "
       "REDUCE, ORDER SPACE L2::cache_hint noftz DATA HALF -> [a] t policy",
       {.effect = atomicEffect,
        .semantics = reductionSemantics,
        .addresses = writesAt<0>}},
  };
}

} // namespace kiln::sim
