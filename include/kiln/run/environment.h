// environment.h: what Kiln takes from its surroundings: variables and cache.
//
// `kiln env` and `kiln cache` print this; a program that embeds Kiln can show
// the same in its own report.
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// One environment variable that Kiln reads.
struct Setting {
  std::string variable; ///< "KILN_CACHE"
  std::string meaning;
  std::string value; ///< in force; a default is in words
  bool is_default = true;

  /// "environment" or "default"
  std::string origin() const { return is_default ? "default" : "environment"; }
};

/// Whether text for people on stdout may have colours: it is a terminal, and
/// NO_COLOR is not set.
bool wants_colour();

/// Every variable Kiln reads, in a fixed order.
std::vector<Setting> settings();

/// The cache of compiled kernels.
struct CacheInfo {
  bool is_on = false;
  std::string folder; ///< empty where it is off
  std::uint64_t entries = 0;
  std::uint64_t bytes = 0;
  std::uint64_t limit_bytes = 0;
};

CacheInfo cache_info();
/// Remove every entry; `entries` and `bytes` of the result are what was there.
CacheInfo clear_cache();

} // namespace kiln
