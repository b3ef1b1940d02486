// MangledSize: how long a mangled name of C++ becomes, before it is demangled.
//
// A name of 200 bytes can stand for megabytes: what it refers back to may hold
// two references itself, and so on. Here the name is read and nothing is written
// out: each part has a size, and a reference has that of its part.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln {

/// About how many characters "_Z..." becomes, rather too many than too few;
/// nothing where it has expressions or other forms that are not read here.
std::optional<std::uint64_t> demangledSize(std::string_view name);

} // namespace kiln
