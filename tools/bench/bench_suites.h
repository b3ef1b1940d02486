// bench_suites: lists of problems that are measured together, by name.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// A problem in words, and the suite it is from; "" where it is from none.
struct SuiteProblem {
  std::string_view suite;
  std::string problem; ///< as GemmProblem::parse takes it
};

/// "square, prefill, ... or all"
std::string suite_names();

/// The problems of a suite, or of all of them. Throws UserError where there is
/// no such suite.
std::vector<SuiteProblem> problems_of_suite(const std::string &name);

} // namespace kiln::cli
