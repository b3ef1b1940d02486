// TensorMapImage: pack and unpack tensor maps.
#include "sim/machine/memory/TensorMapImage.h"
#include "kiln/run/device_description.h"

#include <algorithm>
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
  std::uint8_t type, rank, swizzle, interleave;
  std::uint64_t address;
  std::uint32_t dims[5];
  std::uint8_t strides[4][5]; ///< of 40 bits
  std::uint8_t box[5];
  std::uint8_t l2; ///< in units of 32 bytes
  std::uint8_t oob;
  std::uint8_t unused; ///< no byte is padding, whose value nobody knows
};
} // namespace
static_assert(std::has_unique_object_representations_v<Image>);
static_assert(sizeof(Image) <= kTensorMapBytes / 2);

static constexpr std::uint16_t kMagic = 0x4d54; // "TM"
static constexpr int kStrideBits = 3;
static constexpr unsigned kL2Unit = 32;
static constexpr Type kLastType = Type::ue4m3;

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
  image.swizzle = static_cast<std::uint8_t>(map.swizzle);
  image.interleave = static_cast<std::uint8_t>(map.interleave);
  image.l2 = static_cast<std::uint8_t>(static_cast<unsigned>(map.l2) / kL2Unit);
  image.oob = static_cast<std::uint8_t>(map.oob);
  image.address = map.address;
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    putDim(image, i, map.dims[i]);
    putBox(image, i, map.box[i]);
    putElementStride(image, i, map.element_strides[i]);
    if (i + 1 < map.dims.size())
      putStride(image, i, map.strides_bytes[i]);
  }
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), &image, sizeof(image));
  return bytes;
}

std::optional<TensorMap> decode(const std::uint8_t *bytes) {
  Image image;
  std::memcpy(&image, bytes, sizeof(image));
  auto isOneOf = [](int value, std::initializer_list<int> known) {
    return std::find(known.begin(), known.end(), value) != known.end();
  };
  if (image.magic != kMagic || image.rank < 1 || image.rank > 5 ||
      image.type > static_cast<int>(kLastType) ||
      !isOneOf(image.swizzle, {0, 32, 64, 128}) ||
      !isOneOf(image.interleave, {0, 16, 32}) || !isOneOf(image.oob, {0, 1}))
    return std::nullopt;
  TensorMap map;
  map.type = static_cast<Type>(image.type);
  map.address = image.address;
  map.swizzle = static_cast<Swizzle>(image.swizzle);
  map.interleave = static_cast<Interleave>(image.interleave);
  map.l2 = static_cast<L2Promotion>(image.l2 * kL2Unit);
  map.oob = static_cast<OobFill>(image.oob);
  for (int i = 0; i < image.rank; ++i) {
    map.dims.push_back(std::uint64_t(image.dims[i]) + 1);
    map.box.push_back(image.box[i] + 1u);
    unsigned stride = image.elementStrides >> (i * kStrideBits);
    map.element_strides.push_back((stride & ((1u << kStrideBits) - 1)) + 1);
    if (i + 1 < image.rank)
      map.strides_bytes.push_back(strideOf(image, i));
  }
  return map;
}

/// PTX's numbers of element types; nothing where we have no such type.
static std::optional<Type> elementType(std::uint64_t number) {
  static constexpr Type kTypes[] = {
      Type::u8,   Type::u16,  Type::u32,  Type::i32, Type::u64,
      Type::i64,  Type::f16,  Type::f32,  Type::f32, Type::f64,
      Type::bf16, Type::tf32, Type::tf32, Type::e2m1};
  if (number >= std::size(kTypes))
    return std::nullopt;
  return kTypes[number];
}

/// Put `value` into a table by PTX's number for it.
template <std::size_t N>
static bool putCode(std::uint8_t &field, const std::uint8_t (&codes)[N],
                    std::uint64_t value) {
  if (value >= N)
    return false;
  field = codes[value];
  return true;
}

static bool put(Image &image, TensorMapField field, std::uint64_t index,
                std::uint64_t value) {
  switch (field) {
  case TensorMapField::globalAddress:
    image.address = value;
    return true;
  case TensorMapField::rank: // counted from zero
    image.rank = static_cast<std::uint8_t>(value + 1);
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
    return elementType(value).has_value();
  case TensorMapField::interleaveLayout:
    return putCode(image.interleave, {0, 16, 32}, value);
  case TensorMapField::swizzleMode:
    return putCode(image.swizzle, {0, 32, 64, 128}, value);
  case TensorMapField::fillMode:
    return putCode(image.oob, {0, 1}, value);
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
