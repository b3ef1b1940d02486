// problem_list: products to measure, from the command line, from suites by name
// and from a file.
#pragma once

#include "options/command_line.h"
#include "kernels/gemm_options.h"

#include <string>
#include <vector>

namespace kiln::cli {

/// A problem, and the suite it is from; empty where it is from none.
struct ListedProblem {
  GemmProblem problem;
  std::string suite;
};

struct ProblemList {
  std::vector<std::string> words; ///< M N K, M N K ...
  std::vector<std::string> suites;
  std::string path;

  /// Declare --problems and --suite.
  void add_to(Command command);
  /// The problems of the words, the suites and the file, in this order; what
  /// they leave open is as the options say. Throws UserError where there are
  /// none.
  std::vector<ListedProblem> read(const GemmOptions &options) const;
};

} // namespace kiln::cli
