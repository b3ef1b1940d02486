// problem_list: a problem on each line.
#include "problem_list.h"
#include "bench_suites.h"

#include <kiln/base/file.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

namespace kiln::cli {

void ProblemList::add_to(Command command) {
  command.add_option("--problems", path,
                     "a file with a problem on each line: M N K and words "
                     "such as bf16 -> bf16 nt beta");
  command.add_option("--suite", suites,
                     "a list of problems by name: " + suite_names());
}

/// "4096 4096 4096 f16" and "4096x4096x4096 f16" in the second form.
static std::pair<std::string, std::string>
sizes_and_words(const std::string &line) {
  std::istringstream words(line.substr(0, line.find('#')));
  std::string first, second, third, rest;
  words >> first;
  if (!first.empty() && first.find('x') == std::string::npos &&
      words >> second >> third)
    first = fmt::format("{}x{}x{}", first, second, third);
  std::getline(words, rest);
  return {first, rest};
}

std::vector<ListedProblem> ProblemList::read(const GemmOptions &options) const {
  std::vector<ListedProblem> problems;
  auto add = [&](const std::string &line) {
    auto [sizes, rest] = sizes_and_words(line);
    if (!sizes.empty())
      problems.push_back(
          {options.sized_problem(fmt::format("{} {}", sizes, rest)), ""});
  };
  std::istringstream triples(fmt::format("{}", fmt::join(words, " ")));
  for (std::string triple; std::getline(triples, triple, ',');)
    add(triple);
  for (const std::string &suite : suites)
    for (const SuiteProblem &one : problems_of_suite(suite))
      problems.push_back(
          {GemmProblem::parse(one.problem), std::string(one.suite)});
  if (!path.empty()) {
    std::istringstream file(read_file(path));
    for (std::string line; std::getline(file, line);)
      add(line);
  }
  if (problems.empty())
    throw UserError("there is no problem; write M N K, or several with commas "
                    "between, or name a suite with --suite or a file with "
                    "--problems");
  return problems;
}

} // namespace kiln::cli
