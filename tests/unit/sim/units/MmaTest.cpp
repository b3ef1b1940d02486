// Mma: sparse, scaled, small and quartered products against a plain triple loop
// over matrices that are spread over registers as the PTX ISA words it.
#include "support/FloatFormat.h"
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

#include <cmath>
#include <random>

namespace kiln::sim {

namespace {
struct Product {
  std::string modifiers; ///< behind mma
  int m, n, k;
  std::string a, b, d;
  int bits = 8; ///< of an element in a register
  bool isSparse = false;
  int selector = 0;
  int scales = 0; ///< of a row
  std::string scale = "ue8m0";
  int byteA = 0, threadA = 0, byteB = 0, threadB = 0;
};

/// Registers by name and lane.
using Fragments = std::map<std::string, std::array<std::uint32_t, 32>>;
} // namespace

static double valueOf(const std::string &type, std::uint32_t bits) {
  auto few = [&](int exponentBits, int fractionBits) {
    int bias = (1 << (exponentBits - 1)) - 1;
    int exponent = int(bits >> fractionBits) & ((1 << exponentBits) - 1);
    double fraction =
        double(bits & ((1u << fractionBits) - 1)) / (1 << fractionBits);
    double value = exponent ? std::ldexp(1 + fraction, exponent - bias)
                            : std::ldexp(fraction, 1 - bias);
    return bits >> (exponentBits + fractionBits) & 1 ? -value : value;
  };
  if (type == "f16")
    return halfToFloat(static_cast<std::uint16_t>(bits));
  if (type == "bf16" || type == "tf32")
    return std::bit_cast<float>(type == "bf16" ? bits << 16 : bits);
  if (type == "s8")
    return static_cast<std::int8_t>(bits);
  if (type == "s4")
    return static_cast<std::int8_t>(bits << 4) / 16;
  if (type == "e4m3" || type == "ue4m3")
    return few(4, 3);
  if (type == "e5m2")
    return few(5, 2);
  if (type == "e2m3")
    return few(2, 3);
  if (type == "e3m2")
    return few(3, 2);
  if (type == "e2m1")
    return few(2, 1);
  if (type == "ue8m0")
    return std::ldexp(1, int(bits) - 127);
  return bits; // u8, u4, b1
}

/// Small numbers, so that every sum is exact in f32; never zero.
static std::uint32_t drawn(const std::string &type, std::mt19937 &random) {
  int number = int(random() % 7) - 3;
  number += number == 0;
  if (type == "f16")
    return floatToHalf(float(number));
  if (type == "bf16" || type == "tf32")
    return std::bit_cast<std::uint32_t>(float(number)) >>
           (type == "bf16" ? 16 : 0);
  if (type == "e4m3" || type == "e5m2")
    return (random() & 0x80) | (type == "e4m3" ? 0x30 : 0x38) | random() % 8;
  if (type == "ue4m3")
    return 0x30 | random() % 8;
  if (type == "ue8m0")
    return 125 + random() % 4;
  if (type == "e2m3" || type == "e3m2")
    return (random() & 0x2f) | 0x10;
  if (type == "e2m1" || type == "s4" || type == "u4")
    return (random() & 0xd) | 2;
  if (type == "b1")
    return random() & 1;
  return random() & 0xff;
}

/// Where a 4-bit float stands in a byte: CUTLASS shifts it there (fp4_shift_A).
static int shiftOf(const Product &p, const std::string &type) {
  return p.bits == 8 && type == "e2m1" ? 2 : 0;
}

static void put(Fragments &words, const std::string &name, int lane, int element,
                int bits, std::uint32_t value) {
  int perWord = 32 / bits;
  words[fmt::format("{}{}", name, element / perWord)][lane] |=
      value << bits * (element % perWord);
}

/// A of `columns` columns: register i of lane 4 g + t has row g (+ 8 for odd i)
/// and the columns of block i / 2 from t's on.
static void spreadA(const Product &p, const std::vector<std::uint32_t> &a,
                    int columns, Fragments &words) {
  int per = 32 / p.bits, rows = p.m / 8;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < p.m * columns / 32; ++i) {
      int reg = i / per, row = lane / 4 + 8 * (reg % rows);
      int column = per * (lane % 4 + 4 * (reg / rows)) + i % per;
      put(words, "%a", lane, i, p.bits,
          a[row * columns + column] << shiftOf(p, p.a));
    }
}

static void spreadB(const Product &p, const std::vector<std::uint32_t> &b,
                    Fragments &words) {
  int per = 32 / p.bits;
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < p.k * p.n / 32; ++i)
      put(words, "%b", lane, i, p.bits,
          b[(per * (lane % 4 + 4 * (i / per)) + i % per) * p.n + lane / 4]
              << shiftOf(p, p.b));
}

/// Metadata bits of group `group` of a row, as the figures of the manual have
/// them: of 16 bits and more a word has the two rows of a lane's quad; of fewer
/// lane % 2 is the row, and lane / 2 % 2 the half of K (CUTLASS's ELayout).
static void putMetadata(const Product &p, int row, int group,
                        std::uint32_t bits, Fragments &words) {
  int quad = row % 8 * 4, lane, first;
  int groups = p.k / (p.bits == 32 ? 2 : p.bits == 4 ? 8 : 4);
  if (p.bits >= 16) {
    lane = groups == 4 ? p.selector : 2 * p.selector + group / 4;
    first = (row >= 8 ? 16 : 0) + group % 4 * 4;
  } else {
    lane = (row >= 8 ? 1 : 0) + 2 * (groups == 8 ? p.selector : group / 8);
    first = group % 8 * 4;
  }
  words["%e"][quad + lane] |= bits << first;
}

/// Draw which elements of each group are there, and leave the others out.
static std::vector<std::uint32_t> thin(const Product &p,
                                       std::vector<std::uint32_t> &a,
                                       std::mt19937 &random, Fragments &words) {
  int width = p.bits == 32 ? 2 : p.bits == 4 ? 8 : 4;
  std::vector<std::uint32_t> there;
  for (int row = 0; row < p.m; ++row)
    for (int group = 0; group < p.k / width; ++group) {
      std::uint32_t *first = &a[row * p.k + group * width];
      if (width == 2) {
        int kept = int(random() % 2);
        there.push_back(first[kept]);
        first[1 - kept] = 0;
        putMetadata(p, row, group, kept ? 0xe : 0x4, words);
        continue;
      }
      unsigned low = random() % 3, high = low + 1 + random() % (3 - low);
      int unit = width / 4; // pairs of 4-bit elements
      for (unsigned i = 0; i < 4; ++i)
        for (int j = 0; j < unit; ++j) {
          if (i == low || i == high)
            there.push_back(first[int(i) * unit + j]);
          else
            first[int(i) * unit + j] = 0;
        }
      putMetadata(p, row, group, low | high << 2, words);
    }
  return there;
}

/// Scales as the selectors say: of A two lanes of each quad have rows g and
/// g + 8, of B one lane has column g.
static std::vector<double> putScales(const Product &p, bool isA,
                                     std::mt19937 &random, Fragments &words) {
  std::vector<double> values;
  for (int line = 0; line < (isA ? 16 : 8); ++line)
    for (int i = 0; i < p.scales; ++i) {
      std::uint32_t bits = drawn(p.scale, random);
      values.push_back(valueOf(p.scale, bits));
      int lane = line % 8 * 4 +
                 (isA ? 2 * p.threadA + line / 8 : p.threadB);
      words[isA ? "%sa" : "%sb"][lane] |=
          bits << 8 * ((isA ? p.byteA : p.byteB) + i);
    }
  return values;
}

static std::string listOf(const std::string &name, int count) {
  std::string text;
  for (int i = 0; i < count; ++i)
    text += fmt::format("{}{}{}", i ? ", " : "", name, i);
  return "{" + text + "}";
}

static int registersD(const Product &p) {
  return p.m * p.n / 32 / (p.d == "f16" ? 2 : 1);
}

/// The instruction and its registers.
static std::pair<std::string, std::string> textOf(const Product &p) {
  int registersA = p.m * p.k / (p.isSparse ? 2 : 1) * p.bits / 1024;
  int registersB = p.k * p.n * p.bits / 1024;
  std::string text = fmt::format(
      "mma{} {}, {}, {}, {}", p.modifiers, listOf("%d", registersD(p)),
      listOf("%a", registersA), listOf("%b", registersB),
      listOf("%c", registersD(p)));
  if (p.isSparse)
    text += fmt::format(", %e, {}", p.selector);
  if (p.scales)
    text += fmt::format(", %sa, {{{}, {}}}, %sb, {{{}, {}}}", p.byteA,
                        p.threadA, p.byteB, p.threadB);
  return {".reg .b32 %d<4>, %a<4>, %b<4>, %c<4>, %e, %sa, %sb;", text + ";"};
}

