// HostMemory: shares are counted, refused and given back.
#include "Sanitized.h"
#include "kiln/base/error.h"
#include "kiln/run/host_memory.h"

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
  std::uint64_t limit = HostMemory::limit_bytes();
  ASSERT_GT(limit, 1u << 20);
  HostMemory share;
  for (std::uint64_t bytes : {limit + 1, ~std::uint64_t(0)})
    EXPECT_THAT(
        refusal(share, bytes),
        testing::StartsWith(fmt::format(
            "not enough memory for a test, which needs {} bytes: ", bytes)));
}

TEST(HostMemory, BytesThatCannotBeHadAreRefusedByName) {
  SKIP_WHERE_SANITIZED("it asks for more memory than there is");
  EXPECT_EQ(host_bytes("a test", 3, std::byte{7}),
            std::vector<std::byte>(3, std::byte{7}));
  for (std::size_t bytes : {~std::size_t(0), std::size_t(1) << 60})
    try {
      host_bytes("a test", bytes);
      ADD_FAILURE() << "there was enough";
    } catch (const RuntimeError &error) {
      EXPECT_THAT(error.what(), testing::StartsWith(
                                    fmt::format("not enough memory for a "
                                                "test, which needs {} bytes: ",
                                                bytes)));
    }
}

TEST(HostMemory, SharesAreCountedTogetherAndGivenBack) {
  std::uint64_t half = HostMemory::limit_bytes() / 2 + 1;
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
