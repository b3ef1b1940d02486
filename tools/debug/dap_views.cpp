// dap_views: requests that look.
#include "debug/dap_server.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>

#include <algorithm>
#include <filesystem>

namespace kiln::cli {

using Json = nlohmann::json;

/// Threads that a client is shown: a GPU has many, and one that stands still
/// has few that matter.
static constexpr std::uint64_t kMostThreads = 256;
/// Numbers that are given out while the launch stands still.
static constexpr std::size_t kMostHandles = 1 << 20;

Json DapServer::threads(const Json &) {
  Json list = Json::array();
  threads_.clear();
  if (debugger_ && !has_ended_) {
    Json answer = ask({{"command", "warps"}, {"most", kMostThreads}});
    for (Json warp : answer["warps"]) {
      // Of the warp that stopped, the lane that did.
      if (stopped_.is_object() && stopped_["cta"] == warp["cta"] &&
          stopped_["warp"] == warp["warp"])
        warp["lane"] = stopped_["lane"];
      std::uint64_t number = warp["number"].get<std::uint64_t>() + 1;
      threads_[number] = warp;
      list.push_back({{"id", number}, {"name", warp["name"]}});
    }
  }
  if (list.empty())
    list.push_back({{"id", 1}, {"name", "no warp is under way"}});
  return {{"threads", list}};
}

std::size_t DapServer::handle_of(Json what) {
  if (handles_.size() >= kMostHandles)
    throw UserError("too many views are open; run on or close some");
  handles_.push_back(std::move(what));
  return handles_.size();
}

Json DapServer::source_of(const Json &frame) {
  std::string file = frame["file"];
  Json source{{"name", std::filesystem::path(file).filename().string()}};
  if (std::filesystem::exists(file))
    source["path"] = std::filesystem::absolute(file).string();
  else
    source["presentationHint"] = "deemphasize";
  return source;
}

Json DapServer::stack_trace(const Json &arguments) {
  auto thread = arguments.at("threadId").get<std::uint64_t>();
  focus_on(thread);
  Json position = ask({{"command", "where"}})["position"];
  Json frames = Json::array();
  if (position.contains("frames"))
    for (const Json &frame : position["frames"])
      frames.push_back(
          {{"id", handle_of({{"kind", "frame"}, {"thread", thread}})},
           {"name", frame["function"]},
           {"source", source_of(frame)},
           {"line", frame["line"]},
           {"column", 1},
           {"instructionPointerReference",
            fmt::format("{:#x}", frame["ptx_line"].get<std::uint64_t>())}});
  std::size_t total = frames.size();
  std::size_t first =
      std::min(arguments.value("startFrame", std::size_t(0)), total);
  std::size_t levels = arguments.value("levels", std::size_t(0));
  Json shown = Json::array();
  for (std::size_t i = first; i < total && (!levels || i < first + levels); ++i)
    shown.push_back(frames[i]);
  return {{"stackFrames", shown}, {"totalFrames", total}};
}

Json DapServer::scopes(const Json &arguments) {
  auto frame = arguments.at("frameId").get<std::size_t>();
  if (frame == 0 || frame > handles_.size() ||
      handles_[frame - 1]["kind"] != "frame")
    throw UserError(fmt::format("{} is no frame", frame));
  Json thread = handles_[frame - 1]["thread"];
  Json list = Json::array();
  static constexpr std::pair<const char *, const char *> kScopes[] = {
      {"Registers", "registers"},
      {"Special registers", "special"},
      {"Shared memory", "shared"},
      {"Mbarriers", "mbarriers"}};
  for (auto [name, kind] : kScopes) {
    Json scope{
        {"name", name},
        {"variablesReference", handle_of({{"kind", kind}, {"thread", thread}})},
        {"expensive", std::string_view(kind) != "registers"}};
    if (std::string_view(kind) == "registers")
      scope["presentationHint"] = "registers";
    list.push_back(std::move(scope));
  }
  return {{"scopes", list}};
}

static Json variable_of(const Json &name, std::string value, const char *type) {
  Json variable{{"name", name}, {"value", value}, {"variablesReference", 0}};
  if (*type)
    variable["type"] = type;
  return variable;
}

static std::string shown(const Json &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Rows of 16 bytes.
Json DapServer::shared_variables(const Json &, const Json &arguments) {
  constexpr std::uint64_t kFirst = 1024, kRow = 16;
  std::uint64_t start = arguments.value("start", std::uint64_t(0));
  std::uint64_t count = arguments.value("count", std::uint64_t(0));
  Json list = Json::array();
  for (std::uint64_t i = start;
       i < start + (count ? std::min<std::uint64_t>(count, 1024) : 64); ++i) {
    std::string address = std::to_string(kFirst + i * kRow);
    Json answer;
    try {
      answer = ask({{"command", "memory"},
                    {"space", "shared"},
                    {"address", address},
                    {"type", "u32"},
                    {"count", kRow / 4}});
    } catch (const UserError &) {
      break; // its end
    }
    std::string text;
    for (const Json &word : answer["values"])
      text +=
          (text.empty() ? "" : " ") +
          (word.is_null() ? "unwritten"
                          : fmt::format("{:08x}", word.get<std::uint32_t>()));
    Json row = variable_of("shared[" + address + "]", text, "");
    row["memoryReference"] = "shared:" + address;
    list.push_back(std::move(row));
  }
  return list;
}

Json DapServer::variables(const Json &arguments) {
  auto reference = arguments.at("variablesReference").get<std::size_t>();
  if (reference == 0 || reference > handles_.size())
    throw UserError(fmt::format("{} stands for no variables", reference));
  Json what = handles_[reference - 1];
  std::string kind = what["kind"];
  focus_on(what["thread"].get<std::uint64_t>());
  Json list = Json::array();
  if (kind == "registers" || kind == "special") {
    Json answer =
        ask({{"command", "registers"}, {"special", kind == "special"}});
    const char *key = kind == "special" ? "special" : "registers";
    if (answer.contains(key))
      for (const Json &one : answer[key])
        list.push_back(variable_of(
            one["name"],
            shown(one["value"]) +
                (one.contains("bits") ? " (" + shown(one["bits"]) + ")" : "") +
                (one.contains("unwritten") ? ", from unwritten bytes" : ""),
            one.contains("type") ? one["type"].get<std::string>().c_str()
                                 : ""));
  } else if (kind == "shared") {
    list = shared_variables(what, arguments);
  } else if (kind == "mbarriers") {
    Json answer = ask({{"command", "mbarriers"}});
    for (const Json &one : answer["mbarriers"])
      list.push_back(variable_of(
          one["name"],
          fmt::format("{} phases complete; {} of {} arrivals and {} bytes "
                      "missing",
                      shown(one["completed"]), shown(one["pending"]),
                      shown(one["expected"]), shown(one["bytes"])),
          "mbarrier"));
  } else {
    throw UserError(
        fmt::format("{} is a frame; ask for its scopes", reference));
  }
  return {{"variables", list}};
}

Json DapServer::evaluate(const Json &arguments) {
  std::string text = arguments.at("expression");
  if (arguments.contains("frameId")) {
    auto frame = arguments["frameId"].get<std::size_t>();
    if (frame > 0 && frame <= handles_.size())
      focus_on(handles_[frame - 1]["thread"].get<std::uint64_t>());
  }
  std::string result;
  std::string first = text.substr(0, text.find(' '));
  bool isCommand = false;
  if (arguments.value("context", "") == "repl")
    for (const DebugCommand &row : debug_commands())
      isCommand |= !first.empty() && (row.name == first || row.alias == first);
  if (!isCommand) {
    Json answer = ask({{"command", "print"}, {"expression", text}});
    return {{"result", shown(answer["value"])}, {"variablesReference", 0}};
  }
  if (!debugger_)
    throw UserError("there is no launch yet: send `launch` first");
  std::string answer = debugger_->request(text);
  Json parsed = Json::parse(answer);
  if (!parsed.value("ok", false))
    throw UserError(parsed.value("error", ""));
  // It has moved: what the client shows is of another time.
  if (parsed.contains("reason")) {
    handles_.clear();
    reason_ = parsed["reason"];
    has_ended_ = parsed["position"].value("ended", false);
    event("stopped", {{"reason", "goto"}, {"allThreadsStopped", true}});
  }
  return {{"result", debug_text(answer)}, {"variablesReference", 0}};
}

Json DapServer::source(const Json &arguments) {
  Json source = arguments.value("source", Json::object());
  Json answer = ask({{"command", "list"},
                     {"file", source.value("path", source.value("name", ""))},
                     {"line", 1},
                     {"count", 100000}});
  std::string text;
  for (const Json &line : answer["lines"])
    text += line["text"].get<std::string>() + "\n";
  return {{"content", text}, {"mimeType", "text/plain"}};
}

static std::string base64(const std::string &hex) {
  static const char kLetters[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes, text;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t j = 0; j < 3; ++j)
      word = word << 8 |
             (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j])
                                   : 0u);
    for (std::size_t j = 0; j < 4; ++j)
      text += i + j <= bytes.size() ? kLetters[word >> (18 - 6 * j) & 63] : '=';
  }
  return text;
}

