// program: other people's programs: found as a shell finds them, and run to
// their end.
#pragma once

#include <string>
#include <vector>

namespace kiln::cli {

/// A variable of the environment; empty: it is not set.
std::string variable(const char *name);

/// The file that a shell would run; empty: there is none.
std::string find_in_path(const std::string &name);

/// Run a program to its end; what waitpid says of it. Ctrl-C is the program's.
/// Where they are not empty, its stdout and stderr go to these files.
int run_program(const std::string &path, const std::vector<std::string> &words,
                const std::string &out = "", const std::string &error = "");

} // namespace kiln::cli
