// Matrix: mma against a plain triple loop, with fragments as the PTX ISA words
// them, and ldmatrix, stmatrix and movmatrix.
#include "sim/units/scalar/Conversion.h"
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

#include <random>

namespace kiln::sim {

namespace {
using Place2 = std::pair<int, int>; ///< row, column
/// Where element i of a lane is, with its group (lane / 4) and lane % 4.
using Layout = Place2 (*)(int group, int inGroup, int i);

/// One form of mma, its layouts word for word from the ISA.
struct Form {
  const char *modifiers; ///< after mma.sync.aligned
  int m, n, k;
  const char *typeA, *typeB, *typeD;
  Layout a, b;
};
} // namespace

static const Form kForms[] = {
    {"m16n8k8.row.col.f32.f16.f16.f32", 16, 8, 8, "f16", "f16", "f32",
     [](int g, int t, int i) {
       return Place2(i < 2 ? g : g + 8, t * 2 + (i & 1));
     },
     [](int g, int t, int i) { return Place2(t * 2 + i, g); }},
    {"m16n8k8.row.col.f16.f16.f16.f16", 16, 8, 8, "f16", "f16", "f16",
     [](int g, int t, int i) {
       return Place2(i < 2 ? g : g + 8, t * 2 + (i & 1));
     },
     [](int g, int t, int i) { return Place2(t * 2 + i, g); }},
    {"m16n8k16.row.col.f32.f16.f16.f32", 16, 8, 16, "f16", "f16", "f32",
     [](int g, int t, int i) {
       return Place2(i < 2 || (i >= 4 && i < 6) ? g : g + 8,
                     t * 2 + (i & 1) + (i >= 4 ? 8 : 0));
     },
     [](int g, int t, int i) {
       return Place2(t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g);
     }},
    {"m16n8k16.row.col.f32.bf16.bf16.f32", 16, 8, 16, "bf16", "bf16", "f32",
     [](int g, int t, int i) {
       return Place2(i < 2 || (i >= 4 && i < 6) ? g : g + 8,
                     t * 2 + (i & 1) + (i >= 4 ? 8 : 0));
     },
     [](int g, int t, int i) {
       return Place2(t * 2 + (i & 1) + (i >= 2 ? 8 : 0), g);
     }},
    {"m16n8k4.row.col.f32.tf32.tf32.f32", 16, 8, 4, "tf32", "tf32", "f32",
     [](int g, int t, int i) { return Place2(i == 0 ? g : g + 8, t); },
     [](int g, int t, int) { return Place2(t, g); }},
    {"m16n8k8.row.col.f32.tf32.tf32.f32", 16, 8, 8, "tf32", "tf32", "f32",
     [](int g, int t, int i) {
       return Place2(i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4);
     },
     [](int g, int t, int i) { return Place2(i == 0 ? t : t + 4, g); }},
    {"m16n8k16.row.col.s32.u8.s8.s32", 16, 8, 16, "u8", "s8", "s32",
     [](int g, int t, int i) {
       return Place2(i < 4 ? g : g + 8, t * 4 + (i & 3));
     },
     [](int g, int t, int i) { return Place2(t * 4 + i, g); }},
    {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", 16, 8, 32, "s8", "s8", "s32",
     [](int g, int t, int i) {
       return Place2(i < 4 || (i >= 8 && i < 12) ? g : g + 8,
                     t * 4 + (i & 3) + (i >= 8 ? 16 : 0));
     },
     [](int g, int t, int i) {
       return Place2(t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g);
     }},
    {"m16n8k32.row.col.f32.e4m3.e5m2.f32", 16, 8, 32, "e4m3", "e5m2", "f32",
     [](int g, int t, int i) {
       return Place2(i < 4 || (i >= 8 && i < 12) ? g : g + 8,
                     t * 4 + (i & 3) + (i >= 8 ? 16 : 0));
     },
     [](int g, int t, int i) {
       return Place2(t * 4 + (i & 3) + (i >= 4 ? 16 : 0), g);
     }},
    {"m16n8k16.row.col.f16.e5m2.e4m3.f16", 16, 8, 16, "e5m2", "e4m3", "f16",
     [](int g, int t, int i) {
       return Place2(i < 4 ? g : g + 8, t * 4 + (i & 3));
     },
     [](int g, int t, int i) { return Place2(t * 4 + i, g); }},
    {"m8n8k4.row.col.f64.f64.f64.f64", 8, 8, 4, "f64", "f64", "f64",
     [](int g, int t, int) { return Place2(g, t); },
     [](int g, int t, int) { return Place2(t, g); }},
    {"m8n8k16.row.col.s32.s8.u8.s32", 8, 8, 16, "s8", "u8", "s32",
     [](int g, int t, int i) { return Place2(g, t * 4 + i); },
     [](int g, int t, int i) { return Place2(t * 4 + i, g); }},
    {"m16n8k16.row.col.f64.f64.f64.f64", 16, 8, 16, "f64", "f64", "f64",
     [](int g, int t, int i) {
       return Place2(i % 2 == 0 ? g : g + 8,
                     i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t);
     },
     [](int g, int t, int i) { return Place2(i * 4 + t, g); }},
};

/// C and D of every shape.
static Place2 accumulatorAt(int group, int inGroup, int i) {
  return {i < 2 ? group : group + 8, inGroup * 2 + (i & 1)};
}

static int bitsOf(const std::string &type) {
  if (type == "f64")
    return 64;
  if (type == "f32" || type == "tf32" || type == "s32")
    return 32;
  return type == "f16" || type == "bf16" ? 16 : 8;
}

static std::uint64_t bitsOf(const std::string &type, double value) {
  if (type == "f64")
    return std::bit_cast<std::uint64_t>(value);
  if (type == "f32" || type == "tf32")
    return std::bit_cast<std::uint32_t>(float(value));
  if (type == "f16")
    return floatToHalf(float(value));
  if (type == "bf16")
    return floatToBfloat(float(value));
  if (type == "e4m3" || type == "e5m2")
    return encode(type == "e4m3" ? kFormatE4m3 : kFormatE5m2, value,
                  Rounding::nearest_even, true);
  std::uint64_t bits = std::uint64_t(std::int64_t(value));
  return bits & (type == "s32" ? 0xffffffffu : 0xffu);
}

/// A matrix of small whole numbers, which every type holds.
static std::vector<double> randomMatrix(std::size_t count, bool isUnsigned,
                                        std::mt19937 &random) {
  std::vector<double> values(count);
  for (double &value : values)
    value = double(random() % 5) - (isUnsigned ? 0 : 2);
  return values;
}

/// One operand: registers %NAME0... filled with a matrix, or read from.
class Fragment {
public:
  Fragment(char name, const std::string &type, int rows, int columns,
           Layout layout)
      : name_(name), type_(type), columns_(columns), layout_(layout),
        perLane_(rows * columns / kLanes),
        perRegister_((type == "f64" ? 64 : 32) / bitsOf(type)) {}

