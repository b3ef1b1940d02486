// Cluster: CTAs that take turns, and work in flight.
//
// Inside a cluster warps take turns; copies and matrix products are pieces of
// work of their own (Pending) that are done at a moment the order chooses: at
// once, as late as possible, or at random from a seed. A correct kernel gives
// one answer under all of them.
#pragma once

#include "kiln/run/device.h"
#include "sim/findings/FindingId.h"
#include "sim/machine/Circle.h"
#include "sim/machine/Cta.h"
#include "sim/machine/FindingQuota.h"
#include "sim/machine/events/Watchers.h"
#include "support/AddressTable.h"

#include <map>
#include <optional>
#include <random>

namespace kiln::sim {

struct Ready;
struct Turn;

/// Work in flight: done once, by the cluster's thread.
struct Pending {
  std::function<void()> perform;
  bool isDone = false;
  /// The part that must be done first; null where there is none.
  std::shared_ptr<Pending> reading = nullptr;
  const Op *op = nullptr; ///< of a thread's copy
  bool isAwaited = false; ///< somebody will know when its sources are free
  std::uint64_t number = 0; ///< of the cluster's, in the order of their issue
};

/// Who wrote a flag last: an ordered store or an atomic.
struct LastWriter {
  const Op *op = nullptr;
  Dim3 cta{};
  int thread = 0;
};

/// The last writers of flags, for the deadlock's ledger. Clusters that talk to
/// each other are run by one thread, and share it; others have their own.
class LastWriters {
public:
  void note(const Warp &warp, const Op &op, const void *data, int lane) {
    writers_[reinterpret_cast<std::uint64_t>(data)] = {
        &op, warp.cta().index(), warp.thread(lane)};
  }
  const LastWriter *find(const void *data) const {
    return writers_.find(reinterpret_cast<std::uint64_t>(data));
  }

private:
  AddressTable<LastWriter> writers_; ///< by their first byte
};

/// Thrown where a cluster has executed more than it may.
struct LimitReached {};

/// Thrown where the loop that a warp's current group is in repeats itself, and
/// reads nothing that could change.
struct EndlessLoop {
  Warp &warp;
  const LoopWatch &loop;
};

/// CTAs that can reach each other's shared memory; one if there is no cluster.
class Cluster : public Recycled {
public:
  /// `checks`: null where nothing is checked.
  Cluster(Machine &machine, const Dim3 &first, std::uint64_t number,
          Watcher *checks = nullptr);

  /// Run: to its end or until nothing moves where it is alone, else until it
  /// has had its turn. False where nothing moved. Throws Fault, LimitReached
  /// and EndlessLoop.
  bool step(bool isAlone);
  bool isDone() const;
  // Where a strategy chooses (Strategy.h).
  /// Add what of it is ready to a list.
  void addReady(std::vector<Ready> &ready);
  /// Let one of those go; it is over where isDone() and nothing is in flight.
  /// Throws as step() does.
  void go(const Ready &one, const Turn &turn);
  /// Nothing can run: let waits time out and parked lanes go. False where
  /// that has been tried and nothing came of it.
  bool unblock();
  bool hasWork() const { return !pending_.empty(); }
  /// Nobody else is left in it, and nothing is in flight.
  bool isLast(const Warp &warp, LaneMask lanes) const;
  /// A CTA lets dependent launches begin.
  void trigger(Cta &cta);
  /// Every CTA has, or has ended.
  bool hasTriggered() const;
  /// Whether some lanes wait for the end of the launch ahead of this one.
  bool waitsForPrimary() const;
  /// Whether some lanes wait for it, or spin on global memory, which another
  /// cluster may write.
  bool waitsForOthers() const;
  std::uint64_t number() const { return number_; }
  const Watchers &watchers() const { return watchers_; }
  Watchers &watchers() { return watchers_; }
  /// Memory of the host that is there for the checks alone.
  std::uint64_t shadowBytes() const;

  Cta &cta(int rank) { return *ctas_[rank]; }
  std::size_t size() const { return ctas_.size(); }
  Machine &machine() const { return machine_; }

