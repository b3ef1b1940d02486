// Touch: what a step does with what others can see, and which steps depend on
// each other. This is the one place that says what is dependent.
//
// Two steps may change places where every pair of their touches is independent:
// other objects, or ways of touching one object whose order nobody can tell.
// Arrivals at a barrier commute within a phase, and not across its end; whoever
// has waited for a phase comes behind what completed it. Where this file is
// unsure, they are dependent.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace kiln::sim {

struct Touch {
  enum class Of : std::uint8_t {
    mbarrier,       ///< CTA, address
    ctaBarrier,     ///< CTA, number
    liveThreads,    ///< CTA: barriers for all threads count them
    clusterBarrier, ///< cluster
    memory,         ///< CTA or kGlobal, word: atomics, ordered accesses, polls
    registers,      ///< CTA: the pool of setmaxnreg
    tensorMemory,   ///< CTA: its allocations
    clusters,       ///< those that have not begun
    heap,           ///< malloc and free
    everything,     ///< whatever it is
  };
  enum class How : std::uint8_t {
    read,
    write,
    reduce, ///< `phase` says by which operation; nobody sees what was there
    arrive, ///< in `phase`: an arrival, with the bytes that it announces
    bytes,  ///< in `phase`: bytes that were announced have come
    expect, ///< in `phase`: bytes are announced or taken back by themselves
    await,  ///< a wait came true, which a later phase would undo
    pass,   ///< a wait came true for good
  };
  static constexpr std::uint32_t kGlobal = ~std::uint32_t(0);

  Of of = Of::everything;
  How how = How::write;
  std::uint32_t place = kGlobal; ///< the number of a CTA or a cluster
  std::uint64_t object = 0;      ///< an address, a number of a barrier
  std::uint64_t phase = 0;

  bool isSameObject(const Touch &other) const {
    return of == other.of && place == other.place && object == other.object;
  }
  auto operator<=>(const Touch &) const = default;
};

using Touches = std::vector<Touch>;

constexpr bool isArrival(Touch::How how) {
  return how == Touch::How::arrive || how == Touch::How::bytes ||
         how == Touch::How::expect;
}
constexpr bool isLook(Touch::How how) {
  return how == Touch::How::read || how == Touch::How::await ||
         how == Touch::How::pass;
}

/// Of one object: does their order matter?
constexpr bool isDependentOn(const Touch &a, const Touch &b) {
  using How = Touch::How;
  if (isLook(a.how) && isLook(b.how))
    return false;
  if (a.how == How::reduce && b.how == How::reduce)
    return a.phase != b.phase;
  if (isArrival(a.how) && isArrival(b.how)) {
    // A phase ends where no arrivals and no bytes are missing. All bytes that
    // come with an arrival are announced when all have arrived; those that are
    // announced alone may come too late.
    bool isAlone = a.how == How::expect || b.how == How::expect;
    return isAlone || a.phase != b.phase;
  }
  // What comes behind the phase that was waited for does not undo it.
  if (a.how == How::pass && isArrival(b.how))
    return b.phase < a.phase;
  if (b.how == How::pass && isArrival(a.how))
    return a.phase < b.phase;
  return true;
}

inline bool areDependent(const Touches &a, const Touches &b) {
  for (const Touch &one : a)
    for (const Touch &other : b)
      if (one.of == Touch::Of::everything ||
          other.of == Touch::Of::everything ||
          (one.isSameObject(other) && isDependentOn(one, other)))
        return true;
  return false;
}

/// A dependent step `later` could not have come before `earlier`: it waited for
/// a phase that an arrival of `earlier` belongs to.
inline bool isEnabling(const Touches &earlier, const Touches &later) {
  for (const Touch &wait : later)
    if (wait.how == Touch::How::pass)
      for (const Touch &arrival : earlier)
        if (arrival.isSameObject(wait) && isArrival(arrival.how) &&
            arrival.phase < wait.phase)
          return true;
  return false;
}

} // namespace kiln::sim
