// dap_requests: requests that set something, or move.
#include "debug/dap_server.h"

#include <kiln/base/error.h>

#include <filesystem>

namespace kiln::cli {

using Json = nlohmann::json;

Json DapServer::initialize(const Json &) {
  Json filter{{"filter", "findings"},
              {"label", "Findings"},
              {"description", "Stop where a check finds something"},
              {"default", true}};
  return {{"supportsConfigurationDoneRequest", true},
          {"supportsFunctionBreakpoints", true},
          {"supportsConditionalBreakpoints", true},
          {"supportsEvaluateForHovers", true},
          {"supportsStepBack", true},
          {"supportsSteppingGranularity", true},
          {"supportsInstructionBreakpoints", true},
          {"supportsDataBreakpoints", true},
          {"supportsReadMemoryRequest", true},
          {"supportsDisassembleRequest", true},
          {"supportsExceptionInfoRequest", true},
          {"supportsTerminateRequest", true},
          {"exceptionBreakpointFilters", Json::array({filter})}};
}

/// An argument of the launch request that is a string; empty: it is not there.
static std::string text_argument(const Json &arguments, const char *key) {
  if (!arguments.contains(key))
    return "";
  if (arguments[key].is_number_unsigned())
    return arguments[key].dump();
  if (!arguments[key].is_string())
    throw UserError(fmt::format("\"{}\" of the launch request is {}; it must "
                                "be a string",
                                key, arguments[key].dump()));
  return arguments[key];
}

Json DapServer::launch(const Json &arguments) {
  if (debugger_)
    throw UserError("there is a launch already; disconnect first");
  DebugWords words = words_;
  if (std::string program = text_argument(arguments, "program");
      !program.empty()) {
    words.words = {program};
    if (arguments.contains("args"))
      for (const Json &word : arguments["args"])
        words.words.push_back(word.get<std::string>());
  }
  if (std::string text = text_argument(arguments, "launch"); !text.empty())
    words.launch = text;
  for (const char *option : {"kernel", "interleaving", "seed", "checks", "gpu"})
    if (std::string text = text_argument(arguments, option); !text.empty())
      words.check.give(option, text);
  if (std::string text = text_argument(arguments, "checkpointMemory");
      !text.empty())
    words.checkpoint_memory = text;
  stops_on_entry_ = arguments.value("stopOnEntry", false);
  std::unique_ptr<Debugger> debugger = open_debugger(words, true);
  {
    std::lock_guard lock(mutex_);
    debugger_ = std::move(debugger);
  }
  return nullptr;
}

void DapServer::launched(const Json &) { event("initialized", nullptr); }

Json DapServer::nothing(const Json &) { return nullptr; }

Json DapServer::all_continue(const Json &) {
  return {{"allThreadsContinued", true}};
}

Json DapServer::replace_stops(
    std::vector<int> &ids, const Json &wanted,
    const std::function<Json(const Json &)> &command_of) {
  for (int id : ids)
    ask({{"command", "delete"}, {"id", id}});
  ids.clear();
  Json breakpoints = Json::array();
  for (const Json &one : wanted) {
    Json made{{"verified", false}};
    try {
      Json stop = ask(command_of(one))["stop"];
      ids.push_back(stop["id"].get<int>());
      made = {{"verified", true}, {"id", stop["id"]}};
      if (stop.contains("places") && !stop["places"].empty())
        made["line"] = stop["places"][0]["line"];
    } catch (const UserError &error) {
      made["message"] = error.what();
    }
    breakpoints.push_back(std::move(made));
  }
  return {{"breakpoints", breakpoints}};
}

static Json with_condition(Json command, const Json &breakpoint) {
  if (breakpoint.contains("condition") &&
      !breakpoint["condition"].get<std::string>().empty())
    command["if"] = breakpoint["condition"];
  return command;
}

Json DapServer::set_breakpoints(const Json &arguments) {
  const Json &source = arguments.at("source");
  std::string path = source.value("path", source.value("name", ""));
  Json wanted = arguments.value("breakpoints", Json::array());
  return replace_stops(source_stops_[path], wanted, [&](const Json &one) {
    return with_condition(
        {{"command", "break"},
         {"place", fmt::format("{}:{}", path, one.at("line").get<int>())}},
        one);
  });
}

Json DapServer::set_function_breakpoints(const Json &arguments) {
  return replace_stops(
      function_stops_, arguments.at("breakpoints"), [](const Json &one) {
        return with_condition({{"command", "break"}, {"place", one.at("name")}},
                              one);
      });
}

/// The line of the PTX that an address of an instruction stands for.
static std::int64_t line_of(const std::string &reference) {
  try {
    return static_cast<std::int64_t>(std::stoull(reference, nullptr, 16));
  } catch (const std::exception &) {
    throw UserError(
        fmt::format("'{}' is no address of an instruction", reference));
  }
}

Json DapServer::set_instruction_breakpoints(const Json &arguments) {
  return replace_stops(
      instruction_stops_, arguments.at("breakpoints"), [](const Json &one) {
        std::int64_t line =
            line_of(one.at("instructionReference").get<std::string>()) +
            one.value("offset", std::int64_t(0));
        return with_condition(
            {{"command", "break"}, {"place", fmt::format("ptx:{}", line)}},
            one);
      });
}

Json DapServer::set_exception_breakpoints(const Json &arguments) {
  bool is_wanted = false;
  for (const Json &filter : arguments.at("filters"))
    is_wanted |= filter == "findings";
  ask({{"command", "findings-stop"}, {"ids", is_wanted ? "all" : "none"}});
  return nullptr;
}

Json DapServer::data_breakpoint_info(const Json &arguments) {
  std::string name = arguments.at("name");
  std::size_t open = name.find('[');
  std::string space = "shared", address = name;
  std::uint64_t bytes = arguments.value("bytes", std::uint64_t(4));
  if (open != std::string::npos && name.ends_with(']')) {
    space = name.substr(0, open);
    address = name.substr(open + 1, name.size() - open - 2);
  }
  if (space == "shared" && open != std::string::npos &&
      !arguments.contains("bytes"))
    bytes = 16; // a row of the scope
  Json id{{"space", space}, {"address", address}, {"bytes", bytes}};
  try {
    ask({{"command", "memory"},
         {"space", space},
         {"address", address},
         {"type", "u8"},
         {"count", bytes}});
  } catch (const UserError &error) {
    return {{"dataId", nullptr}, {"description", error.what()}};
  }
  return {
      {"dataId", id.dump()},
      {"description", fmt::format("{} bytes at {} {}", bytes, space, address)},
      {"accessTypes", {"write"}},
      {"canPersist", false}};
}

Json DapServer::set_data_breakpoints(const Json &arguments) {
  return replace_stops(
      data_stops_, arguments.at("breakpoints"), [](const Json &one) {
        Json id =
            Json::parse(one.at("dataId").get<std::string>(), nullptr, false);
        if (!id.is_object())
          throw UserError("the dataId is none that dataBreakpointInfo gave");
        id["command"] = "watch";
        return id;
      });
}

void DapServer::configured(const Json &) {
  if (!debugger_)
    return;
  if (stops_on_entry_)
    move({{"command", "start"}}, "entry");
  else
    move({{"command", "continue"}}, "pause");
}

void DapServer::focus_on(std::uint64_t thread) {
  auto known = threads_.find(thread);
  if (known == threads_.end())
    return; // the one that stopped is looked at
  ask({{"command", "focus"},
       {"cta", fmt::format("{},{},{}", known->second["cta"][0].dump(),
                           known->second["cta"][1].dump(),
                           known->second["cta"][2].dump())},
       {"warp", known->second["warp"]},
       {"lane", known->second["lane"]}});
}

/// What the protocol calls a kind of stop.
static const char *reason_of(const Json &reason, const char *otherwise) {
  static const std::map<std::string, const char *> kReasons = {
      {"breakpoint", "breakpoint"},
      {"watch", "data breakpoint"},
      {"finding", "exception"},
      {"phase", "breakpoint"},
      {"step", "step"},
      {"pause", "pause"},
      {"start", "entry"},
      {"thread-ended", "step"}};
  auto known = kReasons.find(reason.value("kind", ""));
  return known == kReasons.end() ? otherwise : known->second;
}

void DapServer::move(Json command, const char *otherwise) {
  handles_.clear();
  bool is_forwards = command["command"] == "continue";
  if (has_ended_ && is_forwards) {
    event("exited", {{"exitCode", 0}});
    event("terminated", Json::object());
    is_over_ = true;
    return;
  }
  Json answer = ask(std::move(command));
  reason_ = answer["reason"];
  has_ended_ = answer["position"].value("ended", false) ||
               reason_.value("kind", "") == "end";
  Json body{{"reason", reason_of(reason_, otherwise)},
            {"description", reason_["text"]},
            {"text", reason_["text"]},
            {"allThreadsStopped", true}};
  stopped_ = answer["position"]["thread"];
  threads(Json::object());
  for (const auto &[number, thread] : threads_)
    if (answer["position"]["thread"]["cta"] == thread["cta"] &&
        answer["position"]["thread"]["warp"] == thread["warp"])
      body["threadId"] = number;
  if (!body.contains("threadId"))
    body["threadId"] = threads_.empty() ? 1 : threads_.begin()->first;
  if (reason_.contains("id") && reason_["kind"] != "finding")
    body["hitBreakpointIds"] = Json::array({reason_["id"]});
  event("stopped", std::move(body));
}

void DapServer::step(const Json &arguments, const char *line,
                     const char *instruction) {
  focus_on(arguments.value("threadId", std::uint64_t(0)));
  bool is_fine = arguments.value("granularity", "") == "instruction";
  move({{"command", is_fine ? instruction : line}}, "step");
}

void DapServer::run_continue(const Json &) {
  move({{"command", "continue"}}, "pause");
}

void DapServer::run_reverse(const Json &) {
  move({{"command", "reverse-continue"}}, "pause");
}

void DapServer::run_next(const Json &arguments) {
  step(arguments, "next", "stepi");
}

void DapServer::run_step_in(const Json &arguments) {
  step(arguments, "step", "stepi");
}

void DapServer::run_step_out(const Json &arguments) {
  step(arguments, "finish", "finish");
}

void DapServer::run_step_back(const Json &arguments) {
  step(arguments, "reverse-next", "reverse-stepi");
}

Json DapServer::leave(const Json &) {
  is_over_ = true;
  return nullptr;
}

} // namespace kiln::cli
