// threads.h: who is running: ids, roles, elections and barriers.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>

#include <functional>
#include <optional>

namespace KILN_API kiln {

enum class Axis : std::uint8_t { x, y, z };

/// %tid, %ctaid, %nctaid; all i32.
Value thread_id(Axis axis = Axis::x, Where where = Where::current());
Value block_id(Axis axis = Axis::x, Where where = Where::current());
Value grid_size(Axis axis = Axis::x, Where where = Where::current());

/// Of the threads along x. The same for all lanes of a warp in a way the
/// assembler can see (read through shfl.sync), so that a branch on it does not
/// count as divergent.
Value warp_id(Where where = Where::current());
Value warpgroup_id(Where where = Where::current());
/// 0..31.
Value lane_id(Where where = Where::current());
/// 0..127 inside the warpgroup.
Value warpgroup_thread_id(Where where = Where::current());

/// True in exactly one lane of the warp (elect.sync). All lanes must reach it.
Value elect(Where where = Where::current());

struct RoleOptions {
  /// Registers per thread while in this role: a multiple of 8 in 24..256. The
  /// builder gives the kernel as many at entry as all roles together need, and
  /// refuses a plan the hardware could never meet.
  std::optional<int> registers;
};

/// Code of one warpgroup, by its index. Roles are declared at the top level of
/// a kernel, each index once.
void warpgroup(int index, const RoleOptions &options,
               const std::function<void()> &body,
               Where where = Where::current());
void warpgroup(int index, const std::function<void()> &body,
               Where where = Where::current());

/// One role of `count` warpgroups from `first` on; `body` gets which of them
/// the thread is in, 0 .. count - 1. The code exists once.
void warpgroups(int first, int count, const RoleOptions &options,
                const std::function<void(Value)> &body,
                Where where = Where::current());

/// Run `body` in one thread: of the warpgroup inside a role, else of the CTA.
/// Inside another one_thread it is simply run.
void one_thread(const std::function<void()> &body,
                Where where = Where::current());

/// The same in another warp than the first: the `warp`-th, 0 to 3, of the
/// warpgroup inside a role, else of the CTA.
void one_thread_of(int warp, const std::function<void()> &body,
                   Where where = Where::current());

/// bar.sync 0: all threads of the CTA; orders their memory accesses.
void sync_threads(Where where = Where::current());
/// The 128 threads of the calling warpgroup meet, in a role or in a kernel that
/// has just one: bar.sync on a named barrier of the warpgroup.
void sync_warpgroup(Where where = Where::current());

/// One of the CTA's named barriers, made by KernelBuilder::named_barriers: a
/// number of threads meet there, any of the CTA's.
class NamedBarrier {
public:
  /// Wait until all its threads have come; orders their memory accesses
  /// (bar.sync).
  void sync(Where where = Where::current()) const;
  /// Count as come and go on; others of its threads wait (bar.arrive).
  void arrive(Where where = Where::current()) const;

  int threads() const { return threads_; }

private:
  friend struct Make;
  NamedBarrier(int number, Value offset, int threads)
      : number_(number), offset_(offset), threads_(threads) {}

  int number_;
  Value offset_; ///< added at run time where valid
  int threads_;
};

/// Barriers with numbers one behind the other, all for as many threads:
///
///     NamedBarrierArray turns = kb.named_barriers(2, 256);
///     turns[consumer].sync();
///     turns[1 - consumer].arrive();
class NamedBarrierArray {
public:
  int size() const { return count_; }
  /// A literal index is checked against the size.
  NamedBarrier operator[](At index) const;

private:
  friend struct Make;
  NamedBarrierArray(int first, int count, int threads)
      : first_(first), count_(count), threads_(threads) {}

  int first_, count_, threads_;
};

// TMA and wgmma see memory through a proxy of their own: what a thread wrote
// becomes visible to them by a fence, as wide as what it wrote. Before sm_90
// there is neither, and these fences are nothing.

/// Of this CTA's shared memory: fence.proxy.async.shared::cta.
void fence_async_shared(Where where = Where::current());
/// Of the cluster's: fence.proxy.async.shared::cluster.
void fence_async_cluster(Where where = Where::current());
/// Of global memory, before TMA reads what a thread wrote there:
/// fence.proxy.async.global.
void fence_async_global(Where where = Where::current());
/// Of all memory: fence.proxy.async.
void fence_async(Where where = Where::current());

} // namespace kiln
