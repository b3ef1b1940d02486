// Stops: when a launch that is debugged shall stop: breakpoints, writes to
// bytes, phases, findings, the next step of a thread.
//
// They are noted while the simulation runs and say what has happened (Hit); the
// runner decides whether that stops the launch or is only remembered, which is
// how questions about the past are answered.
#pragma once

#include "sim/debug/Places.h"
#include "sim/debug/ThreadView.h"
#include "sim/launch/Spectator.h"

#include <deque>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::sim {

/// A thread, by what it is called in every re-execution.
struct ThreadName {
  Dim3 cta{};
  int warp = 0, lane = 0;

  static ThreadName of(const Warp &warp, int lane) {
    return {warp.cta().index(), warp.index(), lane};
  }
  bool isOf(const Warp &other) const {
    return other.index() == warp && other.cta().index() == cta;
  }
  nlohmann::json toJson() const;
  static ThreadName fromJson(const nlohmann::json &json);
};

/// Something that a stop waits for has happened.
struct Hit {
  std::uint64_t time = 0; ///< before the instruction of that number
  int id = 0;             ///< of the stop; 0: none that has a number
  std::string kind;       ///< "breakpoint", "watch", "step", ...
  std::string text;       ///< a sentence
  ThreadName thread;
  nlohmann::json details; ///< what a question about it asks for

  nlohmann::json toJson() const;
};

/// A step of one thread, forwards or backwards.
struct StepRequest {
  enum class Kind : std::uint8_t { instruction, line, over, out };
  Kind kind = Kind::instruction;
  ThreadName thread;
  LineKey from;
  int depth = 0; ///< calls and inlined functions around it
  std::uint64_t count = 1;
};

/// How deep in calls an instruction is that the warp's current group executes.
int callDepth(const Group &group, const LineKey &key);

/// An instruction in words, from its place in JSON; a thread in words.
std::string placeText(const nlohmann::json &place);
std::string threadText(const ThreadName &thread);

class Stops {
public:
  /// `stops` and `step` of a request; they replace those that there were.
  void set(const nlohmann::json &request, const Places &places,
           const std::vector<Cluster *> &clusters);
  /// The program that is executed now has another layout.
  void mark(const Code &code);
  void begin(Cluster &cluster);
  void end(Cluster &cluster);

  // What happens, in the order in which it does. Hits are put behind `hits`.

  /// Before an instruction; `isSkipped`: no lane executes it.
  void before(Warp &warp, const Op &op, LaneMask lanes, bool isSkipped,
              std::uint64_t time, std::deque<Hit> &hits);
  void after(Warp &warp, const Op &op, LaneMask lanes, Step step,
             std::uint64_t time);
  void wrote(const ThreadAccess &event, std::uint64_t time);
  void wrote(const AsyncAccess &event, std::uint64_t time);
  void completed(const MbarrierPhase &event, Cta &cta, std::uint32_t address,
                 std::uint64_t time, const Warp *by, const Op *op);
  void left(const Warp &warp, LaneMask lanes, std::uint64_t time);
  void found(const Finding &finding, std::uint64_t time, bool isEnd);
  /// Bytes that have changed since the last time.
  void poll(std::uint64_t time);
  /// Those that have been noted and not been taken.
  void take(std::deque<Hit> &hits);
  bool hasAny() const { return !noted_.empty(); }

  /// Whether an instruction needs a look before it is executed.
  bool isMarked(const Warp &warp, const Op &op) const {
    auto index = static_cast<std::size_t>(&op - warp.code().ops.data());
    return (index < marks_.size() && marks_[index]) || hasWatches_ ||
           (step_ && step_->thread.isOf(warp)) || diverge_ || isBackwards_;
  }
  /// Steps backwards are remembered and do not stop.
  bool isBackwards() const { return isBackwards_; }
  /// A step backwards has met the thread's first instruction since it looks,
  /// and cannot tell whether a line begins there.
  std::optional<std::uint64_t> tentative() const { return tentative_; }

private:
  struct Breakpoint {
    int id;
    std::set<const ptx::Instruction *> at;
    std::optional<Expression> condition;
  };
  struct Watch {
    int id;
    bool isShared;
    Dim3 cta{};
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    std::optional<Expression> condition;
    const std::uint8_t *data = nullptr;  ///< null: not there now
    const std::uint8_t *owner = nullptr; ///< where the memory begins
    std::vector<std::uint8_t> last;
    nlohmann::json writer; ///< of the instruction that is executed now
    ThreadName thread;     ///< likewise
    nlohmann::json flight; ///< the last asynchronous write that was issued
    ThreadName flightThread;
  };
  struct Phase {
    int id;
    std::optional<Dim3> cta;
    std::uint32_t address = 0; ///< 0: any
    std::optional<std::uint32_t> number;
  };
  struct Divergence {
    ThreadName thread;
    LaneMask together = 0;
  };

  void locate(Watch &watch, Cluster &cluster);
  void stepBefore(Warp &warp, const Op &op, LaneMask group, std::uint64_t time,
                  std::deque<Hit> &hits);
  void stepDone(Warp &warp, const Op &op, std::uint64_t time);
  LineKey keyOf(const Op &op);
  nlohmann::json placeJson(const Op &op) const;
  void note(Hit hit) { noted_.push_back(std::move(hit)); }

  const Places *places_ = nullptr;
  std::vector<Breakpoint> breakpoints_;
  std::vector<Watch> watches_;
  std::vector<Phase> phases_;
  std::optional<int> findings_; ///< the id of the stop on findings
  std::set<std::string> findingIds_;
  std::optional<Divergence> diverge_;
  std::optional<StepRequest> step_;
  bool isBackwards_ = false, hasWatches_ = false;
  // Of the step.
  bool isExecuting_ = false, isBlocked_ = false;
  std::uint64_t executed_ = 0, tickTime_ = 0;
  int tickDepth_ = 0;
  LineKey tickKey_;
  /// Of the thread's last instruction: calls around it, and the caller's line.
  int lastCalls_ = 0;
  LineKey lastCaller_;
  bool isMidLine_ = false; ///< it has just returned into the line of the call
  std::optional<std::pair<LineKey, int>> lastDone_;
  std::optional<std::uint64_t> tentative_;

  std::vector<std::uint8_t> marks_; ///< by the index of the instruction
  const Code *code_ = nullptr;
  std::map<const Op *, LineKey> keys_;
  std::deque<Hit> noted_;
};

} // namespace kiln::sim
