// Debugger: requests to a session, and their answers.
#include "sim/debug/Commands.h"
#include "support/Error.h"

namespace kiln {

class Debugger::Session : public sim::DebugSession {
  using DebugSession::DebugSession;
};

Debugger::Debugger(LaunchJob job, const DebugOptions &options)
    : session_(std::make_unique<Session>(std::move(job), options)) {}

Debugger::~Debugger() = default;

static nlohmann::json helpAnswer(const nlohmann::json &command) {
  nlohmann::json list = nlohmann::json::array();
  for (const DebugCommand &row : debug_commands())
    if (!command.contains("name") || command["name"] == row.name ||
        command["name"] == row.alias)
      list.push_back(
          {{"usage", row.usage}, {"alias", row.alias}, {"help", row.help}});
  if (list.empty())
    sim::rowOf(command["name"].get<std::string>()); // says what there is
  return {{"commands", list}};
}

std::string Debugger::request(std::string_view text) {
  nlohmann::json answer;
  std::string name;
  session_->beginRequest();
  try {
    nlohmann::json command = sim::readCommand(text);
    name = command["command"];
    const sim::CommandRow &row = sim::rowOf(name);
    answer = name == "help" ? helpAnswer(command) : row.run(*session_, command);
    answer["ok"] = true;
  } catch (const Error &error) {
    answer = {{"ok", false}, {"error", error.what()}};
  } catch (const std::exception &error) {
    answer = {
        {"ok", false},
        {"error", fmt::format("the request is not valid: {}", error.what())}};
  }
  answer["command"] = name;
  return answer.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void Debugger::interrupt() noexcept { session_->interrupt(); }

std::vector<DebugCommand> debug_commands() {
  std::vector<DebugCommand> all;
  for (const sim::CommandRow &row : sim::commandRows())
    all.push_back(
        {row.name, row.alias ? row.alias : "", sim::usageOf(row), row.help});
  return all;
}

std::string debug_commands_page() {
  std::string page = "| command | short | what it does |\n|---|---|---|\n";
  for (const DebugCommand &row : debug_commands())
    page +=
        fmt::format("| `{}` | {} | {} |\n", row.usage,
                    row.alias.empty() ? "" : "`" + row.alias + "`", row.help);
  return page;
}

} // namespace kiln
