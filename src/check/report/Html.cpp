// Html: a report as one page that needs nothing else.
//
// What it says is in it twice: as a plain list, for readers without JavaScript,
// printers and search; and as the JSON of the same report, packed, which the
// script of page/ unpacks and draws. Nothing of a stranger's is anything but
// text: it is escaped here, the script makes nodes of text alone, and the
// Content-Security-Policy lets no other script run.
#include "check/report/Markup.h"
#include "check/report/page/Assets.h"
#include "kiln/check/explanation.h"
#include "kiln/check/report.h"
#include "support/text/Deflate.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>

namespace kiln {

/// What a page may have: the list, and the packed data behind it.
static constexpr std::size_t kMostListBytes = 700 << 10,
                             kMostDataBytes = 1100 << 10;
/// A message in the list.
static constexpr std::size_t kMostMessageBytes = 2000;

static std::string placeText(const SourceLine &where) {
  return where.is_known() ? fmt::format("{}:{}", where.file, where.line) : "";
}

static std::string shortened(const std::string &text, std::size_t most) {
  if (text.size() <= most)
    return text;
  std::size_t end = most;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0) == 0x80)
    --end;
  return text.substr(0, end) + " ...";
}

static std::string headOf(const std::string &title, bool hasScript) {
  const PageAssets &assets = pageAssets();
  // 'none' of the first holds for fonts, images, frames and connections.
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
      "'none'; script-src {}; style-src '{}'; base-uri 'none'; form-action "
      "'none'; require-trusted-types-for 'script'; trusted-types 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, "
      "initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light "
      "dark\">\n<meta name=\"generator\" content=\"Kiln {}\">\n"
      "<title>{}</title>\n<style>{}</style>\n</head>\n",
      hasScript ? fmt::format("'{}'", assets.scriptHash) : "'none'",
      assets.styleHash, KILN_VERSION, escaped(title), assets.style);
}

static std::string countsOf(const Report &report) {
  std::size_t errors = 0;
  for (const Finding &finding : report.findings)
    errors += finding.grade == Finding::Grade::error;
  std::size_t others = report.findings.size() - errors;
  return fmt::format("{} error{}, {} other finding{}", errors,
                     errors == 1 ? "" : "s", others, others == 1 ? "" : "s");
}

// The list.

static std::string by(const std::array<std::uint32_t, 3> &size) {
  return fmt::format("{}x{}x{}", size[0], size[1], size[2]);
}

static std::string launchesOf(const Report &report) {
  std::string rows;
  std::size_t more = 0;
  for (const ReportedLaunch &launch : report.launches) {
    if (rows.size() > kMostListBytes / 4) {
      ++more;
      continue;
    }
    std::size_t errors = 0, others = 0;
    for (const Finding &finding : report.findings)
      if (std::find(finding.launches.begin(), finding.launches.end(),
                    launch.number) != finding.launches.end())
        ++(finding.grade == Finding::Grade::error ? errors : others);
    rows += fmt::format(
        "<tr id=\"launch-{0}\" data-launch=\"{0}\"><th scope=\"row\">{0}</th>"
        "<td class=\"name\">{1}</td><td>{2}</td><td>{3}</td><td>{4}</td>"
        "<td class=\"verdict {5}\">{5}</td><td class=\"count\">{6}</td>"
        "<td class=\"count\">{7}</td><td class=\"count\">{8}</td>"
        "<td class=\"count\">{9:.1f}</td><td>{10}{11}</td></tr>\n",
        launch.number, escaped(launch.kernel), by(launch.grid),
        by(launch.block), by(launch.cluster),
        errors                        ? "error"
        : !launch.result.is_finished  ? "ended"
        : launch.is_checked           ? "ok"
                                      : "unchecked",
        errors, others, launch.result.instructions,
        launch.result.time_us / 1e3,
        escaped(fmt::format("{}", fmt::join(launch.interleavings, "; "))),
        launch.file.empty()
            ? ""
            : fmt::format(" <span class=\"file\">{}</span>",
                          escaped(launch.file)));
  }
  if (report.launches.empty())
    return "<p>No launch is shown.</p>\n";
  return fmt::format(
      "<table>\n<thead><tr><th>#</th><th>kernel</th><th>grid</th>"
      "<th>block</th><th>cluster</th><th>verdict</th><th>errors</th>"
      "<th>others</th><th>warp instructions</th><th>ms</th>"
      "<th>interleavings</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n{}",
      rows,
      more ? fmt::format("<p class=\"note\">{} more launches are left out "
                         "here.</p>\n",
                         more)
           : "");
}

