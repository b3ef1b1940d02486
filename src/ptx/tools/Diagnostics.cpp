// Diagnostics: what ptxas says, as data.
//
// Read by hand rather than by regular expressions: mangled names make lines of
// many kilobytes, which std::regex answers by running out of stack.
#include "ptx/tools/Diagnostics.h"

#include "ptx/Entries.h"
#include "ptx/SourceLines.h"
#include "support/text/PtxText.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace kiln {

using std::string_view;

/// Take `prefix` off the front of `text`; false: it does not begin so.
static bool take(string_view &text, string_view prefix) {
  if (!text.starts_with(prefix))
    return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// `text` without the blanks around it.
static string_view trim(string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r"), text.size()));
  return text.substr(0, text.find_last_not_of(" \t\r") + 1);
}

/// Take "error   : " and the like off the front of `text`.
static std::optional<string_view> takeSeverity(string_view &text) {
  for (string_view severity : {"info", "warning", "error", "fatal"}) {
    string_view rest = text;
    if (!take(rest, severity))
      continue;
    rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    if (!take(rest, ":"))
      continue;
    text = trim(rest);
    return severity;
  }
  return std::nullopt;
}

/// The severity, line, id and words of a line that begins with "ptxas".
static std::optional<AssembleDiagnostic> parseLine(string_view line) {
  if (!take(line, "ptxas "))
    return std::nullopt;
  AssembleDiagnostic parsed;
  std::optional<string_view> severity = takeSeverity(line);
  if (!severity) {
    std::size_t place = line.find(", line ");
    if (place == string_view::npos)
      return std::nullopt;
    line.remove_prefix(place + string_view(", line ").size());
    parsed.ptx_line = takeNumber(line).value_or(0);
    if (!take(line, "; "))
      return std::nullopt;
    severity = takeSeverity(line);
    if (!severity)
      return std::nullopt;
  }
  parsed.severity = *severity;
  string_view rest = line;
  if (take(rest, "(C")) {
    std::size_t close = rest.find(')');
    bool isNumber = close != string_view::npos && close > 0 &&
                    rest.find_first_not_of("0123456789") == close;
    if (isNumber) {
      parsed.id = "C" + std::string(rest.substr(0, close));
      line = trim(rest.substr(close + 1));
    }
  }
  parsed.message = line;
  return parsed;
}

/// The function a message names: "in the function 'f'", "in function f." or
/// "Entry function 'f' uses ...". An extern function is what is missing, not
/// where.
static std::string functionNamedIn(string_view message) {
  for (std::size_t at = message.find("function "); at != string_view::npos;
       at = message.find("function ", at + 1)) {
    if (message.substr(0, at).ends_with("extern "))
      continue;
    string_view rest = message.substr(at + string_view("function ").size());
    bool isQuoted = take(rest, "'");
    bool isAfterIn = message.substr(0, at).ends_with("in ");
    if (!isQuoted && !isAfterIn)
      continue;
    auto end = std::find_if_not(rest.begin(), rest.end(), isNameCharacter);
    return std::string(rest.begin(), end);
  }
  return {};
}

/// The PTX line that the words give: "in around line 20 by", "at line 141 in".
static int lineNamedIn(string_view message) {
  for (string_view before : {"around line ", "at line "}) {
    std::size_t at = message.find(before);
    if (at == string_view::npos)
      continue;
    string_view rest = message.substr(at + before.size());
    if (std::optional<int> line = takeNumber(rest))
      return *line;
  }
  return 0;
}

/// The number that stands before `unit` in a list such as "Used 8 registers,
/// used 2 barriers, 1024+16 bytes smem"; all of them added up.
static int sumBefore(string_view list, string_view unit) {
  int sum = 0;
  for (std::size_t at = list.find(unit); at != string_view::npos;
       at = list.find(unit, at + 1)) {
    string_view before = list.substr(0, at);
    before = before.substr(before.find_last_not_of("0123456789+") + 1);
    while (std::optional<int> number = takeNumber(before)) {
      sum += *number;
      if (!take(before, "+"))
        break;
    }
  }
  return sum;
}

namespace {

/// Collects the counts, which come as lines that follow each other.
class CountReader {
public:
  explicit CountReader(std::map<std::string, ResourceUse> &resources)
      : resources_(resources) {}

  /// Is this message ("ptxas info : " taken off) one of the counts?
  bool readMessage(string_view message);
  /// The line below "Function properties for".
  bool readProperties(string_view line);

private:
  std::map<std::string, ResourceUse> &resources_;
  std::string entry_;    ///< being compiled: whose registers come next
  std::string function_; ///< whose properties come next
};

} // namespace

bool CountReader::readMessage(string_view message) {
  string_view rest = message;
  if (take(rest, "Compiling entry function '")) {
    entry_ = rest.substr(0, rest.find('\''));
    return true;
  }
  if (take(rest, "Function properties for ")) {
    take(rest, "'");
    auto end = std::find_if_not(rest.begin(), rest.end(), isNameCharacter);
    function_.assign(rest.begin(), end);
    return true;
  }
  if (take(rest, "Used ")) {
    ResourceUse &use = resources_[entry_];
    use.registers = sumBefore(message, " registers");
    use.barriers = sumBefore(message, " barriers");
    use.static_smem_bytes = sumBefore(message, " bytes smem");
    use.constant_bytes = sumBefore(message, " bytes cmem[");
    return true;
  }
  return message.starts_with("Compile time = ") ||
         message.find(" bytes gmem") != string_view::npos;
}

bool CountReader::readProperties(string_view line) {
  if (line.find(" bytes stack frame") == string_view::npos)
    return false;
  ResourceUse &use = resources_[function_];
  use.stack_bytes = sumBefore(line, " bytes stack frame");
  use.spill_store_bytes = sumBefore(line, " bytes spill stores");
  use.spill_load_bytes = sumBefore(line, " bytes spill loads");
  return true;
}

/// The only function with this instruction in it, and the line of the first
/// one there. A message without a line still speaks of one instruction.
static int lineOfInstruction(string_view code, string_view instruction,
                             const std::vector<PtxFunction> &functions,
                             string_view onlyIn) {
  std::size_t found = string_view::npos;
  for (const PtxFunction &function : functions) {
    if (!onlyIn.empty() && function.name != onlyIn)
      continue;
    std::size_t at =
        findWord(code.substr(0, function.end), instruction, function.begin);
    if (at == string_view::npos)
      continue;
    if (found != string_view::npos)
      return 0;
    found = at;
  }
  if (found == string_view::npos)
    return 0;
  return 1 +
         static_cast<int>(std::count(code.begin(), code.begin() + found, '\n'));
}

/// Add what the message's words and the PTX say: function, line, cause, place.
static void complete(std::vector<AssembleDiagnostic> &diagnostics,
                     string_view ptx) {
  if (diagnostics.empty())
    return;
  SourceLines sources(ptx);
  std::vector<PtxFunction> functions = findFunctions(ptx);
  std::string code = blankCommentsAndStrings(ptx);
  for (AssembleDiagnostic &diagnostic : diagnostics) {
    diagnostic.function = functionNamedIn(diagnostic.message);
    if (diagnostic.ptx_line == 0)
      diagnostic.ptx_line = lineNamedIn(diagnostic.message);
    const KnownDiagnostic *known = findKnownDiagnostic(diagnostic.id);
    if (known)
      diagnostic.cause = known->cause;

    int line = diagnostic.ptx_line;
    if (line == 0 && known && *known->instruction)
      line = lineOfInstruction(code, known->instruction, functions,
                               diagnostic.function);
    diagnostic.where = sources.at(line);
    if (!diagnostic.where.is_known())
      diagnostic.where = sources.firstIn(diagnostic.function);
  }
}

PtxasOutput parsePtxasOutput(string_view output, string_view ptx) {
  PtxasOutput result;
  CountReader counts(result.resources);
  bool isMessageOpen = false;
  while (!output.empty()) {
    string_view line = output.substr(0, output.find('\n'));
    output.remove_prefix(std::min(line.size() + 1, output.size()));
    if (std::optional<AssembleDiagnostic> parsed = parseLine(line)) {
      isMessageOpen = !counts.readMessage(parsed->message);
      if (isMessageOpen)
        result.diagnostics.push_back(std::move(*parsed));
      continue;
    }
    if (counts.readProperties(line) || !isMessageOpen || trim(line).empty())
      continue;
    result.diagnostics.back().message += fmt::format(" {}", trim(line));
  }
  complete(result.diagnostics, ptx);
  return result;
}

bool isRefusal(const AssembleDiagnostic &diagnostic) {
  return diagnostic.severity == "error" || diagnostic.severity == "fatal";
}

bool isSlowdown(const AssembleDiagnostic &diagnostic) {
  return diagnostic.id.starts_with("C75");
}

std::string AssembleDiagnostic::to_string() const {
  std::string text;
  if (where.is_known())
    text += fmt::format("{}:{}: ", where.file, where.line);
  text += severity;
  if (!id.empty())
    text += " " + id;
  text += ": " + message;
  if (ptx_line != 0)
    text += fmt::format(" (PTX line {})", ptx_line);
  if (!cause.empty())
    text += "\n    " + cause;
  return text;
}

} // namespace kiln
