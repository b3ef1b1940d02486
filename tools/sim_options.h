// sim_options: the simulator's options, under the same names in every command
// that can run on it, and how its findings are shown.
#pragma once

#include <kiln/sim.h>

#include <CLI/CLI.hpp>

#include <string>

namespace kiln::cli {

struct SimFlags {
  std::string order = "eager";
  std::uint64_t seed = 0;
  std::string checks = "on";
  int threads = 0;
  int sms = 0; ///< 0: as the described device has
  std::uint64_t max_instructions = 0;

  void add_to(CLI::App &command);
  /// Throws UserError where a value is none of the accepted ones.
  SimOptions options() const;
};

/// Print a finding: "error mbarrier-over-arrival at gemm.cpp:12: ...".
void show_finding(const Finding &finding);

} // namespace kiln::cli
