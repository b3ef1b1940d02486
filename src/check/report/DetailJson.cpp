// DetailJson: listings by column, the rest by name.
#include "check/report/DetailJson.h"
#include "kiln/base/text.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln {

using nlohmann::ordered_json;

static constexpr std::uint64_t kAnyWhole = ~std::uint64_t(0) >> 1;
static constexpr std::uint64_t kAnyLine = 0x7fffffff;

std::string textFrom(const JsonNode &node, const char *key) {
  auto found = node.find(key);
  return found ? printable(found->text("a string")) : "";
}

std::uint64_t wholeFrom(const JsonNode &node, const char *key,
                        std::uint64_t fallback) {
  auto found = node.find(key);
  return found ? found->whole(0, kAnyWhole) : fallback;
}

static int lineFrom(const JsonNode &node, const char *key) {
  auto found = node.find(key);
  return found ? static_cast<int>(found->whole(0, kAnyLine)) : 0;
}

/// A number that may be -1.
static int indexFrom(const JsonNode &node, const char *key) {
  auto found = node.find(key);
  if (!found)
    return -1;
  return static_cast<int>(found->whole(0, kAnyLine));
}

std::array<std::uint32_t, 3> sizeFrom(const JsonNode &node, const char *key) {
  std::vector<std::uint64_t> sizes =
      node.at(key).wholes(0, ~std::uint32_t(0));
  if (sizes.size() != 3)
    node.at(key).refuse("three whole numbers");
  return {static_cast<std::uint32_t>(sizes[0]),
          static_cast<std::uint32_t>(sizes[1]),
          static_cast<std::uint32_t>(sizes[2])};
}

ordered_json toJson(const std::vector<Finding::Frame> &stack) {
  ordered_json list = ordered_json::array();
  for (const Finding::Frame &frame : stack)
    list.push_back({{"function", frame.function},
                    {"file", frame.where.file},
                    {"line", frame.where.line}});
  return list;
}

std::vector<Finding::Frame> stackFrom(const JsonNode &node) {
  std::vector<Finding::Frame> stack;
  for (const JsonNode &frame : node.list("frames"))
    stack.push_back({textFrom(frame, "function"),
                     {textFrom(frame, "file"),
                      static_cast<unsigned>(lineFrom(frame, "line"))}});
  return stack;
}

bool Listing::Line::operator==(const Line &other) const {
  auto isSame = [](const Finding::Frame &a, const Finding::Frame &b) {
    return a.function == b.function && a.where.file == b.where.file &&
           a.where.line == b.where.line;
  };
  return ptx_line == other.ptx_line && text == other.text &&
         where.file == other.where.file && where.line == other.where.line &&
         std::equal(stack.begin(), stack.end(), other.stack.begin(),
                    other.stack.end(), isSame);
}

// Listings.

/// The number of a value in a list, which it is added to.
static std::size_t numberOf(ordered_json &list, ordered_json value,
                            std::map<std::string, std::size_t> &known) {
  auto [found, isNew] = known.try_emplace(
      value.dump(-1, ' ', false, ordered_json::error_handler_t::replace),
      list.size());
  if (isNew)
    list.push_back(std::move(value));
  return found->second;
}

ordered_json toJson(const Listing &listing) {
  ordered_json ptxLines = ordered_json::array(), texts = ptxLines,
               files = ptxLines, stacks = ptxLines, file = ptxLines,
               line = ptxLines, stack = ptxLines;
  std::map<std::string, std::size_t> knownFiles, knownStacks;
  for (const Listing::Line &row : listing.lines) {
    ptxLines.push_back(row.ptx_line);
    texts.push_back(row.text);
    file.push_back(numberOf(files, row.where.file, knownFiles));
    line.push_back(row.where.line);
    stack.push_back(numberOf(stacks, toJson(row.stack), knownStacks));
  }
  return {{"kernel", listing.kernel}, {"ptx_lines", ptxLines},
          {"texts", texts},           {"files", files},
          {"file", file},             {"line", line},
          {"stacks", stacks},         {"stack", stack}};
}

