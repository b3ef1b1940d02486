// bench_report: what a bench found, as a table and as JSON.
#pragma once

#include <kiln/measure/measure.h>
#include <kiln/measure/reference.h>

#include <map>
#include <string>
#include <vector>

namespace kiln::cli {

/// What the kernel module says it is; the driver's own interface tells no one.
std::string driver_version();

/// One problem; Kiln is the first contender.
struct ProblemResult {
  std::string problem;
  std::string suite;    ///< it was measured with; may be empty
  std::string schedule; ///< may be empty
  std::string kernel;
  double operations = 0;
  double bytes = 0;         ///< that cross the bus once; 0: not told
  double copy_gb_per_s = 0; ///< what a copy reaches, where bytes rule
  int buffer_sets = 0;
  std::vector<Comparison> comparisons; ///< empty where not verified
  const char *compared = "elements";   ///< what is counted in them
  std::vector<std::string> contenders; ///< empty where Kiln was wrong
  std::vector<Samples> rested, sustained;
  std::vector<Samples> rested_mhz, sustained_mhz; ///< empty: nobody tells
  std::string note; ///< why there is nothing to compare with

  /// How much faster Kiln is than the fastest of the other contenders, of
  /// which there is one at least.
  double rested_ratio() const, sustained_ratio() const;
  void print() const;
};

/// The geometric means of the ratios of a suite.
struct SuiteMean {
  std::string name;
  double rested = 1, sustained = 1;
  int problems = 0;
};

/// A run that was stored: microseconds of Kiln, rested, by problem.
struct StoredRun {
  std::string path;
  std::map<std::string, double> rested_us;

  /// What `write_json` wrote. Throws UserError.
  static StoredRun read(const std::string &path);
};

struct BenchReport {
  std::string machine;
  std::string library = "cuBLASLt"; ///< that Kiln is compared with
  std::string library_version;      ///< empty where there is none
  std::string library_missing;      ///< why
  std::vector<ProblemResult> results;

  void print_header() const;
  /// The ratios of all problems, and their geometric means.
  void print_summary() const;
  /// How much faster each problem is than in that run.
  void print_against(const StoredRun &before) const;
  /// In the order in which the suites were measured.
  std::vector<SuiteMean> means() const;
  /// Throws UserError where the file cannot be written.
  void write_json(const std::string &path) const;
  bool is_right() const;
};

} // namespace kiln::cli
