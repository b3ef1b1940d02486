// source_program: a program from one .cu file, compiled as `kiln run` wants it.
//
// nvcc compiles it where there is one, else clang with CUDA's headers; no ptxas
// is needed then. The executable is kept in Kiln's cache until the file, one of
// those that it includes, the flags or the compiler changes.
#pragma once

#include "scratch_folder.h"

#include <kiln/run/device_description.h>

#include <string>
#include <vector>

namespace kiln::cli {

class CudaSource {
public:
  /// `flags` are the user's, for the compiler; `libraries` is the folder of
  /// Kiln's CUDA libraries. Throws UserError where the file cannot be compiled;
  /// what the compiler has to say is on stderr.
  CudaSource(const std::string &path, const std::vector<std::string> &flags,
             const DeviceDescription &device, const std::string &libraries);

  /// The executable, while this lives.
  const std::string &program() const { return program_; }

private:
  void compile(const std::string &path, const std::vector<std::string> &flags,
               const DeviceDescription &device, const std::string &libraries);

  ScratchFolder folder_{"kiln-run"};
  std::string program_;
};

/// What nvcc needs to hear so that `kiln run` can run what it makes, but for
/// lines.
std::string nvcc_flags(const DeviceDescription &device);

} // namespace kiln::cli