Listing listingFrom(const JsonNode &node) {
  Listing listing;
  listing.kernel = textFrom(node, "kernel");
  std::vector<JsonNode> texts = node.at("texts").list("strings"),
                        files = node.at("files").list("strings"),
                        stacks = node.at("stacks").list("stacks");
  std::vector<std::uint64_t> ptxLines = node.at("ptx_lines").wholes(0, kAnyLine),
                             lines = node.at("line").wholes(0, kAnyLine);
  if (ptxLines.size() != texts.size() || lines.size() != texts.size())
    node.at("ptx_lines").refuse("as long as the list of texts");
  auto numbers = [&](const char *key, std::size_t count) {
    std::vector<std::uint64_t> all =
        node.at(key).wholes(0, count ? count - 1 : 0);
    if (all.size() != texts.size() || (!count && !all.empty()))
      node.at(key).refuse("as long as the list of texts");
    return all;
  };
  std::vector<std::uint64_t> file = numbers("file", files.size()),
                             stack = numbers("stack", stacks.size());
  std::vector<std::vector<Finding::Frame>> known;
  for (const JsonNode &one : stacks)
    known.push_back(stackFrom(one));
  for (std::size_t i = 0; i < texts.size(); ++i)
    listing.lines.push_back({static_cast<int>(ptxLines[i]),
                             printable(texts[i].text("a string")),
                             {printable(files[file[i]].text("a string")),
                              static_cast<unsigned>(lines[i])},
                             known[stack[i]]});
  return listing;
}

ordered_json toJson(const SourceExcerpt &source) {
  ordered_json lines = ordered_json::object();
  for (const auto &[number, text] : source.lines)
    lines[fmt::to_string(number)] = text;
  return {{"file", source.file}, {"lines", lines}};
}

SourceExcerpt sourceFrom(const JsonNode &node) {
  SourceExcerpt source{textFrom(node, "file"), {}};
  JsonNode lines = node.at("lines");
  if (!lines.value().is_object())
    lines.refuse("an object of lines by their numbers");
  for (const auto &[number, text] : lines.value().items()) {
    unsigned line = 0;
    bool isNumber = !number.empty() && number.size() < 10 &&
                    number.find_first_not_of("0123456789") == std::string::npos;
    if (!isNumber || !text.is_string())
      lines.refuse("an object of lines by their numbers");
    for (char digit : number)
      line = line * 10 + static_cast<unsigned>(digit - '0');
    source.lines[line] = printable(text.get<std::string>());
  }
  return source;
}

// Details.

/// Words of enumerations.
static constexpr const char *kKinds[] = {"wait", "load", "product", "store"};
static constexpr const char *kAgents[] = {"warp", "tma", "cp.async", "wgmma",
                                          "tcgen05"};
static constexpr const char *kAwaited[] = {
    "mbarrier", "full", "empty", "copies", "wgmma", "barrier", "cluster"};
static constexpr const char *kBarrierEvents[] = {"init",  "arrive", "copy",
                                                 "phase", "wait",   "inval"};
static constexpr const char *kStates[] = {"unwritten", "written", "in flight"};

const char *name(LaunchDetail::BarrierEvent::What what) {
  return kBarrierEvents[static_cast<int>(what)];
}
const char *name(LaunchDetail::SharedMap::State state) {
  return kStates[static_cast<int>(state)];
}

template <typename Enum, std::size_t Count>
static Enum wordFrom(const JsonNode &node, const char *key,
                     const char *const (&words)[Count]) {
  std::string word = node.at(key).text("a string"), accepted;
  for (std::size_t i = 0; i < Count; ++i) {
    if (word == words[i])
      return static_cast<Enum>(i);
    accepted += std::string(i ? ", " : "") + words[i];
  }
  node.at(key).refuse("one of " + accepted);
}

static void addPlace(ordered_json &value, const SourceLine &where) {
  if (!where.is_known() || where.file == "PTX")
    return;
  value["file"] = where.file;
  value["line"] = where.line;
}

static SourceLine placeFrom(const JsonNode &node) {
  return {textFrom(node, "file"), static_cast<unsigned>(lineFrom(node, "line"))};
}

static ordered_json toJson(const Timeline::Event &event) {
  ordered_json value = {
      {"cta", event.cta},
      {"agent", kAgents[static_cast<int>(event.row.agent)]},
      {"number", event.row.number},
      {"kind", kKinds[static_cast<int>(event.kind)]},
      {"name", event.name()},
      {"start", event.start},
      {"end", event.end},
      {"ptx_line", event.ptx_line}};
  if (event.kind == Timeline::Kind::wait)
    value["awaited"] = kAwaited[static_cast<int>(event.awaited)];
  if (event.slot >= 0)
    value["slot"] = event.slot;
  if (!event.is_complete)
    value["complete"] = false;
  if (!event.object.empty())
    value["object"] = event.object;
  addPlace(value, {event.file, static_cast<unsigned>(event.line)});
  return value;
}

