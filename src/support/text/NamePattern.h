// NamePattern: a regular expression of the user's, looked for in names that
// strangers wrote.
#pragma once

#include "kiln/base/export.h"

#include <memory>
#include <string>

namespace KILN_API kiln {

class NamePattern {
public:
  /// As ECMAScript has them, without references back (\1). Throws UserError,
  /// "--kernel is '('; it takes a regular expression"; `spelled` is
  /// how the option was named.
  NamePattern(const std::string &spelled, const std::string &pattern);
  ~NamePattern();
  NamePattern(NamePattern &&) noexcept;
  NamePattern &operator=(NamePattern &&) noexcept;

  /// Whether some part of the name matches; of a name of more
  /// than 4096 characters its beginning is looked at.
  bool finds(const std::string &name) const;

private:
  struct Regex;
  std::unique_ptr<Regex> regex_;
};

} // namespace kiln
