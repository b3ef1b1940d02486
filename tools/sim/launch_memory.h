// launch_memory: what a launch file says about memory, as bytes and addresses.
#pragma once

#include "launch_file.h"

namespace kiln::cli {

/// "the buffer 'a', 100 of f32", for messages.
std::string describe(const BufferSpec &buffer);

/// The bytes a buffer begins with; nothing where it is poison.
std::optional<std::vector<std::byte>> initial_bytes(const BufferSpec &buffer);

/// The bytes of a field whose addresses are those of `memory`.
std::vector<std::byte> field_bytes(const StructArgument &field,
                                   const std::vector<Buffer> &memory);

/// The parameters of a launch whose buffers are at `memory`.
std::vector<LaunchParameter> bind(const LaunchSpec &launch,
                                  const std::vector<Buffer> &memory);

} // namespace kiln::cli
