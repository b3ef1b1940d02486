// Epilogue: from registers through shared memory to a tensor.
#include "kiln/language/collective/epilogue.h"
#include "dsl/tile/Copy.h"
#include "dsl/kernel/State.h"
#include "kiln/language/value/control.h"
#include "kiln/language/tensorcore/matrix.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace kiln {

/// Rows of one wgmma, of which a warp holds 16, and columns that threads hold
/// together.
static constexpr int kBlockRows = 64, kBlockColumns = 8;

int epilogue_bytes(const TileLayout &subtile, const EpilogueOptions &options) {
  return subtile.stride_bytes() * options.warpgroups * options.buffers;
}

Epilogue::Epilogue(KernelBuilder &kb, const TmaTensor &tensor,
                   const EpilogueOptions &options, Where where)
    : map_(tensor), name_(fmt::format("tensor map '{}'", tensor.name())),
      subtile_(tensor.tile()), options_(options) {
  if (options_.place.name.empty())
    options_.place.name = tensor.name() + ".staged";
  make_buffers(kb, where);
}

TileLayout staged_tile(Type type, int rows, int columns) {
  constexpr int kChunkBytes = 16; // of a row that stmatrix writes
  auto chunks = (bytes_of(type, columns) + kChunkBytes - 1) / kChunkBytes;
  chunks += chunks % 2 == 0;
  return {type, rows,
          static_cast<int>(elements_in(type, chunks * kChunkBytes))};
}

Epilogue::Epilogue(KernelBuilder &kb, const Tensor &tensor, int rows,
                   int columns, const EpilogueOptions &options, Where where)
    : tensor_(tensor), name_("the tensor"),
      subtile_{tensor.type(), rows, columns}, options_(options) {
  if (options_.place.name.empty())
    options_.place.name = "staged";
  make_buffers(kb, where);
}

void Epilogue::make_buffers(KernelBuilder &kb, Where where) {
  if (rank() < 2)
    userErrorAt(where,
                "an accumulator is stored to 2 dimensions or more; {} has {}",
                name_, rank());
  if (subtile_.rows % kBlockRows != 0)
    userErrorAt(where,
                "{} is stored in tiles of {} rows; an accumulator goes out in "
                "multiples of {}",
                name_, subtile_.rows, kBlockRows);
  if (subtile_.columns < kBlockColumns || subtile_.columns % kBlockColumns)
    userErrorAt(where,
                "{} is stored in tiles of {} columns; an accumulator goes out "
                "in multiples of {}",
                name_, subtile_.columns, kBlockColumns);
  if (options_.warpgroups < 1 || options_.buffers < 1)
    userErrorAt(where,
                "an epilogue of {} warpgroups with {} buffers each; at least 1 "
                "of both is needed",
                options_.warpgroups, options_.buffers);
  TileLayout buffer =
      map_ ? subtile_
           : staged_tile(subtile_.type, subtile_.rows, subtile_.columns);
  buffers_ = kb.shared_array(buffer, options_.warpgroups * options_.buffers,
                             options_.place, where);
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

/// A buffer's way to memory: all threads of the warpgroup call.
void Epilogue::write(const SharedTile &buffer, const std::vector<At> &at,
                     Where where) const {
  if (map_) {
    fence_async_shared();
    sync_warpgroup(where);
    one_thread([&] {
      tma_store(*map_, at, buffer);
      tma_store_commit();
    });
    return;
  }
  sync_warpgroup(where);
  Tensor matrix = *tensor_;
  for (std::size_t i = 0; i + 2 < at.size(); ++i)
    matrix = matrix.index(0, at[i]);
  int multiple = std::gcd(options_.column_multiple, subtile_.columns);
  constexpr int kPieceBytes = 32; // sums leave few registers
  copyInPieces(kPieceBytes, CopyScope::warpgroup,
               matrix.slice(0, at[at.size() - 2], buffer.rows())
                   .slice(1, at.back(), buffer.columns(), multiple),
               buffer, where);
}

void Epilogue::store_subtiles(int rows, int columns,
                              const std::vector<At> &origin, At warpgroup,
                              const Fill &fill, Where where) {
  if (rows % subtile_.rows || (map_ && columns % subtile_.columns))
    userErrorAt(where,
                "an accumulator of {}x{} is not covered by the tiles of {}, {}",
                rows, columns, name_, subtile_.to_string());
  if (origin.size() != rank())
    userErrorAt(where, "{} has {} dimensions; the origin has {}", name_, rank(),
                origin.size());
  Value row = value_of(origin[origin.size() - 2]);
  Value column = value_of(origin.back());
  Value first = value_of(warpgroup) * options_.buffers;
  int across = (columns + subtile_.columns - 1) / subtile_.columns;
  int subtiles = rows / subtile_.rows * across;
  for (int i = 0; i < subtiles; ++i) {
    int firstRow = i / across * subtile_.rows;
    int firstColumn = i % across * subtile_.columns;
    SharedTile buffer = buffers_[first + i % options_.buffers];
    if (!map_)
      buffer = buffer.slice(0, 0, subtile_.rows,
                            std::min(subtile_.columns, columns - firstColumn));
    // A tile begins with the first buffer again, wherever the one before it
    // ended.
    bool isInTurn = i > 0 || subtiles % options_.buffers == 0;
    if (map_) {
      // The buffer has been read: all but the stores since.
      int since = isInTurn ? options_.buffers - 1 : 0;
      one_thread([&] { tma_store_wait_read(since); });
    }
    // Of two buffers all threads have left the one: they met over the other.
    if (map_ || options_.buffers == 1 || !isInTurn)
      sync_warpgroup(where);
    fill(buffer, firstRow, firstColumn);
    std::vector<At> to = origin;
    to[to.size() - 2] = row + firstRow;
    to.back() = column + firstColumn;
    write(buffer, to, where);
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
        bool hasStmatrix = KernelBuilder::State::current(where).has("stmatrix");
        if (size_bytes(buffer.layout().type) == 2 && hasStmatrix)
          storeMatrices(part, buffer);
        else
          storePairs(part, buffer);
      },
      where);
}

void Epilogue::store(const TensorTile &sums, const std::vector<At> &origin,
                     const ElementMap &map, At warpgroup, Where where) {
  const TileLayout &subtile = subtile_;
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
        for (int column = 0; column < buffer.columns(); column += step) {
          int width = std::min(step, buffer.columns() - column);
          RegisterTile part = sums.slice(firstColumn + column, width).load();
          Values values = part.values();
          if (mapped)
            values = mapped(values, row,
                            value_of(origin.back()) + firstColumn + column);
          RegisterTile(part.layout(), cast(values, subtile.type))
              .store(buffer.slice(0, column, subtile.rows, width));
        }
      },
      where);
}

void Epilogue::finish(Where where) const {
  if (map_)
    one_thread([&] { tma_store_wait_read(0, where); }, where);
}

} // namespace kiln
