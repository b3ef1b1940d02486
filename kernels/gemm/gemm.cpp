// gemm: which problems and schedules go together, and what a schedule that
// leaves things open becomes.
#include "kernel.h"
#include "output.h"

#include <kiln/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace kiln {

using gemm_kernel::KernelProblem;

template <typename... Args>
[[noreturn]] static void refuse(fmt::format_string<Args...> format,
                                Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <std::size_t N>
static bool is_one_of(Type type, const std::array<Type, N> &types) {
  return std::find(types.begin(), types.end(), type) != types.end();
}

/// Throw where a dimension is none.
static void check_dims(const GemmProblem &problem) {
  for (const auto &[letter, dim] : {std::pair{"M", problem.m},
                                    {"N", problem.n},
                                    {"K", problem.k},
                                    {"batch", problem.batch}}) {
    if (dim.is_constant() && dim.constant() < 1)
      refuse("{} is {}; it must be at least 1", letter, dim.constant());
    if (dim.is_constant() && dim.constant() > INT32_MAX)
      refuse("{} is {}; it must be at most {}", letter, dim.constant(),
             INT32_MAX);
    if (!dim.is_constant() && dim.op() != Dim::Op::argument)
      refuse("{} is {}; a runtime dimension is one argument", letter,
             dim.to_string());
  }
}

/// Throw where the types are none that wgmma multiplies, or D cannot hold.
static void check_types(const GemmProblem &problem) {
  static constexpr std::array kIn{Type::f16,  Type::bf16, Type::tf32,
                                  Type::e4m3, Type::e5m2, Type::i8,
                                  Type::u8};
  static constexpr std::array kOut{Type::f32, Type::f16, Type::bf16, Type::e4m3,
                                   Type::i32};
  if (!is_one_of(problem.type, kIn))
    refuse("gemm multiplies f16, bf16, tf32, e4m3, e5m2, i8 or u8, not {}",
           name(problem.type));
  if (!is_one_of(problem.out, kOut))
    refuse("gemm writes f32, f16, bf16, e4m3 or i32, not {}",
           name(problem.out));
  bool is_integer = !is_float(problem.type);
  if (problem.out == Type::i32 && !is_integer)
    refuse("gemm of {} does not write i32; use f32, f16, bf16 or e4m3",
           name(problem.type));
  Type accumulator = problem.accumulator();
  bool has_f16 = problem.type == Type::f16 || problem.type == Type::e4m3 ||
                 problem.type == Type::e5m2;
  bool fits = is_integer ? accumulator == Type::i32
                         : accumulator == Type::f32 ||
                               (accumulator == Type::f16 && has_f16);
  if (!fits)
    refuse("products of {} are added up in {}, not in {}", name(problem.type),
           is_integer ? "i32"
           : has_f16  ? "f32 or f16"
                      : "f32",
           name(accumulator));
  bool has_any_major = problem.type == Type::f16 || problem.type == Type::bf16;
  bool is_tn = KernelProblem(problem, {}).problem.layout == GemmLayout::tn;
  if (!has_any_major && !is_tn)
    refuse("{} has no layout {}; wgmma takes it with K contiguous alone: tn",
           name(problem.type), name(problem.layout));
}

/// Throw where rows overlap, or an address would need more than 63 bits.
static void check_strides(const GemmProblem &problem) {
  auto check = [&](const char *matrix, const Dim &rows, const Dim &columns,
                   const Dim &stride, Type type) {
    if (stride.is_constant() && columns.is_constant() &&
        stride.constant() < columns.constant())
      refuse("the rows of {} are {} elements long and {} apart; they would "
             "overlap",
             matrix, columns.constant(), stride.constant());
    if (!stride.is_constant() || !rows.is_constant())
      return;
    double bytes =
        double(rows.constant()) * double(stride.constant()) * size_bytes(type);
    if (problem.batch.is_constant())
      bytes *= double(problem.batch.constant());
    if (bytes > double(std::int64_t{1} << 46))
      refuse("{} would have {:.3g} bytes; at most 2^46 can be addressed",
             matrix, bytes);
  };
  bool a_by_k = problem.a_is_k_major(), b_by_k = problem.b_is_k_major();
  bool by_n = !problem.is_d_column_major;
  check("A", a_by_k ? problem.m : problem.k, a_by_k ? problem.k : problem.m,
        problem.stride_a(), problem.type);
  check("B", b_by_k ? problem.n : problem.k, b_by_k ? problem.k : problem.n,
        problem.stride_b(), problem.type);
  const Dim &rows = by_n ? problem.m : problem.n;
  const Dim &columns = by_n ? problem.n : problem.m;
  check("D", rows, columns, problem.stride_d(), problem.out);
  if (problem.has_beta)
    check("C", rows, columns, problem.stride_c(), problem.out);
}

static void check_problem(const GemmProblem &problem) {
  check_dims(problem);
  check_types(problem);
  check_strides(problem);
}

/// What a schedule leaves open and can be said without the others.
static GemmSchedule filled(const KernelProblem &computed,
                           const GemmSchedule &schedule) {
  const GemmProblem &problem = computed.problem;
  GemmSchedule full = schedule;
  if (full.consumers == 0)
    full.consumers = full.is_persistent() ? 2 : 1;
  if (full.instruction_n == 0)
    full.instruction_n = full.consumer_columns();
  if (full.epilogue_m == 0)
    full.epilogue_m = 64;
  if (full.epilogue_n == 0)
    full.epilogue_n = gemm_kernel::subtile_columns(full, problem.out);
  // Nothing is multicast that threads copy; and one warpgroup that does
  // everything has no thread to tell other CTAs of a released slot.
  if (full.kind == GemmKind::multistage || !computed.uses_tma())
    full.is_multicast = false;
  if (full.cluster_m * full.cluster_n == 1)
    full.is_multicast = GemmSchedule{}.is_multicast;
  // Rows shorter than the swizzle have a narrower one.
  auto row_bytes = [&] {
    int shortest = full.tile_k;
    if (!problem.a_is_k_major())
      shortest = std::min(shortest, full.tile_m);
    if (!problem.b_is_k_major())
      shortest = std::min(shortest, full.tile_n);
    return shortest * size_bytes(problem.type);
  };
  while (full.swizzle > Swizzle::b32 &&
         row_bytes() < static_cast<int>(full.swizzle))
    full.swizzle = static_cast<Swizzle>(static_cast<int>(full.swizzle) / 2);
  return full;
}

/// Of each thread that multiplies.
static int accumulator_registers(const GemmProblem &problem,
                                 const GemmSchedule &schedule) {
  return schedule.consumer_rows() * schedule.consumer_columns() / 128 *
         size_bytes(problem.accumulator()) / 4;
}

/// Throw where the tile is none the instruction can cover.
static void check_tile(const KernelProblem &computed,
                       const GemmSchedule &schedule,
                       const DeviceDescription &device) {
  const GemmProblem &problem = computed.problem;
  auto refuse_tile = [&](const std::string &why) {
    refuse("tile {}x{}x{}: {}", schedule.tile_m, schedule.tile_n,
           schedule.tile_k, why);
  };
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  if (rows < 64 || schedule.tile_m > 256 || rows % 64 || schedule.tile_m % 64)
    refuse_tile(fmt::format("M must be a multiple of {} up to 256",
                            schedule.tile_m / std::max(rows, 1) * 64));
  bool is_integer = !is_float(problem.type);
  if (columns < 8 || schedule.tile_n > 256 || columns % 8 ||
      schedule.tile_n % 8)
    refuse_tile(fmt::format("N must be a multiple of {} up to 256",
                            schedule.tile_n / std::max(columns, 1) * 8));
  if (schedule.instruction_n < 8 || schedule.instruction_n > 256 ||
      schedule.instruction_n % 8 || columns % schedule.instruction_n)
    refuse_tile(fmt::format("{} columns of a consumer are not covered by "
                            "instructions of {}; use a divisor that is a "
                            "multiple of 8",
                            columns, schedule.instruction_n));
  if (is_integer && schedule.instruction_n % 16 &&
      schedule.instruction_n != 8 && schedule.instruction_n != 24)
    refuse_tile(fmt::format("instructions of {} columns; of {} there are 8, 24 "
                            "and multiples of 16",
                            schedule.instruction_n, name(problem.type)));
  int step_k = 32 / size_bytes(problem.type);
  if (schedule.tile_k < step_k || schedule.tile_k > 256 ||
      schedule.tile_k % step_k)
    refuse_tile(fmt::format("K must be a multiple of {} up to 256", step_k));
  // A side stored contiguously fills whole rows of the swizzle.
  int width = static_cast<int>(schedule.swizzle) / size_bytes(problem.type);
  auto check_width = [&](char letter, int extent) {
    if (width && extent % width)
      refuse_tile(fmt::format(
          "{} must be a multiple of {} with swizzle {} in layout {}", letter,
          width, static_cast<int>(schedule.swizzle), name(problem.layout)));
  };
  check_width(problem.a_is_k_major() ? 'K' : 'M',
              problem.a_is_k_major() ? schedule.tile_k : rows);
  check_width(problem.b_is_k_major() ? 'K' : 'N',
              problem.b_is_k_major() ? schedule.tile_k : columns);
  int registers = accumulator_registers(problem, schedule);
  if (registers > device.max_accumulator_registers)
    refuse_tile(fmt::format("its accumulator takes {} registers of each "
                            "thread; a warpgroup that multiplies can hold {}",
                            registers, device.max_accumulator_registers));
}

/// Throw where K cannot be divided so.
static void check_split_k(const KernelProblem &computed,
                          const GemmSchedule &schedule,
                          const DeviceDescription &device) {
  if (schedule.split_k == 1)
    return;
  if (schedule.split_k < 1 || schedule.split_k > device.max_cluster_ctas)
    refuse("K is divided by {} CTAs; 1 to {} form a cluster", schedule.split_k,
           device.max_cluster_ctas);
  if (schedule.kind != GemmKind::warp_specialized)
    refuse("K is divided by {} CTAs in a {} schedule; use warp-specialized",
           schedule.split_k, name(schedule.kind));
  if (schedule.cluster_m * schedule.cluster_n != 1)
    refuse("K is divided by {} CTAs, and a cluster of {}x{} tiles has no room "
           "for them; use cluster 1x1",
           schedule.split_k, schedule.cluster_m, schedule.cluster_n);
  if (!computed.problem.k.is_constant())
    refuse("K is divided by {} CTAs, and is an argument of the launch; give "
           "it as a number",
           schedule.split_k);
}

/// Throw where roles, cluster or order are none.
static void check_roles(const KernelProblem &computed,
                        const GemmSchedule &schedule,
                        const DeviceDescription &device) {
  int most = schedule.kind == GemmKind::multistage ? 1 : 2;
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
static void check_epilogue(const KernelProblem &computed,
                           const GemmSchedule &schedule) {
  if (gemm_kernel::uses_sums(schedule))
    return; // D does not go out by subtiles
  int rows = schedule.consumer_rows(), columns = schedule.consumer_columns();
  if (schedule.epilogue_m < 64 || rows % schedule.epilogue_m ||
      schedule.epilogue_m % 64)
    refuse("an epilogue tile of {} rows; use a multiple of 64 that divides {}",
           schedule.epilogue_m, rows);
  if (schedule.epilogue_n < 8 || columns % schedule.epilogue_n ||
      schedule.epilogue_n % 8 ||
      schedule.epilogue_n * size_bytes(computed.problem.out) % 16)
    refuse("an epilogue tile of {} columns of {}; use a multiple of 8 and of "
           "16 bytes that divides {}",
           schedule.epilogue_n, name(computed.problem.out), columns);
}

/// The registers of each role: what the threads have together, the producer's
/// part first.
static void plan_registers(const KernelProblem &computed,
                           const DeviceDescription &device,
                           GemmSchedule &schedule) {
  if (schedule.kind == GemmKind::multistage)
    return;
  int groups = schedule.consumers + 1;
  int at_entry =
      device.registers_per_sm / schedule.occupancy / (groups * 128) / 8 * 8;
  at_entry = std::min(at_entry, device.max_registers_per_thread / 8 * 8);
  if (schedule.producer_registers == 0) {
    schedule.producer_registers = computed.producer_registers();
    // One consumer leaves more than it can use.
    if (groups == 2 && schedule.occupancy == 1 && !computed.uses_tma())
      schedule.producer_registers += 24;
  }
  if (schedule.consumer_registers == 0) {
    schedule.consumer_registers =
        std::min(device.max_consumer_registers,
                 (groups * at_entry - schedule.producer_registers) /
                     schedule.consumers / 8 * 8);
    // Sums come first: the producer has what they leave.
    int sums = accumulator_registers(computed.problem, schedule);
    if (schedule.consumer_registers <= sums) {
      schedule.consumer_registers = sums / 8 * 8 + 8;
      schedule.producer_registers = std::min(
          schedule.producer_registers,
          groups * at_entry - schedule.consumers * schedule.consumer_registers);
    }
    if (schedule.producer_registers < device.min_role_registers)
      refuse("an accumulator takes {} registers of each thread, and {} CTAs of "
             "{} threads per multiprocessor have {} each; use smaller tiles or "
             "fewer CTAs",
             sums, schedule.occupancy, groups * 128, at_entry);
  }
  // ptxas wants room for an instruction's sums, and more, before setmaxnreg
  // gives it (C7602).
  constexpr int kBesideInstruction = 26;
  int instruction =
      schedule.instruction_n * size_bytes(computed.problem.accumulator()) / 8;
  if (at_entry < instruction + kBesideInstruction)
    refuse("an instruction of {} columns needs {} registers of each thread at "
           "entry, and {} CTAs of {} threads per multiprocessor have {}; use "
           "fewer columns or fewer CTAs",
           schedule.instruction_n, instruction + kBesideInstruction,
           schedule.occupancy, groups * 128, at_entry);
}

/// The shared memory of a kernel, its pieces in the order in which it asks for
/// them: barriers of turns, slots, barriers of slots, buffers on the way out.
static int shared_bytes(const KernelProblem &computed,
                        const GemmSchedule &schedule, int stages) {
  constexpr int kBarrierBytes = 8;
  int end = schedule.kind == GemmKind::pingpong ? 2 * kBarrierBytes : 0;
  auto place = [&](const TileLayout &tile, int count) {
    int alignment = tile.alignment_bytes();
    end = (end + alignment - 1) / alignment * alignment;
    end += tile.stride_bytes() * count;
  };
  for (const TileLayout &tile : gemm_kernel::slot_tiles(computed, schedule))
    place(tile, stages);
  end += 2 * stages * kBarrierBytes;
  GemmSchedule with_stages = schedule;
  with_stages.stages = stages;
  auto output = gemm_kernel::output_buffers(computed, with_stages);
  if (output.count && !output.is_over_slots)
    place(output.tile, output.count);
  return end;
}

/// What one CTA may have of it.
static int most_shared_bytes(const GemmSchedule &schedule,
                             const DeviceDescription &device) {
  return std::min(device.max_smem_per_cta_bytes,
                  device.smem_per_sm_bytes / std::max(1, schedule.occupancy) -
                      device.reserved_smem_per_cta_bytes);
}

int max_gemm_stages(const GemmProblem &problem, const GemmSchedule &schedule,
                    const DeviceDescription &device) {
  KernelProblem computed(problem, schedule);
  GemmSchedule full = filled(computed, schedule);
  int most = most_shared_bytes(full, device);
  // Few stages can take more than many: sums lie over slots if they fit there.
  int stages = most / 1024;
  while (stages > 0 && shared_bytes(computed, full, stages) > most)
    --stages;
  return stages;
}

GemmSchedule fit(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device) {
  check_problem(problem);
  KernelProblem computed(problem, schedule);
  GemmSchedule result = filled(computed, schedule);
  check_roles(computed, result, device);
  check_tile(computed, result, device);
  check_epilogue(computed, result);
  plan_registers(computed, device, result);
  if (schedule.stages < 1)
    refuse("{} stages; at least 1 is needed", schedule.stages);
  if (problem.k.is_constant()) {
    auto tiles = ceil_div(problem.k, schedule.tile_k).constant();
    result.split_k =
        static_cast<int>(std::min<std::int64_t>(result.split_k, tiles));
    auto most_tiles = (tiles + result.split_k - 1) / result.split_k;
    result.stages =
        static_cast<int>(std::min<std::int64_t>(result.stages, most_tiles));
  }
  int most = max_gemm_stages(problem, result, device);
  if (shared_bytes(computed, result, result.stages) >
      most_shared_bytes(result, device))
    refuse("{} stages of {}x{}x{} do not fit into shared memory; {} do",
           schedule.stages, schedule.tile_m, schedule.tile_n, schedule.tile_k,
           most);
  return result;
}

Module build_gemm(const GemmProblem &problem, const GemmSchedule &schedule,
                  const GemmDebug &debug, const DeviceDescription &device) {
  return gemm_kernel::build_kernel(problem, fit(problem, schedule, device),
                                   debug, device);
}

} // namespace kiln
