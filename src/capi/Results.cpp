// Results: what came of launches, and what findings mean, in the C interface.
#include "capi/Handles.h"
#include "kiln/base/file.h"
#include "kiln/check/explanation.h"
#include "kiln/check/launch_file.h"
#include "kiln/check/sim.h"
#include "support/Error.h"

#include <cstddef>
#include <fmt/ranges.h>

using namespace kiln;
using namespace kiln::capi;

namespace kiln::capi {

/// Write the files that the settings ask for.
static void save(const Report &report, const CheckSettings &settings) {
  if (!settings.report_path.empty())
    report.save(settings.report_path);
  if (!settings.timeline_path.empty())
    write_file(settings.timeline_path, {report.timeline.to_trace()});
  // "-" asks for no file: kiln_result_format has it.
  if (!settings.profile_path.empty() && settings.profile_path != "-")
    save_profile(report.profiles, settings.profile_path);
}

static std::unique_ptr<kiln_result> makeResult(Report report,
                                               const CheckSettings &settings) {
  save(report, settings);
  auto result = std::make_unique<kiln_result>();
  for (const Finding &finding : report.findings) {
    result->interleavings.push_back(
        fmt::format("{}", fmt::join(finding.interleavings, ", ")));
    result->texts.push_back(finding.to_string());
  }
  result->formats["json"] = report.to_json();
  result->report = std::move(report);
  return result;
}

std::unique_ptr<kiln_result>
exploreAll(kiln_device &device, const std::vector<LaunchDescription> &launches,
           const CheckSettings &settings) {
  ExploreOptions options =
      settings.explore_options(device.device->description());
  options.sim.cancel = &device.isInterrupted;
  options.sim.progress = [&device](std::uint64_t done, std::uint64_t total) {
    device.ctasDone = done;
    device.ctasTotal = total;
  };
  if (device.isQuiet)
    options.sim.print = [](const std::string &) {};
  device.ctasDone = device.ctasTotal = 0;
  Exploration exploration = explore(*device.device, launches, options);
  Report report;
  for (const LaunchDescription &launch : launches)
    report.begin({.kernel = launch.name,
                  .grid = launch.grid,
                  .block = launch.block,
                  .cluster = launch.cluster,
                  .is_checked = options.sim.checks,
                  .single_because = exploration.single_because});
  for (const ExploredRun &run : exploration.runs)
    report.add(0, run);
  auto result = makeResult(std::move(report), settings);
  if (!exploration.runs.empty())
    result->printed = exploration.runs.front().printed;
  return result;
}

} // namespace kiln::capi

kiln_error *kiln_launch_file_run(const char *path, const char *ptx,
                                 const kiln_options *options,
                                 kiln_result **result) {
  return attempt([&] {
    require(path, "path");
    require(result, "result");
    CheckSettings settings = settingsOf(options);
    LaunchJob job = LaunchJob::load(ptx ? ptx : "", path);
    ExploreOptions explored = settings.explore_options(
        settings.gpu.empty() ? job.device() : DeviceDescription::h200());
    explored.sim = job.sim_options(std::move(explored.sim));
    PreparedJob prepared(std::move(job), open_sim(explored.sim));
    Report report = check_job(prepared, explored).report;
    *result = makeResult(std::move(report), settings).release();
  });
}

kiln_error *kiln_launch_file_init(const char *ptx, const char *path) {
  return attempt([&] {
    require(ptx, "ptx");
    require(path, "path");
    first_launch_file(read_kernel(ptx)).save(path);
  });
}

int kiln_result_is_ok(const kiln_result *result) {
  return result && result->report.ok();
}
int kiln_result_is_finished(const kiln_result *result) {
  return result && result->report.total().is_finished;
}
double kiln_result_time_us(const kiln_result *result) {
  return result ? result->report.total().time_us : 0;
}
uint64_t kiln_result_instructions(const kiln_result *result) {
  return result ? result->report.total().instructions : 0;
}
size_t kiln_result_finding_count(const kiln_result *result) {
  return result ? result->report.findings.size() : 0;
}

