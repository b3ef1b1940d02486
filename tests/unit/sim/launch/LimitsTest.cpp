// Limits: what a kernel or a launch asks for and no device or host has.
#include "kiln/check/sim.h"
#include "sim/program/SymbolLayout.h"
#include "unit/sim/RunKernel.h"

#include <gmock/gmock.h>

namespace kiln::sim {

using testing::HasSubstr;

static const char *const kHead = R"(.version 8.6
.target sm_90a
.address_size 64
)";

/// Launch the entry k; what was thrown or found, or an empty text.
static std::string launch(const std::string &ptx,
                          LaunchDescription description = {},
                          const SimOptions &options = {}) {
  description.name = "k";
  description.ptx = ptx;
  try {
    LaunchResult result = open_sim(options)->launch(description);
    return result.findings.empty() ? "" : result.findings[0].to_string();
  } catch (const Error &error) {
    return error.what();
  }
}

static std::string launchBody(const std::string &head, const std::string &body,
                              const LaunchDescription &description = {}) {
  return launch(kHead + head + "\n.visible .entry k() {\n" + body + "\nret;\n}",
                description);
}

TEST(Limits, VariablesFitIntoTheirMemory) {
  EXPECT_EQ(launchBody("", ".local .b8 a[524288];"), "");
  EXPECT_EQ(launchBody("", ".local .b8 a[100000000];"),
            "PTX:6: 'a' of 100000000 bytes does not fit into local memory "
            "behind the 0 bytes that are taken; a thread has 524288");
  EXPECT_EQ(launchBody("", ".shared .b8 a[8];\n.shared .b8 b[5000000000];"),
            "PTX:7: 'b' of 5000000000 bytes does not fit into shared memory "
            "behind the 8 bytes that are taken; a CTA has 232448");
  EXPECT_THAT(launchBody("", ".local .b8 a[281474976710656];"),
              HasSubstr("does not fit into local memory"));
  EXPECT_THAT(launchBody("", ".local .b8 a[4];\n.local .align 1048576 .b8 "
                             "b[4];"),
              HasSubstr("'b' of 4 bytes does not fit into local memory behind "
                        "the 1048576 bytes that are taken"));
  EXPECT_THAT(launchBody(".const .b8 a[65537];", ""),
              HasSubstr("'a' of 65537 bytes does not fit into constant memory "
                        "behind the 0 bytes that are taken; a module has "
                        "65536"));
}

TEST(Limits, VariablesOf4GiBAreNotCut) {
  // 65536 of 2^48 bytes are 2^64, which would be none at all.
  std::string many;
  for (int i = 0; i < 65537; ++i)
    many += fmt::format(".local .b8 a{}[281474976710656];\n", i);
  EXPECT_THAT(launchBody("", many), HasSubstr("'a0' of 281474976710656 bytes"));
}

TEST(Limits, ParametersFitIntoThoseOfAKernel) {
  std::string ptx = std::string(kHead) +
                    ".visible .entry k(.param .align 1048576 .b8 p[16],\n"
                    ".param .align 1048576 .b8 q[16]) { ret; }";
  LaunchDescription description;
  for (int i = 0; i < 2; ++i)
    description.parameters.push_back({std::vector<std::byte>(16)});
  EXPECT_EQ(launch(ptx, description),
            "PTX:5: 'q' of 16 bytes does not fit into the parameters behind "
            "the 1048576 bytes that are taken; a kernel has 32764");
}

TEST(Limits, StaticAndDynamicSharedMemoryCountTogether) {
  std::string body = ".shared .b8 a[40000];\n.reg .b32 %r;\nmov.u32 %r, a;";
  EXPECT_EQ(launchBody("", body, {.dynamic_smem_bytes = 192448}), "");
  EXPECT_EQ(launchBody("", body, {.dynamic_smem_bytes = 192449}),
            "PTX:5: k has 40000 bytes of static shared memory and is launched "
            "with 192449 of dynamic; a CTA has 232448 for both");
}

