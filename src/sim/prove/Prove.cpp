// Prove: the loop over executions, and what a verdict is.
//
// `proved` is said where the search has come to its end and nothing that it saw
// speaks against it: no error in any execution, nothing that the search could
// not follow. The first error is the counterexample. Everything else is
// `gave up`, with the reason.
#include "kiln/check/prove.h"
#include "kiln/check/simulation.h"
#include "sim/prove/Search.h"
#include "sim/prove/Story.h"
#include "support/Error.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>

namespace kiln {

const char *name(ProofVerdict verdict) {
  switch (verdict) {
  case ProofVerdict::proved:
    return "proved";
  case ProofVerdict::counterexample:
    return "counterexample";
  case ProofVerdict::gave_up:
    break;
  }
  return "gave up";
}

namespace {

using Clock = std::chrono::steady_clock;

/// Seconds between two reports of progress.
constexpr double kReportS = 0.5;

class Prover {
public:
  Prover(Device &device, const LaunchDescription &launch,
         const ProveOptions &options)
      : device_(device), launch_(launch), options_(options),
        simulation_(*device.simulation()), before_(simulation_.snapshot()) {
    proof_.ctas = 1;
    for (int axis = 0; axis < 3; ++axis)
      proof_.ctas *= launch.grid[axis];
    perCluster_ = std::uint64_t(launch.cluster[0]) * launch.cluster[1] *
                  launch.cluster[2];
  }

  Proof run();

private:
  enum class Outcome : std::uint8_t { ended, found, stopped, again };
  /// The executions of one search.
  Outcome explore(sim::Search &search);
  /// One more execution; false where the search is over.
  Outcome execute(sim::Search &search);
  Outcome judge(sim::Search &search, LaunchResult result);
  /// The counterexample, with as few switches as its order allows.
  void tell(const sim::Search &search, LaunchResult result);
  std::uint64_t hashOfMemory();
  bool isOverLimit();
  double elapsedS() const {
    return std::chrono::duration<double>(Clock::now() - start_).count();
  }

