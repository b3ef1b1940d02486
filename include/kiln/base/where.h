// where.h: the place in a user's source that an operation stands on.
//
// Every operation of the language takes a Where as its last parameter; in C++
// the default is the line of the call. Another front end (a parser, a binding)
// passes its own places with Where::at.
#pragma once

#include <kiln/base/export.h>

#include <source_location>
#include <string_view>

namespace KILN_API kiln {

struct Where {
  const char *file = ""; ///< lives as long as the process
  unsigned line = 0;     ///< 0: unknown
  unsigned column = 0;

  /// The C++ line that calls; as a default argument, the caller's caller.
  static constexpr Where
  current(std::source_location here = std::source_location::current()) {
    return {here.file_name(), here.line(), here.column()};
  }

  /// A place of another front end; the name is kept for the process's life.
  static Where at(std::string_view file, unsigned line, unsigned column = 0);

  bool is_known() const { return line != 0; }
};

} // namespace kiln
