// Diagnostics: the forms in which ptxas speaks, in its own words (13.0.88).
#include "ptx/tools/Diagnostics.h"

#include <gmock/gmock.h>

#include <set>

namespace kiln {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

static constexpr std::string_view kPtx = R"(.file 1 "gemm.cpp"
.visible .entry x()
{
  .loc 1 10 1
  mov.b32 %r0, 0;
  .loc 1 20 1
  setmaxnreg.inc.sync.aligned.u32 232;
  .loc 1 30 1
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {};
  .loc 1 40 1
  ret;
}
)";

static AssembleDiagnostic parseOne(std::string_view line,
                                   std::string_view ptx = kPtx) {
  PtxasOutput output = parsePtxasOutput(line, ptx);
  EXPECT_THAT(output.diagnostics, SizeIs(1)) << line;
  EXPECT_THAT(output.resources, IsEmpty()) << line;
  return output.diagnostics.empty() ? AssembleDiagnostic{}
                                    : output.diagnostics.front();
}

TEST(Diagnostics, readAnErrorWithItsLine) {
  AssembleDiagnostic read =
      parseOne("ptxas /tmp/f x.ptx, line 5; error   : Unknown symbol 'foo'\n");
  EXPECT_EQ(read.severity, "error");
  EXPECT_EQ(read.id, "");
  EXPECT_EQ(read.message, "Unknown symbol 'foo'");
  EXPECT_EQ(read.ptx_line, 5);
  EXPECT_EQ(read.where.line, 10u);
  EXPECT_EQ(read.to_string(),
            "gemm.cpp:10: error: Unknown symbol 'foo' (PTX line 5)");
}

TEST(Diagnostics, readAFatalWithoutALine) {
  AssembleDiagnostic read =
      parseOne("ptxas fatal   : Ptx assembly aborted due to errors");
  EXPECT_EQ(read.severity, "fatal");
  EXPECT_EQ(read.ptx_line, 0);
  EXPECT_FALSE(read.where.is_known());
  EXPECT_EQ(read.to_string(), "fatal: Ptx assembly aborted due to errors");
}

TEST(Diagnostics, readAWarning) {
  AssembleDiagnostic read =
      parseOne("ptxas warning : Registers are spilled to local memory in "
               "function 'x', 1304 bytes spill stores, 1304 bytes spill loads");
  EXPECT_EQ(read.severity, "warning");
  EXPECT_EQ(read.function, "x");
  EXPECT_EQ(read.where.line, 10u);
  EXPECT_FALSE(isRefusal(read));
  EXPECT_FALSE(isSlowdown(read));
}

TEST(Diagnostics, findTheFunctionAndItsInstruction) {
  AssembleDiagnostic read = parseOne(
      "ptxas info    : (C7514) Potential Performance Loss: wgmma.mma_async "
      "instructions are serialized due to non wgmma instructions reading "
      "accumulator registers of  a wgmma between start and end of the pipeline "
      "stage in the function 'x'");
  EXPECT_EQ(read.id, "C7514");
  EXPECT_EQ(read.function, "x");
  EXPECT_EQ(read.ptx_line, 0);
  EXPECT_EQ(read.where.line, 30u);
  EXPECT_THAT(read.message, ::testing::StartsWith("Potential Performance"));
  EXPECT_THAT(read.to_string(),
              HasSubstr("\n    An accumulator is read, or copied"));
  EXPECT_TRUE(isSlowdown(read));
}

static constexpr std::string_view kIgnored =
    "ptxas info    : (C7508) Potential Performance Loss: 'setmaxnreg' ignored; "
    "unable to determine register count at entry.";

TEST(Diagnostics, findTheInstructionWithoutAFunction) {
  AssembleDiagnostic read = parseOne(kIgnored);
  EXPECT_EQ(read.function, "");
  EXPECT_EQ(read.where.line, 20u);
  EXPECT_THAT(read.cause, HasSubstr(".reqntid or .maxntid"));
}

TEST(Diagnostics, doNotGuessBetweenFunctions) {
  std::string twice = std::string(kPtx) + ".entry y() {\n.loc 1 50 1\n"
                                          "setmaxnreg.dec.sync.aligned.u32 24;"
                                          "}\n";
  EXPECT_FALSE(parseOne(kIgnored, twice).where.is_known());
}

