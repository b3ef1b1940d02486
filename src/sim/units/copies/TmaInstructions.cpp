// TmaInstructions: bulk copies and reductions of boxes of a tensor map.
//
// A copy is work of its own (Cluster::enqueue): it reads and writes when the
// order says, and then signals its mbarrier or its group.
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "sim/units/copies/ClusterLaunch.h"
#include "sim/units/copies/TensorCopy.h"
#include "sim/units/memory/AccessTraits.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

/// Tell who watches of a copy that lanes issue together: what it touches in the
/// tensor, or in shared memory of `owner`.
static void tellTensor(Warp &warp, const Op &op, LaneMask lanes,
                       const Completion &over, const Box &box, bool isWrite,
                       Cta *owner, std::span<const ByteRun> runs) {
  bool isReduction = !owner && box.reduction;
  warp.watchers().tell(AsyncAccess{
      .warp = warp,
      .op = op,
      .issuers = lanes,
      .over = over,
      .isWrite = isWrite,
      .isAtomic = isReduction,
      .owner = owner,
      .runs = runs,
      .swizzle = owner && isWrite ? static_cast<int>(box.map.swizzle) : -1});
}

/// The CTA whose mbarrier a box that goes to `target` counts on. With
/// cta_group::2 that may be the other one of the pair: in every pair the even
/// or the odd one, as the mbarrier's address says.
static Cta &signalledFor(const TensorCopy &copy, Cta &barrierOwner,
                         Cta &target) {
  if (!copy.mask.isValid())
    return barrierOwner;
  if (!copy.isForPair)
    return target;
  int rank = (target.rankInCluster() & ~1) | (barrierOwner.rankInCluster() & 1);
  return target.cluster().cta(rank);
}

/// cta_group::2 is for pairs, and the mbarrier is in the pair that gets the
/// box.
static void checkPair(Warp &warp, const Op &op, int lane,
                      const TensorCopy &copy, const Cta &receiver,
                      const Cta &barrierOwner) {
  std::size_t size = receiver.cluster().size();
  int pair = receiver.rankInCluster() / 2;
  bool isInPair =
      copy.mask.isValid() || pair == barrierOwner.rankInCluster() / 2;
  if (size % 2 == 0 && isInPair)
    return;
  warp.machine().findings().fault(
      FindingId::bulkBarrier, warp, op, LaneMask(1) << lane,
      fmt::format("with cta_group::2 the box goes to CTA {} of a cluster of {} "
                  "and its mbarrier is in CTA {}; it must be in the same pair",
                  receiver.rankInCluster(), size,
                  barrierOwner.rankInCluster()));
}

static Step loadTensor(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const TensorCopy *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  forEachLane(active, [&](int lane) {
    Box box = readBox(warp, op, copy, lane);
    SharedRange destination =
        sharedRange(warp, op, copy.destination, box.tileBytes, 128, lane);
    SharedRange barrier = sharedRange(warp, op, copy.barrier, 8, 8, lane);
    std::uint32_t mask =
        multicastMask(warp, op, copy.mask, *destination.owner, lane);
    if (copy.isForPair)
      checkPair(warp, op, lane, copy, *destination.owner, *barrier.owner);
    LaneMask bit = LaneMask(1) << lane;
    if (mask && warp.watchers().wants(EventKind::access)) {
      Cta &first = signalledFor(copy, *barrier.owner,
                                cluster.cta(std::countr_zero(mask)));
      tellTensor(warp, op, bit, onBarrier(first, barrier.address), box,
                 /*isWrite=*/false, nullptr, runsOf(box));
    }
    forEachCta(cluster, mask, [&](Cta &target) {
      Cta &signalled = signalledFor(copy, *barrier.owner, target);
      tellCopyBegin(warp, op, lane, signalled, barrier.address);
      ByteRun tile{destination.address - kFirstSharedAddress, box.tileBytes};
      tellTensor(warp, op, bit, onBarrier(signalled, barrier.address), box,
                 /*isWrite=*/true, &target, {&tile, 1});
      cluster.enqueue(
          [&warp, &op, lane, box, &target, &signalled, destination, barrier] {
            loadBox(warp, op, box, target, destination.address);
            completeTx(warp, op, lane, signalled, barrier.address,
                       static_cast<std::uint32_t>(box.bytes));
          });
    });
  });
  return Step::next;
}

