// arguments.h: the arguments of a kernel by their names.
//
//     std::vector<NamedArgument> given = {{"a", a}, {"b", b}, {"d", d}};
//     device->launch(kernel, arguments_by_name(kernel, given));
//
// Which arguments a kernel takes, and in which order, is in its contract: a
// problem with a bias has one more, and a dimension that is known at launch
// too.
#pragma once

#include <kiln/base/export.h>
#include <kiln/run/kernel.h>
#include <kiln/run/launch.h>

#include <span>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// Where each argument that the kernel takes, in its order and but for
/// workspaces, is among the names. Throws UserError where one is not there.
std::vector<std::size_t>
argument_order(const Kernel &kernel, std::span<const std::string_view> names);

/// A number is converted to the type that the kernel has. A buffer at the
/// address 0 counts as not given.
struct NamedArgument {
  std::string_view name;
  LaunchArgument value;
};

/// The arguments that the kernel takes, in its order, but for workspaces
/// (with_workspaces); what it does not take is left out. Throws UserError where
/// one is not given, or is no buffer or no number where the kernel takes one.
std::vector<LaunchArgument>
arguments_by_name(const Kernel &kernel, std::span<const NamedArgument> given);

} // namespace kiln
