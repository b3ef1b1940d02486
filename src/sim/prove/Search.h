// Search: every order of a launch's steps, or one of each class of orders that
// nobody can tell apart.
//
// An execution is a sequence of steps, each of which somebody was chosen for.
// The search keeps the sequence of choices (its path), runs the launch again
// and again, and each time changes the last choice that has an alternative left
// (stateless model checking). Which alternatives there are decides the
// reduction:
//
//   all     everybody who was ready, everywhere: brute force
//   source  those that a race asks for: where a step depends on an earlier one
//           and could have come before it, one of those that can begin such an
//           order is an alternative at the earlier choice (source sets, Abdulla
//           et al. 2014); and nobody is chosen where an earlier alternative has
//           led to the same orders already (sleep sets)
//
// A loop that waits is no step as long as what it polls is as it was: its group
// sleeps until somebody has touched that.
#pragma once

#include "sim/machine/Strategy.h"
#include "sim/prove/ChoicePoints.h"
#include "sim/prove/TouchRecorder.h"
#include "sim/prove/Trace.h"

#include <array>
#include <atomic>
#include <compare>
#include <map>
#include <optional>
#include <string>

namespace kiln::sim {

/// all: none is left out.
enum class Pruning : std::uint8_t { all, source };

/// Who takes steps: the lanes of a warp that stand together, named by the first
/// of them, or a piece of work, named by who issued it.
struct Process {
  bool isWork = false;
  std::uint32_t cta = 0; ///< of lanes
  int warp = 0, lane = 0;
  int issuer = -1;          ///< of work: a process
  std::uint32_t number = 0; ///< of work: of all that the process has issued

  auto operator<=>(const Process &) const = default;
};

class Search final : public Strategy {
public:
  /// `stop` is set where an execution would show nothing new, and where
  /// `cancel` is set, which may be null.
  Search(Pruning pruning, std::atomic<bool> &stop,
         const std::atomic<bool> *cancel = nullptr)
      : pruning_(pruning), stop_(stop), cancel_(cancel) {}

  /// Explore the orders of one cluster alone, where clusters do not talk to
  /// each other.
  void focus(std::uint64_t cluster) { focus_ = cluster; }
  /// Who gets registers first matters (setmaxnreg).
  void heedRegisters() { registersMatter_ = true; }
  /// Make these choices, whatever follows from them.
  void replay(const std::vector<int> &path);
  /// The number of a process, which may not have come yet.
  int numberOf(const Process &process);

  // Strategy.
  void begin(Machine &machine) override;
  void begin(Cluster &cluster) override;
  void end(Cluster &cluster) override;
  Turn choose(std::span<const Ready> ready) override;
  void giveUp() override;

  /// The execution is over. Prepare the next one: false where there is none.
  bool next();
  /// End the last step of the execution.
  void conclude() { closeStep(); }
  /// It was stopped because it would show nothing new.
  bool isRedundant() const { return isRedundant_; }
  bool isTalking() const { return isTalking_; }
  /// A warp gave registers back behind one that took some.
  bool needsRegisters() const;
  /// Why what was seen is no proof, in words; empty: it is one.
  const std::string &doubt() const { return doubt_; }

  const Trace &trace() const { return trace_; }
  const Process &process(int number) const {
    return processes_[static_cast<std::size_t>(number)];
  }
  /// Which part of the alternatives that are known has been explored.
  double progress() const;

private:
  struct Sleeper {
    int process;
    Touches touches; ///< of the step that it would take
  };
  /// A choice.
  struct Node {
    int process = -1;
    std::vector<int> enabled;
    std::vector<int> wanted;  ///< the alternatives, chosen ones included
    std::vector<int> blocked; ///< that did nothing when they were chosen
    /// That wait for somebody who happens before them.
    std::vector<int> waiting;
    /// Alternatives that were explored, here or earlier on the path, and whose
    /// step nothing has touched since.
    std::vector<Sleeper> sleepers;
    bool isAlternative = false; ///< to what was chosen here first