/// Those of `lanes` that store the same tile to the same place as `lane`.
static LaneMask alikeStores(Warp &warp, const Op &op, const TensorCopy &copy,
                            LaneMask lanes, int lane) {
  LaneMask alike = 0;
  forEachLane(lanes, [&](int other) {
    auto isSame = [&](Reg reg) {
      return warp.read(reg, other) == warp.read(reg, lane);
    };
    if (copy.map.read(warp, op, other) == copy.map.read(warp, op, lane) &&
        copy.source.read(warp, op, other) == copy.source.read(warp, op, lane) &&
        std::all_of(copy.coordinates.begin(),
                    copy.coordinates.begin() + copy.rank, isSame))
      alike |= LaneMask(1) << other;
  });
  return alike;
}

static Step storeTensor(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const TensorCopy *>(op.extra.get());
  warp.watchers().tell(AsyncBegin{warp});
  for (LaneMask left = active; left;) {
    int lane = firstLane(left);
    Box box = readBox(warp, op, copy, lane);
    // Compilers let a whole warp issue a store with one set of operands; it is
    // made once, and each lane has it in its group. A reduction would count.
    LaneMask alike = copy.reduction ? LaneMask(1) << lane
                                    : alikeStores(warp, op, copy, left, lane);
    left &= ~alike;
    SharedRange source =
        sharedRange(warp, op, copy.source, box.tileBytes, 128, lane);
    if (warp.watchers().wants(EventKind::access)) {
      ByteRun bytes{source.address - kFirstSharedAddress, box.tileBytes};
      tellTensor(warp, op, alike, {Completion::By::bulkGroupRead}, box,
                 /*isWrite=*/false, source.owner, {&bytes, 1});
      tellTensor(warp, op, alike, {Completion::By::bulkGroup}, box,
                 /*isWrite=*/true, nullptr, runsOf(box));
    }
    auto tile = std::make_shared<Tile>(box.tileBytes);
    auto work = enqueueStore(
        warp.cta().cluster(), op,
        [&warp, &op, box, source, tile] {
          readTile(warp, op, box, *source.owner, source.address, *tile);
        },
        [&warp, &op, lane, box, tile] {
          auto origin = storeBox(warp.machine(), box, *tile);
          if (origin && warp.machine().config().checks)
            reportUnwritten(warp, op, lane, *origin);
        });
    forEachLane(alike, [&](int other) {
      addToGroup(warp.cta().cluster(), warp.bulk[other], work);
    });
  }
  return Step::next;
}

static Step ignoreTensorPrefetch(Warp &, const Op &, LaneMask) {
  return Step::next;
}

/// [map, {coordinates}]
static void decodeMapOperand(Decoder &decoder, const ptx::Operand &operand,
                             TensorCopy &copy) {
  copy.map = AddressOperand::decode(decoder, operand);
  copy.coordinates = decoder.vector(operand.elements[1], 4);
}

static void decodeTensorCopy(Decoder &decoder,
                             const ptx::Instruction &instruction, Op &op) {
  TensorCopy copy;
  for (int rank = 1; rank <= 5; ++rank)
    if (instruction.has(fmt::format("{}d", rank).c_str()))
      copy.rank = rank;
  const auto &operands = instruction.operands;
  if (instruction.has("prefetch")) {
    op.handler = ignoreTensorPrefetch;
    return;
  }
  copy.isStore = instruction.has("bulk_group");
  if (instruction.has("im2col") || instruction.has("im2col_no_offs"))
    copy.mode = TensorCopy::Mode::pixels;
  else if (instruction.has("tile::gather4") ||
           instruction.has("tile::scatter4"))
    copy.mode = TensorCopy::Mode::rows;
  if (copy.isStore) {
    decodeMapOperand(decoder, operands[0], copy);
    copy.source = AddressOperand::decode(decoder, operands[1]);
    if (instruction.has("reduce"))
      copy.reduction = reductionKind(decoder, instruction);
    op.handler = storeTensor;
  } else {
    copy.destination = AddressOperand::decode(decoder, operands[0]);
    decodeMapOperand(decoder, operands[1], copy);
    copy.barrier = AddressOperand::decode(decoder, operands[2]);
    copy.isForPair = instruction.has("cta_group::2");
    std::size_t at = 3;
    if (copy.mode == TensorCopy::Mode::pixels) {
      copy.offsets = decoder.vector(operands[at++], 2);
      if (static_cast<int>(copy.offsets.size()) != copy.rank - 2)
        decoder.refuse(instruction,
                       fmt::format("{} offsets for rank {}, which has {}",
                                   copy.offsets.size(), copy.rank,
                                   copy.rank - 2));
    }
    if (instruction.has("multicast::cluster"))
      copy.mask = decoder.reg(operands[at], 2);
    op.handler = loadTensor;
  }
  op.extra = std::make_shared<TensorCopy>(std::move(copy));
}

