// Session: one job that is debugged: its processes, where it stands, and how it
// gets to another time.
//
// It holds no state of the machine: it asks a process that has it. That process
// runs forwards alone. For an earlier time a checkpoint before it is forked,
// and what happened last before now is found by running from checkpoint to
// checkpoint, the last ones first, with what is asked for as a stop that is
// only remembered.
#pragma once

#include "kiln/debug/debugger.h"
#include "sim/debug/Channel.h"
#include "sim/debug/Places.h"
#include "sim/debug/Stops.h"
#include "sim/launch/SimModule.h"

#include <atomic>

namespace kiln::sim {

class DebugSession {
public:
  using Json = nlohmann::json;

  DebugSession(LaunchJob job, const DebugOptions &options);
  ~DebugSession();
  DebugSession(const DebugSession &) = delete;
  DebugSession &operator=(const DebugSession &) = delete;

  void interrupt() noexcept { isInterrupted_ = true; }
  void beginRequest() { isInterrupted_ = false; }

  // Moves; each returns the stop: {"reason", "position"}.
  Json start(const Json &arguments);
  Json resume(const Json &arguments);
  Json step(const Json &arguments, StepRequest::Kind kind);
  Json reverseStep(const Json &arguments, StepRequest::Kind kind);
  Json reverseContinue(const Json &arguments);
  Json goTo(const Json &arguments);

  // Stops.
  Json addBreakpoint(const Json &arguments);
  Json addWatch(const Json &arguments);
  Json addPhase(const Json &arguments);
  Json setFindings(const Json &arguments);
  Json remove(const Json &arguments);
  Json listStops(const Json &arguments);

  // Questions about the past.
  Json whoWrote(const Json &arguments);
  Json whoCompleted(const Json &arguments);
  Json whenDiverged(const Json &arguments);

  // Looks.
  Json focus(const Json &arguments);
  Json ask(const char *what, Json arguments);
  Json listing(const Json &arguments);
  Json source(const Json &arguments);
  Json checkpoints(const Json &arguments);
  Json info(const Json &arguments);

private:
  struct Checkpoint {
    std::uint64_t time = 0;
    int process = 0;
    Channel channel;
  };

  void beginProcess();
  [[noreturn]] void simulate(Channel channel);
  const ptx::Module &module() const;
  /// A copy of that checkpoint becomes the runner.
  void spawn(std::size_t checkpoint);
  void endRunner();
  /// Wait until the runner stands still.
  Json await();
  void noteCheckpoint(const Json &message);
  void thinOut();
  std::uint64_t measure();
  /// Run until something stops the launch.
  Json run(Json request);
  /// The last `keep` hits before `until`, the oldest first.
  std::vector<Json> scan(const Json &request, std::uint64_t until,
                         std::size_t keep);
  Json scanFrom(std::size_t checkpoint, Json request, std::uint64_t until,
                std::size_t keep);
  void goToTime(std::uint64_t time);
  /// Put together what a move answers.
  Json stopped(Json reason);
  void needLive();
  std::uint64_t now() const { return time_; }
  Json stepOf(StepRequest::Kind kind, std::uint64_t count, bool isBackwards);
  /// The stop for a question about bytes: {"kind": "watch", ...}.
  Json watchOf(const Json &arguments);
  /// Where the thread in focus stands.
  Json here();
  Json lastOf(const Json &stop, const std::string &what);

  DebugOptions options_;
  std::unique_ptr<PreparedJob> job_;
  std::shared_ptr<const SimModule> module_;
  std::optional<Places> places_;
  std::atomic<bool> isInterrupted_{false};

  int root_ = 0; ///< the process that all others descend from
  std::vector<Checkpoint> checkpoints_; ///< by time; the first is the root
  Channel runner_;
  int runnerProcess_ = 0;
  std::uint64_t time_ = 0, furthest_ = 0;
  bool hasEnded_ = false;
  Json position_, reason_;
  ThreadName focus_;
  Json stops_ = Json::array(); ///< with "id", as the runner takes them
  int nextId_ = 1;
  std::uint64_t checkpointBytes_ = 0, made_ = 0, thinned_ = 0;
};

} // namespace kiln::sim
