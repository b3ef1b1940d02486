// Cache: the files of the store, one per entry, and how old ones go.
//
// An entry "3fa9..." is <folder>/3f/3fa9..., a header line followed by the
// payload. Only files of that form are ever counted or removed, so that a
// folder with other things in it loses nothing.
#include "support/Cache.h"

#include "support/AtomicFile.h"
#include "support/InputFile.h"
#include "support/Error.h"
#include "support/Hash.h"
#include "support/Knobs.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <vector>

namespace fs = std::filesystem;

namespace kiln {

static constexpr std::string_view kMagic = "kiln-cache-2";
static constexpr std::uint64_t kDefaultLimitMb = 1024;
/// Scanning the folder costs a stat per entry: once in so many puts, or after
/// this share of the limit was written.
static constexpr std::uint64_t kPutsPerScan = 64;
static constexpr std::uint64_t kScansPerLimit = 16;
static constexpr auto kStaleAge = std::chrono::hours(1);

namespace {

/// A file of the store, as a scan finds it.
struct StoredFile {
  fs::path path;
  std::uint64_t bytes = 0;
  fs::file_time_type used;
  bool isTemporary = false;
};

} // namespace

/// "kiln-cache-2 <key> <hash of the payload> <bytes of the payload>\n"
static std::string headerFor(std::string_view key, std::string_view payload) {
  return fmt::format("{} {} {} {}\n", kMagic, key, hashHex(payload),
                     payload.size());
}

static bool isHex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

/// Whether a file of this name belongs to the store, in the subfolder `prefix`.
static bool belongs(std::string_view name, std::string_view prefix) {
  std::string_view key = name.substr(0, name.find('.'));
  bool isTemporary = key.size() != name.size();
  return key.size() > 2 && isHex(key) && key.starts_with(prefix) &&
         (!isTemporary || name.ends_with(".tmp"));
}

/// The files of one subfolder. What vanishes meanwhile is skipped: other
/// processes write and clear the same store.
static void scanSubfolder(const fs::path &subfolder,
                          std::vector<StoredFile> &files) {
  std::string prefix = subfolder.filename().string();
  std::error_code error;
  for (fs::directory_iterator it(subfolder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (!belongs(name, prefix))
      continue;
    std::error_code vanished;
    StoredFile file = {.path = it->path(),
                       .bytes = it->file_size(vanished),
                       .isTemporary = name.ends_with(".tmp")};
    if (!vanished)
      file.used = it->last_write_time(vanished);
    if (!vanished)
      files.push_back(std::move(file));
  }
}

static std::vector<StoredFile> scan(const fs::path &folder) {
  std::vector<StoredFile> files;
  if (folder.empty())
    return files;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename().string();
    if (name.size() == 2 && isHex(name))
      scanSubfolder(it->path(), files);
  }
  return files;
}

/// Temporary files are renamed within moments; an old one has lost its writer.
static bool isStale(const StoredFile &file) {
  return file.isTemporary &&
         file.used < fs::file_time_type::clock::now() - kStaleAge;
}

static void removeFile(const StoredFile &file) {
  std::error_code ignored;
  fs::remove(file.path, ignored);
}

// The count of puts begins anywhere, so that many short processes with a few
// puts each scan as often as one long one.
Cache::Cache(fs::path folder, std::uint64_t limitBytes)
    : folder_(std::move(folder)), limitBytes_(limitBytes),
      putsSinceScan_(std::random_device()() % kPutsPerScan) {}

/// Where the cache of this process is; empty: there is none.
static fs::path folderByKnobs() {
  if (!switchValue(Knob::cache).value_or(true))
    return {};
  if (auto folder = value(Knob::cacheDir))
    return *folder;
  // The XDG specification: a path that is not absolute is ignored.
  if (auto base = value(Knob::xdgCacheHome);
      base && fs::path(*base).is_absolute())
    return fs::path(*base) / "kiln";
  if (auto home = value(Knob::home))
    return fs::path(*home) / ".cache" / "kiln";
  return {};
}

Cache &Cache::ofProcess() {
  constexpr std::uint64_t bytesPerMb = 1024 * 1024;
  static Cache cache(
      folderByKnobs(),
      std::min(numberValue(Knob::cacheLimitMb).value_or(kDefaultLimitMb),
               UINT64_MAX / bytesPerMb) *
          bytesPerMb);
  return cache;
}

fs::path Cache::pathOf(std::string_view key) const {
  if (key.size() <= 2 || !isHex(key))
    internalError("\"{}\" is no key of the cache; a key is a hash in hex", key);
  return folder_ / key.substr(0, 2) / key;
}

std::optional<std::string> Cache::get(std::string_view key) {
  if (!isOn())
    return std::nullopt;
  std::string bytes;
  if (readFile(pathOf(key), bytes, limitBytes_, /*touch=*/true) != 0)
    return std::nullopt;
  std::size_t headerEnd = bytes.find('\n');
  if (headerEnd == std::string::npos)
    return std::nullopt;
  std::string_view payload = std::string_view(bytes).substr(headerEnd + 1);
  if (std::string_view(bytes).substr(0, headerEnd + 1) !=
      headerFor(key, payload))
    return std::nullopt;
  bytes.erase(0, headerEnd + 1);
  return bytes;
}

void Cache::put(std::string_view key, std::string_view bytes) {
  if (!isOn())
    return;
  fs::path path = pathOf(key);
  std::string header = headerFor(key, bytes);
  std::uint64_t fileBytes = header.size() + bytes.size();
  if (fileBytes > limitBytes_)
    return;
  std::string subfolder = path.parent_path().filename().string();
  if (makeFolderInside(folder_, subfolder) != 0)
    return;
  OutputFile file(path, Links::replace);
  file.leaveUnsynced();
  file.write(header);
  file.write(bytes);
  if (file.commit() == 0)
    evictIfDue(fileBytes);
}

void Cache::evictIfDue(std::uint64_t addedBytes) {
  std::uint64_t puts = putsSinceScan_.fetch_add(1) + 1;
  std::uint64_t bytes = bytesSinceScan_.fetch_add(addedBytes) + addedBytes;
  if (puts < kPutsPerScan && bytes <= limitBytes_ / kScansPerLimit)
    return;
  putsSinceScan_ = 0;
  bytesSinceScan_ = 0;
  evict();
}

void Cache::evict() {
  std::vector<StoredFile> files = scan(folder_);
  std::uint64_t total = 0;
  for (const StoredFile &file : files) {
    if (isStale(file))
      removeFile(file);
    else
      total += file.bytes;
  }
  // Start early and go further than needed: until the next scan, another part
  // of the limit may be written.
  std::uint64_t share = limitBytes_ / kScansPerLimit;
  if (total <= limitBytes_ - share)
    return;
  std::erase_if(files, [](const StoredFile &file) { return file.isTemporary; });
  std::sort(
      files.begin(), files.end(),
      [](const StoredFile &a, const StoredFile &b) { return a.used < b.used; });
  // The newest stays, however large: it was put to be read.
  for (std::size_t i = 0; i + 1 < files.size(); ++i) {
    if (total <= limitBytes_ - 2 * share)
      return;
    removeFile(files[i]);
    total -= files[i].bytes;
  }
}

Cache::Stats Cache::stats() const {
  Stats stats;
  for (const StoredFile &file : scan(folder_)) {
    if (file.isTemporary)
      continue;
    ++stats.entries;
    stats.bytes += file.bytes;
  }
  return stats;
}

Cache::Stats Cache::clear() {
  Stats stats;
  for (const StoredFile &file : scan(folder_)) {
    if (file.isTemporary && !isStale(file))
      continue;
    removeFile(file);
    if (file.isTemporary)
      continue;
    ++stats.entries;
    stats.bytes += file.bytes;
  }
  return stats;
}

} // namespace kiln
