// assemble with the ptxas of this machine: its words are what we think they
// are. Skipped where there is none.
#include "kiln/run/assemble.h"
#include "unit/ptx/FakeTools.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace kiln {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

namespace {

class RealPtxas : public ::testing::Test {
protected:
  AssembleOptions options;

  void SetUp() override {
    if (!find_ptxas())
      GTEST_SKIP() << "there is no ptxas on this machine";
    options.use_cache = false;
  }
  std::string refusalOf(const std::string &ptx) {
    return messageOf<UserError>([&] { assemble(ptx, {}, options); });
  }
};

} // namespace

/// An entry `x` with `body`; line 7 of gemm.cpp is in force at its start.
static std::string kernel(std::string_view body,
                          std::string_view bounds = ".maxntid 128, 1, 1") {
  return fmt::format(R"(.version 8.4
.target sm_90a
.address_size 64
.file 1 "gemm.cpp"
.visible .entry x(.param .u64 p)
{}
{{
  .reg .b32 %r<8>; .reg .b64 %rd<8>; .reg .f32 %f<8>; .reg .pred %p<8>;
  .shared .align 16 .b8 tile[1024];
  .loc 1 7 3
  ld.param.u64 %rd3, [p];
  ld.global.u64 %rd1, [%rd3];
{}
  ret;
}}
)",
                     bounds, body);
}

static constexpr std::string_view kLoad =
    "  ld.global.v4.f32 {%f0, %f1, %f2, %f3}, [%rd3];\n";
static constexpr std::string_view kFence = "  wgmma.fence.sync.aligned;\n";
static constexpr std::string_view kMma =
    "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 "
    "{%f0, %f1, %f2, %f3}, %rd1, %rd1, 1, 1, 1, 0, 0;\n";
static constexpr std::string_view kCommit =
    "  wgmma.commit_group.sync.aligned;\n";
static constexpr std::string_view kWait =
    "  wgmma.wait_group.sync.aligned 0;\n";
static constexpr std::string_view kStore =
    "  st.global.v4.f32 [%rd3], {%f0, %f1, %f2, %f3};\n";

TEST_F(RealPtxas, countsResources) {
  Assembly assembly = assemble(kernel(R"(  bar.sync 1;
  mov.u32 %r1, %tid.x;
  st.shared.u32 [tile], %r1;
  ld.shared.u32 %r2, [tile+4];
  st.global.u32 [%rd3], %r2;)"),
                               "x", options);
  EXPECT_GT(assembly.cubin.size(), 100u);
  EXPECT_GT(assembly.resources.registers, 0);
  EXPECT_EQ(assembly.resources.static_smem_bytes, 1024);
  EXPECT_EQ(assembly.resources.barriers, 2);
  EXPECT_EQ(assembly.resources.spill_store_bytes, 0);
  EXPECT_THAT(assembly.diagnostics, IsEmpty());
  EXPECT_THAT(assembly.ptxas_version, ::testing::MatchesRegex("[0-9.]+"));
}

TEST_F(RealPtxas, countsSpills) {
  std::string body = ".reg .f32 %v<100>;\n";
  for (int i = 0; i < 100; ++i)
    body += fmt::format("ld.global.f32 %v{}, [%rd3+{}];\n", i, 4 * i);
  body += "bar.sync 0;\n";
  for (int i = 0; i < 100; ++i)
    body += fmt::format("st.global.f32 [%rd3+{}], %v{};\n", 4 * i, i);
  ResourceUse use =
      assemble(kernel(body, ".maxntid 128, 1, 1 .maxnreg 32"), {}, options)
          .resources;
  EXPECT_EQ(use.registers, 32);
  EXPECT_GT(use.spill_store_bytes, 0);
  EXPECT_GT(use.spill_load_bytes, 0);
  EXPECT_GE(use.stack_bytes, 4);
}

