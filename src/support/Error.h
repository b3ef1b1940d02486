// Error: raise the public error kinds with fmt's formatting.
#pragma once

#include "kiln/base/error.h"
#include "kiln/base/export.h"

#include <fmt/format.h>

namespace KILN_API kiln {

/// Throw a UserError at a place in the user's source.
template <typename... Args>
[[noreturn]] void userErrorAt(const SourceLine &where,
                              fmt::format_string<Args...> format,
                              Args &&...args) {
  throw UserError(where, fmt::format(format, std::forward<Args>(args)...));
}

/// Throw a UserError that has no place.
template <typename... Args>
[[noreturn]] void userError(fmt::format_string<Args...> format,
                            Args &&...args) {
  throw UserError(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void runtimeError(fmt::format_string<Args...> format,
                               Args &&...args) {
  throw RuntimeError(fmt::format(format, std::forward<Args>(args)...));
}

template <typename... Args>
[[noreturn]] void internalError(fmt::format_string<Args...> format,
                                Args &&...args) {
  throw InternalError(fmt::format(format, std::forward<Args>(args)...));
}

} // namespace kiln
