// Entries and PtxText: functions are found in code and nowhere else.
#include "ptx/Entries.h"

#include "support/text/PtxText.h"

#include <gmock/gmock.h>

namespace kiln {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

static constexpr std::string_view kModule = R"(.version 8.4
.target sm_90a
// .entry in_a_comment() { }
/* .entry in_another() {
} */
.file 1 ".entry in_a_string() { }"
.global .align 4 .b32 table[2] = {1, 2};
.extern .func (.param .b32 r) declared (.param .b32 a);
.func (.reg .f32 %o) square (.reg .f32 %i)
{ mul.f32 %o, %i, %i; ret; }
.visible .entry first(
  .param .u64 p
)
.maxntid 384, 1, 1
{
  { .reg .b32 %r; } // }
  ret;
}
.entry _Z6second$x(){ret;}
.weak .entry
  third() { ret; })";

TEST(Entries, areFoundInOrder) {
  EXPECT_THAT(entryNames(kModule),
              ElementsAre("first", "_Z6second$x", "third"));
}

TEST(Entries, knowTheirRange) {
  std::vector<PtxFunction> functions = findFunctions(kModule);
  ASSERT_EQ(functions.size(), 4u);
  EXPECT_EQ(functions[0].name, "square");
  EXPECT_FALSE(functions[0].isEntry);
  EXPECT_TRUE(functions[1].isEntry);
  EXPECT_EQ(functions[1].firstLine, 11);
  EXPECT_EQ(functions[1].lastLine, 18);
  EXPECT_TRUE(functions[1].hasLine(18));
  EXPECT_FALSE(functions[1].hasLine(19));
  EXPECT_EQ(
      kModule.substr(functions[2].begin, functions[2].end - functions[2].begin),
      ".entry _Z6second$x(){ret;}");
}

TEST(Entries, ofBrokenTextDoNotRunAway) {
  EXPECT_THAT(entryNames(""), IsEmpty());
  EXPECT_THAT(entryNames(".entry"), IsEmpty());
  EXPECT_THAT(entryNames(".entry a("), IsEmpty());
  EXPECT_THAT(entryNames(".entry a() { ret;"), ElementsAre("a"));
  EXPECT_THAT(entryNames(".entry a() { ret; /* never closed }"),
              ElementsAre("a"));
}

TEST(PtxText, keepsEveryPlace) {
  std::string_view text = "a/b // c\n\"d\ne \"/*\" /* f\ng */ h";
  std::string code = blankCommentsAndStrings(text);
  EXPECT_EQ(code, "a/b     \n  \ne          \n     h");
  EXPECT_EQ(code.size(), text.size());
}

TEST(PtxText, findsWholeWords) {
  EXPECT_EQ(findWord(".local .loc 1", ".loc"), 7u);
  EXPECT_EQ(findWord("xsetmaxnreg; setmaxnreg.inc", "setmaxnreg"), 13u);
  EXPECT_EQ(findWord("@%p setmaxnreg_x", "setmaxnreg"), std::string::npos);
}

} // namespace kiln
