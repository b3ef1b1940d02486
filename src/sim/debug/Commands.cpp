// Commands: the table, and how text and JSON are read by it.
#include "sim/debug/Commands.h"
#include "kiln/base/text.h"
#include "support/Error.h"
#include "support/text/JsonNode.h"

#include <algorithm>
#include <charconv>

namespace kiln::sim {

using Json = nlohmann::json;
using Kind = CommandParameter::Kind;

/// A command is a line, and no file.
static constexpr std::size_t kMaxCommand = 1 << 16;

using Run = Json (DebugSession::*)(const Json &);

static auto call(Run run) {
  return [run](DebugSession &session, const Json &arguments) {
    return (session.*run)(arguments);
  };
}

static auto stepping(StepRequest::Kind kind) {
  return [kind](DebugSession &session, const Json &arguments) {
    return session.step(arguments, kind);
  };
}

static auto steppingBack(StepRequest::Kind kind) {
  return [kind](DebugSession &session, const Json &arguments) {
    return session.reverseStep(arguments, kind);
  };
}

static auto looking(const char *what) {
  return [what](DebugSession &session, const Json &arguments) {
    return session.ask(what, arguments);
  };
}

static Json where(DebugSession &session, const Json &) {
  return {{"position", session.ask("position", Json::object())}};
}

static Json nothing(DebugSession &, const Json &) { return Json::object(); }

std::span<const CommandRow> commandRows() {
  using Step = StepRequest::Kind;
  static const CommandParameter kCount{"count", Kind::number};
  static const CommandParameter kCondition{"if", Kind::condition};
  static const std::vector<CommandRow> kRows = {
      {"start",
       nullptr,
       {},
       "go to the first instruction",
       call(&DebugSession::start)},
      {"continue",
       "c",
       {},
       "run until something stops the launch",
       call(&DebugSession::resume)},
      {"step",
       "s",
       {kCount},
       "run the thread to another line, into functions; the other warps run "
       "too",
       stepping(Step::line)},
      {"next", "n", {kCount}, "the same, over functions", stepping(Step::over)},
      {"finish",
       "out",
       {},
       "run until the thread has left its function",
       stepping(Step::out)},
      {"stepi",
       "si",
       {kCount},
       "one instruction of the thread",
       stepping(Step::instruction)},
      {"reverse-continue",
       "rc",
       {},
       "go back to what would have stopped the launch last",
       call(&DebugSession::reverseContinue)},
      {"reverse-step",
       "rs",
       {kCount},
       "go back to where a line of the thread began, in functions too",
       steppingBack(Step::line)},
      {"reverse-next",
       "rn",
       {kCount},
       "the same, over functions",
       steppingBack(Step::over)},
      {"reverse-finish",
       "rf",
       {},
       "go back to where the function was entered",
       steppingBack(Step::out)},
      {"reverse-stepi",
       "rsi",
       {kCount},
       "one instruction of the thread back",
       steppingBack(Step::instruction)},
      {"goto",
       nullptr,
       {{"time", Kind::number, true}},
       "go to a time: so many warp instructions have been executed",
       call(&DebugSession::goTo)},
      {"break",
       "b",
       {{"place", Kind::rest, true}, kCondition},
       "stop at FILE:LINE, ptx:LINE or a function, where the condition holds "
       "for a thread",
       call(&DebugSession::addBreakpoint)},
      {"watch",
       nullptr,
       {{"space", Kind::word, true},
        {"address", Kind::word, true},
        {"bytes", Kind::number}},
       "stop behind a write to bytes of shared or global memory",
       call(&DebugSession::addWatch)},
      {"phase",
       nullptr,
       {{"address"}, {"phase", Kind::number}},
       "stop when an mbarrier completes a phase; the first is 0",
       call(&DebugSession::addPhase)},
      {"findings-stop",
       nullptr,
       {{"ids", Kind::rest}},
       "stop on findings: all, none, or these ids",
       call(&DebugSession::setFindings)},
      {"delete",
       nullptr,
       {{"id", Kind::number}},
       "delete a breakpoint or another stop, or all of them",
       call(&DebugSession::remove)},
      {"breakpoints",
       nullptr,
       {},
       "list what stops the launch",
       call(&DebugSession::listStops)},
      {"who-wrote",
       nullptr,
       {{"space", Kind::word, true},
        {"address", Kind::word, true},
        {"bytes", Kind::number}},
       "who wrote these bytes last, and when",
       call(&DebugSession::whoWrote)},
      {"who-completed",
       nullptr,
       {{"address"}, {"phase", Kind::number}},
       "who completed the last phase of an mbarrier, or that one",
       call(&DebugSession::whoCompleted)},
      {"when-diverged",
       nullptr,
       {},
       "when the lane parted from others of its warp last",
       call(&DebugSession::whenDiverged)},
      {"focus",
       "f",
       {{"cta"}, {"warp", Kind::number}, {"lane", Kind::number}},
       "look at another thread: a CTA by its number or X,Y,Z, a warp, a lane",
       call(&DebugSession::focus)},
      {"where", "bt", {}, "the thread's instruction and frames", where},
      {"threads",
       nullptr,
       {},
       "all threads by what they do: place, role, what they wait for",
       looking("threads")},
      {"warps",
       nullptr,
       {{"most", Kind::number}},
       "warps that are under way",
       looking("warps")},
      {"registers",
       "r",
       {{"all", Kind::flag}, {"special", Kind::flag}, {"names", Kind::list}},
       "registers of the thread by their names in the PTX; all: of all lanes",
       looking("registers")},
      {"print",
       "p",
       {{"all", Kind::flag}, {"expression", Kind::rest, true}},
       "the value of an expression; all: in each lane",
       looking("print")},
      {"memory",
       "x",
       {{"space", Kind::word, true},
        {"address", Kind::word, true},
        {"type"},
        {"count", Kind::number},
        {"raw", Kind::flag}},
       "memory as elements of a type",
       looking("memory")},
      {"tile",
       nullptr,
       {{"address", Kind::word, true},
        {"rows", Kind::number, true},
        {"columns", Kind::number, true},
        {"type"},
        {"swizzle", Kind::number},
        {"pitch", Kind::number},
        {"space"}},
       "a tile through its swizzle of 0, 32, 64 or 128 bytes; pitch: bytes of "
       "a "
       "row",
       looking("tile")},
      {"tensormap",
       nullptr,
       {{"address", Kind::word, true}, {"space"}},
       "the tensor map at an address, or of a parameter by its name",
       looking("tensormap")},
      {"descriptor",
       nullptr,
       {{"address", Kind::word, true}},
       "a matrix descriptor in words; its bits are an expression",
       looking("descriptor")},
      {"mbarriers",
       nullptr,
       {},
       "the mbarriers of the CTA",
       looking("mbarriers")},
      {"async", nullptr, {}, "what the warp has in flight", looking("async")},
      {"tensor",
       nullptr,
       {{"column", Kind::number},
        {"columns", Kind::number},
        {"row", Kind::number},
        {"rows", Kind::number},
        {"type"}},
       "tensor memory: its allocations, and what is in columns",
       looking("tensor")},
      {"findings",
       nullptr,
       {},
       "what the checks have found until now",
       looking("findings")},
      {"list",
       "l",
       {{"line", Kind::number}, {"count", Kind::number}, {"file"}},
       "the source around the thread's line",
       call(&DebugSession::source)},
      {"disassemble",
       nullptr,
       {{"line", Kind::number}, {"count", Kind::number}},
       "the PTX around the thread's line",
       call(&DebugSession::listing)},
      {"checkpoints",
       nullptr,
       {},
       "checkpoints: their times and their memory",
       call(&DebugSession::checkpoints)},
      {"info",
       nullptr,
       {},
       "the job: PTX, files, launches, functions",
       call(&DebugSession::info)},
      {"help", "h", {{"name"}}, "these commands", nothing},
      {"quit", "q", {}, "end the debugger", nothing},
  };
  return kRows;
}

static std::string upper(const char *name) {
  std::string text(name);
  for (char &c : text)
    c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return text;
}

std::string usageOf(const CommandRow &row) {
  std::string text = row.name;
  for (const CommandParameter &parameter : row.parameters) {
    std::string shown = upper(parameter.name);
    if (parameter.kind == Kind::flag)
      shown = parameter.name;
    else if (parameter.kind == Kind::condition)
      shown = "if EXPRESSION";
    else if (parameter.kind == Kind::list)
      shown += "...";
    text += parameter.isRequired ? " " + shown : " [" + shown + "]";
  }
  return text;
}

const CommandRow &rowOf(std::string_view name) {
  for (const CommandRow &row : commandRows())
    if (name == row.name || (row.alias && name == row.alias))
      return row;
  std::string like;
  for (const CommandRow &row : commandRows())
    if (!name.empty() && std::string_view(row.name).starts_with(name))
      like += (like.empty() ? "" : ", ") + std::string(row.name);
  userError("'{}' is no command{}; `help` lists them", quote(name, 100),
            like.empty() ? "" : "; there is " + like);
}

namespace {
/// Reads the words behind a command by its parameters.
class CommandReader {
public:
  CommandReader(const CommandRow &row, std::string_view text)
      : row_(row), text_(text) {}

