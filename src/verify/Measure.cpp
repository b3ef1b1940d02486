// Measure: bursts, rounds and what is made of them.
#include "kiln/measure/measure.h"

#include <algorithm>
#include <cmath>
#include <thread>

namespace kiln {

double median(Samples samples) {
  if (samples.empty())
    return std::nan("");
  std::sort(samples.begin(), samples.end());
  std::size_t middle = samples.size() / 2;
  if (samples.size() % 2)
    return samples[middle];
  return (samples[middle - 1] + samples[middle]) / 2;
}

double spread(const Samples &samples) {
  if (samples.empty())
    return std::nan("");
  auto [least, most] = std::minmax_element(samples.begin(), samples.end());
  return (*most - *least) / median(samples);
}

Stopwatch::Stopwatch(Device &device)
    : device_(device), stream_(device.create_stream()),
      start_(device.create_event()), end_(device.create_event()) {}

double Stopwatch::burst(const Contender &contender, int launches) {
  device_.record(start_, stream_);
  for (int i = 0; i < launches; ++i)
    contender.launches[next_++ % contender.launches.size()](stream_);
  device_.record(end_, stream_);
  device_.synchronize(stream_);
  return device_.elapsed_us(start_, end_) / launches;
}

int Stopwatch::launches_for(const Contender &contender, const BenchPlan &plan) {
  burst(contender, 1); // the first is slow: its code is loaded
  double one_us = std::max(burst(contender, 3), 0.1);
  double wanted_us =
      std::chrono::duration<double, std::micro>(plan.burst).count();
  return static_cast<int>(std::clamp(std::ceil(wanted_us / one_us), 3.0, 1e4));
}

/// One burst of each contender, in turns.
static void take_round(Stopwatch &watch,
                       const std::vector<Contender> &contenders,
                       const std::vector<int> &launches,
                       std::chrono::milliseconds pause,
                       const std::function<void(std::size_t)> &after_burst,
                       std::vector<Samples> &samples) {
  for (std::size_t i = 0; i < contenders.size(); ++i) {
    std::this_thread::sleep_for(pause);
    samples[i].push_back(watch.burst(contenders[i], launches[i]));
    if (after_burst)
      after_burst(i);
  }
}

static std::vector<int> all_launches(Stopwatch &watch,
                                     const std::vector<Contender> &contenders,
                                     const BenchPlan &plan) {
  std::vector<int> launches;
  for (const Contender &contender : contenders)
    launches.push_back(watch.launches_for(contender, plan));
  return launches;
}

std::vector<Samples> measure_rested(Stopwatch &watch,
                                    const std::vector<Contender> &contenders,
                                    const BenchPlan &plan) {
  std::vector<int> launches = all_launches(watch, contenders, plan);
  std::vector<Samples> samples(contenders.size());
  for (int round = 0; round < plan.rounds; ++round)
    take_round(watch, contenders, launches, plan.pause, plan.after_burst,
               samples);
  return samples;
}

std::vector<Samples> measure_sustained(Stopwatch &watch,
                                       const std::vector<Contender> &contenders,
                                       const BenchPlan &plan) {
  using namespace std::chrono;
  std::vector<int> launches = all_launches(watch, contenders, plan);
  std::vector<Samples> samples(contenders.size());
  auto end = steady_clock::now() + plan.settle;
  while (steady_clock::now() < end)
    take_round(watch, contenders, launches, milliseconds(0), nullptr, samples);
  for (Samples &thrown_away : samples)
    thrown_away.clear();
  for (int round = 0; round < plan.rounds; ++round)
    take_round(watch, contenders, launches, milliseconds(0), plan.after_burst,
               samples);
  return samples;
}

int buffer_sets(std::size_t bytes, const DeviceDescription &device) {
  auto size = static_cast<double>(std::max<std::size_t>(bytes, 1));
  double wanted =
      std::floor(2.0 * static_cast<double>(device.l2_bytes) / size) + 1;
  double most = static_cast<double>(device.memory_bytes) / 2 / size;
  return static_cast<int>(std::clamp(std::min(wanted, most), 1.0, 256.0));
}

} // namespace kiln
