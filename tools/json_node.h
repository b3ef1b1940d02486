// json_node: a value of a JSON file that knows where it stands, so that what is
// refused is refused with its place.
#pragma once

#include <kiln/error.h>

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// Throws UserError where the file cannot be read or is not valid JSON.
nlohmann::json read_json(const std::string &path);

/// A value and its path; the value must outlive it. What reads the value throws
/// UserError where it is not of that kind: "FILE: PATH is VALUE; it must be
/// ...".
class Node {
public:
  Node(const nlohmann::json &value, std::string file, std::string path = "")
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}

  const nlohmann::json &value() const { return value_; }
  /// "launch.json: args[2].tensor_map.box"
  std::string place() const;
  /// "launch.json: args[1] is 3; it must be ..."
  [[noreturn]] void refuse(const std::string &accepted) const;

  /// Refuse what is no object and keys that are none of these; those that begin
  /// with x- are nobody's business.
  void check_keys(std::initializer_list<std::string_view> known) const;
  bool has(const char *key) const { return value_.contains(key); }
  Node at(const char *key) const; ///< must be there
  std::optional<Node> find(const char *key) const;
  std::vector<Node> list(const std::string &of) const;

  std::string text(const std::string &accepted) const;
  bool boolean() const;
  double number() const;
  double not_negative() const;
  std::uint64_t whole(std::uint64_t least, std::uint64_t most) const;
  std::vector<std::uint64_t> wholes(std::uint64_t least,
                                    std::uint64_t most) const;
  /// One of these numbers.
  std::uint64_t choice(std::initializer_list<std::uint64_t> known) const;

private:
  const nlohmann::json &value_;
  std::string file_;
  std::string path_;
};

} // namespace kiln::cli
