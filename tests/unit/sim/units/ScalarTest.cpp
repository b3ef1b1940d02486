// Scalar: integers, logic, bits, comparisons and moves at their edges.
#include "unit/sim/units/RunLanes.h"

#include <random>

namespace kiln::sim {

static std::uint32_t calculate32(const std::string &instruction,
                                 std::initializer_list<std::uint64_t> values) {
  std::string types = "b32";
  for (std::size_t i = 0; i < values.size(); ++i)
    types += " b32";
  return static_cast<std::uint32_t>(calculate(instruction, types, values));
}

static std::uint64_t calculate64(const std::string &instruction,
                                 std::initializer_list<std::uint64_t> values) {
  std::string types = "b64";
  for (std::size_t i = 0; i < values.size(); ++i)
    types += " b64";
  return calculate(instruction, types, values);
}

TEST(Scalar, AddsAndWraps) {
  EXPECT_EQ(calculate32("add.u32", {0xffffffff, 2}), 1u);
  EXPECT_EQ(calculate64("sub.s64", {0, 1}), ~0ull);
  EXPECT_EQ(calculate("add.s16", "b16 b16 b16", {0x7fff, 1}), 0x8000u);
  EXPECT_EQ(calculate("sub.u16", "b16 b16 b16", {0, 1}), 0xffffu);
  EXPECT_EQ(calculate32("add.sat.s32", {0x7fffffff, 1}), 0x7fffffffu);
  EXPECT_EQ(calculate32("sub.sat.s32", {0x80000000, 1}), 0x80000000u);
  EXPECT_EQ(calculate32("add.u16x2", {0x0001ffff, 0x00010001}), 0x00020000u);
}

TEST(Scalar, Multiplies) {
  EXPECT_EQ(calculate32("mul.lo.u32", {0x10001, 0x10001}), 0x20001u);
  EXPECT_EQ(calculate32("mul.hi.u32", {0xffffffff, 0xffffffff}), 0xfffffffeu);
  EXPECT_EQ(calculate32("mul.hi.s32", {0xffffffff, 0xffffffff}), 0u);
  EXPECT_EQ(calculate("mul.wide.s32", "b64 b32 b32", {0xffffffff, 2}),
            ~0ull - 1);
  EXPECT_EQ(calculate("mul.wide.u16", "b32 b16 b16", {0xffff, 0xffff}),
            0xfffe0001u);
  EXPECT_EQ(calculate64("mul.hi.u64", {~0ull, ~0ull}), ~0ull - 1);
  EXPECT_EQ(calculate64("mul.hi.s64", {~0ull, ~0ull}), 0u);
  EXPECT_EQ(calculate32("mad.lo.s32", {3, 0xffffffff, 10}), 7u);
  EXPECT_EQ(
      calculate("mad.wide.u32", "b64 b32 b32 b64", {0xffffffff, 0xffffffff, 1}),
      0xfffffffe00000002ull);
  EXPECT_EQ(calculate32("mad.hi.u32", {0x80000000, 4, 1}), 3u);
  EXPECT_EQ(calculate32("mul24.lo.u32", {0xff000003, 5}), 15u);
  EXPECT_EQ(calculate32("mul24.hi.s32", {0x00ffffff, 0x00010000}), 0xffffffffu);
  EXPECT_EQ(calculate32("sad.s32", {0xffffffff, 1, 5}), 7u);
}

TEST(Scalar, Divides) {
  EXPECT_EQ(calculate32("div.s32", {std::uint32_t(-7), 2}), std::uint32_t(-3));
  EXPECT_EQ(calculate32("rem.s32", {std::uint32_t(-7), 2}), std::uint32_t(-1));
  EXPECT_EQ(calculate32("div.u32", {7, 0}), 0xffffffffu);
  EXPECT_EQ(calculate32("div.s32", {0x80000000, 0xffffffff}), 0x80000000u);
  EXPECT_EQ(calculate32("rem.s32", {0x80000000, 0xffffffff}), 0u);
  EXPECT_EQ(calculate64("div.u64", {1ull << 63, 3}), (1ull << 63) / 3);
}

TEST(Scalar, SignsAndExtremes) {
  EXPECT_EQ(calculate32("abs.s32", {0x80000000}), 0x80000000u);
  EXPECT_EQ(calculate32("neg.s32", {5}), std::uint32_t(-5));
  EXPECT_EQ(calculate("abs.s16", "b16 b16", {0xffff}), 1u);
  EXPECT_EQ(calculate32("min.s32", {0xffffffff, 1}), 0xffffffffu);
  EXPECT_EQ(calculate32("min.u32", {0xffffffff, 1}), 1u);
  EXPECT_EQ(calculate32("max.relu.s32", {0xffffffff, 0xfffffff0}), 0u);
  EXPECT_EQ(calculate32("max.s16x2", {0xffff0005, 0x00010004}), 0x00010005u);
}

TEST(Scalar, CarriesThroughWords) {
  RunLanes lanes(".reg .b32 %a, %b, %c, %d, %lo, %hi, %bl, %bh;",
                 "add.cc.u32 %lo, %a, %c; addc.u32 %hi, %b, %d;"
                 "sub.cc.u32 %bl, %a, %c; subc.u32 %bh, %b, %d;");
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint64_t x = 0xfffffff0ull + lane + (5ull << 32);
    std::uint64_t y = 0x100000007ull * lane;
    lanes.set("%a", lane, x & 0xffffffff).set("%b", lane, x >> 32);
    lanes.set("%c", lane, y & 0xffffffff).set("%d", lane, y >> 32);
  }
  lanes.run();
  for (int lane = 0; lane < kLanes; ++lane) {
    std::uint64_t x = 0xfffffff0ull + lane + (5ull << 32);
    std::uint64_t y = 0x100000007ull * lane;
    EXPECT_EQ(lanes.get("%hi", lane) << 32 | lanes.get("%lo", lane), x + y);
    EXPECT_EQ(lanes.get("%bh", lane) << 32 | lanes.get("%bl", lane), x - y);
  }
}