TEST(Limits, ShapesOfALaunch) {
  auto with = [](const LaunchDescription &description) {
    return launchBody("", "", description);
  };
  EXPECT_EQ(with({.grid = {1, 65536, 1}}),
            "launching k, grid 1x65536x1, block 1x1x1, cluster 1x1x1, 0 bytes "
            "of shared memory: NVIDIA H200 allows a grid of "
            "2147483647x65535x65535");
  EXPECT_THAT(with({.grid = {1, 1, 65536}}), HasSubstr("allows a grid of"));
  EXPECT_THAT(with({.grid = {2147483648, 1, 1}}),
              HasSubstr("allows a grid of"));
  EXPECT_THAT(with({.block = {1, 1, 65}}),
              HasSubstr("NVIDIA H200 allows a block of 1024x1024x64"));
  EXPECT_THAT(with({.block = {1025, 1, 1}}), HasSubstr("allows a block of"));
  EXPECT_THAT(with({.block = {1024, 2, 1}}),
              HasSubstr("the block has 2048 threads, NVIDIA H200 allows 1024"));
  // Their product is 2^64.
  EXPECT_THAT(with({.cluster = {4294967295, 4294967295, 4294967295}}),
              HasSubstr("the cluster has 18446744073709551615 CTAs, NVIDIA "
                        "H200 allows 16"));
  EXPECT_THAT(with({.grid = {17, 1, 1}, .cluster = {17, 1, 1}}),
              HasSubstr("the cluster has 17 CTAs, NVIDIA H200 allows 16"));
  EXPECT_EQ(with({.grid = {16, 1, 1}, .cluster = {16, 1, 1}}), "");
  EXPECT_THAT(with({.grid = {3, 1, 1}, .cluster = {2, 1, 1}}),
              HasSubstr("the grid must be a multiple of the cluster in each "
                        "dimension"));
  EXPECT_THAT(with({.grid = {0, 1, 1}}), HasSubstr("no dimension may be 0"));
  EXPECT_THAT(with({.dynamic_smem_bytes = 4294967295}),
              HasSubstr("NVIDIA H200 allows 232448 bytes of shared memory"));
}

TEST(Limits, AnEntryIsLaunchedWithTheBlocksItAsksFor) {
  auto with = [](const std::string &directive, std::array<std::uint32_t, 3> b) {
    return launch(std::string(kHead) + ".visible .entry k() " + directive +
                      " { ret; }",
                  {.block = b});
  };
  EXPECT_EQ(with(".reqntid 8, 4", {8, 4, 1}), "");
  EXPECT_EQ(with(".reqntid 8, 4", {32, 1, 1}),
            "k is launched with blocks of 32x1x1; its PTX requires 8x4x1 "
            "(.reqntid)");
  EXPECT_EQ(with(".maxntid 8, 4", {32, 1, 1}), "");
  EXPECT_EQ(with(".maxntid 8, 4", {33, 1, 1}),
            "k is launched with blocks of 33 threads; its PTX allows 32 "
            "(.maxntid)");
  EXPECT_EQ(with(".maxntid 2147483647, 2147483647, 2147483647", {1, 1, 1}), "");
  EXPECT_EQ(with(".maxnreg 2147483647", {1, 1, 1}), "");
  EXPECT_EQ(with(".minnctapersm 2147483647 .maxntid 32", {1, 1, 1}), "");
  EXPECT_THAT(with(".reqntid 0", {1, 1, 1}),
              HasSubstr(".reqntid takes one to three sizes, none of which is "
                        "0"));
  EXPECT_THAT(with(".reqntid 1, 1, 1, 1", {1, 1, 1}),
              HasSubstr(".reqntid takes one to three sizes"));
  EXPECT_EQ(with(".reqnctapercluster 2", {1, 1, 1}),
            "launching k, grid 1x1x1, block 1x1x1, cluster 2x1x1, 0 bytes of "
            "shared memory: the grid must be a multiple of the cluster in each "
            "dimension");
  EXPECT_EQ(launch(std::string(kHead) +
                       ".visible .entry k() .reqnctapercluster 2 { ret; }",
                   {.grid = {4, 2, 1}, .cluster = {2, 2, 1}}),
            "k is launched with clusters of 2x2x1; its PTX requires 2x1x1");
}

TEST(Limits, ANewerVersionIsAWarning) {
  std::string ptx = ".version 9.9\n.target sm_90a\n.address_size 64\n"
                    ".visible .entry k() { ret; }";
  EXPECT_EQ(launch(ptx), "warning ptx-version at PTX:1: the PTX is of version "
                         "9.9 and the simulator knows 9.4: what is newer may "
                         "mean something else");
  open_sim()->simulation()->check({.ptx = ptx}); // does not throw
  EXPECT_EQ(launch(ptx, {}, {.allow = {"ptx-version"}}), "");
}

TEST(Limits, RegistersOfSetmaxnreg) {
  EXPECT_THAT(launchBody("", "setmaxnreg.inc.sync.aligned.u32 4294967295;"),
              HasSubstr("4294967295 registers; setmaxnreg takes a multiple of "
                        "8 from 24 to 256"));
}

TEST(Limits, OnlyARegisterOf128BitsHasAHalfBehindIt) {
  EXPECT_EQ(highHalf({.offset = 512, .width = 8, .bytes = 16}).offset, 768u);
  try {
    highHalf({.offset = 512, .width = 8, .bytes = 8});
    ADD_FAILURE() << "it has one";
  } catch (const UserError &error) {
    EXPECT_EQ(error.message(),
              "a register of 8 bytes stands where one of 16 is expected");
  }
}