  /// Something has changed that a waiting group may be waiting for.
  void notify() { ++epoch; }
  /// Lanes leave the kernel: the barriers no longer count on them.
  void leave(Warp &warp, LaneMask lanes);
  /// Work that happens later; with the eager order it happens now.
  std::shared_ptr<Pending> enqueue(std::function<void()> perform);
  /// Do it now, if it has not been done.
  void complete(const std::shared_ptr<Pending> &work);
  /// Do one piece of pending work: the oldest, or any at random. False: there
  /// is none.
  bool performOne();

  /// It stops behind its triggers until a dependent launch has overtaken it.
  bool isHeld = false;
  std::uint64_t epoch = 1;
  /// Of warps that go round together; null: no loop repeats itself while others
  /// see something of it.
  std::unique_ptr<Circle> circle;
  /// Threads that have arrived and not left, and completed rounds.
  std::uint32_t barrierArrived = 0, barrierGeneration = 0;
  std::shared_ptr<SyncPoint> barrierRound;
  std::uint64_t instructions = 0;
  RecentRegions recentRegions;
  LastWriters &lastWriters() {
    return sharedWriters ? *sharedWriters : ownWriters_;
  }
  LastWriters *sharedWriters = nullptr; ///< null: it talks to no other cluster
  std::vector<Finding> findings; ///< that did not end it
  FindingQuota quota;            ///< of those
  /// Which of them is of an id and an instruction: modules that are linked have
  /// the same lines.
  std::map<std::pair<FindingId, const ptx::Instruction *>, std::size_t> told;
  /// Instructions that have read bytes nobody wrote, and the first such bytes,
  /// in words; the first of the list is none.
  struct Origin {
    const Op *op = nullptr;
    std::string bytes;
  };
  class Origins {
  public:
    std::size_t size() const { return list_.size() + 1; }
    const Origin &operator[](std::size_t i) const {
      return i ? list_[i - 1] : none_;
    }
    void push_back(Origin origin) { list_.push_back(std::move(origin)); }

  private:
    Origin none_;
    std::vector<Origin> list_;
  } origins;
  std::map<const Op *, std::uint32_t> originOf;
  /// The number of an instruction's; `describe` is asked once.
  template <typename Describe>
  std::uint32_t noteOrigin(const Op &op, Describe &&describe) {
    auto [known, isNew] =
        originOf.try_emplace(&op, static_cast<std::uint32_t>(origins.size()));
    if (isNew)
      origins.push_back({&op, describe()});
    return known->second;
  }
  /// Stores of values that depend on bytes nobody wrote: the last one of four
  /// bytes, and where its value was first read. Of global memory so many are
  /// kept that a report needs.
  struct UnwrittenStore {
    static constexpr std::size_t kBytes = 4, kMostGlobal = 1 << 16;
    const Op *op = nullptr;
    std::uint32_t origin = 0;
  };
  std::map<std::pair<const ValidBits *, std::size_t>, UnwrittenStore>
      unwrittenStores; ///< by memory and the number of the four bytes
  std::string printed; ///< and not shown yet
  /// Checks of its own, where it cannot talk to others.
  std::unique_ptr<Watcher> ownChecks;
  /// Who counts or draws; null: nobody asked for that.
  std::unique_ptr<Watcher> observer;
  /// Who counts what instructions cost; null: nobody asked for that.
  std::unique_ptr<Watcher> profiler;

private:
  /// The next number of its seed.
  std::uint64_t draw();
  /// Effects of instructions and of asynchronous work so far.
  std::uint64_t activity() const;
  /// Throws LimitReached where its CTAs have executed more than they may.
  void checkLimit() const;

  Machine &machine_;
  LastWriters ownWriters_;
  Watchers watchers_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  Queue<std::shared_ptr<Pending>> pending_;
  std::optional<std::mt19937_64> random_; ///< made when it is asked
  std::uint64_t lastUnblock_ = 0;         ///< activity() then
  std::uint64_t enqueued_ = 0;            ///< pieces of work so far
};

} // namespace kiln::sim
