// Environment: the knobs and the cache as the public header shows them.
#include "kiln/run/environment.h"

#include "kiln/run/cache.h"
#include "support/Cache.h"
#include "support/Hash.h"
#include "support/Knobs.h"

#include <unistd.h>

namespace kiln {

bool wants_colour() { return isatty(STDOUT_FILENO) && !value(Knob::noColor); }

std::vector<Setting> settings() {
  std::vector<Setting> result;
  for (const KnobInfo &knob : allKnobs()) {
    std::optional<std::string> set = value(knob.knob);
    result.push_back({.variable = knob.variable,
                      .meaning = knob.meaning,
                      .value = set.value_or(knob.fallback),
                      .is_default = !set});
  }
  return result;
}

static CacheInfo describe(const Cache &cache, const Cache::Stats &stats) {
  return {.is_on = cache.isOn(),
          .folder = cache.folder().string(),
          .entries = stats.entries,
          .bytes = stats.bytes,
          .limit_bytes = cache.limitBytes()};
}

std::optional<std::string> cache_get(std::string_view about) {
  return Cache::ofProcess().get(hashHex(about));
}

void cache_put(std::string_view about, std::string_view bytes) {
  Cache::ofProcess().put(hashHex(about), bytes);
}

CacheInfo cache_info() {
  const Cache &cache = Cache::ofProcess();
  return describe(cache, cache.stats());
}

CacheInfo clear_cache() {
  Cache &cache = Cache::ofProcess();
  return describe(cache, cache.clear());
}

} // namespace kiln
