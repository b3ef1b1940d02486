// tuner: candidates from the cost model, kernels from all cores, times from a
// GPU.
#include "tuner.h"
#include "kernels/gemm_sets.h"

#include <kiln/run/compile.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <fmt/format.h>
#include <future>
#include <mutex>
#include <thread>
#include <utility>

namespace kiln::cli {

void sort_candidates(std::vector<TuneCandidate> &candidates) {
  std::ranges::stable_sort(
      candidates, [](const TuneCandidate &x, const TuneCandidate &y) {
        return (x.us > 0) != (y.us > 0) ? x.us > 0 : x.us < y.us;
      });
}

const TuneCandidate *TuneResult::winner() const {
  auto found = std::ranges::find_if(candidates, &TuneCandidate::may_win);
  return found == candidates.end() ? nullptr : &*found;
}

const TuneCandidate *TuneResult::chosen_before() const {
  auto found = std::ranges::find_if(candidates, [](const TuneCandidate &one) {
    return one.is_auto && one.may_win();
  });
  return found == candidates.end() ? nullptr : &*found;
}

namespace {

/// Threads that work off a queue; what is still in it at the end is dropped.
class Workers {
public:
  explicit Workers(unsigned count) {
    // Where the machine gives fewer, those do it.
    try {
      for (unsigned i = 0; i < count; ++i)
        threads_.emplace_back([this] { work(); });
    } catch (const std::exception &error) {
      if (threads_.empty())
        throw RuntimeError(fmt::format(
            "the machine gives no thread for the compiler: {}", error.what()));
    }
  }
  Workers(const Workers &) = delete;
  ~Workers() {
    {
      std::lock_guard lock(mutex_);
      is_ending_ = true;
    }
    changed_.notify_all();
    for (std::thread &thread : threads_)
      thread.join();
  }

  std::future<Kernel> add(std::function<Kernel()> job) {
    std::packaged_task<Kernel()> task(std::move(job));
    std::future<Kernel> result = task.get_future();
    {
      std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    }
    changed_.notify_one();
    return result;
  }

private:
  void work() {
    for (;;) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_ending_ || !tasks_.empty(); });
      if (is_ending_)
        return;
      std::packaged_task<Kernel()> task = std::move(tasks_.front());
      tasks_.pop_front();
      lock.unlock();
      task();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::packaged_task<Kernel()>> tasks_;
  bool is_ending_ = false;
  std::vector<std::thread> threads_;
};

/// All cores but the one that launches.
unsigned worker_count() {
  return std::max(2u, std::thread::hardware_concurrency()) - 1;
}

class GpuTuner final : public Tuner {
public:
  GpuTuner(std::shared_ptr<Device> device, const GemmOptions &options,
           std::vector<GemmProblem> problems, const TunePlan &plan)
      : device_(std::move(device)), options_(options),
        described_(options.built_for(device_.get())), plan_(plan),
        watch_(*device_), workers_(worker_count()) {
    for (GemmProblem &problem : problems)
      jobs_.push_back({.sized = std::move(problem)});
  }

  const DeviceDescription &device() const override { return described_; }
  std::string source() const override { return device_->name(); }
  TuneResult tune(std::size_t number) override;

private:
  /// A problem, from the time its candidates are compiled on.
  struct Job {
    GemmProblem sized;
    bool is_started = false;
    TuneResult result = {};
    std::vector<std::future<Kernel>> kernels = {}; ///< of the last candidates
    std::exception_ptr error = nullptr; ///< why there are no candidates
  };
  /// A candidate in the race.
  struct Runner {
    std::shared_ptr<const Kernel> kernel; ///< outlives its launches
    Contender contender;
    std::size_t candidate; ///< its number
  };
  using Runners = std::vector<Runner>;

  void start(Job &job);
  void compile_from(Job &job, std::size_t first);
  void race(Job &job, const GemmSets &sets, Runners &runners);
  static void enter(Job &job, const GemmSets &sets, Runners &runners);
  void screen(TuneResult &result, Runners &runners);
  void time(TuneResult &result, const Runners &runners);
  bool look_around(Job &job, const Runners &runners);
  static void verify(TuneResult &result, Runners &runners, GemmSets &sets);
  Kernel compile_for(const GemmProblem &sized, const GemmProblem &problem,
                     const GemmSchedule &schedule) const;

