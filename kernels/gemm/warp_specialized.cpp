// warp_specialized: one warpgroup loads, the other multiplies.
//
//     producer | load 0 | load 1 | load 0 (when released) | ...
//     consumer |  wait 0, mma | wait 1, mma, release 0 | ...        | store
//
// The producer needs few registers and gives them to the consumer, whose
// accumulator takes half of what it gets.
#include "operands.h"

#include <kiln/control.h>
#include <kiln/threads.h>

namespace kiln::gemm {

Module build_warp_specialized(const GemmProblem &problem,
                              const GemmSchedule &schedule) {
  KernelBuilder kb(gemm_kernel_name(problem, schedule), {.warpgroups = 2});
  Operands ops(kb, problem, schedule);
  Pipeline pipe(kb, schedule.stages, {ops.a, ops.b});

  warpgroup(1, {.registers = schedule.producer_registers}, [&] {
    one_thread([&] {
      for_range(0, ops.k_tiles, [&](Value k_tile) {
        pipe.produce([&](const Slot &slot) { ops.load(slot, k_tile); });
      });
    });
  });
  warpgroup(0, {.registers = schedule.consumer_registers}, [&] {
    Accumulator acc(f32, schedule.tile_m, schedule.tile_n);
    auto multiply = [&] {
      pipe.consume(acc, [&](const Slot &slot) { ops.multiply(acc, slot); });
    };
    multiply(); // the first overwrites the accumulator
    for_range(1, ops.k_tiles, [&](Value) { multiply(); });
    acc.store(ops.d, {ops.row, ops.column}, ops.store);
  });
  return kb.module();
}

} // namespace kiln::gemm
