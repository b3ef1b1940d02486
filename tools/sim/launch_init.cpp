// launch_init: arguments by what the kernel does with its parameters
// (kiln/check/outline.h), and a sentence for each thing that had to be guessed.
#include "launch_init.h"

#include <kiln/run/device_description.h>
#include <kiln/check/outline.h>

#include <algorithm>
#include <cctype>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::cli {

using nlohmann::ordered_json;

namespace {

/// Elements of a buffer whose shape is to be filled in.
constexpr int kElements = 1024;

class Writer {
public:
  std::string write(const std::vector<PtxEntry> &entries);

private:
  ordered_json launch_of(const PtxEntry &entry);
  ordered_json argument_of(const PtxParameter &parameter, std::size_t number);
  ordered_json field_of(const PtxField &field, const std::string &name);
  ordered_json pointer_of(const PtxField &field, const std::string &name);
  ordered_json tensor_map_of(const PtxField &field, const std::string &name);
  std::string unique(const std::string &name);

  ordered_json buffers_ = ordered_json::array(); ///< of tensor maps
  std::set<std::string> names_;
};

} // namespace

/// JSON on one line, with room to read it.
static std::string on_one_line(const ordered_json &value) {
  std::vector<std::string> parts;
  if (value.is_object())
    for (const auto &[key, item] : value.items())
      parts.push_back(
          fmt::format("{}: {}", ordered_json(key).dump(), on_one_line(item)));
  else if (value.is_array())
    for (const ordered_json &item : value)
      parts.push_back(on_one_line(item));
  else
    return value.dump();
  const char *braces = value.is_object() ? "{}" : "[]";
  return fmt::format("{}{}{}", braces[0], fmt::join(parts, ", "), braces[1]);
}

/// A file for people: a key on each line, and lists of objects or sentences an
/// item on each.
static std::string layout(const ordered_json &file, std::size_t indent) {
  std::string blank(indent + 2, ' ');
  std::vector<std::string> lines;
  for (const auto &[key, value] : file.items()) {
    bool is_list = value.is_array() && !value.empty() && !value[0].is_number();
    std::string text = on_one_line(value);
    if (is_list) {
      std::vector<std::string> items;
      for (const ordered_json &item : value)
        items.push_back(
            blank + "  " +
            (key == "launches" ? layout(item, indent + 4) : on_one_line(item)));
      text = fmt::format("[\n{}\n{}]", fmt::join(items, ",\n"), blank);
    }
    lines.push_back(
        fmt::format("{}{}: {}", blank, ordered_json(key).dump(), text));
  }
  return fmt::format("{{\n{}\n{}}}", fmt::join(lines, ",\n"),
                     std::string(indent, ' '));
}

/// A name for a buffer, which is a file's name too; "_Z3addPf_param_0" tells
/// nothing.
static std::string name_of(const PtxParameter &parameter, std::size_t number) {
  std::string name;
  for (unsigned char c : parameter.name)
    if (std::isalnum(c) || c == '_')
      name += static_cast<char>(c);
  if (name.empty() || name.find("_param_") != std::string::npos)
    return fmt::format("arg{}", number);
  return name;
}

std::string Writer::unique(const std::string &name) {
  std::string result = name;
  for (int i = 2; !names_.insert(result).second; ++i)
    result = fmt::format("{}_{}", name, i);
  return result;
}

ordered_json Writer::pointer_of(const PtxField &field,
                                const std::string &name) {
  ordered_json result = {{"buffer", unique(name)},
                         {"type", kiln::name(field.type)},
                         {"shape", ordered_json::array({kElements})}};
  // Integers are counters and indices: random ones lead anywhere.
  if (field.is_read || !field.is_written)
    result["init"] = is_float(field.type)
                         ? fmt::format("random:{}", names_.size())
                         : "zeros";
  if (field.is_written)
    result["output"] = true;
  if (!field.is_read && !field.is_written)
    result["x-note"] = "no access by this pointer was found: guessed";
  else if (field.is_type_guessed)
    result["x-note"] = fmt::format(
        "the type is a guess, of {} bytes{}", size_bytes(field.type),
        field.type == Type::u64 ? "; pointers inside the buffer are `fields`"
                                : "");
  return result;
}

/// A map of 64 by 64 halves, and the buffer that it maps.
ordered_json Writer::tensor_map_of(const PtxField &field,
                                   const std::string &name) {
  constexpr int kSize = 64, kRowBytes = 128;
  int rank = field.rank ? field.rank : 2;
  ordered_json dims = ordered_json::array(), strides = dims, shape = dims;
  for (int i = 0; i < rank; ++i) {
    dims.push_back(i < 2 ? kSize : 1);
    if (i)
      strides.push_back(i == 1 ? kRowBytes : kRowBytes * kSize);
  }
  for (int i = rank; i-- > 0;)
    shape.push_back(dims[static_cast<std::size_t>(i)]);
  std::string buffer = unique(name + "_data");
  ordered_json data = {{"buffer", buffer}, {"type", "f16"}, {"shape", shape}};
  if (field.is_written)
    data["output"] = true;
  else
    data["init"] = fmt::format("random:{}", names_.size());
  buffers_.push_back(data);
  return {{"tensor_map", ordered_json::object({{"of", buffer},
                                               {"dims", dims},
                                               {"strides_bytes", strides},
                                               {"box", dims},
                                               {"swizzle", 0}})},
          {"x-note", field.rank ? "all but the rank is a guess"
                                : "guessed by its 128 bytes"}};
}