static bool isInteger(const Product &p) { return p.d == "s32"; }

static void expectProduct(const Product &p) {
  std::mt19937 random(7);
  Fragments words;
  std::vector<std::uint32_t> a, b;
  for (int i = 0; i < p.m * p.k; ++i)
    a.push_back(drawn(p.a, random));
  for (int i = 0; i < p.k * p.n; ++i)
    b.push_back(drawn(p.b, random));
  if (p.isSparse)
    spreadA(p, thin(p, a, random, words), p.k / 2, words);
  else
    spreadA(p, a, p.k, words);
  spreadB(p, b, words);
  std::vector<double> scalesA, scalesB;
  if (p.scales) {
    scalesA = putScales(p, true, random, words);
    scalesB = putScales(p, false, random, words);
  }
  std::vector<double> sums(p.m * p.n);
  bool isXor = p.modifiers.find(".xor") != std::string::npos;
  for (int row = 0; row < p.m; ++row)
    for (int column = 0; column < p.n; ++column) {
      double &sum = sums[row * p.n + column];
      int c = row - 2 * column; // of C
      int lane = row % 8 * 4 + column / 2;
      int element = row / 8 * 2 + column % 2;
      if (p.d == "f16")
        put(words, "%c", lane, element, 16, floatToHalf(float(c)));
      else
        put(words, "%c", lane, element, 32,
            isInteger(p) ? std::uint32_t(c)
                         : std::bit_cast<std::uint32_t>(float(c)));
      sum = c;
      for (int k = 0; k < p.k; ++k) {
        double x = valueOf(p.a, a[row * p.k + k]);
        double y = valueOf(p.b, b[k * p.n + column]);
        double scale = 1;
        if (p.scales)
          scale = scalesA[row * p.scales + k * p.scales / p.k] *
                  scalesB[column * p.scales + k * p.scales / p.k];
        sum += p.a == "b1" ? double(isXor ? x != y : x == 1 && y == 1)
                           : x * y * scale;
      }
    }
  auto [registers, text] = textOf(p);
  RunLanes lanes(registers, text);
  for (const auto &[name, values] : words)
    for (int lane = 0; lane < 32; ++lane)
      lanes.set(name, lane, values[lane]);
  lanes.run();
  for (int row = 0; row < p.m; ++row)
    for (int column = 0; column < p.n; ++column) {
      int lane = row % 8 * 4 + column / 2;
      int element = row / 8 * 2 + column % 2;
      double found;
      if (p.d == "f16")
        found = halfToFloat(static_cast<std::uint16_t>(
            lanes.get(fmt::format("%d{}", element / 2), lane) >>
            16 * (element % 2)));
      else {
        auto bits = static_cast<std::uint32_t>(
            lanes.get(fmt::format("%d{}", element), lane));
        found = isInteger(p) ? double(std::int32_t(bits))
                             : double(std::bit_cast<float>(bits));
      }
      double expected = sums[row * p.n + column];
      double tolerance = p.d == "f16" ? std::fabs(expected) * 0x1p-10 : 0;
      ASSERT_NEAR(found, expected, tolerance)
          << text << " row " << row << " column " << column;
    }
}

TEST(Mma, MultipliesNarrowTypes) {
  for (std::string a : {"e4m3", "e5m2", "e2m3", "e3m2", "e2m1"})
    for (std::string b : {"e4m3", "e2m3", "e2m1"})
      for (std::string d : {"f32", "f16"})
        expectProduct({fmt::format(".sync.aligned.m16n8k32.row.col.kind::"
                                   "f8f6f4.{}.{}.{}.{}",
                                   d, a, b, d),
                       16, 8, 32, a, b, d});
}

