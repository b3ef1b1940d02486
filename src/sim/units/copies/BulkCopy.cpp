// BulkCopy: cp.async.bulk and cp.reduce.async.bulk of plain runs of bytes, and
// st.async and red.async, which are their like for a few registers.
//
// What goes to shared memory tells an mbarrier how many bytes have arrived;
// what goes to global memory belongs to a group of its thread.
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

/// Addresses and sizes of bulk copies are multiples of this.
static constexpr std::uint32_t kBulkUnit = 16;

namespace {
/// A decoded bulk copy.
struct BulkCopy {
  AddressOperand destination, source, barrier;
  Reg bytes, mask;
  Reg byteMask; ///< of each 16 bytes those that are copied; not valid: all
  bool isFromGlobal = false;
  std::optional<Reduction> reduction;
};

/// A decoded st.async or red.async.
struct AsyncStore {
  AddressOperand destination, barrier;
  std::uint32_t elementBytes = 4;
  std::optional<Reduction> reduction;
};
} // namespace

/// The size operand of a lane, with the hardware's rule.
static std::uint32_t bytesOf(Warp &warp, const Op &op, const BulkCopy &copy,
                             int lane) {
  auto bytes = static_cast<std::uint32_t>(warp.read(copy.bytes, lane));
  LaneMask bit = LaneMask(1) << lane;
  if (warp.machine().config().checks && (warp.poison(copy.bytes) & bit))
    warp.machine().findings().fault(
        FindingId::uninitializedSize, warp, op, bit,
        "the size depends on bytes that nobody wrote");
  std::uint32_t unit = kBulkUnit;
  if (bytes % unit)
    warp.machine().findings().fault(
        FindingId::bulkSize, warp, op, bit,
        fmt::format("a bulk copy of {} bytes; its size is a "
                    "multiple of {}",
                    bytes, unit));
  return bytes;
}

/// The mbarrier of a copy: in the CTA that receives the bytes.
static SharedRange barrierOf(Warp &warp, const Op &op,
                             const AddressOperand &operand,
                             const SharedRange &destination, int lane) {
  SharedRange barrier = sharedRange(warp, op, operand, 8, 8, lane);
  if (barrier.owner != destination.owner)
    warp.machine().findings().fault(
        FindingId::bulkBarrier, warp, op, LaneMask(1) << lane,
        fmt::format("the bytes go to CTA {} of the cluster and their mbarrier "
                    "is in CTA {}; it must be where the bytes go",
                    destination.owner->rankInCluster(),
                    barrier.owner->rankInCluster()));
  return barrier;
}

static std::optional<Scope> atomicIn(bool isReduction, Scope scope) {
  return isReduction ? std::optional(scope) : std::nullopt;
}

/// Tell who watches of a copy to shared memory.
static void noteCopy(Warp &warp, const Op &op, const BulkCopy &copy, int lane,
                     std::uint32_t mask, const SharedRange &destination,
                     std::uint32_t barrier, std::uint32_t bytes) {
  if (!warp.watchers().wants(EventKind::access) || !mask)
    return;
  forEachCta(warp.cta().cluster(), mask, [&](Cta &target) {
    tellCopyBegin(warp, op, lane, target, barrier);
    tellCopy(warp, op, lane, onBarrier(target, barrier), &target,
             {destination.address - kFirstSharedAddress, bytes},
             {.isWrite = true,
              .atomic = atomicIn(copy.reduction.has_value(), Scope::gpu)});
  });
  Completion over =
      onBarrier(warp.cta().cluster().cta(std::countr_zero(mask)), barrier);
  if (copy.isFromGlobal)
    return tellCopy(warp, op, lane, over, nullptr,
                    {copy.source.read(warp, op, lane), bytes});
  SharedRange source =
      sharedRange(warp, op, copy.source, bytes, kBulkUnit, lane);
  tellCopy(warp, op, lane, over, source.owner,
           {source.address - kFirstSharedAddress, bytes});
}

