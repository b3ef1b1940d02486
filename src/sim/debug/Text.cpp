// Text: answers as the console shows them.
#include "kiln/base/text.h"
#include "kiln/debug/debugger.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

namespace kiln {

using Answer = nlohmann::json;

static std::string textOf(const Answer &value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

static std::string ctaText(const Answer &cta) {
  return fmt::format("({}, {}, {})", textOf(cta[0]), textOf(cta[1]),
                     textOf(cta[2]));
}

static std::string threadLine(const Answer &thread) {
  return fmt::format("CTA {}, warp {}, lane {}", ctaText(thread["cta"]),
                     textOf(thread["warp"]), textOf(thread["lane"]));
}

static std::string showPosition(const Answer &position) {
  if (position.is_null() || position.empty())
    return "";
  std::string text = fmt::format("time {}, {}", textOf(position["time"]),
                                 threadLine(position["thread"]));
  if (position.contains("state"))
    return text + ": " + textOf(position["state"]) + "\n";
  const Answer &frame = position["frames"].at(0);
  return text + fmt::format(", {} at {}:{}\n  {}: {}\n",
                            textOf(frame["function"]), textOf(frame["file"]),
                            textOf(frame["line"]), textOf(position["ptx_line"]),
                            textOf(position["instruction"]));
}

static std::string showStop(const Answer &answer) {
  std::string text = textOf(answer["reason"]["text"]) + "\n";
  if (answer["reason"].contains("also"))
    for (const Answer &one : answer["reason"]["also"])
      text += "also: " + textOf(one["text"]) + "\n";
  return text + showPosition(answer["position"]);
}

static std::string showFrames(const Answer &answer) {
  std::string text = showPosition(answer["position"]);
  if (!answer["position"].contains("frames"))
    return text;
  int number = 0;
  for (const Answer &frame : answer["position"]["frames"])
    text += fmt::format("  #{} {} at {}:{} (ptx:{})\n", number++,
                        textOf(frame["function"]), textOf(frame["file"]),
                        textOf(frame["line"]), textOf(frame["ptx_line"]));
  return text;
}

static std::string showThreads(const Answer &answer) {
  std::string text;
  for (const Answer &group : answer["groups"]) {
    text += fmt::format(
        "CTA {}, threads {} to {}{}: {} at {}:{}\n    {}: {}\n",
        ctaText(group["cta"]), textOf(group["first"]), textOf(group["last"]),
        group.contains("role") ? " (" + textOf(group["role"]) + ")" : "",
        textOf(group["waits_for"]), textOf(group["file"]),
        textOf(group["line"]), textOf(group["ptx_line"]),
        textOf(group["instruction"]));
    if (group.contains("source"))
      text += "    " + textOf(group["source"]) + "\n";
  }
  if (answer.contains("left_out"))
    text += fmt::format("and {} more groups\n", textOf(answer["left_out"]));
  return text +
         fmt::format(
             "{} CTAs are under way{}\n", textOf(answer["ctas_under_way"]),
             answer.contains("ctas") ? " of " + textOf(answer["ctas"]) : "");
}

static std::string joined(const Answer &values, std::size_t perLine,
                          const std::string &indent) {
  std::string text;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % perLine == 0)
      text += i ? "\n" + indent : indent;
    text +=
        fmt::format("{:>10} ", values[i].is_null() ? "-" : textOf(values[i]));
  }
  return text + "\n";
}

static std::string showRegisters(const Answer &answer) {
  std::string text;
  for (const Answer &one : answer["registers"])
    if (one.contains("values"))
      text +=
          fmt::format("{} ({})\n", textOf(one["name"]), textOf(one["type"])) +
          joined(one["values"], 8, "  ");
    else
      text += fmt::format(
          "  {:<12} {:<6} {:>24}  {}{}\n", textOf(one["name"]),
          textOf(one["type"]), textOf(one["value"]),
          one.contains("bits") ? textOf(one["bits"]) : "",
          one.contains("unwritten") ? "  (from bytes that nobody wrote)" : "");
  if (answer.contains("special"))
    for (const Answer &one : answer["special"])
      text += fmt::format("  {:<12} {:>24}\n", textOf(one["name"]),
                          textOf(one["value"]));
  return text;
}

static std::string showValue(const Answer &answer) {
  if (answer.contains("values"))
    return joined(answer["values"], 8, "  ");
  return fmt::format(
      "{} = {}{}\n", textOf(answer["expression"]), textOf(answer["value"]),
      answer.contains("hex") ? " (" + textOf(answer["hex"]) + ")" : "");
}

static std::string showMemory(const Answer &answer) {
  std::string text = fmt::format("{}, as {}\n", textOf(answer["what"]),
                                 textOf(answer["type"]));
  if (answer.contains("bytes"))
    return text + textOf(answer["bytes"]) + "\n";
  return text + joined(answer["values"], 8, "  ");
}

static std::string showTile(const Answer &answer) {
  std::string text;
  if (answer.contains("what"))
    text =
        fmt::format("{}: {} x {} of {}, swizzle {}\n", textOf(answer["what"]),
                    textOf(answer["rows"]), textOf(answer["columns"]),
                    textOf(answer["type"]), textOf(answer["swizzle"]));
  for (const Answer &line : answer["values"])
    text += joined(line, line.size() + 1, "  ");
  return text;
}