TEST(Diagnostics, findTheLineInTheWords) {
  AssembleDiagnostic wait = parseOne(
      "ptxas info    : (C7517) warpgroup.wait is injected in around line 11 by "
      "compiler to allow use of registers defined by GMMA in function 'x'");
  EXPECT_EQ(wait.ptx_line, 11);
  EXPECT_EQ(wait.function, "x");
  EXPECT_EQ(wait.where.line, 40u);

  AssembleDiagnostic registers = parseOne(
      "ptxas fatal   : (C7602) Insufficient registers (64) to compile "
      "instruction at line 9 in function x. Try to compile with register "
      "target of 154 or higher.");
  EXPECT_EQ(registers.id, "C7602");
  EXPECT_EQ(registers.ptx_line, 9);
  EXPECT_EQ(registers.function, "x");
  EXPECT_EQ(registers.where.line, 30u);
  EXPECT_TRUE(isRefusal(registers));
  EXPECT_FALSE(isSlowdown(registers));
}

TEST(Diagnostics, fallBackToTheFunction) {
  AssembleDiagnostic read =
      parseOne("ptxas error   : Entry function 'x' uses too much shared data "
               "(0x493e0 bytes, 0x38c00 max)");
  EXPECT_EQ(read.function, "x");
  EXPECT_EQ(read.where.line, 10u);
}

TEST(Diagnostics, doNotTakeAMissingFunctionForAPlace) {
  EXPECT_EQ(parseOne("ptxas fatal   : Unresolved extern function 'x'").function,
            "");
}

TEST(Diagnostics, keepUnknownIdsInPtxasWords) {
  AssembleDiagnostic read = parseOne("ptxas info    : (C7599) Something new");
  EXPECT_EQ(read.id, "C7599");
  EXPECT_EQ(read.cause, "");
  EXPECT_EQ(read.to_string(), "info C7599: Something new");
  EXPECT_TRUE(isSlowdown(read));
}

TEST(Diagnostics, keepBracketsThatAreNoId) {
  AssembleDiagnostic read = parseOne("ptxas info    : (C) 2005 NVIDIA");
  EXPECT_EQ(read.id, "");
  EXPECT_EQ(read.message, "(C) 2005 NVIDIA");
}

TEST(Diagnostics, joinContinuedLines) {
  EXPECT_EQ(parseOne("ptxas warning : first\r\n    second\n\n").message,
            "first second");
}

TEST(Diagnostics, ignoreOtherPrograms) {
  EXPECT_THAT(parsePtxasOutput("ld: error: x\nptxas\nptxas hello\n"
                               "ptxas f, line x; y\nptxas info\n",
                               kPtx)
                  .diagnostics,
              IsEmpty());
}

TEST(Diagnostics, surviveVeryLongNames) {
  std::string name(1 << 20, 'n');
  AssembleDiagnostic read =
      parseOne("ptxas info    : (C7512) in the function '" + name + "'");
  EXPECT_EQ(read.function, name);
}

TEST(Diagnostics, readCountsOfEveryFunction) {
  PtxasOutput output = parsePtxasOutput(
      R"(ptxas info    : 0 bytes gmem, 64 bytes cmem[3]
ptxas info    : Compiling entry function 'k2' for 'sm_90a'
ptxas info    : Function properties for k2
    1024 bytes stack frame, 1512 bytes spill stores, 1516 bytes spill loads
ptxas info    : Used 255 registers, used 0 barriers, 1024 bytes cumulative stack size
ptxas info    : Compile time = 0.977 ms
ptxas info    : Compiling entry function 'k1' for 'sm_90a'
ptxas info    : Function properties for k1
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 2 barriers, 1024+16 bytes smem, 360 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Function properties for fn
    32 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
)",
      kPtx);
  EXPECT_THAT(output.diagnostics, IsEmpty());
  ResourceUse spilling{.registers = 255,
                       .spill_store_bytes = 1512,
                       .spill_load_bytes = 1516,
                       .stack_bytes = 1024};
  EXPECT_EQ(output.resources["k2"], spilling);
  ResourceUse plain{.registers = 8,
                    .static_smem_bytes = 1040,
                    .barriers = 2,
                    .constant_bytes = 368};
  EXPECT_EQ(output.resources["k1"], plain);
  EXPECT_EQ(output.resources["fn"].stack_bytes, 32);
  EXPECT_EQ(output.resources["fn"].registers, 0);
}

TEST(Diagnostics, tableHasEachIdOnceWithACause) {
  std::set<std::string> ids;
  for (const KnownDiagnostic &known : knownDiagnostics()) {
    EXPECT_TRUE(ids.insert(known.id).second) << known.id;
    EXPECT_THAT(known.cause, ::testing::EndsWith(".")) << known.id;
    EXPECT_EQ(findKnownDiagnostic(known.id), &known);
  }
  EXPECT_EQ(findKnownDiagnostic("C1"), nullptr);
  EXPECT_EQ(findKnownDiagnostic(""), nullptr);
}

} // namespace kiln