/// To shared memory, from global memory or from the CTA's own.
static Step copyToShared(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const BulkCopy *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  Accessor accessor(warp, op, "a bulk copy");
  forEachLane(active, [&](int lane) {
    std::uint32_t bytes = bytesOf(warp, op, copy, lane);
    SharedRange destination =
        sharedRange(warp, op, copy.destination, bytes, kBulkUnit, lane);
    SharedRange barrier = barrierOf(warp, op, copy.barrier, destination, lane);
    ByteRange from;
    if (copy.isFromGlobal) {
      from = accessor.locateGlobal(copy.source.read(warp, op, lane), bytes,
                                   kBulkUnit, lane, false);
    } else {
      SharedRange source =
          sharedRange(warp, op, copy.source, bytes, kBulkUnit, lane);
      from = source.in(*source.owner);
    }
    std::uint32_t mask =
        multicastMask(warp, op, copy.mask, *destination.owner, lane);
    noteCopy(warp, op, copy, lane, mask, destination, barrier.address, bytes);
    forEachCta(cluster, mask, [&](Cta &target) {
      cluster.enqueue([&warp, &op, &copy, lane, &target, destination, from,
                       barrier = barrier.address, bytes] {
        ByteRange to = destination.in(target);
        if (copy.reduction)
          copy.reduction->apply(to.data, from.data, bytes);
        else
          copyBytes(warp, op, to, from, bytes);
        completeTx(warp, op, lane, target, barrier, bytes);
      });
    });
  });
  return Step::next;
}

/// The runs of bytes that a mask leaves of each 16.
static std::vector<ByteRun> runsOf(std::uint64_t address, std::uint32_t bytes,
                                   std::uint32_t mask) {
  std::vector<ByteRun> runs;
  for (std::uint32_t i = 0; i < bytes; ++i) {
    if (!(mask >> i % kBulkUnit & 1))
      continue;
    if (!runs.empty() && runs.back().begin + runs.back().bytes == address + i)
      ++runs.back().bytes;
    else
      runs.push_back({address + i, 1});
  }
  return runs;
}

/// A copy of some bytes of each 16: its source is read whole.
static void copyMasked(Warp &warp, const Op &op, const BulkCopy &copy, int lane,
                       const ByteRange &from, const ByteRange &to,
                       std::uint32_t bytes, std::uint64_t address) {
  LaneMask bit = LaneMask(1) << lane;
  if (warp.machine().config().checks && (warp.poison(copy.byteMask) & bit))
    warp.machine().findings().fault(
        FindingId::uninitializedSize, warp, op, bit,
        "the byte mask depends on bytes that nobody wrote");
  auto mask = static_cast<std::uint32_t>(warp.read(copy.byteMask, lane));
  std::vector<ByteRun> runs = runsOf(address, bytes, mask);
  warp.watchers().tell(AsyncAccess{.warp = warp,
                                   .op = op,
                                   .issuers = bit,
                                   .over = {Completion::By::bulkGroup},
                                   .isWrite = true,
                                   .runs = runs});
  auto data = std::make_shared<std::vector<std::uint8_t>>(bytes);
  auto read = [&warp, &op, lane, from, data, mask] {
    std::copy_n(from.data, data->size(), data->data());
    for (std::size_t i = 0; i < data->size(); ++i)
      if (mask >> i % kBulkUnit & 1 && warp.machine().config().checks &&
          !from.behind(i).isWritten(1))
        return reportUnwritten(warp, op, lane,
                               originOf(warp, op, from.behind(i), 1));
  };
  auto write = [to, data, mask] {
    for (std::size_t i = 0; i < data->size(); ++i)
      if (mask >> i % kBulkUnit & 1) {
        to.data[i] = (*data)[i];
        to.behind(i).markWritten(1);
      }
  };
  Cluster &cluster = warp.cta().cluster();
  addToGroup(cluster, warp.bulk[lane], enqueueStore(cluster, op, read, write));
}