ordered_json Writer::field_of(const PtxField &field, const std::string &name) {
  if (field.kind == PtxField::Kind::pointer)
    return pointer_of(field, name);
  if (field.kind == PtxField::Kind::tensor_map)
    return tensor_map_of(field, name);
  return {{"scalar", kiln::name(field.type)}, {"value", 0}};
}

ordered_json Writer::argument_of(const PtxParameter &parameter,
                                 std::size_t number) {
  std::string name = name_of(parameter, number);
  if (!parameter.is_struct) {
    ordered_json result = field_of(parameter.fields[0], name);
    if (result.contains("scalar") && name != fmt::format("arg{}", number))
      result["x-name"] = name;
    return result;
  }
  ordered_json fields = ordered_json::array();
  for (const PtxField &field : parameter.fields)
    fields.push_back(
        {{"offset", field.offset},
         {"arg", field_of(field, fmt::format("{}_{}", name, field.offset))}});
  ordered_json result = {
      {"struct",
       ordered_json::object({{"size", parameter.bytes}, {"fields", fields}})}};
  if (parameter.is_indexed)
    result["x-note"] = "it is also read at places that are computed, which are "
                       "not among its fields";
  return result;
}

ordered_json Writer::launch_of(const PtxEntry &entry) {
  std::vector<std::string> unknown = {"grid: CTAs, not threads"};
  std::array<std::uint32_t, 3> block = entry.block;
  if (!block[0]) {
    block = {128, 1, 1};
    unknown.push_back("block: the PTX says nothing of it");
  } else if (!entry.is_block_required) {
    unknown.push_back("block: at most this, by .maxntid");
  }
  if (!entry.dynamic_smem.empty())
    unknown.push_back(
        fmt::format("dynamic_smem: the bytes of {}, which {} no "
                    "size in the PTX",
                    fmt::join(entry.dynamic_smem, " and "),
                    entry.dynamic_smem.size() > 1 ? "have" : "has"));
  ordered_json arguments = ordered_json::array();
  std::size_t buffers = names_.size();
  for (std::size_t i = 0; i < entry.parameters.size(); ++i)
    arguments.push_back(argument_of(entry.parameters[i], i));
  if (names_.size() != buffers)
    unknown.push_back("args: shapes, what buffers begin with (init), and what "
                      "should come out (expected)");
  if (on_one_line(arguments).find("\"scalar\"") != std::string::npos)
    unknown.push_back("args: the values of numbers, which are 0 here");
  ordered_json result = {{"x-fill-in", unknown},
                         {"kernel", entry.name},
                         {"grid", entry.cluster},
                         {"block", block}};
  if (entry.cluster != std::array<std::uint32_t, 3>{1, 1, 1})
    result["cluster"] = entry.cluster;
  if (!entry.dynamic_smem.empty())
    result["dynamic_smem"] = 0;
  result["args"] = arguments;
  return result;
}

std::string Writer::write(const std::vector<PtxEntry> &entries) {
  ordered_json launches = ordered_json::array();
  for (const PtxEntry &entry : entries)
    launches.push_back(launch_of(entry));
  ordered_json file = ordered_json::object();
  if (launches.size() == 1)
    file = launches[0];
  else
    file["launches"] = launches;
  if (!buffers_.empty())
    file["buffers"] = buffers_;
  return layout(file, 0) + "\n";
}

namespace {

/// A contract with values for its numbers.
class ContractWriter {
public:
  ContractWriter(const Kernel &kernel,
                 const std::map<std::string, double> &values)
      : kernel_(kernel), contract_(kernel.contract), values_(values) {
    const DeviceDescription &device =
        DeviceDescription::for_target(kernel.target);
    values_.try_emplace("sms", device.sms);
  }

  std::string write() const;

private:
  double number(const std::string &name) const {
    auto found = values_.find(name);
    return found == values_.end() ? kNumber : found->second;
  }
  std::int64_t value_of(const Dim &dim) const {
    return dim.evaluate([&](const std::string &name) {
      return static_cast<std::int64_t>(number(name));
    });
  }
  ordered_json values_of(const std::vector<Dim> &dims) const {
    ordered_json values = ordered_json::array();
    for (const Dim &dim : dims)
      values.push_back(value_of(dim));
    return values;
  }
  ordered_json map_of(const TensorMapSpec &map, const std::string &name) const;
  ordered_json parameter_of(const ParameterSpec &parameter) const;
  ordered_json buffer_of(const ArgumentSpec &argument, std::size_t seed) const;

