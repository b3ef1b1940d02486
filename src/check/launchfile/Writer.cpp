// Writer: a file for people, a key on each line, and lists of objects or
// sentences an item on each.
#include "check/launchfile/Writer.h"
#include "kiln/base/file.h"

#include <fmt/ranges.h>

namespace kiln::launchfile {

void writeNotes(Json &object, const std::vector<LaunchFileNote> &notes) {
  for (const LaunchFileNote &note : notes)
    object[note.key] = Json::parse(note.json);
}

/// Names are what somebody's program says, in whatever encoding.
static std::string textOf(const Json &value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// JSON on one line, with room to read it.
static std::string onOneLine(const Json &value) {
  std::vector<std::string> parts;
  if (value.is_object())
    for (const auto &[key, item] : value.items())
      parts.push_back(
          fmt::format("{}: {}", textOf(Json(key)), onOneLine(item)));
  else if (value.is_array())
    for (const Json &item : value)
      parts.push_back(onOneLine(item));
  else
    return textOf(value);
  const char *braces = value.is_object() ? "{}" : "[]";
  return fmt::format("{}{}{}", braces[0], fmt::join(parts, ", "), braces[1]);
}

static std::string layout(const Json &object, std::size_t indent) {
  std::string blank(indent + 2, ' ');
  std::vector<std::string> lines;
  for (const auto &[key, value] : object.items()) {
    bool isList = value.is_array() && !value.empty() && !value[0].is_number();
    std::string text = onOneLine(value);
    if (isList) {
      std::vector<std::string> items;
      for (const Json &item : value)
        items.push_back(
            blank + "  " +
            (key == "launches" ? layout(item, indent + 4) : onOneLine(item)));
      text = fmt::format("[\n{}\n{}]", fmt::join(items, ",\n"), blank);
    }
    lines.push_back(fmt::format("{}{}: {}", blank, textOf(Json(key)), text));
  }
  return fmt::format("{{\n{}\n{}}}", fmt::join(lines, ",\n"),
                     std::string(indent, ' '));
}

std::string Writer::nameOf(const std::string &path) const {
  if (folder_.empty())
    return path;
  std::filesystem::path whole = path;
  std::filesystem::path name = whole.lexically_relative(folder_);
  return (name.empty() ? std::filesystem::absolute(whole) : name).string();
}

Json Writer::arrayOf(const std::string &path) const {
  return path.empty() ? Json() : Json("file:" + nameOf(path));
}

Json Writer::buffer(const BufferSpec &buffer) const {
  Json object = writeObject(*this, bufferKeys(), buffer);
  writeNotes(object, buffer.notes);
  return object;
}

Json Writer::argument(const LaunchFileArgument &argument) const {
  Json object = Json::object();
  if (auto *pointer = std::get_if<PointerArgument>(&argument.value)) {
    if (pointer->is_declaration)
      object = buffer(buffer(pointer->index));
    object.update(writeObject(*this, pointerKeys(), *pointer));
  } else if (auto *scalar = std::get_if<Scalar>(&argument.value)) {
    object = writeObject(*this, scalarKeys(), *scalar);
  } else if (auto *map = std::get_if<TensorMapArgument>(&argument.value)) {
    object["tensor_map"] = writeObject(*this, tensorMapKeys(), *map);
  } else {
    object["struct"] = writeObject(*this, structKeys(),
                                   std::get<StructArgument>(argument.value));
  }
  writeNotes(object, argument.notes);
  return object;
}

Json Writer::fields(const std::vector<LaunchFileField> &fields) const {
  Json list = Json::array();
  for (const LaunchFileField &field : fields)
    list.push_back(writeObject(*this, fieldKeys(), field));
  return list;
}

/// Mark the buffers that an argument declares.
static void findDeclared(const LaunchFileArgument &argument,
                         std::vector<bool> &isDeclared) {
  if (auto *pointer = std::get_if<PointerArgument>(&argument.value))
    if (pointer->is_declaration)
      isDeclared.at(pointer->index) = true;
  if (auto *record = std::get_if<StructArgument>(&argument.value))
    for (const LaunchFileField &field : record->fields)
      findDeclared(field.argument, isDeclared);
}

Json Writer::buffersApart() const {
  std::vector<bool> isDeclared(file_.buffers.size());
  for (const LaunchSpec &launch : file_.launches)
    for (const LaunchFileArgument &argument : launch.arguments)
      findDeclared(argument, isDeclared);
  Json list = Json::array();
  for (std::size_t i = 0; i < file_.buffers.size(); ++i)
    if (!isDeclared[i])
      list.push_back(buffer(file_.buffers[i]));
  return list.empty() ? Json() : list;
}

Json Writer::launch(const LaunchSpec &launch) const {
  Json object = Json::object();
  writeNotes(object, launch.notes);
  object.update(writeObject(*this, launchKeys(), launch));
  return object;
}

std::string Writer::write() const {
  Json object = Json::object();
  writeNotes(object, file_.notes);
  bool isList = file_.launches.size() != 1;
  if (!isList)
    writeNotes(object, file_.launches[0].notes);
  // The keys of the only launch stand behind `ptx`.
  for (const Key<LaunchFile> &key : fileKeys()) {
    writeKey(object, *this, key, file_);
    if (!isList && &key == &fileKeys().front())
      object.update(writeObject(*this, launchKeys(), file_.launches[0]));
  }
  return layout(object, 0) + "\n";
}

} // namespace kiln::launchfile

namespace kiln {

LaunchFileNote LaunchFileNote::of(std::string key,
                                  const std::string &sentence) {
  return {std::move(key), launchfile::textOf(sentence)};
}

LaunchFileNote LaunchFileNote::of(std::string key,
                                  const std::vector<std::string> &sentences) {
  return {std::move(key), launchfile::textOf(sentences)};
}

std::string LaunchFile::to_json(const std::string &folder) const {
  return launchfile::Writer(*this, folder).write();
}

void LaunchFile::save(const std::string &path) const {
  write_file(path,
             {to_json(std::filesystem::path(path).parent_path().string())});
}

} // namespace kiln
