// workspace_checks: what a kernel with memory of its own needs: sizes that are
// known.
#include "checks.h"
#include "gemm/device/operands.h"

namespace kiln {

using gemm_kernel::KernelProblem;
using gemm_kernel::refuse;

/// Throw where a size that a workspace has is known at launch alone.
static void check_known(std::initializer_list<Dim> dims, std::string_view why,
                        std::string_view instead) {
  for (const Dim &dim : dims)
    if (!dim.is_constant())
      refuse("{}, and {} is known only at launch; give a number, or {}", why,
             dim.to_string(), instead);
}

static void check_repacking(const GemmProblem &problem) {
  check_known({problem.m, problem.n, problem.k, problem.batch,
               problem.stride_a(), problem.stride_b()},
              "operands are repacked into a workspace", "repack off");
  if (is_subbyte(problem.type))
    refuse("{} is not repacked: its elements share bytes; use rows of a "
           "multiple of 16 bytes",
           name(problem.type));
}

void gemm_kernel::check_workspaces(const KernelProblem &computed,
                                   const GemmSchedule &schedule) {
  const GemmProblem &problem = computed.problem;
  if (schedule.is_repacked)
    check_repacking(problem);
  if (schedule.is_split_by_grid)
    check_known({problem.m, problem.n, problem.k, problem.batch},
                "the grid divides K through a workspace", "split-by=cluster");
}

} // namespace kiln
