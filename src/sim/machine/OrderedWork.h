// OrderedWork: pieces of work that are done in the order of their issue.
//
// The tensor core takes what a warpgroup or a thread gives it in order; when,
// the order of the run decides. Doing one does all before it.
#pragma once

#include "sim/program/Lazy.h"

#include <cstdint>
#include <functional>

namespace kiln::sim {

class OrderedWork {
public:
  /// Add one behind all others; its number.
  std::uint64_t add(std::function<void()> work) {
    inFlight_.push_back(std::move(work));
    return first_ + inFlight_.size() - 1;
  }
  /// Do every piece up to `number`.
  void finish(std::uint64_t number) {
    while (!inFlight_.empty() && first_ <= number) {
      std::function<void()> work = std::move(inFlight_.front());
      inFlight_.pop_front();
      ++first_;
      work();
    }
  }
  void finishAll() { finish(first_ + inFlight_.size()); }

private:
  std::uint64_t first_ = 0; ///< the number of the oldest
  Queue<std::function<void()>> inFlight_;
};

} // namespace kiln::sim