  int registers() const { return perLane_ / perRegister_; }
  std::string declaration() const {
    return fmt::format(".reg .b{} %{}<{}>;\n", type_ == "f64" ? 64 : 32, name_,
                       registers());
  }
  std::string operand() const {
    std::string list;
    for (int i = 0; i < registers(); ++i)
      list += fmt::format("{}%{}{}", i ? ", " : "", name_, i);
    return "{" + list + "}";
  }
  void fill(RunLanes &lanes, const std::vector<double> &matrix) const {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int reg = 0; reg < registers(); ++reg) {
        std::uint64_t bits = 0;
        for (int part = 0; part < perRegister_; ++part) {
          auto [row, column] =
              layout_(lane / 4, lane % 4, reg * perRegister_ + part);
          bits |= bitsOf(type_, matrix[row * columns_ + column])
                  << (part * bitsOf(type_));
        }
        lanes.set(registerName(reg), lane, bits);
      }
  }
  /// Every element is the one of the matrix.
  void expect(const RunLanes &lanes, const std::vector<double> &matrix,
              const std::string &what) const {
    for (int lane = 0; lane < kLanes; ++lane)
      for (int i = 0; i < perLane_; ++i) {
        auto [row, column] = layout_(lane / 4, lane % 4, i);
        std::uint64_t bits = lanes.get(registerName(i / perRegister_), lane) >>
                             (i % perRegister_ * bitsOf(type_));
        if (bitsOf(type_) < 64)
          bits &= (std::uint64_t(1) << bitsOf(type_)) - 1;
        EXPECT_EQ(bits, bitsOf(type_, matrix[row * columns_ + column]))
            << what << " row " << row << " column " << column;
      }
  }

private:
  std::string registerName(int reg) const {
    return fmt::format("%{}{}", name_, reg);
  }

