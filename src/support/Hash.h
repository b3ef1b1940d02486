// Hash: 128-bit content hashes (XXH3), in hex.
#pragma once

#include "kiln/base/export.h"

#include <string>
#include <string_view>

namespace KILN_API kiln {

/// 32 hex digits of the XXH3-128 of `bytes`.
std::string hashHex(std::string_view bytes);

} // namespace kiln
