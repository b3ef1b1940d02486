// KernelFile: a Kernel as one JSON document, and back.
//
// A saved kernel outlives the Kiln that wrote it and is edited, copied and cut
// short by others, so nothing in it is believed: the format's version is looked
// at first, then each value, and last the checksum, because a complaint that
// names a key says more.
#include "kiln/run/kernel.h"

#include "kiln/base/file.h"
#include "kiln/base/text.h"
#include "support/AtomicFile.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/text/JsonNode.h"

#include <cstring>
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
  Json json = {
      {"name", argument.name},
      {"kind", nameOf(argument.kind)},
      {"type", name(argument.type)},
      {"shape", dimsToJson(argument.shape)},
      {"is_output", argument.is_output},
      {"alignment_bytes", argument.alignment_bytes},
  };
  if (argument.is_workspace)
    json["is_workspace"] = true;
  return json;
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
  Json json = {
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
  if (contract.is_cooperative)
    json["is_cooperative"] = true;
  return json;
}

static Type typeOf(const JsonNode &node) {
  return node.parsed([](const std::string &text) { return parse_type(text); });
}

static Dim dimOf(const JsonNode &node) { return node.parsed(Dim::parse); }

static std::vector<Dim> dimsOf(const JsonNode &node) {
  std::vector<Dim> dims;
  for (const JsonNode &one : node.list("dimensions"))
    dims.push_back(dimOf(one));
  return dims;
}

/// What has x, y and z.
static std::vector<JsonNode> threeOf(const JsonNode &node) {
  std::vector<JsonNode> three = node.list("3");
  if (three.size() != 3)
    node.refuse("a list of 3");
  return three;
}

static TensorMapSpec readTensorMap(const JsonNode &node) {
  TensorMapSpec map;
  map.type = typeOf(node.at("type"));
  map.dims = dimsOf(node.at("dims"));
  map.strides_bytes = dimsOf(node.at("strides_bytes"));
  map.box = node.at("box").integers();
  map.element_strides = node.at("element_strides").integers();
  map.swizzle = node.at("swizzle").choice<Swizzle>({{0, Swizzle::none},
                                                    {32, Swizzle::b32},
                                                    {64, Swizzle::b64},
                                                    {128, Swizzle::b128}});
  map.interleave = node.at("interleave")
                       .choice<Interleave>({{0, Interleave::none},
                                            {16, Interleave::b16},
                                            {32, Interleave::b32}});
  map.l2 = node.at("l2").choice<L2Promotion>({{0, L2Promotion::none},
                                              {64, L2Promotion::b64},
                                              {128, L2Promotion::b128},
                                              {256, L2Promotion::b256}});
  map.oob = node.at("oob").choice<OobFill>(
      {{"zeros", OobFill::zeros}, {"nan", OobFill::nan}});
  return map;
}

static ArgumentSpec readArgument(const JsonNode &node) {
  using Kind = ArgumentSpec::Kind;
  ArgumentSpec argument;
  argument.name = node.at("name").text("a string");
  argument.kind =
      node.at("kind").choice<Kind>({{nameOf(Kind::buffer), Kind::buffer},
                                    {nameOf(Kind::scalar), Kind::scalar}});
  argument.type = typeOf(node.at("type"));
  argument.shape = dimsOf(node.at("shape"));
  argument.is_output = node.at("is_output").boolean();
  argument.alignment_bytes = node.at("alignment_bytes").integer();
  if (auto workspace = node.find("is_workspace"))
    argument.is_workspace = workspace->boolean();
  return argument;
}

static ParameterSpec readParameter(const JsonNode &node,
                                   const std::vector<ArgumentSpec> &arguments) {
  using Kind = ParameterSpec::Kind;
  ParameterSpec parameter;
  parameter.kind = node.at("kind").choice<Kind>(
      {{nameOf(Kind::buffer), Kind::buffer},
       {nameOf(Kind::scalar), Kind::scalar},
       {nameOf(Kind::tensor_map), Kind::tensor_map}});
  JsonNode argument = node.at("argument");
  parameter.argument = argument.integer();
  auto index = static_cast<std::size_t>(parameter.argument);
  if (index >= arguments.size())
    argument.refuse(fmt::format("the number of one of its {} arguments, from 0",
                                arguments.size()));
  bool isScalar = parameter.kind == Kind::scalar;
  if (isScalar != (arguments[index].kind == ArgumentSpec::Kind::scalar))
    argument.refuse(fmt::format("the number of a {}, as its kind is '{}'",
                                isScalar ? "scalar" : "buffer",
                                nameOf(parameter.kind)));
  if (parameter.kind == Kind::tensor_map || node.has("tensor_map"))
    parameter.tensor_map = readTensorMap(node.at("tensor_map"));
  return parameter;
}

static SharedObject readSharedObject(const JsonNode &node) {
  return {.name = node.at("name").text("a string"),
          .offset = node.at("offset").integer(),
          .element_bytes = node.at("element_bytes").integer(),
          .count = node.at("count").integer(),
          .file = node.at("file").text("a string"),
          .line = node.at("line").integer()};
}

static LaunchContract readContract(const JsonNode &node) {
  LaunchContract contract;
  for (const JsonNode &argument : node.at("arguments").list("arguments"))
    contract.arguments.push_back(readArgument(argument));
  for (const JsonNode &parameter : node.at("parameters").list("parameters"))
    contract.parameters.push_back(readParameter(parameter, contract.arguments));
  std::vector<JsonNode> grid = threeOf(node.at("grid"));
  std::vector<JsonNode> block = threeOf(node.at("block"));
  std::vector<JsonNode> cluster = threeOf(node.at("cluster"));
  for (int axis = 0; axis < 3; ++axis) {
    contract.grid[axis] = dimOf(grid[axis]);
    contract.block[axis] = block[axis].integer();
    contract.cluster[axis] = cluster[axis].integer();
  }
  contract.dynamic_smem_bytes = node.at("dynamic_smem_bytes").integer();
  contract.registers_at_entry = node.at("registers_at_entry").integer();
  contract.ctas_per_sm = node.at("ctas_per_sm").integer();
  if (auto cooperative = node.find("is_cooperative"))
    contract.is_cooperative = cooperative->boolean();
  // Kernels that were saved before have no names.
  if (node.has("shared_objects"))
    for (const JsonNode &object :
         node.at("shared_objects").list("shared_objects"))
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
  nlohmann::json values = document;
  JsonNode root(values, origin);
  std::string checksum = root.at(kChecksumKey).text("a string");
  document.erase(kChecksumKey);
  Kernel kernel;
  kernel.name = root.at("name").text("a string");
  kernel.target = root.at("target").text("a string");
  kernel.ptx = root.at("ptx").text("a string");
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
