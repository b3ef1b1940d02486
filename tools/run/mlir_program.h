// mlir_program: a program of MLIR's, lowered by MLIR's own tools, to be run by
// them on Kiln's runtime.
#pragma once

#include "scratch_folder.h"

#include <kiln/run/device_description.h>

#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

class MlirProgram {
public:
  /// Lower it for the device, with its lines. Throws UserError where a tool is
  /// missing, says no, or leaves no kernel; what the tool has to say is on
  /// stderr. `passes` run first, as --pass-pipeline has them; empty: none.
  MlirProgram(const std::string &path, const DeviceDescription &device,
              std::string passes);

  /// What to run, and its words: `runtime` is Kiln's library, `words` go to
  /// mlir-runner too.
  const std::string &runner() const { return runner_; }
  std::vector<std::string> words(const std::string &runtime,
                                 const std::vector<std::string> &words) const;

private:
  std::string passes_;
  std::optional<ScratchFolder> folder_; ///< of the files on the way
  std::string runner_;
  std::string result_; ///< of main: void, i32, i64, f32
  std::vector<std::string> libraries_;

  std::string pipeline(const std::string &tool,
                       const DeviceDescription &device) const;
  void lower(const std::string &tool, const std::string &path,
             const DeviceDescription &device);
};

} // namespace kiln::cli
