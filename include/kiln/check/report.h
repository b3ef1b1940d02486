// report.h: what came of launches: the launches, the findings, the numbers, and
// all of it as a page, text, JSON, SARIF or JUnit XML.
//
//     Report report;
//     report.add({.kernel = "gemm"}, explore(*device, {launch}, {}));
//     report.save("report.sarif");
//
// A finding that several interleavings or launches show is one finding, which
// says which of them do. docs/report.schema.json has the form of the JSON.
#pragma once

#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/check/detail.h>
#include <kiln/check/explore.h>
#include <kiln/check/finding.h>
#include <kiln/check/profile.h>
#include <kiln/check/timeline.h>
#include <kiln/run/launch.h>

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace KILN_API kiln {

/// Of JSON reports; grows with every change that a reader could notice.
inline constexpr int kReportVersion = 2;

/// A launch, as a report has it.
struct ReportedLaunch {
  std::uint64_t number = 0; ///< from 1; 0: the next one
  std::string kernel;       ///< as the program calls it
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1},
                               cluster = {1, 1, 1};
  bool is_checked = true;
  std::string file = {}; ///< the launch file it is of; empty: none, or the only

  // Filled in by Report::add.
  std::vector<std::string> interleavings; ///< that it ran in
  std::string single_because;             ///< Exploration::single_because
  /// Without its findings; instructions, time and costs are those of all
  /// interleavings together.
  LaunchResult result;
  /// Details of the interleavings that showed something first, else of the
  /// first one; empty where nobody asked for them.
  struct Detail {
    std::string interleaving;
    LaunchDetail detail;     ///< its listing is that of the launch
    bool is_telling = false; ///< it showed a finding first
  };
  std::vector<Detail> details;
  std::size_t listing = 0; ///< Report::listings; counts where there are details
};

/// Lines of a source file that a report shows.
struct SourceExcerpt {
  std::string file;
  std::map<unsigned, std::string> lines; ///< by number
};

/// A comparison with what a buffer or the printed lines should be.
struct ReportedComparison {
  std::string what; ///< "buffer" or "printf"
  std::string name; ///< of the buffer
  std::string interleaving;
  std::uint64_t elements = 0, wrong = 0;
  std::string file = {}; ///< as ReportedLaunch::file
};

enum class Verdict : std::uint8_t {
  ok,
  wrong,   ///< a comparison
  error,   ///< a finding, which wins over a comparison
  refused, ///< nothing has run
};
const char *name(Verdict verdict);

struct Report {
  /// Those that a reader asks for: all, or with `is_brief` those with findings,
  /// those that were ended and those that a clock of the device has timed.
  std::vector<ReportedLaunch> launches;
  std::vector<Finding> findings; ///< each once
  /// Of findings beyond `max_findings`, in this report and in its launches.
  std::uint64_t findings_left_out = 0;
  std::uint64_t max_findings = kDefaultMaxFindings; ///< errors; others; 0: all
  std::vector<ReportedComparison> comparisons;
  Timeline timeline; ///< of the first interleaving of each launch, in a row
  /// What instructions cost in the first interleaving; launches of one kernel
  /// and one shape are one profile.
  std::vector<Profile> profiles;
  std::string refusal; ///< why nothing has run; empty: it has
  bool is_brief = false;
  std::uint64_t launch_count = 0, checked_count = 0;
  std::vector<Listing> listings; ///< of the launches with details, each once
  /// What the listings and the findings name of files that are here.
  std::vector<SourceExcerpt> sources;

  /// Take in what came of a launch: the findings that are new, by their index.
  /// The others grow by this launch and its interleavings.
  std::vector<std::size_t> add(ReportedLaunch launch,
                               const Exploration &exploration);
  /// A launch whose runs are taken in one by one: its index.
  std::size_t begin(ReportedLaunch launch);
  /// A run of the launches from that index on.
  std::vector<std::size_t> add(std::size_t first, const ExploredRun &run);
  /// A finding that is of no single run; true: it is new.
  bool add(Finding finding);
  void refuse(const Error &error);
  /// Take in another report: of another host, another shard, another launch
  /// file. Launches keep their numbers where these are free.
  void merge(const Report &other);
  /// Say of everything that is there which launch file it is of, and number its
  /// launches from `first` on.
  void set_file(const std::string &file, std::uint64_t first);

  Verdict verdict() const;
  /// 0, 1 for wrong, 2 for an error, 3 where it was refused.
  ExitStatus exit_status() const;
  bool ok() const { return verdict() == Verdict::ok; }
  /// Instructions, time, costs and shadow memory of all launches, without their
  /// findings.
  const LaunchResult &total() const { return total_; }

  /// A line for each finding, the numbers, and the verdict.
  std::string to_text() const;
  std::string to_json() const;
  /// SARIF 2.1.0: findings with fingerprints that stay when lines move, and both
  /// accesses as a code flow.
  std::string to_sarif() const;
  /// One HTML file that needs nothing else: readable as it is, and a viewer
  /// where its script may run.
  std::string to_html() const;
  /// JUnit XML: a test case for each launch file, else for each launch.
  std::string to_junit() const;
  /// As its name ends: .html, .sarif, .xml (JUnit), .txt, else JSON. Throws
  /// RuntimeError where the file cannot be written.
  void save(const std::string &path) const;
  /// What to_json has written, of this version or an earlier one. Throws
  /// UserError with the place in `origin`.
  static Report from_json(std::string_view json, const std::string &origin);

private:
  void take(ReportedLaunch &launch, const LaunchResult &result,
            const std::string &interleaving, std::vector<std::size_t> &fresh);
  bool merge(Finding finding, std::vector<std::size_t> &fresh);
  void keepDetail(ReportedLaunch &launch, const LaunchResult &result,
                  const std::string &interleaving, bool hasFresh);
  void readSources(); ///< of the last listing

  std::map<std::string, std::size_t> known_; ///< findings, by identity
  LaunchResult total_;
};

/// Whether a report of that name has room for the details of launches: a page
/// or JSON.
bool shows_detail(const std::string &path);

/// What two reports differ in. A finding is the same where its fingerprint is,
/// which stays when lines move.
struct ReportComparison {
  std::vector<const Finding *> came, went; ///< of the second; of the first
  struct Change {
    const Finding *before, *after;
    std::string what; ///< "its grade was warning and is error"
  };
  std::vector<Change> changed;
  std::size_t kept = 0; ///< that are in both as they were

  bool has_new_errors() const;
  std::string to_text() const;
  std::string to_html(const std::string &before, const std::string &after) const;
};
/// The reports must outlive what is returned.
ReportComparison compare_reports(const Report &before, const Report &after);

/// What stays of a finding when lines move: the id, the files, the functions and
/// what is executed there. SARIF has it as partialFingerprints.
std::string fingerprint(const Finding &finding);

} // namespace kiln
