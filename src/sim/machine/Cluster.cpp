// Cluster: CTAs and warps taking turns, and the end where nobody can.
#include "sim/machine/Machine.h"
#include "sim/machine/Strategy.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// Instructions a group runs before the next one's turn.
static constexpr int kTurn = 512;
/// Pieces of work that a cluster puts off.
static constexpr std::size_t kMaxPending = 1 << 17;
/// Instructions of a warp for which lanes wait where their paths meet, however
/// much their partners do.
static constexpr std::uint64_t kPatience = 1 << 16;

Cta::Cta(Machine &machine, Cluster &cluster, const Dim3 &index, int rank)
    : shared(machine.staticSharedBytes() + machine.config().dynamicSmemBytes),
      sharedValid(shared.size()), machine_(machine), cluster_(cluster),
      index_(index), rank_(rank) {
  shadow.owner = this;
  const Dim3 &block = machine.config().block;
  int threads = static_cast<int>(block[0] * block[1] * block[2]);
  const Code &code = machine.code();
  std::uint64_t perWarp =
      code.registerBytes + code.registerCount * 2 * sizeof(LaneMask);
  share_.take(perWarp * ((threads + kLanes - 1) / kLanes),
              "the registers of a CTA");
  for (int warp = 0; warp * kLanes < threads; ++warp)
    warps_.push_back(std::make_unique<Warp>(*this, warp, machine.code()));
  cluster.watchers().tell(CtaBegin{*this});
}

std::uint32_t Cta::number() const {
  const Dim3 &grid = machine_.config().grid;
  return index_[0] + grid[0] * (index_[1] + grid[1] * index_[2]);
}

int Cta::sm() const {
  return static_cast<int>(number() % machine_.config().device.sms);
}

std::uint32_t Cta::sharedBytes() const {
  return static_cast<std::uint32_t>(shared.size());
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

Cta *Cta::peer() const {
  int rank = rank_ ^ 1;
  return rank < static_cast<int>(cluster_.size()) ? &cluster_.cta(rank)
                                                  : nullptr;
}

TensorMemory &Cta::tensorMemory() {
  if (!tensorMemory_)
    tensorMemory_ = std::make_unique<TensorMemory>(*this);
  return *tensorMemory_;
}

Cluster::Cluster(Machine &machine, const Dim3 &first, std::uint64_t number,
                 Watcher *checks)
    : quota(machine.config().max_findings), machine_(machine), number_(number) {
  if (checks)
    watchers_.addCheck(*checks);
  const Dim3 &size = machine.config().cluster;
  int rank = 0;
  for (std::uint32_t z = 0; z < size[2]; ++z)
    for (std::uint32_t y = 0; y < size[1]; ++y)
      for (std::uint32_t x = 0; x < size[0]; ++x)
        ctas_.push_back(std::make_unique<Cta>(
            machine, *this, Dim3{first[0] + x, first[1] + y, first[2] + z},
            rank++));
}

std::uint64_t Cluster::draw() {
  if (!random_)
    random_.emplace(machine_.config().seed * 0x9e3779b97f4a7c15 + number_);
  return (*random_)();
}

bool Cluster::isLast(const Warp &warp, LaneMask lanes) const {
  bool isAlone = warp.live() == lanes;
  for (const auto &cta : ctas_)
    for (const auto &other : cta->warps())
      isAlone &= other.get() == &warp || other->isDone();
  return isAlone && std::all_of(pending_.begin(), pending_.end(),
                                [](const auto &work) { return work->isDone; });
}

void Cluster::trigger(Cta &cta) {
  if (cta.hasTriggered)
    return;
  cta.hasTriggered = true;
  if (!machine_.gridControl().isHolding() || !hasTriggered())
    return;
  bool isRandom = machine_.config().interleaving == Interleaving::random;
  isHeld = !isRandom || draw() % 2 == 0;
}

bool Cluster::hasTriggered() const {
  return std::all_of(ctas_.begin(), ctas_.end(), [](const auto &cta) {
    return cta->hasTriggered || cta->isDone();
  });
}

bool Cluster::isDone() const {
  return std::all_of(ctas_.begin(), ctas_.end(),
                     [](const auto &cta) { return cta->isDone(); });
}

void Cluster::leave(Warp &warp, LaneMask lanes) {
  auto &rounds = warp.clusterArrivals.rounds;
  barrierArrived -= countLanes(rounds[barrierGeneration % 2].lanes & lanes);
  for (ClusterArrivals::Round &round : rounds)
    round.lanes &= ~lanes;
  notify();
}

std::shared_ptr<Pending> Cluster::enqueue(std::function<void()> perform) {
  auto work = std::make_shared<Pending>(Pending{std::move(perform)});
  if (machine_.config().interleaving == Interleaving::eager) {
    complete(work);
    return work;
  }
  work->number = ++enqueued_;
  if (pending_.size() >= kMaxPending)
    performOne();
  pending_.push_back(work);
  return work;
}

void Cluster::complete(const std::shared_ptr<Pending> &work) {
  if (work->isDone)
    return;
  work->isDone = true;
  // Who keeps the work does not keep its data.
  std::function<void()> perform = std::move(work->perform);
  try {
    perform();
  } catch (const LeftOut &) {
    // It has told what it thinks of that; the rest of the work goes on.
  }
  notify();
}

bool Cluster::performOne() {
  pending_.eraseIf([](const auto &work) { return work->isDone; });
  if (pending_.empty())
    return false;
  std::size_t which = 0;
  if (machine_.config().interleaving == Interleaving::random)
    which = draw() % pending_.size();
  auto work = pending_[which];
  pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(which));
  complete(work);
  return true;
}

