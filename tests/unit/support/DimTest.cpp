// Dim: folding and evaluating give the same numbers, text parses back.
#include "kiln/base/dim.h"

#include "ErrorText.h"

#include <gmock/gmock.h>

using namespace kiln;
using testing::HasSubstr;

static std::int64_t withM(const Dim &dim, std::int64_t m) {
  return dim.evaluate([&](const std::string &) { return m; });
}

static const Dim kM = Dim::argument("m");

TEST(Dim, ConstantsFold) {
  EXPECT_EQ(Dim(3) + 4, Dim(7));
  EXPECT_EQ(Dim(3) - 4, Dim(-1));
  EXPECT_EQ(Dim(3) * 4, Dim(12));
  EXPECT_EQ(Dim(7) / 2, Dim(3));
  EXPECT_EQ(Dim(7) % 4, Dim(3));
  EXPECT_EQ(ceil_div(Dim(7), 2), Dim(4));
  EXPECT_EQ(min(Dim(7), 2), Dim(2));
  EXPECT_EQ(max(Dim(7), 2), Dim(7));
}

TEST(Dim, NeutralOperandsFold) {
  for (const Dim &same :
       {kM + 0, 0 + kM, kM - 0, kM * 1, 1 * kM, kM / 1, ceil_div(kM, 1)})
    EXPECT_EQ(same, kM) << same.to_string();
  EXPECT_NE(0 - kM, kM);
  EXPECT_NE(1 / kM, kM);
}

TEST(Dim, FoldingAndEvaluatingAgree) {
  for (int lhs : {-7, -1, 0, 1, 6, 7})
    for (int rhs : {-3, -1, 1, 2, 7})
      for (int op = static_cast<int>(Dim::Op::add);
           op <= static_cast<int>(Dim::Op::max); ++op) {
        auto kind = static_cast<Dim::Op>(op);
        EXPECT_EQ(withM(Dim::binary(kind, kM, rhs), lhs),
                  Dim::binary(kind, lhs, rhs).constant());
      }
}

TEST(Dim, DivisionRoundsDownAndCeilDivUp) {
  EXPECT_EQ((Dim(-7) / 2).constant(), -4);
  EXPECT_EQ((Dim(-7) % 2).constant(), 1);
  EXPECT_EQ((Dim(7) % -2).constant(), -1);
  EXPECT_EQ(ceil_div(Dim(-7), 2).constant(), -3);
  EXPECT_EQ(ceil_div(Dim(-7), -2).constant(), 4);
}

TEST(Dim, DivisorHoldsForEveryArgument) {
  Dim m = Dim::argument("m"), k = Dim::argument("k");
  EXPECT_EQ(Dim(24).divisor(), 24);
  EXPECT_EQ(Dim(0).divisor(), 0);
  EXPECT_EQ(m.divisor(), 1);
  EXPECT_EQ((m * 8).divisor(), 8);
  EXPECT_EQ((m * 8 * (k * 4)).divisor(), 32);
  EXPECT_EQ((m * 8 - 12).divisor(), 4);
  EXPECT_EQ(min(Dim(64), max(m * 16 - 32, 0)).divisor(), 16);
  EXPECT_EQ((m * 8 % 12).divisor(), 4);
  EXPECT_EQ((m * 8 / 2).divisor(), 1);
  EXPECT_EQ(ceil_div(m * 8, 2).divisor(), 1);
}

TEST(Dim, TextParsesBack) {
  Dim n = Dim::argument("n_2");
  for (const Dim &dim :
       {Dim(0), Dim(-12), Dim(INT64_MIN), Dim(INT64_MAX), kM,
        ceil_div(kM, 128) * min(n, Dim::argument("sms")),
        (kM + n) % 8 - max(kM / n, -3), Dim::argument("add") + 1})
    EXPECT_EQ(Dim::parse(dim.to_string()), dim) << dim.to_string();
  EXPECT_EQ(ceil_div(kM, 128).to_string(), "ceil_div(m, 128)");
  EXPECT_EQ(Dim::parse(" mul( m ,2 ) "), kM * 2);
}

