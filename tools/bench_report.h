// bench_report: what a bench found, as a table and as JSON.
#pragma once

#include "bench_measure.h"

#include <kiln/gemm.h>
#include <kiln/reference.h>

#include <string>
#include <vector>

namespace kiln::cli {

/// One product; Kiln is the first contender.
struct ProblemResult {
  GemmProblem problem;
  GemmSchedule schedule;
  std::string kernel;
  double operations = 0;
  int buffer_sets = 0;
  std::vector<Comparison> comparisons; ///< empty where not verified
  std::vector<std::string> contenders; ///< empty where Kiln was wrong
  std::vector<Samples> rested, sustained;
  std::string note; ///< why there is nothing to compare with

  void print() const;
};

struct BenchReport {
  std::string machine;
  std::string cublas_version; ///< empty where there is none
  std::string cublas_missing; ///< why
  std::vector<ProblemResult> results;

  void print_header() const;
  /// The ratios of all problems, and their geometric mean.
  void print_summary() const;
  /// Throws UserError where the file cannot be written.
  void write_json(const std::string &path) const;
  bool is_right() const;
};

} // namespace kiln::cli