static std::string showMbarriers(const Answer &answer) {
  std::string text;
  for (const Answer &one : answer["mbarriers"]) {
    text += fmt::format("{}: {} complete (parity {}), {} of {} arrivals "
                        "and {} bytes missing\n",
                        textOf(one["name"]),
                        one["completed"] == 1
                            ? std::string("1 phase")
                            : textOf(one["completed"]) + " phases",
                        textOf(one["parity"]), textOf(one["pending"]),
                        textOf(one["expected"]), textOf(one["bytes"]));
    if (!one["senders"].empty()) {
      text += "    signalled at";
      for (const Answer &sender : one["senders"])
        text += " " + textOf(sender);
      text += "\n";
    }
  }
  return text.empty() ? "the CTA has no mbarriers now\n" : text;
}

static std::string showLines(const Answer &answer) {
  std::string text = textOf(answer["file"]) + "\n";
  for (const Answer &line : answer["lines"])
    text += fmt::format("{} {:>6}  {}\n",
                        line["line"] == answer["current"] ? "=>" : "  ",
                        textOf(line["line"]), textOf(line["text"]));
  return text;
}

static std::string showStops(const Answer &answer) {
  std::string text;
  for (const Answer &stop : answer["stops"]) {
    text += fmt::format("{}: {}", textOf(stop["id"]), textOf(stop["kind"]));
    for (const char *key :
         {"place", "what", "bytes", "address", "phase", "ids"})
      if (stop.contains(key))
        text += fmt::format(" {}", textOf(stop[key]));
    if (stop.contains("if"))
      text += " if " + textOf(stop["if"]);
    text += "\n";
  }
  return text.empty() ? "nothing stops the launch\n" : text;
}

static std::string showAdded(const Answer &answer) {
  const Answer &stop = answer["stop"];
  if (stop.is_null())
    return "findings do not stop the launch\n";
  std::string text =
      fmt::format("{} {}", textOf(stop["kind"]), textOf(stop["id"]));
  if (stop.contains("places"))
    for (const Answer &place : stop["places"])
      text += fmt::format("\n  at {}:{} (ptx:{}) in {}", textOf(place["file"]),
                          textOf(place["line"]), textOf(place["ptx_line"]),
                          textOf(place["function"]));
  if (stop.contains("what"))
    text += ": " + textOf(stop["what"]);
  return text + "\n";
}

static std::string showPast(const Answer &answer) {
  std::string text = textOf(answer["text"]) + "\n";
  if (!answer["found"].get<bool>())
    return text;
  const Answer &hit = answer["hit"];
  text += fmt::format("  at time {}", textOf(hit["time"]));
  if (hit.contains("details") && hit["details"].contains("by") &&
      hit["details"]["by"].is_object() &&
      hit["details"]["by"].contains("issued"))
    text += fmt::format(", issued at time {}",
                        textOf(hit["details"]["by"]["issued"]));
  return text + fmt::format("; `goto {}` goes there\n", textOf(hit["time"]));
}

static std::string showFindings(const Answer &answer) {
  std::string text;
  for (const Answer &one : answer["findings"])
    text +=
        fmt::format("time {}: {}\n", textOf(one["time"]), textOf(one["text"]));
  return text.empty() ? "nothing has been found until now\n" : text;
}

static std::string showCheckpoints(const Answer &answer) {
  return fmt::format("{} checkpoints, {} bytes of {}; {} were made and {} "
                     "thinned out\n",
                     answer["times"].size(), textOf(answer["bytes"]),
                     textOf(answer["limit_bytes"]), textOf(answer["made"]),
                     textOf(answer["thinned_out"])) +
         joined(answer["times"], 8, "  ");
}

static std::string showHelp(const Answer &answer) {
  std::string text;
  for (const Answer &one : answer["commands"])
    text += fmt::format("  {}{}\n      {}\n", textOf(one["usage"]),
                        one["alias"] == "" ? "" : ", " + textOf(one["alias"]),
                        textOf(one["help"]));
  return text;
}

/// Whatever has no form of its own: a key and a value in each line.
static std::string showFields(const Answer &answer) {
  std::string text;
  for (const auto &[key, value] : answer.items())
    if (key != "command" && key != "ok" && key != "thread")
      text += fmt::format("{}: {}\n", key, textOf(value));
  return text.empty() ? "" : text;
}

std::string debug_text(std::string_view text) {
  Answer answer = Answer::parse(text, nullptr, false);
  if (!answer.is_object())
    userError("the text is no answer of the debugger");
  if (!answer.value("ok", false))
    return "error: " + printable(answer.value("error", "")) + "\n";
  struct Row {
    const char *command, *key; ///< either of them says what it is
    std::string (*show)(const Answer &);
  };
  static constexpr Row kRows[] = {
      {"", "reason", showStop},         {"where", "", showFrames},
      {"focus", "", showFrames},        {"threads", "", showThreads},
      {"registers", "", showRegisters}, {"print", "", showValue},
      {"memory", "", showMemory},       {"tile", "", showTile},
      {"tensor", "values", showTile},   {"mbarriers", "", showMbarriers},
      {"", "lines", showLines},         {"", "stops", showStops},
      {"", "stop", showAdded},          {"", "found", showPast},
      {"findings", "", showFindings},   {"checkpoints", "", showCheckpoints},
      {"help", "", showHelp},
  };
  std::string command = answer.value("command", "");
  for (const Row &row : kRows)
    if ((*row.command && command == row.command) ||
        (*row.key && command != "info" && answer.contains(row.key)))
      return printable(row.show(answer));
  return printable(showFields(answer));
}

} // namespace kiln
