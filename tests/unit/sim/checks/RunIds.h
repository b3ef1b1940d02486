// RunIds: what a kernel gives in several interleavings, by ids alone.
#pragma once

#include "unit/sim/RunKernel.h"

namespace kiln::sim {

/// What a kernel gives under one order, one "id at the PTX's words" each.
inline std::vector<std::string> idsOf(RunKernel &run) {
  std::vector<std::string> ids;
  for (const Finding &finding : run.run().findings)
    ids.push_back(finding.id);
  return ids;
}

using Ids = std::vector<std::string>;

/// The same under all orders, and some seeds of the random one.
inline void expectIds(const std::string &instructions, const Ids &expected,
                      Dim3 grid = {1, 1, 1}, int threads = 32,
                      Dim3 cluster = {1, 1, 1},
                      const std::string &target = "sm_90a") {
  for (Interleaving order : kOrders)
    for (std::uint64_t seed = 0; seed < (order == Interleaving::random ? 4 : 1);
         ++seed) {
      RunKernel run(instructions, target);
      run.output(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
      run.input(std::vector<std::uint32_t>(RunKernel::kBufferBytes / 4));
      run.config.grid = grid;
      run.config.block = {static_cast<std::uint32_t>(threads), 1, 1};
      run.config.cluster = cluster;
      run.config.interleaving = order;
      run.config.seed = seed;
      EXPECT_EQ(idsOf(run), expected)
          << "order " << int(order) << ", seed " << seed;
    }
}

} // namespace kiln::sim
