// field_text: records as text and back, by the table of their fields; their
// part of a kernel's name, and what is wrong with them.
#pragma once

#include "words.h"

#include <kiln/kernels/fields.h>

#include <algorithm>
#include <span>

namespace kiln::fields {

/// What messages say of a record as a whole.
struct RecordWords {
  std::string_view what;         ///< "problem"
  std::string_view shape = {};   ///< how its text begins: "MxNxK"
  std::string_view example = {}; ///< of that: "4096x4096x1024"
};

/// The fields as the text has them: by form, flags among values.
template <typename Record>
const std::vector<const Field<Record> *> &in_text_order() {
  static const std::vector<const Field<Record> *> kOrder = [] {
    std::vector<const Field<Record> *> order;
    for (const Field<Record> &field : Record::fields())
      order.push_back(&field);
    auto rank = [](const Field<Record> *field) {
      return std::min(field->form, FieldForm::value);
    };
    std::stable_sort(
        order.begin(), order.end(),
        [&](const auto *x, const auto *y) { return rank(x) < rank(y); });
    return order;
  }();
  return kOrder;
}

template <typename Record>
bool is_said(const Field<Record> &field, const Record &record) {
  return field.form == FieldForm::size || field.is_always_said ||
         !field.is_usual(record);
}

/// "lda=1032", as the field stands in a text.
template <typename Record>
std::string word_in_text(const Field<Record> &field, const Record &record) {
  switch (field.form) {
  case FieldForm::result:
    return "-> " + field.get(record);
  case FieldForm::value:
    return fmt::format("{}={}", field.key, field.get(record));
  case FieldForm::flag:
    return std::string(field.key);
  default:
    return field.get(record);
  }
}

template <typename Record> std::string text_of(const Record &record) {
  std::string text;
  bool is_size = false;
  for (const Field<Record> *field : in_text_order<Record>()) {
    if (!is_said(*field, record))
      continue;
    bool follows_size = std::exchange(is_size, field->form == FieldForm::size);
    if (!text.empty())
      text += is_size && follows_size ? "x" : " ";
    text += word_in_text(*field, record);
  }
  return text;
}

/// "a, b or c"
inline std::string one_of(const std::vector<std::string_view> &words) {
  if (words.size() < 2)
    return fmt::format("{}", fmt::join(words, ""));
  return fmt::format("{} or {}",
                     fmt::join(words.begin(), words.end() - 1, ", "),
                     words.back());
}

/// Of what a text is made, for a word that is not of it.
template <typename Record> std::string known_words(const RecordWords &about) {
  std::vector<std::string> alone;
  std::vector<std::string_view> values;
  for (const Field<Record> *field : in_text_order<Record>())
    if (field->form == FieldForm::type)
      alone.push_back("a type");
    else if (field->form == FieldForm::result)
      alone.push_back("-> and a type");
    else if (field->form == FieldForm::word)
      alone.push_back(fmt::format("a {} ({})", field->key, field->words()));
    else if (field->form == FieldForm::flag)
      alone.emplace_back(field->key);
    else if (field->form == FieldForm::value)
      values.push_back(field->key);
  std::string text = fmt::format("a {} is ", about.what);
  if (!about.shape.empty())
    text += fmt::format("{}, then ", about.shape);
  text += fmt::format("{}", fmt::join(alone, ", "));
  if (!alone.empty() && !values.empty())
    text += ", and ";
  if (!values.empty())
    text += fmt::format("{} with = and a value", one_of(values));
  return text;
}

/// Set the sizes from the first word.
template <typename Record>
void read_sizes(Record &record, const std::string &text,
                const std::vector<std::string> &words,
                const RecordWords &about) {
  std::vector<std::string> sizes =
      words.empty() ? words : split(words.front(), 'x');
  std::vector<const Field<Record> *> fields;
  for (const Field<Record> *field : in_text_order<Record>())
    if (field->form == FieldForm::size)
      fields.push_back(field);
  if (sizes.size() != fields.size())
    throw UserError(fmt::format(
        "'{}' is not a valid {}: it must begin with {}, for example {}", text,
        about.what, about.shape, about.example));
  for (std::size_t i = 0; i < sizes.size(); ++i)
    fields[i]->read(record, sizes[i]);
}

/// Whether the field takes a word that stands alone.
template <typename Record>
bool takes(const Field<Record> &field, const std::string &word) {
  if (field.form != FieldForm::type && field.form != FieldForm::word)
    return false;
  try {
    Record any;
    field.read(any, word);
    return true;
  } catch (const UserError &) {
    return false;
  }
}

/// The field of a word, "tn" or "lda=8"; null where none has it.
template <typename Record>
const Field<Record> *field_of(const std::string &word) {
  std::string key = key_value(word).first;
  for (const Field<Record> *field : in_text_order<Record>()) {
    bool has_key =
        field->form == FieldForm::value || field->form == FieldForm::flag;
    if (takes(*field, word) || (has_key && field->key == key))
      return field;
  }
  return nullptr;
}

template <typename Record> const Field<Record> *result_field() {
  for (const Field<Record> &field : Record::fields())
    if (field.form == FieldForm::result)
      return &field;
  return nullptr;
}

/// What nobody said and follows from what was said.
template <typename Record>
void follow_others(Record &record,
                   const std::vector<const Field<Record> *> &said) {
  for (const Field<Record> *field : in_text_order<Record>())
    if (field->follow &&
        std::find(said.begin(), said.end(), field) == said.end())
      field->follow(record);
}

/// The inverse of text_of: `record` has what is left out. Throws UserError.
template <typename Record>
Record parse_text(const std::string &text, const RecordWords &about,
                  Record record = {}) {
  std::vector<std::string> words = split(text, ' ');
  std::vector<const Field<Record> *> said;
  std::size_t i = about.shape.empty() ? 0 : 1;
  if (i == 1)
    read_sizes(record, text, words, about);
  for (; i < words.size(); ++i) {
    bool is_arrow = words[i] == "->" && result_field<Record>();
    const Field<Record> *field =
        is_arrow ? result_field<Record>() : field_of<Record>(words[i]);
    if (!field)
      throw UserError(fmt::format("unknown {} field '{}': {}", about.what,
                                  words[i], known_words<Record>(about)));
    if (is_arrow)
      field->read(record, ++i < words.size() ? words[i] : "");
    else
      field->read(record, field->form == FieldForm::value ||
                                  field->form == FieldForm::flag
                              ? key_value(words[i]).second
                              : words[i]);
    said.push_back(field);
  }
  follow_others(record, said);
  return record;
}

/// The fields' parts of a kernel's name, in the order of the table: of the
/// sizes, or of all others.
template <typename Record>
std::string name_of(const Record &record, bool is_of_sizes) {
  std::string text;
  for (const Field<Record> &field : Record::fields())
    if (field.in_name && (field.form == FieldForm::size) == is_of_sizes)
      text += field.in_name(record);
  return text;
}

/// Throw UserError where a field has a value that no kernel for the device has.
template <typename Record>
void check_fields(const Record &record, const DeviceDescription &device) {
  for (const Field<Record> *field : in_text_order<Record>())
    if (field->check)
      field->check(record, device);
}

} // namespace kiln::fields
