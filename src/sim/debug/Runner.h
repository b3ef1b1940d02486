// Runner: the process that simulates for the debugger.
//
// It watches every cluster and counts warp instructions, which is the time.
// When something stops the launch it answers questions about the machine,
// inside of the callback, until it is told to go on. From time to time it
// forks: the copy waits, as a checkpoint, until somebody wants to be at its
// time again; then it forks in turn, and that copy is the runner. Simulation is
// deterministic, so that the same things happen at the same times whoever
// executes them.
#pragma once

#include "sim/debug/Channel.h"
#include "sim/debug/Stops.h"

#include <chrono>
#include <mutex>

namespace kiln::sim {

/// A cluster that is under way.
struct SeenCluster {
  Cluster *cluster;
  RaceDetector *races;      ///< null: nothing is checked
  std::size_t *racesTold;   ///< of its findings, so many have been told
  std::size_t findings = 0; ///< likewise, of the cluster's own

  bool hasNews() const {
    return findings != cluster->findings.size() ||
           (races && *racesTold != races->findings().size());
  }
};

class Runner final : public Spectator, public Watcher {
public:
  Runner(Channel channel, const Places &places)
      : channel_(std::move(channel)), places_(places) {}

  /// The device's, which launches hold.
  void setMutex(std::recursive_mutex &mutex) { mutex_ = &mutex; }
  /// Before the first launch: wait to be forked, as a checkpoint does. Returns
  /// in the process that runs.
  void waitAsCheckpoint();
  /// The next launch is number `index` of the job.
  void beginLaunch(std::size_t index, const std::string &kernel);
  void endLaunch(const LaunchResult &result);
  /// All launches have ended: answer what can be answered then.
  [[noreturn]] void serveForEver();
  /// What could not be gone on with.
  [[noreturn]] void fail(const std::string &message);
  /// Text from the kernel.
  void print(const std::string &text);

  void begin(Cluster &cluster, RaceDetector *races) override;
  void end(Cluster &cluster) override;
  void ending(const Finding &finding) override;

  EventMask interests() const override;
  using Watcher::on;
  void on(const LanesEnd &event) override;
  void on(const InstructionBegin &event) override;
  void on(const InstructionSkip &event) override;
  void on(const InstructionEnd &event) override;
  void on(const ThreadAccess &event) override;
  void on(const AsyncAccess &event) override;
  void on(const MbarrierPhase &event) override;

  // For those who answer (Looks).
  const std::vector<SeenCluster> &clusters() const { return clusters_; }
  const Places &places() const { return places_; }
  std::uint64_t time() const { return time_; }
  bool hasEnded() const { return hasEnded_; }
  std::size_t launch() const { return launch_; }
  const std::string &kernel() const { return kernel_; }
  const std::vector<nlohmann::json> &findings() const { return found_; }
  /// The thread that executes the next instruction, where there is one.
  const std::optional<ThreadName> &next() const { return next_; }
  /// "producer", where the warp has copied tiles; empty: nobody knows.
  std::string roleOf(const Warp &warp) const;

private:
  using Clock = std::chrono::steady_clock;
  using Json = nlohmann::json;

  void tick(Warp &warp, const Op &op, LaneMask lanes, bool isSkipped);
  /// Every few thousand instructions: is anybody there, is it time for a copy?
  void breathe();
  void makeCheckpoint();
  /// A copy's thread has another number than the one that it is a copy of, by
  /// which the mutex knows its owner.
  void takeMutex();
  void checkFindings(SeenCluster &seen);
  SeenCluster &seenOf(Cluster &cluster);
  /// Stop, or remember, what is in `hits_`; and where time is up, unless the
  /// next instruction is to see to that.
  void settle(bool hasTime = true);
  /// Tell that it stands still, and answer until it is told to run.
  void stop(Json reason);
  void serve();
  void configure(const Json &request);
  /// Answer in a copy: a question changes nothing of what it is about, and what
  /// goes wrong in it is gone with the copy.
  void lookAside(const Json &request);
  void noteRole(const Warp &warp, const Op &op);

  Channel channel_;
  std::recursive_mutex *mutex_ = nullptr;
  const Places &places_;
  std::vector<SeenCluster> clusters_;
  std::map<RaceDetector *, std::size_t> racesTold_;
  std::vector<Json> found_;
  std::uint64_t time_ = 0, quietUntil_ = 0;
  std::size_t launch_ = 0;
  std::string kernel_;
  bool hasEnded_ = false;
  std::optional<ThreadName> next_;

  // The instruction that is executed; null: between two.
  const Warp *insideWarp_ = nullptr;
  const Op *insideOp_ = nullptr;

  std::size_t lastSeen_ = 0; ///< the cluster of the last instruction

  // The request that it runs for.
  unsigned generation_ = 0; ///< how many there were
  Stops stops_;
  std::optional<std::uint64_t> until_;
  bool isRecording_ = false;
  std::size_t keep_ = 1; ///< hits
  std::deque<Hit> hits_, kept_;
  std::vector<std::uint64_t> known_; ///< times of checkpoints, ahead of here
  std::size_t nextKnown_ = 0;
  double intervalMs_ = 0; ///< between checkpoints; 0: none
  Clock::time_point lastCheckpoint_ = Clock::now();
  unsigned ticks_ = 0;
  std::map<std::pair<Dim3, int>, unsigned> roles_; ///< by CTA and warp
};

} // namespace kiln::sim
