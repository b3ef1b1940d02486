// MemoryInstructions: ld, and the table of all that access memory.
#include "sim/program/Effect.h"
#include "sim/units/Execute.h"
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/memory/AccessTraits.h"
#include "sim/units/memory/LaneAccess.h"
#include "sim/units/memory/WarpAccess.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace kiln::sim {

static bool isSigned(ptx::ScalarType type) {
  return type == ptx::ScalarType::s8 || type == ptx::ScalarType::s16 ||
         type == ptx::ScalarType::s32 || type == ptx::ScalarType::s64;
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
[[gnu::always_inline]] static inline void
moveIn(Warp &warp, const Op &op, const WarpAccess &access, LaneMask active) {
  std::size_t stride = sizeof(M) * op.list.size();
  for (std::size_t i = 0; i < op.list.size(); ++i) {
    const Reg &reg = op.list[i];
    S *to = warp.lanes<S>(reg);
    S mask = reg.bytes >= sizeof(S) ? ~S(0) : (S(1) << (8 * reg.bytes)) - 1;
    const std::uint8_t *from = access.at(access.first()) + i * sizeof(M);
    switch (access.pattern()) {
    case Pattern::uniform: {
      S value = extendTo<M, S, isSigned>(from, mask);
      alignas(64) S values[kLanes];
      for (int lane = 0; lane < kLanes; ++lane)
        values[lane] = value;
      blendLanes(to, values, active);
      break;
    }
    case Pattern::consecutive:
      if (active == kAllLanes && stride == sizeof(S) && sizeof(M) == sizeof(S))
        copyLanes(to, from);
      else if (active == kAllLanes)
        for (std::size_t lane = 0; lane < kLanes; ++lane)
          to[lane] = extendTo<M, S, isSigned>(from + lane * stride, mask);
      else
        forEachLane(active, [&](int lane) {
          std::size_t behind = static_cast<std::size_t>(lane - access.first());
          to[lane] = extendTo<M, S, isSigned>(from + behind * stride, mask);
        });
      break;
    case Pattern::scattered: {
      // Lanes that take no part have the address of one that does.
      alignas(64) S values[kLanes];
      std::size_t distance = i * sizeof(M);
      constexpr bool isWord = sizeof(M) == 4 && sizeof(S) == 4;
      if (isWord && distance == 0)
        access.gather(reinterpret_cast<std::uint32_t *>(values));
      else
        for (int lane = 0; lane < kLanes; ++lane)
          values[lane] =
              extendTo<M, S, isSigned>(access.at(lane) + distance, mask);
      blendLanes(to, values, active);
    }
    }
  }
}

template <typename M, typename S, bool isSigned>
KILN_WIDE_LANES static void moveInWide(Warp &warp, const Op &op,
                                       const WarpAccess &access,
                                       LaneMask active) {
  moveIn<M, S, isSigned>(warp, op, access, active);
}

template <typename M, typename S, bool isSigned>
static Step load(Warp &warp, const Op &op, LaneMask active) {
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  WarpAccess access;
  auto bytes = static_cast<std::uint32_t>(sizeof(M) * op.list.size());
  if ((warp.poison(op.src[0]) & active) ||
      !access.find(warp, op, flags.space, active, bytes, /*isWrite=*/false))
    return loadByLane(warp, op, active);
  if (hasWideLanes())
    moveInWide<M, S, isSigned>(warp, op, access, active);
  else
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

/// A parameter of the kernel by its name: the same for all lanes.
template <typename M, typename S, bool isSigned>
static Step loadParameter(Warp &warp, const Op &op, LaneMask active) {
  const std::vector<std::uint8_t> &params = warp.machine().config().params;
  std::uint64_t at = addressOf(warp, op, 0);
  if (!isInside(at, sizeof(M) * op.list.size(), params.size()))
    return loadByLane(warp, op, active);
  const std::uint8_t *from = params.data() + at;
  for (const Reg &reg : op.list) {
    S mask = reg.bytes >= sizeof(S) ? ~S(0) : (S(1) << (8 * reg.bytes)) - 1;
    S value = extendTo<M, S, isSigned>(from, mask);
    storeLanes<S>(warp, reg, active, [=](int) { return value; });
    if (warp.hasChecks())
      warp.setPoison(reg, active, 0);
    from += sizeof(M);
  }
  return Step::next;
}

void tellOrderOfLoad(Warp &warp, const Op &op, LaneMask lanes,
                     std::uint32_t elements) {
  MemoryFlags flags = MemoryFlags::unpack(op.flags);
  std::size_t total = flags.bytes * op.list.size();
  bool isWhole = elements == (std::uint64_t(1) << op.list.size()) - 1 &&
                 std::has_single_bit(total);
  WarpAccess access;
  if (isWhole && access.find(warp, op, flags.space, lanes,
                             static_cast<std::uint32_t>(total),
                             /*isWrite=*/false))
    return access.tell();
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

/// The handler for elements of type M in lanes of type S.
template <typename M, typename S>
static Handler loadHandler(bool isParameter, bool isSigned) {
  if (isParameter)
    return isSigned ? loadParameter<M, S, true> : loadParameter<M, S, false>;
  return isSigned ? load<M, S, true> : load<M, S, false>;
}

/// The same in lanes of `width` bytes.
template <typename M>
static Handler loadHandler(int width, bool isParameter, bool isSigned) {
  if constexpr (sizeof(M) < 8)
    if (width != 8)
      return loadHandler<M, std::uint32_t>(isParameter, isSigned);
  return loadHandler<M, std::uint64_t>(isParameter, isSigned);
}

static Handler loadHandler(const std::vector<Reg> &list, int bytes,
                           bool isParameter, bool isSigned) {
  if (!isRegular(list, bytes))
    return loadByLane;
  int width = list.front().width;
  return withReference(
      bytes == 1   ? loadHandler<std::uint8_t>(width, isParameter, isSigned)
      : bytes == 2 ? loadHandler<std::uint16_t>(width, isParameter, isSigned)
      : bytes == 4 ? loadHandler<std::uint32_t>(width, isParameter, isSigned)
                   : loadHandler<std::uint64_t>(width, isParameter, false),
      loadByLane);
}

void decodeLoad(Decoder &decoder, const ptx::Instruction &instruction,
                Op &op) {
  ptx::ScalarType type = lastType(decoder, instruction);
  int bytes = ptx::sizeBytes(type);
  op.list = elementsOf(decoder, instruction, instruction.operands[0], bytes);
  const ptx::Operand &address = instruction.operands[1];
  Space space = decoder.spaceOfAddress(address, spaceOf(instruction));
  bool isParameter = space == Space::param &&
                     address.elements[0].kind == ptx::Operand::Kind::symbol;
  op.handler = loadHandler(op.list, bytes, isParameter, isSigned(type));
  op.isListWritten = true;
  op.src[0] = decoder.address(address, op.imm);
  op.flags = MemoryFlags::pack(space, bytes, isSigned(type));
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
