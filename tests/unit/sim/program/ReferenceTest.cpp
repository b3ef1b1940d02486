// Reference: programs that run by the fast ways and lane by lane leave the same
// results, findings and logical time.
#include "Draws.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/program/DrawnProgram.h"

#include <fstream>
#include <regex>
#include <sstream>

using namespace kiln;
using namespace kiln::sim;

namespace {

/// What is left of a run.
struct Left {
  std::string findings;
  std::uint64_t instructions;
  std::vector<std::uint8_t> memory;
  std::vector<std::uint64_t> written; ///< bits, by byte
};

/// A kernel of bench/scalar, and its parameters: n and x are numbers, the
/// others buffers of floats, small integers, ascending ones, -1, or zeros.
struct Sample {
  const char *file;
  const char *parameters;
  std::uint32_t grid, threads, rows = 1;
  int number = 100;
};

constexpr Sample kSamples[] = {
    {"vector_add", "ff0n", 2, 64},
    {"matmul_naive", "ff0n", 2, 16, 8, 24},
    {"matmul_tiled", "ff0n", 2, 16, 16, 32},
    {"stencil", "f0nn", 4, 32, 2, 100},
    {"nbody", "f0n", 1, 256, 1, 256},
    {"black_scholes", "fff00xxn", 2, 64},
    {"reduction", "f0n", 2, 128},
    {"block_scan", "i00", 2, 128},
    {"histogram", "i0n", 2, 256, 1, 1000},
    {"radix_pass", "i00n", 2, 256, 1, 4},
    {"spmv", "aiff0n", 2, 64},
    {"bfs_step", "aiin-00n", 2, 64},
};
constexpr std::size_t kWords = 4096;

std::uint32_t wordOf(char kind, std::size_t i) {
  switch (kind) {
  case 'f':
    return std::bit_cast<std::uint32_t>(1.0f + 0.37f * float(i % 29));
  case 'i':
    return static_cast<std::uint32_t>(i * 2654435761u >> 7) % 256;
  case 'a':
    return static_cast<std::uint32_t>(i * 3 + i % 5);
  default:
    return kind == '-' ? ~0u : 0u;
  }
}

/// All of the report but the time that it took; how often something was found:
/// races of a whole warp are found together, or lane by lane; and which of the
/// lanes that made the other access at one address is named.
std::string findingsOf(LaunchResult result) {
  result.time_us = 0;
  static const std::regex count("\"count\": [0-9]+");
  static const std::regex other("(which|\"who\": \")( ?)thread [0-9]+");
  return std::regex_replace(
      std::regex_replace(jsonOf(result), count, "\"count\": 0"), other,
      "$1$2thread N");
}

LaunchConfig configOf(bool hasChecks, Interleaving order, Execution execution) {
  LaunchConfig config;
  config.threads = 1;
  config.checks = hasChecks;
  config.interleaving = order;
  config.execution = execution;
  return config;
}

Left run(const Sample &kernel, const ptx::Module &module, LaunchConfig config) {
  GlobalMemory memory;
  std::vector<Region *> regions;
  config.grid = {kernel.grid, 1, 1};
  config.block = {kernel.threads, kernel.rows, 1};
  for (const char *kind = kernel.parameters; *kind; ++kind) {
    bool isNumber = *kind == 'n' || *kind == 'x';
    std::uint64_t value = *kind == 'x'
                              ? std::bit_cast<std::uint32_t>(0.3f)
                              : static_cast<std::uint32_t>(kernel.number);
    std::size_t bytes = isNumber ? 4 : 8;
    if (!isNumber) {
      Region &region = memory.allocate(kWords * 4, "");
      for (std::size_t i = 0; i < kWords; ++i) {
        std::uint32_t word = wordOf(*kind, i);
        std::memcpy(region.data.get() + 4 * i, &word, 4);
      }
      region.valid.set(0, kWords * 4);
      regions.push_back(&region);
      value = region.base;
    }
    std::vector<std::uint8_t> &params = config.params;
    std::size_t at = (params.size() + bytes - 1) / bytes * bytes;
    params.resize(at + bytes);
    std::memcpy(params.data() + at, &value, bytes);
  }
  LaunchResult result =
      Launch(memory, module, module.functions.at(0), config).run();
  Left left{findingsOf(result), result.instructions, {}, {}};
  for (const Region *region : regions) {
    left.memory.insert(left.memory.end(), region->data.get(),
                       region->data.get() + region->bytes);
    left.written.insert(left.written.end(), region->valid.words(),
                        region->valid.words() + region->bytes / 64);
  }
  return left;
}

void expectSame(const Left &fast, const Left &reference) {
  EXPECT_EQ(fast.findings, reference.findings);
  EXPECT_EQ(fast.instructions, reference.instructions);
  EXPECT_TRUE(fast.memory == reference.memory) << "results differ";
  EXPECT_TRUE(fast.written == reference.written) << "written bytes differ";
}

Left runDrawn(const std::string &text, LaunchConfig config) {
  RunKernel kernel(text);
  config.block = {64, 1, 1};
  config.params = kernel.config.params;
  kernel.config = config;
  std::vector<std::uint32_t> words(RunKernel::kBufferBytes / 4);
  for (std::size_t i = 0; i < words.size(); ++i)
    words[i] = static_cast<std::uint32_t>(i * 2654435761u);
  words.resize(words.size() - 8); // the last ones are never written
  kernel.input(words);
  LaunchResult result = kernel.run();
  Left left{findingsOf(result), result.instructions, {}, {}};
  for (std::size_t i = 0; i < RunKernel::kBufferBytes; ++i)
    left.memory.push_back(kernel.result<std::uint8_t>(i));
  return left;
}

} // namespace

