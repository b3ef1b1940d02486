// Tcgen05Sparse: where the elements of a sparse A stand.
//
// Of 8 and 4 bits a row's metadata are two columns of its own lane, four bits
// for each group, the first ones lowest. Of 16 and 32 bits they are one column:
// of 16 rows, the lane of row r (of the first eight) has in its low half those
// of the first half of K of row r and in its high half those of row r + 8, and
// the lane of row r + 8 those of the second half of K.
#include "sim/units/matrix/Tcgen05Product.h"

#include <algorithm>

namespace kiln::sim {

std::uint32_t metadataColumns(const TensorShape &shape) {
  return shape.elementBits() >= 16 ? 1 : 2;
}

namespace {
/// Which four bits tell of a group.
struct MetadataPlace {
  std::uint32_t lane, column;
  int firstBit;
};
} // namespace

static MetadataPlace placeOf(const IssuedProduct &issued, int row, int group) {
  TensorAddress at = issued.metadata;
  const TensorShape &shape = issued.shape;
  if (shape.elementBits() < 16)
    return {at.lane + static_cast<std::uint32_t>(row),
            at.column + static_cast<std::uint32_t>(group / 8), 4 * (group % 8)};
  int lane = row / 16 * 16 + row % 8 + 8 * (group / 4);
  return {at.lane + static_cast<std::uint32_t>(lane),
          at.column + static_cast<std::uint32_t>(shape.selector),
          16 * (row / 8 % 2) + 4 * (group % 4)};
}

/// The column of a group where its element number `i` stands.
static int columnOf(int width, unsigned bits, int i) {
  if (width == 2)
    return static_cast<int>(bits >> 1 & 1);
  if (width == 4)
    return static_cast<int>(bits >> 2 * i & 3);
  return 2 * static_cast<int>(bits >> i / 2 * 2 & 3) + i % 2; // pairs
}

void spreadRows(Warp &warp, const Op &op, const IssuedProduct &issued, Cta &cta,
                int rows, const float *there, float *out,
                std::vector<bool> &unwritten, std::uint32_t &origin) {
  TensorMemory &memory = cta.tensorMemory();
  const TensorShape &shape = issued.shape;
  int bits = shape.elementBits();
  int width = bits == 32 ? 2 : bits == 4 ? 8 : 4, half = width / 2;
  std::fill_n(out, shape.k * TensorMemory::kLanes, 0.0f);
  for (int row = 0; row < rows; ++row)
    for (int group = 0; group < shape.k / width; ++group) {
      MetadataPlace place = placeOf(issued, row, group);
      unsigned word = *memory.at(place.lane, place.column);
      std::size_t offset = TensorMemory::offset(place.lane, place.column);
      if (!memory.valid.all(
              offset + static_cast<std::size_t>(place.firstBit / 8), 1)) {
        unwritten[static_cast<std::size_t>(row)] = true;
        if (!origin)
          origin = originOf(warp, op, memory, place.lane, place.column);
      }
      for (int i = 0; i < half; ++i) {
        int column =
            group * width + columnOf(width, word >> place.firstBit, i);
        out[column * static_cast<int>(TensorMemory::kLanes) + row] =
            there[(group * half + i) * static_cast<int>(TensorMemory::kLanes) +
                  row];
      }
    }
}

} // namespace kiln::sim