static void decodeCopy(Decoder &decoder, const ptx::Instruction &instruction,
                       Op &op) {
  if (!instruction.has("bulk"))
    return decodeAsyncCopy(decoder, instruction, op);
  if (!instruction.has("tensor"))
    return decodeBulkCopy(decoder, instruction, op);
  decodeTensorCopy(decoder, instruction, op);
}

static void decodePrefetch(Decoder &, const ptx::Instruction &, Op &op) {
  op.handler = ignoreTensorPrefetch;
}

static void copyEffect(Decoder &decoder, const ptx::Instruction &instruction,
                       Effect &effect) {
  effect.count = firstImmediate(instruction);
  effect.isTensor = instruction.has("tensor");
  effect.isMulticast = instruction.has("multicast::cluster");
  effect.isReduction = instruction.has("reduce");
  bool isCopy = instruction.operands.size() > 2;
  if (instruction.has("bulk") && !effect.isTensor && isCopy)
    effect.size = decoder.reg(instruction.operands[2], 4);
  if (instruction.has("commit_group")) {
    effect.kind = EffectKind::copyCommit;
  } else if (instruction.has("wait_group") || instruction.has("wait_all")) {
    effect.kind = EffectKind::copyWait;
  } else if (instruction.has("prefetch")) {
    effect.kind = EffectKind::none;
  } else if (instruction.has("mbarrier")) {
    effect.kind = EffectKind::barrierArrive; // cp.async.mbarrier.arrive
    takeAddress(decoder, instruction, 0, effect.address, effect.offset);
  } else if (instruction.has("bulk_group")) {
    effect.kind = EffectKind::copyOut;
    takeAddress(decoder, instruction, 0, effect.operand, effect.operandOffset);
    takeAddress(decoder, instruction, 1, effect.address, effect.offset);
  } else {
    effect.kind = EffectKind::copyIn;
    takeAddress(decoder, instruction, 0, effect.address, effect.offset);
    takeAddress(decoder, instruction, 1, effect.operand, effect.operandOffset);
    if (instruction.has("bulk"))
      takeAddress(decoder, instruction, 2, effect.barrier,
                  effect.barrierOffset);
  }
}

static void tensorMapEffect(Decoder &, const ptx::Instruction &instruction,
                            Effect &effect) {
  effect.kind = instruction.has("cp_fenceproxy") ? EffectKind::mapCopy
                                                 : EffectKind::other;
}

static AddressUse copyAddresses(const ptx::Instruction &instruction) {
  bool isMoving = instruction.operands.size() > 2 ||
                  instruction.has("bulk_group") || instruction.has("prefetch");
  if (!isMoving) // groups, and arrivals at mbarriers
    return {};
  bool isTensor = instruction.has("tensor");
  if (instruction.has("prefetch"))
    return {.read = 0b1, .maps = OperandSet(isTensor)};
  if (!isTensor)
    return {.read = 0b10, .written = 0b1};
  // A store names the map first.
  return instruction.has("bulk_group")
             ? AddressUse{.read = 0b11, .written = 0b1, .maps = 0b1}
             : AddressUse{.read = 0b10, .written = 0b1, .maps = 0b10};
}

static AddressUse prefetchAddresses(const ptx::Instruction &instruction) {
  return {.read = 0b1, .maps = OperandSet(instruction.has("tensormap"))};
}

static AddressUse mapAddresses(const ptx::Instruction &instruction) {
  if (instruction.has("cp_fenceproxy"))
    return {.read = 0b10, .written = 0b1, .maps = 0b11};
  return {.written = 0b1, .maps = 0b1};
}

