// Commands: what a debugger can be asked, as text and as JSON: one table.
#pragma once

#include "sim/debug/Session.h"

#include <span>

namespace kiln::sim {

struct CommandParameter {
  enum class Kind : std::uint8_t {
    word,
    number,
    rest,      ///< everything up to the end, or up to a lone `if`
    list,      ///< the same, word by word
    flag,      ///< its own name
    condition, ///< behind a lone `if`
  };
  const char *name;
  Kind kind = Kind::word;
  bool isRequired = false;
};

struct CommandRow {
  const char *name, *alias; ///< `alias`: null where there is none
  std::vector<CommandParameter> parameters;
  const char *help;
  std::function<nlohmann::json(DebugSession &, const nlohmann::json &)> run;
};

std::span<const CommandRow> commandRows();
/// "step [COUNT]"
std::string usageOf(const CommandRow &row);
/// A line of text or an object of JSON, as {"command": NAME, arguments ...}.
/// Throws UserError with what would be accepted.
nlohmann::json readCommand(std::string_view text);
const CommandRow &rowOf(std::string_view name);

} // namespace kiln::sim
