// BarrierEpoch: what the threads of a CTA have done to its shared memory since
// all of them met at a barrier.
//
// What was done before is ordered before all that comes, and need not be
// remembered. What has been done since mostly cannot collide: words are read
// and not written, or are one thread's own, or are changed by atomics alone. As
// long as that is so, accesses need no place in the shadow and wait in a log.
// The first one that is different puts them there in their order, and until the
// next barrier all are touched as they come.
#pragma once

#include "sim/clocks/AccessLog.h"
#include "sim/clocks/Shadow.h"
#include "sim/machine/events/Events.h"

namespace kiln::sim {

class BarrierEpoch {
public:
  explicit BarrierEpoch(std::uint32_t threads) : threads_(threads) {}

  enum class Kind : std::uint8_t { read, write, atomic };
  /// Whether accesses of lanes, which are the threads from `firstThread` on,
  /// collide with nothing; they count from now on. `firstThreadOf(component)`:
  /// of the warp whose lanes that is.
  template <typename FirstThreadOf>
  bool add(Kind kind, const AlikeLanes &alike, std::uint32_t firstThread,
           FirstThreadOf &&firstThreadOf) {
    std::uint64_t end = alike.high + alike.bytes;
    if (kind == Kind::read && !written_.meets(alike.low, end)) {
      read_.add(alike.low, end);
      return true; // whoever reads is in the log
    }
    if (kind == Kind::read)
      log_.seal(); // it stands behind what was written
    else if (read_.meets(alike.low, end))
      noteReaders(firstThreadOf);
    return addByWord(kind, alike, firstThread);
  }
  AccessLog &log() { return log_; }
  /// What is in the log is put into the shadow; more may follow it.
  template <typename FirstThreadOf, typename Body>
  void empty(FirstThreadOf &&firstThreadOf, Body &&restore) {
    noteReaders(firstThreadOf);
    log_.take([](const LoggedAccess &) { return true; }, restore);
    readersBehind_ = 0;
    isInShadow_ = true;
  }
  /// The same, and from here on accesses are touched as they come.
  template <typename Body> void goDirect(Body &&restore) {
    log_.take([](const LoggedAccess &) { return true; }, restore);
    isDirect_ = isInShadow_ = true;
  }
  bool isDirect() const { return isDirect_; }
  /// Whether something of it is in the shadow.
  bool isInShadow() const { return isInShadow_; }

  /// Lanes arrive at a barrier: true when all threads have.
  bool arrive(const CtaBarrier &barrier, LaneMask lanes);
  /// They have.
  void begin();
  std::size_t bytes() const {
    return log_.bytes() + 2 * sizeof(Owner) * writers_.size();
  }

private:
  using Owner = std::uint16_t; ///< a thread, plus one
  static constexpr Owner kNobody = 0, kMany = 0xffff, kAtomics = 0xfffe;
  static constexpr std::uint64_t kWord = 4;

  struct Range {
    std::uint64_t begin = ~std::uint64_t(0), end = 0;

    bool meets(std::uint64_t low, std::uint64_t high) const {
      return low < end && begin < high;
    }
    void add(std::uint64_t low, std::uint64_t high) {
      begin = std::min(begin, low);
      end = std::max(end, high);
    }
  };

  /// Those of the log that `readers_` does not have yet.
  template <typename FirstThreadOf>
  void noteReaders(FirstThreadOf &&firstThreadOf) {
    log_.forEachBehind(readersBehind_, [&](const LoggedAccess &one,
                                           const std::uint64_t *addresses) {
      if (!(one.flags & Record::kWrite))
        setReaders(addresses, one.lanes, one.bytes,
                   firstThreadOf(one.component));
    });
    readersBehind_ = log_.seal();
  }
  bool addByWord(Kind kind, const AlikeLanes &alike, std::uint32_t firstThread);
  void setReaders(const std::uint64_t *addresses, LaneMask lanes,
                  std::uint32_t bytes, std::uint32_t firstThread);
  static void clear(std::vector<Owner> &owners, Range &range);

  std::uint32_t threads_;                ///< of the CTA
  std::vector<Owner> readers_, writers_; ///< by word
  Range read_, written_;
  AccessLog log_;
  std::size_t readersBehind_ = 0; ///< place in the log, see noteReaders
  bool isDirect_ = false, isInShadow_ = false;
  unsigned falls_ = 0, rest_ = 0;
  const CtaBarrier *barrier_ = nullptr; ///< at which somebody has arrived last
  std::uint32_t generation_ = 0, arrived_ = 0;
};

} // namespace kiln::sim
