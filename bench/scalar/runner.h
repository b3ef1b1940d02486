// runner.h: a case, run once on the simulator or by the host.
#pragma once

#include "case.h"

#include <kiln/check/sim.h>

#include <map>
#include <memory>
#include <utility>

namespace scalar {

/// How the simulator is asked to run a case.
struct Setting {
  bool has_checks = false;
  int threads = 1; ///< of the host; 0: all

  auto operator<=>(const Setting &) const = default;
};

/// What one run took, and the warp instructions in it.
struct Sample {
  double cpu_us = 0; ///< of all threads
  double wall_us = 0;
  double instructions = 0;

  /// The fastest of both: others may use the cores too.
  void keep_best(const Sample &other);
};

class Runner {
public:
  /// Launch the case; its arrays begin anew. Throws RuntimeError where a
  /// finding comes or, the first time, where the result is not that of the
  /// host.
  Sample simulate(Case &one, const Setting &setting);
  /// Run it by the host alone.
  Sample on_host(Case &one);

private:
  struct Opened {
    std::shared_ptr<kiln::Device> device;
    std::map<std::string, std::shared_ptr<kiln::LoadedModule>> modules;
    std::map<std::string, bool> compared; ///< cases
  };
  Opened &open(const Setting &setting);

  std::map<Setting, Opened> opened_;
};

} // namespace scalar