TEST(Scalar, MultipliesWideThroughCarry) {
  RunLanes lanes(".reg .b32 %a, %b, %lo, %hi, %x, %y;",
                 "mad.lo.cc.u32 %lo, %a, %b, %x; madc.hi.u32 %hi, %a, %b, %y;");
  lanes.set("%a", 0, 0xffffffff).set("%b", 0, 0xffffffff);
  lanes.set("%x", 0, 0xffffffff).set("%y", 0, 0).run();
  std::uint64_t expected = 0xffffffffull * 0xffffffffull + 0xffffffffull;
  EXPECT_EQ(lanes.get("%hi") << 32 | lanes.get("%lo"), expected);
}

TEST(Scalar, ShiftsClamp) {
  EXPECT_EQ(calculate32("shl.b32", {1, 31}), 0x80000000u);
  EXPECT_EQ(calculate32("shl.b32", {1, 32}), 0u);
  EXPECT_EQ(calculate32("shr.u32", {0x80000000, 33}), 0u);
  EXPECT_EQ(calculate32("shr.s32", {0x80000000, 33}), 0xffffffffu);
  EXPECT_EQ(calculate("shl.b16", "b16 b16 b32", {0xffff, 4}), 0xfff0u);
  EXPECT_EQ(calculate("shr.s16", "b16 b16 b32", {0x8000, 20}), 0xffffu);
  EXPECT_EQ(calculate("shl.b64", "b64 b64 b32", {1, 63}), 1ull << 63);
  EXPECT_EQ(calculate("shr.u64", "b64 b64 b32", {~0ull, 64}), 0u);
  EXPECT_EQ(calculate32("shf.l.wrap.b32", {0x80000000, 1, 33}), 3u);
  EXPECT_EQ(calculate32("shf.l.clamp.b32", {0x12345678, 1, 33}), 0x12345678u);
  EXPECT_EQ(calculate32("shf.r.wrap.b32", {0, 1, 1}), 0x80000000u);
  EXPECT_EQ(calculate32("shf.r.clamp.b32", {0, 77, 32}), 77u);
}

