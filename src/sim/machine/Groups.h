// Groups: lanes of a warp that run together, and where they will meet others.
//
// Divergent code parts and joins groups every few instructions: groups and
// meeting points are taken from what was used before, stay where they are in
// memory, and count who refers to them without a word to other threads.
#pragma once

#include "kiln/run/host_memory.h"
#include "sim/clocks/LaneClocks.h"
#include "sim/program/Program.h"
#include "support/limits/Recycled.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::sim {

/// What a group waits for; for the scheduler and for the deadlock report.
struct WaitReason {
  enum class Kind : std::uint8_t {
    none,
    mbarrier,   ///< address, phase parity
    ctaBarrier, ///< bar.sync id
    clusterBarrier,
    wgmma,        ///< wait_group
    bulkGroup,    ///< cp.async.bulk.wait_group
    asyncGroup,   ///< cp.async.wait_group
    registers,    ///< setmaxnreg.inc
    lanes,        ///< a warp-wide instruction waits for other lanes
    tensorMemory, ///< tcgen05.alloc: how many columns, and the cta_group
    primary,      ///< griddepcontrol.wait
  };
  Kind kind = Kind::none;
  std::uint64_t object = 0; ///< address or barrier number
  std::uint32_t detail = 0; ///< parity, or how many
};

/// A call that has not returned.
struct Frame {
  std::shared_ptr<Frame> caller; ///< null: the entry called
  int function;                  ///< of Code::functions
  const Op *call;
  int returnTo;            ///< instruction
  std::uint32_t localBase; ///< of its local memory
  int depth;
  /// What the function's registers held for an outer call of the same one;
  /// empty where there is none.
  std::vector<std::uint8_t> file;
  std::vector<std::array<std::uint64_t, kLanes>> poison; ///< bits
  std::vector<LaneMask> predicates, predPoison;
  HostMemory share; ///< of the host's memory, for these
};

struct ReconvergencePoint;

/// Refers to a meeting point, which lives as long as somebody does; all of them
/// belong to one thread of the host.
class ReconvergenceRef {
public:
  ReconvergenceRef() = default;
  /// Of a new point.
  explicit ReconvergenceRef(ReconvergencePoint *point) : point_(point) {}
  inline ReconvergenceRef(const ReconvergenceRef &other);
  ReconvergenceRef(ReconvergenceRef &&other) noexcept
      : point_(std::exchange(other.point_, nullptr)) {}
  ReconvergenceRef &operator=(ReconvergenceRef other) noexcept {
    std::swap(point_, other.point_);
    return *this;
  }
  ~ReconvergenceRef() {
    if (point_)
      release();
  }

  explicit operator bool() const { return point_ != nullptr; }
  ReconvergencePoint *operator->() const { return point_; }
  ReconvergencePoint *get() const { return point_; }
  bool operator==(const ReconvergenceRef &other) const {
    return point_ == other.point_;
  }

private:
  inline void release();

  ReconvergencePoint *point_ = nullptr;
};

/// Two paths that will meet: at `pc` of one call, all lanes of `expected`.
struct ReconvergencePoint : Recycled {
  ReconvergencePoint(int pc, LaneMask expected, ReconvergenceRef outer,
                     std::shared_ptr<Frame> frame, LaneMask inDoubt = 0)
      : pc(pc), expected(expected), outer(std::move(outer)),
        frame(std::move(frame)), inDoubt(inDoubt) {}

  int pc;
  LaneMask expected;
  LaneMask arrived = 0;
  ReconvergenceRef outer;
  std::shared_ptr<Frame> frame;
  LaneMask inDoubt;        ///< lanes that were in doubt before the paths parted
  std::uint32_t users = 1; ///< references to it
};

inline ReconvergenceRef::ReconvergenceRef(const ReconvergenceRef &other)
    : point_(other.point_) {
  if (point_)
    ++point_->users;
}

inline void ReconvergenceRef::release() {
  // A chain of them may be long.
  ReconvergencePoint *point = std::exchange(point_, nullptr);
  while (point && --point->users == 0) {
    ReconvergencePoint *outer = std::exchange(point->outer.point_, nullptr);
    delete point;
    point = outer;
  }
}

