// Cluster: CTAs and warps taking turns, and the end where nobody can.
#include "sim/Machine.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

/// Instructions a group runs before the next one's turn.
static constexpr int kTurn = 512;

Cta::Cta(Machine &machine, Cluster &cluster, const Dim3 &index, int rank)
    : shared(machine.staticSharedBytes() + machine.config().dynamicSmemBytes),
      sharedValid(shared.size()), readers(shared.size() / 16 + 1),
      machine_(machine), cluster_(cluster), index_(index), rank_(rank) {
  const Dim3 &block = machine.config().block;
  int threads = static_cast<int>(block[0] * block[1] * block[2]);
  for (int warp = 0; warp * kLanes < threads; ++warp)
    warps_.push_back(std::make_unique<Warp>(*this, warp, machine.code()));
}

int Cta::sm() const {
  const Dim3 &grid = machine_.config().grid;
  std::uint64_t linear =
      index_[0] +
      std::uint64_t(grid[0]) * (index_[1] + std::uint64_t(grid[1]) * index_[2]);
  return static_cast<int>(linear % machine_.config().device.sms);
}

std::uint32_t Cta::sharedBytes() const {
  return static_cast<std::uint32_t>(shared.size());
}

const Op *Cta::readerOf(std::size_t offset, std::size_t bytes) const {
  for (std::size_t chunk = offset / 16; chunk * 16 < offset + bytes; ++chunk)
    if (readers[chunk].count)
      return readers[chunk].last;
  return nullptr;
}

std::uint32_t Cta::liveThreads() const {
  std::uint32_t count = 0;
  for (const auto &warp : warps_)
    count += countLanes(warp->live());
  return count;
}

bool Cta::isDone() const {
  return std::all_of(warps_.begin(), warps_.end(),
                     [](const auto &warp) { return warp->isDone(); });
}

Cluster::Cluster(Machine &machine, const Dim3 &first, std::uint64_t number)
    : machine_(machine),
      random_(machine.config().seed * 0x9e3779b97f4a7c15 + number) {
  const Dim3 &size = machine.config().cluster;
  int rank = 0;
  for (std::uint32_t z = 0; z < size[2]; ++z)
    for (std::uint32_t y = 0; y < size[1]; ++y)
      for (std::uint32_t x = 0; x < size[0]; ++x)
        ctas_.push_back(std::make_unique<Cta>(
            machine, *this, Dim3{first[0] + x, first[1] + y, first[2] + z},
            rank++));
}

bool Cluster::isDone() const {
  return std::all_of(ctas_.begin(), ctas_.end(),
                     [](const auto &cta) { return cta->isDone(); });
}

std::shared_ptr<Pending> Cluster::enqueue(std::function<void()> perform) {
  auto work = std::make_shared<Pending>(Pending{std::move(perform)});
  if (machine_.config().order == Order::eager)
    complete(work);
  else
    pending_.push_back(work);
  return work;
}

void Cluster::complete(const std::shared_ptr<Pending> &work) {
  if (work->isDone)
    return;
  work->isDone = true;
  work->perform();
  notify();
}

/// Do one piece of pending work: the oldest, or any at random.
bool Cluster::performOne() {
  std::erase_if(pending_, [](const auto &work) { return work->isDone; });
  if (pending_.empty())
    return false;
  std::size_t which = 0;
  if (machine_.config().order == Order::random)
    which = random_() % pending_.size();
  auto work = pending_[which];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
  complete(work);
  return true;
}

