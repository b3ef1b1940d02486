// sim_options.h: how the simulator runs and checks a launch.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/interleaving.h>
#include <kiln/run/device_description.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace kiln::sim {
class Strategy;
}

namespace KILN_API kiln {

/// Warp instructions that a CTA may execute where nobody says another number:
/// minutes of simulation, and more than a kernel that gets anywhere needs.
inline constexpr std::uint64_t kDefaultMaxInstructions = 250'000'000;

inline constexpr int kMaxSimThreads = 1024, kMaxSimSms = 4096,
                     kMaxSimRegisters = 512;

/// Findings of a launch that are kept where nobody says another number.
inline constexpr std::uint64_t kDefaultMaxFindings = 1000;

/// Given to open_sim they hold for every launch that brings none of its own
/// (LaunchDescription::options).
struct SimOptions {
  /// Of the simulator itself: a launch cannot change it.
  DeviceDescription device = DeviceDescription::h200();
  Interleaving interleaving = Interleaving::eager;
  std::uint64_t seed = 0;
  /// Who goes next is chosen by it, turn by turn, instead of by `interleaving`;
  /// null: nobody chooses. Kiln has its own (kiln/check/prove.h).
  std::shared_ptr<sim::Strategy> strategy = nullptr;
  bool checks = true;
  /// Refuse a kernel that ptxas would refuse: one that uses what the .target or
  /// the .version of its PTX does not have.
  bool target_check = true;
  /// Accumulate MMAs of 16 bits and more in f32, one product after another,
  /// instead of as tensor cores do, bit for bit: faster, and other last bits.
  bool is_mma_fast = false;
  int threads = 0; ///< of the host; 0: all cores
  /// Warp instructions per CTA after which a launch is ended.
  std::uint64_t max_instructions = kDefaultMaxInstructions;
  /// Seconds after which a launch is ended with the finding `time-limit`; 0:
  /// never. What comes before it, the reading and decoding of PTX, is refused
  /// when it has taken as long.
  double time_limit_s = 0;
  /// Bytes of memory that this process may have (its resident set). A launch
  /// that goes beyond is ended with the finding `memory-limit`, and what would
  /// is refused before; 0: as much as the machine has.
  std::uint64_t memory_limit_bytes = 0;
  /// Errors of a launch that are kept, and others; the rest are counted
  /// (LaunchResult::findings_left_out). 0: all of them.
  std::uint64_t max_findings = kDefaultMaxFindings;
  int registers_at_entry = 0; ///< per thread; 0: as ptxas or the PTX says
  bool co_resident = false;   ///< refuse a grid the device cannot hold at once
  std::vector<std::string> allow; ///< ids of findings not to report
  std::vector<std::string> warn;  ///< ids of errors to take for warnings
  bool stats = false;             ///< fill LaunchResult::stats
  bool timeline = false;          ///< fill LaunchResult::timeline
  bool detail = false;            ///< fill LaunchResult::detail
  bool profile = false;           ///< fill LaunchResult::profile
  /// Told how many CTAs are done, of how many, from time to time.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  /// Set it, from a signal handler or another thread, and the launch ends soon,
  /// with what it has found so far and the finding `interrupted`, which says
  /// where each warp stands.
  const std::atomic<bool> *cancel = nullptr;
  /// Takes what kernels print, piece by piece; empty: it goes to stdout.
  std::function<void(const std::string &)> print;
};

/// Throws UserError where a field has no meaning: a time limit that is no
/// number, more threads or multiprocessors than that, an id of `allow` or `warn`
/// that does not exist.
void check_sim_options(const SimOptions &options);

} // namespace kiln