  std::shared_ptr<Device> device_;
  const GemmOptions &options_;
  DeviceDescription described_;
  TunePlan plan_;
  Stopwatch watch_;
  std::vector<Job> jobs_;
  Workers workers_; ///< the last: ends before what it works on
};

/// What the cost model likes best, what was asked for, and what `auto` takes,
/// each once.
std::vector<TuneCandidate> candidates_of(const GemmProblem &problem,
                                         const TunePlan &plan,
                                         const DeviceDescription &device) {
  std::vector<TuneCandidate> list;
  for (const RankedSchedule &one : rank_schedules(problem, plan.most, device))
    list.push_back({one.schedule, one.cost.total_us()});
  auto add = [&](const GemmSchedule &schedule) -> TuneCandidate & {
    auto found = std::ranges::find(list, schedule, &TuneCandidate::schedule);
    return found == list.end() ? list.emplace_back(schedule) : *found;
  };
  auto asked = plan.asked.find(problem.to_string());
  if (asked != plan.asked.end())
    for (const GemmSchedule &one : asked->second)
      try {
        add(fit(problem, one, device));
      } catch (const UserError &) {
        add(one); // whoever builds it says what is wrong
      }
  add(pick_schedule(problem, device)).is_auto = true;
  return list;
}

/// Buffers that nobody looks into, for a launch that is packed and never made.
Buffer nominal_buffer(std::size_t bytes) {
  constexpr std::uint64_t kAddress = 1 << 30;
  return Buffer(kAddress, bytes);
}
GemmBuffers nominal_buffers(const ReferenceGemm &gemm) {
  auto buffer = [&](std::int64_t elements, Type type) {
    return nominal_buffer(static_cast<std::size_t>(bytes_of(type, elements)));
  };
  Type factors = block_of(gemm.scaling).type;
  return {.a = buffer(gemm.a_elements(), gemm.type),
          .b = buffer(gemm.b_elements(), gemm.type),
          .a_scales = buffer(gemm.a_scale_count(), factors),
          .b_scales = buffer(gemm.b_scale_count(), factors),
          .c = buffer(gemm.c_elements(), gemm.out),
          .bias = buffer(gemm.bias_elements(), gemm.bias_type()),
          .d = buffer(gemm.d_elements(), gemm.out)};
}

/// Packing a launch has the driver assemble the kernel, here and not where the
/// clock runs.
Kernel GpuTuner::compile_for(const GemmProblem &sized,
                             const GemmProblem &problem,
                             const GemmSchedule &schedule) const {
  Kernel kernel = compile(build_gemm(problem, schedule, {}, described_));
  ReferenceGemm gemm = options_.reference(sized);
  std::vector<LaunchArgument> arguments = with_workspaces(
      kernel, launch_arguments(kernel, gemm, nominal_buffers(gemm)),
      [](const ArgumentSpec &, std::size_t bytes) {
        return nominal_buffer(bytes);
      });
  device_->prepare(resolve(kernel, arguments, device_->description()));
  return kernel;
}

void GpuTuner::start(Job &job) {
  if (std::exchange(job.is_started, true))
    return;
  try {
    job.result.problem = options_.with_arguments(job.sized);
    job.result.candidates =
        candidates_of(job.result.problem, plan_, described_);
  } catch (const Error &) {
    job.error = std::current_exception(); // until its turn comes
  }
  compile_from(job, 0);
}

/// Give the candidates from there on to the workers.
void GpuTuner::compile_from(Job &job, std::size_t first) {
  for (std::size_t i = first; i < job.result.candidates.size(); ++i)
    job.kernels.push_back(
        workers_.add([this, sized = job.sized, problem = job.result.problem,
                      schedule = job.result.candidates[i].schedule] {
          return compile_for(sized, problem, schedule);
        }));
}

/// Add what was compiled last; one that cannot be has no chance.
void GpuTuner::enter(Job &job, const GemmSets &sets, Runners &runners) {
  std::vector<TuneCandidate> &candidates = job.result.candidates;
  std::size_t number = candidates.size() - job.kernels.size();
  // Assembling holds up launches: none while a clock runs, as far as may be.
  for (const std::future<Kernel> &compiled : job.kernels)
    compiled.wait();
  for (std::future<Kernel> &compiled : std::exchange(job.kernels, {})) {
    std::size_t candidate = number++;
    try {
      auto kernel = std::make_shared<const Kernel>(compiled.get());
      runners.push_back({kernel, sets.contender("", *kernel), candidate});
    } catch (const Error &error) {
      candidates[candidate].note = error.message();
    }
  }
}

/// Bursts show who has no chance: the faster of two, since one may meet a
/// kernel that is being assembled.
void GpuTuner::screen(TuneResult &result, Runners &runners) {
  std::vector<double> us;
  for (const Runner &runner : runners) {
    int launches = watch_.launches_for(runner.contender, plan_.bench);
    us.push_back(std::min(watch_.burst(runner.contender, launches),
                          watch_.burst(runner.contender, launches)));
  }
  if (us.empty())
    return;
  double best_us = *std::ranges::min_element(us);
  Runners left;
  for (std::size_t i = 0; i < runners.size(); ++i) {
    TuneCandidate &one = result.candidates[runners[i].candidate];
    if (us[i] <= plan_.slowest * best_us || one.is_auto)
      left.push_back(std::move(runners[i]));
    else
      one.us = us[i];
  }
  runners = std::move(left);
}

/// Let them take turns, rested.
void GpuTuner::time(TuneResult &result, const Runners &runners) {
  std::vector<Contender> contenders;
  for (const Runner &runner : runners)
    contenders.push_back(runner.contender);
  std::vector<Samples> samples =
      measure_rested(watch_, contenders, plan_.bench);
  for (std::size_t i = 0; i < runners.size(); ++i)
    result.candidates[runners[i].candidate].us = median(samples[i]);
}

/// Time what was compiled last beside the fastest so far and what `auto` takes.
void GpuTuner::race(Job &job, const GemmSets &sets, Runners &runners) {
  std::vector<TuneCandidate> &candidates = job.result.candidates;
  auto us = [&](const Runner &runner) -> double & {
    return candidates[runner.candidate].us;
  };
  std::ranges::sort(runners, {}, us);
  Runners racing, resting;
  for (Runner &runner : runners)
    (racing.empty() || candidates[runner.candidate].is_auto ? racing : resting)
        .push_back(std::move(runner));
  double before = racing.empty() ? 0 : us(racing.front());
  std::size_t leader = racing.empty() ? 0 : racing.front().candidate;
  enter(job, sets, racing);
  screen(job.result, racing);
  time(job.result, racing);
  // Those that rest are measured in the time that the fastest takes now.
  for (const Runner &runner : resting)
    us(runner) *= candidates[leader].us / before;
  runners = std::move(racing);
  std::ranges::move(resting, std::back_inserter(runners));
}

/// Have what is near the fastest compiled; false where there is nothing new.
bool GpuTuner::look_around(Job &job, const Runners &runners) {
  std::vector<TuneCandidate> &candidates = job.result.candidates;
  auto fastest = std::ranges::min_element(runners, {}, [&](const Runner &one) {
    return candidates[one.candidate].us;
  });
  if (fastest == runners.end())
    return false;
  std::size_t known = candidates.size();
  for (const RankedSchedule &one :
       nearby_schedules(job.result.problem,
                        candidates[fastest->candidate].schedule, described_))
    if (std::ranges::find(candidates, one.schedule, &TuneCandidate::schedule) ==
        candidates.end())
      candidates.push_back({one.schedule, one.cost.total_us()});
  compile_from(job, known);
  return candidates.size() > known;
}

/// Compare what they compute with the reference, fastest first, until one is
/// right.
void GpuTuner::verify(TuneResult &result, Runners &runners, GemmSets &sets) {
  std::ranges::sort(runners, {}, [&](const Runner &runner) {
    return result.candidates[runner.candidate].us;
  });
  for (const Runner &runner : runners) {
    TuneCandidate &candidate = result.candidates[runner.candidate];
    Comparison comparison = sets.verify(runner.contender);
    if (comparison.ok)
      return;
    candidate.is_wrong = true;
    candidate.note = fmt::format("WRONG: {} of {} elements, max_rel_err={:.2e}",
                                 comparison.wrong, comparison.compared,
                                 comparison.max_rel_err);
  }
}

TuneResult GpuTuner::tune(std::size_t number) {
  constexpr std::size_t kAhead = 4;
  for (std::size_t i = number; i < std::min(number + kAhead, jobs_.size()); ++i)
    start(jobs_[i]);
  Job &job = jobs_[number];
  if (job.error)
    std::rethrow_exception(job.error);
  GemmSets sets(*device_, options_.reference(job.sized), job.sized.has_beta,
                plan_.data_seed);
  Runners runners;
  race(job, sets, runners);
  for (int i = 0; i < plan_.refinements && look_around(job, runners); ++i)
    race(job, sets, runners);
  if (plan_.is_verified)
    verify(job.result, runners, sets);
  sort_candidates(job.result.candidates);
  return std::move(job.result);
}

} // namespace

std::unique_ptr<Tuner> make_gpu_tuner(std::shared_ptr<Device> device,
                                      const GemmOptions &options,
                                      std::vector<GemmProblem> problems,
                                      const TunePlan &plan) {
  return std::make_unique<GpuTuner>(std::move(device), options,
                                    std::move(problems), plan);
}

} // namespace kiln::cli
