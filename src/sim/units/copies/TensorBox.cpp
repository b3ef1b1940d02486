// TensorBox: rows of a box, 16 bytes at a time.
#include "sim/units/copies/TensorBox.h"
#include "sim/units/copies/Swizzled.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

static constexpr std::size_t kChunk = 16;

bool isRowInside(const Box &box, const BoxIndex &at, std::uint64_t &address) {
  address = box.map.address;
  for (std::size_t i = 1; i < box.map.dims.size(); ++i) {
    if (at[i] < 0 || at[i] >= static_cast<std::int64_t>(box.map.dims[i]))
      return false;
    address += static_cast<std::uint64_t>(at[i]) * box.map.strides_bytes[i - 1];
  }
  return true;
}

namespace {
/// The bytes of a box's row that lie in the tensor.
struct Span {
  std::uint64_t address = 0;
  std::size_t offset = 0; ///< in the row
  std::size_t bytes = 0;  ///< 0: none
};
} // namespace

static Span insideOf(const Box &box, const BoxIndex &at) {
  std::uint64_t address;
  if (!isRowInside(box, at, address))
    return {};
  auto width = static_cast<std::int64_t>(box.map.box[0]);
  auto limit = static_cast<std::int64_t>(box.map.dims[0]);
  std::int64_t first = std::max<std::int64_t>(0, -at[0]);
  std::int64_t last = std::min(width, limit - at[0]);
  if (first >= last)
    return {};
  std::int64_t size = box.elementBytes;
  return {address + static_cast<std::uint64_t>((at[0] + first) * size),
          static_cast<std::size_t>(first * size),
          static_cast<std::size_t>((last - first) * size)};
}

std::vector<ByteRun> runsOf(const Box &box) {
  std::vector<ByteRun> runs;
  auto limit = static_cast<std::int64_t>(box.map.dims[0]);
  std::int64_t stride = box.map.element_strides[0];
  std::int64_t width = box.map.box[0];
  forEachRow(box, [&](std::uint32_t, const BoxIndex &at) {
    std::uint64_t address;
    if (!isRowInside(box, at, address))
      return;
    std::int64_t run = stride == 1 ? width : 1;
    for (std::int64_t i = 0; i < width; i += run) {
      std::int64_t first = std::max<std::int64_t>(0, at[0] + i * stride);
      std::int64_t last = std::min(limit, at[0] + i * stride + run);
      if (first < last)
        runs.push_back(
            {address + static_cast<std::uint64_t>(first * box.elementBytes),
             static_cast<std::size_t>((last - first) * box.elementBytes)});
    }
  });
  return runs;
}

/// What an element outside the tensor reads as.
static void fillOutside(const Box &box, std::uint8_t *row, std::size_t bytes) {
  if (box.map.oob == OobFill::zeros) {
    std::memset(row, 0, bytes);
    return;
  }
  // The driver's "NaN, request zero FMA" pattern, per 16 bits.
  for (std::size_t i = 0; i + 1 < bytes; i += 2) {
    row[i] = 0xf7;
    row[i + 1] = 0x7f;
  }
}

/// The buffer of a tensor: all of it is in one.
static Region &regionOf(Machine &machine, const Box &box) {
  return *machine.memory().find(box.map.address);
}

/// A part of a row, which is about to be read or written.
static ByteRange placeIn(Region &region, const Span &span, bool isWrite) {
  std::uint64_t address = span.address;
  region.touch(address, span.bytes, isWrite);
  return {region.at(address), &region.valid,
          static_cast<std::size_t>(address - region.base)};
}

/// Copy a row between a place of its own and shared memory at `address`. The
/// chunks of a row as wide as its swizzle change places among themselves.
static void copyRow(Warp &warp, const Op &op, const Box &box, Cta &cta,
                    std::uint32_t address, const ByteRange &plain,
                    bool isToShared) {
  std::size_t bytes = box.sharedRowBytes();
  bool isFlipped = box.map.atom == SwizzleAtom::b32_flip8 && isToShared &&
                   (address >> 7 & 1);
  ByteRange row{nullptr, &cta.sharedValid, address - kFirstSharedAddress};
  bool isSimple = bytes == box.pitch && !isFlipped && bytes % kChunk == 0 &&
                  (isToShared ? plain : row).isWritten(bytes);
  for (std::size_t i = 0; i < bytes; i += kChunk) {
    std::uint32_t offset =
        swizzledBy(box.map, address + static_cast<std::uint32_t>(i)) -
        kFirstSharedAddress;
    std::uint8_t *shared = cta.shared.data() + offset;
    if (isSimple) {
      std::memcpy(isToShared ? shared : plain.data + i,
                  isToShared ? plain.data + i : shared, kChunk);
      continue;
    }
    ByteRange there{shared, &cta.sharedValid, offset, &cta};
    ByteRange here = plain.behind(i);
    std::size_t half = isFlipped ? kChunk / 2 : 0; // they change places
    if (isFlipped)
      copyBytes(warp, op, there, here.behind(half), half);
    copyBytes(warp, op, isToShared ? there.behind(half) : here,
              isToShared ? here : there,
              std::min(kChunk, bytes - i) - half);
  }
  if (isSimple)
    (isToShared ? row : plain).markWritten(bytes);
}

