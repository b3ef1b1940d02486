// Session: the one device of a process that runs on Kiln's CUDA libraries, what
// the process has put there, and what was found.
//
// libcudart and libcuda are thin: whatever they say in CUDA's words happens
// here. It is made when it is first needed and never destroyed, because
// programs call CUDA from destructors.
#pragma once

#include "cudart/Capture.h"
#include "cudart/Findings.h"
#include "cudart/launch/LaunchesAside.h"
#include "cudart/MemPool.h"
#include "cudart/launch/RepeatedLaunches.h"
#include "kiln/check/options.h"
#include "support/text/NamePattern.h"

#include <map>
#include <mutex>
#include <optional>

namespace kiln::cudart {

/// nvcc's flags that make programs Kiln can run.
inline constexpr const char *kNvccAdvice =
    "compile it with nvcc -cudart shared -gencode "
    "arch=compute_90a,code=compute_90a (or set NVCC_APPEND_FLAGS to these "
    "words and build it again)";

/// A module of the program: a fat binary or what cuModuleLoadData was given.
/// Loaded when it is first used.
class ProgramModule {
public:
  ProgramModule(const void *image, bool isWrapper)
      : image_(image), isWrapper_(isWrapper) {}

  /// Throws NoKernels where it has none that the device runs.
  LoadedModule &get();
  std::shared_ptr<const LoadedModule> share();
  /// Its PTX, likewise.
  std::vector<std::string> texts() const;
  const void *image() const { return image_; }
  /// Of the program's own code, not one that it has loaded.
  bool isOfProgram() const { return isWrapper_; }
  void unload() {
    std::lock_guard lock(mutex_);
    loaded_.reset();
  }
  bool isLoaded() {
    std::lock_guard lock(mutex_);
    return loaded_ != nullptr;
  }

private:
  const void *image_;
  bool isWrapper_;
  std::mutex mutex_;
  std::shared_ptr<LoadedModule> loaded_;
};

/// Thrown where a module has no PTX for the device.
class NoKernels : public UserError {
  using UserError::UserError;
};

/// Thrown where the PTX of a module is wrong.
class InvalidPtx : public UserError {
  using UserError::UserError;
};

/// A kernel of the program.
struct Function {
  ProgramModule *module = nullptr;
  std::string name;
  std::uint32_t maxDynamicSmemBytes = 48 * 1024; ///< until it is raised
  int preferredCarveout = -1;
  int clusterScheduling = 0;
  bool isNonPortableClusterAllowed = false;
  const EntryInfo *info = nullptr; ///< once it was launched
  std::string shown;               ///< as the program calls it, likewise

  const EntryInfo &entry();
};

struct Variable {
  ProgramModule *module = nullptr;
  std::string name;
  std::size_t bytes = 0;
  void **managed = nullptr; ///< where the host looks for its address
};

struct Allocation {
  enum class Kind : std::uint8_t {
    device,
    host,
    managed,
    registered,
    mapped ///< at an address of the program's choice (cuMemMap)
  };

  Kind kind = Kind::device;
  Buffer buffer;
  unsigned flags = 0;
  std::shared_ptr<void> host; ///< what it lies in
  MemPool *pool = nullptr;    ///< that it was taken from
};

/// Memory that the host may not touch.
inline bool isOfDevice(Allocation::Kind kind) {
  return kind == Allocation::Kind::device || kind == Allocation::Kind::mapped;
}

struct Launch {
  Function *function = nullptr;
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1};
  std::array<std::uint32_t, 3> cluster = {1, 1, 1};
  std::uint32_t dynamicSmemBytes = 0;
  bool isCooperative = false;
  bool isDependent = false; ///< programmatic stream serialization
  /// By parameter, or all of them as the entry lays them out.
  void *const *parameters = nullptr;
  const void *packed = nullptr;
  std::size_t packedBytes = 0;
  Stream stream;
};

class Session {
public:
  static Session &get();

  /// Before anything else, where MLIR's words are spoken: their programs have
  /// no library of CUDA's, so that they may run on a GPU too.
  void serveMlir();

