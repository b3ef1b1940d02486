// launch_arguments: one argument of a launch file after another.
#include "launch_arguments.h"

#include <kiln/run/device_description.h>
#include <kiln/base/error.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace kiln::cli {

using nlohmann::json;

/// Types of buffers and scalars.
static constexpr Type kTypes[] = {f16, bf16, f32, f64, i8,  u8,   i16,
                                  u16, i32,  u32, i64, u64, e4m3, e5m2};
static constexpr std::size_t kAddressBytes = 8, kTensorMapBytes = 128;
/// The alignment every buffer has.
static constexpr std::uint64_t kBufferAlign = 256;
Type read_type(const JsonNode &node, bool can_be_tf32) {
  std::vector<std::string_view> names;
  for (Type type : kTypes)
    names.push_back(name(type));
  if (can_be_tf32)
    names.push_back(name(tf32));
  std::string accepted = fmt::format("one of {}", fmt::join(names, ", "));
  std::string text = node.text(accepted);
  if (std::find(names.begin(), names.end(), text) == names.end())
    node.refuse(accepted);
  return parse_type(text);
}

void check_align(const JsonNode &node) {
  if (!std::has_single_bit(node.whole(1, kBufferAlign)))
    node.refuse(fmt::format("a power of two up to {}", kBufferAlign));
}

std::size_t ArgumentReader::find_buffer(const JsonNode &name) const {
  std::string text = name.text("the name of a buffer");
  auto found = index_.find(text);
  if (found != index_.end())
    return found->second;
  std::vector<std::string> known;
  for (const BufferSpec &buffer : buffers_)
    known.push_back(buffer.name);
  name.refuse(known.empty() ? "the name of a buffer, and the file declares none"
                            : fmt::format("the name of a buffer: {}",
                                          fmt::join(known, ", ")));
}

/// An integer that fits into its type.
static std::uint64_t read_integer(const JsonNode &value, Type type) {
  int bits = size_bits(type);
  if (is_signed_integer(type)) {
    std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - bits);
    const json &given = value.value();
    bool fits = given.is_number_integer() &&
                (given.is_number_unsigned()
                     ? given.get<std::uint64_t>() <= std::uint64_t(most)
                     : given.get<std::int64_t>() >= -most - 1);
    if (!fits)
      value.refuse(
          fmt::format("a whole number from {} to {}", -most - 1, most));
    return static_cast<std::uint64_t>(given.get<std::int64_t>());
  }
  return value.whole(0, ~std::uint64_t{0} >> (64 - bits));
}

static Scalar read_scalar(const JsonNode &node) {
  node.checkKeys({"scalar", "value"});
  Type type = read_type(node.at("scalar"));
  JsonNode value = node.at("value");
  if (is_float(type))
    return Scalar(type, to_bits(type, value.number()));
  return Scalar(type, read_integer(value, type));
}

TensorMapArgument ArgumentReader::read_tensor_map(const JsonNode &node) const {
  node.checkKeys({"of", "type", "dims", "strides_bytes", "box",
                  "element_strides", "swizzle", "interleave", "l2", "oob"});
  TensorMapArgument argument;
  TensorMap &map = argument.map;
  argument.index = find_buffer(node.at("of"));
  map.type = buffers_[argument.index].type;
  if (auto type = node.find("type"))
    map.type = read_type(*type, /*can_be_tf32=*/true);
  std::uint64_t most32 = std::numeric_limits<std::uint32_t>::max();
  map.dims = node.at("dims").wholes(1, most32 + 1);
  if (auto strides = node.find("strides_bytes"))
    map.strides_bytes = strides->wholes(0, std::uint64_t{1} << 40);
  for (std::uint64_t size : node.at("box").wholes(1, most32))
    map.box.push_back(static_cast<std::uint32_t>(size));
  map.element_strides.assign(map.dims.size(), 1);
  if (auto strides = node.find("element_strides")) {
    map.element_strides.clear();
    for (std::uint64_t stride : strides->wholes(1, most32))
      map.element_strides.push_back(static_cast<std::uint32_t>(stride));
  }
  if (auto swizzle = node.find("swizzle"))
    map.swizzle = static_cast<Swizzle>(swizzle->choice({0, 32, 64, 128}));
  if (auto interleave = node.find("interleave"))
    map.interleave = static_cast<Interleave>(interleave->choice({0, 16, 32}));
  if (auto l2 = node.find("l2"))
    map.l2 = static_cast<L2Promotion>(l2->choice({0, 64, 128, 256}));
  if (auto oob = node.find("oob")) {
    std::string text = oob->text("zeros or nan");
    if (text != "zeros" && text != "nan")
      oob->refuse("zeros or nan");
    map.oob = text == "nan" ? OobFill::nan : OobFill::zeros;
  }
  check(map, node.place());
  return argument;
}

