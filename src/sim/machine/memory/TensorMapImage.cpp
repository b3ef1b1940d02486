// TensorMapImage: pack and unpack tensor maps.
#include "sim/machine/memory/TensorMapImage.h"
#include "kiln/run/device_description.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <type_traits>

namespace kiln::sim {

namespace {
/// The packed form; plain data, so that it is its own bytes. Like the
/// hardware's it fills the first half of a map: kernels that change maps copy
/// that half alone. Sizes and element strides are counted from zero.
struct Image {
  std::uint16_t magic;
  std::uint16_t elementStrides; ///< three bits each
  std::uint8_t type : 5, rank : 3;
  std::uint8_t swizzle : 2, interleave : 2, l2 : 2, isPadded : 1, isIm2col : 1;
  std::uint8_t atom : 2, unused : 6; ///< no bit is padding
  std::uint8_t spare;
  std::uint8_t pixels[2];            ///< of pixels: how many
  std::uint8_t oob;                  ///< 0 or 1: see kClearedByte
  std::uint8_t box[5]; ///< of pixels: channels, and where they lie
  std::uint64_t address;
  std::uint32_t dims[5];
  std::uint8_t strides[4][5]; ///< of 40 bits
};
} // namespace
static_assert(std::has_unique_object_representations_v<Image>);
static_assert(sizeof(Image) <= kTensorMapBytes / 2);

/// For tensors of less than 128 KB CUTLASS and Triton clear bit 21 of the
/// second 64-bit word, which drivers up to 13.1 set wrongly. That is bit 5 of
/// this byte, and it means nothing here.
static constexpr std::size_t kClearedByte = 8 + 21 / 8;
static_assert(offsetof(Image, oob) == kClearedByte);

static constexpr std::uint16_t kMagic = 0x4e54; // "TN"
static constexpr int kStrideBits = 3;
static constexpr Type kLastType = Type::ue4m3;
// By the numbers of PTX.
static constexpr Swizzle kSwizzles[] = {Swizzle::none, Swizzle::b32,
                                        Swizzle::b64, Swizzle::b128};
static constexpr Interleave kInterleaves[] = {Interleave::none, Interleave::b16,
                                              Interleave::b32};
static constexpr L2Promotion kPromotions[] = {
    L2Promotion::none, L2Promotion::b64, L2Promotion::b128, L2Promotion::b256};

template <typename T, std::size_t N>
static std::uint8_t codeOf(const T (&list)[N], T value) {
  return static_cast<std::uint8_t>(
      std::find(std::begin(list), std::end(list), value) - std::begin(list));
}

/// Bits of a corner of the bounding box, by the number of its dimensions.
static int cornerBits(std::size_t dimensions) {
  return dimensions == 1 ? 16 : dimensions == 2 ? 8 : 5;
}

/// The corners in 32 bits, lower ones first.
static std::uint32_t packCorners(const Im2col &im2col) {
  int bits = cornerBits(im2col.lower.size()), at = 0;
  std::uint32_t word = 0;
  for (const auto *corner : {&im2col.lower, &im2col.upper})
    for (std::int32_t value : *corner) {
      word |= (static_cast<std::uint32_t>(value) & ((1u << bits) - 1)) << at;
      at += bits;
    }
  return word;
}

static std::vector<std::int32_t> unpackCorner(std::uint32_t word,
                                              std::size_t dimensions,
                                              bool isUpper) {
  int bits = cornerBits(dimensions);
  int at = isUpper ? bits * static_cast<int>(dimensions) : 0;
  std::vector<std::int32_t> corner;
  for (std::size_t i = 0; i < dimensions; ++i, at += bits)
    corner.push_back(static_cast<std::int32_t>(word >> at << (32 - bits)) >>
                     (32 - bits));
  return corner;
}

static bool putDim(Image &image, std::uint64_t index, std::uint64_t value) {
  if (index >= std::size(image.dims))
    return false;
  image.dims[index] = static_cast<std::uint32_t>(value - 1);
  return true;
}

static bool putBox(Image &image, std::uint64_t index, std::uint64_t value) {
  if (index >= std::size(image.box))
    return false;
  image.box[index] = static_cast<std::uint8_t>(value - 1);
  return value <= DeviceDescription::max_box_elements;
}

static bool putStride(Image &image, std::uint64_t index, std::uint64_t value) {
  if (index >= std::size(image.strides))
    return false;
  std::memcpy(image.strides[index], &value, sizeof(image.strides[index]));
  return value >> (8 * sizeof(image.strides[index])) == 0;
}

static std::uint64_t strideOf(const Image &image, int index) {
  std::uint64_t value = 0;
  std::memcpy(&value, image.strides[index], sizeof(image.strides[index]));
  return value;
}

static bool putElementStride(Image &image, std::uint64_t index,
                             std::uint64_t value) {
  if (index >= std::size(image.dims))
    return false;
  unsigned shift = static_cast<unsigned>(index) * kStrideBits;
  unsigned mask = (1u << kStrideBits) - 1;
  auto bits = static_cast<unsigned>(value ? value - 1 : 0) & mask;
  image.elementStrides = static_cast<std::uint16_t>(
      (image.elementStrides & ~(mask << shift)) | bits << shift);
  return value <= mask + 1;
}

std::array<std::uint8_t, kTensorMapBytes> encode(const TensorMap &map) {
  Image image{};
  image.magic = kMagic;
  image.type = static_cast<std::uint8_t>(map.type);
  image.rank = static_cast<std::uint8_t>(map.dims.size());
  image.swizzle = codeOf(kSwizzles, map.swizzle) & 3;
  image.interleave = codeOf(kInterleaves, map.interleave) & 3;
  image.l2 = codeOf(kPromotions, map.l2) & 3;
  image.oob = static_cast<std::uint8_t>(map.oob) & 1;
  image.atom = static_cast<std::uint8_t>(map.atom) & 3;
  image.isPadded = map.is_padded;
  image.isIm2col = map.im2col.has_value();
  image.address = map.address;
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    putDim(image, i, map.dims[i]);
    putBox(image, i, map.box[i]);
    putElementStride(image, i, map.element_strides[i]);
    if (i + 1 < map.dims.size())
      putStride(image, i, map.strides_bytes[i]);
  }
  if (map.im2col) {
    putBox(image, 0, map.im2col->channels);
    std::uint32_t corners = packCorners(*map.im2col);
    auto pixels = static_cast<std::uint16_t>(map.im2col->pixels);
    std::memcpy(image.box + 1, &corners, sizeof(corners));
    std::memcpy(image.pixels, &pixels, sizeof(pixels));
  }
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), &image, sizeof(image));
  return bytes;
}