  /// What numbers are that nobody gave.
  static constexpr int kNumber = 256;

  const Kernel &kernel_;
  const LaunchContract &contract_;
  std::map<std::string, double> values_;
};

} // namespace

/// Elements in memory: a launch file knows tf32 by its bits.
static std::string_view element_name(Type type) {
  return name(type == Type::tf32 ? Type::f32 : type);
}

ordered_json ContractWriter::map_of(const TensorMapSpec &map,
                                    const std::string &name) const {
  ordered_json result = {{"of", name},
                         {"type", kiln::name(map.type)},
                         {"dims", values_of(map.dims)},
                         {"strides_bytes", values_of(map.strides_bytes)},
                         {"box", map.box},
                         {"swizzle", static_cast<int>(map.swizzle)},
                         {"interleave", static_cast<int>(map.interleave)},
                         {"l2", static_cast<int>(map.l2)},
                         {"oob", map.oob == OobFill::nan ? "nan" : "zeros"}};
  if (!map.element_strides.empty())
    result["element_strides"] = map.element_strides;
  return {{"tensor_map", result}};
}

ordered_json
ContractWriter::parameter_of(const ParameterSpec &parameter) const {
  const ArgumentSpec &argument =
      contract_.arguments.at(static_cast<std::size_t>(parameter.argument));
  if (parameter.kind == ParameterSpec::Kind::tensor_map)
    return map_of(*parameter.tensor_map, argument.name);
  if (parameter.kind == ParameterSpec::Kind::buffer)
    return {{"buffer", argument.name}};
  ordered_json value = number(argument.name);
  if (!is_float(argument.type))
    value = static_cast<std::int64_t>(number(argument.name));
  return {{"scalar", element_name(argument.type)},
          {"value", value},
          {"x-name", argument.name}};
}

/// A buffer of the contract; where that has no shape, one is to be filled in.
ordered_json ContractWriter::buffer_of(const ArgumentSpec &argument,
                                       std::size_t seed) const {
  ordered_json shape = argument.shape.empty() ? ordered_json::array({kElements})
                                              : values_of(argument.shape);
  ordered_json result = {{"buffer", argument.name},
                         {"type", element_name(argument.type)},
                         {"shape", shape}};
  if (argument.is_workspace)
    result["init"] = "zeros";
  else if (argument.is_output)
    result["output"] = true;
  else
    result["init"] = fmt::format("random:{}", seed);
  return result;
}

std::string ContractWriter::write() const {
  ordered_json buffers = ordered_json::array(), arguments = buffers,
               grid = buffers, shared = buffers;
  std::vector<std::string> numbers,
      unknown = {"buffers: init, and what should come out (expected)"};
  for (const ArgumentSpec &argument : contract_.arguments) {
    if (argument.kind == ArgumentSpec::Kind::buffer)
      buffers.push_back(buffer_of(argument, buffers.size() + 1));
    else if (!values_.contains(argument.name))
      numbers.push_back(argument.name);
  }
  if (!numbers.empty())
    unknown.push_back(fmt::format("{} are {} here, and grid, shapes and maps "
                                  "follow from them",
                                  fmt::join(numbers, ", "), kNumber));
  for (const ParameterSpec &parameter : contract_.parameters)
    arguments.push_back(parameter_of(parameter));
  for (const Dim &dim : contract_.grid)
    grid.push_back(value_of(dim));
  for (const SharedObject &object : contract_.shared_objects)
    shared.push_back({{"name", object.name},
                      {"offset", object.offset},
                      {"element_bytes", object.element_bytes},
                      {"count", object.count},
                      {"file", object.file},
                      {"line", object.line}});
  ordered_json file = {{"x-fill-in", unknown},
                       {"kernel", kernel_.name},
                       {"grid", grid},
                       {"block", contract_.block},
                       {"cluster", contract_.cluster},
                       {"dynamic_smem", contract_.dynamic_smem_bytes}};
  if (contract_.registers_at_entry)
    file["registers"] = contract_.registers_at_entry;
  if (contract_.is_cooperative)
    file["co_resident"] = true;
  file["args"] = arguments;
  file["buffers"] = buffers;
  if (!shared.empty())
    file["shared"] = shared;
  return layout(file, 0) + "\n";
}

std::string first_launch_file(const Kernel &kernel) {
  return kernel.name.empty() ? Writer().write(outline(kernel.ptx))
                             : launch_file_of(kernel, {});
}

std::string launch_file_of(const Kernel &kernel,
                           const std::map<std::string, double> &values) {
  return ContractWriter(kernel, values).write();
}

} // namespace kiln::cli
