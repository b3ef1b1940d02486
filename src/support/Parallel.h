// Parallel: share independent pieces of work among the cores.
#pragma once

#include "support/limits/Reserve.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <thread>
#include <vector>

namespace kiln {

/// How many threads have work.
inline unsigned workersFor(std::int64_t count) {
  std::int64_t cores = std::max(1u, std::thread::hardware_concurrency());
  return static_cast<unsigned>(std::clamp<std::int64_t>(count, 1, cores));
}

/// Call work(worker, i) for every i below `count`, on `workers` threads. `work`
/// must not throw. Where the machine gives fewer threads, those do it.
template <typename Work>
void forEach(std::int64_t count, unsigned workers, const Work &work) {
  std::atomic<std::int64_t> next = 0;
  auto loop = [&](unsigned worker) {
    for (std::int64_t i = next++; i < count; i = next++)
      work(worker, i);
  };
  std::vector<std::thread> threads;
  reserveBounded(threads, workers);
  try {
    for (unsigned worker = 1; worker < workers; ++worker)
      threads.emplace_back(loop, worker);
  } catch (const std::exception &) {
    // Neither a thread nor memory for one.
  }
  loop(0);
  for (std::thread &thread : threads)
    thread.join();
}

} // namespace kiln
