// Machine: a launch on the simulated GPU: CTAs, clusters, and who runs when.
//
// Clusters are independent of each other unless the kernel talks through global
// memory; each is run by one host thread. Inside a cluster warps take turns;
// copies and matrix products are pieces of work of their own (Pending) that are
// done at a moment the order chooses: at once, as late as possible, or at
// random from a seed. A correct kernel gives one answer under all of them.
#pragma once

#include "kiln/device.h"
#include "sim/Mbarrier.h"
#include "sim/Memory.h"
#include "sim/Observer.h"
#include "sim/Order.h"
#include "sim/Program.h"
#include "sim/Warp.h"

#include <array>
#include <atomic>
#include <chrono>
#include <deque>
#include <functional>
#include <random>

namespace kiln::sim {

using Dim3 = std::array<std::uint32_t, 3>;

/// When asynchronous work takes effect.
enum class Order : std::uint8_t { eager, lazy, random };

struct LaunchConfig {
  Dim3 grid = {1, 1, 1}, block = {1, 1, 1}, cluster = {1, 1, 1};
  std::uint32_t dynamicSmemBytes = 0;
  std::vector<std::uint8_t> params; ///< the entry's parameter space
  DeviceDescription device;
  Order order = Order::eager;
  std::uint64_t seed = 0;
  bool hasChecks = true;
  int threads = 0;                   ///< host threads; 0: all
  int registersAtEntry = 0;          ///< per thread; 0: setmaxnreg does nothing
  std::uint64_t maxInstructions = 0; ///< per CTA; 0: no limit
  double timeLimitS = 0;             ///< of the launch; 0: no limit
  std::vector<std::string> allow, warn; ///< ids of findings
  bool hasStats = false, hasTimeline = false;
  std::function<void(std::uint64_t, std::uint64_t)> progress;
  const std::atomic<bool> *cancel = nullptr;
  /// Takes the kernel's printf; empty: stdout does.
  std::function<void(const std::string &)> print;
};

/// What a finding is about, beside an instruction.
struct FindingObject {
  const char *space = "";
  std::optional<std::uint64_t> address = std::nullopt;
  std::string name = {};
};

/// Thrown by a unit to end the launch with a finding.
struct Fault {
  Finding finding;
};

/// Work in flight: done once, by the cluster's thread.
struct Pending {
  std::function<void()> perform;
  bool isDone = false;
  /// The part that must be done first; null where there is none.
  std::shared_ptr<Pending> reading = nullptr;
  const Op *op = nullptr; ///< of a thread's copy
  bool isAwaited = false; ///< somebody will know when its sources are free
};

/// What a launch may print.
inline constexpr std::uint64_t kMaxPrintedBytes = std::uint64_t(256) << 20;

class Cluster;
class LoopWatch;
class ModuleVariables;

/// Named barrier of a CTA (bar.sync, bar.arrive).
struct CtaBarrier {
  std::uint32_t arrived = 0;    ///< threads
  std::uint32_t expected = 0;   ///< 0: nobody is here
  std::uint32_t generation = 0; ///< completed rounds
  /// bar.red: threads that brought a predicate, and those where it held; of the
  /// round that is open, and of the last two completed ones by their parity.
  struct Votes {
    std::uint32_t threads = 0, holding = 0;
  };
  Votes votes, results[2];
  std::shared_ptr<SyncPoint> round; ///< what the arrived hand over
};

/// What the warps of one warpgroup have issued to its tensor core.
struct TensorCoreQueue {
  /// Issued by some of the four warps.
  struct Waiting {
    const Op *op;
    std::uint64_t descriptorA, descriptorB;
    bool isAdded;
    int warps;
    std::vector<PageCells> cells; ///< of its operands in shared memory
  };
  /// Issued by all, not done.
  struct Formed {
    std::uint64_t number;
    std::shared_ptr<std::function<void()>> work;
  };
  std::uint64_t formed = 0; ///< multiplications all four warps have issued
  std::deque<Waiting> waiting;
  std::deque<Formed> inFlight;
  Component component = 0; ///< of its products in the order of accesses

  /// Do every multiplication up to `number`, in order.
  void finish(std::uint64_t number);
};

class Cta {
public:
  Cta(Machine &machine, Cluster &cluster, const Dim3 &index, int rank);

