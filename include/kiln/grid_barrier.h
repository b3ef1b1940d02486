// grid_barrier.h: all CTAs of a launch meet, or groups of them.
//
// What one part of a kernel writes to global memory, by all CTAs, another one
// reads behind the barrier:
//
//     GridBarrier written(kb);
//     ... copy, each CTA its part ...
//     written.sync();
//     ... tma_load what others copied ...
//
// All CTAs must be there at once: the launch is cooperative, and a grid that
// the device cannot hold is refused.
#pragma once

#include <kiln/builder.h>
#include <kiln/export.h>
#include <kiln/memory.h>

#include <string>

namespace KILN_API kiln {

class GridBarrier {
public:
  /// Its counter is a workspace of that name.
  explicit GridBarrier(KernelBuilder &kb, const std::string &name = "arrivals",
                       Where where = Where::current());

  /// Wait for every thread of every CTA; all of them call, outside of roles.
  /// What they wrote before is seen behind it, by TMA too. As often as one
  /// likes.
  void sync(Where where = Where::current()) const;

private:
  Tensor counter_;
};

/// Groups of CTAs meet, each at a barrier of its own, for what they write and
/// read with ordinary accesses:
///
///     GroupBarriers written(kb, tiles);
///     ... store to the place of this CTA ...
///     written.sync(tile, {.members = 4, .is_first = rank == 0});
///     ... read what the others stored ...
///
/// All CTAs must be there at once, as above.
class GroupBarriers {
public:
  /// One for each group, in a workspace of that name.
  GroupBarriers(KernelBuilder &kb, const Dim &groups,
                const std::string &name = "meetings",
                Where where = Where::current());

  struct Member {
    int members = 1; ///< CTAs of the group
    At is_first;     ///< an i1: one of them says so
  };
  /// Wait for all members; the 128 threads of one warpgroup of each call, as
  /// often as they like.
  void sync(At group, const Member &member,
            Where where = Where::current()) const;

private:
  Tensor counters_;
};

} // namespace kiln
