// json_node: read values, or say what would be accepted.
#include "json_node.h"

#include <kiln/file.h>
#include <kiln/text.h>

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

using nlohmann::json;

/// Characters of a value that a message shows.
static constexpr std::size_t kShownValue = 60;

json read_json(const std::string &path) {
  std::string text = read_file(path);
  check_nesting(text, TextFormat::json, path);
  try {
    return json::parse(text);
  } catch (const json::exception &error) {
    throw UserError(
        fmt::format("{} is not valid JSON: {}", path, error.what()));
  }
}

std::string Node::place() const {
  return path_.empty() ? file_ : file_ + ": " + path_;
}

void Node::refuse(const std::string &accepted) const {
  std::string text =
      value_.dump(-1, ' ', false, json::error_handler_t::replace);
  if (text.size() > kShownValue)
    text = text.substr(0, kShownValue) + "...";
  throw UserError(
      fmt::format("{} is {}; it must be {}", place(), text, accepted));
}

void Node::check_keys(std::initializer_list<std::string_view> known) const {
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

std::vector<Node> Node::list(const std::string &of) const {
  if (!value_.is_array())
    refuse("a list of " + of);
  std::vector<Node> result;
  for (std::size_t i = 0; i < value_.size(); ++i)
    result.emplace_back(value_[i], file_, fmt::format("{}[{}]", path_, i));
  return result;
}

Node Node::at(const char *key) const {
  if (!value_.is_object())
    refuse("an object");
  if (!has(key))
    throw UserError(fmt::format("{} has no '{}'", place(), key));
  return {value_.at(key), file_, path_.empty() ? key : path_ + "." + key};
}

std::optional<Node> Node::find(const char *key) const {
  return has(key) ? std::optional(at(key)) : std::nullopt;
}

std::string Node::text(const std::string &accepted) const {
  if (!value_.is_string())
    refuse(accepted);
  return value_.get<std::string>();
}

bool Node::boolean() const {
  if (!value_.is_boolean())
    refuse("true or false");
  return value_.get<bool>();
}

double Node::number() const {
  if (!value_.is_number())
    refuse("a number");
  return value_.get<double>();
}

double Node::not_negative() const {
  if (!value_.is_number() || value_.get<double>() < 0)
    refuse("a number that is not negative");
  return value_.get<double>();
}

std::uint64_t Node::whole(std::uint64_t least, std::uint64_t most) const {
  bool fits = value_.is_number_unsigned() &&
              value_.get<std::uint64_t>() >= least &&
              value_.get<std::uint64_t>() <= most;
  if (!fits)
    refuse(fmt::format("a whole number from {} to {}", least, most));
  return value_.get<std::uint64_t>();
}

std::vector<std::uint64_t> Node::wholes(std::uint64_t least,
                                        std::uint64_t most) const {
  std::vector<std::uint64_t> result;
  for (const Node &entry : list("whole numbers"))
    result.push_back(entry.whole(least, most));
  return result;
}

std::uint64_t Node::choice(std::initializer_list<std::uint64_t> known) const {
  for (std::uint64_t one : known)
    if (value_.is_number_unsigned() && value_.get<std::uint64_t>() == one)
      return one;
  refuse(fmt::format("one of {}", fmt::join(known, ", ")));
}

} // namespace kiln::cli
