// dap_server: the table of requests, and the loop.
#include "debug/dap_server.h"

#include <kiln/base/error.h>

#include <csignal>
#include <fcntl.h>
#include <unistd.h>

namespace kiln::cli {

ExitStatus run_dap(const DebugWords &words) {
  // Whatever else is printed is no part of the protocol.
  int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  if (output < 0)
    throw RuntimeError("stdout cannot be duplicated");
  dup2(STDERR_FILENO, STDOUT_FILENO);
  DapServer(STDIN_FILENO, output, words).serve();
  return ExitStatus::ok;
}

DapServer::DapServer(int input, int output, DebugWords words)
    : words_(std::move(words)) {
  stream_ = std::make_unique<DapStream>(
      input, output, [this](const Json &message) { glance(message); });
}

void DapServer::glance(const Json &message) {
  if (!message.is_object() || !message.contains("command"))
    return;
  const Json &command = message["command"];
  if (command != "pause" && command != "disconnect" && command != "terminate")
    return;
  std::lock_guard lock(mutex_);
  if (debugger_)
    debugger_->interrupt();
}

std::span<const DapServer::Row> DapServer::rows() {
  using S = DapServer;
  static const Row kRows[] = {
      {"initialize", &S::initialize},
      {"launch", &S::launch, &S::launched},
      {"setBreakpoints", &S::set_breakpoints},
      {"setFunctionBreakpoints", &S::set_function_breakpoints},
      {"setInstructionBreakpoints", &S::set_instruction_breakpoints},
      {"setExceptionBreakpoints", &S::set_exception_breakpoints},
      {"dataBreakpointInfo", &S::data_breakpoint_info},
      {"setDataBreakpoints", &S::set_data_breakpoints},
      {"configurationDone", &S::nothing, &S::configured},
      {"threads", &S::threads},
      {"stackTrace", &S::stack_trace},
      {"scopes", &S::scopes},
      {"variables", &S::variables},
      {"evaluate", &S::evaluate},
      {"source", &S::source},
      {"readMemory", &S::read_memory},
      {"disassemble", &S::disassemble},
      {"exceptionInfo", &S::exception_info},
      {"continue", &S::all_continue, &S::run_continue},
      {"reverseContinue", &S::nothing, &S::run_reverse},
      {"next", &S::nothing, &S::run_next},
      {"stepIn", &S::nothing, &S::run_step_in},
      {"stepOut", &S::nothing, &S::run_step_out},
      {"stepBack", &S::nothing, &S::run_step_back},
      {"pause", &S::nothing}, // it was seen as it came
      {"disconnect", &S::leave},
      {"terminate", &S::leave},
  };
  return kRows;
}

void DapServer::serve() {
  while (!is_over_) {
    std::optional<Json> message = stream_->next();
    if (!message)
      break;
    if (!message->is_object()) {
      event("output", {{"category", "stderr"},
                       {"output", "kiln: a message is not valid JSON, or no "
                                  "object\n"}});
      continue;
    }
    handle(*message);
  }
  std::unique_ptr<Debugger> debugger;
  {
    std::lock_guard lock(mutex_);
    debugger = std::move(debugger_);
  }
}

void DapServer::event(const char *name, Json body) {
  Json message{{"type", "event"}, {"event", name}};
  if (!body.is_null())
    message["body"] = std::move(body);
  stream_->send(std::move(message));
}

DapServer::Json DapServer::ask(Json command) {
  if (!debugger_)
    throw UserError("there is no launch yet: send `launch` first");
  Json answer = Json::parse(debugger_->request(command.dump()));
  if (!answer.value("ok", false))
    throw UserError(answer.value("error", "the debugger did not answer"));
  return answer;
}

void DapServer::handle(const Json &request) {
  auto number = request.find("seq");
  Json response{
      {"type", "response"},
      {"request_seq", number != request.end() && number->is_number_integer()
                          ? *number
                          : Json(0)},
      {"success", false}};
  std::string command;
  if (auto named = request.find("command");
      named != request.end() && named->is_string())
    command = named->get<std::string>();
  response["command"] = command;
  Json arguments = request.value("arguments", Json::object());
  auto refuse = [&](const std::string &why) {
    response["message"] = why;
    response["body"] = {
        {"error", {{"id", 1}, {"format", why}, {"showUser", true}}}};
    stream_->send(response);
  };
  const Row *found = nullptr;
  for (const Row &row : rows())
    if (command == row.command)
      found = &row;
  if (!found)
    return refuse("'" + command + "' is not supported");
  if (!debugger_ && command != "initialize" && command != "launch" &&
      command != "disconnect" && command != "terminate")
    return refuse("there is no launch yet: send `launch` first");
  try {
    Json body = (this->*found->answer)(arguments);
    response["success"] = true;
    if (!body.is_null())
      response["body"] = std::move(body);
    stream_->send(response);
  } catch (const Error &error) {
    return refuse(error.what());
  } catch (const std::exception &error) {
    return refuse(fmt::format("the arguments of {} are not valid: {}", command,
                              error.what()));
  }
  if (!found->after)
    return;
  try {
    (this->*found->after)(arguments);
  } catch (const std::exception &error) {
    event("output", {{"category", "stderr"},
                     {"output", fmt::format("kiln: {}\n", error.what())}});
    // The client waits for the end of the move.
    if (debugger_)
      event("stopped", {{"reason", "pause"},
                        {"description", error.what()},
                        {"allThreadsStopped", true}});
  }
}

} // namespace kiln::cli
