// Epilogue: from registers through shared memory to a tensor.
#include "kiln/epilogue.h"
#include "dsl/LocationScope.h"
#include "kiln/control.h"
#include "kiln/matrix.h"
#include "kiln/threads.h"
#include "support/Error.h"

namespace kiln {

/// Rows of one wgmma; a warp holds 16 of them.
static constexpr int kBlockRows = 64;

int epilogue_bytes(const TileLayout &subtile, const EpilogueOptions &options) {
  return subtile.stride_bytes() * options.warpgroups * options.buffers;
}

Epilogue::Epilogue(KernelBuilder &kb, const TmaTensor &tensor,
                   const EpilogueOptions &options, Where where)
    : tensor_(tensor), options_(options) {
  if (tensor.rank() < 2)
    userErrorAt(where,
                "an accumulator is stored to a tensor map of 2 dimensions or "
                "more; '{}' has {}",
                tensor.name(), tensor.rank());
  if (tensor.tile().rows % kBlockRows != 0)
    userErrorAt(where,
                "tensor map '{}' stores tiles of {} rows; an accumulator goes "
                "out in multiples of {}",
                tensor.name(), tensor.tile().rows, kBlockRows);
  if (options.warpgroups < 1 || options.buffers < 1)
    userErrorAt(where,
                "an epilogue of {} warpgroups with {} buffers each; at least 1 "
                "of both is needed",
                options.warpgroups, options.buffers);
  SharedOptions place = options.place;
  if (place.name.empty())
    place.name = tensor.name() + ".staged";
  buffers_ = kb.shared_array(
      tensor.tile(), options.warpgroups * options.buffers, place, where);
}

namespace {
/// The part of an accumulator that one subtile takes.
struct Part {
  Accumulator &accumulator;
  int firstRow, firstColumn;
  const ElementMap &map;
  Value row, column; ///< of the accumulator in the tensor

