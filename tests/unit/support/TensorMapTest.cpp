// TensorMap: each rule of the hardware, broken alone.
#include "kiln/language/memory/tensor_map.h"

#include "ErrorText.h"

using namespace kiln;

/// A map that breaks no rule: 256 x 1024 of f16, boxes of 64 x 64.
static TensorMap validMap() {
  return {.type = Type::f16,
          .address = 0x7f0000000100,
          .dims = {1024, 256},
          .strides_bytes = {2048},
          .box = {64, 64},
          .element_strides = {1, 1},
          .swizzle = Swizzle::b128};
}

template <typename Change> static std::string errorAfter(Change change) {
  TensorMap map = validMap();
  change(map);
  return errorText([&] { check(map, "map a"); });
}

TEST(TensorMap, AcceptsWhatTheHardwareDoes) {
  EXPECT_NO_THROW(check(validMap(), "map a"));
  TensorMap map = validMap();
  map.dims[0] = std::uint64_t{1} << 32;
  map.strides_bytes[0] = (std::uint64_t{1} << 40) - 16;
  map.box = {256, 256};
  map.swizzle = Swizzle::none;
  map.element_strides = {1, 8};
  map.oob = OobFill::nan;
  EXPECT_NO_THROW(check(map, "map a"));
}

TEST(TensorMap, ElementsBelowAByte) {
  auto ofFourBits = [](TensorMap &m) {
    m.type = Type::e2m1;
    m.box[0] = 256;
  };
  TensorMap map = validMap();
  ofFourBits(map);
  EXPECT_NO_THROW(check(map, "map a"));
  EXPECT_EQ(errorAfter([&](TensorMap &m) {
              ofFourBits(m);
              m.dims[0] = 1023;
            }),
            "map a has rows of 1023 elements of e2m1; the number must be even");
  EXPECT_EQ(errorAfter([&](TensorMap &m) {
              ofFourBits(m);
              m.swizzle = Swizzle::b64;
            }),
            "map a has a box 256 elements of e2m1 wide, 128 bytes; with a "
            "swizzle of 64 bytes at most 128 elements are possible");
  EXPECT_EQ(errorAfter([&](TensorMap &m) {
              ofFourBits(m);
              m.box[0] = 48;
            }),
            "map a has a box 48 elements of e2m1 wide, 24 bytes; the width "
            "must be a multiple of 16 bytes, 32 elements");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.type = Type::e3m2; }),
            "map a is of e3m2; of the elements below 8 bits maps have e2m1, "
            "and others are copied as u8");
}

TEST(TensorMap, Rank) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.dims = {}; }),
            "map a has rank 0; a tensor map has rank 1 to 5");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.dims.assign(6, 16); }),
            "map a has rank 6; a tensor map has rank 1 to 5");
}

TEST(TensorMap, VectorsAgreeOnTheRank) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.strides_bytes = {16, 16}; }),
            "map a has 2 strides for rank 2; it needs 1, one for each "
            "dimension but the innermost");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.box = {64}; }),
            "map a has a box of rank 1 for a tensor of rank 2; they must be "
            "the same");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.element_strides = {}; }),
            "map a has 0 element strides for rank 2; it needs one for each "
            "dimension");
}

TEST(TensorMap, Dimensions) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.dims[1] = 0; }),
            "map a has 0 elements in dimension 1; 1 to 2^32 are possible");
  EXPECT_EQ(
      errorAfter([](TensorMap &m) { m.dims[0] = (1ull << 32) + 1; }),
      "map a has 4294967297 elements in dimension 0; 1 to 2^32 are possible");
}

TEST(TensorMap, Box) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.box[1] = 257; }),
            "map a has a box of 257 elements in dimension 1; 1 to 256 are "
            "possible");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.box[0] = 0; }),
            "map a has a box of 0 elements in dimension 0; 1 to 256 are "
            "possible");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.box[0] = 20; }),
            "map a has a box 20 elements of f16 wide, 40 bytes; the width must "
            "be a multiple of 16 bytes, 8 elements");
}

TEST(TensorMap, BoxIsNoWiderThanTheSwizzle) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.box[0] = 128; }),
            "map a has a box 128 elements of f16 wide, 256 bytes; with a "
            "swizzle of 128 bytes at most 64 elements are possible");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.swizzle = Swizzle::b32; }),
            "map a has a box 64 elements of f16 wide, 128 bytes; with a "
            "swizzle of 32 bytes at most 16 elements are possible");
}

TEST(TensorMap, ElementStrides) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.element_strides[1] = 9; }),
            "map a has element stride 9 in dimension 1; 1 to 8 are possible");
}

TEST(TensorMap, Alignment) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.address = 0x1008; }),
            "map a begins at address 0x1008; it must be a multiple of 16 "
            "bytes");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.strides_bytes[0] = 2050; }),
            "map a has a stride of 2050 bytes in dimension 1; it must be a "
            "multiple of 16 bytes: pad the rows to 2064");
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.strides_bytes[0] = 1ull << 40; }),
            "map a has a stride of 1099511627776 bytes in dimension 1; it must "
            "be less than 2^40");
}

TEST(TensorMap, NanFillNeedsAFloat) {
  auto fillNan = [](Type type) {
    return errorAfter([&](TensorMap &m) {
      m.type = type;
      m.box[0] = 16;
      m.oob = OobFill::nan;
    });
  };
  EXPECT_EQ(fillNan(Type::i32),
            "map a fills with NaN outside a tensor of i32; NaN is possible for "
            "f16, bf16, tf32, f32 and f64, zeros for every type");
  EXPECT_EQ(fillNan(Type::e4m3).substr(0, 50),
            "map a fills with NaN outside a tensor of e4m3; NaN");
}

TEST(TensorMap, Interleaved) {
  EXPECT_EQ(errorAfter([](TensorMap &m) { m.interleave = Interleave::b16; }),
            "map a is interleaved by 16 bytes and has rank 2; an interleaved "
            "tensor has rank 3 to 5");
  auto interleave32 = [](TensorMap &m) {
    m.interleave = Interleave::b32;
    m.dims = {16, 64, 64};
    m.strides_bytes = {64, 4096};
    m.box = {16, 8, 8};
    m.element_strides = {1, 1, 1};
  };
  EXPECT_EQ(errorAfter(interleave32),
            "map a is interleaved by 32 bytes with a swizzle of 128 bytes; it "
            "needs a swizzle of 32 bytes");
  EXPECT_EQ(errorAfter([&](TensorMap &m) {
              interleave32(m);
              m.address = 0x1010;
            }),
            "map a begins at address 0x1010; it must be a multiple of 32 "
            "bytes");
}
