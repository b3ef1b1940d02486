// NamePattern: std::regex by its automaton.
//
// Its usual way is to try and go back, one call deeper for each character: a
// name of 30,000 characters ends the process. What goes through the automaton
// needs no stack for the name, and knows no references back.
#include "support/text/NamePattern.h"
#include "support/Error.h"

#include <algorithm>
#include <regex>

namespace kiln {

struct NamePattern::Regex {
  std::regex compiled;
};

/// Longer than anybody's; a pattern is read by calls that nest as it does.
static constexpr std::size_t kPatternLimitBytes = 1024;
/// The time that a name takes grows with the square of this.
static constexpr std::size_t kLongestName = 4096;

NamePattern::NamePattern(const std::string &spelled,
                         const std::string &pattern) {
  auto flags = std::regex::ECMAScript;
#ifdef __GLIBCXX__
  flags |= std::regex_constants::__polynomial;
#endif
  if (pattern.size() > kPatternLimitBytes)
    userError("{} has {} characters; it takes a regular expression of at most "
              "{}",
              spelled, pattern.size(), kPatternLimitBytes);
  try {
    regex_ = std::make_unique<Regex>(Regex{std::regex(pattern, flags)});
  } catch (const std::regex_error &error) {
    if (error.code() == std::regex_constants::error_complexity)
      userError("{} is '{}'; it takes a regular expression without references "
                "back to a part of the match",
                spelled, pattern);
    userError("{} is '{}'; it takes a regular expression", spelled, pattern);
  }
}

NamePattern::~NamePattern() = default;
NamePattern::NamePattern(NamePattern &&) noexcept = default;
NamePattern &NamePattern::operator=(NamePattern &&) noexcept = default;

bool NamePattern::finds(const std::string &name) const {
  auto end = name.begin() + static_cast<std::ptrdiff_t>(
                                std::min(name.size(), kLongestName));
  return std::regex_search(name.begin(), end, regex_->compiled);
}

} // namespace kiln