/// An argument as bytes.
StructArgument to_bytes(ArgumentValue value) {
  StructArgument result;
  if (auto *buffer = std::get_if<BufferArgument>(&value)) {
    result.bytes.resize(kAddressBytes);
    result.addresses = {{0, *buffer}};
    return result;
  }
  if (auto *scalar = std::get_if<Scalar>(&value)) {
    result.bytes.resize(size_bytes(scalar->type));
    std::memcpy(result.bytes.data(), &scalar->bits, result.bytes.size());
    return result;
  }
  if (auto *record = std::get_if<StructArgument>(&value))
    return std::move(*record);
  result.bytes.resize(kTensorMapBytes);
  result.maps = {{0, std::get<TensorMapArgument>(value)}};
  return result;
}

/// Put a field into its place, which no other may have taken.
static void place_field(StructArgument &result, std::vector<bool> &is_taken,
                        const JsonNode &node, const StructArgument &field) {
  std::size_t size = result.bytes.size(), bytes = field.bytes.size();
  std::uint64_t offset = node.whole(0, size - 1);
  if (bytes > size - offset)
    node.refuse(bytes > size
                    ? fmt::format("in a larger struct: the field has {} bytes, "
                                  "the struct {}",
                                  bytes, size)
                    : fmt::format("at most {} for a field of {} bytes in a "
                                  "struct of {}",
                                  size - bytes, bytes, size));
  for (std::size_t i = 0; i < bytes; ++i) {
    if (is_taken[offset + i])
      node.refuse(fmt::format("an offset where no other field lies; byte {} "
                              "belongs to one",
                              offset + i));
    is_taken[offset + i] = true;
    result.bytes[offset + i] = field.bytes[i];
  }
  for (const StructArgument::Address &address : field.addresses)
    result.addresses.push_back({offset + address.offset, address.to});
  for (const StructArgument::Map &map : field.maps)
    result.maps.push_back({offset + map.offset, map.map});
}

StructArgument ArgumentReader::read_struct(const JsonNode &node) const {
  node.checkKeys({"size", "align", "fields"});
  StructArgument result;
  auto most =
      static_cast<std::uint64_t>(DeviceDescription::h200().max_parameter_bytes);
  result.bytes.resize(node.at("size").whole(1, most));
  if (auto align = node.find("align"))
    check_align(*align);
  std::vector<bool> is_taken(result.bytes.size());
  for (const JsonNode &field : node.at("fields").list("fields")) {
    field.checkKeys({"offset", "arg"});
    JsonNode argument = field.at("arg");
    place_field(result, is_taken, field.at("offset"), to_bytes(read(argument)));
  }
  return result;
}

BufferArgument ArgumentReader::read_pointer(const JsonNode &node) const {
  BufferArgument pointer{find_buffer(node.at("buffer"))};
  if (auto offset = node.find("offset"))
    pointer.offset = offset->whole(0, buffers_[pointer.index].bytes());
  return pointer;
}

ArgumentValue ArgumentReader::read(const JsonNode &node) const {
  if (!node.value().is_object())
    node.refuse("an object");
  if (node.has("buffer"))
    return read_pointer(node);
  if (node.has("scalar"))
    return read_scalar(node);
  if (node.has("tensor_map")) {
    node.checkKeys({"tensor_map"});
    return read_tensor_map(node.at("tensor_map"));
  }
  if (node.has("struct")) {
    node.checkKeys({"struct"});
    return read_struct(node.at("struct"));
  }
  node.refuse("an object with one of buffer, scalar, tensor_map, struct");
}

} // namespace kiln::cli
