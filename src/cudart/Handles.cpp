// Handles: one table for all kinds, since no two live at one address.
#include "cudart/Handles.h"

#include <fmt/format.h>

namespace kiln::cudart {

Handles &Handles::get() {
  static auto *handles = new Handles; // NOLINT: never destroyed
  return *handles;
}

void Handles::add(const void *handle, Kind kind) {
  std::lock_guard lock(mutex_);
  live_[handle] = kind;
}

bool Handles::remove(const void *handle, Kind kind) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(handle);
  if (found == live_.end() || found->second != kind)
    return false;
  live_.erase(found);
  return true;
}

void Handles::clear() {
  std::lock_guard lock(mutex_);
  std::erase_if(live_, [](const auto &row) {
    return row.second != Kind::module && row.second != Kind::pool;
  });
}

bool Handles::has(const void *handle, Kind kind) {
  std::lock_guard lock(mutex_);
  auto found = live_.find(handle);
  return found != live_.end() && found->second == kind;
}

void Handles::check(const void *handle, Kind kind) {
  static constexpr const char *kNames[] = {
      "a stream",           "an event",
      "a module",           "a graph",
      "a node of a graph",  "an executable graph",
      "a user object",      "a memory pool",
      "a block of memory",  "a handle of cuBLAS", "a linker"};
  if (!has(handle, kind))
    throw InvalidHandle(
        fmt::format("{} is not {} of this program, or no longer", handle,
                    kNames[static_cast<std::size_t>(kind)]));
}

} // namespace kiln::cudart