/// From the CTA's shared memory to global memory.
static Step copyToGlobal(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const BulkCopy *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  Accessor accessor(warp, op, "a bulk copy");
  warp.watchers().tell(AsyncBegin{warp});
  forEachLane(active, [&](int lane) {
    std::uint32_t bytes = bytesOf(warp, op, copy, lane);
    SharedRange source =
        sharedRange(warp, op, copy.source, bytes, kBulkUnit, lane);
    ByteRange from = source.in(*source.owner);
    ByteRange to = accessor.locateGlobal(copy.destination.read(warp, op, lane),
                                         bytes, kBulkUnit, lane, true);
    if (warp.watchers().wants(EventKind::access))
      tellCopy(warp, op, lane, {Completion::By::bulkGroupRead}, source.owner,
               {source.address - kFirstSharedAddress, bytes});
    if (copy.byteMask.isValid())
      return copyMasked(warp, op, copy, lane, from, to, bytes,
                        copy.destination.read(warp, op, lane));
    if (warp.watchers().wants(EventKind::access)) {
      tellCopy(warp, op, lane, {Completion::By::bulkGroup}, nullptr,
               {copy.destination.read(warp, op, lane), bytes},
               {.isWrite = true,
                .atomic = atomicIn(copy.reduction.has_value(), Scope::gpu)});
    }
    auto data = std::make_shared<std::vector<std::uint8_t>>(bytes);
    auto read = [&warp, &op, lane, from, data] {
      std::copy_n(from.data, data->size(), data->data());
      if (warp.machine().config().checks && !from.isWritten(data->size()))
        reportUnwritten(warp, op, lane, originOf(warp, op, from, data->size()));
    };
    auto write = [&copy, to, data] {
      if (copy.reduction)
        return reduceGlobal(*copy.reduction, to, data->data(), data->size());
      std::copy_n(data->data(), data->size(), to.data);
      to.markWritten(data->size());
    };
    addToGroup(cluster, warp.bulk[lane],
               enqueueStore(cluster, op, read, write));
  });
  return Step::next;
}

static Step commitBulk(Warp &warp, const Op &, LaneMask active) {
  forEachLane(active, [&](int lane) {
    commitGroup(warp.cta().cluster(), warp.bulk[lane]);
    warp.watchers().tell(
        CopyGroup{CopyGroup::What::commit, warp, lane, /*isBulk=*/true});
  });
  return Step::next;
}

/// Wait until at most `imm` groups are in flight; flags: .read.
static Step wait(Warp &warp, const Op &op, LaneMask active) {
  auto keep = static_cast<std::size_t>(op.imm);
  forEachLane(active, [&](int lane) {
    warp.watchers().tell(
        CopyGroup{op.flags ? CopyGroup::What::waitRead : CopyGroup::What::wait,
                  warp, lane, /*isBulk=*/true, keep});
    if (op.flags)
      waitReads(warp.cta().cluster(), warp.bulk[lane], keep);
    else
      waitGroups(warp.cta().cluster(), warp.bulk[lane], keep);
  });
  return Step::next;
}

static Step ignorePrefetch(Warp &, const Op &, LaneMask) { return Step::next; }

/// st.async, red.async: registers of each lane to a CTA of the cluster.
static Step storeAsync(Warp &warp, const Op &op, LaneMask active) {
  const auto &store = *static_cast<const AsyncStore *>(op.extra.get());
  Cluster &cluster = warp.cta().cluster();
  auto bytes = static_cast<std::uint32_t>(store.elementBytes * op.list.size());
  forEachLane(active, [&](int lane) {
    SharedRange destination =
        sharedRange(warp, op, store.destination, bytes, bytes, lane);
    SharedRange barrier = barrierOf(warp, op, store.barrier, destination, lane);
    tellCopyBegin(warp, op, lane, *barrier.owner, barrier.address);
    tellCopy(warp, op, lane, onBarrier(*barrier.owner, barrier.address),
             destination.owner,
             {destination.address - kFirstSharedAddress, bytes},
             {.isWrite = true,
              .isThroughProxy = false,
              .atomic = atomicIn(store.reduction.has_value(), Scope::cluster)});
    std::array<std::uint8_t, 32> data{};
    std::array<std::uint64_t, 4> unwritten{};
    std::array<std::uint32_t, 4> origins{};
    for (std::size_t i = 0; i < op.list.size(); ++i) {
      std::uint64_t bits = warp.read(op.list[i], lane);
      std::memcpy(data.data() + i * store.elementBytes, &bits,
                  store.elementBytes);
      unwritten[i] = warp.poisonBits(op.list[i], lane);
      origins[i] = warp.poisonOrigin(op.list[i]);
    }
    cluster.enqueue([&warp, &op, &store, lane, destination, barrier, data,
                     unwritten, origins, bytes] {
      ByteRange to = destination.in(*destination.owner);
      if (store.reduction) {
        store.reduction->apply(to.data, data.data(), bytes);
      } else {
        std::memcpy(to.data, data.data(), bytes);
        for (std::size_t i = 0; i < op.list.size(); ++i)
          to.behind(i * store.elementBytes)
              .mark(store.elementBytes, unwritten[i], origins[i]);
      }
      completeTx(warp, op, lane, *barrier.owner, barrier.address, bytes);
    });
  });
  return Step::next;
}

