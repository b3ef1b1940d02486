// FindTuned: the database of this process, asked about one problem.
//
// It is opened for each question and closed again: a question comes before a
// compilation, which costs hundreds of times as much, and what another process
// has added meanwhile is found.
#include "kiln/base/text.h"
#include "kiln/kernels/tuning.h"
#include "support/Cache.h"
#include "support/Error.h"
#include "support/Knobs.h"

#include <mutex>
#include <set>
#include <unistd.h>

namespace kiln {

std::string tuning_database_path() {
  if (auto path = value(Knob::tuneDb))
    return *path == "off" ? "" : *path;
  const Cache &cache = Cache::ofProcess();
  return cache.isOn() ? (cache.folder() / "tune.db").string() : "";
}

/// On stderr, and each sentence once.
static void warnOnce(const std::string &sentence) {
  static std::mutex mutex;
  static auto &said = *new std::set<std::string>;
  std::lock_guard lock(mutex);
  if (said.insert(sentence).second)
    fmt::print(stderr, "kiln: warning: {}\n", printable(sentence));
}

std::optional<TunedSchedule> find_tuned(std::string_view device,
                                        std::string_view kernels,
                                        std::string_view problem) {
  // Who waits for a kernel does not wait for who tunes.
  constexpr std::chrono::milliseconds kPatience(500);
  std::string path;
  try {
    path = tuning_database_path();
    if (path.empty() || access(path.c_str(), F_OK) != 0)
      return std::nullopt;
    return TuningDatabase(path, TuningDatabase::Access::read, kPatience)
        .find(device, kernels, problem);
  } catch (const Error &error) {
    warnOnce(fmt::format("no schedule comes from the tuning database: {}",
                         error.message()));
    return std::nullopt;
  }
}

void warn_of_tuned(const TunedSchedule &entry, std::string_view reason) {
  warnOnce(fmt::format("the schedule '{}' of {} in {} is not used: {}",
                       entry.schedule, entry.problem, tuning_database_path(),
                       reason));
}

} // namespace kiln
