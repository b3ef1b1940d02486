// AtomicFile: POSIX calls, because iostreams do not say why they failed.
#include "support/AtomicFile.h"

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <fmt/format.h>
#include <random>
#include <sys/stat.h>
#include <unistd.h>

namespace kiln {

/// A name nobody else uses. The random number tells apart processes of the same
/// id that share a folder over a network or between containers.
static std::string temporaryName(const std::filesystem::path &path) {
  static const std::uint32_t random = std::random_device()();
  static std::atomic<std::uint64_t> calls = 0;
  return fmt::format("{}.{}.{:08x}.{}.tmp", path.string(), ::getpid(), random,
                     calls.fetch_add(1));
}

/// Write all of `bytes`; returns 0 or errno.
static int writeAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written < 0)
      return errno;
    bytes.remove_prefix(written);
  }
  return 0;
}

/// Write all parts and close; returns 0 or errno.
static int writeAndClose(int file,
                         std::initializer_list<std::string_view> parts) {
  int failure = 0;
  for (std::string_view part : parts)
    if (failure == 0)
      failure = writeAll(file, part);
  if (::close(file) != 0 && failure == 0)
    failure = errno;
  return failure;
}

/// Is there something that a file must not take the place of?
static bool isSpecial(const std::filesystem::path &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// Open what is no regular file. A pipe that nobody reads is an error, not
/// something to wait for.
static int openSpecial(const std::filesystem::path &path) {
  int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0)
    ::fcntl(file, F_SETFL, 0);
  return file;
}

static int openTemporary(const std::string &temporary) {
  return ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
                0666);
}

/// The file that a link leads to; the path itself where it is none.
static std::filesystem::path followLink(const std::filesystem::path &path) {
  std::error_code error;
  std::filesystem::path target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

int writeFileAtomically(const std::filesystem::path &path,
                        std::initializer_list<std::string_view> parts) {
  if (isSpecial(path)) {
    int file = openSpecial(path);
    return file < 0 ? errno : writeAndClose(file, parts);
  }
  std::filesystem::path target = followLink(path);
  std::string temporary = temporaryName(target);
  int file = openTemporary(temporary);
  if (file < 0)
    return errno;
  int failure = writeAndClose(file, parts);
  if (failure == 0 && std::rename(temporary.c_str(), target.c_str()) != 0)
    failure = errno;
  if (failure != 0)
    ::unlink(temporary.c_str());
  return failure;
}

int checkWritable(const std::filesystem::path &path) {
  bool isFile = !isSpecial(path);
  std::string temporary = temporaryName(followLink(path));
  int file = isFile ? openTemporary(temporary) : openSpecial(path);
  if (file < 0)
    return errno;
  ::close(file);
  if (isFile)
    ::unlink(temporary.c_str());
  return 0;
}

/// Read to the end of the file; returns 0, kNotRegular or errno.
static int readAll(int file, std::string &bytes, std::uint64_t limitBytes) {
  struct stat status;
  if (::fstat(file, &status) != 0)
    return errno;
  if (!S_ISREG(status.st_mode))
    return kNotRegular;
  if (static_cast<std::uint64_t>(status.st_size) > limitBytes)
    return EFBIG;
  bytes.clear();
  bytes.reserve(status.st_size);
  char block[65536];
  while (true) {
    ssize_t count = ::read(file, block, sizeof block);
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return errno;
    if (count == 0)
      return 0;
    // Those of /proc do not say their size.
    if (bytes.size() + count > limitBytes)
      return EFBIG;
    bytes.append(block, count);
  }
}

int readFile(const std::filesystem::path &path, std::string &bytes,
             std::uint64_t limitBytes, bool touch) {
  int file = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file < 0)
    return errno;
  int failure = readAll(file, bytes, limitBytes);
  if (failure == 0 && touch)
    ::futimens(file, nullptr);
  ::close(file);
  return failure;
}

} // namespace kiln