  char name_;
  std::string type_;
  int columns_;
  Layout layout_;
  int perLane_, perRegister_;
};

TEST(Matrix, MmaMultipliesEveryForm) {
  std::mt19937 random(1);
  for (const Form &form : kForms) {
    int m = form.m, n = form.n, k = form.k;
    Fragment d('d', form.typeD, m, n, accumulatorAt);
    Fragment a('a', form.typeA, m, k, form.a);
    Fragment b('b', form.typeB, k, n, form.b);
    Fragment c('c', form.typeD, m, n, accumulatorAt);
    RunLanes lanes(
        d.declaration() + a.declaration() + b.declaration() + c.declaration(),
        fmt::format("mma.sync.aligned.{} {}, {}, {}, {};", form.modifiers,
                    d.operand(), a.operand(), b.operand(), c.operand()));
    auto isUnsigned = [](const char *type) {
      return std::string(type) == "u8";
    };
    auto matrixA = randomMatrix(m * k, isUnsigned(form.typeA), random);
    auto matrixB = randomMatrix(k * n, isUnsigned(form.typeB), random);
    auto sums = randomMatrix(m * n, false, random);
    a.fill(lanes, matrixA);
    b.fill(lanes, matrixB);
    c.fill(lanes, sums);
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column)
        for (int inner = 0; inner < k; ++inner)
          sums[row * n + column] +=
              matrixA[row * k + inner] * matrixB[inner * n + column];
    lanes.run();
    d.expect(lanes, sums, form.modifiers);
  }
}

/// mma m8n8k16 of ones with `c` in every accumulator.
static std::uint32_t addedTo(const std::string &modifier, std::uint32_t c) {
  RunLanes lanes(".reg .b32 %d<2>, %a, %b, %c;",
                 fmt::format("mma.sync.aligned.m8n8k16.row.col{}.s32.u8.u8.s32 "
                             "{{%d0, %d1}}, {{%a}}, {{%b}}, {{%c, %c}};",
                             modifier));
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, 0x01010101)
        .set("%b", lane, 0x01010101)
        .set("%c", lane, c);
  return static_cast<std::uint32_t>(lanes.run().get("%d1", 17));
}

TEST(Matrix, MmaWrapsOrSaturatesIntegers) {
  EXPECT_EQ(addedTo("", 0x7ffffff8), 0x80000008u);
  EXPECT_EQ(addedTo(".satfinite", 0x7ffffff8), 0x7fffffffu);
  EXPECT_EQ(addedTo(".satfinite", 4), 20u);
}

TEST(Matrix, MmaIgnoresLowBitsOfTf32) {
  RunLanes lanes(".reg .b32 %d<4>, %a, %b, %c;",
                 "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 "
                 "{%d0, %d1, %d2, %d3}, {%a, %a}, {%b}, {%c, %c, %c, %c};");
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, 0x3f801fff).set("%b", lane, 0x3f800000);
  EXPECT_EQ(lanes.run().get("%d0", 9), std::bit_cast<std::uint32_t>(4.0f));
}

