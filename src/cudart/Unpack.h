// Unpack: LZ4 blocks and zstd frames, as fat binaries hold them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace kiln::cudart {

/// Exactly `bytes` of text. Throw UserError where the data are damaged, and
/// RuntimeError where libzstd is missing on this machine.
std::string unpackLz4(std::string_view packed, std::size_t bytes);
std::string unpackZstd(std::string_view packed, std::size_t bytes);

} // namespace kiln::cudart
