// sim.h: a device that needs no GPU: PTX executed on the CPU, and checked.
//
//     auto device = open_sim();
//     LaunchResult result = try_run(*device, kernel, a, b, d);
//     for (const Finding &finding : result.findings) ...
//
// It implements device.h like the GPU does. What it finds wrong is in the
// result of a launch. Most errors end the launch; one in the order of accesses
// (a race) and a warning do not.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/interleaving.h>
#include <kiln/run/device.h>

#include <atomic>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace KILN_API kiln {

/// Warp instructions that a CTA may execute where nobody says another number:
/// minutes of simulation, and more than a kernel that gets anywhere needs.
inline constexpr std::uint64_t kDefaultMaxInstructions = 250'000'000;

struct SimOptions {
  DeviceDescription device = DeviceDescription::h200();
  Interleaving interleaving = Interleaving::eager;
  std::uint64_t seed = 0;
  bool checks = true;
  int threads = 0; ///< of the host; 0: all cores
  /// Warp instructions per CTA after which a launch is ended.
  std::uint64_t max_instructions = kDefaultMaxInstructions;
  /// Seconds after which a launch is ended with the finding `time-limit`; 0:
  /// never.
  double time_limit_s = 0;
  int registers_at_entry = 0; ///< per thread; 0: as ptxas or the PTX says
  bool co_resident = false;   ///< refuse a grid the device cannot hold at once
  bool check_only = false;    ///< refuse what cannot be launched, run nothing
  std::vector<std::string> allow; ///< ids of findings not to report
  std::vector<std::string> warn;  ///< ids of errors to take for warnings
  bool stats = false;             ///< fill LaunchResult::stats
  bool timeline = false;          ///< fill LaunchResult::timeline
  /// Told how many CTAs are done, of how many, from time to time.
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  /// Set it, from a signal handler or another thread, and the launch ends soon,
  /// with what it has found so far and the finding `interrupted`, which says
  /// where each warp stands.
  const std::atomic<bool> *cancel = nullptr;
  /// Takes what kernels print, piece by piece; empty: it goes to stdout.
  std::function<void(const std::string &)> print;
};

/// The device that PTX is simulated on where nobody names one: what its .target
/// stands for, an H200 for those that it runs. Throws UserError where no device
/// that Kiln knows runs it.
const DeviceDescription &sim_device_for(std::string_view ptx);

/// The simulator. Its buffers are host memory with bounds. A launch of PTX that
/// the described device does not run is refused. Throws UserError where `allow`
/// or `warn` names an id that does not exist.
std::shared_ptr<Device> open_sim(const SimOptions &options = {});

/// What the next launches of a simulator are checked for: everything but the
/// described device may change. Throws UserError where it is not a simulator.
void set_sim_options(Device &device, const SimOptions &options);

/// Memory at an address, so that pointers which a program has kept hold again.
/// It lies where buffers of a GPU and memory of the host do: from 4096 on below
/// 2^40, or from 5 * 2^40 on below 2^49. Throws UserError where it does not,
/// and where it overlaps another buffer.
Buffer allocate_sim_at(Device &device, std::uint64_t address,
                       std::size_t bytes);
/// Device::load, with variables at such addresses, by their names.
std::shared_ptr<LoadedModule>
load_sim_at(Device &device, std::span<const std::string_view> ptx,
            const std::map<std::string, std::uint64_t> &variables);

/// What lies in the simulator's memory, to be put back: a launch can be run
/// again from where it began. It costs as much as is written meanwhile: what
/// nobody writes is not copied.
class SimSnapshot {
public:
  virtual ~SimSnapshot();
  virtual void restore() const = 0;
  /// No launch was under way when it was taken.
  virtual bool is_idle() const = 0;
  /// While it is held, nobody else uses the device.
  virtual std::unique_lock<std::recursive_mutex> hold() const = 0;

  /// A buffer or a variable as it was.
  struct Memory {
    std::string name; ///< as findings call it
    std::uint64_t address = 0;
    std::size_t bytes = 0;
    bool is_touched = false; ///< read or written since then
    bool is_written = false; ///< written since then
    /// Which bytes had been written, a bit for each, the lowest first; empty:
    /// all of them.
    std::vector<std::byte> written = {};
    /// The pieces that were touched: where they begin, and what they held.
    std::vector<std::pair<std::size_t, std::vector<std::byte>>> pieces = {};
  };
  /// Everything there was, and is still; in the order of addresses.
  virtual std::vector<Memory> memory() const = 0;
};
/// Of every buffer there is.
std::unique_ptr<SimSnapshot> snapshot_sim(Device &device);

/// "auto": the GPU where a driver and one are found, else the simulator; or
/// "cuda", "cuda:1", "sim".
std::shared_ptr<Device> open_device(std::string_view id = "auto",
                                    const SimOptions &options = {});

/// What a finding's id stands for.
struct Explanation {
  std::string_view id;
  std::string_view cause;  ///< what happened, and what hardware makes of it
  std::string_view broken; ///< the smallest kernel text that does it
  std::string_view repair;
  Finding::Grade grade = Finding::Grade::error;
  bool ends_launch = false; ///< unless it is allowed, or taken for a warning
};
/// Every id the simulator knows, in alphabetical order.
std::span<const Explanation> explanations();
/// One of them. Throws UserError that lists the ids.
const Explanation &explain(std::string_view id);

/// A tensor map as kernels find it in their parameters on the simulator: for a
/// map inside a struct that is passed by value.
std::array<std::byte, 128> sim_tensor_map(const TensorMap &map);

} // namespace kiln