TEST(Mma, MultipliesFourBitsAndBits) {
  for (std::string a : {"s4", "u4"})
    for (std::string b : {"u4", "s4"})
      for (auto [m, k] : {std::pair(8, 32), {16, 32}, {16, 64}})
        expectProduct({fmt::format(".sync.aligned.m{}n8k{}.row.col.satfinite."
                                   "s32.{}.{}.s32",
                                   m, k, a, b),
                       m, 8, k, a, b, "s32", 4});
  for (std::string how : {"xor", "and"})
    for (auto [m, k] : {std::pair(8, 128), {16, 128}, {16, 256}})
      expectProduct({fmt::format(".sync.aligned.m{}n8k{}.row.col.s32.b1.b1."
                                 "s32.{}.popc",
                                 m, k, how),
                     m, 8, k, "b1", "b1", "s32", 1});
}

TEST(Mma, MultipliesSparseMatrices) {
  struct Form {
    const char *type, *sum;
    int bits;
    std::pair<int, int> shapes[2]; ///< K, and how many selectors
  };
  for (const Form &form : std::initializer_list<Form>{
           {"f16", "f32", 16, {{16, 4}, {32, 2}}},
           {"f16", "f16", 16, {{16, 4}, {32, 2}}},
           {"bf16", "f32", 16, {{16, 4}, {32, 2}}},
           {"tf32", "f32", 32, {{8, 4}, {16, 2}}},
           {"s8", "s32", 8, {{32, 2}, {64, 1}}},
           {"u8", "s32", 8, {{32, 2}, {64, 1}}},
           {"s4", "s32", 4, {{64, 2}, {128, 1}}},
           {"e4m3", "f32", 8, {{64, 1}, {64, 1}}}})
    for (const char *word : {".sp", ".sp::ordered_metadata"})
      for (auto [k, selectors] : form.shapes)
        for (int selector = 0; selector < selectors; ++selector) {
          Product p{fmt::format("{}.sync.aligned.m16n8k{}.row.col.{}.{}.{}.{}",
                                word, k, form.sum, form.type, form.type,
                                form.sum),
                    16,        8,         k,         form.type,
                    form.type, form.sum,  form.bits, true,
                    selector};
          expectProduct(p);
        }
  for (std::string type : {"e5m2", "e3m2", "e2m1"})
    expectProduct({fmt::format(".sp::ordered_metadata.sync.aligned.m16n8k64."
                               "row.col.kind::f8f6f4.f32.{}.e4m3.f32",
                               type),
                   16, 8, 64, type, "e4m3", "f32", 8, true});
}

TEST(Mma, MultipliesWithBlockScales) {
  for (bool isSparse : {false, true}) {
    std::string sp = isSparse ? ".sp::ordered_metadata" : "";
    int more = isSparse ? 2 : 1;
    for (int byte = 0; byte < 4; ++byte)
      for (std::string a : {"e4m3", "e2m3", "e2m1"}) {
        Product p{fmt::format("{}.sync.aligned.m16n8k{}.row.col.kind::"
                              "mxf8f6f4.block_scale.scale_vec::1X.f32.{}.e5m2."
                              "f32.ue8m0",
                              sp, 32 * more, a),
                  16, 8, 32 * more, a, "e5m2", "f32", 8, isSparse};
        p.scales = 1;
        p.byteA = byte;
        p.byteB = 3 - byte;
        p.threadA = byte % 2;
        p.threadB = byte;
        expectProduct(p);
      }
    for (auto [kind, scales, type] :
         {std::tuple("mxf4", 2, "ue8m0"), {"mxf4nvf4", 2, "ue8m0"},
          {"mxf4nvf4", 4, "ue4m3"}}) {
      Product p{fmt::format("{}.sync.aligned.m16n8k{}.row.col.kind::{}."
                            "block_scale.scale_vec::{}X.f32.e2m1.e2m1.f32.{}",
                            sp, 64 * more, kind, scales, type),
                16, 8, 64 * more, "e2m1", "e2m1", "f32", 4, isSparse};
      p.scales = scales;
      p.scale = type;
      p.byteB = scales == 2 ? 2 : 0;
      p.threadA = 1;
      p.threadB = 3;
      expectProduct(p);
    }
  }
}