/// Where lanes that run together are, and what they wait for.
struct GroupState {
  int pc = 0;
  LaneMask lanes = 0;
  ReconvergenceRef reconvergence;   ///< innermost; null: none until exit
  std::shared_ptr<Frame> frame;     ///< null: in the entry
  WaitReason wait;                  ///< kind none: runnable
  bool isParked = false;            ///< arrived at its reconvergence
  std::uint64_t blockedEpoch = 0;   ///< nothing has changed since it blocked
  bool hasTimedOut = false;         ///< its try_wait may say no now
  int refusedPc = -1;               ///< the try_wait that said no last
  std::shared_ptr<SyncPoint> round; ///< of the barrier it waits at
  std::uint64_t parkedAt = 0;       ///< Warp::instructions when it was parked
  /// The round of a loop that it finished last: the branch, and a hash of what
  /// decides about the next (SpinLoop).
  int roundPc = -1;
  std::uint64_t roundEffects = 0;     ///< Warp::effects then
  std::uint64_t roundOfFirstLane = 0; ///< the hash for one lane
  std::uint64_t roundState = 0;
  std::uint64_t roundEnd = 0; ///< Warp::instructions then
  bool isSpinning = false;    ///< the last two rounds were the same
  /// Nobody else comes to the instruction for whole warps that it stands at.
  bool isUnaccompanied = false;
  LaneMask inDoubt = 0; ///< whose way a predicate from unwritten bytes chose
  const Op *doubtedAt = nullptr; ///< the branch
  bool isStuck = false;          ///< several rounds were, and so are the next
};

/// Lanes that run together.
struct Group : GroupState, Recycled {
  LaneClocks clocks; ///< what its lanes know of the order
};

/// The groups of a warp, in the order of their turns. A group stays at its
/// address while it lives.
class GroupList {
public:
  /// `hasClocks`: groups know something of the order of accesses.
  explicit GroupList(bool hasClocks) : hasClocks_(hasClocks) {}
  GroupList(const GroupList &) = delete;
  ~GroupList() {
    for (Group *group : all_)
      delete group;
  }

  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  Group &operator[](std::size_t i) { return *all_[i]; }
  const Group &operator[](std::size_t i) const { return *all_[i]; }
  Group &front() { return *all_.front(); }
  const Group &front() const { return *all_.front(); }

  /// A fresh one, behind the others.
  Group &add() {
    if (size_ == all_.size())
      all_.push_back(new Group);
    return *all_[size_++];
  }
  template <typename Condition> void eraseIf(Condition &&condition) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < size_; ++i)
      if (condition(std::as_const(*all_[i])))
        reset(*all_[i]);
      else
        std::swap(all_[kept++], all_[i]);
    size_ = kept;
  }
  /// Make a group the last one.
  void moveBehind(const Group &group) {
    auto at = std::find(all_.begin(), all_.begin() + size_, &group);
    std::rotate(at, at + 1, all_.begin() + size_);
  }

  template <typename Pointer, typename Target> class Iterator {
  public:
    using iterator_category = std::forward_iterator_tag;
    using value_type = Target;
    using difference_type = std::ptrdiff_t;
    using pointer = Target *;
    using reference = Target &;

    explicit Iterator(Pointer at) : at_(at) {}
    Target &operator*() const { return **at_; }
    Target *operator->() const { return *at_; }
    Iterator &operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator &other) const = default;

  private:
    Pointer at_;
  };
  auto begin() { return Iterator<Group **, Group>(all_.data()); }
  auto end() { return Iterator<Group **, Group>(all_.data() + size_); }
  auto begin() const {
    return Iterator<Group *const *, const Group>(all_.data());
  }
  auto end() const {
    return Iterator<Group *const *, const Group>(all_.data() + size_);
  }

private:
  void reset(Group &group) {
    static_cast<GroupState &>(group) = GroupState();
    if (hasClocks_)
      group.clocks = LaneClocks();
  }

  /// Those in use, then those that may be again.
  std::vector<Group *, RecycledAllocator<Group *>> all_;
  std::size_t size_ = 0;
  bool hasClocks_;
};

} // namespace kiln::sim
