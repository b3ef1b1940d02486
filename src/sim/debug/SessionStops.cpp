// SessionStops: breakpoints and watches, and questions about the past, which
// are stops that are only remembered.
#include "sim/debug/Session.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

using Json = nlohmann::json;

/// Stops that a session keeps.
static constexpr std::size_t kMostStops = 1000;

/// The instructions of a breakpoint, as the runner is told: the function, and
/// the instruction in it.
static Json
instructionsJson(const Places &places,
                 const std::vector<const ptx::Instruction *> &list) {
  Json at = Json::array();
  for (const ptx::Instruction *one : list) {
    const ptx::Function &function = places.functionOf(*one);
    at.push_back({&function - places.module().functions.data(),
                  one - function.body.data()});
  }
  return at;
}

static Json withCondition(Json stop, const Json &arguments) {
  if (arguments.contains("if"))
    stop["if"] = Expression::parse(arguments["if"].get<std::string>()).text();
  return stop;
}

static Json added(Json &stops, Json stop) {
  if (stops.size() >= kMostStops)
    userError("there are {} stops already; `delete` some", stops.size());
  stops.push_back(stop);
  stop.erase("at");
  return {{"stop", stop}};
}

Json DebugSession::addBreakpoint(const Json &arguments) {
  std::string place = arguments.at("place");
  auto found = places_->find(place);
  Json places = Json::array();
  for (const ptx::Instruction *one : found) {
    Finding::Frame frame = places_->framesOf(*one).front();
    places.push_back({{"file", frame.where.file},
                      {"line", frame.where.line},
                      {"ptx_line", one->line},
                      {"function", frame.function}});
  }
  Json stop = withCondition({{"kind", "breakpoint"},
                             {"place", place},
                             {"places", places},
                             {"at", instructionsJson(*places_, found)}},
                            arguments);
  stop["id"] = nextId_++;
  return added(stops_, std::move(stop));
}

Json DebugSession::watchOf(const Json &arguments) {
  needLive();
  std::string space = arguments.value("space", "shared");
  if (space != "shared" && space != "global")
    userError("'{}' is no space whose bytes are watched; expected shared or "
              "global",
              space);
  auto bytes = arguments.value("bytes", std::uint64_t(4));
  constexpr std::uint64_t kMostBytes = 65536;
  if (bytes == 0 || bytes > kMostBytes)
    userError("{} bytes cannot be watched; use 1 to {}", bytes, kMostBytes);
  Json asked = arguments;
  asked["space"] = space;
  asked["count"] = bytes;
  asked["type"] = "u8";
  asked["raw"] = true;
  Json seen = ask("memory", asked);
  std::uint64_t address = seen["address"];
  if (space == "shared")
    address &= (std::uint64_t(1) << kRankShift) - 1;
  return withCondition({{"kind", "watch"},
                        {"space", space},
                        {"cta", focus_.cta},
                        {"address", address},
                        {"bytes", bytes},
                        {"what", seen["what"]}},
                       arguments);
}

Json DebugSession::addWatch(const Json &arguments) {
  Json stop = watchOf(arguments);
  stop["id"] = nextId_++;
  return added(stops_, std::move(stop));
}

/// The stop for phases of an mbarrier of the thread's CTA, or of all.
static Json phaseOf(DebugSession &session, const ThreadName &focus,
                    const Json &arguments) {
  Json stop{{"kind", "phase"}};
  if (arguments.contains("address")) {
    Json value = session.ask(
        "print", {{"expression", arguments["address"].get<std::string>()}});
    if (!value["value"].is_number_integer())
      userError("the address of an mbarrier is an integer");
    auto address = value["value"].get<std::uint64_t>();
    if (address >> kWindowShift == kSharedWindow >> kWindowShift)
      address -= kSharedWindow;
    stop["address"] = address & ((std::uint64_t(1) << kRankShift) - 1);
    stop["cta"] = focus.cta;
  }
  if (arguments.contains("phase"))
    stop["phase"] = arguments["phase"];
  return stop;
}

Json DebugSession::addPhase(const Json &arguments) {
  needLive();
  Json stop = phaseOf(*this, focus_, arguments);
  stop["id"] = nextId_++;
  return added(stops_, std::move(stop));
}

Json DebugSession::setFindings(const Json &arguments) {
  Json rest = Json::array();
  for (const Json &stop : stops_)
    if (stop["kind"] != "finding")
      rest.push_back(stop);
  stops_ = rest;
  std::string which = arguments.value("ids", "all");
  if (which == "none")
    return {{"stop", nullptr}};
  Json stop{{"kind", "finding"}, {"id", nextId_++}};
  if (which != "all") {
    Json ids = Json::array();
    for (std::size_t at = 0; at < which.size();) {
      std::size_t end = std::min(which.find_first_of(", ", at), which.size());
      if (end > at) {
        std::string id = which.substr(at, end - at);
        bool isKnown = false;
        for (const Explanation &row : explanations())
          isKnown |= row.id == id;
        if (!isKnown)
          userError("'{}' is the id of no finding; `kiln explain` lists them",
                    id);
        ids.push_back(id);
      }
      at = end + 1;
    }
    stop["ids"] = ids;
  }
  return added(stops_, std::move(stop));
}

Json DebugSession::remove(const Json &arguments) {
  if (!arguments.contains("id")) {
    std::size_t count = stops_.size();
    stops_ = Json::array();
    return {{"deleted", count}};
  }
  int id = arguments["id"];
  for (std::size_t i = 0; i < stops_.size(); ++i)
    if (stops_[i]["id"] == id) {
      stops_.erase(i);
      return {{"deleted", 1}};
    }
  userError("there is no stop {}; `breakpoints` lists them", id);
}

Json DebugSession::listStops(const Json &) {
  Json list = Json::array();
  for (Json stop : stops_) {
    stop.erase("at");
    list.push_back(stop);
  }
  return {{"stops", list}};
}

Json DebugSession::lastOf(const Json &stop, const std::string &what) {
  std::uint64_t here = time_;
  ThreadName focus = focus_;
  // Where lanes part is said of the branch, other things behind what did them.
  bool isBranch = stop["kind"] == "diverge";
  std::vector<Json> hits =
      scan({{"stops", Json::array({stop})}}, isBranch ? here : here + 1, 1);
  goToTime(here);
  focus_ = focus;
  if (hits.empty())
    return {{"found", false}, {"text", "nothing did: " + what}};
  Json hit = hits.back();
  return {{"found", true}, {"hit", hit}, {"text", hit["text"]}};
}

Json DebugSession::whoWrote(const Json &arguments) {
  Json stop = watchOf(arguments);
  stop["id"] = 0;
  return lastOf(stop, "these bytes have not been written");
}

Json DebugSession::whoCompleted(const Json &arguments) {
  needLive();
  Json stop = phaseOf(*this, focus_, arguments);
  stop["id"] = 0;
  return lastOf(stop, "no phase has been completed");
}

Json DebugSession::whenDiverged(const Json &) {
  needLive();
  Json stop{{"kind", "diverge"}, {"id", 0}, {"thread", focus_.toJson()}};
  return lastOf(stop, "the lane has not parted from others of its warp");
}

} // namespace kiln::sim
