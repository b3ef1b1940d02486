// Deflate: bytes as RFC 1951 has them, for what a browser unpacks.
#pragma once

#include "kiln/base/export.h"

#include <string>
#include <string_view>

namespace KILN_API kiln {

/// One block with the fixed codes: a fifth to a tenth of a table of numbers.
std::string deflated(std::string_view bytes);

/// RFC 4648, with padding.
std::string base64(std::string_view bytes);

} // namespace kiln
