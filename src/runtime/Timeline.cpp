// Timeline: events as a trace for Perfetto, and the first CTA as a table.
#include "kiln/check/timeline.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln {

using nlohmann::ordered_json;
using TimelineEvent = Timeline::Event;

namespace {
/// An agent in words, and what it does. Null: it does no such thing.
struct AgentWords {
  const char *name, *load, *product, *store;
  bool isNumbered;
};
} // namespace

static const AgentWords &wordsOf(Timeline::Agent agent) {
  static constexpr AgentWords kWords[] = {
      {"warp", "load", nullptr, "store", true},
      {"tma", "tma load", nullptr, "tma store", false},
      {"cp.async", "cp.async", nullptr, nullptr, false},
      {"wgmma", nullptr, "wgmma", nullptr, true},
      {"tcgen05", nullptr, "tcgen05.mma", nullptr, false},
  };
  return kWords[static_cast<int>(agent)];
}

static const char *nameOf(Timeline::Awaited awaited) {
  static constexpr const char *kNames[] = {
      "wait",       "wait full",    "wait empty",  "wait copies",
      "wait wgmma", "wait barrier", "wait cluster"};
  return kNames[static_cast<int>(awaited)];
}

static const char *nameOf(Timeline::Kind kind) {
  static constexpr const char *kNames[] = {"wait", "load", "product", "store"};
  return kNames[static_cast<int>(kind)];
}

std::string Timeline::Row::to_string() const {
  const AgentWords &words = wordsOf(agent);
  return words.isNumbered ? fmt::format("{} {}", words.name, number)
                          : words.name;
}

std::string TimelineEvent::name() const {
  if (kind == Kind::wait)
    return nameOf(awaited);
  const AgentWords &words = wordsOf(row.agent);
  const char *name = kind == Kind::load      ? words.load
                     : kind == Kind::mma ? words.product
                                             : words.store;
  return name ? name : nameOf(kind);
}

/// "wait full 2"
static std::string labelOf(const TimelineEvent &event) {
  return event.slot < 0 ? event.name()
                        : fmt::format("{} {}", event.name(), event.slot);
}

std::string Timeline::to_trace() const {
  ordered_json list = ordered_json::array();
  std::map<std::array<std::uint32_t, 3>, int> processes;
  std::map<std::pair<int, Timeline::Row>, int> rows;
  auto nameRow = [&](const char *what, int process, int row,
                     const std::string &name) {
    list.push_back({{"ph", "M"},
                    {"name", what},
                    {"pid", process},
                    {"tid", row},
                    {"args", {{"name", name}}}});
  };
  for (const TimelineEvent &event : events) {
    auto [process, isNewCta] =
        processes.try_emplace(event.cta, static_cast<int>(processes.size()));
    if (isNewCta)
      nameRow("process_name", process->second, 0,
              fmt::format("CTA ({}, {}, {})", event.cta[0], event.cta[1],
                          event.cta[2]));
    auto [row, isNewRow] = rows.try_emplace({process->second, event.row},
                                            static_cast<int>(rows.size()));
    if (isNewRow)
      nameRow("thread_name", process->second, row->second,
              event.row.to_string());
    ordered_json arguments = {{"ptx_line", event.ptx_line}};
    if (event.line)
      arguments["source"] = fmt::format("{}:{}", event.file, event.line);
    if (!event.object.empty())
      arguments["mbarrier"] = event.object;
    if (!event.is_complete)
      arguments["complete"] = false;
    if (event.slot >= 0)
      arguments["slot"] = event.slot;
    list.push_back({{"ph", "X"},
                    {"name", labelOf(event)},
                    {"cat", nameOf(event.kind)},
                    {"pid", process->second},
                    {"tid", row->second},
                    {"ts", event.start},
                    {"dur", event.end - event.start},
                    {"args", arguments}});
  }
  ordered_json value = {{"traceEvents", list},
                        {"displayTimeUnit", "ns"},
                        {"otherData", {{"unit", "one warp instruction"}}}};
  return value.dump(-1, ' ', false, ordered_json::error_handler_t::replace) +
         '\n';
}

namespace {
/// Events of one row that do the same to the same slot, as one.
struct Span {
  Timeline::Kind kind;
  int slot;
  std::uint64_t start, end;
  bool isComplete;
  std::string word; ///< "mma-1", "wait-0", "load :12"
};
using Spans = std::vector<Span>;

/// The first CTA as columns: who loads, what is in each slot, and what those
/// do who multiply; where nobody does, the first warps.
class Table {
public:
  explicit Table(const std::vector<TimelineEvent> &events);
  std::string print(int rows) const;

private:
  void take(const TimelineEvent &event);
  std::string frame() const;
  std::string head() const;
  std::string cellsAt(std::uint64_t time) const;
  std::string legend() const;
  std::vector<int> warps() const;

