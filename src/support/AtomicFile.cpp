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

int writeFileAtomically(const std::filesystem::path &path,
                        std::initializer_list<std::string_view> parts) {
  std::string temporary = temporaryName(path);
  int file =
      ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0)
    return errno;
  int failure = 0;
  for (std::string_view part : parts)
    if (failure == 0)
      failure = writeAll(file, part);
  if (::close(file) != 0 && failure == 0)
    failure = errno;
  if (failure == 0 && std::rename(temporary.c_str(), path.c_str()) != 0)
    failure = errno;
  if (failure != 0)
    ::unlink(temporary.c_str());
  return failure;
}

/// Read to the end of the file; returns 0 or errno.
static int readAll(int file, std::string &bytes) {
  struct stat status;
  if (::fstat(file, &status) != 0)
    return errno;
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
    bytes.append(block, count);
  }
}

int readFile(const std::filesystem::path &path, std::string &bytes,
             bool touch) {
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0)
    return errno;
  int failure = readAll(file, bytes);
  if (failure == 0 && touch)
    ::futimens(file, nullptr);
  ::close(file);
  return failure;
}

} // namespace kiln
