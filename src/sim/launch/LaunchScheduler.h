// LaunchScheduler: the host threads that run the clusters of a launch.
//
// Clusters that do not talk to each other run free, each on one thread from its
// beginning to its end; clusters that do are run by one thread, as many as the
// device holds, in turns. Either way what came of them is taken in the order of
// their numbers, so that one seed gives one report whatever the number of
// threads: the findings and the text of a cluster wait until all before it are
// done, and the first cluster with an error ends the launch.
#pragma once

#include "sim/checks/LaunchChecks.h"
#include "sim/checks/LaunchRaces.h"
#include "sim/machine/Machine.h"
#include "sim/machine/Strategy.h"
#include "sim/profile/LaunchProfiler.h"
#include "sim/report/LaunchObserver.h"

#include <condition_variable>
#include <deque>
#include <set>

namespace kiln::sim {

class LaunchScheduler {
public:
  explicit LaunchScheduler(Machine &machine);

  /// Run: true at the end of the launch, false where nothing moves and somebody
  /// outside may yet help (LaunchConfig::isAlone), or another launch is to
  /// begin or to end first (GridControl).
  bool advance();
  /// Every CTA has let dependent launches begin, or has ended.
  bool hasTriggered() const;
  /// All launches ahead of this one have ended.
  void endPrimary();
  /// Those that stopped at their triggers go on.
  void letGo();
  /// This launch may have overlapped that one, which has ended.
  void addEarlier(LaunchScheduler &earlier) {
    earlier_.push_back(&earlier.races_);
  }
  /// What came of it, after its end.
  LaunchResult result();
  /// Grows whenever a cluster has moved.
  std::uint64_t moves() const { return steps_; }

private:
  /// What came of one cluster.
  struct Outcome {
    std::uint64_t instructions = 0;
    std::vector<Finding> findings;
    std::string printed;
    CostCount cost;
    std::vector<kiln::Timeline::Event> events;
    ClusterDetail detail;
    std::optional<Finding> fault;
    std::unique_ptr<Watcher> checks; ///< where it has its own
    std::unique_ptr<Watcher> profiler;
    FindingQuota quota{0};           ///< what it has left out
  };
  using Mine = std::vector<std::unique_ptr<Cluster>>;

  void work();
  /// One turn for each; false where nothing moved.
  bool stepAll(Mine &mine);
  /// The same where a strategy chooses (LaunchChoices.cpp): one turn of one.
  bool stepChosen(Mine &mine);
  /// Nobody was chosen: let go who is stuck; false where nothing moves.
  bool stepStuck(Mine &mine);
  /// Begin the next cluster, or go on with one that was put aside; false where
  /// there is none.
  bool take(Mine &mine);
  bool takeAside(Mine &mine);
  bool hasMore() const { return next_ < count_ && next_ <= lastWanted_; }
  /// The first CTA of a cluster.
  Dim3 firstCtaOf(std::uint64_t number) const;
  /// The last cluster, where it has not begun, never does.
  std::optional<Dim3> cancelLast();
  void finish(Mine &mine, std::size_t index, std::optional<Finding> fault);
  Outcome outcomeOf(Cluster &cluster, bool hasFault = false);
  /// What a report page shows of the cluster.
  ClusterDetail detailOf(Cluster &cluster, const Outcome &outcome,
                         bool hasFault);
  RaceDetector *racesOf(Cluster &cluster);
  /// Let a cluster run; true where it has moved. Throws Fault.
  bool step(Cluster &cluster, bool isAlone);
  /// Let one of what is ready go. Throws Fault.
  void go(const Ready &one, const Turn &turn);
  /// The launch was stopped: take what there is of every cluster.
  void concludeStopped();
  /// All clusters wait: sleep until another thread has moved; where none will,
  /// end the launch. True: they are to be put aside.
  bool waitForOthers(Mine &mine, std::uint64_t seen);
  /// Nothing moved, and some clusters are held or wait for the launch ahead.
  enum class AfterHeld : std::uint8_t { wait, goOn, leave };
  AfterHeld settleHeld(Mine &mine);
  void runThreads();
  void print(Cluster &cluster, const std::string &text);
  void emit(const std::string &text);
  void retire(std::uint64_t number, Outcome outcome);
  void absorb(Outcome &outcome);
  void moved();

  Machine &machine_;
  const LaunchConfig &config_;
  Dim3 clusters_{};
  std::uint64_t count_ = 1, perCluster_ = 1, resident_ = 1;
  bool isTalking_;
  std::vector<Ready> ready_; ///< for a strategy
  std::size_t limit_ = 1; ///< clusters one thread may have begun
  std::atomic<std::uint64_t> next_{0};

  std::mutex mutex_;
  std::condition_variable hasMoved_;
  std::uint64_t moves_ = 0; ///< with those that only wake others
  std::uint64_t steps_ = 0;
  int threads_ = 1, idle_ = 0;
  std::vector<Cluster *> stuck_;
  Mine stopped_; ///< under way when the launch was stopped
  Mine aside_;   ///< under way when their thread left
  std::deque<std::unique_ptr<Cluster>> resumed_; ///< of those; go on now
  std::atomic<bool> hasResumed_{false};
  std::vector<LaunchRaces *> earlier_;
  double timeUs_ = 0;
  std::uint64_t ticks_ = 0;
  std::exception_ptr failure_;
  std::uint64_t retired_ = 0; ///< all clusters below are done
  std::map<std::uint64_t, Outcome> waiting_;
  std::uint64_t shadowPeak_ = 0;         ///< of one cluster
  std::unique_ptr<LaunchChecks> commonChecks_; ///< of clusters that talk
  LaunchRaces races_;
  std::unique_ptr<LaunchProfiler> profiler_; ///< null: nobody asks for it
  FindingQuota leftOut_{0};

  /// Clusters behind this one need not be run: it ends the launch.
  std::atomic<std::uint64_t> lastWanted_{~std::uint64_t(0)};
  LaunchResult result_;
  CostCount cost_;
  ClusterDetail detail_;
  bool hasEnded_ = false;
};

} // namespace kiln::sim
