// OrderDefects: kernels in plain PTX, each right, and each of their defects.
//
// A file of kernels/ is a kernel whose order is right, and in its head one line
// per defect:
//
//     //! ID | TAG | OLD => NEW | LINE | WORD
//
// The lines that end in "//#TAG" are deleted, or OLD in them is replaced by
// NEW, and lines that begin with "//+TAG" come in. Then ID is found, at an
// instruction that contains LINE, in a message that names WORD. As it stands,
// the kernel gives no finding under any order.
#include "broken/BrokenKernel.h"

#include <gtest/gtest.h>

namespace kiln {
namespace {

/// Whether a line ends in "//#TAG", perhaps among other tags.
bool hasTag(const std::string &line, const std::string &tag) {
  std::size_t comment = line.find("//#");
  if (comment == std::string::npos)
    return false;
  auto tags = split(line.substr(comment + 2), " ");
  return std::find(tags.begin(), tags.end(), "#" + tag) != tags.end();
}

/// The kernel with a defect; lines keep their numbers.
std::string planted(const BrokenKernel &kernel, const Defect &defect) {
  std::string text;
  int changes = 0;
  std::string coming = "//+" + defect.tag + " ";
  for (std::string line : kernel.lines) {
    std::string bare = trimmed(line);
    if (bare.starts_with(coming)) {
      line = bare.substr(coming.size());
      ++changes;
    } else if (hasTag(line, defect.tag)) {
      std::size_t at = line.find(defect.from);
      if (at == std::string::npos)
        throw std::runtime_error("no '" + defect.from + "' in " + line);
      if (defect.from.empty())
        line = "";
      else
        line.replace(at, defect.from.size(), defect.to);
      ++changes;
    }
    text += line + "\n";
  }
  if (!changes)
    throw std::runtime_error("no line is tagged " + defect.tag);
  return text;
}

class OrderDefects : public testing::TestWithParam<BrokenKernel> {};

TEST_P(OrderDefects, TheRightKernelIsSilent) {
  std::string ptx;
  for (const std::string &line : GetParam().lines)
    ptx += line + "\n";
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      LaunchResult result = simulate(GetParam(), ptx, order, seed);
      EXPECT_TRUE(result.findings.empty()) << textOf(result.findings);
    }
}

TEST_P(OrderDefects, EachDefectIsFound) {
  for (const Defect &defect : GetParam().defects) {
    std::string ptx = planted(GetParam(), defect);
    // What a copy that lands at once hides, one that lands late shows.
    auto findings = simulate(GetParam(), ptx, Interleaving::eager, 0).findings;
    for (const Finding &late :
         simulate(GetParam(), ptx, Interleaving::lazy, 0).findings)
      findings.push_back(late);
    auto lines = split(ptx, "\n");
    bool isFound = std::any_of(
        findings.begin(), findings.end(), [&](const Finding &finding) {
          std::string line =
              finding.ptx_line ? lines.at(finding.ptx_line - 1) : "";
          return finding.id == defect.id &&
                 line.find(defect.line) != std::string::npos &&
                 finding.message.find(defect.word) != std::string::npos;
        });
    EXPECT_TRUE(isFound) << defect.tag << " " << defect.from << ": wanted "
                         << defect.id << " at '" << defect.line << "' naming "
                         << defect.word << ", found" << textOf(findings);
  }
}

TEST_P(OrderDefects, AReportDoesNotDependOnTheNumberOfThreads) {
  for (const Defect &defect : GetParam().defects) {
    // Which way a kernel goes after a weak race in global memory is the same
    // with one thread alone.
    if (defect.to.find("st.global") != std::string::npos)
      continue;
    std::string ptx = planted(GetParam(), defect);
    auto one = simulate(GetParam(), ptx, Interleaving::random, 3, 1);
    auto four = simulate(GetParam(), ptx, Interleaving::random, 3, 4);
    EXPECT_EQ(textOf(one.findings), textOf(four.findings)) << defect.tag;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OrderDefects, testing::ValuesIn(allKernels()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln
