// tiles: which tile of queries comes when, and which keys its queries see.
#pragma once

#include <kiln/kernels/attention.h>
#include <kiln/kiln.h>

#include <functional>
#include <optional>

namespace kiln {

/// One tile of queries.
struct AttentionTile {
  Value batch, head, kv_head;
  Value row;              ///< of its sequence, the first one
  Value queries, keys;    ///< of its sequence
  Value q_begin, k_begin; ///< where its sequence begins in memory
  Value first, end;       ///< blocks of keys that its queries see, at least 1
};

class AttentionTiles {
public:
  /// Tiles of `tile_m` queries, blocks of `tile_n` keys. Declares the offsets
  /// of packed sequences.
  AttentionTiles(KernelBuilder &kb, const AttentionProblem &problem, int tile_m,
                 int tile_n);

  /// What the CTAs divide among them: tiles, or pairs of tiles of a head.
  int items() const;
  /// This CTA's.
  void for_each(const std::function<void(const AttentionTile &)> &body) const;
  /// The first key that the query at `row` of its sequence sees.
  Value first_key(const AttentionTile &tile, const Value &row) const;
  /// And the one behind the last.
  Value end_key(const AttentionTile &tile, const Value &row) const;

private:
  bool has_pairs() const;
  int tiles_m() const { return (problem_.queries + tile_m_ - 1) / tile_m_; }
  AttentionTile of_head(const Value &number) const;

  AttentionProblem problem_;
  int tile_m_, tile_n_;
  std::optional<Tensor> q_offsets_, k_offsets_;
};

} // namespace kiln