TEST(Scalar, Logic) {
  EXPECT_EQ(calculate32("and.b32", {12, 10}), 8u);
  EXPECT_EQ(calculate32("or.b32", {12, 10}), 14u);
  EXPECT_EQ(calculate64("xor.b64", {12, 10}), 6u);
  EXPECT_EQ(calculate("not.b16", "b16 b16", {1}), 0xfffeu);
  EXPECT_EQ(calculate32("cnot.b32", {0}), 1u);
  for (unsigned table : {0x00u, 0x80u, 0x96u, 0xe8u, 0xcau, 0xffu}) {
    RunLanes lanes(".reg .b32 %a, %b, %c, %d;",
                   fmt::format("lop3.b32 %d, %a, %b, %c, {};", table));
    lanes.set("%a", 0, 0xf0).set("%b", 0, 0xcc).set("%c", 0, 0xaa).run();
    EXPECT_EQ(lanes.get("%d") & 0xff, table);
  }
}

TEST(Scalar, PredicateLogic) {
  RunLanes lanes(".reg .pred %p, %q, %x, %n, %m;",
                 "xor.pred %x, %p, %q; not.pred %n, %p; mov.pred %m, %q;"
                 "and.pred %p, %p, !%q;");
  lanes.setPred("%p", 0xff00ff00).setPred("%q", 0xf0f0f0f0).run();
  EXPECT_EQ(lanes.pred("%x"), 0xff00ff00u ^ 0xf0f0f0f0u);
  EXPECT_EQ(lanes.pred("%n"), 0x00ff00ffu);
  EXPECT_EQ(lanes.pred("%m"), 0xf0f0f0f0u);
  EXPECT_EQ(lanes.pred("%p"), 0x0f000f00u);
}

TEST(Scalar, Permutes) {
  std::uint32_t a = 0x33221180, b = 0x77665544;
  EXPECT_EQ(calculate32("prmt.b32", {a, b, 0x7531}), 0x77553311u);
  EXPECT_EQ(calculate32("prmt.b32", {a, b, 0x8888}), 0xffffffffu);
  EXPECT_EQ(calculate32("prmt.b32.f4e", {a, b, 3}), 0x66554433u);
  EXPECT_EQ(calculate32("prmt.b32.b4e", {a, b, 0}), 0x55667780u);
  EXPECT_EQ(calculate32("prmt.b32.rc8", {a, b, 2}), 0x22222222u);
  EXPECT_EQ(calculate32("prmt.b32.ecl", {a, b, 2}), 0x33222222u);
  EXPECT_EQ(calculate32("prmt.b32.ecr", {a, b, 1}), 0x11111180u);
  EXPECT_EQ(calculate32("prmt.b32.rc16", {a, b, 1}), 0x33223322u);
}

/// bfe as PTX's text defines it, bit by bit.
static std::uint32_t bitField(std::uint32_t a, int position, int length,
                              bool isSigned) {
  int top = std::min(position + length - 1, 31);
  std::uint32_t sign = isSigned && length ? a >> top & 1 : 0, result = 0;
  for (int i = 0; i < 32; ++i) {
    bool isInside = i < length && position + i <= 31;
    result |= (isInside ? a >> (position + i) & 1 : sign) << i;
  }
  return result;
}

TEST(Scalar, BitFields) {
  std::uint32_t a = 0x9abcdef1;
  for (int position : {0, 1, 7, 31, 32, 40})
    for (int length : {0, 1, 5, 31, 32, 60}) {
      EXPECT_EQ(calculate32("bfe.u32", {a, std::uint64_t(position),
                                        std::uint64_t(length)}),
                bitField(a, position, length, false));
      EXPECT_EQ(calculate32("bfe.s32", {a, std::uint64_t(position),
                                        std::uint64_t(length)}),
                bitField(a, position, length, true))
          << position << " " << length;
    }
  EXPECT_EQ(calculate32("bfi.b32", {0xff, 0x12345678, 8, 4}), 0x12345f78u);
  EXPECT_EQ(calculate32("bfi.b32", {0xff, 0, 28, 8}), 0xf0000000u);
  EXPECT_EQ(calculate32("bfi.b32", {0xff, 5, 32, 8}), 5u);
}