// Neither the device nor this machine has so much: the PTX is wrong.
TEST(Limits, VariablesThatNoDeviceHoldsAreRefusedAtTheirLine) {
  for (const char *bytes : {"2199023255552", "281474976710656"})
    EXPECT_THAT(
        launchBody(fmt::format(".global .b8 small[16];\n"
                               ".global .b8 huge[{}];",
                               bytes),
                   ""),
        HasSubstr(fmt::format(
            "PTX:5: 'huge' of {} bytes does not fit into global memory behind "
            "the 16 bytes that are taken; the device, simulated here, "
            "has ",
            bytes)));
}

TEST(Limits, NotEnoughMemoryNamesTheBufferAndItsSize) {
  GlobalMemory memory;
  memory.allocate(16, "small");
  for (std::size_t bytes : {~std::size_t(0), std::size_t(1) << 60})
    try {
      memory.allocate(bytes, "a");
      ADD_FAILURE() << "there was enough";
    } catch (const RuntimeError &error) {
      EXPECT_THAT(error.what(),
                  HasSubstr(fmt::format("not enough memory for a, which needs "
                                        "{} bytes: ",
                                        bytes)));
    }
  EXPECT_EQ(memory.allocate(16, "").name, "buffer 1");
}

TEST(Limits, VariablesOfOneNameInTwoFunctionsAreTwo) {
  std::string ptx = std::string(kHead) + R"(
.global .b32 x = 7;
.func g() { .global .align 8 .u64 a[1] = {x}; ret; }
.visible .entry k(.param .u64 out) {
.global .align 8 .u64 a[1000] = {0, 0, x};
.reg .b64 %rd<4>;
.reg .b32 %r;
call g;
ld.global.u64 %rd1, [a+16];
ld.global.u32 %r, [%rd1];
ld.param.u64 %rd2, [out];
st.global.u32 [%rd2], %r;
ret;
})";
  auto device = open_sim();
  Buffer out = device->allocate(4);
  LaunchResult result =
      device->launch({.name = "k", .ptx = ptx, .parameters = {{out}}});
  EXPECT_TRUE(result.findings.empty());
  std::uint32_t value = 0;
  device->copy_out(&value, out, 4, Stream());
  EXPECT_EQ(value, 7u);
}

TEST(Limits, AnEntryCannotBeCalled) {
  std::string ptx = std::string(kHead) + R"(
.visible .entry other(.param .b64 p) { ret; }
.visible .entry k() {
.reg .b64 %rd;
{ .param .b64 q; st.param.b64 [q], %rd; call other, (q); }
ret;
})";
  EXPECT_THAT(launch(ptx),
              HasSubstr("'other' is an entry; a call takes a .func"));
}

/// What a kernel prints with that format and the arguments 1, 2, 3, ...
static std::string printed(const std::string &format) {
  std::string bytes;
  for (char c : format)
    bytes += fmt::format("{}, ", static_cast<int>(c));
  std::string ptx = std::string(kHead) + fmt::format(R"(
.global .align 1 .b8 format[] = {{{}0}};
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.visible .entry k() {{
.local .align 8 .b8 args[16];
.reg .b64 %rd<4>;
.reg .b32 %r<4>;
mov.u32 %r1, 3;
mov.u32 %r2, 4;
mov.u32 %r3, -5;
st.local.u32 [args], %r1;
st.local.u32 [args+4], %r2;
st.local.u32 [args+8], %r3;
st.local.u32 [args+12], %r2;
mov.u64 %rd1, args;
cvta.local.u64 %rd1, %rd1;
mov.u64 %rd2, format;
{{
.param .b64 f; .param .b64 a; .param .b32 r;
st.param.b64 [f], %rd2;
st.param.b64 [a], %rd1;
call (r), vprintf, (f, a);
}}
ret;
}})",
                                                     bytes);
  std::string text;
  SimOptions options;
  options.print = [&](const std::string &more) { text += more; };
  EXPECT_EQ(launch(ptx, {}, options), "");
  return text;
}

TEST(Limits, AFormatOfTheKernelIsNoFormatOfTheHost) {
  EXPECT_EQ(printed("%d %u%%"), "3 4%");
  EXPECT_EQ(printed("%*d|%-*d|"), "  4|4    |");
  EXPECT_EQ(printed("%.*d"), "004");
  EXPECT_EQ(printed("%hhd %5d"), "3     4");
  EXPECT_EQ(printed("%lld"), "17179869187");
  // %n writes through its argument, wherever it stands.
  EXPECT_EQ(printed("%nd"), "%nd");
  EXPECT_EQ(printed("%lnx %lln %hhnd"), "%lnx %lln %hhnd");
  EXPECT_EQ(printed("%Lf").size(), printed("%f").size());
  EXPECT_EQ(printed("%"), "%");
  EXPECT_EQ(printed("%5"), "%5");
  EXPECT_EQ(printed("%k"), "%k");
  EXPECT_EQ(printed("%2000000000d").size(), std::size_t(1) << 20);
  EXPECT_EQ(printed("%.99999999999d").size(), std::size_t(1) << 20);
}

} // namespace kiln::sim