  std::array<std::uint32_t, 3> cta_{};
  Spans loads_, products_, producer_;
  std::map<int, Spans> groups_; ///< what a warpgroup does
  std::map<int, Spans> warps_;
  std::set<int> issuing_, multiplying_;
  /// By word: places of the source, and mbarriers.
  std::map<std::string, std::set<std::string>> places_, barriers_;
  int slots_ = 0;
};
} // namespace

/// The column of tcgen05's tensor core, which is no warpgroup's.
static constexpr int kTensorMemory = std::numeric_limits<int>::max();

/// The warpgroup of a row: warp 5 and wgmma 1 belong to 1; -1: none.
static int groupOf(const Timeline::Row &row) {
  switch (row.agent) {
  case Timeline::Agent::warp:
    return row.number / 4;
  case Timeline::Agent::wgmma:
    return row.number;
  case Timeline::Agent::tcgen05:
    return kTensorMemory;
  default:
    return -1;
  }
}

static bool isCopyRow(const TimelineEvent &event) {
  return event.row.agent == Timeline::Agent::tma ||
         event.row.agent == Timeline::Agent::cp_async;
}

/// A warp waits until a slot has been handed back.
static bool isWaitForEmpty(const TimelineEvent &event) {
  return event.kind == Timeline::Kind::wait &&
         event.awaited == Timeline::Awaited::empty;
}

/// Whether an event stands for what its warpgroup does: its products, and what
/// its first warp or one that fills slots does.
static bool isOfGroup(const TimelineEvent &event) {
  return event.row.agent != Timeline::Agent::warp ||
         event.row.number % 4 == 0 || isWaitForEmpty(event);
}

/// "mma", "tma", "cp.async", "wait", "store"
static std::string wordOf(const TimelineEvent &event) {
  if (event.kind == Timeline::Kind::mma)
    return "mma";
  return isCopyRow(event) && event.kind == Timeline::Kind::load
             ? wordsOf(event.row.agent).name
             : nameOf(event.kind);
}

static void add(Spans &spans, const TimelineEvent &event, std::string word) {
  if (event.slot >= 0)
    word += fmt::format("-{}", event.slot);
  // Copies of threads come a few instructions apart.
  constexpr std::uint64_t kGap = 64;
  bool isStore = event.kind == Timeline::Kind::store;
  std::uint64_t gap = event.row.agent == Timeline::Agent::cp_async ? kGap : 0;
  if (!spans.empty() && spans.back().kind == event.kind &&
      spans.back().slot == event.slot && spans.back().word == word &&
      (isStore || event.start <= spans.back().end + gap)) {
    spans.back().end = std::max(spans.back().end, event.end);
    spans.back().isComplete &= event.is_complete;
    return;
  }
  spans.push_back({event.kind, event.slot, event.start, event.end,
                   event.is_complete, std::move(word)});
}

/// What a row does at a time: "mma-1", "wait-0"; products win over waits.
static std::string stateAt(const Spans &spans, std::uint64_t time) {
  const Span *best = nullptr;
  for (const Span &span : spans)
    if (span.start <= time && time < span.end &&
        (!best || span.kind == Timeline::Kind::mma))
      best = &span;
  return best ? best->word : "";
}

/// What is in a slot at a time.
static const char *slotAt(const Spans &loads, const Spans &products, int slot,
                          std::uint64_t time) {
  const Span *load = nullptr, *product = nullptr;
  for (const Span &span : loads)
    if (span.slot == slot && span.start <= time)
      load = &span;
  for (const Span &span : products)
    if (span.slot == slot && span.start <= time)
      product = &span;
  if (!load)
    return "";
  // Nobody may read what its barrier has never told of.
  if (time < load->end || !load->isComplete)
    return "loading";
  if (!product || product->start < load->end)
    return "full";
  return time < product->end ? "in use" : "";
}

Table::Table(const std::vector<TimelineEvent> &events) {
  for (const TimelineEvent &event : events) {
    if (event.cta != events.front().cta)
      break;
    take(event);
  }
  if (!events.empty())
    cta_ = events.front().cta;
  producer_ = loads_;
  for (int group : issuing_)
    if (!multiplying_.contains(group))
      for (const Span &span : groups_[group])
        producer_.push_back(span);
}

