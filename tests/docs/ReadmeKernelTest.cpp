// ReadmeKernel: the kernel on the first screen of README.md, as it stands
// there.
#include "readme_kernels.h"

#include <kiln/measure/reference.h>
#include <kiln/run/run.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <fstream>
#include <regex>

/// The page, and the first block of it that begins with `fence`, with its line.
static std::pair<std::string, int> block(const std::string &fence) {
  std::ifstream file(KILN_SOURCE_DIR "/README.md");
  std::string line, text;
  int number = 0, first = 0;
  while (std::getline(file, line)) {
    ++number;
    if (first && line == "```")
      return {text, first};
    if (first)
      text += line + "\n";
    else if (line == fence)
      first = number;
  }
  return {text, first};
}

TEST(ReadmeKernel, TheReportIsWhatTheSimulatorSays) {
  std::vector<float> x(4 * 8 * 128, 1), y(128);
  auto [report, at] = block("```text");
  int kernel_at = block("```cpp").second;
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    LaunchResult result = try_run(*open_sim({.interleaving = order}), sums(4), x, y);
    ASSERT_EQ(result.findings.size(), 1u);
    // On the page the kernel is in a file of its own.
    std::string found = result.findings[0].to_string() + "\n";
    std::regex place("README\\.md:([0-9]+)");
    for (std::smatch match; std::regex_search(found, match, place);)
      found = match.prefix().str() +
              "sums.cpp:" + std::to_string(std::stoi(match[1]) - kernel_at) +
              match.suffix().str();
    EXPECT_EQ(found, report);
  }
}

TEST(ReadmeKernel, MultipliesOnTheTensorCore) {
  Kernel kernel = gemm(256, 256, 128);
  EXPECT_EQ(kernel.name, "gemm");
  EXPECT_NE(kernel.ptx.find("wgmma.mma_async"), std::string::npos);
  EXPECT_NE(kernel.ptx.find("cp.async.bulk.tensor"), std::string::npos);
  EXPECT_EQ(kernel.contract.arguments.size(), 3u);
  EXPECT_EQ(kernel.contract.threads(), 256);
  EXPECT_EQ(kernel.contract.grid[0], ceil_div(Dim(256), 128));
}

TEST(ReadmeKernel, AssemblesWithoutSpills) {
  if (!find_ptxas())
    GTEST_SKIP() << "there is no ptxas here";
  Assembly assembly = assemble(gemm(4096, 4096, 4096).ptx);
  EXPECT_EQ(assembly.resources.spill_store_bytes, 0);
}

TEST(ReadmeKernel, SaysHowToTakeASizeAtLaunch) {
  try {
    gemm(Dim::argument("m"), 256, Dim::argument("k"));
    FAIL() << "built with sizes that nobody declared";
  } catch (const UserError &error) {
    EXPECT_NE(
        std::string(error.what())
            .find("'k' is not a dimension of kernel gemm; declare it with "
                  "KernelBuilder::dim"),
        std::string::npos)
        << error.what();
  }
}

/// Bytes of random elements.
static std::vector<std::uint8_t> random_matrix(int rows, int columns,
                                               std::uint64_t seed) {
  std::vector<std::uint8_t> bytes(std::size_t(rows) * columns * 2);
  fill_random(Type::f16, bytes.data(), std::size_t(rows) * columns, seed);
  return bytes;
}

TEST(ReadmeKernel, IsRightOnTheGpu) {
  DeviceListing listing = list_devices();
  if (listing.devices.empty())
    GTEST_SKIP() << listing.missing.front();
  std::shared_ptr<Device> device = open_cuda();
  for (auto [m, n, k] : {std::array{256, 256, 128}, {128, 384, 1024}}) {
    auto a = random_matrix(m, k, 1), b = random_matrix(k, n, 2);
    std::vector<float> d(std::size_t(m) * n, NAN);
    EXPECT_TRUE(try_run(*device, gemm(m, n, k), a, b, d).ok());
    Comparison result = compare_gemm({.m = m,
                                      .n = n,
                                      .k = k,
                                      .a_row_major = true,
                                      .b_row_major = true,
                                      .a = a.data(),
                                      .b = b.data()},
                                     d.data());
    EXPECT_TRUE(result.ok) << result.wrong << " elements are wrong";
  }
}