TEST(Reference, KernelsOfNvccRunAlike) {
  for (const Sample &kernel : kSamples) {
    std::ifstream file(fmt::format(
        KILN_SOURCE_DIR "/bench/scalar/kernels/{}.ptx", kernel.file));
    std::stringstream text;
    text << file.rdbuf();
    ptx::Module module = ptx::parse(text.str());
    for (Interleaving order : kOrders)
      for (bool hasChecks : {false, true}) {
        SCOPED_TRACE(fmt::format("{}, order {}, checks {}", kernel.file,
                                 static_cast<int>(order), hasChecks));
        Left fast =
            run(kernel, module, configOf(hasChecks, order, Execution::fast));
        EXPECT_GT(fast.instructions, 0u);
        expectSame(fast, run(kernel, module,
                             configOf(hasChecks, order, Execution::reference)));
      }
  }
}

TEST(Reference, RandomProgramsRunAlike) {
  int findings = 0;
  auto last = static_cast<std::uint32_t>(draws(60));
  for (std::uint32_t seed = 1; seed <= last; ++seed) {
    std::string text = DrawnProgram(seed).text();
    for (bool hasChecks : {false, true}) {
      SCOPED_TRACE(
          fmt::format("seed {}, checks {}:\n{}", seed, hasChecks, text));
      Interleaving order = kOrders[seed % std::size(kOrders)];
      Left fast = runDrawn(text, configOf(hasChecks, order, Execution::fast));
      expectSame(fast, runDrawn(text, configOf(hasChecks, order,
                                               Execution::reference)));
      findings += fast.findings.find("\"message\"") != std::string::npos;
      if (HasFailure())
        return;
    }
  }
  // Some draws read what nobody wrote, or race.
  EXPECT_GT(findings, 0);
}

/// Where lanes meet, no run goes on: they would never become one group.
TEST(Reference, NoRunCrossesAPlaceWhereLanesMeet) {
  RunKernel kernel(R"(
setp.lt.u32 %p0, %t, 7;
add.u32 %r0, %t, 1;
@%p0 bra MEET;
add.u32 %r0, %r0, 2;
ld.global.u32 %r1, [%in];
MEET:
add.u32 %r0, %r0, 3;
ld.global.u32 %r2, [%in+4];
add.u32 %r0, %r0, 4;
st.global.u32 [%out], %r0;
)");
  kernel.input(counting<std::uint32_t>(64));
  for (bool hasChecks : {false, true})
    for (Execution execution : {Execution::fast, Execution::reference}) {
      kernel.config.checks = hasChecks;
      kernel.config.execution = execution;
      // 8 in front, 3 in both groups or one, 2 in one of them, 4 behind, ret:
      // what is behind the meeting is executed once.
      EXPECT_EQ(kernel.run().instructions, 8u + 3 + 2 + 4 + 1);
    }
}
