// Json: a report as an object (docs/report.schema.json).
#include "check/report/DetailJson.h"
#include "kiln/check/report.h"

#include <fmt/format.h>

namespace kiln {

using nlohmann::ordered_json;

static ordered_json toJson(const Finding::Waiting &waiting) {
  ordered_json value = {{"cta", waiting.cta},
                        {"first", waiting.first},
                        {"last", waiting.last},
                        {"kind", waiting.kind},
                        {"what", waiting.what},
                        {"source", waiting.source},
                        {"file", waiting.where.file},
                        {"line", waiting.where.line},
                        {"ptx_line", waiting.ptx_line},
                        {"on", waiting.on}};
  if (!waiting.object.empty())
    value["object"] = waiting.object;
  if (waiting.address)
    value["address"] = *waiting.address;
  return value;
}

static ordered_json toJson(const Finding::Other &other) {
  ordered_json value = {{"who", other.who},
                        {"access", other.is_write ? "write" : "read"},
                        {"file", other.where.file},
                        {"line", other.where.line},
                        {"ptx_line", other.ptx_line}};
  if (!other.stack.empty())
    value["stack"] = toJson(other.stack);
  if (other.cta)
    value["cta"] = *other.cta;
  if (!other.unit.empty()) {
    value["unit"] = other.unit;
    value["number"] = other.number;
  }
  if (other.time)
    value["time"] = *other.time;
  return value;
}

static ordered_json toJson(const Finding &finding) {
  ordered_json value = {
      {"id", finding.id},           {"grade", name(finding.grade)},
      {"message", finding.message}, {"file", finding.where.file},
      {"line", finding.where.line}, {"ptx_line", finding.ptx_line}};
  if (finding.cta)
    value["cta"] = *finding.cta;
  if (finding.thread >= 0)
    value["thread"] = finding.thread;
  if (!finding.space.empty())
    value["space"] = finding.space;
  if (finding.address)
    value["address"] = *finding.address;
  if (!finding.buffer.empty())
    value["buffer"] = finding.buffer;
  if (finding.bytes)
    value["bytes"] = finding.bytes;
  if (!finding.instruction.empty())
    value["instruction"] = finding.instruction;
  value["count"] = finding.count;
  if (!finding.kernel.empty())
    value["kernel"] = finding.kernel;
  if (!finding.launches.empty())
    value["launches"] = finding.launches;
  if (!finding.interleavings.empty())
    value["interleavings"] = finding.interleavings;
  if (finding.other)
    value["other"] = toJson(*finding.other);
  if (!finding.missing.empty())
    value["missing"] = finding.missing;
  if (finding.time)
    value["time"] = *finding.time;
  if (!finding.waits.empty()) {
    ordered_json waits = ordered_json::array();
    for (const Finding::Waiting &waiting : finding.waits)
      waits.push_back(toJson(waiting));
    value["waits"] = std::move(waits);
  }
  if (!finding.stack.empty())
    value["stack"] = toJson(finding.stack);
  return value;
}

/// Instructions, time, and what they were spent on.
static ordered_json numbersOf(const LaunchResult &result) {
  double ns = result.instructions ? result.time_us * 1e3 /
                                        static_cast<double>(result.instructions)
                                  : 0;
  ordered_json numbers = {{"instructions", result.instructions},
                          {"time_us", result.time_us},
                          {"ns_per_instruction", ns},
                          {"resident_ctas", result.resident_ctas}};
  if (result.registers)
    numbers["registers"] = {{"per_thread", result.registers},
                            {"from", result.registers_from}};
  if (result.stats.costs.empty())
    return numbers;
  ordered_json costs = ordered_json::object();
  for (const LaunchStats::Cost &cost : result.stats.costs)
    costs[cost.name] = {{"instructions", cost.instructions},
                        {"time_us", cost.time_us}};
  numbers["costs"] = costs;
  numbers["shadow_bytes"] = result.stats.shadow_bytes;
  return numbers;
}

static ordered_json toJson(const ReportedLaunch &launch) {
  ordered_json value = {{"launch", launch.number},
                        {"kernel", launch.kernel},
                        {"grid", launch.grid},
                        {"block", launch.block},
                        {"cluster", launch.cluster},
                        {"checked", launch.is_checked},
                        {"finished", launch.result.is_finished},
                        {"interleavings", launch.interleavings}};
  if (!launch.single_because.empty())
    value["single_because"] = launch.single_because;
  if (!launch.file.empty())
    value["launch_file"] = launch.file;
  if (!launch.details.empty())
    value["listing"] = launch.listing;
  value["stats"] = numbersOf(launch.result);
  return value;
}

static ordered_json toJson(const ReportedComparison &comparison) {
  ordered_json value = ordered_json::object();
  value[comparison.what] = comparison.name;
  value["interleaving"] = comparison.interleaving;
  value["elements"] = comparison.elements;
  value["wrong"] = comparison.wrong;
  if (!comparison.file.empty())
    value["launch_file"] = comparison.file;
  return value;
}

template <typename Row>
static ordered_json listOf(const std::vector<Row> &rows) {
  ordered_json list = ordered_json::array();
  for (const Row &row : rows)
    list.push_back(toJson(row));
  return list;
}

std::string Report::to_json() const {
  ordered_json stats = numbersOf(total_);
  stats["launches"] = launch_count;
  stats["checked"] = checked_count;
  ordered_json value = {{"version", kReportVersion},
                        {"kiln", KILN_VERSION},
                        {"verdict", name(verdict())},
                        {"launches", listOf(launches)},
                        {"findings", listOf(findings)},
                        {"comparisons", listOf(comparisons)},
                        {"stats", stats}};
  if (findings_left_out)
    value["findings_left_out"] = findings_left_out;
  if (!profiles.empty())
    value["profiles"] = ordered_json::parse(kiln::to_json(profiles))["profiles"];
  if (!refusal.empty())
    value["refusal"] = refusal;
  std::string text =
      value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
  if (listings.empty())
    return text + "\n";
  // Tables, a row of which is a line.
  text.resize(text.rfind('\n'));
  auto add = [&](const char *key, const std::vector<ordered_json> &rows) {
    text += fmt::format(",\n  \"{}\": [", key);
    const char *separator = "\n    ";
    for (const ordered_json &row : rows) {
      text += separator + row.dump(-1, ' ', false,
                                   ordered_json::error_handler_t::replace);
      separator = ",\n    ";
    }
    text += rows.empty() ? "]" : "\n  ]";
  };
  auto rowsOf = [](const auto &list) {
    std::vector<ordered_json> rows;
    for (const auto &one : list)
      rows.push_back(toJson(one));
    return rows;
  };
  std::vector<ordered_json> details;
  for (const ReportedLaunch &launch : launches)
    for (const ReportedLaunch::Detail &detail : launch.details)
      details.push_back(toJson(launch.number, detail));
  add("listings", rowsOf(listings));
  add("sources", rowsOf(sources));
  add("details", details);
  return text + "\n}\n";
}

} // namespace kiln