/// m8n8k4 of f16: lanes 4 q to 4 q + 3, and those 16 above, have a product of
/// their own.
TEST(Mma, MultipliesQuartersOfTheWarp) {
  for (bool isARow : {true, false})
    for (bool isBRow : {true, false})
      for (bool isHalf : {true, false}) {
        std::string d = isHalf ? "f16" : "f32";
        int count = isHalf ? 4 : 8;
        RunLanes lanes(
            ".reg .b32 %d<8>, %a<2>, %b<2>, %c<8>;",
            fmt::format("mma.sync.aligned.m8n8k4.{}.{}.{}.f16.f16.{} {}, {}, "
                        "{}, {};",
                        isARow ? "row" : "col", isBRow ? "row" : "col", d, d,
                        listOf("%d", count), listOf("%a", 2), listOf("%b", 2),
                        listOf("%c", count)));
        auto valueA = [](int q, int row, int k) { return q + row - 3 * k; };
        auto valueB = [](int q, int k, int column) {
          return 2 * q - k + column % 3;
        };
        for (int lane = 0; lane < 32; ++lane) {
          int q = lane % 16 / 4, high = lane < 16 ? 0 : 4, own = lane % 4;
          for (int i = 0; i < 4; ++i) {
            int x = isARow ? valueA(q, own + high, i)
                           : valueA(q, i + high, own);
            int y = isBRow ? valueB(q, own, i + high)
                           : valueB(q, i, own + high);
            for (auto [name, value] : {std::pair("%a", x), {"%b", y}}) {
              std::string reg = fmt::format("{}{}", name, i / 2);
              lanes.set(reg, lane,
                        lanes.get(reg, lane) |
                            std::uint64_t(floatToHalf(float(value)))
                                << 16 * (i % 2));
            }
          }
        }
        lanes.run();
        for (int lane = 0; lane < 32; ++lane)
          for (int i = 0; i < 8; ++i) {
            int q = lane % 16 / 4, high = lane < 16 ? 0 : 4;
            int row = isHalf ? lane % 4 + high : (lane & 1) + (i & 2) + high;
            int column = isHalf ? i : (i & 4) + (lane & 2) + (i & 1);
            int expected = 0;
            for (int k = 0; k < 4; ++k)
              expected += valueA(q, row, k) * valueB(q, k, column);
            float found =
                isHalf ? halfToFloat(static_cast<std::uint16_t>(
                             lanes.get(fmt::format("%d{}", i / 2), lane) >>
                             16 * (i % 2)))
                       : std::bit_cast<float>(std::uint32_t(
                             lanes.get(fmt::format("%d{}", i), lane)));
            ASSERT_EQ(found, expected) << d << " lane " << lane << " " << i;
          }
      }
}

TEST(Mma, UnwrittenScalesAndMetadataSpoilTheirLines) {
  Product p{".sp::ordered_metadata.sync.aligned.m16n8k64.row.col.kind::mxf8f6f4"
            ".block_scale.f32.e4m3.e4m3.f32.ue8m0",
            16, 8, 64, "e4m3", "e4m3", "f32", 8, true};
  p.scales = 1;
  auto poisonOf = [&](const std::string &name, int lane) {
    auto [registers, text] = textOf(p);
    RunLanes lanes(registers, text);
    for (int i = 0; i < 32; ++i)
      lanes.set("%e", i, 0x44444444);
    lanes.setPoison(name, LaneMask(1) << lane).run();
    return std::pair(lanes.poison("%d0"), lanes.poison("%d3"));
  };
  // Lane 5 of 4 g + t: row 1, of the scales of A the one of row 9.
  EXPECT_EQ(poisonOf("%sa", 5), std::pair(0u, 0xf0u));
  EXPECT_EQ(poisonOf("%sa", 6), std::pair(0u, 0u));
  EXPECT_EQ(poisonOf("%sb", 8), std::pair(0x22222222u, 0u));
  EXPECT_EQ(poisonOf("%e", 4), std::pair(0xf0u, 0u));
  EXPECT_EQ(poisonOf("%e", 7), std::pair(0u, 0xf0u));
}

