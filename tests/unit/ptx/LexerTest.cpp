// Lexer: what is one token, and what is none.
#include "ptx/Lexer.h"

#include "kiln/base/error.h"

#include <gmock/gmock.h>

namespace kiln::ptx {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

static std::vector<std::string> texts(std::string_view text) {
  TokenStream stream(text, "t.ptx");
  std::vector<std::string> found;
  while (stream.peek().kind != Token::Kind::end)
    found.emplace_back(stream.next().text);
  return found;
}

static std::string errorOf(std::string_view text) {
  try {
    TokenStream stream(text, "t.ptx");
  } catch (const UserError &error) {
    return error.what();
  }
  return "no error";
}

TEST(LexerTest, ModifiersKeepTheirColonsAndDigits) {
  EXPECT_THAT(texts("cp.2d.shared::cta.mbarrier::complete_tx::bytes"),
              ElementsAre("cp", ".2d", ".shared::cta",
                          ".mbarrier::complete_tx::bytes"));
}

TEST(LexerTest, NamesStartWithPercentAndDollar) {
  EXPECT_THAT(texts("%tid.x $L__BB0_1: _|%p"),
              ElementsAre("%tid", ".x", "$L__BB0_1", ":", "_", "|", "%p"));
}

TEST(LexerTest, PercentAfterAValueIsAnOperator) {
  EXPECT_THAT(texts("7%3 (7)%3 , %3"),
              ElementsAre("7", "%", "3", "(", "7", ")", "%", "3", ",", "%3"));
}

TEST(LexerTest, Numbers) {
  EXPECT_THAT(texts("12U 0x1F 0b11 8.0 1.5e-3 0f3F800000 1-2"),
              ElementsAre("12U", "0x1F", "0b11", "8.0", "1.5e-3", "0f3F800000",
                          "1", "-", "2"));
  // A point needs digits on one side; behind a name it begins a modifier.
  EXPECT_THAT(texts("mov.f32 %f1, 2.; add.2d -.5, 1.e3"),
              ElementsAre("mov", ".f32", "%f1", ",", "2.", ";", "add", ".2d",
                          "-", ".5", ",", "1.e3"));
  for (const char *bad : {"0f3F80", "0x", "12abc", "0d00", "0b2"})
    EXPECT_THAT(errorOf(bad), HasSubstr(std::string("t.ptx:1: '") + bad +
                                        "' is not a valid number"));
}

TEST(LexerTest, CommentsCountLines) {
  TokenStream stream("// a ; b\n/* c\n\n*/ ret", "t.ptx");
  EXPECT_EQ(stream.peek().text, "ret");
  EXPECT_EQ(stream.peek().line, 4);
}

TEST(LexerTest, TextOnOneLine) {
  TokenStream stream("add.s32\t%r1,\n  %r2; // x", "t.ptx");
  while (stream.peek().kind != Token::Kind::end)
    stream.next();
  EXPECT_EQ(stream.textSince(0), "add.s32 %r1, %r2;");
}

TEST(LexerTest, WhatDoesNotEnd) {
  EXPECT_EQ(errorOf("a\n/* b\n"),
            "t.ptx:2: the comment that begins here has no '*/': /* b");
  EXPECT_EQ(errorOf(".file 1 \"x\n\""),
            "t.ptx:1: the string that begins here has no closing '\"': "
            ".file 1 \"x");
  EXPECT_THAT(errorOf("\"a\\"), HasSubstr("no closing"));
}

TEST(LexerTest, WhatIsNoCharacter) {
  EXPECT_THAT(errorOf("a # b"), HasSubstr("PTX has no character '#': a # b"));
  EXPECT_THAT(errorOf("\x01"), HasSubstr("PTX has no character '\\x01'"));
}

TEST(LexerTest, LongLinesAreCut) {
  EXPECT_LT(errorOf(std::string(10000, ',') + "#").size(), 300U);
}

} // namespace kiln::ptx
