// gemm: what a schedule that leaves things open becomes, and how much of it
// fits.
#include "checks.h"
#include "fields/field_text.h"
#include "gemm/device/kernel.h"
#include "gemm/device/output.h"
#include "gemm/device/vector_kernel.h"
#include "gemm/main_loops.h"

#include <kiln/base/error.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kiln {

using gemm_kernel::KernelProblem;
using gemm_kernel::refuse;

/// What a schedule leaves open and can be said without the others.
static GemmSchedule filled(const KernelProblem &computed,
                           const GemmSchedule &schedule,
                           const DeviceDescription &device) {
  const GemmProblem &problem = computed.problem;
  GemmSchedule full = schedule;
  const gemm_kernel::MainLoopKind &loop = gemm_kernel::main_loop_of(device);
  constexpr int kLanes = 128; // of tensor memory: the rows of a consumer
  if (computed.a_suits_tma() && computed.b_suits_tma())
    full.is_repacked = false;
  if (full.split_k == 1)
    full.is_split_by_grid = false;
  if (full.consumers == 0 && !loop.has_sums_in_registers)
    full.consumers = full.kind == GemmKind::pingpong ? 2
                     : full.split == GemmSplit::m && full.tile_m > kLanes
                         ? full.tile_m / kLanes
                         : 1;
  if (full.consumers == 0)
    full.consumers = full.is_persistent() ? 2 : 1;
  if (full.instruction_n == 0)
    full.instruction_n = full.consumer_columns();
  if (full.epilogue_m == 0)
    full.epilogue_m = loop.store_rows;
  if (full.epilogue_n == 0)
    full.epilogue_n = gemm_kernel::subtile_columns(computed, full);
  // Nothing is multicast that threads copy; and one warpgroup that does
  // everything has no thread to tell other CTAs of a released slot. CTAs that
  // share operands on Blackwell multiply together (cta_group).
  if (full.kind == GemmKind::multistage || !computed.uses_tma() ||
      !loop.has_multicast)
    full.is_multicast = false;
  if (full.cluster_m * full.cluster_n == 1)
    full.is_multicast = GemmSchedule{}.is_multicast;
  // Rows shorter than the swizzle have a narrower one.
  auto row_bytes = [&] {
    int shortest = full.tile_k;
    if (!problem.a_is_k_major())
      shortest = std::min(shortest, full.tile_m);
    if (!problem.b_is_k_major())
      shortest = std::min(shortest, full.tile_n / std::max(1, full.cta_group));
    return static_cast<int>(bytes_of(problem.type, shortest));
  };
  while (full.swizzle > Swizzle::b32 &&
         row_bytes() < static_cast<int>(full.swizzle))
    full.swizzle = static_cast<Swizzle>(static_cast<int>(full.swizzle) / 2);
  return full;
}

/// The registers of each role: what the threads have together, the producer's
/// part first.
static void plan_registers(const KernelProblem &computed,
                           const DeviceDescription &device,
                           GemmSchedule &schedule) {
  // On Blackwell sums are in tensor memory: roles keep what they begin with.
  if (schedule.kind == GemmKind::multistage ||
      !gemm_kernel::main_loop_of(device).has_sums_in_registers)
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
    int sums = gemm_kernel::accumulator_registers(computed.problem, schedule);
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
  if (device.tensor_core != TensorCore::wgmma)
    return;
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
/// them: barriers of turns or of sums, slots, barriers of slots, the address of
/// tensor memory, buffers on the way out, words of work that CTAs share.
static int shared_bytes(const KernelProblem &computed,
                        const GemmSchedule &schedule,
                        const DeviceDescription &device, int stages) {
  constexpr int kBarrierBytes = 8;
  bool has_tensor_memory =
      !gemm_kernel::main_loop_of(device).has_sums_in_registers;
  int end = has_tensor_memory ? 2 * schedule.consumers * kBarrierBytes
            : schedule.kind == GemmKind::pingpong ? 2 * kBarrierBytes
                                                  : 0;
  auto place = [&](const TileLayout &tile, int count) {
    int alignment = tile.alignment_bytes();
    end = (end + alignment - 1) / alignment * alignment;
    end += tile.stride_bytes() * count;
  };
  for (const TileLayout &tile : gemm_kernel::slot_tiles(computed, schedule))
    place(tile, stages);
  if (computed.has_tma)
    end += 2 * stages * kBarrierBytes;
  if (has_tensor_memory)
    place({Type::u32, 1, 4}, 1);
  GemmSchedule with_stages = schedule;
  with_stages.stages = stages;
  auto output = gemm_kernel::output_buffers(computed, with_stages);
  if (output.count && !output.is_over_slots)
    place(output.tile, output.count);
  const TileLayout word{Type::u32, 1, 4};
  if (schedule.is_split_by_grid)
    place(word, schedule.consumers);
  if (schedule.is_repacked)
    place(word, 1);
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
  KernelProblem computed(problem, schedule,
                         gemm_kernel::main_loop_of(device).has_tma);
  GemmSchedule full = filled(computed, schedule, device);
  int most = most_shared_bytes(full, device);
  // Few stages can take more than many: sums lie over slots if they fit there.
  int stages = most / 1024;
  while (stages > 0 && shared_bytes(computed, full, device, stages) > most)
    --stages;
  return stages;
}

/// Output tiles that a CTA takes at most, one behind the other, where they are
/// known: while one is multiplied the next is loaded.
static std::optional<std::int64_t>
most_rounds(const KernelProblem &computed, const GemmSchedule &schedule,
            const DeviceDescription &device) {
  if (!schedule.is_persistent())
    return 1;
  Dim tiles = computed.tiles(schedule);
  if (!tiles.is_constant())
    return std::nullopt;
  int ctas = schedule.ctas ? schedule.ctas : device.sms * schedule.occupancy;
  return (tiles.constant() + ctas - 1) / ctas;
}

GemmSchedule fit(const GemmProblem &problem, const GemmSchedule &schedule,
                 const DeviceDescription &device) {
  fields::check_fields(problem, device);
  if (schedule.kind == GemmKind::vector)
    return gemm_kernel::fit_vector(problem, schedule);
  KernelProblem computed(problem, schedule,
                         gemm_kernel::main_loop_of(device).has_tma);
  GemmSchedule result = filled(computed, schedule, device);
  gemm_kernel::check_roles(computed, result, device);
  gemm_kernel::check_workspaces(computed, result);
  gemm_kernel::check_tile(computed, result, device);
  gemm_kernel::check_epilogue(computed, result, device);
  plan_registers(computed, device, result);
  if (schedule.stages < 1)
    refuse("{} stages; at least 1 is needed", schedule.stages);
  if (problem.k.is_constant()) {
    auto tiles = ceil_div(problem.k, schedule.tile_k).constant();
    result.split_k =
        static_cast<int>(std::min<std::int64_t>(result.split_k, tiles));
    if (result.split_k == 1)
      result.is_split_by_grid = false;
    auto most_tiles = (tiles + result.split_k - 1) / result.split_k;
    if (auto rounds = most_rounds(computed, result, device))
      result.stages = static_cast<int>(
          std::min<std::int64_t>(result.stages, most_tiles * *rounds));
  }
  int most = max_gemm_stages(problem, result, device);
  if (shared_bytes(computed, result, device, result.stages) >
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
