// Tests of Lazy.h and of memory that is recycled.
#include "sim/program/Lazy.h"
#include "support/limits/Recycled.h"

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

namespace kiln::sim {
namespace {

TEST(Lazy, AnEmptyQueueIsLikeAnEmptyDeque) {
  Queue<std::unique_ptr<int>> queue;
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.size(), 0u);
  EXPECT_EQ(queue.begin(), queue.end());
  queue.erase(queue.begin(), queue.end());
  queue.eraseIf([](const auto &) { return true; });
  queue.clear();
  EXPECT_TRUE(queue.empty());
}

TEST(Lazy, AQueueKeepsTheOrder) {
  Queue<int> queue;
  for (int i = 0; i < 100; ++i)
    queue.push_back(i);
  queue.pop_front();
  queue.eraseIf([](int i) { return i % 2 == 0; });
  queue.erase(queue.begin(), queue.begin() + 2);
  EXPECT_EQ(queue.size(), 48u);
  EXPECT_EQ(queue.front(), 5);
  EXPECT_EQ(queue.back(), 99);
  EXPECT_EQ(queue[1], 7);
  queue.clear();
  EXPECT_EQ(queue.begin(), queue.end());
}

TEST(Lazy, LanesAreMadeWhenTheFirstIsAskedFor) {
  PerLane<std::vector<int>> lanes;
  EXPECT_FALSE(lanes.isUsed());
  lanes[31].push_back(4);
  EXPECT_TRUE(lanes.isUsed());
  EXPECT_TRUE(lanes[0].empty());
  EXPECT_EQ(lanes[31], std::vector<int>{4});
}

TEST(Recycled, EveryBlockIsLargeEnoughAndNobodyElses) {
  std::vector<std::pair<void *, std::size_t>> blocks;
  for (int round = 0; round < 2; ++round) {
    for (std::size_t bytes = 1; bytes < (std::size_t(5) << 20);
         bytes += bytes / 3 + 1) {
      void *block = takeRecycled(bytes);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % 64, 0u);
      std::memset(block, static_cast<int>(blocks.size()), bytes);
      blocks.emplace_back(block, bytes);
    }
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      auto *first = static_cast<unsigned char *>(blocks[i].first);
      EXPECT_EQ(first[0], static_cast<unsigned char>(i));
      EXPECT_EQ(first[blocks[i].second - 1], static_cast<unsigned char>(i));
      giveRecycled(blocks[i].first, blocks[i].second);
    }
    blocks.clear();
  }
  giveRecycled(nullptr, 100);
}

} // namespace
} // namespace kiln::sim
