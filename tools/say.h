// say.h: what a command prints.
//
// A stream that nobody can write to, full or closed, ends no command: what it
// has to do is done, and the exit status tells. `main` looks at the stream at
// the end.
#pragma once

#include <cstdio>
#include <fmt/format.h>

namespace kiln::cli {

/// To stdout.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args &&...args) {
  std::string text = fmt::format(format, std::forward<Args>(args)...);
  std::fwrite(text.data(), 1, text.size(), stdout);
}

} // namespace kiln::cli
