// InputFile: open without waiting, look at the kind, then read.
#include "support/InputFile.h"
#include "support/limits/Reserve.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

InputFile::InputFile(const std::filesystem::path &path)
    : file_(::open(path.c_str(),
                   O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC)) {
  struct stat status;
  if (file_ < 0 || ::fstat(file_, &status) != 0)
    failure_ = errno;
  else if (!S_ISREG(status.st_mode))
    failure_ = kNotRegular;
  else
    bytes_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (file_ >= 0)
    ::close(file_);
}

bool InputFile::readAt(std::uint64_t offset, void *to, std::size_t size) const {
  auto *at = static_cast<char *>(to);
  while (failure_ == 0 && size > 0) {
    ssize_t count = ::pread(file_, at, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count <= 0)
      return false;
    at += count;
    offset += static_cast<std::uint64_t>(count);
    size -= static_cast<std::size_t>(count);
  }
  return failure_ == 0;
}

int InputFile::readAll(std::string &to, std::uint64_t limitBytes) const {
  if (failure_ != 0)
    return failure_;
  if (bytes_ > limitBytes)
    return EFBIG;
  to.clear();
  // A size is what a file says; memory follows what it has.
  reserveBounded(to, bytes_);
  char block[65536];
  while (true) {
    ssize_t count = ::pread(file_, block, sizeof block,
                            static_cast<off_t>(to.size()));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      return 0;
    // Those of /proc do not say their size.
    if (to.size() + static_cast<std::size_t>(count) > limitBytes)
      return EFBIG;
    to.append(block, static_cast<std::size_t>(count));
  }
}

void InputFile::touch() const {
  if (failure_ == 0)
    ::futimens(file_, nullptr);
}

int readFile(const std::filesystem::path &path, std::string &bytes,
             std::uint64_t limitBytes, bool touch) {
  InputFile file(path);
  int failure = file.readAll(bytes, limitBytes);
  if (failure == 0 && touch)
    file.touch();
  return failure;
}

} // namespace kiln
