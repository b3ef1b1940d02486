// TensorCopy: from a tensor map and coordinates to the rows of a copy.
#include "sim/units/copies/TensorCopy.h"
#include "sim/machine/memory/TensorMapImage.h"
#include "sim/units/copies/Pixels.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

/// What a reduction does to the elements of a map.
static Reduction reductionOf(Warp &warp, const Op &op, ReductionKind kind,
                             const TensorMap &map, int lane) {
  std::optional<ptx::ScalarType> type = reducedType(map.type);
  Reduction reduction{kind, type.value_or(ptx::ScalarType::b8)};
  if (!reduction.isKnown())
    warp.machine().findings().fault(
        FindingId::tensorMap, warp, op, LaneMask(1) << lane,
        fmt::format("the operation {} is not one of tensors "
                    "of {}",
                    name(kind), kiln::name(map.type)));
  return reduction;
}

/// A kernel can make a map of anything: the rules of those that come with a
/// launch hold for it too.
static void checkMap(Warp &warp, const Op &op, const TensorMap &map, int lane) {
  std::string why;
  try {
    check(map, "the tensor map");
  } catch (const UserError &error) {
    why = error.message();
  }
  if (map.interleave != Interleave::none)
    why = "the simulator does not know interleaved tensor maps";
  if (!why.empty())
    warp.machine().findings().fault(FindingId::tensorMap, warp, op,
                                    LaneMask(1) << lane, why);
}

/// Bytes from the first of a tensor to its last; 2^64 - 1 where there are more.
static std::uint64_t extentOf(const TensorMap &map) {
  auto bytes = static_cast<std::uint64_t>(
      bytes_of(map.type, static_cast<std::int64_t>(map.dims[0])));
  for (std::size_t i = 1; i < map.dims.size(); ++i) {
    std::uint64_t rows;
    if (__builtin_mul_overflow(map.dims[i] - 1, map.strides_bytes[i - 1],
                               &rows) ||
        __builtin_add_overflow(bytes, rows, &bytes))
      return ~std::uint64_t(0);
  }
  return bytes;
}

/// Elements of 4 and 6 bits: sixteen are 8 or 12 bytes, and take 16 in the tile
/// where they are padded.
static void countPadded(Box &box) {
  std::uint32_t group = box.map.type == Type::e2m1 ? 8 : 12;
  box.paddedBytes = group;
  box.map.type = Type::u8;
  box.map.dims[0] = box.map.dims[0] / 16 * group;
  box.map.box[0] = box.map.box[0] / 16 * group;
  for (BoxIndex &row : box.rows)
    row[0] = row[0] / 16 * group;
  box.start[0] = box.start[0] / 16 * group;
}

/// Two elements of e2m1 share a byte: what follows counts bytes.
static void countBytes(Box &box) {
  box.map.type = Type::u8;
  box.map.dims[0] /= 2;
  box.map.box[0] /= 2;
  box.start[0] /= 2;
  for (BoxIndex &row : box.rows)
    row[0] /= 2;
}

/// A coordinate of a lane, or an offset of pixels.
static std::int64_t coordinateOf(Warp &warp, const Op &op, const Reg &reg,
                                 int lane, bool isOffset) {
  LaneMask bit = LaneMask(1) << lane;
  if (warp.poison(reg) & bit)
    warp.machine().findings().fault(
        FindingId::uninitializedAddress, warp, op, bit,
        "a coordinate depends on bytes that nobody wrote");
  std::uint64_t bits = warp.read(reg, lane);
  return isOffset ? std::int64_t(static_cast<std::uint16_t>(bits))
                  : std::int64_t(static_cast<std::int32_t>(bits));
}

