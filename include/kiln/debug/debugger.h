// debugger.h: launches that are stopped, looked at, and run forwards and
// backwards.
//
//     Debugger debugger(LaunchJob::load("", "launch.json"), {});
//     debugger.request("break gemm.cpp:12 if %r3 > 7");
//     std::string stop = debugger.request("continue");
//     debugger.request("reverse-step");
//     puts(debug_text(debugger.request("registers")).c_str());
//
// A command is a line of text, as the console of `kiln debug` takes it, or an
// object of JSON; an answer is an object of JSON. docs/debug.md has the
// commands.
//
// The launches are simulated by processes of their own, in one interleaving,
// which is the same whenever it is executed again: going backwards is going
// forwards from a checkpoint. Time is the number of warp instructions that were
// executed before.
#pragma once

#include <kiln/base/export.h>
#include <kiln/check/launch_file.h>
#include <kiln/check/sim_options.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace KILN_API kiln {

struct DebugOptions {
  /// Interleaving, seed, checks and limits; threads are ignored, for there is
  /// one. Its device is the one to simulate where `has_device` is set, else the
  /// PTX says.
  SimOptions sim;
  bool has_device = false;
  /// The first launch of the job that is debugged; those before it run before.
  std::size_t first_launch = 1;
  /// Stop on findings of grade warning and error until told otherwise.
  bool stops_on_findings = true;
  /// What checkpoints may take of the host's memory, beside what they share
  /// with one another (their proportional set sizes, added up). The oldest
  /// thin out; at least the beginning is kept.
  std::uint64_t checkpoint_memory_bytes = std::uint64_t(1) << 30;
  std::size_t max_checkpoints = 64;
  /// A checkpoint is made after so much time of simulation.
  double checkpoint_interval_ms = 60;
  /// Takes what kernels print; empty: it goes to stderr.
  std::function<void(const std::string &)> print;
};

class Debugger {
public:
  /// Throws UserError where the job is refused, and where there is no such
  /// launch. The calling process is forked.
  Debugger(LaunchJob job, const DebugOptions &options);
  ~Debugger();
  Debugger(const Debugger &) = delete;
  Debugger &operator=(const Debugger &) = delete;

  /// {"command": ..., "ok": true, ...}, or {"ok": false, "error": ...}. Nothing
  /// is thrown for a command that is refused. It returns when the launch stands
  /// still again.
  std::string request(std::string_view command);
  /// The request that is under way stops as soon as it can; from any thread and
  /// from signal handlers.
  void interrupt() noexcept;

private:
  class Session;
  std::unique_ptr<Session> session_;
};

/// An answer as the console shows it.
std::string debug_text(std::string_view answer);

/// A command: a row of the table that text is read by.
struct DebugCommand {
  std::string name, alias; ///< `alias` may be empty
  std::string usage;       ///< "step [COUNT]"
  std::string help;
};
std::vector<DebugCommand> debug_commands();
/// The table of docs/debug.md, in Markdown.
std::string debug_commands_page();

} // namespace kiln