static Timeline::Event eventFrom(const JsonNode &node) {
  Timeline::Event event;
  event.cta = sizeFrom(node, "cta");
  event.row.agent = wordFrom<Timeline::Agent>(node, "agent", kAgents);
  event.row.number = lineFrom(node, "number");
  event.kind = wordFrom<Timeline::Kind>(node, "kind", kKinds);
  if (node.has("awaited"))
    event.awaited = wordFrom<Timeline::Awaited>(node, "awaited", kAwaited);
  event.start = wholeFrom(node, "start");
  event.end = wholeFrom(node, "end");
  event.ptx_line = lineFrom(node, "ptx_line");
  event.slot = indexFrom(node, "slot");
  event.is_complete = !node.has("complete") || node.at("complete").boolean();
  event.object = textFrom(node, "object");
  SourceLine where = placeFrom(node);
  event.file = where.file;
  event.line = static_cast<int>(where.line);
  return event;
}

static ordered_json toJson(const LaunchDetail::BarrierEvent &event) {
  ordered_json value = {{"what", name(event.what)}, {"time", event.time},
                        {"phase", event.phase},     {"pending", event.pending},
                        {"bytes", event.bytes},     {"cta", event.cta}};
  if (event.warp >= 0) {
    value["warp"] = event.warp;
    value["lanes"] = event.lanes;
  }
  if (event.ptx_line)
    value["ptx_line"] = event.ptx_line;
  addPlace(value, event.where);
  return value;
}

static LaunchDetail::BarrierEvent barrierEventFrom(const JsonNode &node) {
  LaunchDetail::BarrierEvent event;
  event.what = wordFrom<LaunchDetail::BarrierEvent::What>(node, "what",
                                                          kBarrierEvents);
  event.time = wholeFrom(node, "time");
  event.phase = static_cast<std::uint32_t>(wholeFrom(node, "phase"));
  event.pending = static_cast<std::uint32_t>(wholeFrom(node, "pending"));
  event.bytes = static_cast<std::int64_t>(node.at("bytes").number());
  event.cta = sizeFrom(node, "cta");
  event.warp = indexFrom(node, "warp");
  event.lanes = lineFrom(node, "lanes");
  event.ptx_line = lineFrom(node, "ptx_line");
  event.where = placeFrom(node);
  return event;
}

/// A list of what `write` makes of values.
template <typename Values, typename Write>
static ordered_json listOf(const Values &values, Write &&write) {
  ordered_json list = ordered_json::array();
  for (const auto &value : values)
    list.push_back(write(value));
  return list;
}

static ordered_json toJson(const LaunchDetail::Barrier &barrier) {
  ordered_json value = {
      {"cta", barrier.cta},
      {"address", barrier.address},
      {"name", barrier.name},
      {"expected", barrier.expected},
      {"events", listOf(barrier.events,
                        [](const auto &event) { return toJson(event); })}};
  if (barrier.left_out)
    value["left_out"] = barrier.left_out;
  return value;
}

static LaunchDetail::Barrier barrierFrom(const JsonNode &node) {
  LaunchDetail::Barrier barrier;
  barrier.cta = sizeFrom(node, "cta");
  barrier.address = static_cast<std::uint32_t>(wholeFrom(node, "address"));
  barrier.name = textFrom(node, "name");
  barrier.expected = static_cast<std::uint32_t>(wholeFrom(node, "expected"));
  barrier.left_out = wholeFrom(node, "left_out");
  for (const JsonNode &event : node.at("events").list("events"))
    barrier.events.push_back(barrierEventFrom(event));
  return barrier;
}

static ordered_json toJson(const LaunchDetail::SharedMap &map) {
  ordered_json objects = listOf(map.objects, [](const auto &object) {
    ordered_json value = {{"name", object.name},
                          {"begin", object.begin},
                          {"end", object.end}};
    if (object.swizzle)
      value["swizzle"] = object.swizzle;
    return value;
  });
  ordered_json runs = listOf(map.runs, [](const auto &run) {
    ordered_json value = {{"begin", run.begin},
                          {"end", run.end},
                          {"state", name(run.state)}};
    if (!run.unit.empty())
      value["unit"] = run.unit;
    if (run.warp >= 0)
      value["warp"] = run.warp;
    if (run.ptx_line)
      value["ptx_line"] = run.ptx_line;
    addPlace(value, run.where);
    return value;
  });
  return {{"cta", map.cta},         {"begin", map.begin},
          {"end", map.end},         {"coarse", map.is_coarse},
          {"objects", objects},     {"runs", runs}};
}