  /// For whoever uses it or waits for it: what was put aside has been run.
  Device &device();
  const DeviceDescription &description() { return opened().description(); }
  Findings &findings() { return findings_; }
  /// At the end of the program.
  void conclude();
  /// How a program without kernels for the device gets some.
  const std::string &advice() const { return advice_; }

  // What the program registers.
  ProgramModule *addModule(const void *image, bool isWrapper);
  void removeModule(ProgramModule *module);
  void addFunction(const void *handle, ProgramModule *module, const char *name);
  void addVariable(const void *handle, Variable variable);
  /// Give the program the addresses of its managed variables.
  void placeManaged();
  /// Null: there is none.
  Function *findFunction(const void *handle);
  Variable *findVariable(const void *handle);
  /// By its name, once for each module.
  Function *functionOf(ProgramModule *module, const std::string &name);

  // Memory.
  std::uint64_t allocate(std::size_t bytes, MemPool *pool = nullptr);
  /// An address for so many bytes, at which no memory is until reviveAsync.
  std::uint64_t holdAddress(std::size_t bytes);
  /// Free memory of the device in the stream's turn; false where none begins
  /// there. It can be made to be there again.
  bool freeAsync(std::uint64_t address, const Stream &stream);
  void reviveAsync(std::uint64_t address, std::size_t bytes,
                   const Stream &stream);
  /// Of the host, at the same address for kernels.
  void *allocateHost(std::size_t bytes, Allocation::Kind kind, unsigned flags);
  void registerHost(void *data, std::size_t bytes, unsigned flags);
  /// Memory of the host that is to be the device's.
  void addMapped(void *data, std::size_t bytes);
  /// False where nothing of those kinds begins there.
  bool free(std::uint64_t address,
            std::initializer_list<Allocation::Kind> kinds);
  /// Take everything away that the program has made: memory, streams, events,
  /// graphs. Its kernels are loaded afresh when they are launched again.
  void reset();
  std::optional<Allocation> find(std::uint64_t address);
  bool isAllocated(std::uint64_t address);

  /// Launch; what is found is kept and told. Throws UserError where it is
  /// refused.
  void launch(const Launch &launch);
  int occupancy(Function &function, std::array<std::uint32_t, 3> block,
                std::uint32_t dynamicSmemBytes);

  /// What was found in a call of a library that runs on the host.
  void tellHost(Finding finding);

private:
  Session();
  void open();
  /// As it is, whatever was put aside.
  Device &opened();
  friend class ProgramModule; // which loads itself there
  LaunchDescription describe(const Launch &launch);
  /// Whether --kernel and --launch mean it.
  bool isChosen(const std::string &kernel, std::uint64_t number) const;
  /// What comes of a launch goes to the findings.
  using Finished = std::function<void(Exploration)>;
  void run(const LaunchDescription &description, const LaunchNote &note,
           const Stream &stream, Finished finished);
  void explore(std::span<const LaunchDescription> launches,
               const Stream &stream, bool isChosen, Finished finished);
  /// `finished`, and before it the launch is written to the folder.
  Finished capturing(const LaunchDescription &description,
                     const LaunchNote &note, const Launch &launch,
                     Finished finished);

  CheckSettings settings_;
  ExploreOptions explore_; ///< of checked launches; set by open()
  std::optional<NamePattern> kernels_;
  std::unique_ptr<Capture> capture_; ///< null: nobody asks for it
  bool isGpuAllowed_ = false;
  std::string advice_ = kNvccAdvice;
  std::once_flag opened_;
  std::shared_ptr<Device> device_;
  std::atomic<std::uint64_t> launchCount_{0};
  Findings findings_;
  LaunchesAside aside_;
  RepeatedLaunches repeated_;

  std::recursive_mutex mutex_; ///< of what follows
  std::vector<std::unique_ptr<ProgramModule>> modules_;
  std::map<const void *, Function> functions_;
  std::map<const void *, Variable> variables_;
  std::map<std::pair<ProgramModule *, std::string>, Function> byName_;
  std::map<std::uint64_t, Allocation> allocations_;
};

} // namespace kiln::cudart