bool Cluster::step(bool isAlone) {
  bool isRandom = machine_.config().order == Order::random;
  for (;;) {
    bool hasRun = false;
    for (auto &cta : ctas_) {
      auto &warps = cta->warps();
      std::size_t shift = isRandom ? random_() % warps.size() : 0;
      for (std::size_t i = 0; i < warps.size(); ++i) {
        Warp &warp = *warps[(i + shift) % warps.size()];
        std::uint64_t before = warp.instructions;
        hasRun |= warp.run(isRandom ? 1 + int(random_() % 64) : kTurn);
        instructions += warp.instructions - before;
        if (isRandom && random_() % 4 == 0)
          performOne();
      }
    }
    std::uint64_t limit = machine_.config().maxInstructions;
    if (limit && instructions > limit)
      throw Fault{{.id = "instruction-limit",
                   .message = fmt::format(
                       "CTA ({}, {}, {}) has executed {} warp instructions and "
                       "is not done; the limit is {} (--max-instructions)",
                       ctas_[0]->index()[0], ctas_[0]->index()[1],
                       ctas_[0]->index()[2], instructions, limit)}};
    if (isDone()) {
      while (performOne())
        ;
      return true;
    }
    if (hasRun) {
      if (!isAlone)
        return true;
      continue;
    }
    if (performOne() || unblock())
      continue;
    if (!isAlone)
      return false;
    reportDeadlock();
  }
}

bool Cluster::unblock() {
  if (lastUnblockEpoch_ == epoch)
    return false;
  // Give every wait its time-out and every parked lane its way, once; if the
  // state of the cluster is then what it was, nobody will ever move.
  bool hasChanged = false;
  for (auto &cta : ctas_)
    for (auto &warp : cta->warps()) {
      hasChanged |= warp->breakMeeting();
      for (Group &group : warp->groups())
        if (group.wait.kind == WaitReason::Kind::mbarrier)
          group.hasTimedOut = hasChanged = true;
      warp->wake();
    }
  lastUnblockEpoch_ = epoch;
  return hasChanged;
}

/// One line of the ledger: who waits for what.
static std::string describe(const Cta &cta, const Warp &warp,
                            const Group &group, const Machine &machine) {
  const Op &op = warp.code().ops[group.pc];
  SourceLine line = machine.sourceLine(*op.origin);
  std::string what;
  switch (group.wait.kind) {
  case WaitReason::Kind::mbarrier: {
    auto address = static_cast<std::uint32_t>(group.wait.object);
    auto found = cta.mbarriers.find(address);
    what = fmt::format("the mbarrier at shared address {}, phase of parity {}",
                       address, group.wait.detail);
    if (found != cta.mbarriers.end())
      what += fmt::format(": {} of {} arrivals and {} bytes are missing, {} "
                          "phases are complete",
                          found->second.pending, found->second.expected,
                          found->second.txCount, found->second.phase);
    break;
  }
  case WaitReason::Kind::ctaBarrier: {
    const CtaBarrier &barrier = cta.barriers[group.wait.object];
    what = fmt::format("barrier {}: {} of {} threads have arrived",
                       group.wait.object, barrier.arrived, barrier.expected);
    break;
  }
  case WaitReason::Kind::clusterBarrier:
    what = "the cluster barrier";
    break;
  case WaitReason::Kind::registers:
    what = fmt::format("setmaxnreg {}: {} registers are free in the CTA",
                       group.wait.detail, cta.registerPool);
    break;
  case WaitReason::Kind::lanes:
    what = "other lanes of its warp";
    break;
  case WaitReason::Kind::wgmma:
    what = "a wgmma that not all four warps have issued";
    break;
  default:
    what = "nothing that is known";
  }
  return fmt::format("\n  CTA ({}, {}, {}), threads {} to {}: {} at {}:{}",
                     cta.index()[0], cta.index()[1], cta.index()[2],
                     warp.thread(firstLane(group.lanes)),
                     warp.thread(31 - std::countl_zero(group.lanes)), what,
                     line.file, line.line);
}

void Cluster::reportDeadlock() {
  std::string ledger;
  Finding finding{.id = "deadlock"};
  for (auto &cta : ctas_)
    for (auto &warp : cta->warps())
      for (Group &group : warp->groups()) {
        const Op &op = warp->code().ops[group.pc];
        if (!finding.where.is_known()) {
          finding.where = machine_.sourceLine(*op.origin);
          finding.ptx_line = op.origin->line;
        }
        ledger += describe(*cta, *warp, group, machine_);
      }
  finding.message = "deadlock: everyone who is left waits:" + ledger;
  throw Fault{finding};
}

} // namespace kiln::sim
