// JsonNode: a value of a JSON document that knows where it stands, so that what
// is refused is refused with its place. Launch files and saved kernels are read
// through it.
#pragma once

#include "kiln/base/error.h"
#include "kiln/base/export.h"

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// Throws UserError where it is not valid JSON; `origin` names the text.
nlohmann::json parseJson(std::string_view text, const std::string &origin);
/// Throws UserError where the file cannot be read, too.
nlohmann::json readJson(const std::string &path);

/// A value and its path; the value must outlive it. What reads the value throws
/// UserError where it is not of that kind: "FILE: PATH is VALUE; it must be
/// ...".
class JsonNode {
public:
  JsonNode(const nlohmann::json &value, std::string file, std::string path = "")
      : value_(value), file_(std::move(file)), path_(std::move(path)) {}
  JsonNode(nlohmann::json &&value, std::string file,
           std::string path = "") = delete;

  const nlohmann::json &value() const { return value_; }
  /// "launch.json: args[2].tensor_map.box"
  std::string place() const;
  /// "launch.json: args[1] is 3; it must be ..."
  [[noreturn]] void refuse(const std::string &accepted) const;

  /// Refuse what is no object and keys that are none of these; those that begin
  /// with x- are nobody's business.
  void checkKeys(const std::vector<std::string_view> &known) const;
  bool has(const char *key) const { return value_.contains(key); }
  JsonNode at(const char *key) const; ///< must be there
  std::optional<JsonNode> find(const char *key) const;
  std::vector<JsonNode> list(const std::string &of) const;

  std::string text(const std::string &accepted) const;
  bool boolean() const;
  double number() const;
  double notNegative() const;
  std::uint64_t whole(std::uint64_t least, std::uint64_t most) const;
  std::vector<std::uint64_t> wholes(std::uint64_t least,
                                    std::uint64_t most) const;
  /// A whole number from 0 on.
  int integer() const;
  std::vector<int> integers() const;
  /// One of these numbers.
  std::uint64_t choice(std::initializer_list<std::uint64_t> known) const;
  /// What a word or number stands for.
  template <typename T>
  T choice(std::initializer_list<std::pair<nlohmann::json, T>> known) const {
    std::string accepted;
    for (const auto &[word, meaning] : known) {
      if (value_ == word)
        return meaning;
      accepted += (accepted.empty() ? "" : ", ") + word.dump();
    }
    refuse("one of " + accepted);
  }
  /// What `parse` makes of a text; a UserError of its gets the place.
  template <typename F> auto parsed(F &&parse) const {
    std::string source = text("a string");
    try {
      return parse(source);
    } catch (const UserError &error) {
      throw UserError(place() + ": " + error.message());
    }
  }

private:
  const nlohmann::json &value_;
  std::string file_;
  std::string path_;
};

} // namespace kiln