TEST(Matrix, UnwrittenElementsSpoilRowsAndColumnsOfMma) {
  // Lane 5 holds part of column 1 of B, of row 1 of A, and of C itself.
  auto poison = [](const std::string &operand) {
    RunLanes lanes(".reg .b32 %d<2>, %a, %b, %c;",
                   "mma.sync.aligned.m8n8k16.row.col.s32.u8.u8.s32 "
                   "{%d0, %d1}, {%a}, {%b}, {%c, %c};");
    lanes.setPoisonBits(operand, 5, 0xff00).run();
    return std::pair(lanes.poison("%d0"), lanes.poison("%d1"));
  };
  EXPECT_EQ(poison("%b"), std::pair(0u, 0x11111111u));
  EXPECT_EQ(poison("%a"), std::pair(0xf0u, 0xf0u));
  EXPECT_EQ(poison("%c"), std::pair(0x20u, 0x20u));
}

TEST(Matrix, MovmatrixTransposes) {
  RunLanes lanes(".reg .b32 %d, %a;",
                 "movmatrix.sync.aligned.m8n8.trans.b16 %d, %a;");
  // Element (row, column) is 100 * row + column.
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t low = 100 * (lane / 4) + 2 * (lane % 4);
    lanes.set("%a", lane, low | (low + 1) << 16);
  }
  lanes.run();
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint32_t low = 100 * 2 * (lane % 4) + lane / 4;
    EXPECT_EQ(lanes.get("%d", lane), low | (low + 100) << 16);
  }
}

/// 512 bytes of input to the tile; %r0: the address of the lane's 16 bytes.
static const char *const kRows = R"(
  shl.b32 %r1, %t, 4;
  add.u32 %r0, %s, %r1;
  cvt.u64.u32 %x0, %r1;
  add.u64 %x1, %in, %x0;
  add.u64 %x2, %out, %x0;
  ld.global.v4.b32 {%r4, %r5, %r6, %r7}, [%x1];
  st.shared.v4.b32 [%r0], {%r4, %r5, %r6, %r7};
  bar.sync 0;
)";

TEST(Matrix, LdmatrixLoadsRowsOrColumns) {
  for (bool isTransposed : {false, true})
    for (int count : {1, 2, 4}) {
      const char *lists[] = {"", "{%r0}", "{%r0, %r9}", "",
                             "{%r0, %r9, %r10, %r11}"};
      // The address register is a destination too.
      RunKernel run(
          std::string(kRows) +
          "mov.u32 %r9, 0; mov.u32 %r10, 0; mov.u32 %r11, 0;" +
          fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16 {}, [%r0];",
                      count, isTransposed ? ".trans" : "", lists[count]) +
          "st.global.v4.b32 [%x2], {%r0, %r9, %r10, %r11};");
      run.input(counting<std::uint16_t>(256)).runCleanly(Interleaving::eager);
      for (int lane = 0; lane < kLanes; ++lane)
        for (int i = 0; i < count; ++i)
          for (int half = 0; half < 2; ++half) {
            int row = lane / 4, column = 2 * (lane % 4) + half;
            if (isTransposed)
              std::swap(row, column);
            EXPECT_EQ(run.result<std::uint16_t>(lane * 8 + i * 2 + half),
                      64 * i + 8 * row + column);
          }
    }
}

