// field_json: records as JSON and back, by the table of their fields.
#pragma once

#include "field_text.h"

#include <kiln/base/text.h>

#include <nlohmann/json.hpp>

namespace kiln::fields {

/// A JSON value of the text of a field: true, 8 or "tn".
inline nlohmann::ordered_json json_value(const std::string &text,
                                         bool is_flag) {
  if (is_flag)
    return text == "on";
  auto number = nlohmann::ordered_json::parse(text, nullptr, false);
  return number.is_number() ? number : nlohmann::ordered_json(text);
}

/// The inverse. Throws UserError where it is neither.
inline std::string text_of_json(const nlohmann::json &value,
                                std::string_view key, bool is_flag) {
  if (is_flag && value.is_boolean())
    return value.get<bool>() ? "on" : "off";
  if (!is_flag && value.is_string())
    return value.get<std::string>();
  if (!is_flag && value.is_number())
    return value.dump();
  throw UserError(
      fmt::format("{} is {}; it must be {}", key, printable(value.dump()),
                  is_flag ? "true or false" : "a number or a string"));
}

/// {"m": 4096, ..., "layout": "tn"}: what the text says.
template <typename Record> std::string json_of(const Record &record) {
  nlohmann::ordered_json object = nlohmann::ordered_json::object();
  for (const Field<Record> *field : in_text_order<Record>())
    if (is_said(*field, record))
      object[std::string(field->key)] =
          json_value(field->get(record), field->form == FieldForm::flag);
  return object.dump();
}

inline nlohmann::json parsed_object(const std::string &text,
                                    std::string_view what) {
  check_nesting(text, TextFormat::json, fmt::format("the JSON of a {}", what));
  try {
    nlohmann::json object = nlohmann::json::parse(text);
    if (object.is_object())
      return object;
  } catch (const nlohmann::json::exception &) {
  }
  throw UserError(fmt::format("'{}' is not the JSON of a {}; it must be an "
                              "object, for example {{\"type\": \"bf16\"}}",
                              printable(text), what));
}

/// The keys of all fields.
template <typename Record> std::string known_keys() {
  std::vector<std::string_view> keys;
  for (const Field<Record> *field : in_text_order<Record>())
    keys.push_back(field->key);
  return fmt::format("{}", fmt::join(keys, ", "));
}

/// The inverse of json_of; of what is left out, all sizes must be there. Throws
/// UserError.
template <typename Record>
Record parse_json(const std::string &text, const RecordWords &about) {
  const nlohmann::json object = parsed_object(text, about.what);
  Record record;
  std::vector<const Field<Record> *> said;
  for (const Field<Record> *field : in_text_order<Record>()) {
    auto value = object.find(std::string(field->key));
    if (value != object.end()) {
      field->read(record, text_of_json(*value, field->key,
                                       field->form == FieldForm::flag));
      said.push_back(field);
    } else if (field->form == FieldForm::size) {
      throw UserError(fmt::format("the JSON of a {} has no \"{}\"", about.what,
                                  field->key));
    }
  }
  for (const auto &[key, value] : object.items())
    if (std::none_of(said.begin(), said.end(),
                     [&](const auto *field) { return field->key == key; }))
      throw UserError(fmt::format("\"{}\" is not a field of a {}; it has {}",
                                  printable(key), about.what,
                                  known_keys<Record>()));
  follow_others(record, said);
  return record;
}

} // namespace kiln::fields
