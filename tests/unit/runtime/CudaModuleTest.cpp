// The scan of PTX for its entries and what they take.
#include "runtime/CudaModule.h"

#include <gmock/gmock.h>

namespace kiln {
namespace {

TEST(PtxEntriesTest, ParametersWithTheirSizes) {
  auto entries = scanPtxEntries(R"(
    .visible .entry _Z3addPfi$x(
      .param .u64 .ptr .global .align 16 a,
      .param.b64 b, .param .s32 n, .param .f16 h, .param .b8 flag,
      .param .align 64 .b8 map[128], .param .f32 matrix[4][2],
      .param .novel odd)
    .maxntid 128, 1, 1 { ld.param.u64 %rd1, [a]; ret; })");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "_Z3addPfi$x");
  std::vector<int> bytes;
  for (const ScannedParameter &parameter : entries[0].parameters)
    bytes.push_back(parameter.bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(8, 8, 4, 2, 1, 128, 32, 0));
  EXPECT_EQ(entries[0].parameters[5].type, ".b8[128]");
}

TEST(PtxEntriesTest, CommentsAndStringsHoldNoEntries) {
  auto entries = scanPtxEntries("// .entry a\n/* .entry b */\n"
                                ".file 1 \".entry c\"\n.entry d{}");
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "d");
  EXPECT_TRUE(entries[0].parameters.empty());
}

TEST(PtxEntriesTest, DeclarationAndDefinitionAreOne) {
  EXPECT_EQ(scanPtxEntries(".entry a();\n.entry a() { ret; }").size(), 1u);
}

TEST(PtxEntriesTest, WhoWaitsForWhatIsAheadIsDependent) {
  auto entries = scanPtxEntries(".entry a() { griddepcontrol.wait; ret; }\n"
                                ".entry b() { ret; }\n.entry c() {\n"
                                "griddepcontrol.launch_dependents; }");
  ASSERT_EQ(entries.size(), 3u);
  EXPECT_TRUE(entries[0].isDependent);
  EXPECT_FALSE(entries[1].isDependent);
  EXPECT_FALSE(entries[2].isDependent);
}

TEST(PtxEntriesTest, BrokenTextEndsTheScan) {
  for (const char *text :
       {"", ".entry", ".entry a(", ".entry a(.param", ".entry a(.param .b8 x[",
        "/* no end", "\"no end", "/*/", "// no newline"})
    EXPECT_LE(scanPtxEntries(text).size(), 1u) << text;
}

} // namespace
} // namespace kiln
