// schedule: the fields of a schedule, a row each.
#pragma once

#include <kiln/kernels/gemm.h>

#include <span>
#include <string>
#include <string_view>

namespace kiln::gemm_kernel {

struct ScheduleField {
  std::string_view word;    ///< "cluster", as in "cluster=2x1"
  std::string_view meaning; ///< for the help of the option
  bool is_open;             ///< 0 stands for what fits the rest (`fit`)
  std::string (*get)(const GemmSchedule &);
  /// Throws UserError where the value cannot be read; `word` is for it.
  void (*set)(GemmSchedule &, std::string_view word, const std::string &value);

  /// Part of every text and name, not only where it is not the default.
  bool is_always_said() const { return word == "stages"; }
};

/// In the order in which they are written.
std::span<const ScheduleField> schedule_fields();

} // namespace kiln::gemm_kernel
