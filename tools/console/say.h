// say.h: what a command prints.
//
// A stream that nobody can write to, full or closed, ends no command: what it
// has to do is done, and the exit status tells. `main` looks at the stream at
// the end. Much of what is printed is quoted from files of strangers: what a
// terminal would obey is written out.
#pragma once

#include <kiln/base/text.h>

#include <cstdio>
#include <fmt/format.h>

namespace kiln::cli {

/// To stdout.
template <typename... Args>
void say(fmt::format_string<Args...> format, Args &&...args) {
  std::string text =
      printable(fmt::format(format, std::forward<Args>(args)...));
  std::fwrite(text.data(), 1, text.size(), stdout);
}

/// One line of the account: a word, then what there is to say.
template <typename... Args>
void report(std::string_view what, fmt::format_string<Args...> format,
            Args &&...args) {
  say("{:<10} {}\n", what, fmt::format(format, std::forward<Args>(args)...));
}

} // namespace kiln::cli
