// Memory: what a launch file says about memory, as bytes and addresses.
#pragma once

#include "kiln/check/launch_file.h"

namespace kiln::launchfile {

/// "the buffer 'a', 100 of f32", for messages.
std::string describe(const BufferSpec &buffer);

/// The bytes a buffer begins with; nothing where nobody writes them.
std::optional<LaunchJob::Bytes> initialBytes(const BufferSpec &buffer);

/// An argument as bytes whose addresses are those of `memory`.
LaunchJob::Bytes bytesOf(const LaunchFileArgument &argument,
                         std::span<const Buffer> memory);

/// An argument as a parameter, likewise.
LaunchParameter bind(const LaunchFileArgument &argument,
                     std::span<const Buffer> memory);

/// Whether there is a tensor map among the bytes of a struct or a field.
bool hasMapInside(const LaunchFileArgument &argument);

} // namespace kiln::launchfile
