// TensorBox: a box of a tensor on its way between global and shared memory.
//
// Rows of a box lie one behind the other in shared memory, their chunks of 16
// bytes swizzled; what lies outside the tensor is filled in on the way there
// and left out on the way back.
#pragma once

#include "sim/units/copies/Bulk.h"

namespace kiln::sim {

/// Coordinates in the tensor, innermost first.
using BoxIndex = std::array<std::int64_t, 5>;

/// One box, with everything known.
struct Box {
  TensorMap map;
  BoxIndex start{};
  int elementBytes = 1;
  std::uint64_t bytes = 0; ///< copied, and counted by the mbarrier
  /// From row to row of the tile: a row as wide as the swizzle, however narrow
  /// the box.
  std::uint32_t pitch = 0;
  std::uint64_t tileBytes = 0; ///< from the first byte of the tile to its last
  /// Where each row begins, of copies that are no box: rows that are named one
  /// by one, and pixels. Empty: it is a box.
  std::vector<BoxIndex> rows;
  /// Bytes of the tensor that take 16 bytes of the tile; 0: as many.
  std::uint32_t paddedBytes = 0;
  std::optional<Reduction> reduction;

  /// Of a row in the tensor, and in the tile.
  std::uint32_t rowBytes() const { return map.box[0] * elementBytes; }
  std::uint32_t sharedRowBytes() const {
    return paddedBytes ? rowBytes() / paddedBytes * 16 : rowBytes();
  }
};

/// Call `row(tile offset, coordinates of its first element)` for each innermost
/// row of a box.
template <typename Row> void forEachRow(const Box &box, Row &&row) {
  std::size_t rank = box.map.box.size();
  std::array<std::uint32_t, 5> index{};
  std::uint32_t offset = 0;
  for (const BoxIndex &at : box.rows) {
    row(offset, at);
    offset += box.pitch;
  }
  while (box.rows.empty()) {
    BoxIndex at = box.start;
    for (std::size_t i = 1; i < rank; ++i)
      at[i] += std::int64_t(index[i]) * box.map.element_strides[i];
    row(offset, at);
    offset += box.pitch;
    std::size_t axis = 1;
    for (; axis < rank; ++axis) {
      if (++index[axis] < box.map.box[axis])
        break;
      index[axis] = 0;
    }
    if (axis >= rank)
      return;
  }
}

/// Whether the outer coordinates of a row lie in the tensor, and its address.
bool isRowInside(const Box &box, const BoxIndex &at, std::uint64_t &address);

/// The bytes of the tensor that a box reads or writes.
std::vector<ByteRun> runsOf(const Box &box);

/// Copy a box to the shared memory of a CTA, for an instruction of a warp.
void loadBox(Warp &warp, const Op &op, const Box &box, Cta &cta,
             std::uint32_t destination);

/// A box as it is read from shared memory, without the swizzle.
struct Tile {
  std::vector<std::uint8_t> data;
  ValidBits written;

  explicit Tile(std::size_t bytes) : data(bytes), written(bytes) {}
  ByteRange at(std::size_t offset) {
    return {data.data() + offset, &written, offset, nullptr, /*isLocal=*/true};
  }
};
void readTile(Warp &warp, const Op &op, const Box &box, Cta &cta,
              std::uint32_t source, Tile &tile);
/// Write it to the tensor, or reduce it into the tensor. Where bytes that
/// nobody wrote have reached it: where they were read first.
std::optional<std::uint32_t> storeBox(Machine &machine, const Box &box,
                                      Tile &tile);

} // namespace kiln::sim