TEST(Scalar, CountsBits) {
  EXPECT_EQ(calculate32("clz.b32", {0}), 32u);
  EXPECT_EQ(calculate("clz.b64", "b32 b64", {1}), 63u);
  EXPECT_EQ(calculate("popc.b64", "b32 b64", {~0ull}), 64u);
  EXPECT_EQ(calculate32("brev.b32", {0x1}), 0x80000000u);
  EXPECT_EQ(calculate64("brev.b64", {0x3}), 0xc000000000000000ull);
  EXPECT_EQ(calculate32("bfind.u32", {0x10}), 4u);
  EXPECT_EQ(calculate32("bfind.s32", {0xffffffff}), 0xffffffffu);
  EXPECT_EQ(calculate32("bfind.shiftamt.u32", {0x10}), 27u);
  EXPECT_EQ(calculate32("fns.b32", {0xaa, 3, 2}), 5u);
  EXPECT_EQ(calculate32("fns.b32", {0xaa, 3, 0xffffffff}), 3u);
  EXPECT_EQ(calculate32("bmsk.clamp.b32", {4, 8}), 0xff0u);
  EXPECT_EQ(calculate32("szext.clamp.s32", {0x8, 4}), 0xfffffff8u);
  EXPECT_EQ(calculate32("dp4a.s32.s32", {0xff02ff02, 0x01010101, 10}), 12u);
  EXPECT_EQ(calculate32("dp4a.u32.u32", {0xff000000, 0xff000000, 0}), 65025u);
  EXPECT_EQ(calculate32("dp2a.hi.s32.u32", {0xffff0002, 0x02030000, 0}), 4u);
}

TEST(Scalar, ComparesIntegers) {
  RunLanes lanes(".reg .b32 %a, %b; .reg .pred %lt, %ge, %lo, %p, %q, %c;",
                 "setp.lt.s32 %lt|%ge, %a, %b; setp.lo.u32 %lo, %a, %b;"
                 "setp.eq.xor.b32 %p|%q, %a, %b, %c;");
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, std::uint32_t(lane - 16)).set("%b", lane, 3);
  lanes.setPred("%c", 0xffff0000).run();
  EXPECT_EQ(lanes.pred("%lt"), 0x0007ffffu);
  EXPECT_EQ(lanes.pred("%ge"), 0xfff80000u);
  EXPECT_EQ(lanes.pred("%lo"), 0x00070000u);
  EXPECT_EQ(lanes.pred("%p"), 0xffff0000u ^ 0x00080000u);
  EXPECT_EQ(lanes.pred("%q"), 0xffff0000u ^ 0xfff7ffffu);
}

TEST(Scalar, ComparesFloats) {
  struct Case {
    const char *name;
    LaneMask expected; ///< of (1,2), (2,2), (3,2), (NaN,2), (-0,+0)
  };
  for (Case test : {Case{"eq", 0b10010},
                    {"ne", 0b00101},
                    {"lt", 0b00001},
                    {"le", 0b10011},
                    {"gt", 0b00100},
                    {"ge", 0b10110},
                    {"equ", 0b11010},
                    {"neu", 0b01101},
                    {"ltu", 0b01001},
                    {"leu", 0b11011},
                    {"gtu", 0b01100},
                    {"geu", 0b11110},
                    {"num", 0b10111},
                    {"nan", 0b01000}}) {
    RunLanes lanes(".reg .f32 %a, %b; .reg .pred %p;",
                   fmt::format("setp.{}.f32 %p, %a, %b;", test.name));
    float a[] = {1, 2, 3, NAN, -0.0f}, b[] = {2, 2, 2, 2, 0};
    for (int lane = 0; lane < 5; ++lane) {
      lanes.set("%a", lane, std::bit_cast<std::uint32_t>(a[lane]));
      lanes.set("%b", lane, std::bit_cast<std::uint32_t>(b[lane]));
    }
    EXPECT_EQ(lanes.run().pred("%p") & 31, test.expected) << test.name;
  }
}

