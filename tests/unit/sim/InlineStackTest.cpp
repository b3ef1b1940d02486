// InlineStack: findings name the line of the kernel's own file, and how the
// instruction got there.
#include "unit/sim/RunKernel.h"
#include "kiln/check/sim.h"

#include <gtest/gtest.h>

namespace kiln {

/// As compilers write it: each .loc of a function that was inlined names where,
/// and that place has stood before with its own.
static std::string module(const std::string &body) {
  return R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry _Z4testPf(.param .u64 p)
{
    .reg .b64 %rd<3>;
    .reg .b32 %r<3>;
    .loc 1 5 3
    ld.param.u64 %rd1, [p];
)" + body +
         R"(
    ret;
}
.file 1 "kernel.cu"
.file 2 "/usr/include/atomic.hpp"
.section .debug_str
{
$L__info_string0:
.b8 95,90,53,111,117,116,101,114,105
.b8 0
$L__info_string1:
.b8 95,90,53,105,110,110,101,114,105
.b8 0
}
)";
}

static LaunchResult run(const std::string &ptx) {
  auto device = open_sim();
  Buffer buffer = device->allocate(256);
  return device->launch(
      {.ptx = ptx, .block = {64, 1, 1}, .parameters = {{buffer}}});
}

TEST(InlineStack, NamesTheLineOfTheKernelsFileFirst) {
  LaunchResult result = run(module(R"(
    .loc 1 7 3
    .loc 2 40 5, function_name $L__info_string0, inlined_at 1 7 3
    .loc 2 20 9, function_name $L__info_string1, inlined_at 2 40 5
    st.global.u32 [%rd1+65536], 1;
)"));
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding &finding = result.findings[0];
  EXPECT_EQ(finding.where.file, "kernel.cu");
  EXPECT_EQ(finding.where.line, 7u);
  EXPECT_EQ(finding.instruction, "st.global.u32 [%rd1+65536], 1;");
  ASSERT_EQ(finding.stack.size(), 3u);
  EXPECT_EQ(finding.stack[0].function, "inner(int)");
  EXPECT_EQ(finding.stack[0].where.line, 20u);
  EXPECT_EQ(finding.stack[1].function, "outer(int)");
  EXPECT_EQ(finding.stack[1].where.line, 40u);
  EXPECT_EQ(finding.stack[2].function, "test(float*)");
  EXPECT_EQ(finding.stack[2].where.line, 7u);
  std::string text = finding.to_string();
  EXPECT_NE(text.find("at kernel.cu:7: "), std::string::npos) << text;
  EXPECT_NE(text.find("\n  in /usr/include/atomic.hpp:20, inner(int)\n  "
                      "inlined at /usr/include/atomic.hpp:40, outer(int)\n  "
                      "inlined at kernel.cu:7, test(float*)"),
            std::string::npos)
      << text;
  std::string json = sim::jsonOf(result);
  for (const char *part :
       {"\"stack\": [", "\"function\": \"inner(int)\"", "\"count\": 1",
        "\"instruction\": \"st.global.u32 [%rd1+65536], 1;\""})
    EXPECT_NE(json.find(part), std::string::npos) << part << " in " << json;
}

TEST(InlineStack, WhatWasNotInlinedHasNone) {
  LaunchResult result = run(module(R"(
    .loc 1 9 3
    st.global.u32 [%rd1+65536], 1;
)"));
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].where.line, 9u);
  EXPECT_TRUE(result.findings[0].stack.empty());
}