  Machine &machine() const { return machine_; }
  Cluster &cluster() const { return cluster_; }
  const Dim3 &index() const { return index_; }
  int rankInCluster() const { return rank_; }
  std::uint32_t number() const; ///< in the launch
  int sm() const;
  std::vector<std::unique_ptr<Warp>> &warps() { return warps_; }
  const std::vector<std::unique_ptr<Warp>> &warps() const { return warps_; }
  std::uint32_t sharedBytes() const;
  /// Threads that have not left the kernel.
  std::uint32_t liveThreads() const;
  bool isDone() const;

  /// Shared memory from address kFirstSharedAddress on.
  std::vector<std::uint8_t> shared;
  ValidBits sharedValid;
  std::map<std::uint32_t, MbarrierState> mbarriers; ///< by shared address
  std::array<CtaBarrier, 16> barriers;
  int registerPool = 0; ///< free registers, for setmaxnreg
  std::array<TensorCoreQueue, 8> tensorCores; ///< one per warpgroup
  ShadowedMemory shadow;                      ///< of shared memory
  SyncPoint left; ///< what its threads knew when they left
  std::map<std::uint32_t, MbarrierOrder> mbarrierOrder; ///< by address

private:
  Machine &machine_;
  Cluster &cluster_;
  Dim3 index_;
  int rank_;
  HostMemory share_; ///< of the host's memory, for the registers of the warps
  std::vector<std::unique_ptr<Warp>> warps_;
};

/// CTAs that can reach each other's shared memory; one if there is no cluster.
class Cluster {
public:
  /// `order` is told of every access; null: it is not kept.
  Cluster(Machine &machine, const Dim3 &first, std::uint64_t number,
          HappensBefore *order = nullptr);

  /// Run: to its end or until nothing moves where it is alone, else until it
  /// has had its turn. False where nothing moved. Throws Fault.
  bool step(bool isAlone);
  bool isDone() const;
  /// Nobody else is left in it, and nothing is in flight.
  bool isLast(const Warp &warp, LaneMask lanes) const;
  /// Whether some lanes spin on global memory, which another cluster may write.
  bool waitsForOthers() const;
  std::uint64_t number() const { return number_; }
  HappensBefore *order() const { return order_; }
  /// Memory of the host that is there for the checks alone.
  std::uint64_t shadowBytes() const;

  Cta &cta(int rank) { return *ctas_[rank]; }
  std::size_t size() const { return ctas_.size(); }
  Machine &machine() const { return machine_; }

  /// Something has changed that a waiting group may be waiting for.
  void notify() { ++epoch; }
  /// Work that happens later; with the eager order it happens now.
  std::shared_ptr<Pending> enqueue(std::function<void()> perform);
  /// Do it now, if it has not been done.
  void complete(const std::shared_ptr<Pending> &work);

  std::uint64_t epoch = 1;
  std::uint32_t barrierArrived = 0, barrierGeneration = 0;
  std::shared_ptr<SyncPoint> barrierRound;
  std::uint64_t instructions = 0;
  std::vector<Finding> findings;      ///< that did not end it
  std::string printed;                ///< and not shown yet
  std::unique_ptr<Observer> observer; ///< null: nobody asked for one
  /// Its own order, where it cannot talk to others.
  std::unique_ptr<HappensBefore> ownOrder;

private:
  bool performOne();
  /// Effects of instructions and of asynchronous work so far.
  std::uint64_t activity() const;
  /// Nothing can run: let waits time out and parked lanes go. False where
  /// that has been tried and nothing came of it.
  bool unblock();

  Machine &machine_;
  HappensBefore *order_;
  std::uint64_t number_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::deque<std::shared_ptr<Pending>> pending_;
  std::mt19937_64 random_;
  std::uint64_t lastUnblock_ = 0; ///< activity() then
};

/// Who wrote a flag last: an ordered store or an atomic.
struct LastWriter {
  const Op *op;
  Dim3 cta;
  int thread;
};

class Machine {
public:
  /// `variables`: those of the module, where they live longer than a launch.
  /// Throws UserError where the kernel needs more memory of a kind than the
  /// device has for it.
  Machine(GlobalMemory &memory, const ptx::Module &module,
          const ptx::Function &entry, const LaunchConfig &config,
          const ModuleVariables *variables = nullptr);
  ~Machine();

  /// Run the launch to its end.
  LaunchResult run();

