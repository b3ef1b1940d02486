// tma.h: copies by the tensor memory accelerator.
//
// One thread issues a copy and goes on. What it writes to shared memory is
// announced to an mbarrier by its bytes; what it reads from shared memory
// belongs to a group of that thread:
//
//     load    barrier.arrive_expect_tx(bytes)   tma_load   barrier.wait(phase)
//     store   tma_store ...   tma_store_commit   tma_store_wait_read(0)
//
// TMA sees shared memory through a proxy of its own: what threads wrote must
// pass fence_async_shared in each of them, then a barrier, before a store.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/mbarrier.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/tile/reduction.h>

#include <vector>

namespace KILN_API kiln {

/// Copy the tile of `source` that starts at `origin` (outermost first) into
/// `tile`, and signal its bytes to `barrier`. Called by one thread. Elements
/// outside the tensor read as the map's fill, and count as bytes.
///
/// Becomes one cp.async.bulk.tensor.shared::cluster.global per box.
void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const Mbarrier &barrier,
              Where where = Where::current());

/// The same, signalling the barrier of either CTA of a pair (cta_group::2), so
/// that the one that multiplies hears of both halves.
void tma_load(const SharedTile &tile, const TmaTensor &source,
              const std::vector<At> &origin, const RemoteMbarrier &barrier,
              Where where = Where::current());

/// The same into every CTA of the cluster whose bit, by rank, is set in `mask`:
/// at the same place in each, and each signals its own bytes to its own
/// barrier. Every one of them must have announced its bytes.
///
/// Becomes one cp.async.bulk.tensor...multicast::cluster per box.
void tma_load_multicast(const SharedTile &tile, const TmaTensor &source,
                        const std::vector<At> &origin, const Mbarrier &barrier,
                        At mask, Where where = Where::current());

/// Copy `tile` to the tensor at `origin`, leaving out what lies outside it. No
/// coordinate may be negative. Called by one thread; the tensor becomes an
/// output of the kernel.
///
/// Becomes one cp.async.bulk.tensor.global.shared::cta.bulk_group per box.
void tma_store(const TmaTensor &tensor, const std::vector<At> &origin,
               const SharedTile &tile, Where where = Where::current());

/// tma_store that combines: tensor = tensor op tile, each element atomically.
///
///     add                       i32 u32 u64 f16 bf16 f32 f64
///     min max                   i32 u32 i64 u64 f16 bf16
///     inc dec                   u32
///     bit_and bit_or bit_xor    integers of 32 and 64 bits
///
/// Becomes one cp.reduce.async.bulk.tensor per box.
void tma_reduce_store(Reduction op, const TmaTensor &tensor,
                      const std::vector<At> &origin, const SharedTile &tile,
                      Where where = Where::current());

/// Close the group of the stores this thread has issued
/// (cp.async.bulk.commit_group).
void tma_store_commit(Where where = Where::current());
/// Wait until at most `groups` of this thread's groups are in flight: the
/// others have been written (cp.async.bulk.wait_group).
void tma_store_wait(int groups, Where where = Where::current());
/// Wait until all but `groups` of them have read their shared memory, which may
/// then be used again (cp.async.bulk.wait_group.read).
void tma_store_wait_read(int groups, Where where = Where::current());

/// Fetch the tensor map itself, ahead of its first use (prefetch.tensormap).
void tma_prefetch(const TmaTensor &tensor, Where where = Where::current());
/// Fetch a tile into L2: one cp.async.bulk.prefetch.tensor per box.
void tma_prefetch_tile(const TmaTensor &source, const std::vector<At> &origin,
                       Where where = Where::current());

/// Which lines the L2 cache gives up first.
enum class L2Eviction : std::uint8_t {
  normal,
  first,     ///< read once: tiles nobody else wants
  last,      ///< read again and again: weights, the smaller operand
  unchanged, ///< as the line was marked before
};
/// What copies ask of L2 for a fraction of their lines, the others being
/// normal; a u64 (createpolicy.fractional.L2::evict_first.b64). A tensor that
/// has it says so in its loads, stores and prefetches (.L2::cache_hint):
///
///     TmaTensor weights = b.with_policy(l2_policy(L2Eviction::last));
///     tma_load(tile, weights, {row, column}, barrier);
Value l2_policy(L2Eviction eviction, double fraction = 1,
                Where where = Where::current());

/// Copy `bytes`, a multiple of 16, from the tensor's element `origin` on to the
/// start of a tile without a swizzle, and signal them to `barrier`: no tensor
/// map, no shape (cp.async.bulk.shared::cluster.global). The element must lie
/// on a multiple of 16 bytes.
void bulk_copy(const SharedTile &to, const Tensor &from,
               const std::vector<At> &origin, At bytes, const Mbarrier &barrier,
               Where where = Where::current());
/// The other way, as part of a group like tma_store
/// (cp.async.bulk.global.shared::cta.bulk_group).
void bulk_copy(const Tensor &to, const std::vector<At> &origin,
               const SharedTile &from, At bytes,
               Where where = Where::current());

} // namespace kiln
