// bench_suites: shapes that people multiply: squares, language models (prefill
// and decode), and those that libraries find hard.
//
// Sizes come from the benchmarks of fast.cu, CUTLASS, DeepGEMM, DeepBench,
// vLLM, Gluon, TileLang and Modular.
#include "bench_suites.h"

#include <kiln/base/error.h>

#include <fmt/format.h>

namespace kiln::cli {

namespace {

struct Suite {
  std::string_view name;
  std::string_view words; ///< after each of the sizes that has none
  std::vector<std::string_view> problems;
};

} // namespace

static const std::vector<Suite> &suites() {
  static const std::vector<Suite> kSuites = {
      {"square",
       "bf16 -> bf16 tn",
       {"1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "6144x6144x6144",
        "8192x8192x8192", "16384x16384x16384", "5632x3072x8192",
        "5632x3072x8192 bf16 -> bf16 nn", "5632x3072x8192 bf16 -> bf16 nt",
        "5632x3072x8192 bf16 -> bf16 tt"}},
      {"prefill",
       "bf16 -> bf16 tn",
       {"4096x2112x7168", "4096x7168x16384", "4096x4096x7168",
        "8192x28672x4096", "8192x8192x28672", "4096x5120x27648",
        "2048x37888x3584"}},
      {"small-k",
       "bf16 -> bf16 tn",
       {"5632x3072x512", "8192x8192x512", "8192x8192x1024", "4096x32768x512",
        "4096x24576x1536"}},
      {"skinny",
       "bf16 -> bf16 tn",
       {"1x6144x4096", "1x28672x4096", "16x4096x14336", "64x2112x7168",
        "64x7168x16384", "128x2112x7168", "128x576x7168", "32x10240x8192",
        "16x5376x21504"}},
      {"odd",
       "bf16 -> bf16 tn",
       {"5124x9124x2560", "35x8457x4096", "4096x7133x4096", "7680x5481x2560",
        "2000x1000x2000", "8192x59136x8192"}},
      {"large-k",
       "bf16 -> bf16 tn",
       {"512x16x500000", "1024x8x500000", "256x256x16384", "128x1280x8192",
        "4096x256x7168", "128x129280x7168"}},
      {"fp8",
       "e4m3 -> bf16 tn",
       {"4096x2112x7168", "4096x24576x1536", "4096x32768x512",
        "4096x7168x16384", "4096x4096x7168", "4096x4096x4096", "64x2112x7168",
        "64x7168x16384", "128x2112x7168", "128x576x7168", "8192x8192x4096",
        "8192x8192x8192", "8192x8192x16384"}},
  };
  return kSuites;
}

std::string suite_names() {
  std::string names;
  for (const Suite &suite : suites())
    names += fmt::format("{}, ", suite.name);
  return names.substr(0, names.size() - 2) + " or all";
}

std::vector<SuiteProblem> problems_of_suite(const std::string &name) {
  std::vector<SuiteProblem> problems;
  for (const Suite &suite : suites())
    if (name == suite.name || name == "all")
      for (std::string_view problem : suite.problems) {
        bool has_words = problem.find(' ') != std::string_view::npos;
        problems.push_back(
            {suite.name, has_words
                             ? std::string(problem)
                             : fmt::format("{} {}", problem, suite.words)});
      }
  if (problems.empty())
    throw UserError(fmt::format("'{}' is not a suite of problems; use {}", name,
                                suite_names()));
  return problems;
}

} // namespace kiln::cli