static LaunchDetail::SharedMap sharedFrom(const JsonNode &node) {
  auto address = [](const JsonNode &from, const char *key) {
    return static_cast<std::uint32_t>(from.at(key).whole(0, ~std::uint32_t(0)));
  };
  LaunchDetail::SharedMap map;
  map.cta = sizeFrom(node, "cta");
  map.begin = address(node, "begin");
  map.end = address(node, "end");
  map.is_coarse = node.has("coarse") && node.at("coarse").boolean();
  for (const JsonNode &object : node.at("objects").list("objects"))
    map.objects.push_back({textFrom(object, "name"), address(object, "begin"),
                           address(object, "end"),
                           lineFrom(object, "swizzle")});
  for (const JsonNode &run : node.at("runs").list("runs"))
    map.runs.push_back(
        {address(run, "begin"), address(run, "end"),
         wordFrom<LaunchDetail::SharedMap::State>(run, "state", kStates),
         textFrom(run, "unit"), indexFrom(run, "warp"),
         lineFrom(run, "ptx_line"), placeFrom(run)});
  return map;
}

static ordered_json toJson(const LaunchDetail::TensorColumns &map) {
  ordered_json columns = listOf(map.columns, [](const auto &one) {
    ordered_json value = {{"begin", one.begin},
                          {"end", one.end},
                          {"written", one.is_written},
                          {"ptx_line", one.ptx_line}};
    addPlace(value, one.where);
    return value;
  });
  return {{"cta", map.cta}, {"columns", columns}};
}

static LaunchDetail::TensorColumns tensorFrom(const JsonNode &node) {
  LaunchDetail::TensorColumns map{sizeFrom(node, "cta"), {}};
  for (const JsonNode &one : node.at("columns").list("columns"))
    map.columns.push_back({static_cast<std::uint32_t>(wholeFrom(one, "begin")),
                           static_cast<std::uint32_t>(wholeFrom(one, "end")),
                           one.at("written").boolean(),
                           lineFrom(one, "ptx_line"), placeFrom(one)});
  return map;
}

ordered_json toJson(std::uint64_t launch, const ReportedLaunch::Detail &kept) {
  const LaunchDetail &detail = kept.detail;
  ordered_json figures = ordered_json::object();
  for (const auto &[figure, values] : detail.figures) {
    ordered_json list = ordered_json::array();
    for (double value : values)
      // Whole numbers as such.
      if (value == static_cast<double>(static_cast<std::int64_t>(value)))
        list.push_back(static_cast<std::int64_t>(value));
      else
        list.push_back(value);
    figures[figure] = std::move(list);
  }
  auto write = [](const auto &value) { return toJson(value); };
  ordered_json value = {
      {"launch", launch},
      {"interleaving", kept.interleaving},
      {"figures", figures},
      {"timeline", listOf(detail.timeline.events, write)},
      {"roles", listOf(detail.roles,
                       [](const LaunchDetail::Role &role) -> ordered_json {
                         return {{"cta", role.cta},
                                 {"warp", role.warp},
                                 {"role", role.role}};
                       })},
      {"barriers", listOf(detail.barriers, write)},
      {"shared", listOf(detail.shared, write)},
      {"tensor", listOf(detail.tensor, write)}};
  if (detail.events_left_out)
    value["events_left_out"] = detail.events_left_out;
  return value;
}

ReportedLaunch::Detail detailFrom(const JsonNode &node) {
  ReportedLaunch::Detail kept;
  LaunchDetail &detail = kept.detail;
  kept.interleaving = textFrom(node, "interleaving");
  JsonNode figures = node.at("figures");
  if (!figures.value().is_object())
    figures.refuse("an object of lists of numbers");
  for (const auto &[figure, list] : figures.value().items()) {
    std::vector<double> &values = detail.figures[printable(figure)];
    for (const JsonNode &value : figures.at(figure.c_str()).list("numbers"))
      values.push_back(value.number());
  }
  for (const JsonNode &event : node.at("timeline").list("events"))
    detail.timeline.events.push_back(eventFrom(event));
  detail.events_left_out = wholeFrom(node, "events_left_out");
  for (const JsonNode &role : node.at("roles").list("roles"))
    detail.roles.push_back({sizeFrom(role, "cta"), lineFrom(role, "warp"),
                            textFrom(role, "role")});
  for (const JsonNode &barrier : node.at("barriers").list("mbarriers"))
    detail.barriers.push_back(barrierFrom(barrier));
  for (const JsonNode &map : node.at("shared").list("maps"))
    detail.shared.push_back(sharedFrom(map));
  for (const JsonNode &map : node.at("tensor").list("maps"))
    detail.tensor.push_back(tensorFrom(map));
  return kept;
}

} // namespace kiln
