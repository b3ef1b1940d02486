// warp.h: what the 32 lanes of a warp do together: exchange, vote, meet, sum.
//
// Every lane that `members` names must come to the same call, in the same
// order; a lane inside an if_ that others skip must not be named. The mask has
// bit i for lane i.
//
//     Value sum = x + shuffle_xor(x, 1);            // of pairs of lanes
//     Value busy = vote_any(row < m);
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/tile/reduction.h>
#include <kiln/language/value/value.h>

namespace KILN_API kiln {

inline constexpr std::uint32_t all_lanes = 0xFFFFFFFF;

struct ShuffleOptions {
  /// Lanes exchange inside groups of so many: 1, 2, 4, 8, 16 or 32.
  int width = 32;
  std::uint32_t members = all_lanes;
};

// The value another lane has (shfl.sync); a lane whose partner lies outside its
// group gets its own. Values of 8 to 64 bits; 64 bits are two instructions.

/// Of lane (own ^ mask): shfl.sync.bfly.b32.
Value shuffle_xor(At value, At mask, const ShuffleOptions &options = {});
/// Of lane (own - delta): shfl.sync.up.b32.
Value shuffle_up(At value, At delta, const ShuffleOptions &options = {});
/// Of lane (own + delta): shfl.sync.down.b32.
Value shuffle_down(At value, At delta, const ShuffleOptions &options = {});
/// Of that lane of the group: shfl.sync.idx.b32.
Value shuffle_from(At value, At lane, const ShuffleOptions &options = {});

/// Whether `predicate`, an i1, holds in all members: vote.sync.all.
Value vote_all(At predicate, std::uint32_t members = all_lanes);
/// In at least one: vote.sync.any.
Value vote_any(At predicate, std::uint32_t members = all_lanes);
/// In which ones, a u32 with a bit for each: vote.sync.ballot.
Value ballot(At predicate, std::uint32_t members = all_lanes);

/// bar.warp.sync: wait for the members; orders their memory accesses.
void warp_sync(std::uint32_t members = all_lanes,
               Where where = Where::current());

// Over all 32 lanes, each of which gets the result. i32 and u32 are one
// redux.sync; other numbers are five shuffles and five operations, whose order
// is fixed: lanes 1 apart first, 16 apart last for floats too.

/// add, min or max of numbers; bit_and, bit_or, bit_xor of i32 and u32.
Value warp_reduce(At value, Reduction reduction);

} // namespace kiln
