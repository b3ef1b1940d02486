// measure.h: times of things that can be put into a stream, side by side.
//
//     Stopwatch watch(*device);
//     auto samples = measure_rested(watch, {{"mine", {launch}}}, {});
//     double us = median(samples.front());
//
// A GPU that is limited by its power is slower the longer it works, so that
// only times from one process, taken in turns, can be compared; and there are
// two regimes. *Rested*: each short burst comes after a pause. *Sustained*:
// burst after burst, once the clocks have settled. Each launch of a burst takes
// the next set of buffers, so that the L2 cache holds nothing of what it needs.
#pragma once

#include <kiln/run/device.h>
#include <kiln/base/export.h>

#include <chrono>
#include <functional>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// One of those compared: a launch for each set of buffers.
struct Contender {
  std::string name;
  std::vector<std::function<void(const Stream &)>> launches;
};

struct BenchPlan {
  int rounds = 7;
  std::chrono::milliseconds pause{200}; ///< before a burst, rested
  std::chrono::milliseconds burst{10};
  std::chrono::milliseconds settle{3000}; ///< until clocks are sustained
  /// Called behind each burst that counts, with the contender's number.
  std::function<void(std::size_t)> after_burst = nullptr;
};

/// Microseconds of one launch, one number per round.
using Samples = std::vector<double>;
/// NaN where there are none.
double median(Samples samples);
/// (largest - smallest) / median, likewise.
double spread(const Samples &samples);

class Stopwatch {
public:
  explicit Stopwatch(Device &device);

  /// Microseconds per launch over so many.
  double burst(const Contender &contender, int launches);
  /// How many launches of it take as long as a burst should.
  int launches_for(const Contender &contender, const BenchPlan &plan);

private:
  Device &device_;
  Stream stream_;
  Event start_, end_; ///< made once: nothing is allocated while time runs
  std::size_t next_ = 0;
};

/// Samples of each contender, taken in turns.
std::vector<Samples> measure_rested(Stopwatch &watch,
                                    const std::vector<Contender> &contenders,
                                    const BenchPlan &plan);
std::vector<Samples> measure_sustained(Stopwatch &watch,
                                       const std::vector<Contender> &contenders,
                                       const BenchPlan &plan);

/// How many sets of `bytes` are together larger than twice the L2 cache, and
/// fit into half of the memory; at least 1, at most 256.
int buffer_sets(std::size_t bytes, const DeviceDescription &device);

} // namespace kiln