TEST(Mma, SelectorsAndMetadataAreChecked) {
  auto found = [](const std::string &text) {
    RunKernel run(".reg .b32 %a<4>, %d<4>; .reg .b16 %h;"
                  "mov.u32 %a0, 0; mov.u32 %a1, 0; mov.u32 %a2, 0;"
                  "mov.u32 %a3, 0; mov.u16 %h, 1;" +
                      text,
                  "sm_120a");
    return run.finding();
  };
  std::string scaled =
      "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1."
      "f32.ue8m0 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a0, %a1}, {%a0, "
      "%a1, %a2, %a3}, %a0, ";
  EXPECT_EQ(found(scaled + "{2, 1}, %a0, {0, 3};"), "");
  expectContains(found(scaled + "{%h, 0}, %a0, {0, 0};"),
                 "mma-selector: the scales of A begin at byte 1 of thread 0");
  expectContains(found(scaled + "{0, 0}, %a0, {0, 4};"),
                 "mma-selector: the scales of B begin at byte 0 of thread 4");
  std::string sparse =
      "mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 "
      "{%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, {%a0, %a1, %a2, %a3}, {%a0, "
      "%a1, %a2, %a3}, ";
  expectContains(found(sparse + "%a0, 0;"),
                 "mma-selector: the metadata 0x0 name elements 0 and 0");
  EXPECT_EQ(found("mov.u32 %r1, 0x44444444;" + sparse + "%r1, 1;"), "");
}

TEST(Mma, RefusesByReason) {
  expectRefusals(
      {{"mma.sync.aligned.m16n8k16.row.col.s32.s4.s4.s32 {%r, %r, %r, %r}, "
        "{%r, %r}, {%r}, {%r, %r, %r, %r};",
        "its shape is not known for its types; there is m8n8k32 m16n8k32 "
        "m16n8k64"},
       {"mma.sync.aligned.m16n8k8.col.col.f32.f16.f16.f32 {%r, %r, %r, %r}, "
        "{%r, %r}, {%r}, {%r, %r, %r, %r};",
        "A is row-major and B column-major"},
       {"mma.sp.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%r, %r, %r, "
        "%r}, {%r, %r, %r, %r}, {%r, %r, %r, %r}, {%r, %r, %r, %r}, %r, 2;",
        "the sparsity selector 2; 0 to 1 are accepted"},
       {"mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1."
        "e2m1.f32.ue4m3 {%r, %r, %r, %r}, {%r, %r, %r, %r}, {%r, %r}, {%r, %r, "
        "%r, %r}, %r, {0, 0}, %r, {0, 0};",
        "2 scales of type ue4m3 for a row; the kind takes ue8m0:2"}});
}

/// Four 4-bit integers and bits, by wmma, whose fragments are its own.
TEST(Mma, WmmaOfLines) {
  for (std::string type : {"s4", "u4", "b1"}) {
    bool isBits = type == "b1";
    std::string shape = isBits ? "m8n8k128" : "m8n8k32";
    RunKernel run(fmt::format(
        "wmma.load.a.sync.aligned.row.{0}.global.{1} {{%r0}}, [%in], {2};"
        "wmma.load.b.sync.aligned.col.{0}.global.{1} {{%r1}}, [%in+256];"
        "mov.u32 %r2, 3; mov.u32 %r3, 3;"
        "wmma.mma{3}.sync.aligned.row.col.{0}.s32.{1}.{1}.s32 {{%r4, %r5}}, "
        "{{%r0}}, {{%r1}}, {{%r2, %r3}};"
        "wmma.store.d.sync.aligned.row.{0}.global.s32 [%out], {{%r4, %r5}};",
        shape, type, isBits ? 256 : 64, isBits ? ".xor.popc" : ""));
    std::mt19937 random(3);
    std::vector<std::uint32_t> words;
    for (int i = 0; i < 128; ++i)
      words.push_back(std::uint32_t(random()));
    run.input(words).runCleanly(Interleaving::eager);
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column) {
        int sum = 3;
        for (int w = 0; w < 4; ++w) {
          std::uint32_t a = words[row * 8 + w], b = words[64 + column * 4 + w];
          for (int bit = 0; bit < 32; bit += isBits ? 1 : 4) {
            std::uint32_t x = a >> bit & (isBits ? 1 : 15);
            std::uint32_t y = b >> bit & (isBits ? 1 : 15);
            sum += isBits ? int(x ^ y)
                          : int(valueOf(type, x) * valueOf(type, y));
          }
        }
        ASSERT_EQ(run.result<std::int32_t>(row * 8 + column), sum)
            << type << " " << row << " " << column;
      }
  }
}

} // namespace kiln::sim