Json DapServer::read_memory(const Json &arguments) {
  std::string reference = arguments.at("memoryReference");
  std::size_t colon = reference.find(':');
  if (colon == std::string::npos)
    throw UserError(fmt::format("'{}' is no place in memory; write SPACE:"
                                "ADDRESS, as shared:1024",
                                reference));
  std::string space = reference.substr(0, colon);
  auto offset = arguments.value("offset", std::int64_t(0));
  auto count = arguments.at("count").get<std::uint64_t>();
  std::string address =
      fmt::format("({}) {} {}", reference.substr(colon + 1),
                  offset < 0 ? "-" : "+", offset < 0 ? -offset : offset);
  Json value = ask({{"command", "print"}, {"expression", address}})["value"];
  std::string shown_address = fmt::format("{}", shown(value));
  if (count == 0)
    return {{"address", shown_address}, {"data", ""}};
  // As much of it as there is.
  std::uint64_t wanted = std::min<std::uint64_t>(count, 65536);
  for (std::uint64_t bytes = wanted; bytes > 0; bytes /= 2)
    try {
      Json answer = ask({{"command", "memory"},
                         {"space", space},
                         {"address", shown_address},
                         {"type", "u8"},
                         {"count", bytes},
                         {"raw", true}});
      Json body{{"address", shown_address},
                {"data", base64(answer["bytes"].get<std::string>())}};
      if (bytes < count)
        body["unreadableBytes"] = count - bytes;
      return body;
    } catch (const UserError &) {
      if (bytes == 1)
        return {{"address", shown_address}, {"unreadableBytes", count}};
    }
  return {{"address", shown_address}, {"unreadableBytes", count}};
}

