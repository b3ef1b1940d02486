// prove.h: a launch in every interleaving, not in three.
//
//     Proof proof = prove(*device, launch, {});
//     std::puts(proof.to_string().c_str());
//
// The launch is executed again and again, each time with another choice of who
// goes next: lanes at operations that others can see, copies, MMAs, arrivals
// and commits in flight. Orders that nobody can tell apart are executed once
// (docs/prove.md). When prove returns, memory is as the first execution left
// it.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/sim_options.h>
#include <kiln/run/device.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace KILN_API kiln {

enum class ProofVerdict : std::uint8_t {
  proved,         ///< no interleaving has an error
  counterexample, ///< one has
  gave_up,        ///< a limit came first, or something that cannot be explored
};
/// "proved", "counterexample", "gave up"
const char *name(ProofVerdict verdict);

struct ProveOptions {
  SimOptions sim; ///< its interleaving and seed do not matter
  std::uint64_t max_interleavings = 1'000'000; ///< executed; 0: no limit
  double time_limit_s = 0;                     ///< of it all; 0: none
  /// Leave nothing out that may be told apart; for small kernels, and to hold
  /// the reduction against.
  bool is_brute_force = false;
  /// The first error ends the search.
  bool stops_at_first = true;
  /// Told how many interleavings were executed and which part of the known
  /// alternatives that is, from time to time.
  std::function<void(std::uint64_t, double)> progress;
  /// What a run leaves in memory is wrong: says why; empty: it is not. Asked
  /// after each execution.
  std::function<std::string()> judge;
};

struct Proof {
  ProofVerdict verdict = ProofVerdict::gave_up;
  std::string reason; ///< why it gave up
  std::uint64_t executed =
      0; ///< interleavings, from their beginning to their end
  std::uint64_t redundant = 0; ///< begun, and given up because they were known
  std::uint64_t steps = 0;     ///< choices of the longest
  std::uint64_t ctas = 0;      ///< of the launch
  std::uint64_t instructions = 0; ///< warp instructions of the longest
  /// Different contents of memory that executions have left, as hashes.
  std::vector<std::uint64_t> final_states;
  double time_s = 0;
  double explored = 0; ///< part of the alternatives that are known
  /// Of the counterexample: what was found, and the choices that lead there.
  LaunchResult result;
  std::string wrong;             ///< what the judge said
  std::vector<std::string> path; ///< "cta0.warp2.lane0": who goes next
  std::uint64_t cluster = 0; ///< whose orders were explored when it was found
  /// The counterexample as people tell it, a line each.
  std::vector<std::string> story;
  /// Ids of all findings in all executions, warnings included.
  std::vector<std::string> findings;

  /// A few lines; the last one begins with the verdict.
  std::string to_string() const;
};

/// Throws UserError where the device is no simulator or refuses the launch.
Proof prove(Device &device, const LaunchDescription &launch,
            const ProveOptions &options);

/// Make the choices of a counterexample once more. Throws UserError where the
/// launch is another one, so that somebody who is named cannot go on.
LaunchResult replay(Device &device, const LaunchDescription &launch,
                    const std::vector<std::string> &path, std::uint64_t cluster,
                    const SimOptions &options);

/// A counterexample as a file: which launch, and the choices.
struct Counterexample {
  std::vector<std::string> ptx_paths;
  std::string launch_path; ///< the launch file
  std::size_t launch = 0;  ///< of its launches
  std::uint64_t cluster = 0;
  std::vector<std::string> path;

  /// Throws RuntimeError where it cannot be written.
  void save(const std::string &file) const;
  /// Throws UserError.
  static Counterexample load(const std::string &file);
};

} // namespace kiln
