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
#include <kiln/sim.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln {
namespace {

struct Defect {
  std::string id, tag, from, to, line, word;
};

struct BrokenKernel {
  std::string name;
  std::vector<std::string> lines;
  std::array<std::uint32_t, 3> grid = {1, 1, 1}, block = {1, 1, 1},
                               cluster = {1, 1, 1};
  std::vector<Defect> defects;
};

void PrintTo(const BrokenKernel &kernel, std::ostream *stream) {
  *stream << kernel.name;
}

std::string trimmed(const std::string &text) {
  std::size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos)
    return "";
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

/// The parts of a text between separators.
std::vector<std::string> split(const std::string &text,
                               const std::string &separator) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  for (std::size_t at; (at = text.find(separator, begin)) != std::string::npos;
       begin = at + separator.size())
    parts.push_back(trimmed(text.substr(begin, at - begin)));
  parts.push_back(trimmed(text.substr(begin)));
  return parts;
}

Defect parseDefect(const std::string &text) {
  auto fields = split(text, " |");
  if (fields.size() != 5)
    throw std::runtime_error("not five fields: " + text);
  Defect defect{fields[0], fields[1], "", "", fields[3], fields[4]};
  if (!fields[2].empty()) {
    auto change = split(fields[2], " =>");
    defect.from = change.at(0);
    defect.to = change.at(1);
  }
  return defect;
}

BrokenKernel readKernel(const std::filesystem::path &path) {
  BrokenKernel kernel;
  kernel.name = path.stem();
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("//! "))
      kernel.defects.push_back(parseDefect(line.substr(4)));
    if (line.starts_with("// launch ")) {
      std::istringstream words(line.substr(10));
      for (std::string word; words >> word;) {
        auto parts = split(word, "=");
        auto count = static_cast<std::uint32_t>(std::stoul(parts.at(1)));
        (parts[0] == "grid"    ? kernel.grid
         : parts[0] == "block" ? kernel.block
                               : kernel.cluster)[0] = count;
      }
    }
    kernel.lines.push_back(line);
  }
  return kernel;
}

std::vector<BrokenKernel> allKernels() {
  std::vector<std::filesystem::path> paths;
  for (const auto &entry : std::filesystem::directory_iterator(
           std::string(KILN_SOURCE_DIR) + "/tests/broken/kernels"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  std::vector<BrokenKernel> kernels;
  for (const auto &path : paths)
    kernels.push_back(readKernel(path));
  return kernels;
}

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

LaunchResult simulate(const BrokenKernel &kernel, const std::string &ptx,
                      SimOrder order, std::uint64_t seed, int threads = 1) {
  constexpr std::size_t kBytes = 8192;
  auto device = open_sim({.order = order, .seed = seed, .threads = threads});
  Buffer in = device->allocate(kBytes), out = device->allocate(kBytes);
  std::vector<std::uint8_t> zeros(kBytes);
  device->copy_in(in, zeros.data(), kBytes);
  device->copy_in(out, zeros.data(), kBytes);
  return device->launch({.ptx = ptx,
                         .grid = kernel.grid,
                         .block = kernel.block,
                         .cluster = kernel.cluster,
                         .parameters = {{in}, {out}}});
}

std::string textOf(const std::vector<Finding> &findings) {
  std::string text;
  for (const Finding &finding : findings)
    text += fmt::format("\n  {} at line {}: {}", finding.id, finding.ptx_line,
                        finding.message);
  return text;
}

class OrderDefects : public testing::TestWithParam<BrokenKernel> {};

TEST_P(OrderDefects, TheRightKernelIsSilent) {
  std::string ptx;
  for (const std::string &line : GetParam().lines)
    ptx += line + "\n";
  for (SimOrder order : {SimOrder::eager, SimOrder::lazy, SimOrder::random})
    for (std::uint64_t seed = 0; seed < 4; ++seed) {
      LaunchResult result = simulate(GetParam(), ptx, order, seed);
      EXPECT_TRUE(result.findings.empty()) << textOf(result.findings);
    }
}

TEST_P(OrderDefects, EachDefectIsFound) {
  for (const Defect &defect : GetParam().defects) {
    std::string ptx = planted(GetParam(), defect);
    LaunchResult result = simulate(GetParam(), ptx, SimOrder::eager, 0);
    auto lines = split(ptx, "\n");
    bool isFound = std::any_of(
        result.findings.begin(), result.findings.end(),
        [&](const Finding &finding) {
          std::string line =
              finding.ptx_line ? lines.at(finding.ptx_line - 1) : "";
          return finding.id == defect.id &&
                 line.find(defect.line) != std::string::npos &&
                 finding.message.find(defect.word) != std::string::npos;
        });
    EXPECT_TRUE(isFound) << defect.tag << " " << defect.from << ": wanted "
                         << defect.id << " at '" << defect.line << "' naming "
                         << defect.word << ", found" << textOf(result.findings);
  }
}

TEST_P(OrderDefects, AReportDoesNotDependOnTheNumberOfThreads) {
  for (const Defect &defect : GetParam().defects) {
    // Which way a kernel goes after a weak race in global memory is the same
    // with one thread alone.
    if (defect.to.find("st.global") != std::string::npos)
      continue;
    std::string ptx = planted(GetParam(), defect);
    auto one = simulate(GetParam(), ptx, SimOrder::random, 3, 1);
    auto four = simulate(GetParam(), ptx, SimOrder::random, 3, 4);
    EXPECT_EQ(textOf(one.findings), textOf(four.findings)) << defect.tag;
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, OrderDefects, testing::ValuesIn(allKernels()),
                         [](const auto &info) { return info.param.name; });

} // namespace
} // namespace kiln
