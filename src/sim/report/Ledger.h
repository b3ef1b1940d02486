// Ledger: where the warps of a launch stand and what they wait for, a line for
// those who wait for the same. For the findings that end a launch.
#pragma once

#include "sim/machine/Machine.h"

namespace kiln::sim {

/// Lines of a ledger, and places in a line, that are shown.
inline constexpr std::size_t kLines = 32, kPlaces = 6;

/// What some lanes wait for.
struct Wait {
  std::string what;   ///< "barrier 1: 32 of 64 threads have arrived"
  std::string source; ///< who has sent, who could have; may be empty
  const Op *op = nullptr;
  FindingObject object;
  const char *kind = "running";  ///< Finding::Waiting::kind
  std::uint64_t number = 0;      ///< of a barrier of the CTA
};

/// Lanes with the same wait, one warp after another.
struct Line {
  Dim3 cta;
  int first, last; ///< threads
  Wait wait;
};

/// "a.cu:3, a.cu:9 and 2 more"
std::string places(const Machine &machine, const std::vector<const Op *> &ops);
/// Instructions of the kernel for which `test` holds.
template <typename Test>
std::vector<const Op *> instructions(const Machine &machine, Test &&test) {
  std::vector<const Op *> found;
  for (const Op &op : machine.code().ops)
    if (test(op))
      found.push_back(&op);
  return found;
}
/// What a wait for the phase of that parity is missing.
Wait waitForMbarrier(const Machine &machine, const Warp &warp,
                     std::uint32_t address, std::uint32_t parity);
/// Where everyone stands while the launch is under way.
std::vector<Line> linesOf(Machine &machine,
                          const std::vector<Cluster *> &clusters);
std::string showAll(const Machine &machine, const std::vector<Line> &lines);
/// The same for a finding: who waits for whom.
std::vector<Finding::Waiting>
waitsOf(const Machine &machine, const std::vector<Cluster *> &clusters,
        const std::vector<Line> &lines);

} // namespace kiln::sim
