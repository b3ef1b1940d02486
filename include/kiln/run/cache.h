// cache.h: bytes in Kiln's cache on disk, under a text of the caller's.
#pragma once

#include <kiln/base/export.h>

#include <optional>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// What was kept under a text that says everything the bytes depend on; nothing
/// where they are not there.
std::optional<std::string> cache_get(std::string_view about);
/// Keep them; where that is not possible they are not there the next time.
void cache_put(std::string_view about, std::string_view bytes);

} // namespace kiln
