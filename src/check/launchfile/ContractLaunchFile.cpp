// ContractLaunchFile: a launch file from a launch contract, with values for its
// numbers.
#include "kiln/check/launch_file.h"
#include "kiln/run/device_description.h"
#include "support/Error.h"

#include <fmt/ranges.h>

namespace kiln::launchfile {

namespace {

class Contract {
public:
  Contract(const Kernel &kernel, const std::map<std::string, double> &values)
      : kernel_(kernel), contract_(kernel.contract), values_(values) {
    values_.try_emplace("sms",
                        DeviceDescription::for_target(kernel.target).sms);
  }

  LaunchFile write();

private:
  double number(const std::string &name) const {
    auto found = values_.find(name);
    return found == values_.end() ? kNumber : found->second;
  }
  std::int64_t valueOf(const Dim &dim) const {
    return dim.evaluate([&](const std::string &name) {
      return static_cast<std::int64_t>(number(name));
    });
  }
  std::vector<std::uint64_t> valuesOf(const std::vector<Dim> &dims) const {
    std::vector<std::uint64_t> values;
    for (const Dim &dim : dims)
      values.push_back(static_cast<std::uint64_t>(valueOf(dim)));
    return values;
  }
  void addBuffers();
  LaunchFileArgument parameterOf(const ParameterSpec &parameter) const;
  TensorMap mapOf(const TensorMapSpec &map) const;
  std::vector<std::string> unknown() const;
  LaunchSpec launch() const;

  /// What numbers are that nobody gave, and elements of buffers.
  static constexpr int kNumber = 256;
  static constexpr std::uint64_t kElements = 1024;

  const Kernel &kernel_;
  const LaunchContract &contract_;
  std::map<std::string, double> values_;
  LaunchFile file_;
  std::map<std::string, std::size_t> index_; ///< of buffers
};

} // namespace

/// Elements in memory: a launch file knows tf32 by its bits.
static Type storedType(Type type) {
  return type == Type::tf32 ? Type::f32 : type;
}

/// A buffer of the contract; where that has no shape, one is to be filled in.
void Contract::addBuffers() {
  for (const ArgumentSpec &argument : contract_.arguments) {
    if (argument.kind != ArgumentSpec::Kind::buffer)
      continue;
    BufferSpec buffer{.name = argument.name,
                      .type = storedType(argument.type),
                      .shape = {kElements}};
    if (!argument.shape.empty())
      buffer.shape = valuesOf(argument.shape);
    if (argument.is_workspace)
      buffer.init = {.kind = BufferInit::Kind::zeros};
    else if (argument.is_output)
      buffer.is_output = true;
    else
      buffer.init = {.kind = BufferInit::Kind::random,
                     .seed = file_.buffers.size() + 1};
    index_[argument.name] = file_.buffers.size();
    file_.buffers.push_back(std::move(buffer));
  }
}

TensorMap Contract::mapOf(const TensorMapSpec &map) const {
  TensorMap result{.type = map.type,
                   .dims = valuesOf(map.dims),
                   .strides_bytes = valuesOf(map.strides_bytes),
                   .box = {map.box.begin(), map.box.end()},
                   .element_strides = {map.element_strides.begin(),
                                       map.element_strides.end()},
                   .swizzle = map.swizzle,
                   .interleave = map.interleave,
                   .l2 = map.l2,
                   .oob = map.oob};
  return result;
}

LaunchFileArgument Contract::parameterOf(const ParameterSpec &parameter) const {
  const ArgumentSpec &argument =
      contract_.arguments.at(static_cast<std::size_t>(parameter.argument));
  if (parameter.kind == ParameterSpec::Kind::tensor_map)
    return {TensorMapArgument{index_.at(argument.name),
                              mapOf(*parameter.tensor_map)}};
  if (parameter.kind == ParameterSpec::Kind::buffer)
    return {PointerArgument{.index = index_.at(argument.name)}};
  Type type = storedType(argument.type);
  double value = number(argument.name);
  return {Scalar(type, is_float(type) ? to_bits(type, value)
                                      : static_cast<std::uint64_t>(
                                            static_cast<std::int64_t>(value))),
          {LaunchFileNote::of("x-name", argument.name)}};
}

std::vector<std::string> Contract::unknown() const {
  std::vector<std::string> numbers,
      unknown = {"buffers: init, and what should come out (expected)"};
  for (const ArgumentSpec &argument : contract_.arguments)
    if (argument.kind != ArgumentSpec::Kind::buffer &&
        !values_.contains(argument.name))
      numbers.push_back(argument.name);
  if (!numbers.empty())
    unknown.push_back(fmt::format("{} are {} here, and grid, shapes and maps "
                                  "follow from them",
                                  fmt::join(numbers, ", "), kNumber));
  return unknown;
}

LaunchSpec Contract::launch() const {
  LaunchSpec launch{.kernel = kernel_.name};
  for (std::size_t i = 0; i < 3; ++i) {
    launch.grid[i] = static_cast<std::uint32_t>(valueOf(contract_.grid[i]));
    launch.block[i] = static_cast<std::uint32_t>(contract_.block[i]);
    launch.cluster[i] = static_cast<std::uint32_t>(contract_.cluster[i]);
  }
  launch.dynamic_smem_bytes =
      static_cast<std::uint32_t>(contract_.dynamic_smem_bytes);
  for (const ParameterSpec &parameter : contract_.parameters)
    launch.arguments.push_back(parameterOf(parameter));
  launch.notes = {LaunchFileNote::of("x-fill-in", unknown())};
  return launch;
}

LaunchFile Contract::write() {
  addBuffers();
  file_.launches = {launch()};
  file_.registers_at_entry = contract_.registers_at_entry;
  file_.is_co_resident = contract_.is_cooperative;
  file_.shared_objects = contract_.shared_objects;
  return std::move(file_);
}

} // namespace kiln::launchfile

namespace kiln {

LaunchFile launch_file_of(const Kernel &kernel,
                          const std::map<std::string, double> &values) {
  return launchfile::Contract(kernel, values).write();
}

} // namespace kiln