/// The spaces a copy names: its destination's and its source's.
static std::pair<Space, Space> spacesOf(Decoder &decoder,
                                        const ptx::Instruction &instruction) {
  std::vector<Space> spaces;
  for (const std::string &modifier : instruction.modifiers) {
    if (modifier == "global")
      spaces.push_back(Space::global);
    if (modifier == "shared::cta" || modifier == "shared::cluster")
      spaces.push_back(Space::shared);
  }
  if (spaces.size() != 2 ||
      (spaces[0] == Space::global && spaces[1] == Space::global))
    decoder.refuse(instruction, "a bulk copy goes from global to shared memory "
                                "or back, or from shared to shared memory");
  return {spaces[0], spaces[1]};
}

/// Refuse unless there are `count` operands, leaving out a cache policy.

static void decodeCpBulk(Decoder &decoder, const ptx::Instruction &instruction,
                         Op &op) {
  auto [to, from] = spacesOf(decoder, instruction);
  bool isReduction = instruction.has("reduce");
  bool isMulticast = instruction.has("multicast::cluster");
  bool hasBarrier = instruction.has("mbarrier::complete_tx::bytes");
  if (hasBarrier != (to == Space::shared) ||
      instruction.has("bulk_group") == hasBarrier)
    decoder.refuse(instruction,
                   "copies to shared memory complete on an mbarrier, those to "
                   "global memory in a bulk_group");
  if (isReduction && from == Space::global)
    decoder.refuse(instruction, "reductions take their values from shared "
                                "memory");
  const auto &operands = instruction.operands;
  BulkCopy copy;
  copy.isFromGlobal = from == Space::global;
  copy.destination = AddressOperand::decode(decoder, operands[0]);
  copy.source = AddressOperand::decode(decoder, operands[1]);
  copy.bytes = decoder.reg(operands[2], 4);
  if (hasBarrier)
    copy.barrier = AddressOperand::decode(decoder, operands[3]);
  if (isMulticast)
    copy.mask = decoder.reg(operands[4], 2);
  if (instruction.has("cp_mask"))
    copy.byteMask = decoder.reg(operands.back(), 2);
  if (isReduction)
    copy.reduction = decodeReduction(decoder, instruction);
  op.handler = to == Space::shared ? copyToShared : copyToGlobal;
  op.extra = std::make_shared<BulkCopy>(copy);
}

void decodeBulkCopy(Decoder &decoder, const ptx::Instruction &instruction,
                    Op &op) {
  if (instruction.has("commit_group")) {
    op.handler = commitBulk;
  } else if (instruction.has("wait_group")) {
    op.imm = static_cast<std::int64_t>(instruction.operands[0].bits);
    op.flags = instruction.has("read");
    op.handler = wait;
  } else if (instruction.has("prefetch")) {
    op.handler = ignorePrefetch;
  } else {
    decodeCpBulk(decoder, instruction, op);
  }
}

/// [address], value, [mbarrier]
static AsyncStore decodeStoreOperands(Decoder &decoder,
                                      const ptx::Instruction &instruction,
                                      Op &op) {
  AsyncStore store;
  store.elementBytes = static_cast<std::uint32_t>(
      ptx::sizeBytes(lastType(decoder, instruction)));
  if (store.elementBytes != 4 && store.elementBytes != 8)
    decoder.refuse(instruction, "its type is none of 32 or 64 bits");
  const auto &operands = instruction.operands;
  store.destination = AddressOperand::decode(decoder, operands[0]);
  op.list = decoder.vector(operands[1], static_cast<int>(store.elementBytes));
  store.barrier = AddressOperand::decode(decoder, operands[2]);
  op.handler = storeAsync;
  return store;
}

void decodeAsyncStore(Decoder &decoder, const ptx::Instruction &instruction,
                      Op &op) {
  AsyncStore store = decodeStoreOperands(decoder, instruction, op);
  op.extra = std::make_shared<AsyncStore>(store);
}

void decodeAsyncReduction(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  AsyncStore store = decodeStoreOperands(decoder, instruction, op);
  store.reduction = decodeReduction(decoder, instruction);
  if (op.list.size() != 1 || isFloatType(store.reduction->type))
    decoder.refuse(instruction, "red.async reduces one integer");
  op.extra = std::make_shared<AsyncStore>(store);
}

} // namespace kiln::sim