TEST(Dim, EqualityIsOfExpressions) {
  EXPECT_EQ(kM + 1, Dim::argument("m") + 1);
  EXPECT_NE(kM + 1, kM + 2);
  EXPECT_NE(kM + 1, kM - 1);
  EXPECT_NE(kM, Dim::argument("n"));
}

TEST(Dim, RefusesWhatIsNoDimension) {
  auto parseError = [](const char *text) {
    return errorText([&] { Dim::parse(text); });
  };
  EXPECT_EQ(parseError(""),
            "\"\" is not a valid dimension: an integer, a name or an "
            "operation is wanted at character 1");
  EXPECT_EQ(
      parseError("m n"),
      "\"m n\" is not a valid dimension: the end is wanted at character 3");
  EXPECT_EQ(
      parseError("add(m; 1)"),
      "\"add(m; 1)\" is not a valid dimension: ',' is wanted at character 6");
  EXPECT_EQ(
      parseError("add(m, 1"),
      "\"add(m, 1\" is not a valid dimension: ')' is wanted at character 9");
  EXPECT_EQ(
      parseError("pow(m, 2)"),
      "\"pow(m, 2)\" is not a valid dimension: one of add, sub, mul, div, "
      "ceil_div, mod, min, max is wanted at character 1");
  EXPECT_THAT(parseError("9223372036854775808"),
              HasSubstr("an integer of 64 bits is wanted at character 1"));
  EXPECT_THAT(parseError("-"), HasSubstr("an integer of 64 bits"));
}

TEST(Dim, RefusesNamesThatWouldNotParse) {
  for (const char *name : {"", "2m", "m n", "a(b"})
    EXPECT_EQ(errorText([&] { Dim::argument(name); }),
              "a dimension cannot be called \"" + std::string(name) +
                  "\"; a name is letters, digits and _, and begins with no "
                  "digit");
}

TEST(Dim, ConstantOfAnExpressionNamesIt) {
  EXPECT_EQ(errorText([] { (kM + 1).constant(); }),
            "add(m, 1) is known only at launch; a constant is needed here");
}

TEST(Dim, DivisionByZeroNamesTheExpression) {
  EXPECT_EQ(errorText([] { Dim(8) / 0; }),
            "div(8, 0) divides 8 by zero; the divisor must not be 0");
  EXPECT_EQ(errorText([] { kM % 0; }),
            "mod(m, 0) divides by zero; the divisor must not be 0");
  EXPECT_EQ(errorText([] { withM(ceil_div(64, kM), 0); }),
            "ceil_div(64, m) divides 64 by zero; the divisor must not be 0");
}

TEST(Dim, OverflowIsRefused) {
  EXPECT_EQ(errorText([] { withM(kM * 4, INT64_MAX / 2); }),
            "mul(m, 4) does not fit 64 bits (4611686018427387903 and 4); "
            "dimensions must stay between -2^63 and 2^63 - 1");
  EXPECT_THAT(errorText([] { Dim(INT64_MAX) + 1; }), HasSubstr("does not fit"));
  EXPECT_THAT(errorText([] { Dim(INT64_MIN) - 1; }), HasSubstr("does not fit"));
  EXPECT_THAT(errorText([] { Dim(INT64_MIN) / -1; }),
              HasSubstr("does not fit"));
  EXPECT_EQ(Dim(INT64_MIN) % -1, Dim(0));
}

TEST(Dim, NestingHasALimit) {
  auto grow = [](int operations) {
    Dim dim = kM;
    for (int i = 0; i < operations; ++i)
      dim = dim + 1;
    return dim;
  };
  EXPECT_EQ(Dim::parse(grow(200).to_string()), grow(200));
  EXPECT_EQ(errorText([&] { grow(201); }),
            "a dimension nests more than 200 operations; compute part of it "
            "before the launch and pass it as an argument");
  std::string deep;
  for (int i = 0; i < 100000; ++i)
    deep += "add(";
  EXPECT_EQ(errorText([&] { Dim::parse(deep); }),
            "a dimension nests more than 200 operations");
}

TEST(Dim, LeavesAreNoOperations) {
  EXPECT_EQ(
      errorText<InternalError>([] { Dim::binary(Dim::Op::constant, 1, 2); }),
      "a Dim was made of two operands and no operation");
}
