// error.h: the three kinds of error Kiln throws, and the exit status of each.
//
// Everything Kiln refuses is an exception of one of these types; nothing a user
// can reach aborts the process. A message carries the values, the place and
// what would be accepted, so `what()` is ready to be shown.
#pragma once

#include <kiln/base/export.h>
#include <kiln/base/where.h>

#include <stdexcept>
#include <string>

namespace KILN_API kiln {

/// A line of the user's source: where a kernel said what is complained about.
struct SourceLine {
  std::string file;
  unsigned line = 0; ///< 0: unknown

  SourceLine() = default;
  SourceLine(std::string file, unsigned line)
      : file(std::move(file)), line(line) {}
  SourceLine(const Where &where) : file(where.file), line(where.line) {}

  bool is_known() const { return line != 0; }
};

/// What every command of Kiln exits with.
enum class ExitStatus : int {
  ok = 0,       ///< all right; warnings allowed, or done without verification
  wrong = 1,    ///< a comparison with the reference failed
  finding = 2,  ///< a check of the simulator found an error
  refused = 3,  ///< bad usage, bad input, a kernel that cannot be built
  machine = 4,  ///< the driver or the machine failed
  internal = 5, ///< a defect of Kiln's own
  unsupported = 6, ///< the program called what Kiln does not have (--strict)
};

/// The common base. `what()` is "file:line: message" where a place is known.
class Error : public std::runtime_error {
public:
  const std::string &message() const { return message_; }
  const SourceLine &where() const { return where_; }
  ExitStatus exit_status() const { return status_; }

protected:
  Error(ExitStatus status, SourceLine where, std::string message);

private:
  ExitStatus status_;
  SourceLine where_;
  std::string message_;
};

/// The kernel, or what was asked of it, is wrong; the message says what would
/// be accepted.
class UserError : public Error {
public:
  explicit UserError(std::string message);
  UserError(SourceLine where, std::string message);
};

/// The driver, a tool or the machine failed: which call, with what result, and
/// what was being done.
class RuntimeError : public Error {
public:
  explicit RuntimeError(std::string message);
};

/// A defect of Kiln's own; `what()` ends with what to send us.
class InternalError : public Error {
public:
  explicit InternalError(std::string message);
};

} // namespace kiln