  /// Where the elements of 8 columns by 64 rows begin among a thread's.
  int index(int rowBlock, int column8) const {
    return (firstRow / kBlockRows + rowBlock) * accumulator.columns() / 2 +
           (firstColumn / 8 + column8) * 4;
  }
  /// Two neighbours, mapped and cast.
  Values pair(int index, Type type) const {
    Values values{accumulator.element(index), accumulator.element(index + 1)};
    if (map)
      values = map(values, row + accumulator.fragment_row(index),
                   column + accumulator.fragment_column(index));
    return cast(values, type);
  }
};
} // namespace

/// Write 16-bit elements, 16 rows by 8 or 16 columns of a warp at once.
static void storeMatrices(const Part &part, const SharedTile &tile) {
  Type type = tile.layout().type;
  Value lane = lane_id();
  Value row = (warp_id() & 3) * 16 + (lane & 15);
  for (int block = 0; block < tile.rows() / kBlockRows; ++block)
    for (int column = 0; column < tile.columns() / 8; column += 2) {
      bool isAlone = column + 1 == tile.columns() / 8;
      Values words;
      for (int half = 0; half < (isAlone ? 1 : 2); ++half)
        for (int upper : {0, 2})
          words.push_back(
              pack(part.pair(part.index(block, column + half) + upper, type)));
      Value right = isAlone ? constant(i32, 0) : (lane >> 4) * 8;
      stmatrix(tile(row + block * kBlockRows, right + column * 8), words);
    }
}

/// Write elements of any size, two neighbours at once.
static void storePairs(const Part &part, const SharedTile &tile) {
  for (int block = 0; block < tile.rows() / kBlockRows; ++block)
    for (int column = 0; column < tile.columns() / 8; ++column)
      for (int upper : {0, 2}) {
        int index = part.index(block, column) + upper;
        tile.store_vector(part.accumulator.fragment_row(index) - part.firstRow,
                          part.accumulator.fragment_column(index) -
                              part.firstColumn,
                          part.pair(index, tile.layout().type));
      }
}

void Epilogue::store_subtiles(int rows, int columns,
                              const std::vector<At> &origin, At warpgroup,
                              const Fill &fill, Where where) {
  const TileLayout &subtile = tensor_.tile();
  if (rows % subtile.rows || columns % subtile.columns)
    userErrorAt(where,
                "an accumulator of {}x{} is not covered by the tiles of tensor "
                "map '{}', {}",
                rows, columns, tensor_.name(), subtile.to_string());
  if (origin.size() != static_cast<std::size_t>(tensor_.rank()))
    userErrorAt(where, "tensor map '{}' has {} dimensions; the origin has {}",
                tensor_.name(), tensor_.rank(), origin.size());
  Value row = value_of(origin[origin.size() - 2]);
  Value column = value_of(origin.back());
  Value first = value_of(warpgroup) * options_.buffers;
  int subtiles = rows / subtile.rows * columns / subtile.columns;
  for (int i = 0; i < subtiles; ++i) {
    int firstRow = i * subtile.columns / columns * subtile.rows;
    int firstColumn = i * subtile.columns % columns;
    SharedTile buffer = buffers_[first + i % options_.buffers];
    // The buffer has been read: all but the stores since. A tile begins with
    // the first buffer again, wherever the one before it ended.
    int since =
        i > 0 || subtiles % options_.buffers == 0 ? options_.buffers - 1 : 0;
    one_thread([&] { tma_store_wait_read(since); });
    sync_warpgroup(where);
    fill(buffer, firstRow, firstColumn);
    fence_async_shared();
    sync_warpgroup(where);
    one_thread([&] {
      std::vector<At> to = origin;
      to[to.size() - 2] = row + firstRow;
      to.back() = column + firstColumn;
      tma_store(tensor_, to, buffer);
      tma_store_commit();
    });
  }
}

/// The user's map, whose lines count again.
static ElementMap asUserCode(const ElementMap &map,
                             const std::optional<Where> &outside) {
  if (!map)
    return {};
  return [=](const Values &values, const Value &row, const Value &column) {
    UserCode user(outside);
    return map(values, row, column);
  };
}

void Epilogue::store(Accumulator &accumulator, const std::vector<At> &origin,
                     const ElementMap &map, At warpgroup, Where where) {
  ElementMap mapped = asUserCode(map, collectiveLine);
  LocationScope scope(where);
  if (accumulator.is_in_flight())
    accumulator.wait(0);
  store_subtiles(
      accumulator.rows(), accumulator.columns(), origin, warpgroup,
      [&](const SharedTile &buffer, int firstRow, int firstColumn) {
        Part part{accumulator,
                  firstRow,
                  firstColumn,
                  mapped,
                  value_of(origin[origin.size() - 2]),
                  value_of(origin.back())};
        if (size_bytes(buffer.layout().type) == 2)
          storeMatrices(part, buffer);
        else
          storePairs(part, buffer);
      },
      where);
}

void Epilogue::store(const TensorTile &sums, const std::vector<At> &origin,
                     const ElementMap &map, At warpgroup, Where where) {
  const TileLayout &subtile = tensor_.tile();
  int step = options_.load_columns ? options_.load_columns : subtile.columns;
  if (subtile.rows != sums.rows() || subtile.columns % step)
    userErrorAt(where,
                "sums of {}x{} in tensor memory are loaded {} columns at a "
                "time and go out in tiles of {}; they have as many rows, and "
                "columns that {} divides",
                sums.rows(), sums.columns(), step, subtile.to_string(), step);
  ElementMap mapped = asUserCode(map, collectiveLine);
  LocationScope scope(where);
  store_subtiles(
      sums.rows(), sums.columns(), origin, warpgroup,
      [&](const SharedTile &buffer, int firstRow, int firstColumn) {
        Value row = value_of(origin[origin.size() - 2]) + firstRow +
                    warpgroup_thread_id();
        for (int column = 0; column < subtile.columns; column += step) {
          RegisterTile part = sums.slice(firstColumn + column, step).load();
          Values values = part.values();
          if (mapped)
            values = mapped(values, row,
                            value_of(origin.back()) + firstColumn + column);
          RegisterTile(part.layout(), cast(values, subtile.type))
              .store(buffer.slice(0, column, subtile.rows, step));
        }
      },
      where);
}

void Epilogue::finish(Where where) const {
  one_thread([&] { tma_store_wait_read(0, where); }, where);
}

} // namespace kiln