TEST(Matrix, StmatrixIsTheOtherWay) {
  for (bool isTransposed : {false, true}) {
    std::string trans = isTransposed ? ".trans" : "";
    RunKernel run(
        std::string(kRows) +
        fmt::format(
            "ldmatrix.sync.aligned.m8n8.x4{}.shared::cta.b16 {{%r4, %r5, %r6, "
            "%r7}}, [%r0];"
            "stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r0+1024], {{%r4, %r5, "
            "%r6, %r7}};"
            "stmatrix.sync.aligned.m8n8.x1{}.shared.b16 [%r0+2048], {{%r5}};",
            trans, trans) +
        "ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0+1024];"
        "st.global.v4.b32 [%x2], {%r4, %r5, %r6, %r7};"
        "setp.lt.u32 %p1, %t, 8;"
        "@%p1 ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0+2048];"
        "@%p1 st.global.v4.b32 [%x2+512], {%r4, %r5, %r6, %r7};");
    run.input(counting<std::uint16_t>(256)).runCleanly(Interleaving::eager);
    for (int i = 0; i < 256; ++i) {
      int row = i / 8 % 8, column = i % 8;
      int source = isTransposed ? i / 64 * 64 + column * 8 + row : i;
      EXPECT_EQ(run.result<std::uint16_t>(i), source);
    }
    // Transposed twice, the second matrix is what it was.
    for (int i = 0; i < 64; ++i)
      EXPECT_EQ(run.result<std::uint16_t>(256 + i), 64 + i);
  }
}

TEST(Matrix, LdmatrixTakesGenericAddresses) {
  RunKernel run(std::string(kRows) +
                "cvt.u64.u32 %x3, %r0; cvta.shared.u64 %x3, %x3;"
                "ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%x3];"
                "st.global.b32 [%x2], %r4;");
  run.input(counting<std::uint16_t>(256)).runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<std::uint16_t>(31 * 8), 62);
}

TEST(Matrix, UnwrittenBytesMakeUnknownFragments) {
  // Row 7 was never written: lanes 28 to 31 hold it.
  RunKernel run("shl.b32 %r1, %t, 4; add.u32 %r0, %s, %r1;"
                "setp.ne.u32 %p1, %t, 7;"
                "@%p1 st.shared.v2.b64 [%r0], {0, 0};"
                "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%r0];"
                "cvt.u64.u32 %x1, %r1; add.u64 %x1, %out, %x1;"
                "st.global.b32 [%x1], %r4;");
  expectContains(run.finding(), "uninitialized-store: a value that depends on "
                                "bytes nobody wrote goes to global memory; "
                                "they were read at PTX:21: shared address 1136 "
                                "(byte 112 of tile), which nobody wrote: "
                                "thread 28");
  RunKernel moved("shl.b32 %r1, %t, 4; add.u32 %r0, %s, %r1;"
                  "setp.ne.u32 %p1, %t, 7;"
                  "@%p1 mov.u32 %r4, 0;"
                  "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r0], {%r4};"
                  "bar.warp.sync -1;"
                  "ld.shared.b32 %r5, [%s+24];"
                  "ld.shared.b32 %r6, [%s+28];"
                  "st.global.b32 [%out], %r5;"
                  "st.global.b32 [%out+4], %r6;");
  expectContains(moved.finding(), "[st.global.b32 [%out+4], %r6");
}

