// ReadJson: a report that was written before, of this version or an earlier one.
//
// Somebody else may have written the file: texts are made fit for a terminal,
// numbers are held to what they can be, and keys that nobody knows are left
// alone, as a later version adds some.
#include "check/report/DetailJson.h"
#include "kiln/base/text.h"

namespace kiln {

static Finding::Grade gradeFrom(const JsonNode &node) {
  return node.at("grade").choice<Finding::Grade>(
      {{"note", Finding::Grade::note},
       {"warning", Finding::Grade::warning},
       {"error", Finding::Grade::error}});
}

static SourceLine placeFrom(const JsonNode &node) {
  return {textFrom(node, "file"),
          static_cast<unsigned>(node.at("line").whole(0, 0x7fffffff))};
}

static Finding::Other otherFrom(const JsonNode &node) {
  Finding::Other other;
  other.who = textFrom(node, "who");
  other.where = placeFrom(node);
  other.ptx_line = node.at("ptx_line").integer();
  other.is_write = node.at("access").choice<bool>({{"read", false}, {"write", true}});
  if (node.has("stack"))
    other.stack = stackFrom(node.at("stack"));
  if (node.has("cta"))
    other.cta = sizeFrom(node, "cta");
  other.unit = textFrom(node, "unit");
  if (node.has("number"))
    other.number = node.at("number").integer();
  if (node.has("time"))
    other.time = wholeFrom(node, "time");
  return other;
}

static std::uint64_t addressFrom(const JsonNode &node) {
  return node.at("address").whole(0, ~std::uint64_t(0));
}

static Finding::Waiting waitingFrom(const JsonNode &node, std::size_t count) {
  Finding::Waiting waiting;
  waiting.cta = sizeFrom(node, "cta");
  waiting.first = node.at("first").integer();
  waiting.last = node.at("last").integer();
  waiting.kind = textFrom(node, "kind");
  waiting.what = textFrom(node, "what");
  waiting.source = textFrom(node, "source");
  waiting.where = placeFrom(node);
  waiting.ptx_line = node.at("ptx_line").integer();
  waiting.object = textFrom(node, "object");
  if (node.has("address"))
    waiting.address = addressFrom(node);
  for (std::uint64_t index : node.at("on").wholes(0, count - 1))
    waiting.on.push_back(index);
  return waiting;
}

static Finding findingFrom(const JsonNode &node) {
  Finding finding;
  finding.id = textFrom(node, "id");
  finding.grade = gradeFrom(node);
  finding.message = textFrom(node, "message");
  finding.where = placeFrom(node);
  finding.ptx_line = node.at("ptx_line").integer();
  if (node.has("cta"))
    finding.cta = sizeFrom(node, "cta");
  if (node.has("thread"))
    finding.thread = node.at("thread").integer();
  finding.space = textFrom(node, "space");
  if (node.has("address"))
    finding.address = addressFrom(node);
  finding.buffer = textFrom(node, "buffer");
  finding.bytes = static_cast<std::uint32_t>(wholeFrom(node, "bytes"));
  finding.instruction = textFrom(node, "instruction");
  finding.count = node.at("count").whole(1, ~std::uint64_t(0));
  finding.kernel = textFrom(node, "kernel");
  if (node.has("launches"))
    finding.launches = node.at("launches").wholes(1, ~std::uint64_t(0) >> 1);
  if (node.has("interleavings"))
    for (const JsonNode &one : node.at("interleavings").list("strings"))
      finding.interleavings.push_back(printable(one.text("a string")));
  if (node.has("other"))
    finding.other = otherFrom(node.at("other"));
  finding.missing = textFrom(node, "missing");
  if (node.has("time"))
    finding.time = wholeFrom(node, "time");
  if (node.has("stack"))
    finding.stack = stackFrom(node.at("stack"));
  if (node.has("waits")) {
    std::vector<JsonNode> waits = node.at("waits").list("waits");
    for (const JsonNode &waiting : waits)
      finding.waits.push_back(waitingFrom(waiting, waits.size()));
  }
  return finding;
}

static LaunchResult numbersFrom(const JsonNode &node) {
  LaunchResult result;
  result.instructions = wholeFrom(node, "instructions");
  result.time_us = node.at("time_us").notNegative();
  result.resident_ctas = wholeFrom(node, "resident_ctas");
  if (node.has("registers")) {
    JsonNode registers = node.at("registers");
    result.registers = registers.at("per_thread").integer();
    result.registers_from = textFrom(registers, "from");
  }
  result.stats.shadow_bytes = wholeFrom(node, "shadow_bytes");
  if (!node.has("costs"))
    return result;
  JsonNode costs = node.at("costs");
  if (!costs.value().is_object())
    costs.refuse("an object of costs by their names");
  for (const auto &[name, value] : costs.value().items()) {
    JsonNode cost = costs.at(name.c_str());
    result.stats.costs.push_back({printable(name),
                                  wholeFrom(cost, "instructions"),
                                  cost.at("time_us").notNegative()});
  }
  return result;
}

static ReportedLaunch launchFrom(const JsonNode &node, std::size_t listings) {
  ReportedLaunch launch;
  launch.number = node.at("launch").whole(1, ~std::uint64_t(0) >> 1);
  launch.kernel = textFrom(node, "kernel");
  launch.grid = sizeFrom(node, "grid");
  launch.block = sizeFrom(node, "block");
  launch.cluster = sizeFrom(node, "cluster");
  launch.is_checked = node.at("checked").boolean();
  for (const JsonNode &one : node.at("interleavings").list("strings"))
    launch.interleavings.push_back(printable(one.text("a string")));
  launch.single_because = textFrom(node, "single_because");
  launch.file = textFrom(node, "launch_file");
  if (node.has("listing")) {
    if (!listings)
      node.at("listing").refuse("left out, as there are no listings");
    launch.listing = node.at("listing").whole(0, listings - 1);
  }
  launch.result = numbersFrom(node.at("stats"));
  launch.result.is_finished = node.at("finished").boolean();
  return launch;
}

static ReportedComparison comparisonFrom(const JsonNode &node) {
  ReportedComparison comparison;
  comparison.what = node.has("printf") ? "printf" : "buffer";
  comparison.name = textFrom(node, comparison.what.c_str());
  comparison.interleaving = textFrom(node, "interleaving");
  comparison.elements = node.at("elements").whole(0, ~std::uint64_t(0));
  comparison.wrong = node.at("wrong").whole(0, ~std::uint64_t(0));
  comparison.file = textFrom(node, "launch_file");
  return comparison;
}

Report Report::from_json(std::string_view text, const std::string &origin) {
  check_nesting(text, TextFormat::json, origin);
  const nlohmann::json value = parseJson(text, origin);
  JsonNode node(value, origin);
  if (!value.is_object() || !value.contains("version") ||
      !value.contains("verdict"))
    throw UserError(origin + " is no report of Kiln; --report FILE.json of "
                             "`kiln sim` and the other commands writes one");
  if (node.at("version").whole(1, ~std::uint32_t(0)) > kReportVersion)
    node.at("version").refuse(
        "at most " + std::to_string(kReportVersion) +
        ", which this Kiln knows; a later one has written it");
  Report report;
  if (node.has("listings"))
    for (const JsonNode &one : node.at("listings").list("listings"))
      report.listings.push_back(listingFrom(one));
  if (node.has("sources"))
    for (const JsonNode &one : node.at("sources").list("sources"))
      report.sources.push_back(sourceFrom(one));
  std::map<std::uint64_t, std::size_t> numbers;
  for (const JsonNode &one : node.at("launches").list("launches")) {
    report.launches.push_back(launchFrom(one, report.listings.size()));
    numbers[report.launches.back().number] = report.launches.size() - 1;
  }
  if (node.has("details"))
    for (const JsonNode &one : node.at("details").list("details")) {
      auto launch = numbers.find(wholeFrom(one, "launch"));
      if (launch == numbers.end() || report.listings.empty())
        one.at("launch").refuse("the number of a launch that has a listing");
      report.launches[launch->second].details.push_back(detailFrom(one));
    }
  for (const JsonNode &one : node.at("findings").list("findings"))
    report.findings.push_back(findingFrom(one));
  for (std::size_t i = 0; i < report.findings.size(); ++i)
    report.known_.try_emplace(report.findings[i].identity(), i);
  for (const JsonNode &one : node.at("comparisons").list("comparisons"))
    report.comparisons.push_back(comparisonFrom(one));
  JsonNode stats = node.at("stats");
  report.total_ = numbersFrom(stats);
  for (const ReportedLaunch &launch : report.launches)
    report.total_.is_finished &= launch.result.is_finished;
  report.launch_count = wholeFrom(stats, "launches");
  report.checked_count = wholeFrom(stats, "checked");
  report.findings_left_out = wholeFrom(node, "findings_left_out");
  report.refusal = textFrom(node, "refusal");
  report.max_findings = 0; // all that it has
  return report;
}

} // namespace kiln
