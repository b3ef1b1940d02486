// SpoiltPages: one piece of a file, mapped again and again.
#include "sim/machine/memory/SpoiltPages.h"
#include "sim/machine/memory/ZeroPages.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <sys/mman.h>
#include <unistd.h>

namespace kiln::sim {

/// What is smaller is written at once.
static constexpr std::size_t kLeastMapped = std::size_t(1) << 20;
/// A piece of the file is at least so long, and longer where a mapping would
/// have more than `kMostPieces` of them: the system counts them.
static constexpr std::size_t kLeastPiece = std::size_t(4) << 20,
                             kMostPieces = 1024;

namespace {
/// The file of 0xff, as long as was ever asked for.
class Spoilt {
public:
  /// Its descriptor, with so many bytes at least; -1: there is none.
  int file(std::size_t bytes) {
    std::lock_guard lock(mutex_);
    if (file_ < 0)
      file_ = memfd_create("kiln-unwritten", MFD_CLOEXEC);
    if (file_ < 0 || bytes <= bytes_)
      return file_;
    if (ftruncate(file_, static_cast<off_t>(bytes)) != 0)
      return -1;
    void *all =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (all == MAP_FAILED)
      return -1;
    std::memset(static_cast<char *>(all) + bytes_, 0xff, bytes - bytes_);
    munmap(all, bytes);
    bytes_ = bytes;
    return file_;
  }

private:
  std::mutex mutex_;
  int file_ = -1;
  std::size_t bytes_ = 0;
};
} // namespace

/// Null where the system gives no such memory.
static std::shared_ptr<unsigned char[]> mapSpoilt(std::size_t bytes) {
  static Spoilt spoilt;
  std::size_t piece = std::max(kLeastPiece, std::bit_ceil(bytes / kMostPieces));
  int file = spoilt.file(piece);
  if (file < 0)
    return nullptr;
  constexpr int kAccess = PROT_READ | PROT_WRITE;
  constexpr int kKind = MAP_PRIVATE | MAP_NORESERVE;
  void *begin = mmap(nullptr, bytes, kAccess, kKind | MAP_ANONYMOUS, -1, 0);
  if (begin == MAP_FAILED)
    return nullptr;
  std::shared_ptr<unsigned char[]> result(
      static_cast<unsigned char *>(begin),
      [bytes](unsigned char *data) { munmap(data, bytes); });
  for (std::size_t at = 0; at < bytes; at += piece)
    if (mmap(result.get() + at, std::min(piece, bytes - at), kAccess,
             kKind | MAP_FIXED, file, 0) == MAP_FAILED)
      return nullptr;
  return result;
}

std::shared_ptr<unsigned char[]> spoiltBytes(std::size_t bytes) {
  if (bytes >= kLeastMapped)
    if (auto mapped = mapSpoilt(bytes))
      return mapped;
  auto written = zeroBytes(bytes);
  std::memset(written.get(), 0xff, bytes);
  return written;
}

} // namespace kiln::sim
