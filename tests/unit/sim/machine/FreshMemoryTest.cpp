// Tests of fresh memory: all bytes 0xff, and free until they are written.
#include "Sanitized.h"
#include "kiln/check/sim.h"
#include "sim/machine/memory/SpoiltPages.h"
#include "support/limits/Budget.h"

#include <algorithm>
#include <gtest/gtest.h>

namespace kiln::sim {
namespace {

TEST(FreshMemory, IsNaNFromTheFirstByteToTheLast) {
  for (std::size_t bytes : {std::size_t(1), std::size_t(4097),
                            std::size_t(1) << 20, (std::size_t(9) << 20) + 3}) {
    auto data = spoiltBytes(bytes);
    EXPECT_TRUE(std::all_of(data.get(), data.get() + bytes,
                            [](unsigned char byte) { return byte == 0xff; }))
        << bytes;
  }
}

TEST(FreshMemory, NobodySeesWhatAnotherBufferHolds) {
  constexpr std::size_t kBytes = std::size_t(8) << 20;
  auto one = spoiltBytes(kBytes), other = spoiltBytes(kBytes);
  std::fill_n(one.get(), kBytes, static_cast<unsigned char>(7));
  EXPECT_EQ(other[0], 0xff);
  EXPECT_EQ(other[kBytes / 2], 0xff);
  // Nor does one that comes later.
  one = nullptr;
  one = spoiltBytes(kBytes);
  EXPECT_EQ(one[kBytes / 2], 0xff);
}

TEST(FreshMemory, TakesNothingUntilItIsWritten) {
  SKIP_WHERE_SANITIZED("it keeps bytes of its own beside them");
  constexpr std::size_t kBytes = std::size_t(1) << 30;
  constexpr std::uint64_t kLittle = std::uint64_t(64) << 20;
  auto device = open_sim({});
  std::uint64_t before = residentBytes();
  Buffer buffer = device->allocate(kBytes);
  EXPECT_LT(residentBytes(), before + kLittle);
  std::uint32_t word = 5;
  device->copy_in(Buffer(buffer.address() + kBytes / 2, 4), &word, 4);
  device->copy_out(&word, Buffer(buffer.address() + kBytes / 2 + 4, 4), 4);
  EXPECT_EQ(word, 0xffffffff);
  device->copy_out(&word, Buffer(buffer.address() + kBytes / 2, 4), 4);
  EXPECT_EQ(word, 5u);
  EXPECT_LT(residentBytes(), before + kLittle);
}

} // namespace
} // namespace kiln::sim
