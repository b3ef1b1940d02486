// options.h: what checks can be told, in one table.
//
// Each row is one option: its name, what it takes, what it is when nobody says
// anything, and a sentence of help. Every door reads it under that name: as
// --max-instructions on the command line, KILN_MAX_INSTRUCTIONS in the
// environment, max_instructions in C and Python. docs/options.md, the structure
// kiln_options of kiln_options.h and the completion of shells are made from it.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/explore.h>
#include <kiln/check/sim_options.h>
#include <kiln/run/environment.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

/// What the options say.
struct CheckSettings {
  SimOptions sim; ///< but for the device, interleaving and seed
  Interleavings interleavings;
  std::string gpu; ///< that is simulated; empty: what the PTX needs
  int sms = 0;     ///< of that device; 0: as it has
  std::string report_path;
  /// Nothing: where the report is a page or JSON, which shows details.
  std::optional<bool> detail;
  std::string timeline_path; ///< "-": a table on stdout; empty: none
  std::string profile_path;  ///< likewise
  // Of programs that launch kernels themselves.
  std::string kernel; ///< a regular expression; empty: all of them
  std::vector<std::uint64_t> launches; ///< numbers, from 1; empty: all of them
  std::string capture_folder;          ///< empty: none
  double total_time_limit_s = 0;       ///< of all launches; 0: none
  bool has_summary = false;            ///< a table of kernels at the end
  bool is_verbose = false;             ///< names of templates in full

  /// The device that is asked for, or else `fallback`, with as many
  /// multiprocessors as are asked for.
  DeviceDescription device(const DeviceDescription &fallback) const;
  /// `sim` with that device.
  SimOptions sim_options(const DeviceDescription &fallback =
                             DeviceDescription::h200()) const;
  /// With that device, for explore().
  ExploreOptions explore_options(const DeviceDescription &fallback =
                                     DeviceDescription::h200()) const;
};

/// A value that somebody wrote, and under which name: "--seed", "KILN_SEED".
struct OptionText {
  std::string_view spelled;
  std::string_view text;
  std::string_view accepted; ///< in words
  std::span<const char *const> words = {}; ///< CheckOption::words

  [[noreturn]] void refuse() const; ///< UserError with all three
  std::uint64_t whole(std::uint64_t least, std::uint64_t most) const;
  double not_negative() const;
  std::uint64_t bytes() const; ///< "300", "64K", "2G"
  bool on_off() const;
  std::string word() const; ///< one of `words`
};

/// What an option takes.
enum class OptionKind : std::uint8_t {
  flag,    ///< on where it is named; on or off elsewhere
  words,   ///< one of CheckOption::words
  whole,   ///< a whole number
  seconds, ///< a number from 0 on
  text,
  path, ///< of a file; -: where it goes to stdout
  folder,
  list, ///< may be said several times; with commas in the environment
};

/// Who takes an option: a mask.
enum OptionDoor : unsigned {
  door_launches = 1, ///< commands and bindings that launch kernels themselves
  door_programs = 2, ///< other people's programs: `kiln run`
  door_everywhere = 3,
};

struct CheckOption {
  const char *name; ///< "max-instructions"
  OptionKind kind;
  const char *value;    ///< what stands for it in a help text: "N"
  const char *accepted; ///< in words
  const char *fallback; ///< what it is when nobody says anything, in words
  const char *help;
  unsigned doors;
  std::vector<const char *> words; ///< that it takes, where they are few
  const char *old_name;            ///< also understood; null: none
  void (*set)(CheckSettings &settings, const OptionText &text);
};

/// The table. New rows go to its end: kiln_options has its members in this
/// order.
std::span<const CheckOption> check_options();

/// "KILN_MAX_INSTRUCTIONS", "max_instructions"
std::string variable_name(const CheckOption &option);
std::string key_name(const CheckOption &option);

/// Set one; `spelled` is how it was named there. Throws UserError that says what
/// is accepted.
void set_option(CheckSettings &settings, const CheckOption &option,
                std::string_view spelled, std::string_view text);
/// The same where a list has all its words in one text, with commas.
void set_value(CheckSettings &settings, const CheckOption &option,
               std::string_view spelled, std::string_view text);
/// "seed=7,checks=off", as the C interface and captures have it; a key may be
/// there several times. Throws UserError that lists the keys where there is none
/// of that name.
void set_options(CheckSettings &settings, std::string_view text,
                 std::span<const CheckOption> options = check_options());
/// What the environment says, to the options of that door. `read` gives the
/// value of a variable, or nothing.
using ReadVariable =
    std::function<std::optional<std::string>(const std::string &variable)>;
void set_from_environment(
    CheckSettings &settings, unsigned doors, const ReadVariable &read,
    std::span<const CheckOption> options = check_options());

/// Those variables with the values in force, for `kiln env`.
std::vector<Setting>
option_variables(std::span<const CheckOption> options = check_options());

/// The table of docs/options.md, in Markdown.
std::string
options_page(std::span<const CheckOption> options = check_options());

/// kiln/c/kiln_options.h.
std::string
options_header(std::span<const CheckOption> options = check_options());
/// What somebody has filled in of its structure, of which `bytes` are there.
/// Throws UserError as set_option does, and where there are not as many bytes as
/// a structure can have.
void set_from_structure(
    CheckSettings &settings, const void *structure,
    std::span<const CheckOption> options = check_options());

} // namespace kiln
