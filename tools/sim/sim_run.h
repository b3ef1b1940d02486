// sim_run: the launches of a launch file on the simulator, in one order of
// events.
#pragma once

#include "launch_file.h"

#include <kiln/check/sim.h>

namespace kiln::cli {

/// Everything that is the same in every order.
struct SimJob {
  std::vector<std::string> ptx_paths, ptx; ///< linked where they are several
  LaunchFile file;
  std::vector<std::optional<std::vector<std::byte>>>
      initial; ///< by buffer; nothing: poison
  /// By buffer: a bit for each byte, the lowest first; nothing: all.
  std::vector<std::optional<std::vector<std::byte>>> written;
  std::vector<std::optional<std::vector<std::byte>>> expected; ///< by buffer
};

/// A file of PTX, or of a saved kernel; of the former only `ptx` is known.
Kernel read_kernel(const std::string &path);

/// Whether a file is a launch file that names its PTX itself.
bool names_its_ptx(const std::string &path);

/// Read the PTX, the launch file and every array it names; an empty path: the
/// PTX that the launch file names. Throws UserError.
SimJob load_job(const std::string &ptx_path, const std::string &launch_path);

/// The device that its PTX is simulated on where nobody names one.
DeviceDescription device_for(const SimJob &job);

/// One order of events.
struct SimSchedule {
  Interleaving order = Interleaving::eager;
  std::uint64_t seed = 0;

  std::string to_string() const; ///< "random, seed 3"
};

/// What came of the launches in one order.
struct SimRun {
  SimSchedule schedule;
  std::vector<std::vector<std::byte>>
      memory;                       ///< by buffer; empty: nobody asks for it
  std::vector<std::string> printed; ///< lines, sorted
  std::vector<LaunchResult> results;
  bool is_finished = true; ///< no finding ended it

  /// Of all launches, one after another.
  Timeline timeline() const;
};

/// Add instructions, time and costs of `more`, and its registers.
void add_numbers(LaunchResult &sum, const LaunchResult &more);

/// Launch everything, unless one of the launches cannot be: then nothing.
/// Throws UserError with its place in the PTX or in the launch file.
SimRun run_once(const SimJob &job, SimOptions options,
                const SimSchedule &schedule);

} // namespace kiln::cli
