// main_loop: the arguments, the order of things, and the way in.
#include "main_loop.h"
#include "gemm/main_loops.h"
#include "kernel.h"
#include "vector_kernel.h"

#include <kiln/language/threads/cluster.h>
#include <kiln/language/threads/dependent_launch.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/value/control.h>

namespace kiln::gemm_kernel {

MainLoop::MainLoop(const GemmProblem &problem, const GemmSchedule &schedule,
                   const DeviceDescription &device,
                   const KernelOptions &options)
    : schedule_(schedule),
      problem_(problem, schedule, main_loop_of(device).has_tma),
      warps_(options.warpgroups * 4),
      kb_(gemm_kernel_name(problem, schedule, device), options),
      trace_(problem_.problem, schedule),
      operands_(kb_, problem_, schedule, device.sms),
      output_(kb_, problem_, schedule),
      scheduler_(declare_dims(), ceil_div(shape().m, schedule.tile_m),
                 ceil_div(shape().n, schedule.tile_n), shape().batch,
                 order(schedule)) {}

Module MainLoop::build() {
  operands_.declare_workspaces(kb_);
  output_.declare_workspaces(kb_, problem_.tiles(schedule_));
  make_barriers();
  // All threads meet there.
  operands_.make_slots(kb_, scheduler_, pipeline_options());
  make_memory();
  output_.make_buffers(kb_, operands_.first_slot());
  operands_.begin_repack(kb_, problem_.tiles(schedule_) * schedule_.split_k);
  // What is ahead in the stream may still run: up to here nothing was touched
  // that it touches. What comes next may set itself up as well.
  wait_for_dependencies();
  // Early: who finds that others do not run yet leaves its share to them.
  if (schedule_.is_split_by_grid)
    output_.begin(scheduler_.first_number());
  if (operands_.has_repack())
    operands_.repack(warps_, !is_long());
  else if (!is_long())
    launch_dependents();
  roles();
  operands_.finish();
  return kb_.module();
}

TileSchedulerOptions MainLoop::order(const GemmSchedule &schedule) {
  return {.is_persistent = schedule.is_persistent(),
          .ctas = schedule.ctas,
          .raster = schedule.raster,
          .group = schedule.raster_group,
          .cluster_m = schedule.cluster_m,
          .cluster_n = schedule.cluster_n,
          .split = schedule.split_k,
          .is_split_by_grid = schedule.is_split_by_grid};
}

/// Whether a tile takes so long that a launch ahead of time gains nothing. Few
/// CTAs with much to load are slower where the next ones already stand beside
/// them.
bool MainLoop::is_long() const {
  constexpr int kLong = 256;
  const Dim &tiles = operands_.k_tiles();
  return tiles.is_constant() && tiles.constant() / schedule_.split_k >= kLong;
}

/// The K tiles of this CTA: all of them, or its part.
MainLoop::Range MainLoop::k_range(const OutputTile &tile) const {
  const Dim &tiles = operands_.k_tiles();
  if (schedule_.split_k == 1)
    return {0, tiles, 1};
  Value parts = constant(i32, schedule_.split_k);
  Value begin = tile.rank * tiles / parts;
  Value end = (tile.rank + 1) * tiles / parts;
  return {begin, end, begin + 1};
}

/// The runtime dimensions are the last arguments, in the caller's order.
KernelBuilder &MainLoop::declare_dims() {
  GemmProblem given = shape();
  if (problem_.is_swapped)
    std::swap(given.m, given.n);
  for (const Dim &dim : {given.m, given.n, given.k, given.batch})
    if (!dim.is_constant())
      kb_.dim(dim.argument_name());
  return kb_;
}

void MainLoop::load_all() {
  scheduler_.for_each([&](const OutputTile &tile) {
    Range range = k_range(tile);
    for_range(range.begin, range.end, [&](Value k_tile) {
      trace_.producer_waits(k_tile);
      operands_.load(tile, k_tile);
      trace_.producer_loaded(k_tile);
    });
  });
}

Module build_kernel(const GemmProblem &problem, const GemmSchedule &schedule,
                    const GemmDebug &debug, const DeviceDescription &device) {
  if (schedule.kind == GemmKind::vector)
    return build_vector_kernel(problem, schedule, device);
  return main_loop_of(device).make(problem, schedule, debug, device)->build();
}

} // namespace kiln::gemm_kernel
