// KernelFile: a Kernel as one JSON document, and back.
//
// A saved kernel outlives the Kiln that wrote it and is edited, copied and cut
// short by others, so nothing in it is believed: the format's version is looked
// at first, then each value, and last the checksum, because a complaint that
// names a key says more.
#include "kiln/kernel.h"

#include "kiln/file.h"
#include "kiln/text.h"
#include "support/AtomicFile.h"
#include "support/Error.h"
#include "support/Hash.h"

#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

namespace kiln {

using Json = nlohmann::ordered_json;

static constexpr int kFormatVersion = 1;
static constexpr const char *kVersionKey = "kiln_kernel";
static constexpr const char *kChecksumKey = "checksum";

static const char *nameOf(ArgumentSpec::Kind kind) {
  return kind == ArgumentSpec::Kind::buffer ? "buffer" : "scalar";
}

static const char *nameOf(ParameterSpec::Kind kind) {
  switch (kind) {
  case ParameterSpec::Kind::buffer:
    return "buffer";
  case ParameterSpec::Kind::scalar:
    return "scalar";
  case ParameterSpec::Kind::tensor_map:
    return "tensor_map";
  }
  internalError("there is no parameter kind {}", static_cast<int>(kind));
}

template <typename Dims> static Json dimsToJson(const Dims &dims) {
  Json list = Json::array();
  for (const Dim &dim : dims)
    list.push_back(dim.to_string());
  return list;
}

static Json toJson(const TensorMapSpec &map) {
  return {
      {"type", name(map.type)},
      {"dims", dimsToJson(map.dims)},
      {"strides_bytes", dimsToJson(map.strides_bytes)},
      {"box", map.box},
      {"element_strides", map.element_strides},
      {"swizzle", static_cast<int>(map.swizzle)},
      {"interleave", static_cast<int>(map.interleave)},
      {"l2", static_cast<int>(map.l2)},
      {"oob", map.oob == OobFill::nan ? "nan" : "zeros"},
  };
}

static Json toJson(const ArgumentSpec &argument) {
  return {
      {"name", argument.name},
      {"kind", nameOf(argument.kind)},
      {"type", name(argument.type)},
      {"shape", dimsToJson(argument.shape)},
      {"is_output", argument.is_output},
      {"alignment_bytes", argument.alignment_bytes},
  };
}

static Json toJson(const ParameterSpec &parameter) {
  Json json = {{"kind", nameOf(parameter.kind)},
               {"argument", parameter.argument}};
  if (parameter.tensor_map)
    json["tensor_map"] = toJson(*parameter.tensor_map);
  return json;
}

static Json toJson(const SharedObject &object) {
  return {{"name", object.name},
          {"offset", object.offset},
          {"element_bytes", object.element_bytes},
          {"count", object.count},
          {"file", object.file},
          {"line", object.line}};
}

static Json toJson(const LaunchContract &contract) {
  Json arguments = Json::array();
  for (const ArgumentSpec &argument : contract.arguments)
    arguments.push_back(toJson(argument));
  Json parameters = Json::array();
  for (const ParameterSpec &parameter : contract.parameters)
    parameters.push_back(toJson(parameter));
  Json objects = Json::array();
  for (const SharedObject &object : contract.shared_objects)
    objects.push_back(toJson(object));
  return {
      {"arguments", std::move(arguments)},
      {"parameters", std::move(parameters)},
      {"grid", dimsToJson(contract.grid)},
      {"block", contract.block},
      {"cluster", contract.cluster},
      {"dynamic_smem_bytes", contract.dynamic_smem_bytes},
      {"registers_at_entry", contract.registers_at_entry},
      {"ctas_per_sm", contract.ctas_per_sm},
      {"shared_objects", std::move(objects)},
  };
}

namespace {

/// A value of the document that knows the key it stands under, so that every
/// complaint names it.
class Field {
public:
  Field(const Json &json, const std::string &origin, std::string key)
      : json_(json), origin_(origin), key_(std::move(key)) {}

  bool has(const char *key) const {
    return json_.is_object() && json_.contains(key);
  }

  Field at(const char *key) const {
    std::string path = key_.empty() ? key : fmt::format("{}.{}", key_, key);
    if (!json_.is_object())
      fail("an object");
    if (!json_.contains(key))
      userError("{}: the saved kernel has no \"{}\"; save it again", origin_,
                path);
    return Field(json_.at(key), origin_, std::move(path));
  }

  std::vector<Field> elements() const {
    if (!json_.is_array())
      fail("a list");
    std::vector<Field> fields;
    for (std::size_t i = 0; i < json_.size(); ++i)
      fields.emplace_back(json_[i], origin_, fmt::format("{}[{}]", key_, i));
    return fields;
  }

