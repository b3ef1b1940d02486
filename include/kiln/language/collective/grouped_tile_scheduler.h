// grouped_tile_scheduler.h: GroupedTileScheduler, the tiles of several outputs
// whose numbers of rows are known only on the device.
//
// The groups lie in one matrix, each in rows of its own: experts of a mixture,
// with the tokens that chose them. A persistent kernel takes all their tiles in
// one launch; which rows are a group's is read from memory while it runs.
//
//     GroupedTileScheduler tiles(kb, experts, 128, ceil_div(n, 256), rows,
//                                [&](Value expert) -> GroupRows {
//       return {offsets(expert), offsets(expert + 1)};
//     });
//     tiles.for_each([&](const GroupedTile &tile) { ... });
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/collective/tile_scheduler.h>
#include <kiln/language/value/value.h>

#include <functional>

namespace KILN_API kiln {

/// The rows of one group, i32: from `begin` to before `end`; none where `end`
/// is not greater.
struct GroupRows {
  Value begin, end;
};

/// A tile of a group's output.
struct GroupedTile {
  Value group;
  Value row;  ///< its first, of the whole matrix
  Value rows; ///< of the group, from there on: fewer than a tile's in its last
  Value n;    ///< its number along n
};

struct GroupedTileSchedulerOptions {
  int ctas = 0;  ///< at most; 0: as many as fit on the device
  int group = 8; ///< rows of tiles that are taken together (TileScheduler)
};

class GroupedTileScheduler {
public:
  /// `rows_of` gives the rows of a group, as kernel code. The groups have at
  /// most `rows` rows together. Sets the kernel's grid.
  GroupedTileScheduler(KernelBuilder &kb, int groups, int tile_m,
                       const Dim &tiles_n, const Dim &rows,
                       std::function<GroupRows(Value)> rows_of,
                       const GroupedTileSchedulerOptions &options = {},
                       Where where = Where::current());

  /// Run `body` for each tile of this CTA, group after group.
  void for_each(const std::function<void(const GroupedTile &)> &body,
                Where where = Where::current()) const;
  /// Only every `step`-th from the `first` on: consumers that take turns.
  void for_each(At first, int step,
                const std::function<void(const GroupedTile &)> &body,
                Where where = Where::current()) const;

private:
  int groups_, tile_m_;
  Dim tiles_n_;
  std::function<GroupRows(Value)> rows_of_;
  GroupedTileSchedulerOptions options_;
};

} // namespace kiln