TEST(Matrix, FindsWhatIsWrong) {
  RunKernel part("setp.lt.u32 %p1, %t, 16;"
                 "@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%s];");
  expectContains(part.finding(),
                 "divergent-aligned: ldmatrix.sync.aligned.m8n8.x1.shared.b16 "
                 "is for whole warps and 16 of 32 lanes reached it");
  RunKernel half("movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;");
  half.config.block = {16, 1, 1};
  expectContains(half.finding(),
                 "partial-warp: movmatrix.sync.aligned.m8n8.trans.b16 is "
                 "for whole warps and this one has 16 lanes");
  // Lanes that have left are as little there as those that never were.
  for (const char *whole :
       {"movmatrix.sync.aligned.m8n8.trans.b16 %r4, %r5;",
        "wgmma.fence.sync.aligned;", "wgmma.commit_group.sync.aligned;",
        "wgmma.wait_group.sync.aligned 0;",
        "setmaxnreg.dec.sync.aligned.u32 40;"}) {
    SCOPED_TRACE(whole);
    RunKernel left("setp.ge.u32 %p1, %t, 20; @%p1 exit;" + std::string(whole));
    left.config.block = {128, 1, 1};
    left.config.registers_at_entry = 128;
    expectContains(left.finding(), "partial-warp: ");
    expectContains(left.finding(),
                   "is for whole warps and this one has 20 lanes");
  }
  RunKernel odd("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r4}, [%s+8];");
  expectContains(odd.finding(), "misaligned: a row of ldmatrix of 16 bytes at "
                                "shared address 1032, which is not a multiple "
                                "of 16");
  RunKernel global("ldmatrix.sync.aligned.m8n8.x1.b16 {%r4}, [%in];");
  expectContains(global.finding(), "matrix-address: the row at 0x");
  RunKernel outside("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%s+8192], "
                    "{%r4};");
  expectContains(outside.finding(), "out-of-bounds: a row of stmatrix of 16 "
                                    "bytes at shared address 9216; the CTA "
                                    "has");
}

/// D = A * B + C of one shape and layout: A at in, B at in + 1024, C at in +
/// 2048, rows of D 40 elements apart.
static std::string wmmaKernel(const std::string &shape, const char *layoutA,
                              const char *layoutB, const char *type) {
  bool isSingle = std::string(type) == "f32";
  auto list = [](char name, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += fmt::format("{}%{}{}", i ? ", " : "", name, i);
    return "{" + text + "}";
  };
  std::string a = list('a', 8), b = list('b', 8);
  std::string c = list('c', isSingle ? 8 : 4), d = list('d', isSingle ? 8 : 4);
  return fmt::format(
      ".reg .b32 %a<8>, %b<8>, %c<8>, %d<8>;"
      "wmma.load.a.sync.aligned.{1}.{0}.global.f16 {4}, [%in];"
      "wmma.load.b.sync.aligned.{2}.{0}.global.f16 {5}, [%in+1024];"
      "wmma.load.c.sync.aligned.row.{0}.global.{3} {6}, [%in+2048];"
      "wmma.mma.sync.aligned.{1}.{2}.{0}.{3}.{3} {7}, {4}, {5}, {6};"
      "wmma.store.d.sync.aligned.row.{0}.global.{3} [%out], {7}, 40;",
      shape, layoutA, layoutB, type, a, b, c, d);
}

static void checkWmma(int m, int n, bool isARow, bool isBRow, bool isSingle) {
  std::string shape = fmt::format("m{}n{}k16", m, n);
  RunKernel run(wmmaKernel(shape, isARow ? "row" : "col",
                           isBRow ? "row" : "col", isSingle ? "f32" : "f16"));
  std::mt19937 random(m + n);
  auto a = randomMatrix(m * 16, false, random);
  auto b = randomMatrix(16 * n, false, random);
  auto c = randomMatrix(m * n, false, random);
  std::vector<std::uint16_t> input(2048);
  for (int row = 0; row < m; ++row)
    for (int k = 0; k < 16; ++k)
      input[isARow ? row * 16 + k : k * m + row] =
          floatToHalf(float(a[row * 16 + k]));
  for (int k = 0; k < 16; ++k)
    for (int column = 0; column < n; ++column)
      input[512 + (isBRow ? k * n + column : column * 16 + k)] =
          floatToHalf(float(b[k * n + column]));
  for (int i = 0; i < m * n; ++i) {
    float single = float(c[i]);
    std::uint16_t half = floatToHalf(single);
    if (isSingle)
      std::memcpy(&input[1024 + 2 * i], &single, 4);
    else
      input[1024 + i] = half;
  }
  run.input(input).runCleanly(Interleaving::eager);
  for (int row = 0; row < m; ++row)
    for (int column = 0; column < n; ++column) {
      double sum = c[row * n + column];
      for (int k = 0; k < 16; ++k)
        sum += a[row * 16 + k] * b[k * n + column];
      std::size_t at = row * 40 + column;
      double got = isSingle ? run.result<float>(at)
                            : halfToFloat(run.result<std::uint16_t>(at));
      EXPECT_EQ(got, sum) << shape << " row " << row << " column " << column;
    }
}