  Device &device_;
  const LaunchDescription &launch_;
  const ProveOptions &options_;
  Simulation &simulation_;
  std::unique_ptr<Snapshot> before_, first_;
  Clock::time_point start_ = Clock::now();
  double reportedS_ = 0, share_ = 1, done_ = 0;
  std::atomic<bool> stop_{false};
  bool registersMatter_ = false, hasError_ = false;
  std::uint64_t perCluster_ = 1, cluster_ = 0;
  std::set<std::string> findings_;
  std::set<std::uint64_t> states_;
  Proof proof_;
};

} // namespace

std::uint64_t Prover::hashOfMemory() {
  std::uint64_t state = 0x9e3779b97f4a7c15;
  auto add = [&](std::uint64_t value) {
    state = (state ^ value) * 0xff51afd7ed558ccd;
    state ^= state >> 32;
  };
  std::vector<std::byte> bytes;
  for (const Snapshot::Memory &memory : before_->memory()) {
    if (!memory.is_written)
      continue;
    for (const auto &[begin, was] : memory.pieces) {
      bytes.resize((was.size() + 7) / 8 * 8);
      std::fill(bytes.begin(), bytes.end(), std::byte(0));
      device_.copy_out(
          bytes.data(),
          device_.wrap(reinterpret_cast<void *>(memory.address + begin),
                       was.size()),
          was.size());
      // What an execution leaves as it was, it need not have touched.
      if (!std::memcmp(bytes.data(), was.data(), was.size()))
        continue;
      add(memory.address + begin);
      for (std::size_t i = 0; i < bytes.size(); i += 8) {
        std::uint64_t word;
        std::memcpy(&word, bytes.data() + i, 8);
        add(word);
      }
    }
  }
  return state;
}

bool Prover::isOverLimit() {
  auto limit = [&](std::string reason) {
    proof_.reason = std::move(reason);
    return true;
  };
  if (options_.sim.cancel && *options_.sim.cancel)
    return limit("it was interrupted");
  if (options_.max_interleavings &&
      proof_.executed + proof_.redundant >= options_.max_interleavings)
    return limit(fmt::format("at the limit of {} interleavings",
                             options_.max_interleavings));
  if (options_.time_limit_s > 0 && elapsedS() >= options_.time_limit_s)
    return limit(fmt::format("at the limit of {} s", options_.time_limit_s));
  return false;
}

/// It says nothing of the kernel.
static bool isLimit(const Finding &finding) {
  return finding.id == "instruction-limit" || finding.id == "memory-limit" ||
         finding.id == "interrupted" || finding.id == "time-limit";
}

Prover::Outcome Prover::judge(sim::Search &search, LaunchResult result) {
  ++proof_.executed;
  proof_.steps = std::max<std::uint64_t>(proof_.steps, search.trace().size());
  proof_.instructions = std::max(proof_.instructions, result.instructions);
  bool isWrong = !result.ok();
  if (!result.is_finished && isLimit(result.findings.back())) {
    proof_.reason = fmt::format("where an execution came to its end by {}",
                                result.findings.back().id);
    return Outcome::stopped;
  }
  // What an error cut off says less than the error.
  if (result.is_finished) {
    for (const Finding &finding : result.findings)
      findings_.insert(finding.id);
    states_.insert(hashOfMemory());
  } else {
    findings_.insert(result.findings.back().id);
  }
  if (!isWrong && options_.judge)
    isWrong = !(proof_.wrong = options_.judge()).empty();
  if (!isWrong && !registersMatter_ && search.needsRegisters()) {
    registersMatter_ = true;
    return Outcome::again;
  }
  if (!isWrong)
    return Outcome::ended;
  hasError_ = true;
  if (!options_.stops_at_first)
    return Outcome::ended;
  tell(search, std::move(result));
  return Outcome::found;
}

void Prover::tell(const sim::Search &search, LaunchResult result) {
  proof_.cluster = cluster_;
  proof_.result = std::move(result);
  std::vector<std::size_t> order = search.trace().withFewSwitches();
  proof_.path = sim::namesOf(search, order);
  before_->restore();
  SimOptions quiet = options_.sim;
  quiet.print = [](const std::string &) {};
  auto isSame = [&](const LaunchResult &again) {
    return proof_.result.ok() == again.ok() &&
           proof_.result.is_finished == again.is_finished;
  };
  try {
    LaunchResult again = replay(device_, launch_, proof_.path, cluster_, quiet);
    if (!isSame(again))
      userError("it ends otherwise");
    proof_.result = std::move(again);
  } catch (const UserError &) {
    // A choice that the search knows nothing of was in between.
    std::iota(order.begin(), order.end(), std::size_t(0));
    proof_.path = sim::namesOf(search, order);
  }
  proof_.story = sim::tellStory(search, order, proof_.result);
  if (!proof_.wrong.empty())
    proof_.story.push_back(proof_.wrong);
}

Prover::Outcome Prover::execute(sim::Search &search) {
  stop_ = false;
  auto sim = std::make_shared<SimOptions>(options_.sim);
  // The search stays with its owner.
  sim->strategy = std::shared_ptr<sim::Strategy>(&search, [](auto *) {});
  sim->cancel = &stop_;
  sim->threads = 1;
  sim->time_limit_s = 0;
  sim->progress = nullptr;
  if (proof_.executed || !sim->print)
    sim->print = [](const std::string &) {};
  LaunchDescription launch = launch_;
  launch.options = sim;
  LaunchResult result = device_.launch(launch);
  search.conclude();
  if (options_.sim.cancel && *options_.sim.cancel && stop_)
    return Outcome::stopped;
  if (search.isRedundant()) {
    ++proof_.redundant;
    return Outcome::ended;
  }
  Outcome outcome = judge(search, std::move(result));
  if (!first_)
    first_ = simulation_.snapshot();
  return outcome;
}

Prover::Outcome Prover::explore(sim::Search &search) {
  for (;;) {
    if (isOverLimit())
      return Outcome::stopped;
    Outcome outcome = execute(search);
    if (outcome == Outcome::stopped)
      proof_.reason = "it was interrupted";
    proof_.explored = done_ + share_ * search.progress();
    if (outcome != Outcome::ended)
      return outcome;
    before_->restore();
    if (!search.doubt().empty()) {
      proof_.reason = search.doubt();
      return Outcome::stopped;
    }
    if (options_.progress && elapsedS() >= reportedS_ + kReportS) {
      reportedS_ = elapsedS();
      options_.progress(proof_.executed + proof_.redundant, proof_.explored);
    }
    if (!search.next())
      return Outcome::ended;
  }
}

Proof Prover::run() {
  auto pruning =
      options_.is_brute_force ? sim::Pruning::all : sim::Pruning::source;
  std::uint64_t clusters = proof_.ctas / perCluster_;
  Outcome outcome = Outcome::ended;
  bool isTalking = false;
  for (std::uint64_t cluster = 0;
       outcome == Outcome::ended && cluster < clusters && !isTalking;) {
    share_ = 1.0 / static_cast<double>(clusters);
    done_ = share_ * static_cast<double>(cluster);
    sim::Search search(pruning, stop_, options_.sim.cancel);
    if (registersMatter_)
      search.heedRegisters();
    search.focus(cluster_ = cluster);
    outcome = explore(search);
    isTalking = search.isTalking();
    if (outcome == Outcome::again) {
      before_->restore();
      outcome = Outcome::ended;
      continue;
    }
    ++cluster;
  }
  if (hasError_)
    proof_.verdict = ProofVerdict::counterexample;
  else if (outcome == Outcome::ended)
    proof_.verdict = ProofVerdict::proved;
  if (outcome == Outcome::ended)
    proof_.explored = 1;
  if (first_)
    first_->restore();
  proof_.final_states.assign(states_.begin(), states_.end());
  proof_.findings.assign(findings_.begin(), findings_.end());
  proof_.time_s = elapsedS();
  return std::move(proof_);
}

Proof prove(Device &device, const LaunchDescription &launch,
            const ProveOptions &options) {
  Simulation *simulation = device.simulation();
  if (!simulation)
    userError("a proof needs the simulator; {} is none", device.name());
  if (launch.dependent)
    userError("a dependent launch is proved with the one ahead of it, which "
              "Kiln does not do yet; prove it as a launch of its own");
  LaunchDescription checked = launch;
  checked.options = std::make_shared<SimOptions>(options.sim);
  simulation->check(checked);
  return Prover(device, launch, options).run();
}

LaunchResult replay(Device &device, const LaunchDescription &launch,
                    const std::vector<std::string> &path, std::uint64_t cluster,
                    const SimOptions &options) {
  std::atomic<bool> stop{false};
  auto search =
      std::make_shared<sim::Search>(sim::Pruning::source, stop, options.cancel);
  sim::replayNames(*search, path);
  search->focus(cluster);
  auto sim = std::make_shared<SimOptions>(options);
  sim->strategy = search;
  sim->cancel = &stop;
  LaunchDescription again = launch;
  again.options = sim;
  LaunchResult result = device.launch(again);
  search->conclude();
  if (!search->doubt().empty())
    userError("the counterexample is not one of this launch: {}",
              search->doubt());
  return result;
}

/// The error that a counterexample shows, by its id.
static std::string errorOf(const Proof &proof) {
  for (const Finding &finding : proof.result.findings)
    if (finding.grade == Finding::Grade::error)
      return finding.id;
  return proof.wrong;
}

std::string Proof::to_string() const {
  std::string text;
  for (const std::string &line : story)
    text += "  " + line + "\n";
  text += fmt::format("bounds: {} CTAs, {} steps, {} warp instructions in the "
                      "longest execution; all preemptions\n",
                      ctas, steps, instructions);
  if (final_states.size() > 1)
    text += fmt::format("memory: {} different contents at the end\n",
                        final_states.size());
  std::string counts =
      fmt::format("{} interleavings executed, {} given up as known, {:.2f} s",
                  executed, redundant, time_s);
  switch (verdict) {
  case ProofVerdict::proved:
    return text + fmt::format("proved: no error in any interleaving of {} CTAs "
                              "({})\n",
                              ctas, counts);
  case ProofVerdict::counterexample:
    return text +
           fmt::format("counterexample: {} ({})\n", errorOf(*this), counts);
  case ProofVerdict::gave_up:
    break;
  }
  return text + fmt::format("gave up {}: {:.0f}% of the known alternatives "
                            "explored ({})\n",
                            reason, 100 * explored, counts);
}

} // namespace kiln
