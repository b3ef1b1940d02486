// Types: rounding is checked over all patterns of the small floats, and at the
// halfway points between neighbours, which is where rounding goes wrong.
#include "kiln/base/types.h"

#include "ErrorText.h"

#include <cmath>
#include <gmock/gmock.h>
#include <limits>

using namespace kiln;

static constexpr double kInfinity = std::numeric_limits<double>::infinity();
static constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
static constexpr Type kAllTypes[] = {
    Type::i1,   Type::i8,   Type::i16,   Type::i32,   Type::i64,  Type::u8,
    Type::u16,  Type::u32,  Type::u64,   Type::index, Type::f16,  Type::bf16,
    Type::tf32, Type::f32,  Type::f64,   Type::e4m3,  Type::e5m2, Type::e2m1,
    Type::e2m3, Type::e3m2, Type::ue8m0, Type::ue4m3};

TEST(Types, NamesParseBack) {
  for (Type type : kAllTypes)
    EXPECT_EQ(parse_type(name(type)), type);
  EXPECT_EQ(name(Type::bf16), "bf16");
}

TEST(Types, UnknownNameListsTheNames) {
  EXPECT_EQ(parse_type("s8"), Type::i8);
  EXPECT_EQ(parse_type("s64"), Type::i64);
  EXPECT_NE(errorText([] { parse_type("s1"); }), "");
  EXPECT_EQ(errorText([] { parse_type("half"); }),
            "there is no type \"half\"; the types are i1, i8, i16, i32, i64, "
            "u8, u16, u32, u64, index, f16, bf16, tf32, f32, f64, e4m3, e5m2, "
            "e2m1, e2m3, e3m2, ue8m0, ue4m3");
}

TEST(Types, NumberOutsideTheEnumIsADefect) {
  EXPECT_EQ(errorText<InternalError>([] { name(static_cast<Type>(99)); }),
            "there is no type number 99");
}

TEST(Types, SizesAndFamilies) {
  EXPECT_EQ(size_bits(i1), 1);
  EXPECT_EQ(size_bytes(i1), 1);
  EXPECT_EQ(size_bytes(tf32), 4);
  EXPECT_EQ(size_bytes(kiln::Type::index), 8);
  EXPECT_EQ(size_bytes(e4m3), 1);
  EXPECT_TRUE(is_float(e5m2));
  EXPECT_FALSE(is_float(i1));
  EXPECT_TRUE(is_signed_integer(i8));
  EXPECT_FALSE(is_signed_integer(i1));
  EXPECT_TRUE(is_unsigned_integer(kiln::Type::index));
  EXPECT_FALSE(is_unsigned_integer(i64));
}

class SmallFloat : public testing::TestWithParam<Type> {};

TEST_P(SmallFloat, EveryPatternSurvives) {
  Type type = GetParam();
  std::uint64_t count = std::uint64_t{1} << size_bits(type);
  for (std::uint64_t bits = 0; bits < count; ++bits) {
    double value = from_bits(type, bits);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(from_bits(type, to_bits(type, value)))) << bits;
      continue;
    }
    if (std::isinf(value) && size_bytes(type) == 1)
      continue; // f8 saturates, so that infinity becomes the largest number
    ASSERT_EQ(to_bits(type, value), bits) << value;
  }
}