    bool isAsleep(int process) const;
  };
  struct Candidate {
    int process;
    std::size_t ready;
    bool isPoll; ///< of memory: whether it has to wait shows when it is tried
  };
  /// The turn at hand.
  struct Current {
    int process = -1;
    bool isChoice = false;
    Warp *warp = nullptr; ///< null: it is work
    std::uint32_t cta = 0;
    std::uint64_t effects = 0;
    int pc = 0, lane = 0;
    LaneMask lanes = 0;
    const Op *op = nullptr;
    std::vector<std::size_t> before; ///< steps
  };
  /// What an execution knows of a process.
  struct Known {
    std::uint32_t issued = 0;
    std::vector<std::size_t> before = {}; ///< of work: the step that issued it
    Touches reductions = {};              ///< of work: made when it is done
  };

  int processOf(const Ready &one);
  Known &known(int process);
  bool isOurs(const Ready &one) const;
  /// End the turn at hand: a step, unless it led nowhere.
  void closeStep();
  /// It led nowhere, because what it waits for has not come.
  bool isVoid(const Current &turn, const Touches &touches) const;
  void addStep(const Current &step, Touches touches);
  void noteRace(std::size_t earlier, std::size_t later);
  /// A process that waits before step `before` might have gone on earlier: before
  /// what it looks at became as it is.
  void noteWaiting(std::size_t before, int process, Touches looks);
  /// Nobody can go.
  void noteAllWaiting(std::span<const Ready> ready);
  /// Give what the last turn has issued a name and a past.
  void adoptWork(std::span<const Ready> ready);
  /// Whoever goes on without being a choice; nothing: nobody.
  std::optional<std::size_t> immediate(std::span<const Ready> ready) const;
  std::vector<Candidate> candidates(std::span<const Ready> ready);
  /// Who is chosen at the node at hand; -1: nobody who would show anything.
  int pick(const std::vector<Candidate> &candidates);
  Node makeNode(const std::vector<Candidate> &candidates);
  int pickAmong(Node &node, const std::vector<Candidate> &candidates);
  Turn go(std::span<const Ready> ready, std::size_t chosen, bool isChoice);

  Pruning pruning_;
  std::atomic<bool> &stop_;
  const std::atomic<bool> *cancel_;
  std::optional<std::uint64_t> focus_;
  bool registersMatter_ = false;

  // For all executions.
  std::map<Process, int> numbers_;
  std::vector<Process> processes_;
  std::vector<Node> path_;
  Trace trace_; ///< beyond steps_: of the execution before, which is repeated
  bool isReplay_ = false;
  std::string doubt_;

  // For the execution at hand.
  std::optional<ChoicePoints> stops_;
  std::optional<TouchRecorder> recorder_;
  std::size_t steps_ = 0;
  std::uint64_t begun_ = 0; ///< clusters
  Current current_;
  int last_ = -1;     ///< who had the last turn
  int previous_ = -1; ///< who was chosen last
  int again_ = -1;    ///< who did nothing that others can see, and goes on
  std::vector<std::size_t>
      lastBefore_; ///< steps that the last turn comes behind
  bool isRedundant_ = false, isTalking_ = false, hasGivenUp_ = false;
  bool isFocusOver_ = false;
  std::vector<int> stuck_; ///< who could not go at the last choice, and waits
  std::vector<Known> known_;
  std::map<const Pending *, int> work_; ///< in flight: its process
  std::vector<std::shared_ptr<Pending>> inFlight_;
  /// Groups that wait until somebody touches what they have looked at.
  std::map<int, Touches> waiting_;
  /// One more than the last step of each lane, by CTA and warp.
  std::map<std::pair<std::uint32_t, int>, std::array<int, kLanes>> lanes_;
  std::map<std::uint32_t, std::size_t> begunBehind_; ///< a step, by CTA
};

} // namespace kiln::sim
