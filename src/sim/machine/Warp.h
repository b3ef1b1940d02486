// Warp: 32 lanes, their registers, and where each of them is.
//
// Lanes that are at one place run together as a group. A branch that splits a
// group makes two, which meet again at the branch's immediate post-dominator:
// the first to arrive is parked there until the other comes. Where nothing else
// can run, a parked group is let go, so that a lane that spins for another
// lane's work ends as it does on hardware (independent thread scheduling).
#pragma once

#include "sim/machine/Groups.h"
#include "sim/machine/LoopWatch.h"
#include "sim/machine/OrderedWork.h"
#include "sim/machine/memory/Memory.h"
#include "sim/machine/memory/RegisterPoison.h"
#include "sim/program/Lazy.h"
#include "sim/program/Program.h"
#include "support/limits/Recycled.h"

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

namespace kiln::sim {

class Cta;
class Machine;
class Watchers;

struct Pending;

/// What a warp has issued to the tensor core, counted in order.
struct WgmmaQueue {
  std::uint64_t issued = 0;    ///< multiplications
  Queue<std::uint64_t> groups; ///< per open group: issued at commit
  /// Registers of products this warp has not waited for, oldest first.
  struct Held {
    std::uint64_t number;
    const Op *op;
    const std::vector<Reg> &registers;
    const std::vector<Reg> &fragment; ///< of A: may be read meanwhile
  };
  Queue<Held> held;
  /// By Reg::index: the last instruction that touched it, and how many
  /// wgmma.fence there had been.
  struct Touch {
    const Op *op = nullptr;
    std::uint32_t fences = 0;
    bool isWritten = false; ///< by it or by one before it since the fence
  };
  std::vector<Touch> touched;
  std::uint32_t touchedCount = 0; ///< registers with such an instruction
  std::uint32_t fences = 0;
  bool isFenced = false; ///< since the last wait
  /// How many of them hold a register, by Reg::index.
  std::vector<std::uint32_t> holders;

  void hold(const Held &product);
  /// Those before `number` have been waited for.
  void release(std::uint64_t number);
  bool isHeld(Reg reg) const {
    return reg.index < holders.size() && holders[reg.index];
  }
};

/// What the threads of a warp have begun with tensor memory (tcgen05).
struct TensorQueue {
  OrderedWork operations;   ///< products, copies and shifts, and their commits
  OrderedWork stores;       ///< tcgen05.st
  LaneMask issuers = 0;     ///< threads that have ever issued an operation
  LaneMask uncommitted = 0; ///< since their last commit
  /// A tcgen05.ld that no tcgen05.wait::ld has covered.
  struct Load {
    const Op *op;
    std::uint32_t time;  ///< of its access
    bool isUsed = false; ///< an instruction has read a register of it
  };
  Queue<Load> loads; ///< oldest first; the first is not used
  /// In the order of accesses; made at the first use.
  struct Components {
    Component operations, loads, stores;
  };
  std::optional<Components> components;
};

/// What a thread may have open, of copies and of groups. A kernel that never
/// waits shall not fill the host's memory: beyond it the oldest are done.
inline constexpr std::size_t kMaxGroups = 4096;

/// Groups of asynchronous copies of one thread, oldest first.
struct BulkGroups {
  std::vector<std::shared_ptr<Pending>> open; ///< not committed
  Queue<std::vector<std::shared_ptr<Pending>>> committed;
};

/// Lanes that have arrived at the cluster barrier and have not waited since. A
/// round cannot end before all of them have waited for the one before it, so
/// that two are enough: of even and of odd number.
struct ClusterArrivals {
  struct Round {
    LaneMask lanes = 0;
    std::shared_ptr<SyncPoint> handed;    ///< what the arrived hand over
    std::shared_ptr<FencedClock> relaxed; ///< its CTA's (Cta::relaxedRound)
  };
  std::array<Round, 2> rounds;

  LaneMask lanes() const { return rounds[0].lanes | rounds[1].lanes; }
};

/// How far a warp may go in its turn.
struct WarpTurn {
  int limit;                   ///< instructions
  bool endsAtAtomics = false;  ///< that have changed something
  bool endsAtBranches = false; ///< that part its lanes, and where they meet
  /// By instruction of Code::ops, 1: stop before it, unless it is the first one.
  const std::uint8_t *stops = nullptr;
};

/// What came of a warp's turn.
enum class Progress : std::uint8_t {
  none,  ///< no group could run
  spun,  ///< a loop went round, and nothing is different
  moved, ///< it got further, or arrived where its lanes meet
};

/// The registers of a warp: a copy of what they hold at its start.
class RegisterFile {
public:
  explicit RegisterFile(const std::vector<FileLine> &initial)
      : bytes_(initial.size() * sizeof(FileLine)),
        data_(static_cast<std::uint8_t *>(takeRecycled(bytes_))) {
    if (bytes_)
      std::memcpy(data_, initial.data(), bytes_);
  }
  RegisterFile(const RegisterFile &) = delete;
  ~RegisterFile() { giveRecycled(data_, bytes_); }