  const LaunchConfig &config() const { return config_; }
  GlobalMemory &memory() { return memory_; }
  const Code &code() const { return code_; }
  std::uint32_t staticSharedBytes() const { return staticSharedBytes_; }
  /// A finding that does not end the launch; told once per instruction.
  void warn(const char *id, const Warp &warp, const Op &op, LaneMask lanes,
            const std::string &message, const FindingObject &object = {});
  /// End the launch with a finding at `op`.
  [[noreturn]] void fault(const char *id, const Warp &warp, const Op &op,
                          LaneMask lanes, const std::string &message,
                          const FindingObject &object = {});
  /// The same where the launch could go on: it does if the caller allows the
  /// id, or takes it for a warning, and with an uninitialized-store always.
  void error(const char *id, const Warp &warp, const Op &op, LaneMask lanes,
             const std::string &message, const FindingObject &object = {});
  /// Whether findings of that id are wanted at all.
  bool isAllowed(const std::string &id) const;
  /// The source line of an instruction, from .loc.
  SourceLine sourceLine(const ptx::Instruction &instruction) const;
  /// A finding at `op` by a thread, and by others of its warp's `lanes`, graded
  /// as the caller wants it.
  Finding makeFinding(const char *id, Finding::Grade grade, const Dim3 &cta,
                      int thread, LaneMask lanes, const Op &op,
                      const std::string &message,
                      const FindingObject &object) const;
  /// The shared variable that an address lies in; null: none.
  const std::pair<std::string, Symbol> *
  sharedVariable(std::uint64_t address) const;
  /// "shared address 1040 (byte 16 of tile)"
  std::string describeShared(std::uint32_t address) const;
  /// "gemm.cpp:12"
  std::string placeOf(const Op &op) const;
  /// Text from the kernel's printf: in the order of clusters, or of events
  /// where clusters talk to each other. False where it is too much.
  bool print(Cluster &cluster, const std::string &text) {
    if ((printedBytes_ += text.size()) > kMaxPrintedBytes)
      return false;
    print_(cluster, text);
    return true;
  }
  using Printer = std::function<void(Cluster &, const std::string &)>;
  void setPrinter(Printer printer) { print_ = std::move(printer); }
  /// End the launch because those clusters wait, naming who waits for what;
  /// `notBegun` CTAs have found no room on the device.
  [[noreturn]] void reportDeadlock(const std::vector<Cluster *> &clusters,
                                   std::uint64_t notBegun = 0);
  /// End it because a cluster has executed more than it may.
  [[noreturn]] void reportLimit(Cluster &cluster);
  /// End it because the time is up or the caller wants it, with `done` CTAs at
  /// their end and those clusters under way.
  [[noreturn]] void reportStop(const std::vector<Cluster *> &clusters,
                               std::uint64_t done);
  /// End it because the loop that a warp's current group is in repeats itself,
  /// and reads nothing that could change.
  [[noreturn]] void reportEndless(Warp &warp, const LoopWatch &loop);
  /// Whether the time is up or the caller has cancelled the launch; once true
  /// it stays so. Cheap enough for every turn of a warp.
  bool isStopping() const {
    return (config_.cancel &&
            config_.cancel->load(std::memory_order_relaxed)) ||
           (config_.timeLimitS > 0 && elapsedS() >= config_.timeLimitS);
  }
  /// Remember who wrote a flag last; for the deadlock's ledger.
  void noteWriter(const Warp &warp, const Op &op, const void *data, int lane);
  const LastWriter *lastWriter(const void *data);

  /// Clusters behind this one need not be run: it ends the launch.
  std::atomic<std::uint64_t> lastWanted{~std::uint64_t(0)};

private:
  /// A finding that does not end the launch; told once per instruction.
  void keep(const char *id, Finding::Grade grade, const Warp &warp,
            const Op &op, LaneMask lanes, const std::string &message,
            const FindingObject &object);
  /// End the launch with that finding, graded as the caller wants it.
  [[noreturn]] void end(Finding finding) const;
  /// Since run() was called.
  double elapsedS() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() -
                                         start_)
        .count();
  }

  std::chrono::steady_clock::time_point start_;
  GlobalMemory &memory_;
  const ptx::Module &module_;
  LaunchConfig config_;
  std::unique_ptr<ModuleVariables> ownVariables_;
  std::uint32_t staticSharedBytes_ = 0;
  std::vector<std::pair<std::string, Symbol>> sharedVariables_;
  Code code_;
  Printer print_;
  std::atomic<std::uint64_t> printedBytes_{0};
  std::mutex writersMutex_;
  std::map<const void *, LastWriter> writers_; ///< by their first byte
};

} // namespace kiln::sim
