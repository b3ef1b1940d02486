// AtomicFile: POSIX calls, because iostreams do not say why they failed.
#include "support/AtomicFile.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <fmt/format.h>
#include <mutex>
#include <random>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace fs = std::filesystem;

namespace kiln {

/// A name nobody else uses. The random number tells apart processes of the same
/// id that share a folder over a network or between containers.
static std::string temporaryName(const fs::path &path) {
  static const std::uint32_t random = std::random_device()();
  static std::atomic<std::uint64_t> calls = 0;
  return fmt::format("{}.{}.{:08x}.{}.tmp", path.string(), ::getpid(), random,
                     calls.fetch_add(1));
}

/// Take the last word behind a dot off a name; false: there is none of those
/// characters and of that length.
static bool takeWord(std::string_view &name, std::string_view characters,
                     std::size_t length = 0) {
  std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0)
    return false;
  std::string_view word = name.substr(dot + 1);
  name = name.substr(0, dot);
  return !word.empty() && (!length || word.size() == length) &&
         word.find_first_not_of(characters) == std::string_view::npos;
}

/// Whether `temporaryName` makes such names.
static bool isTemporaryName(std::string_view name) {
  constexpr std::string_view kDigits = "0123456789", kHex = "0123456789abcdef";
  return takeWord(name, "tmp", 3) && takeWord(name, kDigits) &&
         takeWord(name, kHex, 8) && takeWord(name, kDigits);
}

/// Remove what processes that died have left in a folder.
static void removeStale(const fs::path &folder) {
  constexpr auto kStaleAge = std::chrono::hours(24);
  std::error_code error;
  auto oldest = fs::file_time_type::clock::now() - kStaleAge;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code vanished;
    if (!isTemporaryName(it->path().filename().string()) ||
        it->symlink_status(vanished).type() != fs::file_type::regular)
      continue;
    fs::file_time_type written = it->last_write_time(vanished);
    if (!vanished && written < oldest)
      fs::remove(it->path(), vanished);
  }
}

namespace {
/// A file that grows beyond `ulimit -f` is an error here, and no signal that
/// ends the process, whoever it belongs to.
class NoSizeSignal {
public:
  NoSizeSignal() {
    sigemptyset(&size_);
    sigaddset(&size_, SIGXFSZ);
    sigset_t pending;
    wasPending_ = sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ);
    ::pthread_sigmask(SIG_BLOCK, &size_, &before_);
  }
  ~NoSizeSignal() {
    int failure = errno;
    timespec now{};
    if (!wasPending_)
      sigtimedwait(&size_, nullptr, &now);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = failure;
  }
  NoSizeSignal(const NoSizeSignal &) = delete;
  NoSizeSignal &operator=(const NoSizeSignal &) = delete;

private:
  sigset_t size_{}, before_{};
  bool wasPending_ = false;
};
} // namespace

