// JsonNode: read values, or say what would be accepted.
#include "support/text/JsonNode.h"
#include "kiln/base/file.h"
#include "kiln/base/text.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>

namespace kiln {

using nlohmann::json;

/// Characters of a value that a message shows.
static constexpr std::size_t kShownValue = 60;

json parseJson(std::string_view text, const std::string &origin) {
  check_nesting(text, TextFormat::json, origin);
  try {
    return json::parse(text);
  } catch (const json::exception &error) {
    throw UserError(
        fmt::format("{} is not valid JSON: {}", origin, error.what()));
  }
}

json readJson(const std::string &path) {
  return parseJson(read_file(path), path);
}

std::string JsonNode::place() const {
  return path_.empty() ? file_ : file_ + ": " + path_;
}

void JsonNode::refuse(const std::string &accepted) const {
  std::string text =
      value_.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShownValue)
    text = text.substr(0, kShownValue) + "...";
  throw UserError(
      fmt::format("{} is {}; it must be {}", place(), text, accepted));
}

void JsonNode::checkKeys(const std::vector<std::string_view> &known) const {
  if (!value_.is_object())
    refuse("an object");
  for (const auto &[key, value] : value_.items())
    if (!key.starts_with("x-") &&
        std::find(known.begin(), known.end(), key) == known.end())
      throw UserError(fmt::format(
          "{} has the key '{}'; known are {}, and what begins with x- is "
          "ignored",
          place(), key, fmt::join(known, ", ")));
}

std::vector<JsonNode> JsonNode::list(const std::string &of) const {
  if (!value_.is_array())
    refuse("a list of " + of);
  std::vector<JsonNode> result;
  for (std::size_t i = 0; i < value_.size(); ++i)
    result.emplace_back(value_[i], file_, fmt::format("{}[{}]", path_, i));
  return result;
}

JsonNode JsonNode::at(const char *key) const {
  if (!value_.is_object())
    refuse("an object");
  if (!has(key))
    throw UserError(fmt::format("{} has no '{}'", place(), key));
  return {value_.at(key), file_, path_.empty() ? key : path_ + "." + key};
}

std::optional<JsonNode> JsonNode::find(const char *key) const {
  return has(key) ? std::optional(at(key)) : std::nullopt;
}

std::string JsonNode::text(const std::string &accepted) const {
  if (!value_.is_string())
    refuse(accepted);
  return value_.get<std::string>();
}

bool JsonNode::boolean() const {
  if (!value_.is_boolean())
    refuse("true or false");
  return value_.get<bool>();
}

double JsonNode::number() const {
  if (!value_.is_number())
    refuse("a number");
  return value_.get<double>();
}

double JsonNode::notNegative() const {
  if (!value_.is_number() || value_.get<double>() < 0)
    refuse("a number that is not negative");
  return value_.get<double>();
}

std::uint64_t JsonNode::whole(std::uint64_t least, std::uint64_t most) const {
  bool fits = value_.is_number_unsigned() &&
              value_.get<std::uint64_t>() >= least &&
              value_.get<std::uint64_t>() <= most;
  if (!fits)
    refuse(fmt::format("a whole number from {} to {}", least, most));
  return value_.get<std::uint64_t>();
}

std::vector<std::uint64_t> JsonNode::wholes(std::uint64_t least,
                                            std::uint64_t most) const {
  std::vector<std::uint64_t> result;
  for (const JsonNode &entry : list("whole numbers"))
    result.push_back(entry.whole(least, most));
  return result;
}

int JsonNode::integer() const {
  constexpr int most = std::numeric_limits<int>::max();
  return static_cast<int>(whole(0, static_cast<std::uint64_t>(most)));
}

std::vector<int> JsonNode::integers() const {
  std::vector<int> result;
  for (const JsonNode &entry : list("whole numbers"))
    result.push_back(entry.integer());
  return result;
}

std::uint64_t
JsonNode::choice(std::initializer_list<std::uint64_t> known) const {
  for (std::uint64_t one : known)
    if (value_.is_number_unsigned() && value_.get<std::uint64_t>() == one)
      return one;
  refuse(fmt::format("one of {}", fmt::join(known, ", ")));
}

} // namespace kiln
