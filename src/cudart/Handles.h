// Handles: what a program was given and has not given back. Whatever else it
// hands over is refused before it is looked at.
#pragma once

#include "kiln/base/error.h"

#include <mutex>
#include <unordered_map>

namespace kiln::cudart {

/// Thrown where a handle is none of the program's.
class InvalidHandle : public UserError {
  using UserError::UserError;
};

class Handles {
public:
  enum class Kind : unsigned char { stream, event, module, graph, node, exec, object, pool, block, library, link };

  /// For as long as the process lasts: programs let go of theirs last of all.
  static Handles &get();

  void add(const void *handle, Kind kind);
  /// False: it was none.
  bool remove(const void *handle, Kind kind);
  /// Forget streams, events, graphs and what belongs to them.
  void clear();
  bool has(const void *handle, Kind kind);
  /// Throws InvalidHandle.
  void check(const void *handle, Kind kind);

private:
  std::mutex mutex_;
  std::unordered_map<const void *, Kind> live_;
};

} // namespace kiln::cudart