/// Write all of `bytes` by `put(data, size)`; returns 0 or errno.
template <typename Put>
static int writeAll(std::string_view bytes, const Put &put) {
  NoSizeSignal guard;
  while (!bytes.empty()) {
    ssize_t written = put(bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
    if (written <= 0)
      return written < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Is there something that a file must not take the place of?
static bool isSpecial(const fs::path &path) {
  struct stat status;
  return ::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

/// Open what is no regular file. A pipe that nobody reads is an error, not
/// something to wait for.
static int openSpecial(const fs::path &path) {
  int file = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (file >= 0)
    ::fcntl(file, F_SETFL, 0);
  return file;
}

static int openTemporary(const std::string &temporary) {
  return ::open(temporary.c_str(),
                O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
}

/// The file that a link leads to; the path itself where it is none.
static fs::path followLink(const fs::path &path) {
  std::error_code error;
  fs::path target = fs::canonical(path, error);
  return error ? path : target;
}

/// The file that is there says who may read it, and whose it is.
static int takeModeOf(const fs::path &target, int file) {
  struct stat status, own;
  if (::lstat(target.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      ::fstat(file, &own) != 0)
    return 0;
  bool isOwn = own.st_uid == status.st_uid && own.st_gid == status.st_gid;
  if (!isOwn && ::fchown(file, status.st_uid, status.st_gid) != 0)
    isOwn = true; // who may not give it away keeps it
  if (isOwn && (own.st_mode & 0777) == (status.st_mode & 0777))
    return 0;
  return ::fchmod(file, status.st_mode & 0777) == 0 ? 0 : errno;
}

OutputFile::OutputFile(const fs::path &path, Links links) : target_(path) {
  std::error_code ignored;
  bool isLink = fs::is_symlink(fs::symlink_status(path, ignored));
  if (!(isLink && links == Links::replace) && isSpecial(path)) {
    file_ = openSpecial(path);
    note(file_ < 0 ? errno : 0);
    return;
  }
  if (isLink && links == Links::follow)
    target_ = followLink(path);
  sweep();
  open();
}

OutputFile::~OutputFile() {
  if (file_ >= 0)
    ::close(file_);
  if (!temporary_.empty())
    ::unlink(temporary_.c_str());
}

void OutputFile::open() {
  temporary_ = temporaryName(target_);
  file_ = openTemporary(temporary_);
  note(file_ < 0 ? errno : takeModeOf(target_, file_));
}

void OutputFile::sweep() {
  // Never destroyed: reports are written at the end of processes.
  static auto *mutex = new std::mutex;
  static auto *swept = new std::set<std::string>;
  std::lock_guard lock(*mutex);
  fs::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  if (swept->insert(folder.string()).second)
    removeStale(folder);
}

int OutputFile::note(int failure) {
  if (failure_ == 0)
    failure_ = failure;
  return failure_;
}

int OutputFile::write(std::string_view bytes) {
  if (failure_ != 0)
    return failure_;
  return note(writeAll(bytes, [&](const char *data, std::size_t size) {
    return ::write(file_, data, size);
  }));
}

int OutputFile::writeAt(std::uint64_t offset, std::string_view bytes) {
  if (failure_ != 0)
    return failure_;
  return note(writeAll(bytes, [&](const char *data, std::size_t size) {
    ssize_t count = ::pwrite(file_, data, size, static_cast<off_t>(offset));
    offset += static_cast<std::uint64_t>(std::max<ssize_t>(count, 0));
    return count;
  }));
}

int OutputFile::resize(std::uint64_t bytes) {
  NoSizeSignal guard;
  if (failure_ == 0 && ::ftruncate(file_, static_cast<off_t>(bytes)) != 0)
    note(errno);
  return failure_;
}

int OutputFile::commit() {
  bool isRenamed = !temporary_.empty();
  if (failure_ == 0 && isRenamed && isSynced_ && ::fsync(file_) != 0)
    note(errno);
  if (file_ >= 0 && ::close(std::exchange(file_, -1)) != 0)
    note(errno);
  if (failure_ != 0 || !isRenamed)
    return failure_;
  if (std::rename(temporary_.c_str(), target_.c_str()) != 0)
    return note(errno);
  temporary_.clear();
  return 0;
}

int writeFileAtomically(const fs::path &path,
                        std::initializer_list<std::string_view> parts,
                        Links links) {
  OutputFile file(path, links);
  for (std::string_view part : parts)
    file.write(part);
  return file.commit();
}

int checkWritable(const fs::path &path) {
  return OutputFile(path).failure();
}

int makeFolderInside(const fs::path &folder, const std::string &name) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error)
    return error.value();
  int parent =
      ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
  if (parent < 0)
    return errno;
  int failure = ::mkdirat(parent, name.c_str(), 0777) == 0 ? 0 : errno;
  if (failure == EEXIST) {
    int there = ::openat(parent, name.c_str(),
                         O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
    failure = there < 0 ? errno : 0;
    if (there >= 0)
      ::close(there);
  }
  ::close(parent);
  return failure;
}

} // namespace kiln
