// check_flags: the options of checks on the command line, as the table of
// kiln/check/options.h has them.
#pragma once

#include "command_line.h"

#include <kiln/check/options.h>

#include <deque>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cli {

class CheckFlags {
public:
  explicit CheckFlags(
      std::span<const CheckOption> options = check_options())
      : options_(options) {}

  /// Declare those of a door (OptionDoor), but for those that mean more in a
  /// command.
  void add_to(Command command, unsigned doors,
              std::initializer_list<std::string_view> but_for = {});
  /// As if somebody had written --NAME TEXT.
  void give(const std::string &name, const std::string &text);

  /// Throws UserError where a value is none of the accepted ones.
  CheckSettings settings() const;
  /// Refuse files and folders that could not be written after the work. Throws
  /// UserError.
  void check_outputs() const;
  /// What was written, for a program of its own: KILN_NAME and its value.
  std::vector<std::pair<std::string, std::string>> variables() const;

private:
  /// An option of the command line; CLI11 writes what it was given.
  struct Flag {
    const CheckOption *option;
    bool is_on = false;                         ///< a flag
    std::vector<std::string> texts, old_texts;  ///< a list
    std::optional<std::string> text, old_text;  ///< anything else

    /// Each word that was written, and as what: "--seed".
    std::vector<std::pair<std::string, std::string>> given() const;
  };

  std::span<const CheckOption> options_;
  std::deque<Flag> flags_; ///< CLI11 keeps their addresses
};

} // namespace kiln::cli