std::uint64_t Cluster::activity() const {
  std::uint64_t sum = epoch;
  for (const auto &cta : ctas_)
    for (const auto &warp : cta->warps())
      sum += warp->effects;
  return sum;
}

/// Give a warp its turn: all its groups where they only spin.
static Progress runWarp(Warp &warp, const WarpTurn &turn) {
  Progress best = Progress::none;
  for (std::size_t i = warp.groups().size(); i > 0; --i) {
    Progress progress = warp.run(turn);
    if (progress == Progress::moved)
      return progress;
    if (progress == Progress::none)
      return best;
    best = progress;
  }
  return best;
}

bool Cluster::step(bool isAlone) {
  bool isRandom = machine_.config().interleaving == Interleaving::random;
  for (;;) {
    bool hasMoved = false;
    for (auto &cta : ctas_) {
      auto &warps = cta->warps();
      std::size_t shift = isRandom ? draw() % warps.size() : 0;
      for (std::size_t i = 0; i < warps.size(); ++i) {
        Warp &warp = *warps[(i + shift) % warps.size()];
        std::uint64_t before = warp.instructions;
        int limit = isRandom ? 1 + int(draw() % 64)
                    : circle ? kTurn - circle->shorter(i)
                             : kTurn;
        // The order of atomics is what CTAs that talk get wrong; and what is
        // found, where lanes that part take turns with other warps.
        WarpTurn turn{.limit = limit,
                      .endsAtAtomics = isRandom && limit % 2 == 0,
                      .endsAtBranches = isRandom || machine_.config().checks};
        hasMoved |= runWarp(warp, turn) == Progress::moved;
        instructions += warp.instructions - before;
        // However long its partners take, a lane gets its turn.
        hasMoved |= warp.breakReconvergence(kPatience);
        if (isRandom && draw() % 4 == 0)
          hasMoved |= performOne();
        if ((isHeld || machine_.isStopping()) && !isDone())
          return true;
      }
    }
    if (isDone()) {
      while (performOne())
        ;
      if (size() > 1)
        watchers_.tell(ClusterEnd{*this});
      return true;
    }
    if (circle && !isRandom)
      if (Warp *warp = circle->turn(*this))
        throw EndlessLoop{*warp, warp->watch()};
    checkLimit();
    if (hasMoved && !isAlone)
      return true;
    if (hasMoved || performOne() || unblock())
      continue;
    return false;
  }
}

void Cluster::checkLimit() const {
  // The limit is a CTA's own; whoever is done has kept it.
  std::uint64_t limit = machine_.config().max_instructions;
  if (limit && instructions / ctas_.size() >= limit)
    throw LimitReached{};
}

