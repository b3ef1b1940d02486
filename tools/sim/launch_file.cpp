// launch_file: read the JSON, with the place of everything that is refused.
#include "launch_file.h"

#include "launch_arguments.h"
#include "support/text/JsonNode.h"

#include <kiln/run/device_description.h>
#include <kiln/base/error.h>

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

/// Sizes have 32 bits here; the device says how large they may be.
static constexpr std::uint64_t kMaxSize = 0xffffffff;
/// NumPy has no arrays of more.
static constexpr std::size_t kMaxDimensions = 64;
static constexpr std::string_view kInits =
    "zeros, iota, random:SEED, random:SEED:LO:HI, poison or file:NAME.npy";

namespace {

/// The launch file while it is read. Buffers are declared first, so that an
/// argument may name one that is declared behind it.
class LaunchReader {
public:
  LaunchReader(const JsonNode &root, std::filesystem::path folder)
      : root_(root), folder_(std::move(folder)) {}
  LaunchFile read();

private:
  void declare_all(const JsonNode &launch);
  void declare_in(const JsonNode &argument);
  void declare(const JsonNode &entry, const std::string &name);
  BufferInit read_init(const JsonNode &node) const;
  std::string read_file_name(const JsonNode &node,
                             const std::string &text) const;
  std::string read_file_of(const JsonNode &node) const;
  void read_fields(const JsonNode &list, std::size_t index);
  void read_shared(const JsonNode &list);
  LaunchSpec read_launch(const JsonNode &node) const;

  JsonNode root_;
  std::filesystem::path folder_;
  LaunchFile result_;
  std::map<std::string, std::size_t> index_;
  ArgumentReader arguments_{result_.buffers, index_};
  /// Lists of fields, and whose they are: they may name any buffer.
  std::vector<std::pair<JsonNode, std::size_t>> fields_;
};

} // namespace

/// A buffer's name is a file's name too, where it is saved.
static std::string read_name(const JsonNode &node) {
  static const std::string accepted =
      "a name of letters, digits, spaces, '_', '-', '$' and '.' that begins "
      "with no '.'";
  std::string text = node.text(accepted);
  bool is_good = !text.empty() && text[0] != '.' &&
                 std::all_of(text.begin(), text.end(), [](unsigned char c) {
                   return std::isalnum(c) || (c && std::strchr(" _-$.", c));
                 });
  if (!is_good)
    node.refuse(accepted);
  return text;
}

static std::array<std::uint32_t, 3> read_dim3(const JsonNode &node) {
  std::array<std::uint32_t, 3> result;
  std::vector<JsonNode> axes = node.list("three whole numbers, [x, y, z]");
  if (axes.size() != 3)
    node.refuse("a list of three whole numbers, [x, y, z]");
  for (std::size_t i = 0; i < 3; ++i)
    result[i] = static_cast<std::uint32_t>(axes[i].whole(1, kMaxSize));
  return result;
}

