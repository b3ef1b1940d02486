// words: problems and schedules as words of text, read and written.
#pragma once

#include <kiln/base/dim.h>
#include <kiln/base/error.h>

#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::fields {

/// The word of a value in a table of pairs.
template <typename Table, typename Key>
std::string_view name_in(const Table &table, Key key) {
  for (const auto &[value, text] : table)
    if (value == key)
      return text;
  return "?";
}

/// "tn, nn, nt, tt"
template <typename Table> std::string words_of(const Table &table) {
  std::vector<std::string_view> words;
  for (const auto &[value, text] : table)
    words.push_back(text);
  return fmt::format("{}", fmt::join(words, ", "));
}

/// The value of a word; the error lists those there are.
template <typename Table>
auto parse_in(const Table &table, std::string_view text,
              std::string_view what) {
  for (const auto &[value, word] : table)
    if (word == text)
      return value;
  throw UserError(fmt::format("'{}' is not a valid {}; use one of {}", text,
                              what, words_of(table)));
}

/// Whether a word is one of the table's.
template <typename Table>
bool has_word(const Table &table, std::string_view text) {
  for (const auto &[value, word] : table)
    if (word == text)
      return true;
  return false;
}

/// The pieces between `separator`, where it is in no parentheses; of spaces,
/// several are one.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces(1);
  int depth = 0;
  for (char c : text) {
    depth += (c == '(') - (c == ')');
    if (c == separator && depth == 0)
      pieces.emplace_back();
    else
      pieces.back() += c;
  }
  if (separator == ' ')
    std::erase(pieces, "");
  return pieces;
}

/// A whole number of at least `least`; `what` was written as it.
inline int parse_number(std::string_view text, std::string_view what,
                        int least = 0) {
  int value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || value < least)
    throw UserError(fmt::format("{} is '{}'; it must be a whole number from {} "
                                "to 2147483647",
                                what, text, least));
  return value;
}

/// A number that is finite; `what` was written as it.
inline double parse_real(std::string_view text, std::string_view what) {
  double value = 0;
  const char *begin = text.data(), *end = begin + text.size();
  auto [stop, error] = std::from_chars(begin, end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value))
    throw UserError(fmt::format("{} is '{}'; it must be a number", what, text));
  return value;
}

/// "key=value" in two; the value is empty where there is no "=".
inline std::pair<std::string, std::string> key_value(const std::string &word) {
  std::size_t at = word.find('=');
  if (at == std::string::npos)
    return {word, ""};
  return {word.substr(0, at), word.substr(at + 1)};
}

} // namespace kiln::fields