/// The rows of a copy that is no box.
static void readRows(Warp &warp, const Op &op, const TensorCopy &copy, int lane,
                     Box &box) {
  bool isPixels = copy.mode == TensorCopy::Mode::pixels;
  if (isPixels != box.map.im2col.has_value())
    warp.machine().findings().fault(
        FindingId::tensorMap, warp, op, LaneMask(1) << lane,
        isPixels ? "the copy is of pixels (.im2col), and its tensor map of "
                   "boxes (cuTensorMapEncodeTiled)"
                 : "the tensor map is of pixels (cuTensorMapEncodeIm2col), and "
                   "the copy of a box (.tile)");
  if (isPixels) {
    std::vector<std::int64_t> offsets;
    for (const Reg &reg : copy.offsets)
      offsets.push_back(coordinateOf(warp, op, reg, lane, true));
    offsets.resize(static_cast<std::size_t>(copy.rank) - 2);
    box.rows = pixelsOf(box.map, box.start, offsets);
  }
  for (std::size_t i = 1; i < 5 && copy.mode == TensorCopy::Mode::rows; ++i)
    box.rows.push_back({box.start[0], coordinateOf(warp, op, copy.coordinates[i],
                                                   lane, false)});
}

Box readBox(Warp &warp, const Op &op, const TensorCopy &copy, int lane) {
  LaneMask bit = LaneMask(1) << lane;
  Machine &machine = warp.machine();
  Accessor accessor(warp, op, "reading a tensor map");
  std::uint64_t address = copy.map.read(warp, op, lane);
  ByteRange place = accessor.locate(Space::generic, address, kTensorMapBytes,
                                    64, lane, false);
  warp.watchers().tell(TensorMapUse{warp, op, lane, address});
  std::optional<TensorMap> map = decode(place.data);
  if (!map)
    machine.findings().fault(
        FindingId::tensorMap, warp, op, bit,
        "the bytes at the tensor map's address are not a tensor map");
  checkMap(warp, op, *map, lane);
  // A box spans what it takes every n-th element of; the innermost dimension
  // has no stride, whatever the map says.
  for (std::size_t i = 1; i < map->box.size(); ++i)
    map->box[i] =
        (map->box[i] + map->element_strides[i] - 1) / map->element_strides[i];
  Box box;
  box.map = *map;
  if (static_cast<int>(map->dims.size()) != copy.rank)
    machine.findings().fault(
        FindingId::tensorMap, warp, op, bit,
        fmt::format("the tensor map has {} dimensions, the "
                    "instruction {}",
                    map->dims.size(), copy.rank));
  if (copy.reduction)
    box.reduction = reductionOf(warp, op, *copy.reduction, *map, lane);
  for (int i = 0; i < static_cast<int>(copy.coordinates.size()); ++i) {
    box.start[i] = coordinateOf(warp, op, copy.coordinates[i], lane, false);
    bool isPixel = copy.mode == TensorCopy::Mode::pixels && i > 0;
    if (copy.isStore && box.start[i] < 0 && !isPixel)
      machine.findings().fault(
          FindingId::tmaCoordinate, warp, op, bit,
          fmt::format("a store starts at coordinate {} in dimension "
                      "{}; the hardware traps on negative ones",
                      box.start[i], i));
  }
  std::int64_t inRow = bytes_of(map->type, std::abs(box.start[0]));
  if (inRow % 16 != 0)
    machine.findings().fault(
        FindingId::tmaCoordinate, warp, op, bit,
        fmt::format("the innermost coordinate {} is {} bytes into a "
                    "row; the hardware traps unless it is a multiple "
                    "of 16",
                    box.start[0], box.start[0] < 0 ? -inRow : inRow));
  readRows(warp, op, copy, lane, box);
  if (map->is_padded)
    countPadded(box);
  else if (map->type == Type::e2m1)
    countBytes(box);
  box.elementBytes = size_bytes(box.map.type);
  std::uint64_t rows = box.rows.size();
  if (box.rows.empty()) {
    rows = 1;
    for (std::size_t i = 1; i < box.map.box.size(); ++i)
      rows *= box.map.box[i];
  }
  box.bytes = rows * box.sharedRowBytes();
  box.pitch = map->swizzle == Swizzle::none
                  ? box.sharedRowBytes()
                  : static_cast<std::uint32_t>(map->swizzle);
  box.tileBytes = rows * box.pitch;
  // The whole tensor must be there; then so is every box of it.
  Accessor(warp, op, "a tensor")
      .checkGlobal(map->address, extentOf(*map), 16, lane, copy.isStore);
  return box;
}

} // namespace kiln::sim