TEST(InlineStack, OneFindingForEachLineAndKindWithItsCount) {
  // Two instructions of one line, and the other access of a race.
  LaunchResult result = run(module(R"(
    .loc 1 11 3
    mov.u32 %r1, %tid.x;
    st.global.u32 [%rd1], %r1;
    st.global.u32 [%rd1+4], %r1;
)"));
  ASSERT_EQ(result.findings.size(), 1u);
  const Finding &finding = result.findings[0];
  EXPECT_EQ(finding.id, "race");
  EXPECT_EQ(finding.count, 2u);
  ASSERT_TRUE(finding.other.has_value());
  EXPECT_EQ(finding.other->where.line, 11u);
  EXPECT_TRUE(finding.other->is_write);
  EXPECT_NE(finding.other->who.find("of CTA (0, 0, 0)"), std::string::npos);
  EXPECT_NE(finding.to_string().find(" (2 times)"), std::string::npos);
  std::string json = sim::jsonOf(result);
  EXPECT_NE(json.find("\"access\": \"write\""), std::string::npos) << json;
}

TEST(InlineStack, TheOtherAccessHasItsOwn) {
  // A store of every thread, inlined twice over, and a load of the next one's.
  LaunchResult result = run(module(R"(
    .loc 1 7 3
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    sub.u64 %rd2, %rd1, %rd2;
    .loc 2 40 5, function_name $L__info_string0, inlined_at 1 7 3
    .loc 2 20 9, function_name $L__info_string1, inlined_at 2 40 5
    st.global.u32 [%rd2+252], %r1;
    .loc 1 8 3
    xor.b32 %r1, %r1, 32;
    mul.wide.u32 %rd2, %r1, 4;
    sub.u64 %rd2, %rd1, %rd2;
    ld.global.u32 %r2, [%rd2+252];
)"));
  // Each access finds the other where it was first.
  ASSERT_EQ(result.findings.size(), 2u) << result.to_string();
  const Finding &finding = result.findings[1];
  EXPECT_EQ(finding.id, "race");
  EXPECT_EQ(finding.where.line, 8u);
  EXPECT_TRUE(finding.stack.empty());
  std::string text = finding.to_string();
  EXPECT_NE(text.find("\n  the other access in /usr/include/atomic.hpp:20, "
                      "inner(int)\n  inlined at /usr/include/atomic.hpp:40, "
                      "outer(int)\n  inlined at kernel.cu:7, test(float*)"),
            std::string::npos)
      << text;
  ASSERT_TRUE(finding.other.has_value());
  ASSERT_EQ(finding.other->stack.size(), 3u);
  EXPECT_EQ(finding.other->stack[1].where.line, 40u);
  std::string json = sim::jsonOf(result);
  std::size_t other = json.rfind("\"other\"");
  ASSERT_NE(other, std::string::npos) << json;
  EXPECT_NE(json.find("\"function\": \"inner(int)\"", other), std::string::npos)
      << json;
}

TEST(InlineStack, LinesOfLinkedModulesStayApart) {
  // Both store a register that nobody wrote, on the same line of their PTX.
  const std::string head = ".version 8.6\n.target sm_90a\n.address_size 64\n",
                    body = "{\n.reg .b64 %x;\n.reg .b32 %r;\n"
                           "ld.param.u64 %x, [p];\n.loc 1 7 0\n"
                           "st.global.u32 [%x], %r;\n";
  std::string kernel = head +
                       ".extern .func f(.param .b64 q);\n"
                       ".visible .entry k(.param .u64 p)" +
                       body +
                       ".param .b64 a;\nst.param.b64 [a], %x;\n"
                       "call f, (a);\nret;\n}\n.file 1 \"a.cu\"\n";
  std::string function = head + "\n.visible .func f(.param .b64 p)" + body +
                         "ret;\n}\n.file 1 \"b.cu\"\n";
  auto device = open_sim();
  std::string_view both[] = {kernel, function};
  Buffer buffer = device->allocate(64);
  LaunchResult result =
      device->launch({.parameters = {{buffer}}, .module = device->load(both)});
  ASSERT_EQ(result.findings.size(), 2u) << result.to_string();
  EXPECT_EQ(result.findings[0].ptx_line, result.findings[1].ptx_line);
  EXPECT_EQ(result.findings[0].where.file, "a.cu");
  EXPECT_EQ(result.findings[1].where.file, "b.cu");
}

/// A kernel that initialises an mbarrier, arrives at it, and waits once.
static std::string barrierText(const std::string &arrival) {
  return R"(.version 8.6
.target sm_90a
.address_size 64
.extern .shared .align 1024 .b8 pool[];
.visible .entry test(.param .u64 p)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %x;
    ld.param.u64 %x, [p];
    mov.u32 %r1, pool;
    mbarrier.init.shared.b64 [%r1+8], 2;
    fence.mbarrier_init.release.cluster;
    )" + arrival +
         R"(
again:
    mbarrier.try_wait.parity.shared.b64 %p, [%r1+8], 0;
    @!%p bra again;
    ret;
}
)";
}

/// Launch it, with a name for its mbarriers.
static LaunchResult launchNamed(const std::string &arrival) {
  auto device = open_sim({.timeline = true});
  std::string text = barrierText(arrival);
  Buffer buffer = device->allocate(512);
  device->fill(buffer, 0);
  LaunchDescription launch{
      .ptx = text, .dynamic_smem_bytes = 1024, .parameters = {{buffer}}};
  launch.shared_objects = {{.name = "v_empty",
                            .offset = 0,
                            .element_bytes = 8,
                            .count = 2,
                            .file = "kernel.cpp",
                            .line = 30}};
  return device->launch(launch);
}

TEST(InlineStack, NamesThatTheKernelGaveAreSaid) {
  LaunchResult result = launchNamed("");
  ASSERT_EQ(result.findings.size(), 1u);
  EXPECT_EQ(result.findings[0].buffer, "v_empty[1]");
  EXPECT_NE(result.findings[0].message.find(
                "the mbarrier at v_empty[1] (shared address 1032, declared at "
                "kernel.cpp:30)"),
            std::string::npos)
      << result.findings[0].message;
}

/// Also by faults of the barrier's own, and in the timeline.
TEST(InlineStack, NamesAreSaidOfFaultsAndInTheTimeline) {
  LaunchResult late = launchNamed("mbarrier.arrive.shared.b64 _, [%r1+8], 3;");
  ASSERT_EQ(late.findings.size(), 1u);
  EXPECT_EQ(late.findings[0].id, "mbarrier-over-arrival");
  EXPECT_NE(late.findings[0].message.find(
                "at the mbarrier at v_empty[1] (shared address 1032, declared "
                "at kernel.cpp:30)"),
            std::string::npos)
      << late.findings[0].message;
  LaunchResult complete = launchNamed(R"(
    mbarrier.arrive.shared.b64 _, [%r1+8];
    mbarrier.arrive.expect_tx.shared.b64 _, [%r1+8], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
      [%r1+16], [%x], 512, [%r1+8];)");
  ASSERT_EQ(complete.timeline.events.size(), 2u) << complete.to_string();
  EXPECT_EQ(complete.timeline.events.front().object, "v_empty[1]");
  EXPECT_EQ(complete.timeline.events.back().object, "v_empty[1]");
}

} // namespace kiln