  Json read() {
    Json arguments = Json::object();
    for (const CommandParameter &parameter : row_.parameters) {
      if (parameter.kind == Kind::condition && !hasIf_) {
        std::string word = peek();
        hasIf_ = word == "if";
        if (hasIf_)
          next();
      }
      take(parameter, arguments);
    }
    if (std::string left = peek(); !left.empty())
      userError("'{}' is too much: {}", quote(left, 100), usageOf(row_));
    return arguments;
  }

private:
  void take(const CommandParameter &parameter, Json &arguments) {
    std::string word = peek();
    if (parameter.kind == Kind::flag) {
      if (word == parameter.name) {
        next();
        arguments[parameter.name] = true;
      }
      return;
    }
    if (parameter.kind == Kind::condition) {
      if (!hasIf_)
        return;
      std::string text = rest(false);
      if (text.empty())
        userError("an expression is missing behind 'if': {}", usageOf(row_));
      arguments[parameter.name] = text;
      return;
    }
    if (word.empty() || (word == "if" && parameter.kind == Kind::rest)) {
      if (parameter.isRequired)
        userError("{} is missing: {}", upper(parameter.name), usageOf(row_));
      return;
    }
    if (parameter.kind == Kind::rest) {
      arguments[parameter.name] = rest(true);
    } else if (parameter.kind == Kind::list) {
      arguments[parameter.name] = Json::array();
      for (; !word.empty(); word = peek()) {
        arguments[parameter.name].push_back(word);
        next();
      }
    } else {
      next();
      arguments[parameter.name] =
          parameter.kind == Kind::number ? number(parameter, word) : Json(word);
    }
  }
  Json number(const CommandParameter &parameter, const std::string &word) {
    std::uint64_t value = 0;
    const char *end = word.data() + word.size();
    bool isHex = word.starts_with("0x");
    auto read = std::from_chars(word.data() + (isHex ? 2 : 0), end, value,
                                isHex ? 16 : 10);
    if (read.ec != std::errc() || read.ptr != end)
      userError("{} is '{}'; it must be a whole number: {}",
                upper(parameter.name), quote(word, 100), usageOf(row_));
    return value;
  }
  void skip() {
    at_ = std::min(text_.find_first_not_of(" \t", at_), text_.size());
  }
  /// The next word; one in brackets or quotes may have spaces.
  std::string peek() {
    skip();
    end_ = at_;
    int depth = 0;
    for (; end_ < text_.size(); ++end_) {
      char c = text_[end_];
      depth += (c == '(' || c == '[') - (c == ')' || c == ']');
      if ((c == ' ' || c == '\t') && depth <= 0)
        break;
    }
    return std::string(text_.substr(at_, end_ - at_));
  }
  void next() { at_ = end_; }
  std::string rest(bool endsAtIf) {
    skip();
    std::size_t end =
        endsAtIf ? text_.find(" if ", at_) : std::string_view::npos;
    if (endsAtIf && end == std::string_view::npos && text_.ends_with(" if"))
      end = text_.size() - 3;
    end = std::min(end, text_.size());
    std::string text(text_.substr(at_, end - at_));
    at_ = end;
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
      text.pop_back();
    return text;
  }

