// TensorMapImage: what programs do to the bytes of a tensor map.
#include "sim/machine/memory/TensorMapImage.h"

#include <cstring>
#include <gtest/gtest.h>

namespace kiln::sim {

/// Every bit of the address and of the sizes is set somewhere.
static TensorMap someMap(std::uint64_t address, std::uint64_t dim) {
  TensorMap map;
  map.address = address;
  map.dims = {dim, dim, dim, dim, dim};
  map.strides_bytes = {dim * 32, dim * 64, dim * 128, dim * 256};
  map.box = {256, 255, 1, 2, 128};
  map.element_strides = {1, 2, 3, 8, 1};
  map.swizzle = Swizzle::b128;
  map.l2 = L2Promotion::b256;
  map.oob = OobFill::nan;
  return map;
}

// CUTLASS and Triton do so to maps of small tensors.
TEST(TensorMapImage, IsTheSameWithBit21OfWord1Cleared) {
  for (std::uint64_t address : {~std::uint64_t(15), std::uint64_t(1) << 21})
    for (std::uint64_t dim : {std::uint64_t(1), std::uint64_t(0xffffffff)}) {
      auto image = encode(someMap(address, dim));
      auto cleared = image;
      std::uint64_t word;
      std::memcpy(&word, cleared.data() + 8, 8);
      word &= ~(std::uint64_t(1) << 21);
      std::memcpy(cleared.data() + 8, &word, 8);
      EXPECT_EQ(cleared, image);
      auto map = decode(cleared.data());
      ASSERT_TRUE(map);
      EXPECT_EQ(map->address, address);
      EXPECT_EQ(map->dims, someMap(address, dim).dims);
      EXPECT_EQ(map->strides_bytes, someMap(address, dim).strides_bytes);
      EXPECT_EQ(map->box, someMap(address, dim).box);
      EXPECT_EQ(map->oob, OobFill::nan);
    }
}

} // namespace kiln::sim
