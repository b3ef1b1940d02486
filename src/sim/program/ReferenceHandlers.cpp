// ReferenceHandlers: the pairs that units have named, in one table.
#include "sim/program/ReferenceHandlers.h"

#include <mutex>

namespace kiln::sim {

namespace {
/// Filled while programs are decoded, by any thread.
struct Pairs {
  std::mutex mutex;
  std::unordered_map<Handler, Handler> referenceOf;
};
} // namespace

static Pairs &pairs() {
  static Pairs pairs;
  return pairs;
}

Handler withReference(Handler fast, Handler reference) {
  std::lock_guard lock(pairs().mutex);
  pairs().referenceOf.insert_or_assign(fast, reference);
  return fast;
}

Handler referenceOf(Handler handler) {
  std::lock_guard lock(pairs().mutex);
  auto found = pairs().referenceOf.find(handler);
  return found == pairs().referenceOf.end() ? handler : found->second;
}

} // namespace kiln::sim
