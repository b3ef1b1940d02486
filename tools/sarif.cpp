// sarif: one run of one tool, whose rules are the findings that `kiln explain`
// knows. Places are in files of the source, else in the PTX.
#include "sarif.h"

#include <kiln/sim.h>

#include <nlohmann/json.hpp>

#include <map>

namespace kiln::cli {

using nlohmann::ordered_json;

static ordered_json message(const std::string &text) {
  return {{"text", text}};
}

static ordered_json place_of(const SourceLine &where) {
  ordered_json place = {{"artifactLocation", {{"uri", where.file}}}};
  if (where.line)
    place["region"] = {{"startLine", where.line}};
  return {{"physicalLocation", place}};
}

static ordered_json rule_of(const Explanation &row) {
  return {{"id", row.id},
          {"shortDescription", message(std::string(row.id))},
          {"fullDescription", message(std::string(row.cause))},
          {"help", message(std::string(row.repair))},
          {"defaultConfiguration", {{"level", name(row.grade)}}}};
}

static ordered_json result_of(const Finding &finding, std::size_t rule) {
  ordered_json result = {{"ruleId", finding.id},
                         {"ruleIndex", rule},
                         {"level", name(finding.grade)},
                         {"message", message(finding.message)},
                         {"occurrenceCount", finding.count}};
  if (finding.where.is_known())
    result["locations"] = ordered_json::array({place_of(finding.where)});
  if (finding.other) {
    ordered_json other = place_of(finding.other->where);
    other["id"] = 1;
    other["message"] = message(finding.other->who + " " +
                               (finding.other->is_write ? "writes" : "reads"));
    result["relatedLocations"] = ordered_json::array({other});
  }
  ordered_json frames = ordered_json::array();
  for (const Finding::Frame &frame : finding.stack) {
    ordered_json place = place_of(frame.where);
    place["message"] = message(frame.function);
    frames.push_back(ordered_json::object({{"location", place}}));
  }
  if (!frames.empty())
    result["stacks"] =
        ordered_json::array({ordered_json::object({{"frames", frames}})});
  result["properties"] = {{"ptx_line", finding.ptx_line},
                          {"instruction", finding.instruction}};
  return result;
}

std::string to_sarif(const std::vector<Finding> &findings) {
  ordered_json rules = ordered_json::array(), results = ordered_json::array();
  std::map<std::string, std::size_t> index;
  for (const Finding &finding : findings) {
    auto [rule, is_new] = index.try_emplace(finding.id, rules.size());
    if (is_new)
      rules.push_back(rule_of(explain(finding.id)));
    results.push_back(result_of(finding, rule->second));
  }
  ordered_json driver = {{"name", "kiln"}, {"rules", rules}};
  ordered_json run = {{"tool", ordered_json::object({{"driver", driver}})},
                      {"results", results}};
  ordered_json log = {
      {"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
      {"version", "2.1.0"},
      {"runs", ordered_json::array({run})}};
  return log.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

} // namespace kiln::cli