TEST_F(RealPtxas, assemblesAWellFormedWgmma) {
  std::string body =
      fmt::format("{}{}{}{}{}{}", kLoad, kFence, kMma, kCommit, kWait, kStore);
  EXPECT_THAT(assemble(kernel(body), {}, options).diagnostics, IsEmpty());
}

TEST_F(RealPtxas, mapsErrorsToTheSource) {
  EXPECT_THAT(
      refusalOf(kernel("  .loc 1 9 1\n  mov.u32 %r1, %nothing;")),
      ::testing::AllOf(
          ::testing::StartsWith("gemm.cpp:9: ptxas "),
          HasSubstr("\n  gemm.cpp:9: error: Unknown symbol '%nothing' (PTX "
                    "line 14)")));
}

TEST_F(RealPtxas, refusesAnIgnoredSetmaxnreg) {
  std::string body = "  .loc 1 11 1\n  setmaxnreg.inc.sync.aligned.u32 240;";
  EXPECT_THAT(refusalOf(kernel(body, "")),
              HasSubstr("gemm.cpp:11: info C7508: "));
  options.allow = {"C7508"};
  EXPECT_EQ(assemble(kernel(body, ""), {}, options).diagnostics.size(), 1u);
}

TEST_F(RealPtxas, refusesAReadOfAnAccumulatorInFlight) {
  std::string body = fmt::format(
      "{}{}  .loc 1 12 1\n{}  add.f32 %f5, %f0, %f1;\n  st.global.f32 "
      "[%rd3+64], %f5;\n{}{}{}{}",
      kLoad, kFence, kMma, kMma, kCommit, kWait, kStore);
  EXPECT_THAT(refusalOf(kernel(body)), HasSubstr("gemm.cpp:12: info C7514: "));
}

TEST_F(RealPtxas, refusesInjectedWaitsAndFences) {
  std::string noWait = fmt::format("{}{}{}{}  .loc 1 13 1\n{}", kLoad, kFence,
                                   kMma, kCommit, kStore);
  EXPECT_THAT(refusalOf(kernel(noWait)),
              HasSubstr("gemm.cpp:13: info C7517: "));
  std::string noFence = fmt::format("{}  .loc 1 14 1\n{}{}{}{}", kLoad, kMma,
                                    kCommit, kWait, kStore);
  EXPECT_THAT(refusalOf(kernel(noFence)),
              HasSubstr("gemm.cpp:14: info C7519: "));
}

TEST_F(RealPtxas, refusesWgmmaInADivergentPath) {
  std::string body = fmt::format("{}  mov.u32 %r1, %tid.x;\n"
                                 "  setp.lt.u32 %p1, %r1, 17;\n"
                                 "  @%p1 bra past;\n"
                                 "  .loc 1 15 1\n{}{}past:\n{}{}",
                                 kLoad, kMma, kCommit, kWait, kStore);
  EXPECT_THAT(refusalOf(kernel(body)), HasSubstr("gemm.cpp:15: info C7520: "));
}

TEST_F(RealPtxas, refusesTooMuchSharedMemory) {
  std::string body = "  .shared .b8 big[300000];\n  st.shared.b32 [big], 1;";
  EXPECT_THAT(refusalOf(kernel(body)),
              HasSubstr("gemm.cpp:7: error: Entry function 'x' uses too much "
                        "shared data"));
}

TEST_F(RealPtxas, namesAnUnknownTarget) {
  options.target = "sm_9";
  EXPECT_THAT(refusalOf(kernel("")),
              HasSubstr("does not assemble the PTX for sm_9:\n  fatal: Value "
                        "'sm_9' is not defined for option 'gpu-name'"));
}

TEST_F(RealPtxas, readsInlinedLocations) {
  std::string ptx = kernel("  .loc 1 90 1, function_name $name, inlined_at "
                           "1 7 3\n  mov.u32 %r1, %nothing;") +
                    "  .section .debug_str\n  {\n$name:\n.b8 115, 0\n  }\n";
  EXPECT_THAT(refusalOf(ptx), HasSubstr("gemm.cpp:90: error: Unknown symbol"));
}

} // namespace kiln
