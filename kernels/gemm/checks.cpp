// checks: which problems and schedules go together, and what is wrong with
// those that do not.
#include "checks.h"
#include "gemm/device/output.h"
#include "gemm/main_loops.h"

#include <kiln/base/error.h>
#include <kiln/language/tensorcore/tensor_memory.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace kiln {

using gemm_kernel::accumulator_registers;
using gemm_kernel::is_one_of;
using gemm_kernel::KernelProblem;
using gemm_kernel::main_loop_of;
using gemm_kernel::MainLoopKind;
using gemm_kernel::refuse;
using gemm_kernel::refuse_tile;
using gemm_kernel::registers_beside_sums;

int gemm_kernel::accumulator_registers(const GemmProblem &problem,
                                       const GemmSchedule &schedule) {
  // Of blocks with factors there is a sum beside the one of all.
  int sums = problem.scaling == Scaling::blocks ? 2 : 1;
  return schedule.consumer_rows() * schedule.consumer_columns() / 128 *
         size_bytes(problem.accumulator()) / 4 * sums;
}

int gemm_kernel::tensor_columns(const GemmProblem &problem,
                                const GemmSchedule &schedule) {
  constexpr int kFewest = 32;
  int columns = schedule.consumers * schedule.consumer_columns();
  if (has_scale_pieces(problem))
    columns += tensor_scale_columns(schedule.tile_m + schedule.tile_n,
                                    step_blocks(problem, schedule));
  return static_cast<int>(
      std::bit_ceil(static_cast<unsigned>(std::max(kFewest, columns))));
}

void gemm_kernel::check_dim(std::string_view label, const Dim &dim) {
  if (dim.is_constant() && dim.constant() < 1)
    refuse("{} is {}; it must be at least 1", label, dim.constant());
  if (dim.is_constant() && dim.constant() > INT32_MAX)
    refuse("{} is {}; it must be at most {}", label, dim.constant(), INT32_MAX);
  if (!dim.is_constant() && dim.op() != Dim::Op::argument)
    refuse("{} is {}; a runtime dimension is one argument", label,
           dim.to_string());
}

void gemm_kernel::check_type(const GemmProblem &problem,
                             const DeviceDescription &device) {
  static constexpr std::array kIn{
      Type::f16,  Type::bf16, Type::tf32, Type::e4m3, Type::e5m2,
      Type::e2m3, Type::e3m2, Type::e2m1, Type::i8,   Type::u8};
  if (!is_one_of(problem.type, kIn))
    refuse("gemm multiplies f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, i8 "
           "or u8, not {}",
           name(problem.type));
  const MainLoopKind &loop = main_loop_of(device);
  if (!is_float(problem.type) && !device.has(loop.integer_instruction))
    refuse("{} does not multiply {}; use --target sm_100a", device.target(),
           name(problem.type));
  bool is_byte = problem.type == Type::e4m3 || problem.type == Type::e5m2;
  if (is_byte && !device.has(loop.byte_instruction))
    refuse("{} does not multiply {}; use --target sm_89 or a newer one",
           device.target(), name(problem.type));
}

void gemm_kernel::check_out(const GemmProblem &problem,
                            const DeviceDescription &device) {
  static constexpr std::array kOut{Type::f32, Type::f16, Type::bf16, Type::e4m3,
                                   Type::i32};
  if (!is_one_of(problem.out, kOut))
    refuse("gemm writes f32, f16, bf16, e4m3 or i32, not {}",
           name(problem.out));
  if (problem.out == Type::e4m3 && !device.has("cvt.e4m3x2.f32"))
    refuse("{} does not convert to e4m3; use --target sm_89 or a newer one, or "
           "f32, f16 or bf16",
           device.target());
  if (problem.out == Type::i32 && is_float(problem.type))
    refuse("gemm of {} does not write i32; use f32, f16, bf16 or e4m3",
           name(problem.type));
}

