// Nesting: texts that would exhaust the stack of their parser are refused.
#include "kiln/text.h"

#include "ErrorText.h"
#include "kiln/kernel.h"

#include <fmt/format.h>

using namespace kiln;

static std::string repeated(std::string_view text, int count) {
  std::string all;
  for (int i = 0; i < count; ++i)
    all += text;
  return all;
}

/// The place and the message of the refusal; empty: there is none.
static std::string refusal(const std::string &text, TextFormat format) {
  try {
    check_nesting(text, format, "text");
  } catch (const UserError &error) {
    return error.what();
  }
  return "";
}

TEST(Nesting, JsonHasALimit) {
  EXPECT_EQ(refusal(repeated("[", 64), TextFormat::json), "");
  EXPECT_EQ(refusal("\n\n" + repeated("[", 65), TextFormat::json),
            "text:3: brackets are nested 65 levels deep here; Kiln reads at "
            "most 64 levels");
  EXPECT_NE(refusal(repeated("{\"a\":", 80000), TextFormat::json), "");
}

TEST(Nesting, WhatIsClosedIsNotCounted) {
  EXPECT_EQ(refusal(repeated("{\"a\": []}, ", 1000), TextFormat::json), "");
  EXPECT_EQ(refusal(repeated("} ] ", 1000), TextFormat::json), "");
}

TEST(Nesting, StringsAndCommentsAreNotCounted) {
  std::string deep = repeated("[", 1000);
  EXPECT_EQ(refusal("\"" + deep + "\\\"" + deep + "\"", TextFormat::json), "");
  EXPECT_EQ(refusal("// " + deep + "\n()", TextFormat::mlir), "");
  // JSON has no comments.
  EXPECT_NE(refusal("// " + deep, TextFormat::json), "");
  // A string that does not end hides nothing that a parser would read.
  EXPECT_EQ(refusal("\"\\", TextFormat::json), "");
  EXPECT_EQ(refusal("// no line break", TextFormat::mlir), "");
}

TEST(Nesting, MlirCountsEveryBracket) {
  for (std::string open : {"tuple<", "[", "{a = ", "(", "module {\n",
                           "\"a\"() ({", "loc(callsite("}) {
    EXPECT_EQ(refusal(repeated(open, 40), TextFormat::mlir), "") << open;
    EXPECT_NE(refusal(repeated(open, 80000), TextFormat::mlir), "") << open;
  }
  EXPECT_EQ(refusal(repeated("tuple<", 129), TextFormat::mlir),
            "text:1: brackets are nested 129 levels deep here; Kiln reads at "
            "most 128 levels");
}

TEST(Nesting, ArrowsAndComparisonsCloseNothing) {
  EXPECT_NE(refusal(repeated("(() -> ", 200), TextFormat::mlir), "");
  EXPECT_NE(refusal(repeated("tuple< >= ", 200), TextFormat::mlir), "");
  EXPECT_NE(refusal(repeated("( > ", 200), TextFormat::mlir), "");
  EXPECT_EQ(refusal(repeated("(i32) -> (i32)\n", 200), TextFormat::mlir), "");
}

// MLIR's parser calls itself for each operator of an affine expression.
TEST(Nesting, LongAffineExpressionsAreRefused) {
  for (std::string op : {" + ", " - ", " * ", " mod ", " floordiv "}) {
    std::string sum = "affine_map<(d0) -> (d0" + repeated(op + "d0", 80000);
    EXPECT_EQ(refusal(sum, TextFormat::mlir),
              "text:1: an expression has more than 128 operators; Kiln reads "
              "128 of them between two brackets")
        << op;
  }
  EXPECT_NE(refusal("(" + repeated("(1) + ", 80000), TextFormat::mlir), "");
  EXPECT_EQ(refusal("[" + repeated("-1, ", 80000) + "]", TextFormat::mlir), "");
  EXPECT_EQ(refusal(repeated("%0 = arith.constant -1 : i32\n", 80000),
                    TextFormat::mlir),
            "");
}

TEST(Nesting, SavedKernelsAreLookedAtFirst) {
  std::string deep = "{\"kiln_kernel\":" + repeated("{\"a\":", 80000) + "1" +
                     repeated("}", 80001);
  EXPECT_EQ(errorText([&] { Kernel::deserialize(deep, "k.kiln"); }),
            "brackets are nested 65 levels deep here; Kiln reads at most 64 "
            "levels");
}
