// HostMemory: shares are counted, refused and given back.
#include "support/HostMemory.h"
#include "kiln/error.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace kiln {

static std::string refusal(HostMemory &share, std::uint64_t bytes) {
  try {
    share.take(bytes, "a test");
  } catch (const RuntimeError &error) {
    return error.what();
  }
  return "";
}

TEST(HostMemory, MoreThanThereIsIsRefusedByName) {
  std::uint64_t limit = HostMemory::limitBytes();
  ASSERT_GT(limit, 1u << 20);
  HostMemory share;
  for (std::uint64_t bytes : {limit + 1, ~std::uint64_t(0)})
    EXPECT_THAT(
        refusal(share, bytes),
        testing::StartsWith(fmt::format(
            "not enough memory for a test, which needs {} bytes: ", bytes)));
}

TEST(HostMemory, SharesAreCountedTogetherAndGivenBack) {
  std::uint64_t half = HostMemory::limitBytes() / 2 + 1;
  HostMemory first, second;
  EXPECT_EQ(refusal(first, half), "");
  EXPECT_THAT(refusal(second, half),
              testing::HasSubstr(fmt::format("{} are taken", half)));
  HostMemory moved = std::move(first);
  EXPECT_NE(refusal(second, half), "");
  moved = HostMemory();
  EXPECT_EQ(refusal(second, half), "");
}

} // namespace kiln
