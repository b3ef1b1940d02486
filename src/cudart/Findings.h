// Findings: what was found in the launches of a program: told on stderr as it
// is found, counted for `kiln run`, and written to a report at the end.
#pragma once

#include "kiln/base/error.h"
#include "kiln/check/report.h"
#include "kiln/check/run_status.h"

#include <map>
#include <mutex>
#include <optional>

namespace kiln::cudart {

/// Which launch it is.
struct LaunchNote {
  std::uint64_t number = 0; ///< from 1
  std::string kernel;       ///< as the program calls it
  std::array<std::uint32_t, 3> grid, block, cluster;
  bool isChecked = true;
  bool isChosen = true; ///< to be checked, or profiled
};

class Findings {
public:
  Findings();

  /// Where a report goes at the end: as Report::save has it; empty: nowhere.
  void setReport(std::string path) { reportPath_ = std::move(path); }
  /// Where profiles go at the end: as save_profile has it; "-": a table on
  /// stderr; empty: nowhere.
  void setProfile(std::string path) { profilePath_ = std::move(path); }
  void setMaxFindings(std::uint64_t most) { report_.max_findings = most; }
  /// Names of templates in full or not, and a table at the end.
  void setStyle(bool isVerbose, bool hasSummary) {
    isVerbose_ = isVerbose;
    hasSummary_ = hasSummary;
  }
  /// Whether `kiln run` has started the program.
  bool isWatched() const { return status_ != &own_; }
  /// A launch that is not begun, because the program's time is over.
  void refuseForTime(const LaunchNote &note, double limitS);
  /// A call of a library that runs on the host, and what was found in it.
  void countHostCall() { ++status().host_calls; }
  void tellHost(Finding finding);
  /// Count a launch that has ended, and tell what was found in it, but for what
  /// launches before it have shown.
  void take(const LaunchNote &note, const Exploration &exploration);
  /// A launch that was not begun.
  void refuse(const LaunchNote &note, const std::string &why);
  /// A call that has failed, of a program that cannot ask whether it has: said
  /// once, and counted.
  void fail(const std::string &sentence, ExitStatus status);
  /// A call of a function that Kiln does not have: named once, and counted.
  void unsupported(const std::string &name, const std::string &why = "",
                   const std::string &returned = "cudaErrorNotSupported");
  /// What the program shall exit with where it says 0 itself.
  ExitStatus exitStatus();
  /// Write files of a captured launch; false: what went wrong is told.
  bool attempt(const std::function<void()> &write);
  void countCaptured() { ++status().captured; }
  /// A launch that was not run, because an earlier one tells what comes of it.
  void countRepeated() { ++status().repeated; }
  /// Say something once, however often it happens.
  void sayOnce(const std::string &sentence);
  bool hasReport() const { return !reportPath_.empty(); }
  /// What CUDA calls return since an error has ended a launch; 0: none has.
  int broken() const { return broken_; }
  void repair() { broken_ = 0; }
  /// Keep launches from now on for takeReport too, or no longer.
  void record(bool isOn);
  /// What was kept since it was taken last; empty: nothing was.
  Report takeReport();
  /// At the end of the program.
  void conclude();

private:
  RunStatus &status() { return *status_; }
  void tellFresh(const LaunchNote &note, const std::vector<std::size_t> &fresh);
  void saveReport();
  std::string describe(const LaunchNote &note) const;
  /// As it is told: with short names.
  std::string textOf(Finding finding) const;
  void summarize();

  /// A kernel of the summary.
  struct KernelRow {
    std::uint64_t launches = 0, ctas = 0, instructions = 0, findings = 0;
    double timeUs = 0;
  };
  std::map<std::string, KernelRow> kernels_;
  bool isVerbose_ = false, hasSummary_ = false;

  std::mutex mutex_;
  RunStatus own_;
  RunStatus *status_ = &own_; ///< the command's, where there is one
  std::atomic<int> broken_{0};
  ExitStatus failed_ = ExitStatus::ok; ///< of the first call that has failed
  std::vector<std::string> said_;
  std::string reportPath_, profilePath_;
  Report report_;
  std::optional<Report> recorded_; ///< of launches since it was taken
  bool isConcluded_ = false;
};

} // namespace kiln::cudart
