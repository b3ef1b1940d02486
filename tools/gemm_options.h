// gemm_options.h: the words on the command line that describe a product, the
// same in every command that takes one.
#pragma once

#include <kiln/assemble.h>
#include <kiln/gemm.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace kiln::cli {

struct GemmOptions {
  std::vector<std::string> sizes; ///< M N K as written
  std::string type = "f16", out = "f32", layout = "tn";
  std::string schedule_kind = "warp-specialized";
  std::string tile = "128x128x64";
  int stages = GemmSchedule().stages;
  std::vector<std::string> runtime_dims; ///< of m, n, k

  /// Declare all options but the sizes.
  void add_to(CLI::App &command);

  /// The problem with every size a number.
  GemmProblem sized_problem() const;
  /// The problem the kernel is built for: dimensions named by --runtime are
  /// arguments.
  GemmProblem problem() const;
  GemmSchedule schedule() const;
  /// The schedule as it is used; also refuses sizes that the kernel could not
  /// take at run time.
  GemmSchedule fitted_schedule() const;
};

/// Declare --ptxas and --allow.
void add_to(CLI::App &command, AssembleOptions &options);

} // namespace kiln::cli
