// Printable: what a terminal would obey is written out, the rest stays.
#include "kiln/base/text.h"

#include "kiln/run/device.h"
#include "kiln/base/error.h"

#include <gtest/gtest.h>

using namespace kiln;

TEST(Printable, LeavesTextAlone) {
  for (std::string text :
       {"", "plain text\n\twith tabs", "größer ≤ 日本語 🙂", "~ \\x1b"})
    EXPECT_EQ(printable(text), text);
}

TEST(Printable, WritesControlCharactersOut) {
  EXPECT_EQ(printable("\x1b[31mred\x1b[0m"), "\\x1b[31mred\\x1b[0m");
  EXPECT_EQ(printable("a\rb\a\b\x7f"), "a\\x0db\\x07\\x08\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  // CSI as one character of the second control set.
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m"),
            "\\u{9b}31m");
}

TEST(Printable, WritesOutWhatTurnsText) {
  EXPECT_EQ(printable("a\u202eb\u2066c\u200f"),
            "a\\u{202e}b\\u{2066}c\\u{200f}");
}

TEST(Printable, WritesOutWhatIsNotUtf8) {
  EXPECT_EQ(printable("\xff\x80"), "\\xff\\x80");
  EXPECT_EQ(printable("a\xc3"), "a\\xc3");                 // cut short
  EXPECT_EQ(printable("\xc3("), "\\xc3(");                 // not continued
  EXPECT_EQ(printable("\xc0\x9b"), "\\xc0\\x9b");          // longer than needed
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80"); // half of UTF-16
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
}

TEST(Printable, IsWhatErrorsAndFindingsShow) {
  UserError error({"a\x1b.ptx", 3}, "the label 'L\x1b[2J' is not defined");
  EXPECT_STREQ(error.what(),
               "a\\x1b.ptx:3: the label 'L\\x1b[2J' is not defined");
  EXPECT_EQ(error.message(), "the label 'L\x1b[2J' is not defined");
  Finding finding{.id = "trap", .message = "\x1b]0;title\a"};
  finding.where = {"k\r.cu", 7};
  EXPECT_EQ(finding.to_string(),
            "error trap at k\\x0d.cu:7: \\x1b]0;title\\x07");
}

TEST(Quote, LongTextIsCut) {
  EXPECT_EQ(quote("short"), "short");
  EXPECT_EQ(quote("abcdef", 3), "abc ... (6 bytes)");
  EXPECT_EQ(quote("ab\u20ac", 4), "ab ... (5 bytes)"); // the sign stays whole
  EXPECT_EQ(quote(std::string(9000, 'x')).size(),
            kQuoteLimitBytes + std::string(" ... (9000 bytes)").size());
  std::string error = UserError(std::string(1 << 20, 'x')).what();
  EXPECT_LT(error.size(), 70000u);
}