TEST(Matrix, WmmaMultipliesEveryShape) {
  for (auto [m, n] : {std::pair(16, 16), std::pair(32, 8), std::pair(8, 32)})
    for (bool isARow : {false, true})
      for (bool isBRow : {false, true})
        for (bool isSingle : {false, true})
          checkWmma(m, n, isARow, isBRow, isSingle);
}

namespace {
struct WmmaForm {
  int m, n, k;
  const char *type, *sum;
  int registersA, registersB, registersD;
};
} // namespace

/// D = A * B + C with A and C by rows, B by columns: A at in, B at in + 2048, C
/// at in + 4096.
static void checkWmmaForm(const WmmaForm &form) {
  auto list = [](char name, int count) {
    std::string text;
    for (int i = 0; i < count; ++i)
      text += fmt::format("{}%{}{}", i ? ", " : "", name, i);
    return "{" + text + "}";
  };
  std::string type = form.type, sum = form.sum;
  int bytes = bitsOf(type) / 8, sumBytes = bitsOf(sum) / 8;
  RunKernel run(fmt::format(
      ".reg .b{9} %a<8>, %b<8>, %c<8>, %d<8>;"
      "wmma.load.a.sync.aligned.row.{0}.global.{1} {3}, [%in];"
      "wmma.load.b.sync.aligned.col.{0}.global.{1} {4}, [%in+2048];"
      "wmma.load.c.sync.aligned.row.{0}.global.{2} {5}, [%in+4096];"
      "wmma.mma.sync.aligned.row.col.{0}{7}.{2}.{1}.{1}.{2} {6}, {3}, {4}, {5};"
      "wmma.store.d.sync.aligned.row.{0}.global.{2} [%out], {6}, {8};",
      fmt::format("m{}n{}k{}", form.m, form.n, form.k), type, sum,
      list('a', form.registersA), list('b', form.registersB),
      list('c', form.registersD), list('d', form.registersD),
      type == "f64" ? ".rn" : "", form.n, bytes == 8 ? 64 : 32));
  std::mt19937 random(form.m + form.k);
  bool isUnsigned = type == "u8";
  auto a = randomMatrix(form.m * form.k, isUnsigned, random);
  auto b = randomMatrix(form.k * form.n, isUnsigned, random);
  auto c = randomMatrix(form.m * form.n, false, random);
  std::vector<std::uint8_t> input(8192);
  auto put = [&](std::size_t at, const std::string &kind, double value) {
    std::uint64_t bits = bitsOf(kind, value);
    std::memcpy(&input[at], &bits, bitsOf(kind) / 8);
  };
  for (int i = 0; i < form.m * form.k; ++i)
    put(i * bytes, type, a[i]);
  for (int k = 0; k < form.k; ++k)
    for (int column = 0; column < form.n; ++column)
      put(2048 + (column * form.k + k) * bytes, type, b[k * form.n + column]);
  for (int i = 0; i < form.m * form.n; ++i)
    put(4096 + i * sumBytes, sum, c[i]);
  run.input(input).runCleanly(Interleaving::eager);
  for (int i = 0; i < form.m * form.n; ++i) {
    double expected = c[i];
    for (int k = 0; k < form.k; ++k)
      expected += a[i / form.n * form.k + k] * b[k * form.n + i % form.n];
    double got = sum == "f64"   ? run.result<double>(i)
                 : sum == "f32" ? run.result<float>(i)
                                : run.result<std::int32_t>(i);
    EXPECT_EQ(got, expected) << type << " element " << i;
  }
}

