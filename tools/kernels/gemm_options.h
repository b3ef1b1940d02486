// gemm_options.h: the words on the command line that describe a product, the
// same in every command that takes one.
//
// Each field of GemmProblem and GemmSchedule is an option: `--cluster 2x1` is
// what "cluster=2x1" is in a text. What the command line leaves out is as
// pick_schedule chose it, or, with a schedule named, as GemmSchedule has it.
#pragma once

#include "options/command_line.h"
#include "options/field_flags.h"

#include <kiln/run/assemble.h>
#include <kiln/run/device.h>
#include <kiln/kernels/gemm_reference.h>

#include <optional>
#include <string>
#include <vector>

namespace kiln::cli {

struct GemmOptions {
  std::vector<std::string> sizes; ///< M N K as written
  std::string schedule_kind = "auto";
  std::string tile;
  std::string target; ///< what kernels are built for; empty: the device's
  std::vector<std::string> runtime_dims; ///< of m, n, k, batch
  std::optional<double> alpha, beta;

  /// Declare all options but the sizes.
  void add_to(Command command);
  /// Those of the problem alone.
  void add_problem_to(Command command);

  /// The problem with every size a number.
  GemmProblem sized_problem() const;
  /// The problem of a text, "512x512x64 nt"; what that leaves out is as the
  /// options say.
  GemmProblem sized_problem(const std::string &text) const;
  /// The problem the kernel is built for: dimensions named by --runtime are
  /// arguments.
  GemmProblem with_arguments(const GemmProblem &sized) const;
  /// The problem as the reference computes it.
  ReferenceGemm reference(const GemmProblem &sized) const;

  /// The device that a kernel is built for: as --target says, else the one it
  /// runs on, if any. Throws UserError where that does not run it.
  DeviceDescription built_for(const Device *device) const;

  /// The schedule asked for, not fitted yet. Where no stages are asked for,
  /// those that fit.
  GemmSchedule schedule(const GemmProblem &problem,
                        const DeviceDescription &device) const;
  /// The schedule as it is used; also refuses sizes that the kernel could not
  /// take at run time.
  GemmSchedule fitted_schedule(const GemmProblem &sized,
                               const DeviceDescription &device) const;
  /// --stages, where it was given.
  std::optional<int> asked_stages() const;

private:
  GemmProblem usual_problem() const;
  GemmSchedule with_fields(GemmSchedule schedule) const;

  FieldFlags<GemmProblem> problem_fields_;
  FieldFlags<GemmSchedule> schedule_fields_;
};

/// Declare --ptxas and --allow.
void add_to(Command command, AssembleOptions &options);

} // namespace kiln::cli
