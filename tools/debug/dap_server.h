// dap_server: the Debug Adapter Protocol over a Debugger, for VS Code, Neovim,
// Emacs and whoever else speaks it.
#pragma once

#include "debug/dap_stream.h"
#include "debug/debug_job.h"

#include <functional>
#include <map>
#include <span>

namespace kiln::cli {

/// Serve stdin and stdout until the client leaves. What the command line names
/// is used where the client's launch request names nothing.
ExitStatus run_dap(const DebugWords &words);

class DapServer {
public:
  using Json = nlohmann::json;

  DapServer(int input, int output, DebugWords words);
  /// Until the client leaves.
  void serve();

private:
  using Handler = Json (DapServer::*)(const Json &arguments);
  struct Row {
    const char *command;
    Handler answer;
    /// What is done behind the response: it may take long.
    void (DapServer::*after)(const Json &arguments) = nullptr;
  };
  static std::span<const Row> rows();

  void handle(const Json &request);
  void event(const char *name, Json body);
  /// Ask the debugger. Throws UserError where it refuses.
  Json ask(Json command);
  void glance(const Json &message);

  // Requests (dap_requests.cpp).
  Json initialize(const Json &arguments);
  Json launch(const Json &arguments);
  void launched(const Json &arguments);
  Json set_breakpoints(const Json &arguments);
  Json set_function_breakpoints(const Json &arguments);
  Json set_instruction_breakpoints(const Json &arguments);
  Json set_exception_breakpoints(const Json &arguments);
  Json data_breakpoint_info(const Json &arguments);
  Json set_data_breakpoints(const Json &arguments);
  Json nothing(const Json &arguments);
  Json all_continue(const Json &arguments);
  void configured(const Json &arguments);
  void run_continue(const Json &arguments);
  void run_reverse(const Json &arguments);
  void run_next(const Json &arguments);
  void run_step_in(const Json &arguments);
  void run_step_out(const Json &arguments);
  void run_step_back(const Json &arguments);
  Json leave(const Json &arguments);
  /// Run a command that moves, and tell where it stopped.
  void move(Json command, const char *reason);
  void step(const Json &arguments, const char *line, const char *instruction);
  void focus_on(std::uint64_t thread);
  Json replace_stops(std::vector<int> &ids, const Json &wanted,
                     const std::function<Json(const Json &)> &command_of);

  // Views (dap_views.cpp).
  Json threads(const Json &arguments);
  Json stack_trace(const Json &arguments);
  Json scopes(const Json &arguments);
  Json variables(const Json &arguments);
  Json evaluate(const Json &arguments);
  Json source(const Json &arguments);
  Json read_memory(const Json &arguments);
  Json disassemble(const Json &arguments);
  Json exception_info(const Json &arguments);
  Json source_of(const Json &frame);
  std::size_t handle_of(Json what);
  Json shared_variables(const Json &what, const Json &arguments);

  DebugWords words_;
  std::unique_ptr<DapStream> stream_;
  std::unique_ptr<Debugger> debugger_;
  std::mutex mutex_; ///< of debugger_, which the reader interrupts
  bool is_over_ = false, has_ended_ = false, stops_on_entry_ = false;
  std::map<std::string, std::vector<int>> source_stops_;
  std::vector<int> function_stops_, instruction_stops_, data_stops_;
  Json reason_;                 ///< of the last stop
  Json stopped_;                ///< the thread that it was
  /// What a number that the client was given stands for, until it runs on.
  std::vector<Json> handles_;
  std::map<std::uint64_t, Json> threads_; ///< by the client's number
};

} // namespace kiln::cli
