// launch_save: a contract with its arguments, as JSON.
#include "launch_save.h"

#include <kiln/error.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln::cli {

using Json = nlohmann::ordered_json;

namespace {

class LaunchWriter {
public:
  LaunchWriter(const Kernel &kernel, std::span<const LaunchArgument> arguments)
      : contract_(kernel.contract), arguments_(arguments) {}

  Json arg(const ParameterSpec &spec, const LaunchParameter &parameter) {
    const ArgumentSpec &argument = contract_.arguments[spec.argument];
    if (const auto *scalar = std::get_if<Scalar>(&parameter.value))
      return {{"scalar", name(scalar->type)}, {"value", number(*scalar)}};
    if (const auto *map = std::get_if<TensorMap>(&parameter.value)) {
      declare(spec.argument);
      return {{"tensor_map", tensor_map(argument.name, *map)}};
    }
    declare(spec.argument);
    return {{"buffer", argument.name}};
  }

  Json buffers() { return std::move(buffers_); }

private:
  static Json number(const Scalar &scalar) {
    if (is_float(scalar.type))
      return scalar.value();
    if (is_unsigned_integer(scalar.type))
      return scalar.bits;
    return static_cast<std::int64_t>(scalar.value());
  }

  static Json tensor_map(const std::string &of, const TensorMap &map) {
    Json json = {{"of", of},
                 {"type", name(map.type)},
                 {"dims", map.dims},
                 {"strides_bytes", map.strides_bytes},
                 {"box", map.box}};
    if (!map.element_strides.empty())
      json["element_strides"] = map.element_strides;
    json["swizzle"] = static_cast<int>(map.swizzle);
    json["interleave"] = static_cast<int>(map.interleave);
    json["l2"] = static_cast<int>(map.l2);
    json["oob"] = map.oob == OobFill::nan ? "nan" : "zeros";
    return json;
  }

  /// The value of a dimension that is an argument.
  std::int64_t value_of(const std::string &dim) const {
    for (std::size_t i = 0; i < contract_.arguments.size(); ++i)
      if (contract_.arguments[i].name == dim)
        if (const auto *scalar = std::get_if<Scalar>(&arguments_[i]))
          return static_cast<std::int64_t>(scalar->value());
    throw InternalError(fmt::format("no argument gives {}", dim));
  }

  /// The buffer of an argument, the first time it is used.
  void declare(int index) {
    const ArgumentSpec &argument = contract_.arguments[index];
    if (!declared_.insert(index).second)
      return;
    Json shape = Json::array();
    for (const Dim &dim : argument.shape)
      shape.push_back(dim.evaluate(
          [&](const std::string &name) { return value_of(name); }));
    Json buffer = {{"buffer", argument.name},
                   {"type", name(argument.type)},
                   {"shape", std::move(shape)}};
    if (argument.is_output)
      buffer["output"] = true;
    else
      buffer["init"] = fmt::format("random:{}", index + 1);
    buffers_.push_back(std::move(buffer));
  }

  const LaunchContract &contract_;
  std::span<const LaunchArgument> arguments_;
  std::set<int> declared_;
  Json buffers_ = Json::array();
};

} // namespace

/// What the simulator says of shared memory.
static Json shared_of(const std::vector<SharedObject> &objects) {
  Json shared = Json::array();
  for (const SharedObject &object : objects)
    shared.push_back({{"name", object.name},
                      {"offset", object.offset},
                      {"element_bytes", object.element_bytes},
                      {"count", object.count},
                      {"file", object.file},
                      {"line", object.line}});
  return shared;
}

std::string launch_file_text(const Kernel &kernel,
                             std::span<const LaunchArgument> arguments,
                             const DeviceDescription &device) {
  LaunchDescription launch = resolve(kernel, arguments, device);
  LaunchWriter writer(kernel, arguments);
  Json args = Json::array();
  for (std::size_t i = 0; i < launch.parameters.size(); ++i)
    args.push_back(
        writer.arg(kernel.contract.parameters[i], launch.parameters[i]));
  Json file = {{"kernel", kernel.name},
               {"grid", launch.grid},
               {"block", launch.block},
               {"cluster", launch.cluster},
               {"dynamic_smem", launch.dynamic_smem_bytes},
               {"buffers", writer.buffers()},
               {"args", std::move(args)},
               {"shared", shared_of(kernel.contract.shared_objects)}};
  if (kernel.contract.registers_at_entry)
    file["registers"] = kernel.contract.registers_at_entry;
  return file.dump(2) + "\n";
}

} // namespace kiln::cli