void Cluster::addReady(std::vector<Ready> &ready) {
  for (auto &cta : ctas_)
    for (auto &warp : cta->warps())
      for (std::size_t i = 0; i < warp->groups().size(); ++i)
        if (const Group &group = warp->groups()[i];
            !group.isParked && group.blockedEpoch != epoch)
          ready.push_back({Ready::Kind::lanes, this, warp.get(), i});
  pending_.eraseIf([](const auto &work) { return work->isDone; });
  for (std::size_t i = 0; i < pending_.size(); ++i)
    ready.push_back({.kind = Ready::Kind::work,
                     .cluster = this,
                     .work = pending_[i]});
}

void Cluster::go(const Ready &one, const Turn &turn) {
  if (one.kind == Ready::Kind::work) {
    complete(one.work);
  } else {
    std::uint64_t before = one.warp->instructions;
    one.warp->runGroup(one.group, turn.instructions, turn.stops);
    instructions += one.warp->instructions - before;
  }
  if (!isDone())
    return checkLimit();
  pending_.eraseIf([](const auto &work) { return work->isDone; });
  if (pending_.empty() && size() > 1)
    watchers_.tell(ClusterEnd{*this});
}

bool Cluster::unblock() {
  bool hasChanged = false;
  if (waitsForPrimary()) // with their partners, which will come
    return false;
  // Lanes that wait for their partners go on alone; that cannot go on for ever.
  for (auto &cta : ctas_)
    for (auto &warp : cta->warps())
      hasChanged |= warp->breakReconvergence();
  if (hasChanged)
    return true;
  // Lanes that wait for another cluster may come yet.
  if (!waitsForOthers())
    for (auto &cta : ctas_)
      for (auto &warp : cta->warps())
        hasChanged |= warp->checkStrayLanes();
  if (hasChanged)
    return true;
  // Give every wait its time-out, once; if the state of the cluster is then
  // what it was, nobody will ever move.
  if (lastUnblock_ == activity())
    return false;
  lastUnblock_ = activity();
  for (auto &cta : ctas_)
    for (auto &warp : cta->warps()) {
      for (Group &group : warp->groups())
        if (group.wait.kind == WaitReason::Kind::mbarrier)
          group.hasTimedOut = hasChanged = true;
      warp->wake();
    }
  return hasChanged;
}

std::uint64_t Cluster::shadowBytes() const {
  if (!machine_.config().checks)
    return 0;
  std::uint64_t sum = ownChecks ? ownChecks->bytes() : 0;
  for (const auto &cta : ctas_)
    sum +=
        cta->shared.size() / 8 + cta->shadow.cells.bytes() +
        (cta->findTensorMemory() ? cta->findTensorMemory()->shadow.cells.bytes()
                                 : 0) +
        cta->warps().size() * machine_.code().registerCount * sizeof(LaneMask);
  return sum;
}

bool Cluster::waitsForPrimary() const {
  if (machine_.gridControl().isPrimaryOver())
    return false;
  for (const auto &cta : ctas_)
    for (const auto &warp : cta->warps())
      for (const Group &group : warp->groups())
        if (group.wait.kind == WaitReason::Kind::primary)
          return true;
  return false;
}

bool Cluster::waitsForOthers() const {
  if (waitsForPrimary())
    return true;
  for (const auto &cta : ctas_)
    for (const auto &warp : cta->warps())
      for (const Group &group : warp->groups()) {
        if (group.isStuck && warp->watch().readsGlobal())
          return true;
        if (!group.isSpinning || group.isStuck)
          continue;
        for (const Op *op : warp->pollsOf(group)) {
          const Effect &effect = *op->effect;
          if (effect.kind == EffectKind::barrierWait ||
              effect.space == Space::shared)
            continue;
          std::uint64_t address =
              warp->read(effect.address, firstLane(group.lanes)) +
              static_cast<std::uint64_t>(effect.offset);
          // The register may have another value by now.
          if (effect.space == Space::global || isGlobalAddress(address))
            return true;
        }
      }
  return false;
}

} // namespace kiln::sim