  std::uint8_t *data() { return data_; }
  const std::uint8_t *data() const { return data_; }

private:
  std::size_t bytes_;
  std::uint8_t *data_;
};

class Warp : public Recycled {
public:
  Warp(Cta &cta, int index, const Code &code);

  // Registers. Handlers see lanes as arrays of their type.
  template <typename T> T *lanes(Reg reg) {
    return reinterpret_cast<T *>(file_.data() + reg.offset);
  }
  template <typename T> const T *lanes(Reg reg) const {
    return reinterpret_cast<const T *>(file_.data() + reg.offset);
  }
  /// One lane's value, zero-extended.
  std::uint64_t read(Reg reg, int lane) const {
    return reg.width == 8 ? lanes<std::uint64_t>(reg)[lane]
                          : lanes<std::uint32_t>(reg)[lane];
  }
  /// Write one lane; the bits above the register's size become zero.
  void write(Reg reg, int lane, std::uint64_t bits) {
    if (reg.width == 8)
      lanes<std::uint64_t>(reg)[lane] = bits;
    else
      lanes<std::uint32_t>(reg)[lane] = static_cast<std::uint32_t>(bits);
  }
  LaneMask pred(Pred p) const {
    LaneMask mask = predicates_[p.index];
    return p.isNegated ? ~mask : mask;
  }
  /// Set the lanes of `active` to those of `value`.
  void setPred(Pred p, LaneMask active, LaneMask value) {
    LaneMask &mask = predicates_[p.index];
    mask = (mask & ~active) | (value & active);
  }
  // What comes from bytes that nobody wrote. Handlers of arithmetic need not
  // care: the interpreter passes the poison of their sources on (Poison.h).
  /// Lanes some bytes of whose value are unwritten.
  LaneMask poison(const Reg &reg) const { return poison_.lanes(reg); }
  /// All ones in the unwritten bytes of a lane.
  std::uint64_t poisonBits(const Reg &reg, int lane) const {
    return poison_.bits(reg, lane);
  }
  void setPoison(const Reg &reg, LaneMask lanes, LaneMask unwritten) {
    poison_.set(reg, lanes, unwritten);
  }
  void setPoisonBits(const Reg &reg, int lane, std::uint64_t bits) {
    poison_.setBits(reg, lane, bits);
  }
  /// Where unwritten bytes of a value were read first: a number of the
  /// cluster's (Cluster::origins); 0: nobody knows.
  std::uint32_t poisonOrigin(const Reg &reg) const {
    return poison_.origin(reg);
  }
  void setPoisonOrigin(const Reg &reg, std::uint32_t origin) {
    poison_.setOrigin(reg, origin);
  }
  std::uint32_t predOrigin(Pred p) const {
    return predOrigins_.empty() ? 0 : predOrigins_[p.index];
  }
  void setPredOrigin(Pred p, std::uint32_t origin) {
    if (predOrigins_.empty() && origin)
      predOrigins_.resize(predicates_.size());
    if (!predOrigins_.empty())
      predOrigins_[p.index] = origin;
  }
  /// Of all results of an instruction.
  void setResultPoison(const Op &op, LaneMask lanes, LaneMask unwritten);
  LaneMask predPoison(Pred p) const { return predPoison_[p.index]; }
  void setPredPoison(Pred p, LaneMask lanes, LaneMask unknown) {
    LaneMask &mask = predPoison_[p.index];
    mask = (mask & ~lanes) | (unknown & lanes);
  }

  Cta &cta() { return cta_; }
  const Cta &cta() const { return cta_; }
  Machine &machine() { return machine_; }
  const Watchers &watchers() const { return watchers_; }
  bool hasChecks() const { return hasChecks_; }
  int index() const { return index_; }
  /// The group that is executing; handlers of control instructions change it.
  Group &group() { return *current_; }
  LaneMask live() const { return live_; }
  const Code &code() const { return code_; }
  /// This lane's thread number in the CTA.
  int thread(int lane) const { return index_ * kLanes + lane; }

  /// Run one group, and where it parts or waits for lanes to meet, the others.
  Progress run(const WarpTurn &turn);
  /// Run that group, up to the next instruction that `stops` marks (Turn).
  Progress runGroup(std::size_t group, int limit, const std::uint8_t *stops);
  /// Make blocked groups look again.
  void wake();
  /// Let one parked group that has waited for `patience` instructions of the
  /// warp go on without its partners; false where none is.
  bool breakReconvergence(std::uint64_t patience = 0);
  /// Nobody moves any more: report the groups that wait at an instruction for
  /// whole warps, and let them go on. False: there are none.
  bool checkStrayLanes();
  bool isDone() const { return live_ == 0; }
  GroupList &groups() { return groups_; }
  const LoopWatch &watch() const { return watch_; }
  /// The instructions of a spinning group's loop that read.
  std::vector<const Op *> pollsOf(const Group &group) const;

