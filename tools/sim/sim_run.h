// sim_run: the launches of a launch file on the simulator.
#pragma once

#include "launch_file.h"

#include <kiln/check/explore.h>
#include <kiln/check/report.h>
#include <kiln/check/sim.h>

namespace kiln::cli {

/// Everything that is the same in every interleaving.
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

/// The launches of a job, ready to be explored: buffers hold what they begin
/// with.
class PreparedJob {
public:
  /// Throws UserError with its place in the PTX or in the launch file where
  /// something is refused.
  PreparedJob(const SimJob &job, const SimOptions &options);

  /// Run the launches in the interleavings. `after` is told of each run while
  /// memory is as it left it.
  Exploration explore(const ExploreOptions &options, const AfterRun &after);
  /// The launches as a report has them.
  std::vector<ReportedLaunch> launches() const;
  /// What is in the buffers that somebody asks for; the others are empty.
  std::vector<std::vector<std::byte>> memory() const;

private:
  const SimJob &job_;
  std::shared_ptr<Device> device_;
  std::vector<Buffer> buffers_;
  std::shared_ptr<const LoadedModule> module_;
  std::vector<LaunchDescription> launches_;
};

/// The lines of a text, sorted.
std::vector<std::string> sorted_lines(const std::string &text);

} // namespace kiln::cli
