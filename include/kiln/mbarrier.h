// mbarrier.h: barriers in shared memory that count arrivals and bytes.
//
// An mbarrier has a phase. The phase completes when `count` arrivals have come
// and every byte announced with expect_tx has been written; then the next one
// begins with the same count. Waiting names the phase by its parity, 0 or 1:
//
//     phase          0          1          2
//     wait(0)    blocks ... returns          (would wait for phase 2)
//     wait(1)    returns at once: the phase before the first counts as done
//
// The last line is how a producer starts: its slots are empty before anyone
// has released them.
#pragma once

#include <kiln/value.h>

namespace kiln {

/// One barrier.
class Mbarrier {
public:
  Mbarrier(Value address, int array) : address_(address), array_(array) {}

  /// Before any other use, by one thread, then a CTA barrier.
  void init(int count,
            std::source_location where = std::source_location::current()) const;
  /// One arrival.
  void
  arrive(std::source_location where = std::source_location::current()) const;
  /// Announce `bytes` that TMA will write, then one arrival.
  void arrive_expect_tx(
      At bytes, std::source_location where = std::source_location::current()) const;
  /// Wait until the phase of that parity has completed.
  void wait(At parity,
            std::source_location where = std::source_location::current()) const;

  Value address() const { return address_; }

private:
  Value address_;
  int array_; ///< which allocation of the builder, for its checks
};

/// Barriers one behind the other.
class MbarrierArray {
public:
  MbarrierArray(Value address, int count, int array)
      : address_(address), count_(count), array_(array) {}

  int size() const { return count_; }
  /// A literal index is checked against the size.
  Mbarrier operator[](At index) const;

private:
  Value address_;
  int count_;
  int array_;
};

/// fence.mbarrier_init: other CTAs of the cluster see the init.
void fence_mbarrier_init(
    std::source_location where = std::source_location::current());

} // namespace kiln