  /// Three elements, for what has x, y and z.
  std::vector<Field> three() const {
    std::vector<Field> fields = elements();
    if (fields.size() != 3)
      fail("a list of 3");
    return fields;
  }

  std::string text() const {
    if (!json_.is_string())
      fail("a string");
    return json_.get<std::string>();
  }

  bool boolean() const {
    if (!json_.is_boolean())
      fail("true or false");
    return json_.get<bool>();
  }

  int integer() const {
    constexpr auto largest = std::numeric_limits<int>::max();
    if (!json_.is_number_unsigned() ||
        json_.get<std::uint64_t>() > static_cast<std::uint64_t>(largest))
      fail("a whole number from 0 to 2^31 - 1");
    return static_cast<int>(json_.get<std::uint64_t>());
  }

  std::vector<int> integers() const {
    std::vector<int> values;
    for (const Field &field : elements())
      values.push_back(field.integer());
    return values;
  }

  Type type() const {
    return parsed<Type>([](const std::string &t) { return parse_type(t); });
  }

  Dim dim() const { return parsed<Dim>(Dim::parse); }

  std::vector<Dim> dims() const {
    std::vector<Dim> values;
    for (const Field &field : elements())
      values.push_back(field.dim());
    return values;
  }

  /// One of a few named or numbered choices.
  template <typename T>
  T choice(std::initializer_list<std::pair<Json, T>> choices) const {
    std::string accepted;
    for (const auto &[json, value] : choices) {
      if (json_ == json)
        return value;
      accepted += (accepted.empty() ? "" : ", ") + json.dump();
    }
    fail("one of " + accepted);
  }

  [[noreturn]] void fail(const std::string &wanted) const {
    std::string found =
        json_.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (found.size() > 40)
      found = found.substr(0, 40) + "...";
    userError("{}: \"{}\" of the saved kernel is {}; it must be {}", origin_,
              key_, found, wanted);
  }

private:
  /// Errors of parsers that do not know where their text comes from.
  template <typename T> T parsed(T (*parse)(const std::string &)) const {
    std::string source = text();
    try {
      return parse(source);
    } catch (const UserError &error) {
      userError("{}: \"{}\" of the saved kernel: {}", origin_, key_,
                error.message());
    }
  }

