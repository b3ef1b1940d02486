// Sarif: one run of one tool, whose rules are the findings that `kiln explain`
// knows. Places are in files of the source, else in the PTX.
#include "kiln/check/explanation.h"
#include "kiln/check/report.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>

namespace kiln {

using nlohmann::ordered_json;

static ordered_json message(const std::string &text) {
  return {{"text", text}};
}

/// A path as RFC 3986 has it: what is not in its alphabet is written as %20.
static std::string uriOf(const std::string &path) {
  std::string uri = path.starts_with('/') ? "file://" : "";
  for (unsigned char c : path)
    if (std::isalnum(c) || std::strchr("/-._~", c))
      uri += static_cast<char>(c);
    else
      uri += fmt::format("%{:02X}", c);
  return uri;
}

static ordered_json placeOf(const SourceLine &where) {
  ordered_json place = {{"artifactLocation", {{"uri", uriOf(where.file)}}}};
  if (where.line)
    place["region"] = {{"startLine", where.line}};
  return {{"physicalLocation", place}};
}

/// Null: this version has no such rule.
static const Explanation *findExplanation(const std::string &id) {
  auto rows = explanations();
  auto found = std::find_if(rows.begin(), rows.end(),
                            [&](const auto &row) { return row.id == id; });
  return found == rows.end() ? nullptr : &*found;
}

/// What is refused before it runs is no finding of the simulator's.
static ordered_json ruleOf(const std::string &id) {
  if (id == "refused")
    return {{"id", id},
            {"shortDescription", message(id)},
            {"fullDescription", message("Kiln refuses the kernel or its launch "
                                        "before anything runs.")}};
  const Explanation *known = findExplanation(id);
  if (!known) // of another version's report
    return {{"id", id}, {"shortDescription", message(id)}};
  const Explanation &row = *known;
  return {{"id", row.id},
          {"shortDescription", message(std::string(row.id))},
          {"fullDescription", message(std::string(row.cause))},
          {"help", message(std::string(row.repair))},
          {"defaultConfiguration", {{"level", name(row.grade)}}}};
}

static ordered_json stackOf(const std::vector<Finding::Frame> &stack) {
  ordered_json frames = ordered_json::array();
  for (const Finding::Frame &frame : stack) {
    ordered_json place =
        frame.where.is_known() ? placeOf(frame.where) : ordered_json::object();
    place["message"] = message(frame.function);
    frames.push_back(ordered_json::object({{"location", place}}));
  }
  return {{"frames", frames}};
}

/// One access of a flow.
static ordered_json stepOf(const SourceLine &where, const std::string &text) {
  ordered_json place =
      where.is_known() ? placeOf(where) : ordered_json::object();
  place["message"] = message(text);
  return {{"location", place}};
}

/// Both accesses, the one that the simulator knew first at the head.
static ordered_json flowOf(const Finding &finding) {
  const Finding::Other &other = *finding.other;
  ordered_json steps = ordered_json::array(
      {stepOf(other.where, fmt::format("{} {}", other.who,
                                       other.is_write ? "writes" : "reads")),
       stepOf(finding.where, finding.message)});
  ordered_json flow = {{"locations", steps}};
  return ordered_json::array(
      {{{"threadFlows", ordered_json::array({flow})}}});
}

/// `copy`: of those with the same fingerprint, from 1.
static ordered_json resultOf(const Finding &finding, std::size_t rule,
                             std::size_t copy) {
  ordered_json result = {{"ruleId", finding.id},
                         {"ruleIndex", rule},
                         {"level", name(finding.grade)},
                         {"message", message(finding.message)},
                         {"occurrenceCount", finding.count}};
  if (finding.where.is_known())
    result["locations"] = ordered_json::array({placeOf(finding.where)});
  if (finding.other && finding.other->where.is_known()) {
    ordered_json other = placeOf(finding.other->where);
    other["id"] = 1;
    other["message"] = message(finding.other->who + " " +
                               (finding.other->is_write ? "writes" : "reads"));
    result["relatedLocations"] = ordered_json::array({other});
  }
  ordered_json stacks = ordered_json::array();
  if (!finding.stack.empty())
    stacks.push_back(stackOf(finding.stack));
  if (finding.other && !finding.other->stack.empty()) {
    stacks.push_back(stackOf(finding.other->stack));
    stacks.back()["message"] = message("the other access");
  }
  if (!stacks.empty())
    result["stacks"] = stacks;
  if (finding.other)
    result["codeFlows"] = flowOf(finding);
  result["partialFingerprints"] = {
      {"kilnFinding/v2", fmt::format("{}:{}", fingerprint(finding), copy)}};
  result["properties"] = {{"ptx_line", finding.ptx_line},
                          {"instruction", finding.instruction}};
  if (!finding.kernel.empty())
    result["properties"]["kernel"] = finding.kernel;
  if (!finding.interleavings.empty())
    result["properties"]["interleavings"] = finding.interleavings;
  return result;
}

std::string Report::to_sarif() const {
  ordered_json rules = ordered_json::array(), results = ordered_json::array();
  std::map<std::string, std::size_t> index, copies;
  for (const Finding &finding : findings) {
    auto [rule, is_new] = index.try_emplace(finding.id, rules.size());
    if (is_new)
      rules.push_back(ruleOf(finding.id));
    results.push_back(
        resultOf(finding, rule->second, ++copies[fingerprint(finding)]));
  }
  ordered_json driver = {{"name", "kiln"},
                         {"semanticVersion", KILN_VERSION},
                         {"rules", rules}};
  ordered_json run = {{"tool", ordered_json::object({{"driver", driver}})},
                      {"results", results}};
  ordered_json log = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", ordered_json::array({run})}};
  return log.dump(2, ' ', false, ordered_json::error_handler_t::replace) +
         "\n";
}

} // namespace kiln