TEST(Matrix, WmmaMultipliesEveryType) {
  const WmmaForm forms[] = {
      {16, 16, 16, "bf16", "f32", 4, 4, 8}, {32, 8, 16, "bf16", "f32", 8, 2, 8},
      {16, 16, 16, "s8", "s32", 2, 2, 8},   {8, 32, 16, "u8", "s32", 1, 4, 8},
      {16, 16, 8, "tf32", "f32", 4, 4, 8},  {8, 8, 4, "f64", "f64", 1, 1, 2}};
  for (const WmmaForm &form : forms)
    checkWmmaForm(form);
}

TEST(Matrix, WmmaFindsWhatIsWrong) {
  RunKernel unknown(wmmaKernel("m16n16k16", "row", "col", "f32"));
  expectContains(unknown.finding(),
                 "uninitialized-store: a value that depends on bytes nobody "
                 "wrote goes to global memory");
  const std::string load = "wmma.load.c.sync.aligned.row.m16n16k16.global.f16 "
                           "{%r0, %r1, %r2, %r3}, ";
  expectContains(RunKernel(load + "[%x1];").finding(),
                 "uninitialized-address: the address depends on bytes that "
                 "nobody wrote");
  expectContains(RunKernel(load + "[%in+8190];").finding(),
                 "out-of-bounds: an element of wmma.load of 2 bytes at global "
                 "address");
  RunKernel part("setp.lt.u32 %p1, %t, 16; @%p1 " + load + "[%in];");
  expectContains(part.finding(), "16 of 32 lanes reached it");
}

TEST(Matrix, RefusesByReason) {
  expectRefusals({
      {"ldmatrix.sync.aligned.m16n16.x1.shared.b8 {%r, %r}, [%r];",
       "ldmatrix.m16n16.x1 needs .trans"},
      {"ldmatrix.sync.aligned.m8n8.x1.shared.b8 {%r}, [%r];",
       "the modifier .b8 is not known for ldmatrix"},
      {"ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r, %r}, [%r];",
       "2 registers for 4 matrices"},
      {"mma.sync.aligned.m16n8k16.row.col.f32.bf16.f16.f32 {%r, %r, %r, %r}, "
       "{%r, %r, %r, %r}, {%r, %r}, {%r, %r, %r, %r};",
       "these types do not go together"},
      {"mma.sync.aligned.m8n8k4.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, "
       "{%r};",
       "1 registers for D, which has 8"},
      {"mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, "
       "{%r};",
       "A is row-major and B column-major (.row.col)"},
      {"mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r}, {%r}, {%r}, "
       "{%r}, %r, 0;",
       "1 registers for D, which has 4"},
      {"mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%r, %r, %r, %r}, "
       "{%r}, {%r}, {%r, %r, %r, %r};",
       "1 registers for A, which has 2"},
      {"wmma.load.a.sync.aligned.row.m16n16k8.global.f16 {%r}, [%d];",
       "wmma is known as m16n16k16, m32n8k16 and m8n32k16 of f16, bf16, s8 and "
       "u8, m16n16k8 of tf32, m8n8k4 of f64, m8n8k32 of s4 and u4 and "
       "m8n8k128 of b1"},
      {"wmma.load.a.sync.aligned.row.global.bf16 {%r}, [%d];",
       "it names no shape"},
      {"wmma.mma.sync.aligned.row.col.m16n16k16.f32.s8.s8.f32 {%r}, {%r}, "
       "{%r}, {%r};",
       "wmma is known as m16n16k16"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r, %r}, [%d];",
       "a fragment of 8 registers, not 2"},
      {"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r};",
       "wmma.load.a takes 2 to 3 operands (vector, address, optional value), "
       "not 1"},
      {"wmma.fill.sync.aligned {%r};",
       "the modifier .fill is not known for wmma"},
      {"mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%d, %d}, {%r}, {%d}, "
       "{%d, %d};",
       "a register of 4 bytes stands where a value of 8 bytes is expected"},
  });
}

} // namespace kiln::sim
