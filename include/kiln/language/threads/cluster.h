// cluster.h: CTAs that run together and reach each other's shared memory.
//
// KernelOptions::cluster says how many CTAs along each axis form a cluster;
// they are on the GPU at the same time. The same tile lies at the same offset
// in each, so that a rank is all it takes to name another CTA's:
//
//     SharedTile tile = kb.shared(layout);
//     RemoteTile other = map_shared(tile, cluster_rank() ^ 1);
//     cluster_sync();               // the other one has started and written
//     Value x = other(row, column);
//     cluster_sync();               // nobody leaves while it is read
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/memory/memory.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/value/value.h>

namespace KILN_API kiln {

/// Which cluster of the grid this is (%clusterid); all of these are i32.
Value cluster_id(Axis axis = Axis::x, Where where = Where::current());
/// The place of this CTA in its cluster (%cluster_ctaid).
Value cta_in_cluster(Axis axis = Axis::x, Where where = Where::current());
/// The same as one number, x first (%cluster_ctarank).
Value cluster_rank(Where where = Where::current());
/// CTAs of the cluster (%cluster_nctarank).
Value cluster_size(Where where = Where::current());

/// Arrive at the barrier of the cluster; what this thread wrote becomes visible
/// to those that wait (barrier.cluster.arrive.release.aligned). Every thread of
/// the cluster arrives, then waits, by whole warps.
void cluster_arrive(Where where = Where::current());
/// The same without ordering memory (barrier.cluster.arrive.relaxed.aligned).
void cluster_arrive_relaxed(Where where = Where::current());
/// barrier.cluster.wait.acquire.aligned
void cluster_wait(Where where = Where::current());
/// cluster_arrive, then cluster_wait.
void cluster_sync(Where where = Where::current());

/// A tile of another CTA of the cluster: its elements are read and written by
/// ld and st.shared::cluster.
class RemoteTile {
public:
  const TileLayout &layout() const { return layout_; }
  /// In shared::cluster.
  Value address() const { return address_; }
  Element operator()(At row, At column) const;
  /// `count` neighbours in a row in one instruction, as SharedTile's.
  std::vector<Value> load_vector(At row, At column, int count) const;

private:
  friend struct Make;
  RemoteTile(Value address, TileLayout layout)
      : address_(address), layout_(layout) {}

  Value address_;
  TileLayout layout_;
};

/// The tile of CTA `rank` at the place of `tile` (mapa).
RemoteTile map_shared(const SharedTile &tile, At rank,
                      Where where = Where::current());

} // namespace kiln
