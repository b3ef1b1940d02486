// File: AtomicFile with sentences.
#include "kiln/base/file.h"
#include "support/AtomicFile.h"
#include "support/InputFile.h"
#include "support/Error.h"

#include <cerrno>
#include <cstring>
#include <filesystem>

namespace fs = std::filesystem;

namespace kiln {

/// What a path leads to where that is nothing to be read.
static const char *kindOf(const std::string &path) {
  std::error_code ignored;
  switch (fs::status(path, ignored).type()) {
  case fs::file_type::directory:
    return "a folder";
  case fs::file_type::fifo:
    return "a pipe";
  case fs::file_type::socket:
    return "a socket";
  default:
    return "a device";
  }
}

std::string read_file(const std::string &path, std::uint64_t limit_bytes) {
  std::string bytes;
  int failure = readFile(path, bytes, limit_bytes);
  if (failure == kNotRegular)
    userError("{} cannot be read: it is {}; a regular file is expected", path,
              kindOf(path));
  if (failure == EFBIG)
    userError("{} cannot be read: it is larger than {} bytes", path,
              limit_bytes);
  if (failure != 0)
    userError("{} cannot be read: {}", path, std::strerror(failure));
  return bytes;
}

void check_writable(const std::string &path) {
  if (int failure = checkWritable(path))
    userError("{} cannot be written: {}; give a path in a folder that exists "
              "and can be written",
              path, std::strerror(failure));
}

void write_file(const std::string &path,
                std::initializer_list<std::string_view> parts) {
  if (int failure = writeFileAtomically(path, parts))
    runtimeError("{} cannot be written: {}", path, std::strerror(failure));
}

} // namespace kiln
