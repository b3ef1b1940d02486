// AsyncCopy: cp.async, the copies of 4 to 16 bytes that each thread starts.
//
// They land when the order of the run says, at the latest where their thread
// waits for its group. Groups are the thread's own.
#include "sim/units/Units.h"
#include "sim/units/copies/Bulk.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

namespace {
/// A decoded cp.async.
struct AsyncCopy {
  AddressOperand destination, source;
  std::uint32_t bytes = 0;
  Reg sourceBytes;   ///< not valid: all of them
  Pred ignoreSource; ///< not valid: never
};
} // namespace

static constexpr std::uint32_t kMaxCount = (1u << 20) - 1;

/// How many bytes of the source a lane copies; the others become zero.
static std::uint32_t bytesToRead(Warp &warp, const Op &op,
                                 const AsyncCopy &copy, int lane) {
  if (copy.ignoreSource.isValid() && (warp.pred(copy.ignoreSource) >> lane & 1))
    return 0;
  if (!copy.sourceBytes.isValid())
    return copy.bytes;
  auto bytes = static_cast<std::uint32_t>(warp.read(copy.sourceBytes, lane));
  if (bytes > copy.bytes)
    warp.machine().findings().fault(
        FindingId::asyncCopySize, warp, op, LaneMask(1) << lane,
        fmt::format("cp.async takes {} bytes of its source and writes {}; the "
                    "source has at most as many",
                    bytes, copy.bytes));
  return bytes;
}

static Step copyAsync(Warp &warp, const Op &op, LaneMask active) {
  const auto &copy = *static_cast<const AsyncCopy *>(op.extra.get());
  Accessor accessor(warp, op, "an asynchronous copy");
  warp.watchers().tell(AsyncBegin{warp});
  forEachLane(active, [&](int lane) {
    std::uint32_t taken = bytesToRead(warp, op, copy, lane);
    SharedRange range =
        sharedRange(warp, op, copy.destination, copy.bytes, copy.bytes, lane);
    tellCopy(warp, op, lane, {Completion::By::copyGroup}, range.owner,
             {range.address - kFirstSharedAddress, copy.bytes},
             {.isWrite = true, .isThroughProxy = false});
    ByteRange to = range.in(*range.owner), from;
    // An address that is not read may be anything.
    if (taken)
      from = accessor.locateGlobal(copy.source.read(warp, op, lane), taken,
                                   copy.bytes, lane, false);
    if (taken && warp.watchers().wants(EventKind::access))
      tellCopy(warp, op, lane, {Completion::By::copyGroup}, nullptr,
               {copy.source.read(warp, op, lane), taken},
               {.isThroughProxy = false});
    std::uint32_t zeros = copy.bytes - taken;
    auto work =
        warp.cta().cluster().enqueue([&warp, &op, to, from, taken, zeros] {
          if (taken)
            copyBytes(warp, op, to, from, taken);
          if (!zeros)
            return;
          std::memset(to.data + taken, 0, zeros);
          to.behind(taken).markWritten(zeros);
        });
    work->op = &op;
    addToGroup(warp.cta().cluster(), warp.asyncCopies[lane], std::move(work));
  });
  return Step::next;
}

static void tellGroup(Warp &warp, CopyGroup::What what, int lane,
                      std::size_t keep = 0) {
  warp.watchers().tell(CopyGroup{what, warp, lane, /*isBulk=*/false, keep});
}

static Step commitAsync(Warp &warp, const Op &, LaneMask active) {
  forEachLane(active, [&](int lane) {
    commitGroup(warp.cta().cluster(), warp.asyncCopies[lane]);
    tellGroup(warp, CopyGroup::What::commit, lane);
  });
  return Step::next;
}

static Step waitGroup(Warp &warp, const Op &op, LaneMask active) {
  forEachLane(active, [&](int lane) {
    auto keep = static_cast<std::size_t>(op.imm);
    waitGroups(warp.cta().cluster(), warp.asyncCopies[lane], keep);
    tellGroup(warp, CopyGroup::What::wait, lane, keep);
  });
  return Step::next;
}

static Step waitAll(Warp &warp, const Op &, LaneMask active) {
  forEachLane(active, [&](int lane) {
    commitGroup(warp.cta().cluster(), warp.asyncCopies[lane]);
    waitGroups(warp.cta().cluster(), warp.asyncCopies[lane], 0);
    tellGroup(warp, CopyGroup::What::commit, lane);
    tellGroup(warp, CopyGroup::What::wait, lane);
  });
  return Step::next;
}

/// The copies of a thread that are not done; an mbarrier will tell of them.
static std::vector<std::shared_ptr<Pending>>
copiesInFlight(const BulkGroups &groups) {
  std::vector<std::shared_ptr<Pending>> works;
  auto take = [&](const std::vector<std::shared_ptr<Pending>> &group) {
    for (const auto &work : group) {
      work->isAwaited = true;
      if (!work->isDone)
        works.push_back(work);
    }
  };
  for (const auto &group : groups.committed)
    take(group);
  take(groups.open);
  return works;
}