void gemm_kernel::check_layout(const GemmProblem &problem,
                               const DeviceDescription &device) {
  bool has_any_major = problem.type == Type::f16 || problem.type == Type::bf16;
  bool is_tn = KernelProblem(problem, {}).problem.layout == GemmLayout::tn;
  if (!has_any_major && !is_tn)
    refuse("{} has no layout {}; {} takes it with K contiguous alone: tn",
           name(problem.type), name(problem.layout), name(device.tensor_core));
}

void gemm_kernel::check_accumulator(const GemmProblem &problem,
                                    const DeviceDescription &device) {
  bool is_integer = !is_float(problem.type);
  Type accumulator = problem.accumulator();
  bool has_f16 = problem.scaling == Scaling::none &&
                 (problem.type == Type::f16 || problem.type == Type::e4m3 ||
                  problem.type == Type::e5m2);
  bool fits = is_integer ? accumulator == Type::i32
                         : accumulator == Type::f32 ||
                               (accumulator == Type::f16 && has_f16);
  if (!fits)
    refuse("{} products accumulate in {}, not {}", name(problem.type),
           is_integer ? "i32"
           : has_f16  ? "f32 or f16"
                      : "f32",
           name(accumulator));
  if (accumulator == Type::f16 && !main_loop_of(device).has_f16_sums)
    refuse("{} products that accumulate in f16 take as much tensor memory as f32 "
           "on {}; use f32",
           name(problem.type), device.target());
}

void gemm_kernel::check_products(const GemmProblem &problem,
                                 const DeviceDescription &) {
  bool by_n = !problem.is_d_column_major;
  const Dim &lines = by_n ? problem.m : problem.n;
  const Dim &length = by_n ? problem.n : problem.m;
  if (problem.batch == Dim(1) || !problem.batch_stride_d)
    return;
  const Dim stride = problem.stride_d(), product = problem.product_stride_d();
  for (const Dim &dim : {lines, length, stride, product, problem.batch})
    if (!dim.is_constant())
      refuse("stride-d={} with sizes that are arguments; give M, N, batch and "
             "the strides of D as numbers",
             product.to_string());
  std::int64_t step = product.constant(), row = length.constant();
  std::int64_t behind = (lines.constant() - 1) * stride.constant() + row;
  // Side by side in rows of so many elements.
  std::int64_t apart = std::max(step, row);
  std::int64_t rows = (problem.batch.constant() - 1) * apart + row;
  if (step < behind && (step < row || stride.constant() < rows))
    refuse("the matrices of D are {} elements apart; they would overlap: use "
           "{} or more; or, side by side, {} with ldd={} or more",
           step, behind, apart, rows);
}

/// Throw where the rows of a matrix overlap, or an address would need more than
/// 63 bits.
static void check_matrix(const char *matrix,
                         const gemm_kernel::StoredMatrix &stored,
                         const Dim &batch, Type type) {
  const auto &[rows, columns, stride, product] = stored;
  if (stride.is_constant() && columns.is_constant() &&
      stride.constant() < columns.constant())
    refuse("the rows of {} are {} elements long and {} apart; they would "
           "overlap",
           matrix, columns.constant(), stride.constant());
  if (!stride.is_constant() || !rows.is_constant())
    return;
  double bytes =
      double(rows.constant()) * double(stride.constant()) * size_bytes(type);
  if (batch.is_constant() && batch.constant() > 1 && product.is_constant())
    bytes += double(batch.constant() - 1) * double(product.constant()) *
             size_bytes(type);
  if (bytes > double(std::int64_t{1} << 46))
    refuse("{} would have {:.3g} bytes; at most 2^46 can be addressed", matrix,
           bytes);
}

void gemm_kernel::check_a(const GemmProblem &problem,
                          const DeviceDescription &) {
  bool by_k = problem.a_is_k_major();
  check_matrix("A",
               {by_k ? problem.m : problem.k, by_k ? problem.k : problem.m,
                problem.stride_a(), problem.product_stride_a()},
               problem.batch, problem.type);
}

