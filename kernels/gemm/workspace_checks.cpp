// workspace_checks: what a kernel with memory of its own needs: sizes that are
// known, and CTAs that are all there at once.
#include "checks.h"
#include "operands.h"

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

/// Throw where CTAs would wait for some that the device cannot hold beside
/// them.
static void check_all_at_once(const GemmProblem &problem,
                              const GemmSchedule &schedule,
                              const DeviceDescription &device,
                              std::string_view why, std::string_view instead) {
  auto blocks =
      ceil_div(ceil_div(problem.m, schedule.tile_m), schedule.cluster_m) *
      ceil_div(ceil_div(problem.n, schedule.tile_n), schedule.cluster_n) *
      problem.batch;
  int cluster = schedule.cluster_ctas();
  std::int64_t ctas = blocks.constant() * schedule.cluster_m *
                      schedule.cluster_n * schedule.split_k;
  std::int64_t at_once = std::int64_t{device.resident_clusters(cluster)} *
                         schedule.occupancy * cluster;
  if (ctas > at_once)
    refuse("{} CTAs wait for each other while {}, and {} holds {} of them at "
           "once; use {}",
           ctas, why, device.name, at_once, instead);
}

static void check_repacking(const GemmProblem &problem,
                            const GemmSchedule &schedule,
                            const DeviceDescription &device) {
  check_known({problem.m, problem.n, problem.k, problem.batch,
               problem.stride_a(), problem.stride_b()},
              "operands are repacked into a workspace", "repack off");
  if (is_subbyte(problem.type))
    refuse("{} is not repacked: its elements share bytes; use rows of a "
           "multiple of 16 bytes",
           name(problem.type));
  if (!schedule.is_persistent())
    check_all_at_once(problem, schedule, device, "operands are repacked",
                      "a persistent schedule, or repack off");
}

void gemm_kernel::check_workspaces(const KernelProblem &computed,
                                   const GemmSchedule &schedule,
                                   const DeviceDescription &device) {
  const GemmProblem &problem = computed.problem;
  if (schedule.is_repacked)
    check_repacking(problem, schedule, device);
  if (!schedule.is_split_by_grid)
    return;
  check_known({problem.m, problem.n, problem.k, problem.batch},
              "the grid divides K through a workspace", "split-by=cluster");
  check_all_at_once(problem, schedule, device, "they divide K",
                    "fewer, or split-by=cluster");
}

} // namespace kiln
