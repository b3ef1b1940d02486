// device_description.h: the one home of hardware limits.
//
// The checks made while a kernel is built, the simulator and the cost model all
// read the machine's numbers from here; none of them knows one by itself.
#pragma once

#include <kiln/base/export.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// What multiplies matrices fastest.
enum class TensorCore {
  mma,     ///< operands and sums in registers, one warp
  wgmma,   ///< operands in shared memory, sums in registers, a warpgroup
  tcgen05, ///< operands in shared memory, sums in tensor memory, one thread
};

/// "mma.sync", "wgmma", "tcgen05"
std::string_view name(TensorCore core);

struct DeviceDescription {
  std::string name;
  int compute_major = 9;
  int compute_minor = 0;
  TensorCore tensor_core = TensorCore::wgmma;
  int tensor_memory_columns = 0; ///< of 128 lanes of 32 bits; 0: it has none

  int sms = 132;
  int max_threads_per_cta = 1024;
  int max_threads_per_sm = 2048;
  int max_ctas_per_sm = 32;
  int max_cluster_ctas = 8;              ///< portable
  int max_nonportable_cluster_ctas = 16; ///< where a kernel opts in
  /// CTAs of a grid and threads of a CTA, in x, y and z.
  std::array<int, 3> max_grid = {2147483647, 65535, 65535};
  std::array<int, 3> max_block = {1024, 1024, 64};

  int registers_per_sm = 65536;
  int max_registers_per_thread = 255;
  int register_granularity_warp = 256; ///< registers are handed out so
  int parts_per_sm = 4; ///< of a multiprocessor, each with its share of them
  /// Of a thread that multiplies: what its sums may take, and what it is given
  /// beside them at most.
  int max_accumulator_registers = 192, max_consumer_registers = 232;

  int smem_per_sm_bytes = 233472;
  int max_smem_per_cta_bytes = 232448; ///< with the opt-in attribute
  int reserved_smem_per_cta_bytes = 1024;
  int max_local_bytes_per_thread = 524288;
  int max_constant_bytes = 65536;  ///< .const variables of a module
  int max_parameter_bytes = 32764; ///< of a kernel

  // Limits of PTX, the same on every device.
  static constexpr int max_mbarrier_count = (1 << 20) - 1;
  static constexpr int max_box_elements = 256; ///< of a tensor map, per axis
  static constexpr int named_barriers = 15;    ///< of a CTA, beside bar.sync 0
  /// Registers of a thread that setmaxnreg can ask for: multiples of 8.
  static constexpr int min_role_registers = 24, max_role_registers = 256;

  /// Clusters of 1, 2, 3, ... CTAs that run at once, each CTA with a
  /// multiprocessor to itself: a cluster lies inside one group of them (a GPC),
  /// and groups differ from chip to chip. Empty: not known.
  std::vector<int> active_clusters = {};
  /// The same of so many CTAs, a guess where it is not known.
  int resident_clusters(int ctas) const;

  long long memory_bytes = 0;
  long long l2_bytes = 0;
  int sm_clock_mhz = 0; ///< boost
  int memory_clock_mhz = 0;
  double memory_gb_per_s = 0;
  /// Of f16 with f32 sums, dense, of a multiprocessor; 0: not known.
  int f16_flops_per_clock = 0;
  /// Of f32 without its tensor cores, likewise.
  int f32_flops_per_clock = 0;
  /// The same of all of it as its maker publishes it; 0: not known.
  double f16_tflops = 0;

  /// "sm_90a": what kernels for it are compiled for.
  std::string target() const;
  /// Whether it runs PTX of a target: "sm_80" on everything from 8.0 on,
  /// "sm_90a" on 9.0 alone, "sm_100f" on 10.0 and 10.3.
  bool runs(std::string_view target) const;
  /// Whether kernels for it may use an instruction, as far as its text goes:
  /// "wgmma.mma_async", "tcgen05.mma.kind::i8".
  bool has(std::string_view instruction) const;

  static const DeviceDescription &h100();
  static const DeviceDescription &h200();
  static const DeviceDescription &b200();
  /// "h100", "rtx5090": those of known_names(). Throws UserError that lists
  /// them.
  static const DeviceDescription &by_name(std::string_view name);
  /// The description whose limits kernels for `target` are checked against.
  static const DeviceDescription &for_target(std::string_view target);
  /// The device that PTX of a target is simulated on where nobody names one:
  /// the H200 where it runs it, else the first that does. Throws UserError
  /// where none does.
  static const DeviceDescription &to_simulate(std::string_view target);
  /// One that has that tensor core.
  static const DeviceDescription &with(TensorCore core);
  /// What `kiln devices --all` prints and `--gpu` takes.
  static std::vector<std::string_view> known_names();
};

} // namespace kiln