std::vector<Instruction> tmaInstructions() {
  const char *copies =
      "async commit_group; "
      "async wait_group -> imm; "
      "async wait_all; "
      "async mbarrier arrive, noinc shared shared::cta b64 -> [a]; "
      "async ca|cg, SHARED global L2::cache_hint PREFETCH -> [a] [a] imm u32? "
      "policy; "
      "async ca|cg, SHARED global L2::cache_hint PREFETCH -> [a] [a] imm p "
      "policy; "
      "async bulk commit_group; "
      "async bulk wait_group, read -> imm; "
      "async bulk prefetch tensor RANK im2col, L2 global L2::cache_hint -> "
      "[t] {u16}* policy; "
      "async bulk prefetch tensor RANK, L2 global tile tile::gather4 "
      "L2::cache_hint -> [t] policy; "
      "async bulk prefetch, L2 global L2::cache_hint -> [a] u32 policy; "
      "async bulk tensor RANK bulk_group, reduce SHARED global "
      "tile|tile::scatter4|im2col_no_offs L2::cache_hint REDUCE -> [t] [a] "
      "policy; "
      "async bulk tensor RANK im2col mbarrier::complete_tx::bytes, SHARED "
      "global multicast::cluster L2::cache_hint CTAGROUP -> [a] [t] [a] "
      "{u16}* mask policy; "
      "async bulk tensor RANK mbarrier::complete_tx::bytes, SHARED global "
      "tile|tile::gather4 multicast::cluster L2::cache_hint CTAGROUP -> [a] "
      "[t] [a] mask policy; "
      "async bulk bulk_group cp_mask, SHARED global L2::cache_hint -> [a] [a] "
      "u32 policy u16; "
      "async bulk bulk_group, reduce SHARED global L2::cache_hint REDUCE noftz "
      "TYPE -> [a] [a] u32 policy; "
      "async bulk reduce mbarrier::complete_tx::bytes, reduce SHARED global "
      "L2::cache_hint REDUCE noftz TYPE -> [a] [a] u32 [a]; "
      "async bulk mbarrier::complete_tx::bytes, SHARED global "
      "multicast::cluster L2::cache_hint -> [a] [a] u32 [a] mask policy";
  return {
      {"cp",
       decodeCopy,
       Unit::copies,
       "async and its groups and mbarrier arrivals; async.bulk plain, with "
       ".cp_mask, and of tensors: tile, tile::gather4, tile::scatter4 and "
       "im2col, multicast too; reduce.async.bulk of all; groups",
       copies,
       {.effect = copyEffect,
        .semantics = accessSemantics,
        .addresses = copyAddresses}},
      clusterLaunchControl(),
      {"prefetch",
       decodePrefetch,
       Unit::copies,
       "every form; no effect",
       "tensormap, param const -> [a]; "
       "L1|L2|L2::evict_last|L2::evict_normal, global local -> [a]",
       {.addresses = prefetchAddresses}},
      {"prefetchu", decodePrefetch, Unit::copies, "no effect", "L1 -> [a]"},
      {"createpolicy", decodePrefetch, Unit::copies, "no effect",
       "fractional, EVICT b64 -> =b64 f32?; "
       "range, global EVICT b64 -> =b64 [a] u32 u32; "
       "cvt, L2 b64 -> =b64 b64"},
      {"applypriority", decodePrefetch, Unit::copies, "no effect",
       "L2::evict_normal, global -> [a] imm"},
      {"discard", decodePrefetch, Unit::copies, "no effect",
       "L2, global -> [a] imm"},
      {"tensormap",
       decodeTensorMap,
       Unit::copies,
       "replace of every field of tiled maps; cp_fenceproxy",
       "cp_fenceproxy, global SHARED tensormap::generic release SCOPE ALIGNED "
       "-> [a] [a] imm; "
       "replace box_dim|global_dim|global_stride|element_stride, tile SHARED "
       "global b1024 b32 b64 -> [a] imm t; "
       "replace elemtype|interleave_layout|swizzle_mode|swizzle_atomicity|"
       "fill_mode, tile SHARED global b1024 b32 -> [a] imm; "
       "replace global_address|rank, tile SHARED global b1024 b32 b64 -> [a] "
       "t",
       {.effect = tensorMapEffect,
        .semantics = accessSemantics,
        .addresses = mapAddresses}},
  };
}

} // namespace kiln::sim