void gemm_kernel::check_b(const GemmProblem &problem,
                          const DeviceDescription &) {
  bool by_k = problem.b_is_k_major();
  check_matrix("B",
               {by_k ? problem.n : problem.k, by_k ? problem.k : problem.n,
                problem.stride_b(), problem.product_stride_b()},
               problem.batch, problem.type);
}

void gemm_kernel::check_c(const GemmProblem &problem,
                          const DeviceDescription &) {
  bool by_n = !problem.is_d_column_major;
  if (problem.has_beta)
    check_matrix("C",
                 {by_n ? problem.m : problem.n, by_n ? problem.n : problem.m,
                  problem.stride_c(), problem.product_stride_c()},
                 problem.batch, problem.out);
}

void gemm_kernel::check_d(const GemmProblem &problem,
                          const DeviceDescription &) {
  bool by_n = !problem.is_d_column_major;
  check_matrix("D",
               {by_n ? problem.m : problem.n, by_n ? problem.n : problem.m,
                problem.stride_d(), problem.product_stride_d()},
               problem.batch, problem.out);
}

/// Throw where wgmma does not cover the tile.
void gemm_kernel::check_wgmma_tile(const GemmProblem &problem,
                                   const GemmSchedule &schedule,
                                   const DeviceDescription &device) {
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  if (rows < 64 || schedule.tile_m > 256 || rows % 64 || schedule.tile_m % 64)
    refuse_tile(schedule, "M must be a multiple of {} up to 256",
                schedule.tile_m / std::max(rows, 1) * 64);
  bool is_integer = !is_float(problem.type);
  if (columns < 8 || schedule.tile_n > 256 || columns % 8 ||
      schedule.tile_n % 8)
    refuse_tile(schedule, "N must be a multiple of {} up to 256",
                schedule.tile_n / std::max(columns, 1) * 8);
  if (schedule.instruction_n < 8 || schedule.instruction_n > 256 ||
      schedule.instruction_n % 8 || columns % schedule.instruction_n)
    refuse_tile(schedule,
                "{} columns of a consumer are not covered by instructions of "
                "{}; use a divisor that is a multiple of 8",
                columns, schedule.instruction_n);
  if (is_integer && schedule.instruction_n % 16 &&
      schedule.instruction_n != 8 && schedule.instruction_n != 24)
    refuse_tile(schedule,
                "instructions of {} columns; of {} there are 8, 24 and "
                "multiples of 16",
                schedule.instruction_n, name(problem.type));
  int registers = gemm_kernel::accumulator_registers(problem, schedule);
  if (registers > device.max_accumulator_registers)
    refuse_tile(schedule,
                "its accumulator takes {} registers of each thread; a "
                "warpgroup that multiplies can hold {}",
                registers, device.max_accumulator_registers);
}

int gemm_kernel::registers_beside_sums(const GemmProblem &problem,
                                       const GemmSchedule &schedule,
                                       const DeviceDescription &device) {
  constexpr int kCopied = 72; // what threads that multiply copy word by word
  const MainLoopKind &loop = main_loop_of(device);
  KernelProblem computed(problem, {.is_repacked = schedule.is_repacked});
  bool copies = !loop.has_tma && !computed.uses_tma();
  return loop.beside_sums + (copies ? kCopied : 0);
}

