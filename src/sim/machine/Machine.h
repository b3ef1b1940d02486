// Machine: what the clusters of a launch share: the program, global memory, and
// where findings go.
//
// Clusters are independent of each other unless the kernel talks through global
// memory; each is run by one host thread (launch/LaunchScheduler).
#pragma once

#include "sim/machine/Cluster.h"
#include "sim/machine/Findings.h"
#include "sim/machine/GridControl.h"
#include "sim/machine/LaunchConfig.h"

#include <chrono>
#include <mutex>

namespace kiln::sim {

/// What a launch may print.
inline constexpr std::uint64_t kMaxPrintedBytes = std::uint64_t(256) << 20;

/// An entry, decoded: the same for all launches with as much shared memory.
struct DecodedEntry {
  Code code;
  std::uint32_t staticSharedBytes = 0;
  std::vector<std::pair<std::string, Symbol>> sharedVariables;
};

class Machine {
public:
  Machine(GlobalMemory &memory, LaunchConfig config,
          std::shared_ptr<const DecodedEntry> entry);

  ~Machine();

  const LaunchConfig &config() const { return config_; }
  /// Where the CTAs of a cooperative launch wait for each other (grid.sync),
  /// as %envreg1 and %envreg2 say; 0: it is none.
  std::uint64_t gridWorkspace() const { return gridWorkspace_; }
  GlobalMemory &memory() { return memory_; }
  const Code &code() const { return entry_->code; }
  std::uint32_t staticSharedBytes() const { return entry_->staticSharedBytes; }
  GridControl &gridControl() { return gridControl_; }
  const GridControl &gridControl() const { return gridControl_; }
  /// Whether kernels of its module call malloc.
  bool usesHeap() const;
  /// Nobody will come to help it.
  void leaveAlone() { config_.isAlone = true; }
  Findings &findings() { return findings_; }
  const Findings &findings() const { return findings_; }
  /// Of clusters that talk through global memory; kept where the launch is
  /// checked.
  LastWriters &lastWriters() { return lastWriters_; }
  /// Text from the kernel's printf: in the order of clusters, or of events
  /// where clusters talk to each other. False where it is too much.
  bool print(Cluster &cluster, const std::string &text) {
    std::uint64_t printed = printedBytes_ += text.size();
    if (printed > kMaxPrintedBytes)
      return false;
    print_(cluster, text);
    return true;
  }
  using Printer = std::function<void(Cluster &, const std::string &)>;
  void setPrinter(Printer printer) { print_ = std::move(printer); }
  /// Take a cluster that has not begun out of the launch: its first CTA.
  /// Nothing: all have. Asked where clusters talk to each other.
  std::optional<Dim3> cancelCluster() {
    return cancel_ ? cancel_() : std::nullopt;
  }
  using Canceller = std::function<std::optional<Dim3>()>;
  void setCanceller(Canceller cancel) { cancel_ = std::move(cancel); }
  /// Whether the time is up or the caller has cancelled the launch; once true
  /// it stays so. Cheap enough for every turn of a warp.
  bool isStopping() const {
    return (config_.cancel &&
            config_.cancel->load(std::memory_order_relaxed)) ||
           (config_.time_limit_s > 0 && elapsedS() >= config_.time_limit_s) ||
           (config_.memory_limit_bytes > 0 && isBeyondMemory());
  }
  /// The memory that was beyond the limit; 0: none was.
  std::uint64_t bytesBeyond() const { return bytesBeyond_; }
  /// Since it was made.
  double elapsedS() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

private:
  /// Asked of the system now and then; once true it stays so.
  bool isBeyondMemory() const;

  std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  GlobalMemory &memory_;
  LaunchConfig config_;
  std::uint64_t gridWorkspace_ = 0;
  std::shared_ptr<const DecodedEntry> entry_;
  Findings findings_;
  GridControl gridControl_;
  Printer print_;
  Canceller cancel_;
  std::atomic<std::uint64_t> printedBytes_{0};
  mutable std::atomic<std::uint64_t> bytesBeyond_{0};
  mutable std::atomic<double> nextLookS_{0}; ///< at the memory
  LastWriters lastWriters_;
};

} // namespace kiln::sim