/// A copy through a map of tf32 rounds to nearest, ties to even; every NaN
/// becomes the same one.
static void roundToTf32(std::uint8_t *data, std::size_t bytes) {
  constexpr std::uint32_t kDropped = 0x1fff, kInfinity = 0x7f800000;
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    std::uint32_t bits;
    std::memcpy(&bits, data + i, 4);
    std::uint32_t size = bits & 0x7fffffff;
    if (size > kInfinity)
      bits = 0x7fffffff;
    else if (size < kInfinity)
      bits += (kDropped >> 1) + (bits >> 13 & 1);
    bits &= ~kDropped;
    std::memcpy(data + i, &bits, 4);
  }
}

/// The row of a tile that has 16 bytes for `group` of the tensor's; what lies
/// between is zero. Back: its first bytes are the tensor's.
static void spreadRow(std::size_t group, const ByteRange &packed,
                      std::size_t bytes, const ByteRange &wide) {
  std::memset(wide.data, 0, bytes / group * kChunk);
  wide.markWritten(bytes / group * kChunk);
  for (std::size_t i = 0; i < bytes / group; ++i)
    copyBytes(wide.behind(i * kChunk), packed.behind(i * group), group);
}
static void packRow(std::size_t group, const ByteRange &row,
                    std::size_t bytes) {
  for (std::size_t i = 1; i < bytes / group; ++i)
    copyBytes(row.behind(i * group), row.behind(i * kChunk), group);
}

void loadBox(Warp &warp, const Op &op, const Box &box, Cta &cta,
             std::uint32_t destination) {
  std::vector<std::uint8_t> row(box.rowBytes()), wide(box.sharedRowBytes());
  ValidBits written(row.size()), wideWritten(wide.size());
  Region &region = regionOf(warp.machine(), box);
  forEachRow(box, [&](std::uint32_t offset, const BoxIndex &at) {
    Span inside = insideOf(box, at);
    bool isRounded = box.map.type == Type::tf32;
    if (inside.bytes == row.size() && !isRounded && !box.paddedBytes)
      return copyRow(warp, op, box, cta, destination + offset,
                     placeIn(region, inside, /*isWrite=*/false),
                     /*isToShared=*/true);
    fillOutside(box, row.data(), row.size());
    written.set(0, row.size());
    if (inside.bytes)
      copyBytes(warp, op,
                {row.data() + inside.offset, &written, inside.offset, nullptr,
                 /*isLocal=*/true},
                placeIn(region, inside, /*isWrite=*/false), inside.bytes);
    if (isRounded)
      roundToTf32(row.data() + inside.offset, inside.bytes);
    ByteRange plain{row.data(), &written, 0, nullptr, /*isLocal=*/true};
    if (box.paddedBytes) {
      ByteRange spread{wide.data(), &wideWritten, 0, nullptr, /*isLocal=*/true};
      spreadRow(box.paddedBytes, plain, row.size(), spread);
      plain = spread;
    }
    copyRow(warp, op, box, cta, destination + offset, plain,
            /*isToShared=*/true);
  });
}

void readTile(Warp &warp, const Op &op, const Box &box, Cta &cta,
              std::uint32_t source, Tile &tile) {
  for (std::size_t offset = 0; offset < tile.data.size(); offset += box.pitch) {
    copyRow(warp, op, box, cta, source + static_cast<std::uint32_t>(offset),
            tile.at(offset), /*isToShared=*/false);
    if (box.paddedBytes)
      packRow(box.paddedBytes, tile.at(offset), box.rowBytes());
  }
}

std::optional<std::uint32_t> storeBox(Machine &machine, const Box &box,
                                      Tile &tile) {
  std::optional<std::uint32_t> origin;
  Region &region = regionOf(machine, box);
  auto size = static_cast<std::size_t>(box.elementBytes);
  forEachRow(box, [&](std::uint32_t offset, const BoxIndex &at) {
    Span inside = insideOf(box, at);
    if (!inside.bytes)
      return;
    ByteRange from = tile.at(offset + inside.offset);
    ByteRange to = placeIn(region, inside, /*isWrite=*/true);
    if (!origin && !from.isWritten(inside.bytes))
      origin = tile.written.origin(from.offset, inside.bytes);
    if (!box.reduction)
      return copyBytes(to, from, inside.bytes);
    for (std::size_t i = 0; i < inside.bytes; i += size)
      reduceGlobal(*box.reduction, to.behind(i), from.data + i, size);
  });
  return origin;
}

} // namespace kiln::sim