  // For control handlers.
  /// Split the current group: lanes of `taken` go to `target`, the others to
  /// the next instruction; they meet at `reconverge` (-1: nowhere).
  void branch(LaneMask taken, int target, int reconverge);
  /// Lanes of the current group leave the kernel.
  void exit(LaneMask lanes);
  /// The current group's call of a function, and its return from it.
  void enter(int function, const Op &call);
  void leave();
  /// Where the local memory of the current group's function begins.
  std::uint32_t localBase() const {
    return current_->frame ? current_->frame->localBase : 0;
  }

  /// Where the frame of the current group's function ends.
  std::uint32_t frameEnd() const {
    int function = current_->frame ? current_->frame->function : 0;
    return localBase() + code_.functions[function].localBytes;
  }
  /// Make room for local memory up to `bytes` per lane.
  void reserveLocal(std::uint32_t bytes) { growLocal(bytes); }

  std::uint64_t instructions = 0;  ///< executed so far
  std::uint64_t effects = 0;       ///< those that others may have noticed
  int registers = 0;               ///< per thread, as setmaxnreg counts
  std::vector<std::uint8_t> local; ///< lanes' local memory, one after another
  ValidBits localValid;            ///< of it
  std::uint32_t localBytes = 0;    ///< of it per lane; grows with calls
  /// Where what each lane has allocated on its stack ends; below the end of
  /// the function's frame: it has nothing there.
  std::array<std::uint32_t, kLanes> stackTops{};
  /// State that units keep per warp or per lane (committed groups and the
  /// like).
  ClusterArrivals clusterArrivals;
  WarpClock clock;
  /// Lanes that have read a value which has not counted yet, and since when
  /// (WarpClock::now), by LateUse::number.
  struct LateValue {
    LaneMask lanes = 0;
    std::uint32_t time = 0;
  };
  std::vector<LateValue> lateValues;
  WgmmaQueue wgmma;
  TensorQueue tensor;
  PerLane<BulkGroups> bulk;        ///< bulk copies
  PerLane<BulkGroups> asyncCopies; ///< cp.async

private:
  void fill(const InitialValue &initial);
  Step execute(const Op &op, LaneMask active);
  /// Execute up to `count` plain instructions for a group's lanes; how many
  /// were: the next one, if any, needs a closer look.
  template <bool isChecked>
  int runPlain(const Op *op, int count, LaneMask lanes);
  /// The same of plain ones and accesses, where nobody looks at either.
  void runStraight(const Op *op, int count, Group &group);
  /// Run one group until its turn is over or its lanes part or meet.
  Progress runGroup(const WarpTurn &turn, std::uint64_t limit);
  /// The same with the group that was chosen.
  Progress runChosen(const WarpTurn &turn, std::uint64_t limit);
  /// Choose the group that is next; false where none can run.
  bool choose(std::uint64_t epoch);
  bool isAtOneBarrier();
  /// The way that `lanes` take at a branch follows from unwritten bytes: what
  /// they do until all paths meet is in doubt.
  void doubt(const Op &branch, LaneMask lanes);
  /// They do it: what others notice of it is wrong.
  void noteDoubtful(const Op &op, LaneMask lanes);
  bool settle();
  bool joinWaiting();
  bool passWarpBarriers();
  /// The group whose lanes have met.
  void join(const ReconvergenceRef &reconvergence);
  /// Make room for local memory up to `bytes` per lane.
  void growLocal(std::uint32_t bytes);
  /// Fill the registers that hold addresses in a function's frame.
  void fillLocalAddresses(const FunctionCode &code, std::uint32_t base,
                          LaneMask lanes);
  /// A branch backwards was taken: is the round the same as the one before?
  bool isSameRound(const SpinLoop &loop, int branch);

  Cta &cta_;
  Machine &machine_;
  bool hasChecks_;
  const Watchers &watchers_;
  int index_;
  const Code &code_;
  RegisterFile file_;
  RegisterPoison poison_;
  std::vector<LaneMask, RecycledAllocator<LaneMask>> predicates_, predPoison_;
  std::vector<std::uint32_t> predOrigins_; ///< empty as long as there are none
  GroupList groups_;
  Group *current_ = nullptr;
  bool hasParted_ = false; ///< lanes of the current group, since it was chosen
  bool isAtMeeting_ = false; ///< it has been parked, or has none left
  HostMemory share_; ///< of the host's memory, for `local`
  LaneMask live_ = 0;
  LoopWatch watch_;
  std::size_t next_ = 0; ///< round robin
};

/// Report where part of a warp reaches an instruction for all of it.
void checkAligned(Warp &warp, const Op &op, LaneMask active);
/// The same, and where a warp has fewer than 32 lanes: for instructions whose
/// lanes hold parts of a matrix.
void checkWholeWarp(Warp &warp, const Op &op, LaneMask active);

} // namespace kiln::sim
