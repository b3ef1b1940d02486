// Arguments: what a caller gives by name, in the order of the kernel.
#include "kiln/run/arguments.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

static LaunchArgument argumentOf(const Kernel &kernel,
                                 const ArgumentSpec &argument,
                                 std::span<const NamedArgument> given) {
  auto found =
      std::find_if(given.begin(), given.end(), [&](const NamedArgument &one) {
        return one.name == argument.name;
      });
  if (found == given.end())
    userError("{} takes '{}', and a call has no such operand; give a number in "
              "the problem",
              kernel.name, argument.name);
  bool isBuffer = argument.kind == ArgumentSpec::Kind::buffer;
  const auto *buffer = std::get_if<Buffer>(&found->value);
  const auto *number = std::get_if<Scalar>(&found->value);
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
  std::vector<LaunchArgument> arguments;
  for (const ArgumentSpec &argument : kernel.contract.arguments)
    if (!argument.is_workspace)
      arguments.push_back(argumentOf(kernel, argument, given));
  return arguments;
}

} // namespace kiln
