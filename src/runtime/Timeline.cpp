// Timeline: events as a trace for Perfetto, and the first CTA as a table.
#include "kiln/timeline.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace kiln {

using nlohmann::ordered_json;
using Event = Timeline::Event;

/// "wait full 2"
static std::string labelOf(const Event &event) {
  return event.slot < 0 ? event.name
                        : fmt::format("{} {}", event.name, event.slot);
}

static const char *nameOf(Timeline::Kind kind) {
  static constexpr const char *kNames[] = {"wait", "load", "product", "store"};
  return kNames[static_cast<int>(kind)];
}

std::string Timeline::to_trace() const {
  ordered_json list = ordered_json::array();
  std::map<std::array<std::uint32_t, 3>, int> processes;
  std::map<std::pair<int, std::string>, int> rows;
  auto nameRow = [&](const char *what, int process, int row,
                     const std::string &name) {
    list.push_back({{"ph", "M"},
                    {"name", what},
                    {"pid", process},
                    {"tid", row},
                    {"args", {{"name", name}}}});
  };
  for (const Event &event : events) {
    auto [process, isNewCta] =
        processes.try_emplace(event.cta, static_cast<int>(processes.size()));
    if (isNewCta)
      nameRow("process_name", process->second, 0,
              fmt::format("CTA ({}, {}, {})", event.cta[0], event.cta[1],
                          event.cta[2]));
    auto [row, isNewRow] = rows.try_emplace({process->second, event.row},
                                            static_cast<int>(rows.size()));
    if (isNewRow)
      nameRow("thread_name", process->second, row->second, event.row);
    ordered_json arguments = {{"ptx_line", event.ptx_line}};
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
};
using Spans = std::vector<Span>;
} // namespace

/// The warpgroup of a row: "warp 5" and "wgmma 1" belong to 1; -1: none.
static int groupOf(const std::string &row) {
  int number = 0;
  if (std::sscanf(row.c_str(), "warp %d", &number) == 1)
    return number / 4;
  if (std::sscanf(row.c_str(), "wgmma %d", &number) == 1)
    return number;
  return -1;
}

static void add(Spans &spans, const Event &event) {
  if (!spans.empty() && spans.back().kind == event.kind &&
      spans.back().slot == event.slot &&
      event.start <= spans.back().end + (event.kind == Timeline::Kind::store
                                             ? ~std::uint64_t(0) / 2
                                             : 0)) {
    spans.back().end = std::max(spans.back().end, event.end);
    return;
  }
  spans.push_back({event.kind, event.slot, event.start, event.end});
}

/// What a row does at a time: "mma-1", "wait-0"; products win over waits.
static std::string stateAt(const Spans &spans, std::uint64_t time) {
  const Span *best = nullptr;
  for (const Span &span : spans)
    if (span.start <= time && time < span.end &&
        (!best || span.kind == Timeline::Kind::product))
      best = &span;
  if (!best)
    return "";
  const char *word = best->kind == Timeline::Kind::product ? "mma"
                     : best->kind == Timeline::Kind::load  ? "tma"
                                                           : nameOf(best->kind);
  return best->slot < 0 ? word : fmt::format("{}-{}", word, best->slot);
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
  if (time < load->end)
    return "loading";
  if (!product || product->start < load->end)
    return "full";
  return time < product->end ? "in use" : "";
}

std::string Timeline::to_table(int rows) const {
  Spans loads, products;
  std::map<int, Spans> groups; ///< what a warpgroup does
  std::set<std::uint64_t> times;
  std::set<int> issuing, multiplying;
  int slots = 0;
  auto isFirst = [&](const Event &event) {
    return event.cta == events.front().cta;
  };
  for (const Event &event : events) {
    if (!isFirst(event))
      break;
    slots = std::max(slots, event.slot + 1);
    if (event.row == "tma" && event.kind == Kind::load)
      add(loads, event);
    if (event.kind == Kind::product) {
      add(products, event);
      multiplying.insert(groupOf(event.row));
    }
    if (event.name == "wait empty")
      issuing.insert(groupOf(event.row));
    if (int group = groupOf(event.row);
        group >= 0 && (event.row.starts_with("wgmma") ||
                       event.row == fmt::format("warp {}", 4 * group) ||
                       event.name == "wait empty"))
      add(groups[group], event);
  }
  if (events.empty() || (loads.empty() && groups.empty()))
    return "no copies, products or waits in the first CTA\n";
  Spans producer = loads;
  for (int group : issuing)
    if (!multiplying.contains(group))
      for (const Span &span : groups[group])
        producer.push_back(span);
  for (const Spans *spans : {&loads, &products})
    for (const Span &span : *spans)
      times.insert({span.start, span.end});
  for (int group : multiplying)
    for (const Span &span : groups[group])
      times.insert({span.start, span.end});

  const std::array<std::uint32_t, 3> &cta = events.front().cta;
  std::string line = fmt::format("+{:-<8}+{:-<10}+", "", "");
  std::string head = fmt::format("|{:>7} |{:<10}|", "time", " producer");
  for (int slot = 0; slot < slots; ++slot) {
    line += fmt::format("{:-<9}+", "");
    head += fmt::format("{:<9}|", fmt::format(" slot {}", slot));
  }
  for (int group : multiplying) {
    line += fmt::format("{:-<10}+", "");
    head += fmt::format("{:<10}|", fmt::format(" wgroup {}", group));
  }
  std::string text =
      fmt::format("CTA ({}, {}, {}); a unit of time is one warp instruction\n",
                  cta[0], cta[1], cta[2]) +
      line + '\n' + head + '\n' + line + '\n';
  std::string last;
  int shown = 0;
  for (std::uint64_t time : times) {
    std::string cells =
        fmt::format("{:<10}|", fmt::format(" {}", stateAt(producer, time)));
    for (int slot = 0; slot < slots; ++slot)
      cells += fmt::format(
          "{:<9}|", fmt::format(" {}", slotAt(loads, products, slot, time)));
    for (int group : multiplying)
      cells += fmt::format("{:<10}|",
                           fmt::format(" {}", stateAt(groups[group], time)));
    if (cells == last)
      continue;
    last = cells;
    if (++shown > rows) {
      text += "|    ... |\n";
      break;
    }
    text += fmt::format("|{:>7} |", time) + cells + '\n';
  }
  return text + line + '\n';
}

} // namespace kiln