kiln_error *kiln_result_finding(const kiln_result *result, size_t index,
                                kiln_finding *finding) {
  return attempt([&] {
    require(result, "result");
    require(finding, "finding");
    const auto &findings = result->report.findings;
    if (index >= findings.size())
      userError("there is no finding {}; the result has {}", index,
                findings.size());
    const Finding &found = findings[index];
    kiln_finding known = {};
    known.id = found.id.c_str();
    known.message = found.message.c_str();
    known.grade = static_cast<int>(found.grade);
    known.file = found.where.file.c_str();
    known.line = found.where.line;
    known.ptx_line = found.ptx_line;
    known.kernel = found.kernel.c_str();
    known.interleavings = result->interleavings[index].c_str();
    known.text = result->texts[index].c_str();
    known.count = found.count;
    known.thread = found.thread;
    known.has_other = found.other.has_value();
    known.other_who = found.other ? found.other->who.c_str() : "";
    known.other_file = found.other ? found.other->where.file.c_str() : "";
    known.other_line = found.other ? found.other->where.line : 0;
    known.other_ptx_line = found.other ? found.other->ptx_line : 0;
    writeStructure(known, *finding, offsetof(kiln_finding, kernel), "finding");
  });
}

const char *kiln_result_printed(const kiln_result *result) {
  return result ? result->printed.c_str() : "";
}
const char *kiln_result_json(const kiln_result *result) {
  return result ? result->formats.at("json").c_str() : "";
}

static std::string formatted(const Report &report, const std::string &format) {
  if (format == "json")
    return report.to_json();
  if (format == "sarif")
    return report.to_sarif();
  if (format == "html")
    return report.to_html();
  if (format == "junit")
    return report.to_junit();
  if (format == "text")
    return report.to_text();
  if (format == "timeline")
    return report.timeline.to_trace();
  if (format == "timeline-table")
    return report.timeline.to_table();
  if (format == "profile")
    return to_json(report.profiles);
  if (format == "profile-table")
    return to_table(report.profiles);
  if (format == "speedscope")
    return to_speedscope(report.profiles);
  if (format == "roofline")
    return to_roofline(report.profiles);
  userError("'{}' is not a format; use json, html, sarif, junit, text, "
            "timeline, timeline-table, profile, profile-table, speedscope or "
            "roofline",
            format);
}

kiln_error *kiln_result_format(kiln_result *result, const char *format,
                               const char **text) {
  return attempt([&] {
    require(result, "result");
    require(format, "format");
    require(text, "text");
    auto known = result->formats.find(format);
    if (known == result->formats.end())
      known = result->formats.emplace(format, formatted(result->report, format))
                  .first;
    *text = known->second.c_str();
  });
}

kiln_error *kiln_result_save(const kiln_result *result, const char *path) {
  return attempt([&] {
    require(result, "result");
    require(path, "path");
    result->report.save(path);
  });
}

void kiln_result_free(kiln_result *result) { delete result; }

kiln_error *kiln_explain(const char *id, kiln_explanation *explanation) {
  return attempt([&] {
    require(id, "id");
    require(explanation, "explanation");
    // Rows of a table: their texts end in zeros.
    const Explanation &row = explain(id);
    kiln_explanation known = {};
    known.id = row.id.data();
    known.cause = row.cause.data();
    known.broken = row.broken.data();
    known.repair = row.repair.data();
    known.grade = static_cast<int>(row.grade);
    known.ends_launch = row.ends_launch;
    writeStructure(known, *explanation, sizeof(kiln_explanation),
                   "explanation");
  });
}
size_t kiln_explanation_count(void) { return explanations().size(); }
const char *kiln_explanation_id(size_t index) {
  return index < explanations().size() ? explanations()[index].id.data()
                                       : nullptr;
}

size_t kiln_option_count(void) { return check_options().size(); }

/// The table with what is made from its rows, once.
static const std::vector<std::string> &optionKeys() {
  static const std::vector<std::string> keys = [] {
    std::vector<std::string> all;
    for (const CheckOption &option : check_options())
      all.push_back(key_name(option));
    return all;
  }();
  return keys;
}

kiln_error *kiln_option_at(size_t index, kiln_option *option) {
  return attempt([&] {
    require(option, "option");
    if (index >= check_options().size())
      userError("there is no option {}; there are {}", index,
                check_options().size());
    const CheckOption &row = check_options()[index];
    kiln_option known = {};
    known.name = row.name;
    known.key = optionKeys()[index].c_str();
    known.accepted = row.accepted;
    known.fallback = row.fallback;
    known.help = row.help;
    writeStructure(known, *option, sizeof(kiln_option), "option");
  });
}
