// AccessExtents: where each instruction has touched a memory, and how.
//
// Accesses of some kinds cannot collide with each other: reads with reads, and
// atomics of a scope that takes in everybody with their like. As long as
// nothing else touches the bytes between the first and the last that an
// instruction has touched, its accesses may be deferred.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace kiln::sim {

class AccessExtents {
public:
  enum class Kind : std::uint8_t {
    reads,       ///< weak ones, deferred
    atomics,     ///< relaxed ones of .gpu scope, deferred
    directReads, ///< weak ones, in the shadow
    direct,      ///< whatever, in the shadow
  };
  static bool isDeferred(Kind kind) { return kind <= Kind::atomics; }

  struct Range {
    std::uint64_t begin, end;

    bool meets(const Range &other) const {
      return begin < other.end && other.begin < end;
    }
    bool holds(const Range &other) const {
      return begin <= other.begin && other.end <= end;
    }
  };
  struct Extent {
    std::uint32_t op;
    Kind kind;
    bool hasFallen; ///< it is deferred no more, and what was is to be put back
    Range touched;
    /// It may grow so far without a look at the others: this meets none of
    /// theirs that it can collide with.
    Range room;
  };

  enum class Answer : std::uint8_t {
    defer, ///< it may be deferred
    touch, ///< it belongs into the shadow
    /// The same, behind what has fallen (hasFallen), which goes there first.
    touchBehind,
  };
  /// An instruction touches some bytes, which it would like to defer.
  Answer note(std::uint32_t op, Kind kind, const Range &range) {
    Extent *known = find(op);
    if (!known && isFull()) {
      op = isRead(kind) ? kOtherReads : kOthers;
      kind = isRead(kind) ? Kind::directReads : Kind::direct;
      known = find(op);
    }
    if (known) {
      bool isSame = known->kind == kind ||
                    (!isDeferred(known->kind) && known->kind > kind);
      if (isSame && known->room.holds(range)) {
        known->touched = {std::min(known->touched.begin, range.begin),
                          std::max(known->touched.end, range.end)};
        return isDeferred(known->kind) ? Answer::defer : Answer::touch;
      }
    }
    return noteAnew(known, op, kind, range);
  }
  bool hasFallen(std::uint32_t op) {
    const Extent *its = find(op);
    return its && its->hasFallen;
  }
  bool isDeferred(std::uint32_t op) {
    const Extent *its = find(op);
    return its && isDeferred(its->kind) && !its->hasFallen;
  }
  /// What had fallen has been put back.
  void settle();
  const std::vector<Extent> &list() const { return extents_; }

private:
  /// More instructions are told apart no longer: what others do goes into the
  /// shadow, and stands under these numbers.
  static constexpr std::size_t kMost = 250;
  static constexpr std::uint32_t kOthers = ~0u, kOtherReads = ~1u;

  bool isFull() const { return extents_.size() >= kMost; }
  static bool isRead(Kind kind) {
    return kind == Kind::reads || kind == Kind::directReads;
  }
  static std::size_t placeOf(std::uint32_t op) { return op * 2654435761u >> 23; }
  /// null: it has touched nothing.
  Extent *find(std::uint32_t op) {
    for (std::size_t at = placeOf(op); places_[at];
         at = (at + 1) % places_.size())
      if (Extent &one = extents_[places_[at] - 1]; one.op == op)
        return &one;
    return nullptr;
  }
  Answer noteAnew(Extent *known, std::uint32_t op, Kind kind,
                  const Range &range);
  static bool canCollide(Kind one, Kind other);
  /// Give an extent as much room as there is.
  void makeRoom(Extent &mine);
  /// Those that it collides with fall, and those that lie beside them. False:
  /// there are none.
  bool fall(const Extent &mine);

  std::vector<Extent> extents_;
  /// By hash of the instruction, and on from there: its number in `extents_`,
  /// plus one.
  std::array<std::uint8_t, 512> places_{};
};

} // namespace kiln::sim
