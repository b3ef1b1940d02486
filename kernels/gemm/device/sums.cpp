// sums: put, wait, add up, take.
#include "sums.h"

#include <kiln/language/value/control.h>
#include <kiln/language/threads/threads.h>

#include <algorithm>

namespace kiln::gemm_kernel {

/// Elements behind each line, so that the 32 lanes of a warp, 8 rows by 4 pairs
/// of columns, write to different banks.
static int padding(bool is_transposed) { return is_transposed ? 4 : 8; }

Sums::Sums(const GemmSchedule &schedule, Type accumulate, bool is_transposed,
           int neighbours)
    : schedule_(schedule), is_transposed_(is_transposed),
      neighbours_(neighbours), lines_(schedule.consumer_rows()),
      length_(schedule.consumer_columns()) {
  if (is_transposed)
    std::swap(lines_, length_);
  constexpr int kLongest = 256; // of a tile's rows
  layout_ = {accumulate == Type::i32 ? Type::i32 : Type::f32, lines_,
             std::min(kLongest, length_ + padding(is_transposed))};
}

void Sums::declare_workspaces(KernelBuilder &kb, const Dim &tiles) {
  if (!schedule_.is_split_by_grid)
    return;
  Dim shares = tiles * schedule_.consumers;
  parts_ = kb.workspace("parts", layout_.type,
                        {shares * schedule_.split_k, lines_, length_});
}

void Sums::make_buffers(KernelBuilder &kb,
                        const std::optional<SharedTile> &over) {
  if (parts_) {
    Dim groups = parts_->shape()[0].constant() / schedule_.split_k;
    work_.emplace(kb, GroupWork::Options{.groups = groups,
                                         .members = schedule_.split_k,
                                         .warpgroups = schedule_.consumers});
    return;
  }
  if (over)
    drained_ =
        kb.named_barriers(1, kThreadsPerWarpgroup * schedule_.consumers)[0];
  buffers_ = kb.shared_array(layout_, schedule_.consumers,
                             {.over = over, .name = "sums"});
}

Value Sums::group(const Value &tile, const Value &warpgroup) const {
  return tile * schedule_.consumers + warpgroup;
}

void Sums::begin(const Value &tile) const {
  one_thread([&] {
    for (int warpgroup = 0; warpgroup < schedule_.consumers; ++warpgroup)
      work_->begin({.group = group(tile, constant(i32, warpgroup))});
  });
}

/// Wait for what the others put there, or have taken.
void Sums::meet() const {
  if (schedule_.split_k > 1)
    cluster_sync();
  else
    sync_warpgroup();
}

static void store_pair(const SharedTile &tile, const Value &row,
                       const Value &column, const Values &pair) {
  tile.store_vector(row, column, pair);
}
static void store_pair(const Tensor &place, const Value &row,
                       const Value &column, const Values &pair) {
  place.store_vector({row, column}, pair);
}

template <typename Tile>
void Sums::put(Accumulator &accumulator, const Tile &tile) const {
  for (int i = 0; i < accumulator.elements(); i += 2) {
    Value row = accumulator.fragment_row(i);
    Value column = accumulator.fragment_column(i);
    Values pair{cast(accumulator.element(i), layout_.type),
                cast(accumulator.element(i + 1), layout_.type)};
    if (is_transposed_) {
      tile(column, row) = pair[0];
      tile(column + 1, row) = pair[1];
    } else {
      store_pair(tile, row, column, pair);
    }
  }
}

void Sums::put(const TensorTile &sums, const SharedTile &tile) const {
  constexpr int kLoaded = 16, kStored = 4; // columns; 16 bytes are stored
  Value row = warpgroup_thread_id();
  for (int first = 0; first < sums.columns(); first += kLoaded) {
    Values values =
        cast(sums.slice(first, kLoaded).load().values(), layout_.type);
    for (int i = 0; i < kLoaded; ++i)
      if (is_transposed_)
        tile(first + i, row) = values[i];
      else if (i % kStored == 0)
        tile.store_vector(
            row, first + i,
            Values(values.begin() + i, values.begin() + i + kStored));
  }
}

/// Neighbours of a line, those of all CTAs that share the tile added up.
Values Sums::added(const Reader &read, const Value &line,
                   const Value &first) const {
  constexpr int kWidest = 4; // 16 bytes
  Values sums;
  for (int rank = 0; rank < schedule_.split_k; ++rank) {
    Values part;
    for (int i = 0; i < neighbours_; i += kWidest) {
      Values some = read(rank, line, first + i, std::min(kWidest, neighbours_));
      part.insert(part.end(), some.begin(), some.end());
    }
    if (sums.empty())
      sums = part;
    else
      for (std::size_t i = 0; i < sums.size(); ++i)
        sums[i] = sums[i] + part[i];
  }
  return sums;
}

void Sums::take_all(const Value &rank, const Reader &read,
                    const Taker &take) const {
  int pieces = length_ / neighbours_, all = lines_ * pieces;
  int threads = kThreadsPerWarpgroup * schedule_.split_k;
  Value thread = warpgroup_thread_id();
  if (schedule_.split_k > 1)
    thread = thread + rank * kThreadsPerWarpgroup;
  auto take_one = [&](const Value &piece, bool is_inside) {
    auto one = [&] {
      Value line = piece / pieces;
      Value first = (piece - line * pieces) * neighbours_;
      take(added(read, line, first), line, first);
    };
    if (is_inside)
      one();
    else
      if_(piece < all, one);
  };
  // Few rounds are written out, so that their loads overlap.
  constexpr int kFew = 8;
  int rounds = (all + threads - 1) / threads;
  if (rounds <= kFew)
    for (int i = 0; i < rounds; ++i)
      take_one(thread + i * threads, (i + 1) * threads <= all);
  else
    for_range(0, rounds, [&](Value i) {
      take_one(thread + i * threads, all % threads == 0);
    });
}

template <typename AnySums>
void Sums::through_smem(AnySums &sums, const Value &warpgroup,
                        const Value &rank, const Taker &take) {
  SharedTile tile = buffers_[warpgroup];
  // Another warpgroup may still multiply what lies there.
  if (drained_)
    drained_->sync();
  put(sums, tile);
  meet();
  auto read = [&](int from, const Value &line, const Value &first, int count) {
    return schedule_.split_k == 1
               ? tile.load_vector(line, first, count)
               : map_shared(tile, from).load_vector(line, first, count);
  };
  take_all(rank, read, take);
  // Nobody leaves, or puts the next ones there, while others take these.
  meet();
}

void Sums::through_workspace(Accumulator &accumulator, const Value &warpgroup,
                             const OutputTile &tile, const Taker &take) {
  int parts = schedule_.split_k;
  Value sums = group(tile.number, warpgroup);
  auto place = [&](At of) { return parts_->index(0, sums * parts + of); };
  auto read = [&](int from, const Value &line, const Value &first, int count) {
    return place(from).load_vector({line, first}, count);
  };
  work_->finish(
      {.group = sums, .rank = tile.rank, .warpgroup = warpgroup},
      [&] { put(accumulator, place(tile.rank)); },
      [&](const Value &share) { take_all(share, read, take); });
}

void Sums::exchange(Accumulator &accumulator, const Value &warpgroup,
                    const OutputTile &tile, const Taker &take) {
  if (parts_)
    through_workspace(accumulator, warpgroup, tile, take);
  else
    through_smem(accumulator, warpgroup, tile.rank, take);
}

void Sums::exchange(const TensorTile &sums, const Value &warpgroup,
                    const OutputTile &tile, const Taker &take) {
  through_smem(sums, warpgroup, tile.rank, take);
}

} // namespace kiln::gemm_kernel
