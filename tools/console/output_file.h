// output_file: the files a command writes, asked for before its work and
// written after it.
#pragma once

#include <kiln/base/error.h>

#include <functional>
#include <string>
#include <vector>

namespace kiln::cli {

/// Write to the file, or to stdout where `path` is empty: a terminal gets it
/// with control characters escaped.
void write_output(const std::string &path, const std::string &text);

/// Refuse an option whose file could not be written after the work; an empty
/// path is one that was not given. Throws UserError: "--report FILE cannot be
/// written: ...".
void check_output(const char *option, const std::string &path);
/// Make the folder of an option. Throws UserError.
void make_folder(const char *option, const std::string &folder);

/// What is written after the work. A failure is kept until the verdict has been
/// printed: what was found out is worth more than the file.
class Outputs {
public:
  /// Write; an Error is kept.
  void attempt(const std::function<void()> &write);
  /// Tell on stderr what could not be written. The status of the command: that
  /// of the verdict, unless it is ok and an output is missing.
  ExitStatus conclude(ExitStatus verdict) const;

private:
  std::vector<std::string> failures_;
};

} // namespace kiln::cli
