// Nesting: texts that would exhaust the stack of their parser are refused.
#include "kiln/base/text.h"

#include "ErrorText.h"
#include "kiln/run/kernel.h"

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

/// Aliases `#a1 = ...`, each of which uses the one before.
static std::string chain(int count, const char *next) {
  std::string text = "#a0 = [1]\n";
  for (int i = 1; i < count; ++i)
    text += fmt::format("#a{}", i) +
            fmt::format(fmt::runtime(next), fmt::arg("a", i - 1));
  return text;
}

TEST(Nesting, AliasesStandForTheirBrackets) {
  const char *next = " = [#a{a}]\n";
  EXPECT_EQ(refusal(chain(128, next), TextFormat::mlir), "");
  EXPECT_EQ(refusal(chain(129, next), TextFormat::mlir),
            "text:129: brackets are nested 129 levels deep here, 128 of them "
            "in #a127; Kiln reads at most 128 levels");
  EXPECT_NE(refusal(chain(128, next) + "m {x = #a127}", TextFormat::mlir), "");
  // However the lines are broken.
  for (const char *other :
       {"\n= [#a{a}]\n", " // =\n = // 1\n [\n #a{a}]\n", " = loc\n(#a{a})\n",
        " = () ->\n tuple<#a{a}>\n", " = 1 :\n tuple<#a{a}>\n"})
    EXPECT_NE(refusal(chain(200, other), TextFormat::mlir), "") << other;
  // A definition that follows another one is not part of it.
  EXPECT_EQ(refusal(chain(2000, " = [#a0]\n"), TextFormat::mlir), "");
}

TEST(Nesting, AliasesStandForTheirLength) {
  EXPECT_EQ(refusal(chain(60, " = [#a{a}, #a{a}]\n"), TextFormat::mlir),
            "text:20: written out, the aliases that are used up to here have "
            "more than 16777216 characters; Kiln reads at most 16777216");
  // What follows the last definition is not part of it.
  std::string uses = "#l = loc(\"a\":1:1)\nmodule {\n";
  uses += repeated("f() loc(#l)\n", 100000) + "}\n";
  uses += "#m = loc(callsite(#l at #l))\n" + repeated("f() loc(#m)\n", 1000);
  EXPECT_EQ(refusal(uses, TextFormat::mlir), "");
}

TEST(Nesting, SavedKernelsAreLookedAtFirst) {
  std::string deep = "{\"kiln_kernel\":" + repeated("{\"a\":", 80000) + "1" +
                     repeated("}", 80001);
  EXPECT_EQ(errorText([&] { Kernel::deserialize(deep, "k.kiln"); }),
            "brackets are nested 65 levels deep here; Kiln reads at most 64 "
            "levels");
}
