// tuner: the fastest of several schedules of a problem.
//
// Who tells how long each takes is behind an interface: a GPU, or a file that
// one has written.
#pragma once

#include "kernels/gemm_options.h"

#include <kiln/measure/measure.h>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kiln::cli {

/// A schedule that may be the fastest.
struct TuneCandidate {
  GemmSchedule schedule; ///< fitted
  double predicted_us = 0;
  double us = 0;         ///< of a launch; 0: nobody knows
  bool is_auto = false;  ///< what `auto` has taken so far
  bool is_wrong = false; ///< it does not compute the product
  std::string note = {}; ///< why it is out

  bool may_win() const { return us > 0 && !is_wrong; }
};

/// What came of a problem: those that were timed, fastest first, then the rest.
struct TuneResult {
  GemmProblem problem; ///< dimensions given at launch are arguments
  std::vector<TuneCandidate> candidates;

  /// The fastest that is right; null where there is none.
  const TuneCandidate *winner() const;
  /// The one that `auto` took; null where it was not timed.
  const TuneCandidate *chosen_before() const;
};

class Tuner {
public:
  virtual ~Tuner() = default;

  virtual const DeviceDescription &device() const = 0;
  /// "cuda:0 (NVIDIA H200)"
  virtual std::string source() const = 0;
  /// The problem with that number of those it was made for.
  virtual TuneResult tune(std::size_t number) = 0;
};

/// Schedules of problems, by the problem in words.
using ScheduleLists = std::map<std::string, std::vector<GemmSchedule>>;

/// How a GPU is asked.
struct TunePlan {
  BenchPlan bench;
  int most = 8;             ///< candidates of the cost model
  ScheduleLists asked = {}; ///< candidates beside them
  int refinements = 1;      ///< times to look at what is near the fastest
  double slowest = 1.2; ///< times the fastest: further ones are dropped early
  std::uint64_t data_seed = 0;
  bool is_verified = true;
};

/// Compile the candidates with all cores, a few problems ahead of the one that
/// the GPU is measuring; then what is near the fastest of them. The options
/// must outlive it.
std::unique_ptr<Tuner> make_gpu_tuner(std::shared_ptr<Device> device,
                                      const GemmOptions &options,
                                      std::vector<GemmProblem> problems,
                                      const TunePlan &plan);

/// Read times from a file that `write_timings` wrote. Throws UserError.
std::unique_ptr<Tuner> make_replay_tuner(const std::string &path,
                                         const GemmOptions &options,
                                         std::vector<GemmProblem> problems);

/// The schedules of a file that `write_timings` wrote, or of one that has no
/// times. Throws UserError.
ScheduleLists read_schedules(const std::string &path);

/// Every time of these results, as JSON.
void write_timings(const std::string &path, const Tuner &tuner,
                   const std::vector<TuneResult> &results);

/// The candidates in the order of their times; those without last.
void sort_candidates(std::vector<TuneCandidate> &candidates);

} // namespace kiln::cli