  const Json &json_;
  const std::string &origin_;
  std::string key_;
};

} // namespace

static TensorMapSpec readTensorMap(const Field &field) {
  TensorMapSpec map;
  map.type = field.at("type").type();
  map.dims = field.at("dims").dims();
  map.strides_bytes = field.at("strides_bytes").dims();
  map.box = field.at("box").integers();
  map.element_strides = field.at("element_strides").integers();
  map.swizzle = field.at("swizzle").choice<Swizzle>({{0, Swizzle::none},
                                                     {32, Swizzle::b32},
                                                     {64, Swizzle::b64},
                                                     {128, Swizzle::b128}});
  map.interleave = field.at("interleave")
                       .choice<Interleave>({{0, Interleave::none},
                                            {16, Interleave::b16},
                                            {32, Interleave::b32}});
  map.l2 = field.at("l2").choice<L2Promotion>({{0, L2Promotion::none},
                                               {64, L2Promotion::b64},
                                               {128, L2Promotion::b128},
                                               {256, L2Promotion::b256}});
  map.oob = field.at("oob").choice<OobFill>(
      {{"zeros", OobFill::zeros}, {"nan", OobFill::nan}});
  return map;
}

static ArgumentSpec readArgument(const Field &field) {
  using Kind = ArgumentSpec::Kind;
  ArgumentSpec argument;
  argument.name = field.at("name").text();
  argument.kind =
      field.at("kind").choice<Kind>({{nameOf(Kind::buffer), Kind::buffer},
                                     {nameOf(Kind::scalar), Kind::scalar}});
  argument.type = field.at("type").type();
  argument.shape = field.at("shape").dims();
  argument.is_output = field.at("is_output").boolean();
  argument.alignment_bytes = field.at("alignment_bytes").integer();
  return argument;
}

static ParameterSpec readParameter(const Field &field,
                                   std::size_t argumentCount) {
  using Kind = ParameterSpec::Kind;
  ParameterSpec parameter;
  parameter.kind = field.at("kind").choice<Kind>(
      {{nameOf(Kind::buffer), Kind::buffer},
       {nameOf(Kind::scalar), Kind::scalar},
       {nameOf(Kind::tensor_map), Kind::tensor_map}});
  Field argument = field.at("argument");
  parameter.argument = argument.integer();
  if (static_cast<std::size_t>(parameter.argument) >= argumentCount)
    argument.fail(fmt::format("the number of one of its {} arguments, from 0",
                              argumentCount));
  if (parameter.kind == Kind::tensor_map || field.has("tensor_map"))
    parameter.tensor_map = readTensorMap(field.at("tensor_map"));
  return parameter;
}

static SharedObject readSharedObject(const Field &field) {
  return {.name = field.at("name").text(),
          .offset = field.at("offset").integer(),
          .element_bytes = field.at("element_bytes").integer(),
          .count = field.at("count").integer(),
          .file = field.at("file").text(),
          .line = field.at("line").integer()};
}

static LaunchContract readContract(const Field &field) {
  LaunchContract contract;
  for (const Field &argument : field.at("arguments").elements())
    contract.arguments.push_back(readArgument(argument));
  for (const Field &parameter : field.at("parameters").elements())
    contract.parameters.push_back(
        readParameter(parameter, contract.arguments.size()));
  std::vector<Field> grid = field.at("grid").three();
  std::vector<Field> block = field.at("block").three();
  std::vector<Field> cluster = field.at("cluster").three();
  for (int axis = 0; axis < 3; ++axis) {
    contract.grid[axis] = grid[axis].dim();
    contract.block[axis] = block[axis].integer();
    contract.cluster[axis] = cluster[axis].integer();
  }
  contract.dynamic_smem_bytes = field.at("dynamic_smem_bytes").integer();
  contract.registers_at_entry = field.at("registers_at_entry").integer();
  contract.ctas_per_sm = field.at("ctas_per_sm").integer();
  // Kernels that were saved before have no names.
  if (field.has("shared_objects"))
    for (const Field &object : field.at("shared_objects").elements())
      contract.shared_objects.push_back(readSharedObject(object));
  return contract;
}

/// The document as JSON, or a complaint that tells a damaged kernel from a file
/// that never was one.
static Json parseDocument(const std::string &bytes, const std::string &origin) {
  check_nesting(bytes, TextFormat::json, origin);
  Json document = Json::parse(bytes, nullptr, /*allow_exceptions=*/false);
  if (!document.is_discarded() && document.is_object() &&
      document.contains(kVersionKey))
    return document;
  std::size_t start = bytes.find_first_not_of(" \t\r\n");
  bool beganAsKernel =
      start != std::string::npos && bytes[start] == '{' &&
      bytes.substr(0, 64).find(kVersionKey) != std::string::npos;
  if (beganAsKernel)
    userError("{}: the saved kernel is damaged or cut short ({} bytes are "
              "there); save it again",
              origin, bytes.size());
  userError("{}: this is no saved kernel; Kernel::save writes one, a JSON "
            "document that begins with \"{}\"",
            origin, kVersionKey);
}

static void checkVersion(const Json &document, const std::string &origin) {
  const Json &version = document.at(kVersionKey);
  if (version == kFormatVersion)
    return;
  userError("{}: the saved kernel has format version {}, this Kiln knows "
            "version {}; load it with a newer Kiln, or save it again with this "
            "one",
            origin,
            version.dump(-1, ' ', false, Json::error_handler_t::replace),
            kFormatVersion);
}

/// What the checksum is of: the document without it. Layout does not count.
static std::string checksumOf(const Json &document) {
  return hashHex(document.dump());
}

std::string Kernel::serialize() const {
  Json document = {
      {kVersionKey, kFormatVersion},  {"name", name}, {"target", target},
      {"contract", toJson(contract)}, {"ptx", ptx},
  };
  try {
    document[kChecksumKey] = checksumOf(document);
    return document.dump(1) + "\n";
  } catch (const Json::type_error &) {
    userError("kernel \"{}\" cannot be saved: its name or its PTX has bytes "
              "that are not UTF-8; rename the source file the PTX speaks of",
              name);
  }
}

Kernel Kernel::deserialize(const std::string &bytes,
                           const std::string &origin) {
  Json document = parseDocument(bytes, origin);
  checkVersion(document, origin);
  std::string checksum = Field(document, origin, "").at(kChecksumKey).text();
  document.erase(kChecksumKey);
  Field root(document, origin, "");
  Kernel kernel;
  kernel.name = root.at("name").text();
  kernel.target = root.at("target").text();
  kernel.ptx = root.at("ptx").text();
  kernel.contract = readContract(root.at("contract"));
  std::string found = checksumOf(document);
  if (checksum != found)
    userError("{}: the saved kernel is damaged: its checksum is {} and should "
              "be {}; save it again",
              origin, found, checksum);
  return kernel;
}

void Kernel::save(const std::string &path) const {
  int failure = writeFileAtomically(path, {serialize()});
  if (failure != 0)
    userError(
        "kernel \"{}\" cannot be saved to {}: {}; give a path in a folder "
        "that exists and can be written",
        name, path, std::strerror(failure));
}

Kernel Kernel::load(const std::string &path) {
  return deserialize(read_file(path), path);
}

} // namespace kiln