/// Throw where the warps of each warpgroup do not cover the tile by mma.sync.
void gemm_kernel::check_mma_tile(const GemmProblem &problem,
                                 const GemmSchedule &schedule,
                                 const DeviceDescription &device) {
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  if (rows < 64 || schedule.tile_m > 256 || rows % 64 || schedule.tile_m % 64)
    refuse_tile(schedule, "M must be a multiple of {} up to 256",
                schedule.tile_m / std::max(rows, 1) * 64);
  if (columns < 8 || schedule.tile_n > 256 || columns % 8 ||
      schedule.tile_n % 8)
    refuse_tile(schedule, "N must be a multiple of {} up to 256",
                schedule.tile_n / std::max(columns, 1) * 8);
  if (schedule.instruction_n != columns)
    refuse_tile(schedule,
                "instructions of {} columns; those of mma.sync have 8: leave "
                "instr-n out",
                schedule.instruction_n);
  int sums = accumulator_registers(problem, schedule);
  bool has_roles = schedule.kind != GemmKind::multistage;
  int threads = (schedule.consumers + has_roles) * 128 * schedule.occupancy;
  int registers = device.registers_per_sm / threads / 8 * 8;
  if (has_roles) // the producer leaves them some
    registers += (registers - 40) / schedule.consumers / 8 * 8;
  registers = std::min(registers, has_roles ? device.max_consumer_registers
                                            : device.max_registers_per_thread);
  int beside = registers_beside_sums(problem, schedule, device);
  if (sums + beside > registers)
    refuse_tile(schedule,
                "its accumulator takes {} registers of each thread, and {} "
                "CTAs of {} threads per multiprocessor leave {} beside what "
                "multiplies; use smaller tiles or fewer CTAs",
                sums, schedule.occupancy, schedule.consumers * 128,
                std::max(0, registers - beside));
}

/// Throw where tcgen05.mma does not cover the tile, or tensor memory does not
/// hold its sums.
void gemm_kernel::check_tcgen05_tile(const GemmProblem &problem,
                                     const GemmSchedule &schedule,
                                     const DeviceDescription &device) {
  constexpr int kRows = 128; // lanes of tensor memory
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  if (rows != kRows)
    refuse_tile(schedule, "a consumer has {} rows; on {} M must give each {}",
                rows, device.target(), kRows);
  int step = schedule.cta_group == 2 ? 32 : 16;
  if (columns < step || schedule.tile_n > 256 || columns % step)
    refuse_tile(schedule, "N must be a multiple of {} up to 256",
                schedule.tile_n / std::max(columns, 1) * step);
  // A pair's halves of B are those of one instruction.
  bool is_whole = schedule.cta_group == 2;
  if (schedule.instruction_n < step || schedule.instruction_n % step ||
      columns % schedule.instruction_n ||
      (is_whole && columns != schedule.instruction_n))
    refuse_tile(schedule,
                "{} columns of a consumer are not covered by instructions of "
                "{}; use {}",
                columns, schedule.instruction_n,
                is_whole ? "all of them, two CTAs multiply together"
                         : "a divisor that is a multiple of 16");
  int all = gemm_kernel::tensor_columns(problem, schedule) * schedule.occupancy;
  if (all > device.tensor_memory_columns)
    refuse_tile(schedule,
                "the sums{} of {} consumers and {} CTAs per multiprocessor "
                "take {} columns of tensor memory; there are {}",
                gemm_kernel::has_scale_pieces(problem) ? " and factors" : "",
                schedule.consumers, schedule.occupancy, all,
                device.tensor_memory_columns);
}

/// Throw where the tile is none the instruction can cover.
void gemm_kernel::check_tile(const KernelProblem &computed,
                             const GemmSchedule &schedule,
                             const DeviceDescription &device) {
  const GemmProblem &problem = computed.problem;
  check_scaled_tile(problem, schedule);
  const MainLoopKind &loop = main_loop_of(device);
  loop.check_tile(problem, schedule, device);
  auto step_k = static_cast<int>(elements_in(problem.type, 32));
  if (schedule.tile_k < step_k || schedule.tile_k > 256 ||
      schedule.tile_k % step_k)
    refuse_tile(schedule, "K must be a multiple of {} up to 256", step_k);
  // A side stored contiguously fills whole rows of the swizzle.
  auto width = static_cast<int>(
      elements_in(problem.type, static_cast<int>(schedule.swizzle)));
  auto check_width = [&](char letter, int extent) {
    if (width && extent % width)
      refuse_tile(schedule,
                  "{} must be a multiple of {} with swizzle {} in layout {}",
                  letter, width, static_cast<int>(schedule.swizzle),
                  name(problem.layout));
  };
  check_width(problem.a_is_k_major() ? 'K' : 'M',
              problem.a_is_k_major() ? schedule.tile_k
                                     : schedule.consumer_rows());
  // Of the columns of B, wgmma leaves out what fills the last row up.
  bool is_cut = schedule.consumer_columns() != schedule.tile_n ||
                !loop.has_sums_in_registers;
  if (problem.b_is_k_major())
    check_width('K', schedule.tile_k);
  else if (is_cut)
    check_width('N', schedule.consumer_columns() / schedule.cta_group);
}

