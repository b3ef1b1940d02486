// TensorMapImage: pack and unpack tensor maps.
#include "sim/TensorMapImage.h"

#include <cstring>
#include <iterator>

namespace kiln::sim {

namespace {
/// The packed form; plain data, so that it is its own bytes.
struct Image {
  std::uint32_t magic;
  std::uint8_t type, rank, swizzle, interleave;
  std::uint16_t l2;
  std::uint8_t oob, unused;
  std::uint64_t address;
  std::uint64_t strides[4];
  std::uint64_t dims[5];
  std::uint16_t box[5];
  std::uint8_t elementStrides[5];
};
} // namespace
static_assert(sizeof(Image) <= kTensorMapBytes);

static constexpr std::uint32_t kMagic = 0x4b544d31; // "KTM1"

std::array<std::uint8_t, kTensorMapBytes> encode(const TensorMap &map) {
  Image image{};
  image.magic = kMagic;
  image.type = static_cast<std::uint8_t>(map.type);
  image.rank = static_cast<std::uint8_t>(map.dims.size());
  image.swizzle = static_cast<std::uint8_t>(map.swizzle);
  image.interleave = static_cast<std::uint8_t>(map.interleave);
  image.l2 = static_cast<std::uint16_t>(map.l2);
  image.oob = static_cast<std::uint8_t>(map.oob);
  image.address = map.address;
  for (std::size_t i = 0; i < map.dims.size(); ++i) {
    image.dims[i] = map.dims[i];
    image.box[i] = static_cast<std::uint16_t>(map.box[i]);
    image.elementStrides[i] = static_cast<std::uint8_t>(map.element_strides[i]);
    if (i + 1 < map.dims.size())
      image.strides[i] = map.strides_bytes[i];
  }
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), &image, sizeof(image));
  return bytes;
}

std::optional<TensorMap> decode(const std::uint8_t *bytes) {
  Image image;
  std::memcpy(&image, bytes, sizeof(image));
  if (image.magic != kMagic || image.rank < 1 || image.rank > 5)
    return std::nullopt;
  TensorMap map;
  map.type = static_cast<Type>(image.type);
  map.address = image.address;
  map.swizzle = static_cast<Swizzle>(image.swizzle);
  map.interleave = static_cast<Interleave>(image.interleave);
  map.l2 = static_cast<L2Promotion>(image.l2);
  map.oob = static_cast<OobFill>(image.oob);
  for (int i = 0; i < image.rank; ++i) {
    map.dims.push_back(image.dims[i]);
    map.box.push_back(image.box[i]);
    map.element_strides.push_back(image.elementStrides[i]);
    if (i + 1 < image.rank)
      map.strides_bytes.push_back(image.strides[i]);
  }
  return map;
}

/// PTX's numbers of element types; nothing where we have no such type.
static std::optional<Type> elementType(std::uint64_t number) {
  static constexpr Type kTypes[] = {
      Type::u8,   Type::u16,  Type::u32, Type::i32, Type::u64,
      Type::i64,  Type::f16,  Type::f32, Type::f32, Type::f64,
      Type::bf16, Type::tf32, Type::tf32};
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

template <typename T, std::size_t N>
static bool putElement(T (&fields)[N], std::uint64_t index,
                       std::uint64_t value) {
  if (index >= N)
    return false;
  fields[index] = static_cast<T>(value);
  return fields[index] == value;
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
    return putElement(image.box, index, value);
  case TensorMapField::globalDim:
    return putElement(image.dims, index, value);
  case TensorMapField::globalStride:
    return putElement(image.strides, index, value);
  case TensorMapField::elementStride:
    return putElement(image.elementStrides, index, value);
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
