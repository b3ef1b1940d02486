// Hash: the published value of XXH3-128, and sensitivity to every byte.
#include "support/Hash.h"

#include <gtest/gtest.h>

using namespace kiln;

TEST(Hash, OfNothingIsThePublishedValue) {
  EXPECT_EQ(hashHex(""), "99aa06d3014798d86001c324468d497f");
}

TEST(Hash, DiffersInEveryByte) {
  std::string text(300, 'a');
  std::string before = hashHex(text);
  EXPECT_EQ(before.size(), 32u);
  for (char &c : text) {
    c = 'b';
    EXPECT_NE(hashHex(text), before);
    c = 'a';
  }
  EXPECT_EQ(hashHex(text), before);
}
