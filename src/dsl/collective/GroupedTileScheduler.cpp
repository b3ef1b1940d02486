// GroupedTileScheduler: from group to group, and through the tiles of each.
#include "kiln/language/collective/grouped_tile_scheduler.h"

#include "dsl/kernel/LocationScope.h"
#include "dsl/kernel/State.h"
#include "dsl/collective/TileRaster.h"
#include "kiln/language/value/control.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

namespace kiln {

GroupedTileScheduler::GroupedTileScheduler(
    KernelBuilder &kb, int groups, int tile_m, const Dim &tiles_n,
    const Dim &rows, std::function<GroupRows(Value)> rows_of,
    const GroupedTileSchedulerOptions &options, Where where)
    : groups_(groups), tile_m_(tile_m), tiles_n_(tiles_n),
      rows_of_(std::move(rows_of)), options_(options) {
  for (auto [what, count] :
       {std::pair{"groups", groups}, std::pair{"rows of a tile", tile_m},
        std::pair{"rows of tiles at a time", options.group}})
    if (count < 1)
      userErrorAt(where, "a scheduler of {} {}; at least 1 is needed", count,
                  what);
  if (options.ctas < 0)
    userErrorAt(where, "{} CTAs; 0 stands for as many as fit", options.ctas);
  const KernelOptions &kernel = kb.state().options;
  Dim most = options.ctas ? Dim(options.ctas)
                          : Dim::argument("sms") * kernel.ctas_per_sm;
  // Each group has at most one tile that is not full.
  Dim tiles = (rows / tile_m + groups) * tiles_n;
  kb.grid(min(tiles, max(most, 1)));
}

void GroupedTileScheduler::for_each(
    const std::function<void(const GroupedTile &)> &body, Where where) const {
  for_each(At(0, where), 1, body, where);
}

void GroupedTileScheduler::for_each(
    At first, int step, const std::function<void(const GroupedTile &)> &body,
    Where where) const {
  auto outside = collectiveLine;
  LocationScope scope(where);
  auto rowsOf = [&](const Value &group) {
    UserCode user(outside);
    return rows_of_(group);
  };
  Value stride = grid_size() * step;
  Value columns = value_of(tiles_n_);
  Var index(i32, block_id() + value_of(first) * grid_size());
  Var group(i32, 0), before(i32, 0); // tiles of the groups before this one
  GroupRows initial = rowsOf(constant(i32, 0));
  Var begin(i32, initial.begin), end(i32, initial.end);
  while_([&] { return group < groups_; },
         [&] {
           Value height = max(end - begin, 0);
           Value rows = (height + (tile_m_ - 1)) / tile_m_;
           Value tiles = rows * columns;
           if_(
               index - before < tiles,
               [&] {
                 RasterPlace place = rasterPlace(index - before, {rows},
                                                 columns, options_.group, true);
                 Value down = place.row * tile_m_;
                 GroupedTile tile{group, begin + down, height - down,
                                  place.column};
                 UserCode user(outside);
                 body(tile);
               },
               [&] {
                 before = before + tiles;
                 group = group + 1;
                 if_(group < groups_, [&] {
                   GroupRows next = rowsOf(group);
                   begin = next.begin;
                   end = next.end;
                 });
                 index = index - stride; // the tile is still to come
               });
           index = index + stride;
         });
}

} // namespace kiln