TEST(Scalar, ComparesPairsAndSets) {
  RunLanes lanes(".reg .b32 %a, %b, %d, %s; .reg .pred %p, %q;",
                 "setp.lt.f16x2 %p|%q, %a, %b; set.lt.f16x2.f16x2 %d, %a, %b;"
                 "set.eq.u32.s32 %s, %a, %a;");
  // {low 1, high 2} against {low 2, high 1}
  lanes.set("%a", 0, 0x40003c00).set("%b", 0, 0x3c004000).run();
  EXPECT_EQ(lanes.pred("%p") & 1, 1u);
  EXPECT_EQ(lanes.pred("%q") & 1, 0u);
  EXPECT_EQ(lanes.get("%d"), 0x00003c00u);
  EXPECT_EQ(lanes.get("%s"), 0xffffffffu);
}

TEST(Scalar, Selects) {
  RunLanes lanes(".reg .b32 %a, %b, %d; .reg .b64 %x, %y, %z; .reg .pred %p;"
                 ".reg .f32 %f; .reg .b32 %e;",
                 "selp.b32 %d, %a, %b, %p; selp.b64 %z, %x, %y, !%p;"
                 "slct.b32.f32 %e, %a, %b, %f;");
  lanes.set("%a", 1, 7).set("%b", 1, 8).set("%x", 1, 1ull << 40);
  lanes.set("%y", 1, 2).set("%f", 1, 0x80000000).setPred("%p", 2).run();
  EXPECT_EQ(lanes.get("%d", 1), 7u);
  EXPECT_EQ(lanes.get("%z", 1), 2u);
  EXPECT_EQ(lanes.get("%e", 1), 7u) << "-0 >= 0";
}

TEST(Scalar, PacksAndUnpacks) {
  RunLanes lanes(
      ".reg .b64 %w, %v; .reg .b32 %lo, %hi, %t; .reg .b16 %h0, %h1, %h2, %h3;",
      "mov.b64 {%lo, %hi}, %w; mov.b64 {%h0, %h1, %h2, %h3}, %w;"
      "mov.b32 %t, {%h3, %h0}; mov.b64 %v, {%hi, %lo};");
  lanes.set("%w", 5, 0x1111222233334444ull).run();
  EXPECT_EQ(lanes.get("%lo", 5), 0x33334444u);
  EXPECT_EQ(lanes.get("%hi", 5), 0x11112222u);
  EXPECT_EQ(lanes.get("%h2", 5), 0x2222u);
  EXPECT_EQ(lanes.get("%t", 5), 0x44441111u);
  EXPECT_EQ(lanes.get("%v", 5), 0x3333444411112222ull);
}