std::optional<TensorMap> decode(const std::uint8_t *bytes) {
  Image image;
  std::memcpy(&image, bytes, sizeof(image));
  if (image.magic != kMagic || image.rank < 1 || image.rank > 5 ||
      image.type > static_cast<int>(kLastType) ||
      image.interleave >= std::size(kInterleaves) ||
      (image.isIm2col && image.rank < 3))
    return std::nullopt;
  TensorMap map;
  map.type = static_cast<Type>(image.type);
  map.address = image.address;
  map.swizzle = kSwizzles[image.swizzle];
  map.interleave = kInterleaves[image.interleave];
  map.l2 = kPromotions[image.l2];
  map.oob = static_cast<OobFill>(image.oob);
  map.atom = static_cast<SwizzleAtom>(image.atom);
  map.is_padded = image.isPadded;
  for (int i = 0; i < image.rank; ++i) {
    map.dims.push_back(std::uint64_t(image.dims[i]) + 1);
    map.box.push_back(image.box[i] + 1u);
    unsigned stride = image.elementStrides >> (i * kStrideBits);
    map.element_strides.push_back((stride & ((1u << kStrideBits) - 1)) + 1);
    if (i + 1 < image.rank)
      map.strides_bytes.push_back(strideOf(image, i));
  }
  if (!image.isIm2col)
    return map;
  std::uint32_t corners;
  std::uint16_t pixels;
  std::memcpy(&corners, image.box + 1, sizeof(corners));
  std::memcpy(&pixels, image.pixels, sizeof(pixels));
  std::size_t dimensions = map.dims.size() - 2;
  map.im2col = Im2col{unpackCorner(corners, dimensions, false),
                      unpackCorner(corners, dimensions, true), map.box[0],
                      pixels};
  std::fill(map.box.begin() + 1, map.box.end(), 1u);
  return map;
}

/// The first of those that are padded in shared memory.
static constexpr std::uint64_t kFirstPadded = 14;

/// PTX's numbers of element types; nothing where we have no such type.
static std::optional<Type> elementType(std::uint64_t number) {
  static constexpr Type kTypes[] = {
      Type::u8,   Type::u16,  Type::u32,  Type::i32, Type::u64,
      Type::i64,  Type::f16,  Type::f32,  Type::f32, Type::f64,
      Type::bf16, Type::tf32, Type::tf32, Type::e2m1, Type::e2m1,
      Type::e2m3};
  if (number >= std::size(kTypes))
    return std::nullopt;
  return kTypes[number];
}

static bool put(Image &image, TensorMapField field, std::uint64_t index,
                std::uint64_t value) {
  switch (field) {
  case TensorMapField::globalAddress:
    image.address = value;
    return true;
  case TensorMapField::rank: // counted from zero
    image.rank = value < 5 ? static_cast<std::uint8_t>(value + 1) & 7 : 7;
    return value < 5;
  case TensorMapField::boxDim:
    return putBox(image, index, value);
  case TensorMapField::globalDim:
    return putDim(image, index, value);
  case TensorMapField::globalStride:
    return putStride(image, index, value);
  case TensorMapField::elementStride:
    return putElementStride(image, index, value);
  case TensorMapField::elemtype:
    if (auto type = elementType(value))
      image.type = static_cast<std::uint8_t>(*type);
    image.isPadded = value >= kFirstPadded;
    return elementType(value).has_value();
  case TensorMapField::interleaveLayout:
    image.interleave = value & 3;
    return value < std::size(kInterleaves);
  case TensorMapField::swizzleMode:
    image.swizzle = value & 3;
    return value < std::size(kSwizzles);
  case TensorMapField::swizzleAtomicity:
    image.atom = value & 3;
    return value <= static_cast<std::uint64_t>(SwizzleAtom::b64);
  case TensorMapField::fillMode:
    image.oob = value & 1;
    return value < 2;
  }
  return false;
}

bool replace(std::uint8_t *bytes, TensorMapField field, std::uint64_t index,
             std::uint64_t value) {
  Image image, zeros{};
  std::memcpy(&image, bytes, sizeof(image));
  if (image.magic != kMagic && std::memcmp(&image, &zeros, sizeof(image)) != 0)
    return false;
  image.magic = kMagic;
  if (!put(image, field, index, value))
    return false;
  std::memcpy(bytes, &image, sizeof(image));
  return true;
}

} // namespace kiln::sim
