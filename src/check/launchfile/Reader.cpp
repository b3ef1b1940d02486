// Reader: what holds between the keys of a launch file.
#include "check/launchfile/Reader.h"
#include "kiln/base/file.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <utility>

namespace kiln::launchfile {

static constexpr std::size_t kAddressBytes = 8, kTensorMapBytes = 128;

std::vector<LaunchFileNote> notesOf(const JsonNode &node) {
  std::vector<LaunchFileNote> notes;
  for (const auto &[key, value] : node.value().items())
    if (key.starts_with("x-"))
      notes.push_back({key, value.dump()});
  return notes;
}

std::string Reader::arrayOf(const JsonNode &node) const {
  constexpr std::string_view kFront = "file:", kForm = "file:NAME.npy";
  std::string text = node.text(std::string(kForm));
  if (!text.starts_with(kFront) || !text.ends_with(".npy"))
    node.refuse(std::string(kForm));
  return pathOf(text.substr(kFront.size()));
}

/// An entry with nothing but a name refers to a buffer declared elsewhere.
static bool isReference(const JsonNode &argument) {
  std::vector<std::string_view> names = namesOf(pointerKeys());
  for (const auto &[key, value] : argument.value().items())
    if (!key.starts_with("x-") &&
        std::find(names.begin(), names.end(), key) == names.end())
      return false;
  return true;
}

void Reader::declare(const JsonNode &entry) {
  BufferSpec spec;
  spec.where = entry.place();
  readObject(*this, entry, bufferKeys(), spec);
  spec.notes = notesOf(entry);
  bool hasBounds = entry.has("rtol") || entry.has("atol");
  if (spec.tolerance.is_exact && hasBounds)
    userError("{} has 'exact' and 'rtol' or 'atol'; it takes the one or the "
              "others",
              entry.place());
  spec.tolerance.is_given = spec.tolerance.is_exact || hasBounds;
  if (!index_.emplace(spec.name, file_.buffers.size()).second)
    userError("{} declares the buffer '{}' again; {{\"buffer\": \"{}\"}} alone "
              "refers to it",
              entry.place(), spec.name, spec.name);
  file_.buffers.push_back(std::move(spec));
}

void Reader::declareBuffers(const JsonNode &list) {
  for (const JsonNode &entry : list.list("buffers"))
    declare(entry);
}

void Reader::declareIn(const JsonNode &argument) {
  if (!argument.value().is_object())
    return;
  if (argument.has("buffer") && !isReference(argument))
    declare(argument);
  if (!argument.has("struct"))
    return;
  JsonNode record = argument.at("struct");
  if (!record.value().is_object() || !record.has("fields"))
    return;
  for (const JsonNode &field : record.at("fields").list("fields"))
    if (field.value().is_object() && field.has("arg"))
      declareIn(field.at("arg"));
}

void Reader::declareAll(const JsonNode &launch) {
  if (launch.value().is_object() && launch.has("args"))
    for (const JsonNode &argument : launch.at("args").list("arguments"))
      declareIn(argument);
}

std::size_t Reader::findBuffer(const JsonNode &name) const {
  std::string text = name.text("the name of a buffer");
  auto found = index_.find(text);
  if (found != index_.end())
    return found->second;
  std::vector<std::string> known;
  for (const BufferSpec &buffer : file_.buffers)
    known.push_back(buffer.name);
  name.refuse(known.empty() ? "the name of a buffer, and the file declares none"
                            : fmt::format("the name of a buffer: {}",
                                          fmt::join(known, ", ")));
}

PointerArgument Reader::pointer(const JsonNode &node) {
  PointerArgument pointer;
  pointer.is_declaration = mayDeclare_ && !isReference(node);
  if (pointer.is_declaration)
    readKeys(*this, node, pointerKeys(), pointer); // the others are known
  else
    readObject(*this, node, pointerKeys(), pointer);
  return pointer;
}

LaunchFileArgument Reader::argument(const JsonNode &node) {
  LaunchFileArgument argument;
  auto readInside = [&](const char *key, const auto &keys, auto value) {
    node.checkKeys(std::vector<std::string_view>{key});
    JsonNode inside = node.at(key);
    readObject(*this, inside, keys, value);
    if constexpr (requires { value.map; })
      check(value.map, inside.place());
    argument.value = std::move(value);
  };
  if (!node.value().is_object())
    node.refuse("an object");
  if (node.has("buffer")) {
    PointerArgument read = pointer(node);
    argument.value = read;
    if (read.is_declaration)
      return argument; // its notes are those of the buffer
  } else if (node.has("scalar")) {
    Scalar scalar;
    readObject(*this, node, scalarKeys(), scalar);
    argument.value = scalar;
  } else if (node.has("tensor_map")) {
    readInside("tensor_map", tensorMapKeys(), TensorMapArgument());
  } else if (node.has("struct")) {
    readInside("struct", structKeys(), StructArgument());
  } else {
    node.refuse("an object with one of buffer, scalar, tensor_map, struct");
  }
  argument.notes = notesOf(node);
  return argument;
}

void Reader::readLater(const JsonNode &fields) {
  fields_.emplace_back(fields, file_.buffers.size());
}

LaunchFileField Reader::readField(const JsonNode &node, std::uint64_t most) {
  std::uint64_t outside = std::exchange(mostOffset_, most);
  LaunchFileField field;
  readObject(*this, node, fieldKeys(), field);
  mostOffset_ = outside;
  return field;
}

void Reader::readFields(const JsonNode &list, std::size_t index) {
  std::uint64_t size = file_.buffers[index].bytes();
  for (const JsonNode &node : list.list("fields")) {
    LaunchFileField field = readField(node, size);
    std::uint64_t bytes = field.argument.bytes();
    if (bytes > size - field.offset)
      node.at("offset").refuse(fmt::format(
          "an offset with room for {} bytes in a buffer of {}", bytes, size));
    file_.buffers[index].fields.push_back(std::move(field));
  }
}

LaunchSpec Reader::launch(const JsonNode &node) {
  LaunchSpec launch;
  launch.where = node.place();
  readKeys(*this, node, launchKeys(), launch);
  launch.notes = notesOf(node);
  return launch;
}

void Reader::readLaunches(const JsonNode &list, LaunchFile &file) {
  std::vector<JsonNode> launches = list.list("launches");
  if (launches.empty())
    list.refuse("a list of at least one launch");
  for (const JsonNode &node : launches) {
    node.checkKeys(namesOf(launchKeys()));
    declareAll(node);
  }
  for (const JsonNode &node : launches)
    file.launches.push_back(launch(node));
}

LaunchFile Reader::read(const JsonNode &root) {
  bool isList = root.value().is_object() && root.has("launches");
  std::vector<std::string_view> names = namesOf(fileKeys());
  std::vector<std::string_view> ofLaunch = namesOf(launchKeys());
  if (!isList)
    names.insert(names.begin() + 1, ofLaunch.begin(), ofLaunch.end());
  root.checkKeys(names);
  readKeys(*this, root, fileKeys(), file_);
  if (isList) {
    file_.notes = notesOf(root);
  } else {
    declareAll(root);
    file_.launches.push_back(launch(root));
  }
  mayDeclare_ = false;
  for (const auto &[list, index] : fields_)
    readFields(list, index);
  return std::move(file_);
}

} // namespace kiln::launchfile

namespace kiln {

std::size_t LaunchFileArgument::bytes() const {
  using namespace launchfile;
  if (auto *scalar = std::get_if<Scalar>(&value))
    return static_cast<std::size_t>(size_bytes(scalar->type));
  if (auto *record = std::get_if<StructArgument>(&value))
    return record->bytes;
  return std::holds_alternative<PointerArgument>(value) ? kAddressBytes
                                                        : kTensorMapBytes;
}

LaunchFile LaunchFile::parse(std::string_view text, const std::string &origin,
                             const std::string &folder) {
  nlohmann::json value = parseJson(text, origin);
  return launchfile::Reader(folder).read(JsonNode(value, origin));
}

LaunchFile LaunchFile::load(const std::string &path) {
  return parse(read_file(path), path,
               std::filesystem::path(path).parent_path().string());
}

} // namespace kiln
