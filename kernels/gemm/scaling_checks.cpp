// scaling_checks: which products have factors, and narrow elements.
#include "checks.h"
#include "gemm/main_loops.h"

namespace kiln::gemm_kernel {

/// Throw where rows of elements that share bytes do not begin where TMA can
/// copy them.
static void check_narrow_rows(const GemmProblem &problem) {
  if (!is_subbyte(problem.type))
    return;
  std::int64_t step = elements_in(problem.type, 16);
  for (const auto &[matrix, stride] :
       {std::pair{"A", problem.stride_a()}, {"B", problem.stride_b()}})
    if (!stride.is_constant() || stride.constant() % step)
      refuse("the rows of {} are {} elements of {} apart; use a number that is "
             "a multiple of {}, 16 bytes",
             matrix, stride.to_string(), name(problem.type), step);
  for (const auto &[matrix, stride] :
       {std::pair{"A", problem.product_stride_a()},
        {"B", problem.product_stride_b()}})
    if (problem.batch != Dim(1) &&
        (!stride.is_constant() || stride.constant() % step))
      refuse("the matrices of {} are {} elements of {} apart; use a number "
             "that is a multiple of {}, 16 bytes",
             matrix, stride.to_string(), name(problem.type), step);
}

/// Throw where the type has no such factors, or the architecture.
void check_scaling(const GemmProblem &problem,
                   const DeviceDescription &device) {
  check_narrow_rows(problem);
  static constexpr std::array kMx{Type::e4m3, Type::e5m2, Type::e2m3,
                                  Type::e3m2, Type::e2m1};
  bool is_mx = is_one_of(problem.type, kMx);
  bool is_nv = problem.type == Type::e2m1;
  auto refuse_type = [&](std::string_view types) {
    refuse("scales={} of {}; {} them", name(problem.scaling),
           name(problem.type), types);
  };
  if (is_subbyte(problem.type) && !main_loop_of(device).has_subbyte)
    refuse("{} is multiplied by tcgen05, and {} has {}; use --target sm_100a",
           name(problem.type), device.target(), name(device.tensor_core));
  switch (problem.scaling) {
  case Scaling::none:
    if (is_nv)
      refuse("{} is multiplied with factors; use scales=mx or scales=nv",
             name(problem.type));
    return;
  case Scaling::tensor:
    if (problem.type != Type::e4m3 && problem.type != Type::e5m2)
      refuse_type("e4m3 and e5m2 have");
    return;
  case Scaling::blocks:
    if (problem.type != Type::e4m3)
      refuse_type("e4m3 has");
    if (!main_loop_of(device).has_block_scales)
      refuse("scales=blocks on {}, which has {}; use scales={}, or sm_90a",
             device.target(), name(device.tensor_core),
             main_loop_of(device).has_hardware_scales ? "mx" : "tensor");
    if (problem.is_d_column_major)
      refuse("scales=blocks has factors of rows of A; use d=row");
    return;
  case Scaling::mx:
    if (!is_mx)
      refuse_type("e4m3, e5m2, e2m3, e3m2 and e2m1 have");
    break;
  case Scaling::nv:
    if (!is_nv)
      refuse_type("e2m1 has");
    break;
  }
  if (!main_loop_of(device).has_hardware_scales)
    refuse("scales={} needs tcgen05, and {} has {}; use scales={}",
           name(problem.scaling), device.target(), name(device.tensor_core),
           problem.type == Type::e4m3 ? "blocks" : "tensor");
}

/// Throw where steps and tiles are not whole blocks, or pieces, of factors.
void check_scaled_tile(const GemmProblem &problem,
                       const GemmSchedule &schedule) {
  if (problem.scaling == Scaling::none || problem.scaling == Scaling::tensor)
    return;
  ScalingBlock block = block_of(problem.scaling);
  if (problem.scaling == Scaling::blocks) {
    if (schedule.tile_k != block.k)
      refuse_tile(schedule, "with scales=blocks K must be {}", block.k);
    if (block.b_columns % schedule.tile_n)
      refuse_tile(schedule, "with scales=blocks N must be a divisor of {}",
                  block.b_columns);
    if (schedule.kind == GemmKind::multistage || schedule.is_a_in_registers ||
        schedule.is_swapped)
      refuse("scales=blocks in a schedule {}; use warp-specialized, "
             "cooperative or pingpong with A in shared memory",
             schedule.is_swapped          ? "that is swapped"
             : schedule.is_a_in_registers ? "with A in registers"
                                          : "of one warpgroup (multistage)");
    return;
  }
  int k = block.k * kScalePieceBlocks;
  if (schedule.tile_k % k || schedule.tile_n % kScalePieceRows)
    refuse_tile(schedule,
                "with scales={} K must be a multiple of {} and N of {}",
                name(problem.scaling), k, kScalePieceRows);
  constexpr int kLanes = 32; // columns of B whose factors lie side by side
  if (schedule.instruction_n % kLanes)
    refuse_tile(schedule,
                "instructions of {} columns; with scales={} use a multiple of "
                "{}",
                schedule.instruction_n, name(problem.scaling), kLanes);
}

} // namespace kiln::gemm_kernel
