// Seeds: the kernels that the fuzzer begins with, each with a launch that runs.
#pragma once

#include "fuzz/Launch.h"
#include "fuzz/Statements.h"

namespace kiln::fuzz {

struct Seed {
  std::string name;
  Statements statements; ///< of a module with one entry
  Launch launch;
};

/// Always in the same order.
struct Seeds {
  std::vector<Seed> kernels; ///< of the corpus, tests/broken and tests/cli
  std::vector<Seed> probes;  ///< of tests/golden: many, and small
};
Seeds readSeeds();

} // namespace kiln::fuzz
