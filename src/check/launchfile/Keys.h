// Keys: the table of what may stand in a launch file.
//
// A row is a key: where it stands, what it takes, what it means, how it is read
// and how it is written. The reader, the writer, the message about an unknown
// key and the tables of docs/launch-file.md follow from the rows.
#pragma once

#include "kiln/check/launch_file.h"
#include "support/text/JsonNode.h"

#include <nlohmann/json.hpp>

#include <initializer_list>

namespace kiln::launchfile {

using Json = nlohmann::ordered_json;

class Reader;
class Writer;

/// A key of the objects that `To` stands for.
template <typename To> struct Key {
  LaunchFileKey words;
  void (*read)(Reader &, const JsonNode &, To &);
  /// Null is left out.
  Json (*write)(const Writer &, const To &);
};
template <typename To> using Keys = std::vector<Key<To>>;

/// A launch file; the keys of a launch stand behind `ptx` where it has one.
const Keys<LaunchFile> &fileKeys();
const Keys<LaunchSpec> &launchKeys();
const Keys<SharedObject> &sharedKeys();
const Keys<BufferSpec> &bufferKeys();
const Keys<PointerArgument> &pointerKeys();
const Keys<Scalar> &scalarKeys();
const Keys<TensorMapArgument> &tensorMapKeys();
const Keys<StructArgument> &structKeys();
const Keys<LaunchFileField> &fieldKeys();

template <typename To>
std::vector<std::string_view> namesOf(const Keys<To> &keys) {
  std::vector<std::string_view> names;
  for (const Key<To> &key : keys)
    names.push_back(key.words.name);
  return names;
}

/// What begins with x-.
std::vector<LaunchFileNote> notesOf(const JsonNode &node);
void writeNotes(Json &object, const std::vector<LaunchFileNote> &notes);

/// Read each key that is there; those without a fallback must be.
template <typename To>
void readKeys(Reader &reader, const JsonNode &node, const Keys<To> &keys,
              To &to) {
  for (const Key<To> &key : keys)
    if (key.words.fallback.empty() || node.has(key.words.name.c_str()))
      key.read(reader, node.at(key.words.name.c_str()), to);
}

/// Read an object that has these keys alone.
template <typename To>
void readObject(Reader &reader, const JsonNode &node, const Keys<To> &keys,
                To &to) {
  node.checkKeys(namesOf(keys));
  readKeys(reader, node, keys, to);
}

template <typename To>
void writeKey(Json &object, const Writer &writer, const Key<To> &key,
              const To &from) {
  if (!key.write)
    return;
  if (Json value = key.write(writer, from); !value.is_null())
    object[key.words.name] = std::move(value);
}

template <typename To>
Json writeObject(const Writer &writer, const Keys<To> &keys, const To &from) {
  Json object = Json::object();
  for (const Key<To> &key : keys)
    writeKey(object, writer, key, from);
  return object;
}

} // namespace kiln::launchfile
