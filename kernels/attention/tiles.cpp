// tiles: one head after another, causal rows in pairs, packed sequences.
#include "tiles.h"

namespace kiln {

AttentionTiles::AttentionTiles(KernelBuilder &kb,
                               const AttentionProblem &problem, int tile_m,
                               int tile_n)
    : problem_(problem), tile_m_(tile_m), tile_n_(tile_n) {
  if (!problem.is_packed())
    return;
  q_offsets_ = kb.tensor("query_offsets", i32, {problem.batch + 1});
  k_offsets_ = kb.tensor("key_offsets", i32, {problem.batch + 1});
}

/// Whether the last tiles of a sequence have more to do than the first.
bool AttentionTiles::has_pairs() const {
  return problem_.window_right >= 0 && problem_.window_left < 0 &&
         !problem_.is_packed();
}

int AttentionTiles::items() const {
  int steps = has_pairs() ? (tiles_m() + 1) / 2 : tiles_m();
  return problem_.batch * problem_.heads * steps;
}

Value AttentionTiles::first_key(const AttentionTile &tile,
                                const Value &row) const {
  if (problem_.window_left < 0)
    return constant(i32, 0);
  return max(row + (tile.keys - tile.queries) - problem_.window_left, 0);
}

Value AttentionTiles::end_key(const AttentionTile &tile,
                              const Value &row) const {
  if (problem_.window_right < 0)
    return tile.keys;
  Value end = row + (tile.keys - tile.queries) + (problem_.window_right + 1);
  return max(min(end, tile.keys), 0);
}

/// The sequence and head with that number.
AttentionTile AttentionTiles::of_head(const Value &number) const {
  AttentionTile tile;
  tile.batch = number / problem_.heads;
  tile.head = number % problem_.heads;
  tile.kv_head = tile.head / (problem_.heads / problem_.kv_heads);
  tile.q_begin = tile.k_begin = constant(i32, 0);
  tile.queries = constant(i32, problem_.queries);
  tile.keys = constant(i32, problem_.keys);
  if (!problem_.is_packed())
    return tile;
  tile.q_begin = (*q_offsets_)(tile.batch);
  tile.k_begin = (*k_offsets_)(tile.batch);
  tile.queries = (*q_offsets_)(tile.batch + 1) - tile.q_begin;
  tile.keys = (*k_offsets_)(tile.batch + 1) - tile.k_begin;
  tile.batch = constant(i32, 0);
  return tile;
}

/// One head after another, so that the CTAs that run together read the same K
/// and V. Under the causal mask the last rows have the most to do: a CTA then
/// takes a tile from the end and one from the beginning, which together are as
/// much work as any other such pair.
void AttentionTiles::for_each(
    const std::function<void(const AttentionTile &)> &body) const {
  int steps = items() / (problem_.batch * problem_.heads);
  int last = tiles_m() - 1;
  for_range(block_id(), items(), grid_size(), [&](Value index) {
    Value step = index % steps;
    AttentionTile tile = of_head(index / steps);
    auto take = [&](const Value &number) {
      tile.row = number * tile_m_;
      Value seen = end_key(tile, tile.row + (tile_m_ - 1));
      tile.end = max(ceil_div(seen, tile_n_), 1);
      tile.first = min(first_key(tile, tile.row) / tile_n_, tile.end - 1);
      if (!problem_.is_packed())
        return body(tile);
      if_(tile.row < tile.queries, [&] { body(tile); });
    };
    if (!has_pairs()) // the longest ones first
      return take(problem_.window_right < 0 ? step
                                            : constant(i32, last) - step);
    // The one in the middle stands alone.
    Value tiles = select(step * 2 == last, 1, 2);
    for_range(0, tiles, [&](Value i) {
      take(select(i == 0, constant(i32, last) - step, step));
    });
  });
}

} // namespace kiln
