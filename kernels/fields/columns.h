// columns: how values of each kind are written and read: what stands under
// `get`, `set` and `words` in the tables of fields.
#pragma once

#include "dims.h"
#include "words.h"

#include <kiln/base/types.h>
#include <kiln/language/tensorcore/scaling.h>

#include <optional>

namespace kiln::fields {

/// The record that a member pointer is of.
template <typename Member> struct RecordOfMember;
template <typename Record, typename Value>
struct RecordOfMember<Value Record::*> {
  using type = Record;
};
template <auto field>
using RecordOf = typename RecordOfMember<decltype(field)>::type;

/// Whole numbers. What is too small for a kernel is refused by its `check`.
template <auto field> std::string get_number(const RecordOf<field> &record) {
  return std::to_string(record.*field);
}
template <auto field, int least = 0>
void set_number(RecordOf<field> &record, std::string_view label,
                const std::string &text) {
  record.*field = parse_number(text, label, least);
}

/// Two of them, "2x1".
template <auto first, auto second>
std::string get_pair(const RecordOf<first> &record) {
  return fmt::format("{}x{}", record.*first, record.*second);
}
template <auto first, auto second, int least>
void set_pair(RecordOf<first> &record, std::string_view label,
              const std::string &text) {
  std::vector<std::string> sides = split(text, 'x');
  if (sides.size() != 2)
    throw UserError(fmt::format("{} is '{}'; write two numbers, for example "
                                "2x1",
                                label, text));
  record.*first = parse_number(sides[0], label, least);
  record.*second = parse_number(sides[1], label, least);
}

template <auto field> std::string get_real(const RecordOf<field> &record) {
  return fmt::format("{}", record.*field);
}
template <auto field>
void set_real(RecordOf<field> &record, std::string_view label,
              const std::string &text) {
  record.*field = parse_real(text, label);
}

/// One of a few words: a table of pairs.
template <auto field, const auto &table>
std::string get_choice(const RecordOf<field> &record) {
  return std::string(name_in(table, record.*field));
}
template <auto field, const auto &table>
void set_choice(RecordOf<field> &record, std::string_view label,
                const std::string &text) {
  record.*field = parse_in(table, text, label);
}
template <const auto &table> std::string words_in() { return words_of(table); }

inline constexpr std::pair<bool, std::string_view> kSwitches[] = {
    {true, "on"}, {false, "off"}};

/// A flag; in a text it is there, with nothing behind it.
template <auto field> std::string get_flag(const RecordOf<field> &record) {
  return std::string(name_in(kSwitches, record.*field));
}
template <auto field>
void set_flag(RecordOf<field> &record, std::string_view label,
              const std::string &text) {
  record.*field = text.empty() ||
                  parse_in(kSwitches, text, fmt::format("value of {}", label));
}

template <auto field> std::string get_scaling(const RecordOf<field> &record) {
  return std::string(name(record.*field));
}
template <auto field>
void set_scaling(RecordOf<field> &record, std::string_view,
                 const std::string &text) {
  record.*field = parse_scaling(text);
}

inline std::string word_of(Type type) { return std::string(name(type)); }
inline std::string word_of(const Dim &dim) { return text_of(dim); }
template <typename Value>
std::string word_of(const std::optional<Value> &value) {
  return value ? word_of(*value) : "";
}

/// Types and dimensions; "" where one is left out.
template <auto field> std::string get_word(const RecordOf<field> &record) {
  return word_of(record.*field);
}
template <auto field>
void set_type(RecordOf<field> &record, std::string_view,
              const std::string &text) {
  record.*field = parse_type(text);
}
template <auto field, int least = 1>
void set_dim(RecordOf<field> &record, std::string_view label,
             const std::string &text) {
  record.*field = parse_dim(text, label, least);
}

} // namespace kiln::fields