/// The mbarrier at an address; ends the launch where there is none.
static MbarrierState &barrierAt(Warp &warp, const Op &op, int lane,
                                const SharedRange &range) {
  auto found = range.owner->mbarriers.find(range.address);
  if (found == range.owner->mbarriers.end())
    warp.machine().findings().fault(
        FindingId::mbarrierUninitialized, warp, op, LaneMask(1) << lane,
        fmt::format("there is no initialised mbarrier at {}",
                    warp.machine().findings().describeShared(range.address)));
  return found->second;
}

/// The copies that a lane issued up to that time are complete.
static void arriveOnce(Warp &warp, const Op &op, int lane,
                       const SharedRange &range, std::uint32_t issuedUpTo) {
  MbarrierState &barrier = barrierAt(warp, op, lane, range);
  warp.watchers().tell(CopyArrival{warp, lane, barrier, issuedUpTo});
  if (barrier.pending == 0)
    warp.machine().findings().fault(
        FindingId::mbarrierOverArrival, warp, op, LaneMask(1) << lane,
        fmt::format("an arrival of cp.async at the mbarrier at {}, "
                    "which waits for 0 of {} in phase {}",
                    warp.machine().findings().describeShared(range.address),
                    barrier.expected, barrier.phase));
  --barrier.pending;
  barrier.note(op);
  settlePhase(barrier, warp.cta().cluster());
}

/// Arrive when the copies of each lane so far are done. Flags: .noinc.
static Step arrive(Warp &warp, const Op &op, LaneMask active) {
  Cluster &cluster = warp.cta().cluster();
  AddressOperand operand{op.src[0], op.imm};
  forEachLane(active, [&](int lane) {
    SharedRange range = sharedRange(warp, op, operand, 8, 8, lane);
    MbarrierState &barrier = barrierAt(warp, op, lane, range);
    bool isCounted = op.flags != 0;
    if (!isCounted && ++barrier.pending > kMaxCount)
      warp.machine().findings().fault(
          FindingId::mbarrierCount, warp, op, LaneMask(1) << lane,
          fmt::format("cp.async adds an arrival to the {} that the mbarrier at "
                      "{} waits for; at most {} are possible",
                      barrier.pending - 1,
                      warp.machine().findings().describeShared(range.address),
                      kMaxCount));
    warp.watchers().tell(MbarrierEvent{MbarrierEvent::What::use, warp, op,
                                       LaneMask(1) << lane, *range.owner,
                                       range.address});
    cluster.enqueue([&warp, &op, lane, range, &cluster, now = warp.clock.now,
                     works = copiesInFlight(warp.asyncCopies[lane])] {
      for (const auto &work : works)
        cluster.complete(work);
      arriveOnce(warp, op, lane, range, now);
    });
  });
  return Step::next;
}

/// What follows the size: a number of bytes or a predicate, and a policy.
static void decodeSource(Decoder &decoder, const ptx::Instruction &instruction,
                         AsyncCopy &copy) {
  std::size_t last = instruction.operands.size();
  if (instruction.has("L2::cache_hint"))
    --last;
  if (last < 4)
    return;
  const ptx::Operand &operand = instruction.operands[3];
  bool isPredicate = operand.kind == ptx::Operand::Kind::reg &&
                     decoder.predOfRegister(operand.reg).isValid();
  if (isPredicate)
    copy.ignoreSource = decoder.pred(operand);
  else
    copy.sourceBytes = decoder.reg(operand, 4);
}

static void decodeCpAsync(Decoder &decoder, const ptx::Instruction &instruction,
                          Op &op) {
  AsyncCopy copy;
  auto bytes = static_cast<std::int64_t>(instruction.operands[2].bits);
  bool isKnown = instruction.has("cg")
                     ? bytes == 16
                     : bytes == 4 || bytes == 8 || bytes == 16;
  if (!isKnown)
    decoder.refuse(instruction,
                   fmt::format("{} bytes; cp.async.ca copies 4, 8 or 16 and "
                               "cp.async.cg 16",
                               bytes));
  copy.bytes = static_cast<std::uint32_t>(bytes);
  copy.destination = AddressOperand::decode(decoder, instruction.operands[0]);
  copy.source = AddressOperand::decode(decoder, instruction.operands[1]);
  decodeSource(decoder, instruction, copy);
  op.extra = std::make_shared<AsyncCopy>(copy);
  op.handler = copyAsync;
}

void decodeAsyncCopy(Decoder &decoder, const ptx::Instruction &instruction,
                     Op &op) {
  if (instruction.has("commit_group")) {
    op.handler = commitAsync;
  } else if (instruction.has("wait_group")) {
    op.imm = static_cast<std::int64_t>(instruction.operands[0].bits);
    op.handler = waitGroup;
  } else if (instruction.has("wait_all")) {
    op.handler = waitAll;
  } else if (instruction.has("mbarrier")) {
    op.src[0] = decoder.address(instruction.operands[0], op.imm);
    op.flags = instruction.has("noinc");
    op.handler = arrive;
  } else {
    decodeCpAsync(decoder, instruction, op);
  }
}

} // namespace kiln::sim
