// progress: a bar that is written over.
#include "progress.h"

#include <kiln/base/text.h>

#include <cstdio>
#include <fmt/format.h>
#include <unistd.h>

namespace kiln::cli {

void show_progress(std::size_t done, std::size_t all, const std::string &what) {
  constexpr std::size_t kWidth = 24;
  if (!isatty(STDERR_FILENO))
    return;
  std::string bar(kWidth * done / all, '#');
  fmt::print(stderr, "\r\x1b[K[{:.<{}}] {} of {}: {}\r", bar, kWidth, done + 1,
             all, printable(what));
  std::fflush(stderr);
}

void end_progress() {
  if (isatty(STDERR_FILENO))
    fmt::print(stderr, "\r\x1b[K");
}

} // namespace kiln::cli
