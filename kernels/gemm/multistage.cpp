// multistage: one warpgroup that loads ahead of its own multiplications.
//
//     thread 0 | load 0,1,2 | wait 0, mma | wait 1, mma, load 3 | ... | store
//     others   |            | wait 0, mma | wait 1, mma         | ... | store
//              | prologue   | main loop                               epilogue
#include "operands.h"

#include <kiln/control.h>

namespace kiln::gemm {

Module build_multistage(const GemmProblem &problem,
                        const GemmSchedule &schedule) {
  KernelBuilder kb(gemm_kernel_name(problem, schedule), {.warpgroups = 1});
  Operands ops(kb, problem, schedule);
  Pipeline pipe(kb, schedule.stages, {ops.a, ops.b});
  Accumulator acc(f32, schedule.tile_m, schedule.tile_n);

  // Consuming tile i frees the slot of tile i - lag, for tile i - lag + stages.
  int lag = schedule.stages > 1 ? 1 : 0;
  auto load = [&](At k_tile) {
    pipe.produce([&](const Slot &slot) { ops.load(slot, k_tile); });
  };
  auto load_if_any = [&](const Value &k_tile) {
    if_(k_tile < ops.k_tiles, [&] { load(k_tile); });
  };
  auto multiply = [&] {
    pipe.consume(acc, [&](const Slot &slot) { ops.multiply(acc, slot); });
  };

  for (int i = 0; i < schedule.stages; ++i) {
    if (ops.k_tiles.is_constant())
      load(i); // fit() has no more stages than K tiles
    else
      load_if_any(constant(i32, i));
  }
  multiply(); // the first overwrites the accumulator
  if (lag == 0)
    load_if_any(constant(i32, 1));
  for_range(1, ops.k_tiles, [&](Value k_tile) {
    multiply();
    load_if_any(k_tile + (schedule.stages - lag));
  });
  acc.store(ops.d, {ops.row, ops.column}, ops.store);
  return kb.module();
}

} // namespace kiln::gemm