/// Throw where K cannot be divided so.
static void check_split_k(const KernelProblem &computed,
                          const GemmSchedule &schedule,
                          const DeviceDescription &device) {
  if (schedule.split_k == 1)
    return;
  using gemm_kernel::kMostOfGrid;
  int most = schedule.is_split_by_grid ? kMostOfGrid : device.max_cluster_ctas;
  if (schedule.split_k < 1 || schedule.split_k > most)
    refuse("K is divided by {} CTAs; 1 to {} {}", schedule.split_k, most,
           schedule.is_split_by_grid
               ? "of the grid can"
               : fmt::format("form a cluster; split-by=grid takes up to {}",
                             kMostOfGrid));
  GemmKind kind =
      main_loop_of(device).split_kind.value_or(GemmKind::warp_specialized);
  if (schedule.kind != kind)
    refuse("K is divided by {} CTAs in a {} schedule; use {}", schedule.split_k,
           name(schedule.kind), name(kind));
  if (schedule.cluster_m * schedule.cluster_n != 1 &&
      !schedule.is_split_by_grid)
    refuse("K is divided by {} CTAs, and a cluster of {}x{} tiles has no room "
           "for them; use cluster 1x1, or split-by=grid",
           schedule.split_k, schedule.cluster_m, schedule.cluster_n);
  if (!computed.problem.k.is_constant())
    refuse("K is divided by {} CTAs, and is an argument of the launch; give "
           "it as a number",
           schedule.split_k);
}

/// Throw where one architecture lacks what the schedule is made of.
static void check_instruction(const KernelProblem &computed,
                              const GemmSchedule &schedule,
                              const DeviceDescription &device) {
  if (schedule.cta_group != 1 && schedule.cta_group != 2)
    refuse("a CTA group of {}; 1 or 2 CTAs multiply together",
           schedule.cta_group);
  const MainLoopKind &loop = main_loop_of(device);
  if (schedule.cta_group == 2 && !loop.has_pairs)
    refuse("2 CTAs multiply together by tcgen05, and {} has {}; use "
           "cta-group=1",
           device.target(), name(device.tensor_core));
  auto lacks = [&](std::string_view what, std::string_view instead) {
    refuse("{} needs wgmma, and {} has {}; use {}", what, device.target(),
           name(device.tensor_core), instead);
  };
  if (schedule.kind == GemmKind::multistage && !loop.multistage_consumers)
    lacks("a multistage schedule", "warp-specialized, cooperative or pingpong");
  if (schedule.kind != GemmKind::multistage && !loop.has_tma)
    refuse("a {} schedule has a producer, which needs TMA; on {} use "
           "multistage",
           name(schedule.kind), device.target());
  if (schedule.is_a_in_registers && !loop.has_a_in_registers)
    lacks("A in registers", "a-from=smem");
  if (schedule.split_k > 1 && !loop.split_kind)
    refuse("K is divided by {} CTAs; on {} each tile has one: use split-k=1",
           schedule.split_k, device.target());
  if (schedule.cta_group == 1)
    return;
  if (schedule.cluster_m != 2 || schedule.cluster_n != 1)
    refuse("2 CTAs multiply together in clusters of {}x{} tiles; use cluster "
           "2x1",
           schedule.cluster_m, schedule.cluster_n);
  if (!computed.uses_tma())
    refuse("2 CTAs multiply together what TMA loads, and these rows do not "
           "begin on 16 bytes; use cta-group=1");
  if (schedule.consumer_columns() != schedule.tile_n)
    refuse("2 CTAs multiply together, and consumers divide N; use split=m");
}

