// Tcgen05Sparse: sparse products with metadata in tensor memory, laid out by
// the strides that CUTLASS has for them (tmem_e_frg), A shifted by a row, and
// loads that reduce.
#include "support/Half.h"
#include "unit/sim/units/RunTensor.h"

#include <cmath>
#include <random>

namespace kiln::sim {

namespace {
struct Sparse {
  const char *kind, *modifiers;
  int bits;           ///< of an element
  std::uint32_t code; ///< of its type
  std::uint32_t sum;  ///< of D
  int selector = 0;

  int k() const { return 512 / bits; }
  int width() const { return bits == 32 ? 2 : bits == 4 ? 8 : 4; }
};
} // namespace

static constexpr int kM = 128, kN = 64;
static constexpr std::uint32_t kOperandB = 32768, kMetadata = 49152;

static double valueOf(const Sparse &form, std::uint32_t bits) {
  switch (form.bits) {
  case 32:
    return std::bit_cast<float>(bits);
  case 16:
    return halfToFloat(static_cast<std::uint16_t>(bits));
  case 8:
    return form.sum == 2 ? double(static_cast<std::int8_t>(bits))
                         : std::ldexp(1 + (bits & 7) / 8.0,
                                      int(bits >> 3 & 15) - 7) *
                               (bits & 0x80 ? -1 : 1);
  default:
    return std::ldexp(1 + (bits & 1) / 2.0, int(bits >> 1 & 3) - 1) *
           (bits & 8 ? -1 : 1);
  }
}

/// Small numbers that are not zero.
static std::uint32_t drawn(const Sparse &form, std::mt19937 &random) {
  int number = int(random() % 5) + 1;
  if (form.bits == 32)
    return std::bit_cast<std::uint32_t>(float(number));
  if (form.bits == 16)
    return floatToHalf(float(number));
  if (form.bits == 8)
    return form.sum == 2 ? std::uint32_t(number) : 0x38 | random() % 8;
  return 2 | (random() & 9);
}

/// An element of a K-major operand without swizzle, of rows of `rowBytes`.
static void put(std::vector<std::uint8_t> &shared, std::uint32_t base,
                int rowBytes, int row, int k, int bits, std::uint32_t value) {
  int byte = k * bits / 8;
  std::uint32_t at = base + row % 8 * 16 + row / 8 * (8 * rowBytes) +
                     byte % 16 + byte / 16 * 128;
  value <<= k * bits % 8;
  for (int i = 0; i < std::max(bits / 8, 1); ++i)
    shared[at + i] |= static_cast<std::uint8_t>(value >> 8 * i);
}

/// Bit `bit` of what the metadata say of element (m, k): the place of an
/// element, in tensor memory of 128 lanes, is lane + 128 * column.
static void putMetadata(const Sparse &form, std::vector<std::uint8_t> &shared,
                        int m, int group, unsigned nibble) {
  int k = group * form.width(), at;
  if (form.bits == 16)
    at = m % 8 + m / 8 % 2 * 2048 + m / 16 * 16 + k % 16 * 128 + k / 16 * 8;
  else if (form.bits == 32)
    at = m % 8 + m / 8 % 2 * 1024 + m / 16 * 16 + k % 8 * 128 + k / 8 * 8;
  else
    at = m + 128 * k;
  int lane = at % 128, firstBit = at / 128 * 4 / form.width();
  firstBit += 32 * form.selector;
  shared[kMetadata + 8 * lane + firstBit / 8] |=
      static_cast<std::uint8_t>(nibble << firstBit % 8);
}

static std::string bodyOf(const Sparse &form, std::uint32_t idesc) {
  auto descriptor = [](int rowBytes) {
    return std::uint64_t(128 >> 4) << 16 |
           std::uint64_t(8 * rowBytes >> 4) << 32 | std::uint64_t(1) << 46;
  };
  std::string body = fmt::format(
      "shl.b32 %r270, %t, 3; add.u32 %r270, %r270, %s;"
      "ld.shared.v2.b32 {{%r0, %r1}}, [%r270+{}];"
      "tcgen05.st.sync.aligned.32x32b.x2.b32 [%mine+64], {{%r0, %r1}};"
      "mov.u32 %r0, 0x7f7f7f7f;"
      "tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine+68], {{%r0, %r0, %r0, "
      "%r0}}; tcgen05.st.sync.aligned.32x32b.x2.b32 [%mine+72], {{%r0, %r0}};"
      "tcgen05.wait::st.sync.aligned; tcgen05.fence::before_thread_sync;"
      "bar.sync 0; tcgen05.fence::after_thread_sync;"
      "and.b32 %r270, %s, 0x3ffff; shr.u32 %r270, %r270, 4;"
      "cvt.u64.u32 %x0, %r270; or.b64 %x1, %x0, {:#x}; or.b64 %x2, %x0, {:#x};"
      "add.u64 %x2, %x2, {}; mov.u32 %r271, {:#x}; setp.ne.u32 %p0, 0, 0;"
      "@%lead tcgen05.mma.sp.cta_group::1.kind::{}{} [%tmem], %x1, %x2, "
      "[%tmem+64], %r271, {}%p0;"
      "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one."
      "shared::cluster.b64 [%bar];"
      "waiting: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar], 0;"
      "@!%p2 bra waiting; tcgen05.fence::after_thread_sync;"
      "tcgen05.ld.sync.aligned.32x32b.x64.b32 {{{}}}, [%mine];"
      "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %x3, %t, 256;"
      "add.u64 %x3, %x3, %out;",
      kMetadata, descriptor(32), descriptor(64), kOperandB >> 4, idesc,
      form.kind, form.modifiers,
      *form.modifiers ? "[%tmem+68], [%tmem+72], " : "", registerList(0, 64));
  for (int i = 0; i < 64; ++i)
    body += fmt::format("st.global.b32 [%x3+{}], %r{};\n", 4 * i, i);
  return body;
}

static std::uint32_t instructionOf(const Sparse &form) {
  std::uint32_t bits = form.code << 7 | form.code << 10 | 1u << 2 |
                       std::uint32_t(kN / 8) << 17 |
                       std::uint32_t(kM / 16) << 24 |
                       std::uint32_t(form.selector);
  return bits | (*form.modifiers ? 1u << 23 : form.sum << 4);
}

TEST(Tcgen05Sparse, MultipliesEveryKind) {
  for (const Sparse &form : std::initializer_list<Sparse>{
           {"f16", "", 16, 0, 1},
           {"f16", "", 16, 0, 1, 1},
           {"tf32", "", 32, 2, 1},
           {"f8f6f4", "", 8, 0, 1},
           {"i8", "", 8, 1, 2},
           {"mxf8f6f4", ".block_scale.scale_vec::1X", 8, 0, 1},
           {"mxf4", ".block_scale.scale_vec::2X", 4, 1, 1}}) {
    SCOPED_TRACE(form.kind);
    std::mt19937 random(11);
    std::vector<std::uint8_t> shared(kSharedBytes);
    int k = form.k(), width = form.width();
    std::vector<double> a(kM * k), b(kN * k);
    for (int row = 0; row < kM; ++row)
      for (int group = 0; group < k / width; ++group) {
        unsigned low = random() % 3, high = low + 1 + random() % (3 - low);
        unsigned nibble = low | high << 2;
        std::vector<int> columns;
        if (width == 2) {
          columns = {int(random() % 2)};
          nibble = columns[0] ? 0xe : 0x4;
        } else {
          for (unsigned kept : {low, high})
            for (int i = 0; i < width / 4; ++i)
              columns.push_back(int(kept) * (width / 4) + i);
        }
        putMetadata(form, shared, row, group, nibble);
        for (std::size_t i = 0; i < columns.size(); ++i) {
          std::uint32_t bits = drawn(form, random);
          a[row * k + group * width + columns[i]] = valueOf(form, bits);
          put(shared, 0, 32, row, group * width / 2 + int(i), form.bits, bits);
        }
      }
    for (int column = 0; column < kN; ++column)
      for (int i = 0; i < k; ++i) {
        std::uint32_t bits = drawn(form, random);
        b[column * k + i] = valueOf(form, bits);
        put(shared, kOperandB, 64, column, i, form.bits, bits);
      }
    for (Interleaving order : {Interleaving::eager, Interleaving::lazy}) {
      RunTensor run(bodyOf(form, instructionOf(form)), shared, kM * kN);
      std::vector<std::uint32_t> found = run.run(order);
      for (int row = 0; row < kM; ++row)
        for (int column = 0; column < kN; ++column) {
          double sum = 0;
          for (int i = 0; i < k; ++i)
            sum += a[row * k + i] * b[column * k + i];
          std::uint32_t bits = found[row * kN + column];
          double value = form.sum == 2 ? double(std::int32_t(bits))
                                       : double(std::bit_cast<float>(bits));
          ASSERT_EQ(value, sum) << row << " " << column;
        }
    }
  }
}

TEST(Tcgen05Sparse, DescriptorsAndMetadataAreChecked) {
  Sparse form{"f16", "", 16, 0, 1};
  auto finding = [&](std::uint32_t idesc) {
    return RunTensor(bodyOf(form, idesc), {}, kM * kN).finding();
  };
  std::uint32_t idesc = instructionOf(form);
  expectContains(finding(idesc & ~4u), "says that A is not sparse (bit 2)");
  expectContains(finding(idesc | 2), "sparsity selector is 2");
  expectContains(finding((idesc & ~(31u << 24)) | 4u << 24),
                 "M is 64; a sparse product is simulated with 128 rows");
  std::string body = bodyOf(form, idesc);
  body.replace(body.find("[%tmem+64], %r271"), 10, "[%tmem+200]");
  expectContains(RunTensor(body, {}, kM * kN).finding(),
                 "tcgen05-address: the metadata of A");
  // Metadata that are still being stored.
  body = bodyOf(form, idesc);
  std::size_t wait = body.find("tcgen05.wait::st.sync.aligned;");
  body.erase(wait, 30);
  expectContains(RunTensor(body, {}, kM * kN).finding(), "tcgen05");
}

/// A in tensor memory: row r is what lane r + 1 has.
TEST(Tcgen05Sparse, ShiftsRowsOfA) {
  std::vector<std::uint8_t> shared(kSharedBytes);
  // B is 1 where k is 0: D's columns are A's first one.
  for (int column = 0; column < kN; ++column)
    put(shared, kOperandB, 32, column, 0, 16, 0x3c00);
  std::uint32_t idesc = 1u << 4 | std::uint32_t(kN / 8) << 17 | 8u << 24;
  RunTensor run(
      fmt::format(
          ".reg .f32 %f; .reg .b16 %h; cvt.rn.f32.u32 %f, %t;"
          "cvt.rn.f16.f32 %h, %f; mov.b32 %r0, {{%h, %h}}; mov.u32 %r1, 0;"
          "tcgen05.st.sync.aligned.32x32b.x8.b32 [%mine+64], {{%r0, %r1, %r1, "
          "%r1, %r1, %r1, %r1, %r1}}; tcgen05.wait::st.sync.aligned;"
          "tcgen05.fence::before_thread_sync; bar.sync 0;"
          "tcgen05.fence::after_thread_sync; and.b32 %r270, %s, 0x3ffff;"
          "shr.u32 %r270, %r270, 4; cvt.u64.u32 %x0, %r270;"
          "or.b64 %x2, %x0, {:#x}; add.u64 %x2, %x2, {};"
          "mov.u32 %r271, {:#x}; setp.ne.u32 %p0, 0, 0;"
          "@%lead tcgen05.mma.cta_group::1.kind::f16.ashift [%tmem], "
          "[%tmem+64], %x2, %r271, %p0;"
          "@%lead tcgen05.commit.cta_group::1.mbarrier::arrive::one."
          "shared::cluster.b64 [%bar];"
          "waiting: mbarrier.try_wait.parity.shared::cta.b64 %p2, [%bar], 0;"
          "@!%p2 bra waiting; tcgen05.fence::after_thread_sync;"
          "tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r2}}, [%mine+5];"
          "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %x3, %t, 4;"
          "add.u64 %x3, %x3, %out; st.global.b32 [%x3], %r2;",
          std::uint64_t(128 >> 4) << 16 | std::uint64_t(256 >> 4) << 32 |
              std::uint64_t(1) << 46,
          kOperandB >> 4, idesc),
      shared, kM);
  std::vector<std::uint32_t> found = run.run();
  for (int row = 0; row < kM; ++row)
    EXPECT_EQ(std::bit_cast<float>(found[row]), std::min(row + 1, 127));
}

TEST(Tcgen05Sparse, LoadsThatReduce) {
  RunTensor run(
      "cvt.u64.u32 %x0, %t; mul.lo.u32 %r0, %t, 3; neg.s32 %r1, %r0;"
      "mov.u32 %r2, 5; mov.u32 %r3, -2;"
      "tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine], {%r0, %r1, %r2, %r3};"
      "mov.u32 %r4, 0x3f800000; mov.u32 %r5, 0xc0400000; mov.u32 %r6, "
      "0x7fc00000; mov.u32 %r7, 0x40000000;"
      "tcgen05.st.sync.aligned.32x32b.x4.b32 [%mine+8], {%r4, %r5, %r6, %r7};"
      "tcgen05.wait::st.sync.aligned;"
      "tcgen05.ld.red.sync.aligned.32x32b.x4.min.s32 {%r8, %r9, %r10, %r11}, "
      "%r12, [%mine];"
      "tcgen05.ld.red.sync.aligned.32x32b.x4.max.u32 {%r13, %r14, %r15, "
      "%r16}, %r17, [%mine];"
      ".reg .f32 %f<12>;"
      "tcgen05.ld.red.sync.aligned.32x32b.x4.max.abs.f32 {%f0, %f1, %f2, "
      "%f3}, %f4, [%mine+8];"
      "tcgen05.ld.red.sync.aligned.32x32b.x4.min.NaN.f32 {%f5, %f6, %f7, "
      "%f8}, %f9, [%mine+8];"
      "tcgen05.wait::ld.sync.aligned; mul.wide.u32 %x3, %t, 32;"
      "add.u64 %x3, %x3, %out; st.global.v4.b32 [%x3], {%r12, %r17, %r8, "
      "%r11}; st.global.v4.f32 [%x3+16], {%f4, %f9, %f1, %f8};",
      {}, 128 * 8, 1, "sm_103a");
  std::vector<std::uint32_t> found = run.run();
  for (int lane = 0; lane < 128; ++lane) {
    const std::uint32_t *own = &found[lane * 8];
    EXPECT_EQ(std::int32_t(own[0]), std::min(-2, -3 * lane)) << lane;
    EXPECT_EQ(own[1], lane == 0 ? 0xfffffffeu
                                : std::max(std::uint32_t(-3 * lane), ~1u))
        << lane;
    EXPECT_EQ(own[2], std::uint32_t(3 * lane));
    EXPECT_EQ(own[3], ~1u);
    EXPECT_EQ(std::bit_cast<float>(own[4]), 3.0f);
    EXPECT_EQ(own[5], 0x7fffffffu);
    EXPECT_EQ(own[6], 0xc0400000u);
    EXPECT_EQ(own[7], 0x40000000u);
  }
}

} // namespace kiln::sim
