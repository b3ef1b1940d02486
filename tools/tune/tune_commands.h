// tune_commands.h: the commands of `kiln tune` beside its own.
#pragma once

#include "options/command_line.h"
#include "commands.h"

#include <string>

namespace kiln::cli {

/// The database to use: the one asked for, else that of this process. Throws
/// UserError where there is none.
std::string chosen_database(const std::string &asked);

/// show, merge
void add_database_commands(Command tune, Action &action);
/// configs
void add_configs_command(Command tune, Action &action);

} // namespace kiln::cli
