// SessionLooks: questions about now, and what is known without a machine: the
// text of the PTX, the processes.
#include "kiln/base/file.h"
#include "kiln/base/text.h"
#include "sim/debug/Session.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using Json = nlohmann::json;

Json DebugSession::ask(const char *what, Json arguments) {
  needLive();
  arguments["do"] = "look";
  arguments["what"] = what;
  if (!arguments.contains("thread"))
    arguments["thread"] = focus_.toJson();
  if (!runner_.send(arguments))
    runtimeError("the process that simulates has ended");
  Json message;
  for (;;) {
    Channel::Got got = runner_.receive(message, 1000);
    if (got == Channel::Got::nothing)
      continue;
    if (got == Channel::Got::closed || !message.is_object()) {
      endRunner();
      runtimeError("the process that simulates has ended; `goto` an earlier "
                   "time begins another one");
    }
    if (message.contains("error"))
      userError("{}", message["error"].get<std::string>());
    if (message.contains("answer"))
      return message["answer"];
  }
}

/// "1,0,0" or 1: a CTA by its place in the grid.
static Dim3 ctaIn(const Json &value, const LaunchDescription &launch) {
  Dim3 cta{};
  if (value.is_array())
    return value.get<Dim3>();
  std::string text =
      value.is_string() ? value.get<std::string>() : value.dump();
  std::size_t axis = 0;
  std::uint64_t numbers[3] = {};
  for (std::size_t at = 0; at <= text.size();) {
    std::size_t end = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, end - at);
    if (axis == 3 || part.empty() || part.size() > 9 ||
        part.find_first_not_of("0123456789") != std::string::npos)
      userError("'{}' is no CTA; write its number, or X,Y,Z", text);
    numbers[axis++] = std::stoull(part);
    at = end + 1;
  }
  if (axis == 1) {
    std::uint64_t number = numbers[0];
    return {
        static_cast<std::uint32_t>(number % launch.grid[0]),
        static_cast<std::uint32_t>(number / launch.grid[0] % launch.grid[1]),
        static_cast<std::uint32_t>(number / launch.grid[0] / launch.grid[1])};
  }
  for (std::size_t i = 0; i < 3; ++i)
    cta[i] = static_cast<std::uint32_t>(numbers[i]);
  return cta;
}

Json DebugSession::focus(const Json &arguments) {
  needLive();
  std::size_t launch = position_.value("launch", options_.first_launch);
  ThreadName wanted = focus_;
  if (arguments.contains("cta")) {
    wanted.cta = ctaIn(arguments["cta"], job_->descriptions()[launch - 1]);
    wanted.warp = wanted.lane = 0;
  }
  if (arguments.contains("warp")) {
    wanted.warp = arguments["warp"];
    wanted.lane = 0;
  }
  if (arguments.contains("lane"))
    wanted.lane = arguments["lane"];
  Json position = ask("position", {{"thread", wanted.toJson()}});
  if (!position.contains("frames") &&
      position.value("state", "") != "the thread has left the kernel")
    userError("{}", position.value("state", ""));
  focus_ = wanted;
  position_ = position;
  return {{"position", position}};
}

static std::vector<std::string> linesIn(const std::string &text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

/// Lines of a text around one of them.
static Json linesAround(const std::string &text, std::uint64_t line,
                        std::uint64_t count) {
  std::vector<std::string> lines = linesIn(text);
  Json shown = Json::array();
  std::uint64_t first = line > count / 2 ? line - count / 2 : 1;
  for (std::uint64_t i = first; i < first + count && i <= lines.size(); ++i)
    shown.push_back({{"line", i}, {"text", quote(lines[i - 1], 400)}});
  return shown;
}

Json DebugSession::listing(const Json &arguments) {
  auto count = std::clamp<std::uint64_t>(
      arguments.value("count", std::uint64_t(11)), 1, 100000);
  std::uint64_t line = position_.value("ptx_line", std::uint64_t(1));
  if (arguments.contains("line"))
    line = arguments["line"];
  return {{"file", places_->path()},
          {"current", position_.value("ptx_line", 0)},
          {"lines", linesAround(job_->job().ptx.front(), line, count)}};
}

Json DebugSession::source(const Json &arguments) {
  auto count = std::clamp<std::uint64_t>(
      arguments.value("count", std::uint64_t(11)), 1, 100000);
  std::string file;
  std::uint64_t line = 1;
  if (position_.contains("frames") && !position_["frames"].empty()) {
    file = position_["frames"][0]["file"];
    line = position_["frames"][0]["line"];
  }
  if (arguments.contains("file"))
    file = arguments["file"];
  if (arguments.contains("line"))
    line = arguments["line"];
  if (file.empty() || file == places_->path())
    return listing({{"line", line}, {"count", count}});
  // A path of somebody's machine: only what the PTX names is opened.
  auto files = places_->files();
  if (std::find(files.begin(), files.end(), file) == files.end())
    userError("the PTX names no file '{}'", file);
  return {{"file", file},
          {"current", line},
          {"lines", linesAround(read_file(file), line, count)}};
}

Json DebugSession::checkpoints(const Json &) {
  Json list = Json::array();
  for (const Checkpoint &one : checkpoints_)
    list.push_back(one.time);
  return {{"times", list},
          {"bytes", measure()},
          {"limit_bytes", options_.checkpoint_memory_bytes},
          {"made", made_},
          {"thinned_out", thinned_}};
}

Json DebugSession::info(const Json &) {
  Json launches = Json::array();
  for (const ReportedLaunch &launch : job_->launches())
    launches.push_back({{"kernel", launch.kernel},
                        {"grid", launch.grid},
                        {"block", launch.block},
                        {"cluster", launch.cluster}});
  Json functions = Json::array();
  for (const ptx::Function &function : module().functions)
    if (!function.body.empty() && functions.size() < 1000)
      functions.push_back({{"name", quote(function.name, 200)},
                           {"is_entry", function.isEntry},
                           {"ptx_line", function.line}});
  return {{"ptx", job_->job().ptx_paths},
          {"files", places_->files()},
          {"launches", launches},
          {"functions", functions},
          {"time", time_},
          {"furthest", furthest_},
          {"ended", hasEnded_},
          {"position", position_},
          {"reason", reason_}};
}

} // namespace kiln::sim