static std::string comparisonsOf(const Report &report) {
  std::string rows;
  for (const ReportedComparison &one : report.comparisons)
    rows += fmt::format("<tr class=\"{}\"><td>{}</td><td>{}</td><td>{}</td>"
                        "<td class=\"count\">{}</td><td class=\"count\">{}"
                        "</td></tr>\n",
                        one.wrong ? "wrong" : "ok", escaped(one.what),
                        escaped(one.name), escaped(one.interleaving),
                        one.elements, one.wrong);
  if (rows.empty())
    return "";
  return fmt::format(
      "<section id=\"comparisons\">\n<h2>Comparisons</h2>\n<table>\n<thead>"
      "<tr><th>what</th><th>name</th><th>interleaving</th><th>elements</th>"
      "<th>wrong</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n"
      "</section>\n",
      rows);
}

static std::string stackOf(const std::vector<Finding::Frame> &stack) {
  std::string rows;
  for (const Finding::Frame &frame : stack)
    rows += fmt::format("<li>{} <span class=\"place\">{}</span></li>",
                        escaped(frame.function),
                        escaped(placeText(frame.where)));
  return rows.empty() ? "" : "<ol class=\"stack\">" + rows + "</ol>";
}

/// A row of what is known of a finding; empty where that is nothing.
static std::string fact(const char *name, const std::string &markup) {
  return markup.empty() ? ""
                        : fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, markup);
}

static std::string bytesOf(const Finding &finding) {
  if (!finding.address)
    return "";
  std::string text = finding.space == "shared"
                         ? fmt::format("shared address {}", *finding.address)
                         : fmt::format("{} address {:#x}", finding.space,
                                       *finding.address);
  if (finding.bytes)
    text += fmt::format(", {} byte{}", finding.bytes,
                        finding.bytes == 1 ? "" : "s");
  if (!finding.buffer.empty())
    text += " of " + finding.buffer;
  return escaped(text);
}

static std::string otherOf(const Finding &finding) {
  if (!finding.other)
    return "";
  const Finding::Other &other = *finding.other;
  return fmt::format("{} {} at <span class=\"place\">{}</span>{}",
                     escaped(other.who), other.is_write ? "writes" : "reads",
                     escaped(placeText(other.where)), stackOf(other.stack));
}

static std::string headingOf(const Finding &finding, const std::string &level) {
  auto rules = explanations();
  bool isRule = std::any_of(rules.begin(), rules.end(), [&](const auto &row) {
    return row.id == finding.id;
  });
  std::string place = placeText(finding.where);
  return fmt::format(
      "<{0}><span class=\"grade\">{1}</span> {2}{3}{4}</{0}>\n", level,
      name(finding.grade),
      isRule ? fmt::format("<a class=\"rule\" href=\"#rule-{0}\">{0}</a>",
                           escaped(finding.id))
             : escaped(finding.id),
      place.empty() ? "" : " at ",
      place.empty()
          ? ""
          : fmt::format("<span class=\"place\">{}</span>", escaped(place)));
}

static std::string articleOf(const Finding &finding, std::size_t number) {
  return fmt::format(
      "<li><article id=\"finding-{}\" class=\"finding {}\" data-id=\"{}\">\n"
      "{}<p class=\"message\">{}</p>\n<dl>\n{}{}{}{}{}{}{}{}</dl>\n"
      "</article></li>\n",
      number, name(finding.grade), escaped(finding.id),
      headingOf(finding, "h3"),
      escaped(shortened(finding.message, kMostMessageBytes)),
      fact("instruction",
           finding.instruction.empty()
               ? ""
               : fmt::format("<code>{}</code>, PTX line {}",
                             escaped(shortened(finding.instruction, 400)),
                             finding.ptx_line)),
      fact("bytes", bytesOf(finding)), fact("other access", otherOf(finding)),
      fact("missing", escaped(finding.missing)),
      fact("inlined", stackOf(finding.stack)),
      fact("kernel", escaped(finding.kernel)),
      fact("found",
           fmt::format("{} time{}", finding.count,
                       finding.count == 1 ? "" : "s")),
      fact("interleavings",
           escaped(fmt::format("{}", fmt::join(finding.interleavings, "; ")))));
}

