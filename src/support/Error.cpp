// Error: how the text of the public errors is put together.
//
// `what()` is all that most callers print, so it holds the place, the message
// and, for a defect of Kiln's own, what to send us. What it quotes from others
// can be shown on a terminal.
#include "support/Error.h"
#include "kiln/base/text.h"

#include <mutex>
#include <set>

namespace kiln {

Where Where::at(std::string_view file, unsigned line, unsigned column) {
  static std::mutex mutex;
  static std::set<std::string, std::less<>> names;
  std::lock_guard lock(mutex);
  auto name = names.find(file);
  if (name == names.end())
    name = names.emplace(file).first;
  return {name->c_str(), line, column};
}

/// What quotes a stranger's text does not grow with it.
static constexpr std::size_t kLongestError = 65536;

/// "file:line: message", and the plea for a report where Kiln is at fault.
static std::string composeWhat(ExitStatus status, const SourceLine &where,
                               const std::string &message) {
  std::string text = message;
  if (where.is_known())
    text = fmt::format("{}:{}: {}", where.file, where.line, message);
  if (status != ExitStatus::internal)
    return text;
  return text + "\nThis is a defect of Kiln. Please report it with the command "
                "that led here, the output of `kiln --version`, and the kernel "
                "source or PTX.";
}

Error::Error(ExitStatus status, SourceLine where, std::string message)
    : std::runtime_error(
          printable(quote(composeWhat(status, where, message), kLongestError))),
      status_(status), where_(std::move(where)),
      message_(quote(message, kLongestError)) {}

UserError::UserError(std::string message)
    : UserError(SourceLine(), std::move(message)) {}

UserError::UserError(SourceLine where, std::string message)
    : Error(ExitStatus::refused, std::move(where), std::move(message)) {}

RuntimeError::RuntimeError(std::string message)
    : Error(ExitStatus::machine, SourceLine(), std::move(message)) {}

InternalError::InternalError(std::string message)
    : Error(ExitStatus::internal, SourceLine(), std::move(message)) {}

} // namespace kiln
