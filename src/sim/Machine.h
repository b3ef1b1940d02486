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
  std::uint64_t maxInstructions = 0; ///< per launch; 0: no limit
  /// Takes the kernel's printf; empty: stdout does.
  std::function<void(const std::string &)> print;
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
};

class Cluster;

/// Named barrier of a CTA (bar.sync, bar.arrive).
struct CtaBarrier {
  std::uint32_t arrived = 0;    ///< threads
  std::uint32_t expected = 0;   ///< 0: nobody is here
  std::uint32_t generation = 0; ///< completed rounds
};

/// What the warps of one warpgroup have issued to its tensor core.
struct TensorCoreQueue {
  /// Issued by some of the four warps.
  struct Waiting {
    const Op *op;
    std::uint64_t descriptorA, descriptorB;
    bool isAdded;
    int warps;
  };
  /// Issued by all, not done.
  struct Formed {
    std::uint64_t number;
    std::shared_ptr<std::function<void()>> work;
  };
  /// Issued by all, not waited for by any: it may still be reading.
  struct Reading {
    std::uint64_t number;
    std::vector<std::uint32_t> chunks; ///< of 16 bytes, counted in Cta::readers
  };
  std::uint64_t formed = 0; ///< multiplications all four warps have issued
  std::deque<Waiting> waiting;
  std::deque<Formed> inFlight;
  std::deque<Reading> reading;

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

  /// Products in flight that read a 16-byte chunk of shared memory, and the
  /// last of them.
  struct Readers {
    std::uint16_t count = 0;
    const Op *last = nullptr;
  };
  std::vector<Readers> readers;
  /// The product in flight that reads some of [offset, offset + bytes) of
  /// shared memory; null: none.
  const Op *readerOf(std::size_t offset, std::size_t bytes) const;

private:
  Machine &machine_;
  Cluster &cluster_;
  Dim3 index_;
  int rank_;
  std::vector<std::unique_ptr<Warp>> warps_;
};

/// CTAs that can reach each other's shared memory; one if there is no cluster.
class Cluster {
public:
  Cluster(Machine &machine, const Dim3 &first, std::uint64_t number);

  /// Run: to the end where it is alone, else until it has had its turn. False
  /// where nothing moved. Throws Fault.
  bool step(bool isAlone);
  bool isDone() const;
  /// End the launch, naming who waits for what.
  [[noreturn]] void reportDeadlock();

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
  std::uint64_t instructions = 0;

private:
  bool performOne();
  /// Nothing can run: let waits time out and parked lanes go. False where
  /// that has been tried and nothing came of it.
  bool unblock();

  Machine &machine_;
  std::vector<std::unique_ptr<Cta>> ctas_;
  std::deque<std::shared_ptr<Pending>> pending_;
  std::mt19937_64 random_;
  std::uint64_t lastUnblockEpoch_ = 0;
};

class Machine {
public:
  Machine(GlobalMemory &memory, const ptx::Module &module,
          const ptx::Function &entry, const LaunchConfig &config);
  ~Machine();

  /// Run the launch to its end.
  LaunchResult run();

  const LaunchConfig &config() const { return config_; }
  GlobalMemory &memory() { return memory_; }
  const Code &code() const { return code_; }
  std::uint32_t staticSharedBytes() const { return staticSharedBytes_; }
  /// A finding that does not end the launch; told once per instruction.
  void warn(const char *id, const Warp &warp, const Op &op, LaneMask lanes,
            const std::string &message);
  /// End the launch with a finding at `op`.
  [[noreturn]] void fault(const char *id, const Warp &warp, const Op &op,
                          LaneMask lanes, const std::string &message);
  /// The source line of an instruction, from .loc.
  SourceLine sourceLine(const ptx::Instruction &instruction) const;
  /// Text from the kernel's printf, in order of clusters.
  void print(const std::string &text);

private:
  Finding makeFinding(const char *id, Finding::Grade grade, const Warp &warp,
                      const Op &op, LaneMask lanes,
                      const std::string &message) const;
  void layoutSymbols();

  GlobalMemory &memory_;
  const ptx::Module &module_;
  const ptx::Function &entry_;
  LaunchConfig config_;
  std::map<std::string, Symbol> symbols_;
  std::vector<std::uint64_t> ownRegions_; ///< module variables
  std::uint32_t staticSharedBytes_ = 0, localBytes_ = 0;
  Code code_;
  std::mutex mutex_;
  std::vector<Finding> findings_;
  std::map<std::pair<std::string, int>, bool> told_;
};

} // namespace kiln::sim