static std::string findingsOf(const Report &report) {
  if (report.findings.empty())
    return "<p>Nothing was found.</p>\n";
  std::string rows;
  std::size_t more = 0;
  for (std::size_t i = 0; i < report.findings.size(); ++i) {
    const Finding &finding = report.findings[i];
    if (rows.size() < kMostListBytes)
      rows += articleOf(finding, i + 1);
    else if (rows.size() < kMostListBytes + (100 << 10))
      rows += fmt::format("<li><article id=\"finding-{}\" class=\"finding {}\" "
                          "data-id=\"{}\">{}</article></li>\n",
                          i + 1, name(finding.grade), escaped(finding.id),
                          headingOf(finding, "h3"));
    else
      ++more;
  }
  return "<ol class=\"findings\">\n" + rows + "</ol>\n" +
         (more ? fmt::format("<p class=\"note\">{} more are left out of this "
                             "page; JSON and SARIF have them.</p>\n",
                             more)
               : "");
}

/// The rules of what was found, as `kiln explain` has them.
static std::string rulesOf(const std::set<std::string> &ids) {
  std::string text;
  for (const Explanation &row : explanations())
    if (ids.contains(std::string(row.id)))
      text += fmt::format(
          "<article id=\"rule-{0}\" class=\"rule\">\n<h3>{0}</h3>\n"
          "<p class=\"grades\">{1}{2}</p>\n<h4>Cause</h4><p>{3}</p>\n"
          "<h4>Example</h4><pre>{4}</pre>\n<h4>Repair</h4><p>{5}</p>\n"
          "</article>\n",
          escaped(row.id), name(row.grade),
          row.ends_launch ? ", ends the launch" : "", escaped(row.cause),
          escaped(row.broken), escaped(row.repair));
  return text.empty() ? ""
                      : "<section id=\"rules\">\n<h2>Rules</h2>\n" + text +
                            "</section>\n";
}

static std::set<std::string> idsOf(const std::vector<Finding> &findings) {
  std::set<std::string> ids;
  for (const Finding &finding : findings)
    ids.insert(finding.id);
  return ids;
}

// The data.

/// The report with fewer details; which launches have lost theirs. False where
/// there is nothing left to leave out.
static bool thinOut(Report &report, std::vector<std::uint64_t> &lost) {
  auto isNamed = [&](const ReportedLaunch &launch) {
    return std::any_of(report.findings.begin(), report.findings.end(),
                       [&](const Finding &finding) {
                         return !finding.launches.empty() &&
                                finding.launches.front() == launch.number;
                       });
  };
  // Those that nothing was found in first, the last ones first.
  for (bool isNeeded : {false, true}) {
    std::size_t dropped = 0, all = 0;
    for (const ReportedLaunch &launch : report.launches)
      all += !launch.details.empty() && isNamed(launch) == isNeeded;
    for (auto launch = report.launches.rbegin();
         launch != report.launches.rend() && dropped < (all + 1) / 2; ++launch)
      if (!launch->details.empty() && isNamed(*launch) == isNeeded) {
        launch->details.clear();
        lost.push_back(launch->number);
        ++dropped;
      }
    if (dropped)
      break;
    if (isNeeded)
      return false;
  }
  // Listings that nobody shows any more.
  std::vector<Listing> kept;
  std::map<std::size_t, std::size_t> moved;
  for (ReportedLaunch &launch : report.launches)
    if (!launch.details.empty()) {
      auto [found, isNew] = moved.try_emplace(launch.listing, kept.size());
      if (isNew)
        kept.push_back(report.listings[launch.listing]);
      launch.listing = found->second;
    }
  report.listings = std::move(kept);
  if (report.listings.empty())
    report.sources.clear();
  return true;
}