Json DapServer::disassemble(const Json &arguments) {
  std::string reference = arguments.at("memoryReference");
  std::int64_t line = 0;
  try {
    line = static_cast<std::int64_t>(std::stoull(reference, nullptr, 16));
  } catch (const std::exception &) {
    throw UserError(
        fmt::format("'{}' is no address of an instruction", reference));
  }
  line += arguments.value("offset", std::int64_t(0)) +
          arguments.value("instructionOffset", std::int64_t(0));
  auto count = arguments.at("instructionCount").get<std::int64_t>();
  constexpr std::int64_t kMost = 10000;
  if (count < 0 || count > kMost)
    throw UserError(fmt::format("{} instructions cannot be shown; at most {}",
                                count, kMost));
  // The window is asked for by its middle.
  Json answer = ask({{"command", "disassemble"},
                     {"line", std::max<std::int64_t>(line + count / 2, 1)},
                     {"count", std::max<std::int64_t>(count + 2, 1)}});
  std::map<std::int64_t, std::string> known;
  for (const Json &one : answer["lines"])
    known[one["line"].get<std::int64_t>()] = one["text"].get<std::string>();
  Json list = Json::array();
  for (std::int64_t i = line; i < line + count; ++i) {
    Json one{{"address", fmt::format("{:#x}", std::max<std::int64_t>(i, 0))}};
    if (auto text = known.find(i); text != known.end()) {
      one["instruction"] = text->second;
      one["line"] = i;
    } else {
      one["instruction"] = "";
      one["presentationHint"] = "invalid";
    }
    list.push_back(std::move(one));
  }
  return {{"instructions", list}};
}

Json DapServer::exception_info(const Json &) {
  std::string id = "stop";
  if (reason_.is_object() && reason_.contains("details") &&
      reason_["details"].contains("id"))
    id = reason_["details"]["id"].get<std::string>();
  return {{"exceptionId", id},
          {"description", reason_.is_object() ? reason_.value("text", "") : ""},
          {"breakMode", "always"}};
}

} // namespace kiln::cli