// Between neighbours a and b: the middle goes to the even one, what is a
// little off the middle to the nearer one.
TEST_P(SmallFloat, HalfwayGoesToEven) {
  Type type = GetParam();
  for (std::uint64_t bits = 0;; ++bits) {
    double low = from_bits(type, bits), high = from_bits(type, bits + 1);
    if (!std::isfinite(high))
      break;
    double middle = (low + high) / 2;
    std::uint64_t even = bits % 2 == 0 ? bits : bits + 1;
    std::uint64_t sign = std::uint64_t{1} << (size_bits(type) - 1);
    ASSERT_EQ(to_bits(type, middle), even) << middle;
    ASSERT_EQ(to_bits(type, -middle), even | sign) << middle;
    ASSERT_EQ(to_bits(type, std::nextafter(middle, 0)), bits) << middle;
    ASSERT_EQ(to_bits(type, std::nextafter(middle, kInfinity)), bits + 1);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, SmallFloat,
                         testing::Values(f16, bf16, e4m3, e5m2),
                         [](const auto &info) {
                           return std::string(name(info.param));
                         });

// Every pattern is a number; what is too large becomes the largest.
TEST(Types, NarrowFloats) {
  for (auto [type, largest, one] :
       {std::tuple{e2m1, 6.0, 2u}, {e2m3, 7.5, 8u}, {e3m2, 28.0, 12u}}) {
    EXPECT_TRUE(is_subbyte(type));
    for (std::uint64_t bits = 0; bits < 1u << size_bits(type); ++bits)
      EXPECT_EQ(to_bits(type, from_bits(type, bits)), bits) << name(type);
    EXPECT_EQ(from_bits(type, to_bits(type, 1e9)), largest);
    EXPECT_EQ(to_bits(type, 1.0), one);
  }
  EXPECT_EQ(to_bits(ue8m0, 1.0), 127u);
  EXPECT_EQ(to_bits(ue8m0, 1.49), 127u);
  EXPECT_EQ(to_bits(ue8m0, 1.5), 128u);
  EXPECT_EQ(to_bits(ue8m0, -1.0), 0u);
  EXPECT_EQ(to_bits(ue8m0, kInfinity), 254u);
  EXPECT_EQ(to_bits(ue8m0, kNan), 255u);
  EXPECT_EQ(from_bits(ue8m0, 0), std::ldexp(1.0, -127));
  EXPECT_TRUE(std::isnan(from_bits(ue8m0, 255)));
  EXPECT_EQ(to_bits(ue4m3, 448.0), 0x7eu);
  EXPECT_EQ(to_bits(ue4m3, -2.0), 0u);
  EXPECT_EQ(from_bits(ue4m3, 0x38), 1.0);
}

TEST(Types, ElementsInMemory) {
  EXPECT_EQ(bytes_of(e2m1, 5), 3);
  EXPECT_EQ(bytes_of(e3m2, 17), 32);
  EXPECT_EQ(bytes_of(f16, 5), 10);
  EXPECT_EQ(elements_in(e2m1, 16), 32);
  EXPECT_EQ(elements_in(e2m3, 16), 16);
  EXPECT_EQ(elements_in(f32, 16), 4);
  for (Type type : {e2m1, e2m3, e3m2, e4m3, f16, f32}) {
    std::vector<std::uint8_t> bytes(bytes_of(type, 40), 0xaa);
    std::uint64_t mask = (std::uint64_t{1} << size_bits(type)) - 1;
    for (int i = 0; i < 40; ++i)
      store_bits(type, bytes.data(), i, i * 0x9e3779b9u);
    for (int i = 0; i < 40; ++i)
      EXPECT_EQ(load_bits(type, bytes.data(), i), i * 0x9e3779b9u & mask);
  }
  // Two to a byte, and 12 bytes of 16.
  std::vector<std::uint8_t> pair(1), group(16, 0xaa);
  store_bits(e2m1, pair.data(), 0, 3);
  store_bits(e2m1, pair.data(), 1, 5);
  EXPECT_EQ(pair[0], 0x53);
  for (int i = 0; i < 16; ++i)
    store_bits(e2m3, group.data(), i, 63);
  EXPECT_EQ(group[11], 0xff);
  EXPECT_EQ(group[12], 0xaa);
}

TEST(Types, KnownPatterns) {
  EXPECT_EQ(to_bits(f16, 1.0), 0x3c00u);
  EXPECT_EQ(to_bits(f16, 65504.0), 0x7bffu);
  EXPECT_EQ(to_bits(f16, 65519.9), 0x7bffu);
  EXPECT_EQ(to_bits(f16, 65520.0), 0x7c00u);
  EXPECT_EQ(to_bits(f16, std::ldexp(1.0, -24)), 0x0001u);
  EXPECT_EQ(to_bits(f16, std::ldexp(1.0, -25)), 0x0000u);
  EXPECT_EQ(to_bits(f16, -0.0), 0x8000u);
  EXPECT_EQ(to_bits(f16, 5e-324), 0x0000u);
  EXPECT_EQ(to_bits(bf16, 1.0), 0x3f80u);
  EXPECT_EQ(to_bits(bf16, -kInfinity), 0xff80u);
  EXPECT_EQ(to_bits(bf16, 1e300), 0x7f80u);
  EXPECT_EQ(to_bits(f32, 1.0), 0x3f800000u);
  EXPECT_EQ(to_bits(f64, -2.0), 0xc000000000000000u);
  EXPECT_EQ(from_bits(f32, 0xffffffff3f800000u), 1.0);
}

TEST(Types, Tf32KeepsTenBitsOfMantissa) {
  EXPECT_EQ(to_bits(tf32, 1.0), 0x3f800000u);
  EXPECT_EQ(to_bits(tf32, 1 + std::ldexp(1.0, -10)), 0x3f802000u);
  EXPECT_EQ(to_bits(tf32, 1 + std::ldexp(1.0, -11)), 0x3f800000u);
  EXPECT_EQ(to_bits(tf32, 1 + std::ldexp(3.0, -11)), 0x3f804000u);
  EXPECT_EQ(to_bits(tf32, kInfinity), 0x7f800000u);
  EXPECT_EQ(to_bits(tf32, -3.0), 0xc0400000u);
  EXPECT_EQ(from_bits(tf32, 0x3f801fffu), 1.0); // the low bits are not read
  EXPECT_TRUE(std::isnan(from_bits(tf32, to_bits(tf32, kNan))));
}

TEST(Types, E4m3SaturatesAndHasNoInfinity) {
  EXPECT_EQ(to_bits(e4m3, 448.0), 0x7eu);
  EXPECT_EQ(to_bits(e4m3, 464.0), 0x7eu);
  EXPECT_EQ(to_bits(e4m3, 1e9), 0x7eu);
  EXPECT_EQ(to_bits(e4m3, -kInfinity), 0xfeu);
  EXPECT_EQ(to_bits(e4m3, kNan) & 0x7f, 0x7fu);
  EXPECT_EQ(from_bits(e4m3, 0x7e), 448.0);
  EXPECT_EQ(from_bits(e4m3, 0x01), std::ldexp(1.0, -9));
  EXPECT_TRUE(std::isnan(from_bits(e4m3, 0x7f)));
  EXPECT_TRUE(std::isnan(from_bits(e4m3, 0xff)));
}

TEST(Types, E5m2SaturatesAndDecodesInfinity) {
  EXPECT_EQ(to_bits(e5m2, 57344.0), 0x7bu);
  EXPECT_EQ(to_bits(e5m2, 61440.0), 0x7bu);
  EXPECT_EQ(to_bits(e5m2, kInfinity), 0x7bu);
  EXPECT_EQ(from_bits(e5m2, 0x7c), kInfinity);
  EXPECT_EQ(from_bits(e5m2, 0xfc), -kInfinity);
  EXPECT_TRUE(std::isnan(from_bits(e5m2, 0x7d)));
  EXPECT_TRUE(std::isnan(from_bits(e5m2, to_bits(e5m2, kNan))));
}

TEST(Types, IntegersRoundAndSaturate) {
  EXPECT_EQ(to_bits(i8, 127.4), 127u);
  EXPECT_EQ(to_bits(i8, 200), 127u);
  EXPECT_EQ(to_bits(i8, -1), 0xffu);
  EXPECT_EQ(to_bits(i8, -1000), 0x80u);
  EXPECT_EQ(to_bits(i32, 2.5), 2u);
  EXPECT_EQ(to_bits(i32, 3.5), 4u);
  EXPECT_EQ(to_bits(i64, 1e30), 0x7fffffffffffffffu);
  EXPECT_EQ(to_bits(i64, -1e30), 0x8000000000000000u);
  EXPECT_EQ(to_bits(u8, 256), 255u);
  EXPECT_EQ(to_bits(u32, -5), 0u);
  EXPECT_EQ(to_bits(u64, 1e30), ~std::uint64_t{0});
  EXPECT_EQ(to_bits(i32, kNan), 0u);
  EXPECT_EQ(to_bits(u32, kNan), 0u);
  EXPECT_EQ(to_bits(i1, 7), 1u);
}

TEST(Types, IntegersReadBackWithTheirSign) {
  EXPECT_EQ(from_bits(i8, 0xff), -1.0);
  EXPECT_EQ(from_bits(u8, 0xff), 255.0);
  EXPECT_EQ(from_bits(i32, 0x80000000), -2147483648.0);
  EXPECT_EQ(from_bits(i16, 0x17fff), 32767.0);
  EXPECT_EQ(from_bits(i1, 1), 1.0);
}