template <typename T> static bool parse_number(std::string_view text, T &out) {
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

/// JSON has no numbers of base 16, in which addresses are told.
static std::uint64_t read_address(const JsonNode &node) {
  static const std::string accepted =
      "an address: \"0x7f0000000000\", or a whole number";
  if (node.value().is_number())
    return node.whole(0, std::numeric_limits<std::uint64_t>::max());
  std::string text = node.text(accepted);
  std::uint64_t address = 0;
  const char *end = text.data() + text.size();
  bool is_hex = text.starts_with("0x") || text.starts_with("0X");
  auto [rest, error] = is_hex
                           ? std::from_chars(text.data() + 2, end, address, 16)
                           : std::from_chars(text.data(), end, address, 10);
  if (error != std::errc() || rest != end)
    node.refuse(accepted);
  return address;
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

std::string LaunchReader::read_file_name(const JsonNode &node,
                                         const std::string &text) const {
  std::string file = text.substr(std::strlen("file:"));
  if (!file.ends_with(".npy"))
    node.refuse("file:NAME.npy");
  return (folder_ / file).string();
}

std::string LaunchReader::read_file_of(const JsonNode &node) const {
  std::string text = node.text("file:NAME.npy");
  if (!text.starts_with("file:"))
    node.refuse("file:NAME.npy");
  return read_file_name(node, text);
}

BufferInit LaunchReader::read_init(const JsonNode &node) const {
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
static std::uint64_t count_elements(const JsonNode &node,
                                    const BufferSpec &spec) {
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

void LaunchReader::declare(const JsonNode &entry, const std::string &name) {
  entry.checkKeys({"buffer", "type", "shape", "init", "output", "expected",
                   "rtol", "atol", "exact", "align", "address", "offset",
                   "fields", "variable", "written"});
  BufferSpec spec;
  spec.name = name;
  spec.where = entry.place();
  spec.type = read_type(entry.at("type"));
  JsonNode shape = entry.at("shape");
  spec.shape = shape.wholes(0, std::uint64_t{1} << 48);
  spec.count = count_elements(shape, spec);
  if (auto output = entry.find("output"))
    spec.is_output = output->boolean();
  if (auto expected = entry.find("expected"))
    spec.expected_path = read_file_of(*expected);
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
    tolerance.rtol = rtol->notNegative();
  if (auto atol = entry.find("atol"))
    tolerance.atol = atol->notNegative();
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
  if (auto address = entry.find("address"))
    spec.address = read_address(*address);
  if (auto variable = entry.find("variable"))
    spec.is_variable = variable->boolean();
  // What the PTX gives a variable stays unless something else is said.
  if (spec.is_variable && !entry.has("init")) {
    spec.init = {.kind = BufferInit::Kind::poison};
    spec.init_text = "as in PTX";
  }
  if (auto written = entry.find("written"))
    spec.written_path = read_file_of(*written);
  if (!index_.emplace(name, result_.buffers.size()).second)
    throw UserError(fmt::format(
        "{} declares the buffer '{}' again; {{\"buffer\": \"{}\"}} alone "
        "refers to it",
        entry.place(), name, name));
  if (auto fields = entry.find("fields"))
    fields_.emplace_back(*fields, result_.buffers.size());
  result_.buffers.push_back(std::move(spec));
}

/// An entry with nothing but a name refers to a buffer declared elsewhere.
static bool is_reference(const JsonNode &argument) {
  return std::all_of(argument.value().items().begin(),
                     argument.value().items().end(), [](const auto &item) {
                       return item.key() == "buffer" ||
                              item.key() == "offset" ||
                              item.key().starts_with("x-");
                     });
}

void LaunchReader::declare_in(const JsonNode &argument) {
  if (!argument.value().is_object())
    return;
  if (argument.has("buffer") && !is_reference(argument))
    declare(argument, read_name(argument.at("buffer")));
  if (!argument.has("struct"))
    return;
  JsonNode record = argument.at("struct");
  if (!record.value().is_object() || !record.has("fields"))
    return;
  for (const JsonNode &field : record.at("fields").list("fields"))
    if (field.value().is_object() && field.has("arg"))
      declare_in(field.at("arg"));
}

void LaunchReader::declare_all(const JsonNode &launch) {
  if (launch.value().is_object() && launch.has("args"))
    for (const JsonNode &argument : launch.at("args").list("arguments"))
      declare_in(argument);
}

/// Values inside a buffer, as those of a struct.
void LaunchReader::read_fields(const JsonNode &list, std::size_t index) {
  std::uint64_t size = result_.buffers[index].bytes();
  for (const JsonNode &node : list.list("fields")) {
    node.checkKeys({"offset", "arg"});
    BufferField field{index, node.at("offset").whole(0, size),
                      to_bytes(arguments_.read(node.at("arg")))};
    if (field.value.bytes.size() > size - field.offset)
      node.at("offset").refuse(
          fmt::format("an offset with room for {} bytes in a buffer of {}",
                      field.value.bytes.size(), size));
    result_.fields.push_back(std::move(field));
  }
}

/// Names of what lies in dynamic shared memory.
void LaunchReader::read_shared(const JsonNode &list) {
  constexpr std::uint64_t kMost = 1 << 20;
  auto number = [&](const JsonNode &node, const char *key, std::uint64_t least,
                    int fallback) {
    auto found = node.find(key);
    return found ? static_cast<int>(found->whole(least, kMost)) : fallback;
  };
  for (const JsonNode &node : list.list("objects")) {
    node.checkKeys(
        {"name", "offset", "element_bytes", "count", "file", "line"});
    SharedObject object{.name = node.at("name").text("a name")};
    object.offset = static_cast<int>(node.at("offset").whole(0, kMost));
    object.element_bytes =
        static_cast<int>(node.at("element_bytes").whole(1, kMost));
    object.count = number(node, "count", 1, 1);
    object.line = number(node, "line", 0, 0);
    if (auto file = node.find("file"))
      object.file = file->text("the name of a file");
    result_.shared_objects.push_back(std::move(object));
  }
}

LaunchSpec LaunchReader::read_launch(const JsonNode &node) const {
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
  for (const JsonNode &argument : node.at("args").list("arguments"))
    launch.arguments.push_back(arguments_.read(argument));
  return launch;
}

LaunchFile LaunchReader::read() {
  bool is_list = root_.value().is_object() && root_.has("launches");
  if (is_list)
    root_.checkKeys({"ptx", "buffers", "printf", "registers", "deterministic",
                     "launches", "co_resident", "shared"});
  else
    root_.checkKeys({"ptx", "kernel", "grid", "block", "cluster",
                     "dynamic_smem", "args", "buffers", "printf", "registers",
                     "deterministic", "launches", "co_resident", "shared"});
  if (auto ptx = root_.find("ptx")) {
    if (ptx->list("names of PTX files").empty())
      ptx->refuse("a list of at least one name of a PTX file");
    for (const JsonNode &file : ptx->list("names of PTX files"))
      result_.ptx_paths.push_back(
          (folder_ / file.text("the name of a PTX file")).string());
  }
  if (auto buffers = root_.find("buffers"))
    for (const JsonNode &entry : buffers->list("buffers"))
      declare(entry, read_name(entry.at("buffer")));
  if (is_list) {
    std::vector<JsonNode> launches = root_.at("launches").list("launches");
    if (launches.empty())
      root_.at("launches").refuse("a list of at least one launch");
    for (const JsonNode &launch : launches) {
      launch.checkKeys(
          {"kernel", "grid", "block", "cluster", "dynamic_smem", "args"});
      declare_all(launch);
    }
    for (const JsonNode &launch : launches)
      result_.launches.push_back(read_launch(launch));
  } else {
    declare_all(root_);
    result_.launches.push_back(read_launch(root_));
  }
  for (const auto &[list, index] : fields_)
    read_fields(list, index);
  if (auto printed = root_.find("printf")) {
    result_.printed.emplace();
    for (const JsonNode &line : printed->list("lines"))
      result_.printed->push_back(line.text("a line of text"));
    std::sort(result_.printed->begin(), result_.printed->end());
  }
  if (auto registers = root_.find("registers"))
    result_.registers_at_entry = static_cast<int>(registers->whole(1, 256));
  if (auto flag = root_.find("deterministic"))
    result_.is_deterministic = flag->boolean();
  if (auto flag = root_.find("co_resident"))
    result_.is_co_resident = flag->boolean();
  if (auto shared = root_.find("shared"))
    read_shared(*shared);
  return std::move(result_);
}

LaunchFile LaunchFile::load(const std::string &path) {
  json value = readJson(path);
  return LaunchReader(JsonNode(value, path),
                      std::filesystem::path(path).parent_path())
      .read();
}

} // namespace kiln::cli