/// The JSON, packed, and what had to be left out of it.
static std::string dataOf(const Report &report,
                          std::vector<std::uint64_t> &lost) {
  std::string data = base64(deflated(report.to_json()));
  if (data.size() <= kMostDataBytes)
    return data;
  Report thin = report;
  while (data.size() > kMostDataBytes && thinOut(thin, lost))
    data = base64(deflated(thin.to_json()));
  return data.size() <= kMostDataBytes ? data : "";
}

std::string Report::to_html() const {
  std::vector<std::uint64_t> lost;
  std::string data = dataOf(*this, lost);
  std::sort(lost.begin(), lost.end());
  std::string notes;
  auto note = [&](const std::string &sentence) {
    notes += "<p class=\"note\">" + escaped(sentence) + "</p>\n";
  };
  if (!refusal.empty())
    note(refusal);
  if (findings_left_out)
    note(findings_left_out_text(findings_left_out));
  if (data.empty())
    note("The report is too large for more than this list; the JSON report has "
         "all of it.");
  else if (!lost.empty())
    note(fmt::format("The page would be larger than 2 MB: details of {} are "
                     "left out. The JSON report has them.",
                     lost.size() == 1
                         ? fmt::format("launch {}", lost.front())
                         : fmt::format("launches {}", fmt::join(lost, ", "))));
  std::string title =
      fmt::format("Kiln: {}, {}", name(verdict()), countsOf(*this));
  return headOf(title, true) +
         fmt::format(
             "<body>\n<header>\n<h1>Kiln <span class=\"verdict {0}\">{0}"
             "</span></h1>\n<p>{1}; {2} launch{3}, {4} checked; {5} warp "
             "instructions, {6:.1f} ms; Kiln {7}</p>\n{8}</header>\n"
             "<div id=\"controls\"></div>\n<main>\n"
             "<section id=\"launches\">\n<h2>Launches</h2>\n{9}</section>\n"
             "{10}<section id=\"findings\">\n<h2>Findings</h2>\n{11}"
             "</section>\n{12}</main>\n<script type=\"text/plain\" "
             "id=\"data\">{13}</script>\n<script>",
             name(verdict()), countsOf(*this), launch_count,
             launch_count == 1 ? "" : "es", checked_count,
             total_.instructions, total_.time_us / 1e3, KILN_VERSION, notes,
             launchesOf(*this), comparisonsOf(*this), findingsOf(*this),
             rulesOf(idsOf(findings)), data) +
         std::string(pageAssets().script) + "</script>\n</body>\n</html>\n";
}

std::string ReportComparison::to_html(const std::string &before,
                                      const std::string &after) const {
  std::set<std::string> ids;
  std::size_t number = 0;
  auto listOf = [&](const char *heading, const auto &findings) {
    std::string rows;
    for (const Finding *finding : findings) {
      ids.insert(finding->id);
      rows += articleOf(*finding, ++number);
    }
    return fmt::format("<section id=\"{0}\">\n<h2>{0}: {1}</h2>\n{2}"
                       "</section>\n",
                       heading, findings.size(),
                       rows.empty() ? "<p>None.</p>\n"
                                    : "<ol class=\"findings\">\n" + rows +
                                          "</ol>\n");
  };
  std::string body = listOf("came", came) + listOf("went", went);
  std::string rows;
  for (const Change &change : changed) {
    ids.insert(change.after->id);
    rows += "<li><p class=\"note\">" + escaped(change.what) + "</p></li>" +
            articleOf(*change.after, ++number);
  }
  body += fmt::format("<section id=\"changed\">\n<h2>changed: {}</h2>\n{}"
                      "</section>\n",
                      changed.size(),
                      rows.empty() ? "<p>None.</p>\n"
                                   : "<ol class=\"findings\">\n" + rows +
                                         "</ol>\n");
  return headOf("Kiln: two runs compared", false) +
         fmt::format("<body>\n<header>\n<h1>Kiln: two runs compared</h1>\n"
                     "<p>from {} to {}: {} came, {} went, {} changed, {} "
                     "stayed</p>\n</header>\n<main>\n{}{}</main>\n</body>\n"
                     "</html>\n",
                     escaped(before), escaped(after), came.size(), went.size(),
                     changed.size(), kept, body, rulesOf(ids));
}

} // namespace kiln
