// launch_file: read the JSON, with the place of everything that is refused.
#include "launch_file.h"

#include "json_node.h"

#include <kiln/device_description.h>
#include <kiln/error.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>

namespace kiln::cli {

using nlohmann::json;

/// Types of buffers and scalars.
static constexpr Type kTypes[] = {f16, bf16, f32, f64, i8,  u8,   i16,
                                  u16, i32,  u32, i64, u64, e4m3, e5m2};
static constexpr std::size_t kAddressBytes = 8, kTensorMapBytes = 128;
/// Sizes have 32 bits here; the device says how large they may be.
static constexpr std::uint64_t kMaxSize = 0xffffffff;
/// The alignment every buffer has.
static constexpr std::uint64_t kBufferAlign = 256;
/// NumPy has no arrays of more.
static constexpr std::size_t kMaxDimensions = 64;
static constexpr std::string_view kInits =
    "zeros, iota, random:SEED, random:SEED:LO:HI, poison or file:NAME.npy";

namespace {

/// The launch file while it is read. Buffers are declared first, so that an
/// argument may name one that is declared behind it.
class Reader {
public:
  Reader(const Node &root, std::filesystem::path folder)
      : root_(root), folder_(std::move(folder)) {}
  LaunchFile read();

private:
  void declare_all(const Node &launch);
  void declare_in(const Node &argument);
  void declare(const Node &entry, const std::string &name);
  BufferInit read_init(const Node &node) const;
  std::string read_file_name(const Node &node, const std::string &text) const;
  std::size_t find_buffer(const Node &name) const;
  LaunchSpec read_launch(const Node &node) const;
  ArgumentValue read_argument(const Node &node) const;
  TensorMapArgument read_tensor_map(const Node &node) const;
  StructArgument read_struct(const Node &node) const;

