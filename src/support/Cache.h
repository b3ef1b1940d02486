// Cache: a content-addressed store on disk, shared by many processes.
//
// An entry is bytes under a key that says everything the bytes depend on. It is
// written to a temporary name and renamed, so that a reader sees all of it or
// nothing; it carries its key and its checksum, so that a damaged one, or one
// that belongs under another key, counts as a miss and is written again. The
// store stays under a size limit by dropping what was used least recently
// (modification time is set at each hit). Where the folder cannot be written
// there is simply no cache: nothing fails because of it.
#pragma once

#include "kiln/base/export.h"

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace KILN_API kiln {

class Cache {
public:
  /// `folder` empty: the cache is off.
  Cache(std::filesystem::path folder, std::uint64_t limitBytes);

  /// The one of this process, as the knobs say: KILN_CACHE_DIR, else
  /// $XDG_CACHE_HOME/kiln, else ~/.cache/kiln; KILN_CACHE=off turns it off;
  /// KILN_CACHE_LIMIT_MB.
  static Cache &ofProcess();

  /// The bytes stored under `key` (a Hash in hex), or nothing.
  std::optional<std::string> get(std::string_view key);
  /// Store; failure to write is silent, the next get misses.
  void put(std::string_view key, std::string_view bytes);

  struct Stats {
    std::uint64_t entries = 0;
    std::uint64_t bytes = 0;
  };
  Stats stats() const;
  /// Remove every entry; returns what was there.
  Stats clear();

  bool isOn() const { return !folder_.empty(); }
  const std::filesystem::path &folder() const { return folder_; }
  std::uint64_t limitBytes() const { return limitBytes_; }

private:
  std::filesystem::path pathOf(std::string_view key) const;
  void evictIfDue(std::uint64_t addedBytes);
  void evict();

  std::filesystem::path folder_;
  std::uint64_t limitBytes_;
  std::atomic<std::uint64_t> putsSinceScan_;
  std::atomic<std::uint64_t> bytesSinceScan_ = 0;
};

} // namespace kiln