  const CommandRow &row_;
  std::string_view text_;
  std::size_t at_ = 0, end_ = 0;
  bool hasIf_ = false;
};

/// Whether JSON is what a parameter takes.
bool isOfKind(const Json &value, Kind kind) {
  switch (kind) {
  case Kind::number:
    return value.is_number_unsigned();
  case Kind::flag:
    return value.is_boolean();
  case Kind::list:
    return value.is_array() &&
           std::all_of(value.begin(), value.end(),
                       [](const Json &one) { return one.is_string(); });
  default:
    return value.is_string();
  }
}

const char *kindText(Kind kind) {
  switch (kind) {
  case Kind::number:
    return "a whole number from 0 on";
  case Kind::flag:
    return "true or false";
  case Kind::list:
    return "a list of strings";
  default:
    return "a string";
  }
}

Json readJsonCommand(std::string_view text) {
  Json command = parseJson(text, "the command");
  if (!command.contains("command") || !command["command"].is_string())
    userError("the command has no \"command\" that is a string");
  const CommandRow &row = rowOf(command["command"].get<std::string>());
  for (const auto &[key, value] : command.items()) {
    if (key == "command" || key.starts_with("x-"))
      continue;
    auto found = std::find_if(
        row.parameters.begin(), row.parameters.end(),
        [&](const CommandParameter &one) { return key == one.name; });
    if (found == row.parameters.end())
      userError("\"{}\" is no argument of {}: {}", quote(key, 100), row.name,
                usageOf(row));
    // A CTA may be a number, as addresses may.
    if (found->kind == Kind::word && value.is_number_unsigned())
      command[key] = std::to_string(value.get<std::uint64_t>());
    else if (!isOfKind(value, found->kind))
      userError("\"{}\" of {} is {}; it must be {}", key, row.name,
                quote(value.dump(), 100), kindText(found->kind));
  }
  for (const CommandParameter &parameter : row.parameters)
    if (parameter.isRequired && !command.contains(parameter.name))
      userError("{} has no \"{}\": {}", row.name, parameter.name, usageOf(row));
  command["command"] = row.name;
  return command;
}
} // namespace

Json readCommand(std::string_view text) {
  if (text.size() > kMaxCommand)
    userError("a command of {} bytes is too long; use at most {}", text.size(),
              kMaxCommand);
  std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos)
    userError("the command is empty; `help` lists them");
  text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  if (text.front() == '{')
    return readJsonCommand(text);
  std::size_t end = std::min(text.find_first_of(" \t"), text.size());
  const CommandRow &row = rowOf(text.substr(0, end));
  Json command = CommandReader(row, text.substr(end)).read();
  command["command"] = row.name;
  return command;
}

} // namespace kiln::sim
