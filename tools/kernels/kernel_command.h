// kernel_command: commands that build one kernel, run it and verify what it
// gave.
//
// The last line of such a command is the verdict: PASS, FAIL, or DONE where
// nothing was verified.
#pragma once

#include "options/command_line.h"
#include "console/output_file.h"
#include "options/check_flags.h"

#include <kiln/run/compile.h>
#include <kiln/run/device.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::cli {

/// What every one of them takes.
struct KernelCommand {
  std::string device = "auto";
  bool is_unverified = false, is_without_cache = false;
  CheckFlags check;
  std::uint64_t data_seed = 0;
  std::string save_kernel_path;

  void add_to(Command command);
};

/// What one of them does.
struct KernelRun {
  const char *what;    ///< "attention"
  std::string problem; ///< in words
  std::function<Module()> build;
  /// Launch and fetch the results; false where the simulator found an error.
  std::function<bool(Device &, const Kernel &, const CheckSettings &,
                     Outputs &)>
      launch;
  std::function<ExitStatus()> verify;
};

ExitStatus run(const KernelCommand &command, const KernelRun &kernel_run);

/// The device of a name, or null where that is "none".
std::shared_ptr<Device> choose_device(const std::string &id,
                                      const SimOptions &options);

/// Memory of the device with these bytes.
Buffer copied(Device &device, const void *data, std::size_t bytes);
template <typename T>
Buffer copied(Device &device, const std::vector<T> &data) {
  return copied(device, data.data(), data.size() * sizeof(T));
}

} // namespace kiln::cli
