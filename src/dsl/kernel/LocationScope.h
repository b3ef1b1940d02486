// LocationScope: which C++ line an operation is said to stand on.
//
// A collective such as Pipeline is itself written with atoms; their lines are
// Kiln's own and tell a user nothing. While a collective runs, every operation
// takes the line that called it; while it runs the user's lambda, lines count
// again.
#pragma once

#include "kiln/base/where.h"

#include <optional>

namespace kiln {

/// The line in force instead of each operation's own, if any.
inline thread_local std::optional<Where> collectiveLine;

/// For the body of a collective: the outermost one wins.
class LocationScope {
public:
  explicit LocationScope(const Where &where) : saved_(collectiveLine) {
    if (!collectiveLine)
      collectiveLine = where;
  }
  ~LocationScope() { collectiveLine = saved_; }
  LocationScope(const LocationScope &) = delete;

private:
  std::optional<Where> saved_;
};

/// Around a call of the user's lambda inside a collective that `where` called.
class UserCode {
public:
  /// Lines count again only where the collective itself was called by a user.
  explicit UserCode(const std::optional<Where> &outside)
      : saved_(collectiveLine) {
    collectiveLine = outside;
  }
  ~UserCode() { collectiveLine = saved_; }
  UserCode(const UserCode &) = delete;

private:
  std::optional<Where> saved_;
};

} // namespace kiln
