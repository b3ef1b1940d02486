// Arguments: what a caller gives by name, in the order of the kernel.
#include "kiln/run/arguments.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

std::vector<std::size_t>
argument_order(const Kernel &kernel, std::span<const std::string_view> names) {
  std::vector<std::size_t> order;
  for (const ArgumentSpec &argument : kernel.contract.arguments) {
    if (argument.is_workspace)
      continue;
    auto found = std::find(names.begin(), names.end(), argument.name);
    if (found == names.end())
      userError("{} takes '{}', and a call has no such operand; give a number "
                "in the problem",
                kernel.name, argument.name);
    order.push_back(static_cast<std::size_t>(found - names.begin()));
  }
  return order;
}

static LaunchArgument argumentOf(const Kernel &kernel,
                                 const ArgumentSpec &argument,
                                 const LaunchArgument &given) {
  bool isBuffer = argument.kind == ArgumentSpec::Kind::buffer;
  const auto *buffer = std::get_if<Buffer>(&given);
  const auto *number = std::get_if<Scalar>(&given);
  if (isBuffer && (number || buffer->address() == 0))
    userError("{} takes '{}', and the call has no buffer for it", kernel.name,
              argument.name);
  if (!isBuffer && !number)
    userError("{} takes '{}', and the call has no number for it", kernel.name,
              argument.name);
  if (isBuffer)
    return *buffer;
  return Scalar(argument.type, to_bits(argument.type, number->value()));
}

std::vector<LaunchArgument>
arguments_by_name(const Kernel &kernel, std::span<const NamedArgument> given) {
  std::vector<std::string_view> names;
  for (const NamedArgument &one : given)
    names.push_back(one.name);
  std::vector<LaunchArgument> arguments;
  auto next = argument_order(kernel, names);
  auto place = next.begin();
  for (const ArgumentSpec &argument : kernel.contract.arguments)
    if (!argument.is_workspace)
      arguments.push_back(
          argumentOf(kernel, argument, given[*place++].value));
  return arguments;
}

} // namespace kiln
