// kernel_name: a name for each kernel, and none for two.
//
// The plain kernel has the shortest name: what differs from it is added, field
// by field. A field that `fit` fills in counts as left out where it holds what
// `fit` would have chosen.
#include "fields/field_text.h"

#include <kiln/kernels/gemm.h>

namespace kiln {

/// What `fit` puts where 0 stands; 0 where the rest alone fits nothing.
static GemmSchedule filled_in(const GemmProblem &problem,
                              const GemmSchedule &schedule,
                              const DeviceDescription &device) {
  GemmSchedule open = schedule.reopened();
  try {
    return fit(problem, open, device);
  } catch (const UserError &) {
    return open;
  }
}

static std::string schedule_suffix(const GemmProblem &problem,
                                   const GemmSchedule &schedule,
                                   const DeviceDescription &device) {
  std::string text;
  GemmSchedule usual, filled = filled_in(problem, schedule, device);
  for (const Field<GemmSchedule> &field : GemmSchedule::fields()) {
    std::string value = field.get(schedule);
    if (field.is_always_said || value == field.get(usual) ||
        (field.is_open && value == field.get(filled)))
      continue;
    std::string word(field.key);
    std::erase(word, '-');
    text += fmt::format("_{}{}", word, value);
  }
  return text;
}

std::string gemm_kernel_name(const GemmProblem &problem,
                             const GemmSchedule &schedule,
                             const DeviceDescription &device) {
  std::string kind(name(schedule.kind));
  std::erase(kind, '-');
  return fmt::format("{}{}_{}x{}x{}_{}{}{}", kind,
                     fields::name_of(problem, true), schedule.tile_m,
                     schedule.tile_n, schedule.tile_k, schedule.stages,
                     fields::name_of(problem, false),
                     schedule_suffix(problem, schedule, device));
}

} // namespace kiln
