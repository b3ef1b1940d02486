// fields.h: problems and schedules by their fields: a row for each, from which
// text, JSON, options of commands, names of kernels and refusals follow.
//
//     for (const Field<GemmProblem> &field : GemmProblem::fields())
//       std::cout << field.key << ": " << field.help << "\n";
#pragma once

#include <kiln/base/export.h>
#include <kiln/run/device_description.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace KILN_API kiln {

/// Where a field stands in the text. The text has them in this order, those of
/// one form in the order of the table.
enum class FieldForm : std::uint8_t {
  size,   ///< first, with x between: "4096x4096x1024"
  type,   ///< its value alone: "bf16"
  result, ///< behind an arrow: "-> f32"
  word,   ///< its value alone, one of some words: "tn"
  value,  ///< "lda=1032"
  flag,   ///< its key alone, where it is on: "alpha"
};

/// How a command takes a field.
enum class FieldOption : std::uint8_t {
  value, ///< --lda 1032
  flag,  ///< --masked, which stands for one value
  /// The command declares it: sizes, which have no dashes, and what comes with
  /// numbers of the launch.
  command,
};

template <typename Record> struct Field {
  std::string_view key;  ///< in text and JSON: "lda"
  std::string_view help; ///< of the option
  FieldForm form = FieldForm::value;
  std::string_view option = {}; ///< without dashes, where it is not the key
  std::string_view label = {};  ///< in messages, where it is not the key
  FieldOption taken = FieldOption::value;
  std::string_view flag_value = "on"; ///< what a flag of a command stands for
  bool is_always_said = false; ///< in the text and JSON, also where it is usual
  bool is_open = false;        ///< 0 stands for what fits the rest
  /// What stands for its value in a help text: "N"; empty: WORD.
  std::string_view value = {};

  std::string (*get)(const Record &) = nullptr;
  /// Throws UserError where the text is no value of it; `label` is for that.
  void (*set)(Record &, std::string_view label,
              const std::string &text) = nullptr;
  /// The values it takes, with commas between, where they are few; else null.
  std::string (*words)() = nullptr;
  /// What it is where nobody says it, if that follows from other fields; else
  /// it is as in Record().
  void (*follow)(Record &) = nullptr;
  /// Its part of a kernel's name, "_lda_1032"; empty, or null: none.
  std::string (*in_name)(const Record &) = nullptr;
  /// Throws UserError where no kernel for the device has such a value.
  void (*check)(const Record &, const DeviceDescription &) = nullptr;

  std::string_view option_name() const { return option.empty() ? key : option; }
  void read(Record &record, const std::string &text) const {
    set(record, label.empty() ? key : label, text);
  }
  /// Whether it is as it would be if nobody said it.
  bool is_usual(const Record &record) const {
    Record usual = follow ? record : Record();
    if (follow)
      follow(usual);
    return get(record) == get(usual);
  }
};

} // namespace kiln
