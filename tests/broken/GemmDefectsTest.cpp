// GemmDefects: a right GEMM with one line of its PTX changed, and the finding.
//
// The defects are those people make: a wrong byte count, parity or arrival
// count, a deleted wait, release or barrier, a register plan that cannot be
// met. Each is planted alone; the kernel as it was is silent under every order.
#include <kiln/kiln.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using testing::HasSubstr;

constexpr int kM = 128, kN = 128, kK = 512;

const Kernel &gemm() {
  static const Kernel kernel =
      compile(build_gemm({.m = kM, .n = kN, .k = kK}, {.stages = 3}),
              {.use_cache = false});
  return kernel;
}

/// Run a kernel on random data; what was found.
std::vector<Finding> simulate(const Kernel &kernel, Interleaving order,
                              std::uint64_t seed) {
  auto device = open_sim({.interleaving = order, .seed = seed, .threads = 1});
  std::vector<std::uint16_t> a(kM * kK), b(kN * kK);
  std::vector<float> d(kM * (kN + 1));
  fill_random(f16, a.data(), a.size(), 1);
  fill_random(f16, b.data(), b.size(), 2);
  return try_run(*device, kernel, a, b, d).findings;
}

/// The GEMM with the `which`-th occurrence of `text` replaced.
Kernel planted(const std::string &text, const std::string &instead,
               int which = 0) {
  Kernel kernel = gemm();
  std::size_t at = kernel.ptx.find(text);
  for (int i = 0; i < which && at != std::string::npos; ++i)
    at = kernel.ptx.find(text, at + 1);
  if (at == std::string::npos)
    throw std::runtime_error("no '" + text + "' in the PTX");
  kernel.ptx.replace(at, text.size(), instead);
  return kernel;
}

/// The first error under some order: eager, lazy, then random seeds.
Finding firstError(const Kernel &kernel) {
  auto errorOf = [](const std::vector<Finding> &findings) -> const Finding * {
    for (const Finding &finding : findings)
      if (finding.grade == Finding::Grade::error)
        return &finding;
    return nullptr;
  };
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy}) {
    auto findings = simulate(kernel, order, 0);
    if (auto *error = errorOf(findings))
      return *error;
  }
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    auto findings = simulate(kernel, Interleaving::random, seed);
    if (auto *error = errorOf(findings))
      return *error;
  }
  return {.id = "nothing was found"};
}

TEST(GemmDefects, TheRightKernelIsSilent) {
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random})
    for (std::uint64_t seed = 0; seed < 4; ++seed)
      EXPECT_TRUE(simulate(gemm(), order, seed).empty());
}

TEST(GemmDefects, MoreBytesExpectedThanLoaded) {
  Finding finding = firstError(planted("32768", "32784"));
  EXPECT_EQ(finding.id, "deadlock");
  EXPECT_THAT(finding.message, HasSubstr("0 of 1 arrivals and 16 bytes"));
  EXPECT_THAT(finding.where.file, HasSubstr("kernel.cpp"));
}

TEST(GemmDefects, FewerBytesExpectedThanLoaded) {
  Finding finding = firstError(planted("32768", "32752"));
  EXPECT_EQ(finding.id, "deadlock");
  EXPECT_THAT(finding.message, HasSubstr("16 bytes too many"));
}

TEST(GemmDefects, SlotNeverReleased) {
  Finding finding = firstError(planted("mbarrier.arrive.shared", "// "));
  EXPECT_EQ(finding.id, "deadlock");
  EXPECT_THAT(finding.message, HasSubstr("1 of 1 arrivals"));
}

TEST(GemmDefects, FinalWaitDeleted) {
  Finding finding = firstError(planted("wgmma.wait_group.sync.aligned 0;", ""));
  EXPECT_EQ(finding.id, "wgmma-register-in-flight");
  EXPECT_THAT(finding.message, HasSubstr("kernel.cpp:"));
}

TEST(GemmDefects, SlotReleasedInFlight) {
  // Of the two waits for all but one product, the one in the loop.
  Finding finding = firstError(planted("wgmma.wait_group.sync.aligned 1;",
                                       "wgmma.wait_group.sync.aligned 7;", 1));
  EXPECT_EQ(finding.id, "wgmma-operand-reuse");
}

TEST(GemmDefects, RegistersThatNobodyGaveBack) {
  Finding finding =
      firstError(planted("setmaxnreg.dec.sync.aligned.u32 \t40;", ""));
  EXPECT_EQ(finding.id, "deadlock");
  EXPECT_THAT(finding.message, HasSubstr("setmaxnreg 232: 0 registers"));
}

TEST(GemmDefects, MoreRegistersThanThereAre) {
  Finding finding =
      firstError(planted("setmaxnreg.inc.sync.aligned.u32 \t232;",
                         "setmaxnreg.inc.sync.aligned.u32 \t240;"));
  EXPECT_EQ(finding.id, "deadlock");
  EXPECT_THAT(finding.message, HasSubstr("setmaxnreg 240"));
}

TEST(GemmDefects, DecreaseThatIsAnIncrease) {
  Finding finding =
      firstError(planted("setmaxnreg.dec.sync.aligned.u32 \t40;",
                         "setmaxnreg.dec.sync.aligned.u32 \t160;"));
  EXPECT_EQ(finding.id, "setmaxnreg");
}

TEST(GemmDefects, BarriersUsedBeforeTheirInit) {
  Finding finding = firstError(planted("bar.sync \t0;", ""));
  EXPECT_EQ(finding.id, "mbarrier-uninitialized");
}

TEST(GemmDefects, BarrierNeverInitialised) {
  Finding finding = firstError(planted("mbarrier.init.shared.b64", "//"));
  EXPECT_EQ(finding.id, "mbarrier-uninitialized");
}

TEST(GemmDefects, OneCtaTooManyWritesNothing) {
  // TMA leaves out what it stores beyond D, and so do threads.
  Kernel kernel = compile(
      build_gemm({.m = kM, .n = kN, .k = kK, .ldd = kN + 1}, {.stages = 3}),
      {.use_cache = false});
  kernel.contract.grid[0] = 2;
  Finding finding = firstError(kernel);
  EXPECT_EQ(finding.id, "nothing was found");
}

TEST(GemmDefects, UnknownInstructionIsToldBeforeAnythingRuns) {
  Kernel kernel = planted("bar.sync \t0;", "frobnicate.b32 \t0;");
  try {
    simulate(kernel, Interleaving::eager, 0);
    FAIL() << "it ran";
  } catch (const UserError &error) {
    EXPECT_THAT(error.what(),
                HasSubstr("no unit knows the opcode 'frobnicate'"));
  }
}

} // namespace
} // namespace kiln