  Node root_;
  std::filesystem::path folder_;
  LaunchFile result_;
  std::map<std::string, std::size_t> index_;
};

} // namespace

static Type read_type(const Node &node, bool can_be_tf32 = false) {
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

/// A buffer's name is a file's name too, where it is saved.
static std::string read_name(const Node &node) {
  static const std::string accepted =
      "a name of letters, digits, '_', '-' and '.' that begins with no '.'";
  std::string text = node.text(accepted);
  bool is_good = !text.empty() && text[0] != '.' &&
                 std::all_of(text.begin(), text.end(), [](unsigned char c) {
                   return std::isalnum(c) || std::strchr("_-.", c);
                 });
  if (!is_good)
    node.refuse(accepted);
  return text;
}

static std::array<std::uint32_t, 3> read_dim3(const Node &node) {
  std::array<std::uint32_t, 3> result;
  std::vector<Node> axes = node.list("three whole numbers, [x, y, z]");
  if (axes.size() != 3)
    node.refuse("a list of three whole numbers, [x, y, z]");
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = static_cast<std::uint32_t>(axes[i].whole(1, kMaxSize));
  return result;
}

static void check_align(const Node &node) {
  if (!std::has_single_bit(node.whole(1, kBufferAlign)))
    node.refuse(fmt::format("a power of two up to {}", kBufferAlign));
}

template <typename T> static bool parse_number(std::string_view text, T &out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// The words of "a:b:c".
static std::vector<std::string_view> split(std::string_view text) {
  std::vector<std::string_view> parts;
  for (;;) {
    std::size_t colon = text.find(':');
    parts.push_back(text.substr(0, colon));
    if (colon == std::string_view::npos)
      return parts;
    text.remove_prefix(colon + 1);
  }
}

std::string Reader::read_file_name(const Node &node,
                                   const std::string &text) const {
  std::string file = text.substr(std::strlen("file:"));
  if (!file.ends_with(".npy"))
    node.refuse("file:NAME.npy");
  return (folder_ / file).string();
}

BufferInit Reader::read_init(const Node &node) const {
  using Kind = BufferInit::Kind;
  std::string accepted(kInits);
  std::string text = node.text(accepted);
  if (text == "zeros")
    return {.kind = Kind::zeros};
  if (text == "iota")
    return {.kind = Kind::iota};
  if (text == "poison")
    return {.kind = Kind::poison};
  if (text.starts_with("file:"))
    return {.kind = Kind::file, .path = read_file_name(node, text)};
  std::vector<std::string_view> parts = split(text);
  BufferInit init{.kind = Kind::random};
  if (parts[0] != "random" || (parts.size() != 2 && parts.size() != 4) ||
      !parse_number(parts[1], init.seed))
    node.refuse(accepted);
  if (parts.size() == 4 &&
      (!parse_number(parts[2], init.lo) || !parse_number(parts[3], init.hi) ||
       !(init.lo <= init.hi) || !std::isfinite(init.lo) ||
       !std::isfinite(init.hi)))
    node.refuse("random:SEED:LO:HI with two numbers, LO not above HI");
  return init;
}

/// Elements of a shape whose bytes a GPU could hold.
static std::uint64_t count_elements(const Node &node, const BufferSpec &spec) {
  auto most =
      static_cast<std::uint64_t>(DeviceDescription::h200().memory_bytes);
  if (spec.shape.size() > kMaxDimensions)
    node.refuse(
        fmt::format("a shape of at most {} dimensions", kMaxDimensions));
  std::uint64_t count = 1, bytes = 0;
  bool is_too_large = false;
  for (std::uint64_t size : spec.shape)
    is_too_large |= __builtin_mul_overflow(count, size, &count);
  is_too_large |= __builtin_mul_overflow(
      count, static_cast<std::uint64_t>(size_bytes(spec.type)), &bytes);
  if (is_too_large || bytes > most)
    node.refuse(fmt::format("a shape of at most {} bytes", most));
  return count;
}

void Reader::declare(const Node &entry, const std::string &name) {
  entry.check_keys({"buffer", "type", "shape", "init", "output", "expected",
                    "rtol", "atol", "exact", "align"});
  BufferSpec spec;
  spec.name = name;
  spec.where = entry.place();
  spec.type = read_type(entry.at("type"));
  Node shape = entry.at("shape");
  spec.shape = shape.wholes(0, std::uint64_t{1} << 48);
  spec.count = count_elements(shape, spec);
  if (auto output = entry.find("output"))
    spec.is_output = output->boolean();
  if (auto expected = entry.find("expected")) {
    std::string text = expected->text("file:NAME.npy");
    if (!text.starts_with("file:"))
      expected->refuse("file:NAME.npy");
    spec.expected_path = read_file_name(*expected, text);
  }
  bool is_written = spec.is_output || !spec.expected_path.empty();
  spec.init.kind =
      is_written ? BufferInit::Kind::poison : BufferInit::Kind::zeros;
  spec.init_text = is_written ? "poison" : "zeros";
  if (auto init = entry.find("init")) {
    spec.init = read_init(*init);
    spec.init_text = init->value().get<std::string>();
  }
  Tolerance &tolerance = spec.tolerance;
  if (auto rtol = entry.find("rtol"))
    tolerance.rtol = rtol->not_negative();
  if (auto atol = entry.find("atol"))
    tolerance.atol = atol->not_negative();
  if (auto exact = entry.find("exact"))
    tolerance.is_exact = exact->boolean();
  bool has_bounds = entry.has("rtol") || entry.has("atol");
  if (tolerance.is_exact && has_bounds)
    throw UserError(fmt::format("{} has 'exact' and 'rtol' or 'atol'; it takes "
                                "the one or the others",
                                entry.place()));
  tolerance.is_given = tolerance.is_exact || has_bounds;
  if (auto align = entry.find("align"))
    check_align(*align);
  if (!index_.emplace(name, result_.buffers.size()).second)
    throw UserError(fmt::format(
        "{} declares the buffer '{}' again; {{\"buffer\": \"{}\"}} alone "
        "refers to it",
        entry.place(), name, name));
  result_.buffers.push_back(std::move(spec));
}

/// An entry with nothing but a name refers to a buffer declared elsewhere.
static bool is_reference(const Node &argument) {
  return std::all_of(argument.value().items().begin(),
                     argument.value().items().end(), [](const auto &item) {
                       return item.key() == "buffer" ||
                              item.key().starts_with("x-");
                     });
}

void Reader::declare_in(const Node &argument) {
  if (!argument.value().is_object())
    return;
  if (argument.has("buffer") && !is_reference(argument))
    declare(argument, read_name(argument.at("buffer")));
  if (!argument.has("struct"))
    return;
  Node record = argument.at("struct");
  if (!record.value().is_object() || !record.has("fields"))
    return;
  for (const Node &field : record.at("fields").list("fields"))
    if (field.value().is_object() && field.has("arg"))
      declare_in(field.at("arg"));
}

void Reader::declare_all(const Node &launch) {
  if (launch.value().is_object() && launch.has("args"))
    for (const Node &argument : launch.at("args").list("arguments"))
      declare_in(argument);
}

std::size_t Reader::find_buffer(const Node &name) const {
  std::string text = name.text("the name of a buffer");
  auto found = index_.find(text);
  if (found != index_.end())
    return found->second;
  std::vector<std::string> known;
  for (const BufferSpec &buffer : result_.buffers)
    known.push_back(buffer.name);
  name.refuse(known.empty() ? "the name of a buffer, and the file declares none"
                            : fmt::format("the name of a buffer: {}",
                                          fmt::join(known, ", ")));
}

/// An integer that fits into its type.
static std::uint64_t read_integer(const Node &value, Type type) {
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

static Scalar read_scalar(const Node &node) {
  node.check_keys({"scalar", "value"});
  Type type = read_type(node.at("scalar"));
  Node value = node.at("value");
  if (is_float(type))
    return Scalar(type, to_bits(type, value.number()));
  return Scalar(type, read_integer(value, type));
}

TensorMapArgument Reader::read_tensor_map(const Node &node) const {
  node.check_keys({"of", "type", "dims", "strides_bytes", "box",
                   "element_strides", "swizzle", "interleave", "l2", "oob"});
  TensorMapArgument argument;
  TensorMap &map = argument.map;
  argument.index = find_buffer(node.at("of"));
  const BufferSpec &buffer = result_.buffers[argument.index];
  map.type = buffer.type;
  if (auto type = node.find("type")) {
    map.type = read_type(*type, /*can_be_tf32=*/true);
    if (size_bytes(map.type) != size_bytes(buffer.type))
      type->refuse(fmt::format("a type of {} bytes, as the {} of '{}'",
                               size_bytes(buffer.type), name(buffer.type),
                               buffer.name));
  }
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
static StructArgument to_bytes(ArgumentValue value) {
  StructArgument result;
  if (auto *buffer = std::get_if<BufferArgument>(&value)) {
    result.bytes.resize(kAddressBytes);
    result.addresses = {{0, buffer->index}};
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
                        const Node &node, const StructArgument &field) {
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
    result.addresses.push_back({offset + address.offset, address.index});
  for (const StructArgument::Map &map : field.maps)
    result.maps.push_back({offset + map.offset, map.map});
}

StructArgument Reader::read_struct(const Node &node) const {
  node.check_keys({"size", "align", "fields"});
  StructArgument result;
  auto most =
      static_cast<std::uint64_t>(DeviceDescription::h200().max_parameter_bytes);
  result.bytes.resize(node.at("size").whole(1, most));
  if (auto align = node.find("align"))
    check_align(*align);
  std::vector<bool> is_taken(result.bytes.size());
  for (const Node &field : node.at("fields").list("fields")) {
    field.check_keys({"offset", "arg"});
    Node argument = field.at("arg");
    place_field(result, is_taken, field.at("offset"),
                to_bytes(read_argument(argument)));
  }
  return result;
}

ArgumentValue Reader::read_argument(const Node &node) const {
  if (!node.value().is_object())
    node.refuse("an object");
  if (node.has("buffer"))
    return BufferArgument{find_buffer(node.at("buffer"))};
  if (node.has("scalar"))
    return read_scalar(node);
  if (node.has("tensor_map")) {
    node.check_keys({"tensor_map"});
    return read_tensor_map(node.at("tensor_map"));
  }
  if (node.has("struct")) {
    node.check_keys({"struct"});
    return read_struct(node.at("struct"));
  }
  node.refuse("an object with one of buffer, scalar, tensor_map, struct");
}

LaunchSpec Reader::read_launch(const Node &node) const {
  LaunchSpec launch;
  launch.where = node.place();
  if (auto kernel = node.find("kernel"))
    launch.kernel = kernel->text("the name of an entry");
  launch.grid = read_dim3(node.at("grid"));
  launch.block = read_dim3(node.at("block"));
  if (auto cluster = node.find("cluster"))
    launch.cluster = read_dim3(*cluster);
  if (auto smem = node.find("dynamic_smem"))
    launch.dynamic_smem_bytes =
        static_cast<std::uint32_t>(smem->whole(0, kMaxSize));
  for (const Node &argument : node.at("args").list("arguments"))
    launch.arguments.push_back(read_argument(argument));
  return launch;
}

LaunchFile Reader::read() {
  bool is_list = root_.value().is_object() && root_.has("launches");
  if (is_list)
    root_.check_keys({"buffers", "printf", "registers", "deterministic",
                      "launches", "co_resident"});
  else
    root_.check_keys({"kernel", "grid", "block", "cluster", "dynamic_smem",
                      "args", "buffers", "printf", "registers", "deterministic",
                      "launches", "co_resident"});
  if (auto buffers = root_.find("buffers"))
    for (const Node &entry : buffers->list("buffers"))
      declare(entry, read_name(entry.at("buffer")));
  if (is_list) {
    std::vector<Node> launches = root_.at("launches").list("launches");
    if (launches.empty())
      root_.at("launches").refuse("a list of at least one launch");
    for (const Node &launch : launches) {
      launch.check_keys(
          {"kernel", "grid", "block", "cluster", "dynamic_smem", "args"});
      declare_all(launch);
    }
    for (const Node &launch : launches)
      result_.launches.push_back(read_launch(launch));
  } else {
    declare_all(root_);
    result_.launches.push_back(read_launch(root_));
  }
  if (auto printed = root_.find("printf")) {
    result_.printed.emplace();
    for (const Node &line : printed->list("lines"))
      result_.printed->push_back(line.text("a line of text"));
    std::sort(result_.printed->begin(), result_.printed->end());
  }
  if (auto registers = root_.find("registers"))
    result_.registers_at_entry = static_cast<int>(registers->whole(1, 255));
  if (auto flag = root_.find("deterministic"))
    result_.is_deterministic = flag->boolean();
  if (auto flag = root_.find("co_resident"))
    result_.is_co_resident = flag->boolean();
  return std::move(result_);
}

LaunchFile LaunchFile::load(const std::string &path) {
  json value = read_json(path);
  return Reader(Node(value, path), std::filesystem::path(path).parent_path())
      .read();
}

} // namespace kiln::cli