TEST(Scalar, WritesActiveLanesAlone) {
  RunLanes lanes(".reg .b32 %a; .reg .pred %p;", "@%p add.u32 %a, %a, 1;");
  for (int lane = 0; lane < kLanes; ++lane)
    lanes.set("%a", lane, 10);
  lanes.setPred("%p", 0x80000001).run();
  for (int lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(lanes.get("%a", lane), lane == 0 || lane == 31 ? 11u : 10u);
}

TEST(Scalar, RefusesByReason) {
  expectRefusals({
      {"add.u32 %r, %d, 1;", "operand 2 of add is the register %d of type "
                             ".b64, and must be a value of type .u32"},
      {"add.u32 %r, %r;", "add takes 3 operands (result, value, value), not 2"},
      {"add.odd.u32 %r, %r, 1;", "the modifier .odd is not known for add"},
      {"add.u32 3, %r, 1;",
       "operand 1 of add is an integer, and must be a register of type .u32"},
      {"add.f32x4 %d, %d, %d;", "the modifier .f32x4 is not known for add"},
      {"add.u8 %r, %r, 1;", "the modifier .u8 is not known for add"},
      {"bfe.u16 %h, %h, 1, 1;", "the modifier .u16 is not known for bfe"},
      {"add.sat.u32 %r, %r, 1;", ".sat needs .s32"},
      {"mad.lo.sat.s32 %r, %r, 1, 2;", ".sat needs .hi and .s32"},
      {"mul.wide.u64 %d, %d, %d;",
       "the modifier .u64 is not known for mul.wide"},
      {"mad.wide.u64 %d, %d, %d, %d;",
       "the modifier .u64 is not known for mad.wide"},
      {"neg.u32 %r, %r;", "the modifier .u32 is not known for neg"},
      {"lop3.b32 %r, %r, %r, %r, %r;",
       "operand 5 of lop3 is the register %r of type .b32, and must be an "
       "integer constant"},
      {"dp4a.u32 %r, %r, %r, %r;", "dp4a takes 2 types, not 1"},
      {"setp.u32 %p, %r, %r;", "setp needs one of .eq .ne .lt"},
      {"setp.equ.u32 %p, %r, %r;", "integers have no unordered comparison"},
      {"setp.lt.odd.u32 %p, %r, %r;",
       "the modifier .odd is not known for setp"},
      {"set.lt.f64.u32 %d, %r, %r;", "set gives u16 s16 u32 s32 f16 bf16 f32"},
      {"set.lt.u32 %r, %r, %r;", "set.lt takes 2 types, not 1"},
      {"set.lt.f32.f16x2 %r, %r, %r;",
       "a pair is compared into a pair of its type, or into the masks of a u32 "
       "or s32"},
      {"slct.b32.u32 %r, %r, %r, %r;", "its selector is s32 or f32"},
      {"mov.b128 %d, %d;", "operand 1 of mov is the register %d of type .b64, "
                           "and must be a register of type .b128"},
      {"vadd2.s32.s32.s32 %r, %r.h01, %r, %r;",
       "values of its operands in another order"},
      {"vadd.s32.s32.s32 %r, %r.b7, %r;", "the selector .b7 is none of"},
      {"mov.b32 {%h, %h}, {%h, %h};",
       "operand 2 of mov is a vector of 2, and must be a value of type .b32"},
      {"mov.b64 {%h, %h, %h}, %d;",
       "operand 1 of mov is a vector of 3, and must be a register of type .b64 "
       "or a vector of the parts of type .b64"},
  });
}

/// One instruction on random lanes against the host.
template <typename T>
static void compareLanes(const std::string &instruction, T (*expected)(T, T)) {
  std::string type = sizeof(T) == 8 ? "b64" : sizeof(T) == 4 ? "b32" : "b16";
  RunLanes lanes(fmt::format(".reg .{} %a, %b, %d;", type),
                 instruction + " %d, %a, %b;");
  std::mt19937_64 random(11);
  T a[kLanes], b[kLanes];
  for (int lane = 0; lane < kLanes; ++lane) {
    // Small and large values alike, never zero.
    a[lane] = T(random() >> (random() % 64));
    b[lane] = T(random() >> (random() % 64)) | 1;
    using U = std::make_unsigned_t<T>;
    lanes.set("%a", lane, U(a[lane])).set("%b", lane, U(b[lane]));
  }
  lanes.run();
  for (int lane = 0; lane < kLanes; ++lane)
    EXPECT_EQ(T(lanes.get("%d", lane)), expected(a[lane], b[lane]))
        << instruction << " " << +a[lane] << " " << +b[lane];
}

TEST(Scalar, RandomLanesAgreeWithTheHost) {
  using S16 = std::int16_t;
  using U16 = std::uint16_t;
  using S64 = std::int64_t;
  using U64 = std::uint64_t;
  compareLanes<U16>("add.u16", [](U16 a, U16 b) { return U16(a + b); });
  compareLanes<S16>("mul.lo.s16", [](S16 a, S16 b) { return S16(a * b); });
  compareLanes<S16>("mul.hi.s16",
                    [](S16 a, S16 b) { return S16(a * b >> 16); });
  compareLanes<U16>("div.u16", [](U16 a, U16 b) { return U16(a / b); });
  compareLanes<S64>("max.s64", [](S64 a, S64 b) { return a > b ? a : b; });
  compareLanes<U64>("rem.u64", [](U64 a, U64 b) { return a % b; });
  compareLanes<U64>("mul.lo.u64", [](U64 a, U64 b) { return a * b; });
  compareLanes<S64>("mul.hi.s64",
                    [](S64 a, S64 b) { return S64((__int128(a) * b) >> 64); });
  compareLanes<U64>("and.b64", [](U64 a, U64 b) { return a & b; });
}

} // namespace kiln::sim
