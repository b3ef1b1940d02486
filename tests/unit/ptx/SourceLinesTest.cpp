// SourceLines: which source line a PTX line comes from.
#include "ptx/SourceLines.h"

#include <gtest/gtest.h>

namespace kiln {

// The lines are numbered from 1; the file table may follow its use.
static constexpr std::string_view kModule = R"(.version 8.4
.target sm_90a
.visible .entry a()
{
  .reg .b32 %r<4>;
  .local .align 4 .b8 memory[4];
  .loc 1 41 7 // gemm.cpp:41:7
  mov.b32 %r0, 0;
  // .loc 1 99 1
  mov.b32 %r1, 0;
  .loc	2 90 3, function_name $L__info_string0, inlined_at 1 41 7
  mov.b32 %r2, 0;
  .loc 1 0 0
  mov.b32 %r3, 0;
}
.entry b()
{
  ret;
}
.entry c()
{
  .loc 1 0 0
  ret;
  .loc 7 5 1
  ret;
}
.entry d() { .loc 2 3 1
  ret;
}
.file 1 "kernels/gemm one.cpp"
.file 2 "/usr/include/math.h", 1700000000, 512
)";

static std::string textOf(const SourceLine &line) {
  return line.is_known() ? line.file + ":" + std::to_string(line.line)
                         : "unknown";
}

static std::string at(int ptxLine) {
  return textOf(SourceLines(kModule).at(ptxLine));
}

TEST(SourceLines, holdUntilTheNext) {
  EXPECT_EQ(at(7), "kernels/gemm one.cpp:41");
  EXPECT_EQ(at(8), "kernels/gemm one.cpp:41");
  EXPECT_EQ(at(10), "kernels/gemm one.cpp:41");
}

TEST(SourceLines, readInlinedForms) {
  EXPECT_EQ(at(12), "/usr/include/math.h:90");
}

TEST(SourceLines, lookBackPastLineZero) {
  EXPECT_EQ(at(14), "/usr/include/math.h:90");
  EXPECT_EQ(at(23), "unknown");
}

TEST(SourceLines, doNotLeaveTheirFunction) {
  EXPECT_EQ(at(2), "unknown");
  EXPECT_EQ(at(5), "unknown");
  EXPECT_EQ(at(18), "unknown");
  EXPECT_EQ(at(27), "/usr/include/math.h:3");
  EXPECT_EQ(at(30), "unknown");
  EXPECT_EQ(at(0), "unknown");
  EXPECT_EQ(at(1000), "unknown");
}

TEST(SourceLines, areUnknownForAnUnknownFile) { EXPECT_EQ(at(25), "unknown"); }

TEST(SourceLines, knowTheFirstOfAFunction) {
  SourceLines lines(kModule);
  EXPECT_EQ(textOf(lines.firstIn("a")), "kernels/gemm one.cpp:41");
  EXPECT_EQ(textOf(lines.firstIn("b")), "unknown");
  EXPECT_EQ(textOf(lines.firstIn("d")), "/usr/include/math.h:3");
  EXPECT_EQ(textOf(lines.firstIn("nobody")), "unknown");
}

} // namespace kiln
