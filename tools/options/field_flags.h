// field_flags: the fields of a problem or a schedule on the command line, as
// their table has them (kiln/kernels/fields.h).
#pragma once

#include "command_line.h"

#include <kiln/kernels/fields.h>

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// All fields with an option of their own.
template <typename Record> class FieldFlags {
public:
  /// Declare these alone; with none, all of them.
  void add_to(Command command, const std::vector<std::string_view> &keys = {}) {
    for (const Field<Record> &field : Record::fields())
      if (field.taken != FieldOption::command &&
          (keys.empty() ||
           std::find(keys.begin(), keys.end(), field.key) != keys.end()))
        declare(command, field);
  }

  /// Set what was given, and what follows from it. Throws UserError.
  void apply_to(Record &record) const {
    for (const Flag &flag : flags_)
      if (flag.is_given())
        flag.field->read(record, flag.given());
    for (const Field<Record> &field : Record::fields())
      if (field.follow && !is_given(field.key))
        field.follow(record);
  }
  bool is_given(std::string_view key) const {
    return std::any_of(flags_.begin(), flags_.end(), [&](const Flag &flag) {
      return flag.field->key == key && flag.is_given();
    });
  }
  bool is_any_given() const {
    return std::any_of(flags_.begin(), flags_.end(),
                       [](const Flag &flag) { return flag.is_given(); });
  }

private:
  /// An option of the command line, which writes what it was given.
  struct Flag {
    const Field<Record> *field;
    std::vector<std::string> texts = {}; ///< one at most
    bool is_on = false;

    bool is_given() const { return is_on || !texts.empty(); }
    std::string given() const {
      return is_on ? std::string(field->flag_value) : texts.back();
    }
  };

  void declare(Command command, const Field<Record> &field) {
    Flag &flag = flags_.emplace_back(Flag{&field});
    std::string name = "--" + std::string(field.option_name());
    std::string help(field.help);
    if (field.taken == FieldOption::flag) {
      command.add_flag(name, flag.is_on, help);
      return;
    }
    Option option = command.add_option(name, flag.texts, help).expected(1);
    option.value_name(std::string(field.value.empty() ? "WORD" : field.value));
    // Values are left out where they are usual; words that stand alone are not.
    if (field.form < FieldForm::value && !field.follow)
      option.default_text(field.get(Record()));
  }

  std::deque<Flag> flags_; ///< CLI11 keeps their addresses
};

/// The row of that key.
template <typename Record>
const Field<Record> &field_named(std::string_view key) {
  auto fields = Record::fields();
  return *std::find_if(
      fields.begin(), fields.end(),
      [&](const Field<Record> &field) { return field.key == key; });
}
template <typename Record> std::string help_of(std::string_view key) {
  return std::string(field_named<Record>(key).help);
}

/// What --help says of the sizes, which have no dashes: "groups, rows of each".
template <typename Record> std::string sizes_help() {
  std::string text;
  for (const Field<Record> &field : Record::fields())
    if (field.form == FieldForm::size)
      text += (text.empty() ? "" : ", ") + std::string(field.help);
  return text;
}

/// Set the sizes, as many as the table has, in its order.
template <typename Record>
void set_sizes(Record &record, const std::vector<std::string> &sizes) {
  std::size_t next = 0;
  for (const Field<Record> &field : Record::fields())
    if (field.form == FieldForm::size)
      field.read(record, sizes.at(next++));
}

} // namespace kiln::cli
