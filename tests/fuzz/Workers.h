// Workers: run inputs in processes of their own, and tell of those that die.
//
// A worker takes one number after the other. Where an input kills it (a signal,
// a sanitizer, its time), the number it was at is known, the input is kept, and
// another worker goes on behind it.
#pragma once

#include "fuzz/Mutator.h"

#include <functional>

namespace kiln::fuzz {

struct WorkPlan {
  std::uint64_t inputs = 0;
  double seconds = 0; ///< 0: until all inputs are done
  int jobs = 1;
  double inputSeconds = 10; ///< of the processor, for one input
  std::string keepFolder;   ///< where inputs that break something go; may be ""
  std::function<Input(std::uint64_t)> inputAt;
  std::function<std::string(std::uint64_t)> nameOf; ///< "seed-1-input-7"
};

struct WorkResult {
  std::uint64_t outcomes[4] = {}; ///< by Outcome
  std::uint64_t defects = 0;

  std::uint64_t inputs() const;
};

/// Do it; every cause of a defect is printed once, with its first input.
WorkResult runWorkers(const WorkPlan &plan);

} // namespace kiln::fuzz