void Table::take(const TimelineEvent &event) {
  std::string word = wordOf(event);
  slots_ = std::max(slots_, event.slot + 1);
  if (isCopyRow(event) && event.kind == Timeline::Kind::load)
    add(loads_, event, word);
  if (event.kind == Timeline::Kind::mma) {
    add(products_, event, word);
    multiplying_.insert(groupOf(event.row));
  }
  if (isWaitForEmpty(event))
    issuing_.insert(groupOf(event.row));
  if (int group = groupOf(event.row); group >= 0 && isOfGroup(event))
    add(groups_[group], event, word);
  int line = event.line ? event.line : event.ptx_line;
  if (event.row.agent == Timeline::Agent::warp)
    add(warps_[event.row.number], event,
        line ? fmt::format("{} :{}", word, line) : word);
  if (event.line)
    places_[word].insert(fmt::format("{}:{}", event.file, event.line));
  if (!event.object.empty())
    barriers_[word].insert(event.object);
}

/// The warps that have columns: where nobody multiplies, the first ones.
std::vector<int> Table::warps() const {
  constexpr std::size_t kMost = 6;
  std::vector<int> numbers;
  for (const auto &[warp, spans] : warps_)
    if (multiplying_.empty() && numbers.size() < kMost)
      numbers.push_back(warp);
  return numbers;
}

std::string Table::frame() const {
  std::string line = fmt::format("+{:-<8}+", "");
  if (!producer_.empty())
    line += fmt::format("{:-<10}+", "");
  for (int slot = 0; slot < slots_; ++slot)
    line += fmt::format("{:-<9}+", "");
  for (std::size_t i = 0; i < multiplying_.size(); ++i)
    line += fmt::format("{:-<10}+", "");
  for (std::size_t i = 0; i < warps().size(); ++i)
    line += fmt::format("{:-<12}+", "");
  return line + '\n';
}

std::string Table::head() const {
  std::string head = fmt::format("|{:>7} |", "time");
  if (!producer_.empty())
    head += fmt::format("{:<10}|", " producer");
  for (int slot = 0; slot < slots_; ++slot)
    head += fmt::format("{:<9}|", fmt::format(" slot {}", slot));
  for (int group : multiplying_)
    head += fmt::format("{:<10}|", group == kTensorMemory
                                       ? " tcgen05"
                                       : fmt::format(" wgroup {}", group));
  for (int warp : warps())
    head += fmt::format("{:<12}|", fmt::format(" warp {}", warp));
  return head + '\n';
}

std::string Table::cellsAt(std::uint64_t time) const {
  std::string cells;
  if (!producer_.empty())
    cells +=
        fmt::format("{:<10}|", fmt::format(" {}", stateAt(producer_, time)));
  for (int slot = 0; slot < slots_; ++slot)
    cells += fmt::format(
        "{:<9}|", fmt::format(" {}", slotAt(loads_, products_, slot, time)));
  for (int group : multiplying_)
    cells += fmt::format("{:<10}|",
                         fmt::format(" {}", stateAt(groups_.at(group), time)));
  for (int warp : warps())
    cells += fmt::format("{:<12}|",
                         fmt::format(" {}", stateAt(warps_.at(warp), time)));
  return cells;
}

/// "a.cpp:1, a.cpp:7"; the first ones of many.
static std::string listed(const std::set<std::string> &names) {
  constexpr std::size_t kMost = 6;
  std::vector<std::string> shown(names.begin(), names.end());
  bool isCut = shown.size() > kMost;
  if (isCut)
    shown.resize(kMost);
  return fmt::format("{}{}", fmt::join(shown, ", "), isCut ? ", ..." : "");
}

/// Where in the source each word of the table comes from, and its barriers.
std::string Table::legend() const {
  std::string text;
  for (const auto &[word, places] : places_)
    text += fmt::format("{}: {}\n", word, listed(places));
  for (const auto &[word, barriers] : barriers_)
    text += fmt::format("mbarriers of {}: {}\n", word, listed(barriers));
  return text;
}

std::string Table::print(int rows) const {
  if (loads_.empty() && groups_.empty() && warps_.empty())
    return "no copies, products or waits in the first CTA\n";
  std::set<std::uint64_t> times;
  auto change = [&](const Spans &spans) {
    for (const Span &span : spans)
      times.insert({span.start, span.end});
  };
  change(loads_);
  change(products_);
  for (int group : multiplying_)
    change(groups_.at(group));
  for (int warp : warps())
    change(warps_.at(warp));
  std::string text =
      fmt::format("CTA ({}, {}, {}); a unit of time is one warp instruction\n",
                  cta_[0], cta_[1], cta_[2]) +
      frame() + head() + frame();
  std::string last;
  int shown = 0;
  for (std::uint64_t time : times) {
    std::string cells = cellsAt(time);
    if (cells == last)
      continue;
    last = cells;
    if (++shown > rows) {
      text += "|    ... |\n";
      break;
    }
    text += fmt::format("|{:>7} |", time) + cells + '\n';
  }
  return text + frame() + legend();
}

std::string Timeline::to_table(int rows) const {
  return Table(events).print(rows);
}

} // namespace kiln