/// Throw where roles, cluster or order are none.
void gemm_kernel::check_roles(const KernelProblem &computed,
                              const GemmSchedule &schedule,
                              const DeviceDescription &device) {
  check_instruction(computed, schedule, device);
  int most = schedule.kind == GemmKind::multistage
                 ? main_loop_of(device).multistage_consumers
                 : 2;
  if (schedule.consumers < 1 || schedule.consumers > most)
    refuse("{} consumers; a {} schedule has 1{}", schedule.consumers,
           name(schedule.kind), most == 2 ? " or 2" : "");
  if (schedule.kind == GemmKind::pingpong && schedule.consumers != 2)
    refuse("{} consumer; in a pingpong schedule 2 take turns",
           schedule.consumers);
  int ctas = schedule.cluster_m * schedule.cluster_n;
  if (schedule.cluster_m < 1 || schedule.cluster_n < 1 ||
      ctas > device.max_cluster_ctas)
    refuse("a cluster of {}x{} tiles; 1 to {} CTAs form one",
           schedule.cluster_m, schedule.cluster_n, device.max_cluster_ctas);
  check_split_k(computed, schedule, device);
  if (schedule.is_multicast && computed.uses_tma()) {
    auto check_parts = [&](const char *matrix, const TileLayout &tile,
                           int parts) {
      if (parts > 1 && tile.rows % (8 * parts))
        refuse("the tile of {} has {} rows in shared memory; {} CTAs cannot "
               "load parts of 8 rows of it each: use a smaller cluster or "
               "multicast off",
               matrix, tile.rows, parts);
    };
    check_parts("A", gemm_kernel::tile_of_a(computed.problem, schedule),
                schedule.cluster_n);
    check_parts("B", gemm_kernel::tile_of_b(computed.problem, schedule),
                schedule.cluster_m);
  }
  if (schedule.raster_group < 1)
    refuse("raster groups of {}; at least 1 is needed", schedule.raster_group);
  if (schedule.occupancy < 1 || schedule.occupancy > 8)
    refuse("{} CTAs per multiprocessor; 1 to 8 are possible",
           schedule.occupancy);
  if (schedule.ctas < 0 || schedule.ctas % ctas)
    refuse("{} CTAs are no whole number of clusters of {}", schedule.ctas,
           ctas);
  if (schedule.ctas && !schedule.is_persistent())
    refuse("{} CTAs, and a {} schedule has one for each tile; use cooperative "
           "or pingpong",
           schedule.ctas, name(schedule.kind));
}

/// Throw where the way out is none.
void gemm_kernel::check_epilogue(const KernelProblem &computed,
                                 const GemmSchedule &schedule,
                                 const DeviceDescription &device) {
  if (gemm_kernel::uses_sums(schedule))
    return; // D does not go out by subtiles
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  int step = main_loop_of(device).has_sums_in_registers ? 64 : rows;
  if (schedule.epilogue_m < step || rows % schedule.epilogue_m ||
      schedule.epilogue_m % step)
    refuse("an epilogue tile of {} rows; use a multiple of {} that divides {}",
           schedule.epilogue_m, step, rows);
  if (!computed.stores_by_tma()) {
    if (schedule.epilogue_n < 8 || schedule.epilogue_n > columns ||
        schedule.epilogue_n % 8)
      refuse("an epilogue tile of {} columns; use a multiple of 8 up to {}",
             schedule.epilogue_n, columns);
    return;
  }
  if (schedule.epilogue_n < 8 || columns % schedule.epilogue_n ||
      schedule.epilogue_n % 8 ||
      schedule.epilogue_n * size_bytes(computed.problem.out) % 16)
    refuse("an epilogue tile of {} columns of {}; use a multiple of 8 and of "
           "16 bytes that divides {}",
           schedule.epilogue_n, name(computed.problem.out), columns);
}

} // namespace kiln
