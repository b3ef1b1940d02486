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
//
// An arrival releases what its thread wrote before, a wait that returns
// acquires it. Both do so for the threads of a scope: between two CTAs of a
// cluster both sides must say Scope::cluster; a wider scope is refused. The
// bytes of TMA need no scope.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/scope.h>
#include <kiln/language/value/value.h>

#include <optional>

namespace KILN_API kiln {

/// The same barrier in another CTA of the cluster. One can arrive there; only
/// its own CTA initialises it and waits. Arrivals order memory in the cluster.
class RemoteMbarrier {
public:
  /// mbarrier.arrive.release.cluster.shared::cluster. In SASS the release is a
  /// fence of all memory, MEMBAR.ALL.GPU, and it costs accordingly. With
  /// Scope::cta it is the plain mbarrier.arrive.shared::cluster, which orders
  /// nothing between CTAs: enough to hand back what was only read by wgmma or
  /// TMA and waited for, since that is finished.
  void arrive(At count = 1, Scope scope = Scope::cluster,
              Where where = Where::current()) const;
  /// mbarrier.arrive.expect_tx.release.cluster.shared::cluster
  void arrive_expect_tx(At bytes, Where where = Where::current()) const;
  /// mbarrier.expect_tx.relaxed.cluster.shared::cluster
  void expect_tx(At bytes, Where where = Where::current()) const;

  /// In shared::cluster.
  Value address() const { return address_; }

private:
  friend struct Make;
  RemoteMbarrier(Value address, int array) : address_(address), array_(array) {}

  Value address_;
  int array_;
};

/// Whose products a barrier hears of.
struct ProductArrival {
  int cta_group = 1; ///< CTAs that multiply together, as the products say
  /// The CTAs of the cluster at whose barriers it arrives, as bits; left out:
  /// this one alone.
  std::optional<At> cta_mask = {};
};

/// One barrier.
class Mbarrier {
public:
  /// Before any other use, by one thread, then a CTA barrier.
  void init(int count, Where where = Where::current()) const;
  /// End it (mbarrier.inval): its memory may hold something else, or be
  /// initialised again.
  void inval(Where where = Where::current()) const;

  /// `count` arrivals (mbarrier.arrive.release).
  void arrive(At count = 1, Scope scope = Scope::cta,
              Where where = Where::current()) const;
  /// Announce `bytes` that TMA will write, then one arrival
  /// (mbarrier.arrive.expect_tx.release).
  void arrive_expect_tx(At bytes, Scope scope = Scope::cta,
                        Where where = Where::current()) const;
  /// Announce `bytes` without arriving (mbarrier.expect_tx.relaxed).
  void expect_tx(At bytes, Scope scope = Scope::cta,
                 Where where = Where::current()) const;

  /// One arrival once the cp.async copies this thread has issued so far are
  /// written (cp.async.mbarrier.arrive.noinc). An extra one counts beyond those
  /// the barrier was initialised with (without .noinc).
  void arrive_copies(bool is_extra = false,
                     Where where = Where::current()) const;

  /// One arrival once the products of tensor memory that this thread has issued
  /// so far are finished (tcgen05.commit). In one_thread.
  void arrive_products(const ProductArrival &options = {},
                       Where where = Where::current()) const;

  /// Wait until the phase of that parity has completed: a loop around
  /// mbarrier.try_wait.parity.
  void wait(At parity, Scope scope = Scope::cta,
            Where where = Where::current()) const;
  /// Whether that phase has completed, an i1 (mbarrier.try_wait.parity). It may
  /// suspend the thread for `hint_ns` first, and may say no too early.
  Value try_wait(At parity, int hint_ns = 10000000, Scope scope = Scope::cta,
                 Where where = Where::current()) const;
  /// The same without suspending (mbarrier.test_wait.parity).
  Value test_wait(At parity, Scope scope = Scope::cta,
                  Where where = Where::current()) const;

  /// The barrier of CTA `rank` of this cluster at the same place (mapa). That
  /// CTA must have initialised it: fence_mbarrier_init, then cluster_sync.
  RemoteMbarrier remote(At rank, Where where = Where::current()) const;

  Value address() const { return address_; }

private:
  friend struct Make;
  Mbarrier(Value address, int array) : address_(address), array_(array) {}

  Value address_;
  int array_; ///< which allocation of the builder, for its checks
};

/// Barriers one behind the other.
class MbarrierArray {
public:
  int size() const { return count_; }
  /// A literal index is checked against the size.
  Mbarrier operator[](At index) const;

private:
  friend struct Make;
  MbarrierArray(Value address, int count, int array)
      : address_(address), count_(count), array_(array) {}

  Value address_;
  int count_;
  int array_;
};

/// fence.mbarrier_init: other CTAs of the cluster see the init.
void fence_mbarrier_init(Where where = Where::current());

} // namespace kiln
