// WideAccess: 256 bits at once, st.bulk, multimem on one device, stores without
// an mbarrier, and memory that a thread allocates on its stack.
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

#include <cmath>

namespace kiln::sim {

TEST(WideAccess, LoadsAndStores256Bits) {
  RunKernel run("shl.b32 %r0, %t, 5; cvt.u64.u32 %x0, %r0;"
                "add.u64 %x1, %in, %x0; add.u64 %x2, %out, %x0;"
                ".reg .b32 %a<8>; .reg .b64 %b<4>;"
                "ld.global.v8.b32 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, "
                "[%x1];"
                "st.global.v8.b32 [%x2], {%a7, %a6, %a5, %a4, %a3, %a2, %a1, "
                "%a0};"
                "ld.global.nc.L2::evict_last.v4.u64 {%b0, %b1, %b2, %b3}, "
                "[%x1];"
                "st.global.L1::no_allocate.v4.b64 [%x2+2048], {%b3, %b2, %b1, "
                "%b0};",
                "sm_100a");
  run.input(counting<std::uint32_t>(256)).runCleanly(Interleaving::eager);
  for (std::uint32_t i = 0; i < 256; ++i)
    EXPECT_EQ(run.result<std::uint32_t>(i), i / 8 * 8 + 7 - i % 8);
  for (std::uint32_t i = 0; i < 128; ++i) {
    std::uint64_t word = i / 4 * 4 + 3 - i % 4;
    EXPECT_EQ(run.result<std::uint64_t>(256 + i),
              (2 * word + 1) << 32 | 2 * word);
  }
}

TEST(WideAccess, IsChecked) {
  auto finding = [](const std::string &address, std::size_t filled = 2048) {
    RunKernel run(".reg .b32 %a<8>; " + address +
                      "ld.global.v8.f32 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, "
                      "%a7}, [%x1]; st.global.b32 [%out], %a7;",
                  "sm_100a");
    run.config.block = {1, 1, 1};
    run.input(counting<std::uint32_t>(filled));
    return run.finding();
  };
  EXPECT_EQ(finding("mov.u64 %x1, %in;"), "");
  expectContains(finding("add.u64 %x1, %in, 16;"),
                 "misaligned: a load of 32 bytes");
  expectContains(finding("add.u64 %x1, %in, 8192;"), "out-of-bounds");
  expectContains(finding("mov.u64 %x1, %in;", 7), "uninitialized-store");
  // Seven of the eight words are another thread's too.
  RunKernel race(".reg .b32 %a<2>; mov.u32 %a0, %t; setp.lt.u32 %p1, %t, 32;"
                 "@%p1 st.global.v8.b32 [%out], {%a0, %a0, %a0, %a0, %a0, %a0, "
                 "%a0, %a0}; @!%p1 st.global.b32 [%out+28], %a0;",
                 "sm_100a");
  race.config.block = {33, 1, 1};
  expectContains(race.finding(), "race");
  EXPECT_NE(refusal(".reg .b64 %a<8>; ld.global.v8.b64 {%a0, %a1, %a2, %a3, "
                    "%a4, %a5, %a6, %a7}, [%d];")
                .find("64 bytes at once; a thread loads or stores at most 32"),
            std::string::npos);
}

TEST(WideAccess, BulkStoresFillWithZeros) {
  RunKernel run("shl.b32 %r0, %t, 3; add.u32 %r1, %s, %r0;"
                "mov.u64 %x0, -1; st.shared.b64 [%r1], %x0; bar.sync 0;"
                "mov.u64 %x1, 48; setp.eq.u32 %p1, %t, 0;"
                "@%p1 st.bulk.weak.shared::cta [%s+16], %x1, 0; bar.sync 0;"
                "ld.shared.b64 %x0, [%r1]; cvt.u64.u32 %x1, %r0;"
                "add.u64 %x1, %out, %x1; st.global.b64 [%x1], %x0;",
                "sm_100a");
  run.runCleanly(Interleaving::eager);
  for (std::size_t i = 0; i < 32; ++i)
    EXPECT_EQ(run.result<std::uint64_t>(i), i >= 2 && i < 8 ? 0 : ~0ull) << i;
  auto finding = [](const std::string &text) {
    RunKernel run("setp.eq.u32 %p1, %t, 0;" + text, "sm_100a");
    run.config.block = {64, 1, 1};
    return run.finding();
  };
  expectContains(finding("mov.u64 %x1, 12; @%p1 st.bulk.shared::cta [%s], %x1, "
                         "0;"),
                 "bulk-size: st.bulk of 12 bytes; its size is a multiple of 8");
  expectContains(finding("mov.u64 %x1, 65536; @%p1 st.bulk.shared::cta [%s], "
                         "%x1, 0;"),
                 "out-of-bounds: st.bulk");
  expectContains(finding("mov.u64 %x1, 16; @%p1 st.bulk [%out], %x1, 0;"),
                 "is not in shared memory");
  expectContains(finding("mov.u64 %x1, 64; @%p1 st.bulk.shared::cta [%s], %x1, "
                         "0; setp.eq.u32 %p2, %t, 40; @%p2 st.shared.b32 "
                         "[%s+56], %t;"),
                 "race");
}

TEST(WideAccess, MultimemIsOneDevice) {
  RunKernel run(".reg .b16 %h<2>;"
                "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r0, [%in+8];"
                "multimem.ld_reduce.weak.global.add.acc::f32.v2.f16x2 {%r1, "
                "%r2}, [%in+16];"
                "multimem.red.relaxed.gpu.global.add.u32 [%out], %r0;"
                "setp.eq.u32 %p1, %t, 0;"
                "@%p1 multimem.st.relaxed.gpu.global.v2.f16x2 [%out+8], {%r1, "
                "%r2};",
                "sm_100a");
  run.input(counting<std::uint32_t>(16))
      .output(std::vector<std::uint32_t>(16, 0))
      .runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<std::uint32_t>(0), 64u);
  EXPECT_EQ(run.result<std::uint32_t>(2), 4u);
  EXPECT_EQ(run.result<std::uint32_t>(3), 5u);
}

TEST(WideAccess, AtomicsOfEightHalves) {
  RunKernel run(".reg .b16 %h; mov.b16 %h, 0x3c00;"
                "red.global.v8.f16.add.noftz [%out], {%h, %h, %h, %h, %h, %h, "
                "%h, %h};");
  run.output(std::vector<std::uint16_t>(16, 0)).runCleanly(Interleaving::eager);
  for (std::size_t i = 0; i < 9; ++i)
    EXPECT_EQ(halfToFloat(run.result<std::uint16_t>(i)), i < 8 ? 32 : 0);
}

/// A value, and behind it a flag that another thread waits for: the store's own
/// release orders them.
TEST(WideAccess, AsynchronousStoresRelease) {
  auto kernel = [](const char *store) {
    return fmt::format("setp.ge.u32 %p1, %t, 32; @%p1 bra reads;"
                       "setp.eq.u32 %p2, %t, 0; @!%p2 bra done;"
                       "mov.u32 %r1, 7; st.global.b32 [%out], %r1;"
                       "mov.u32 %r1, 1; {} bra done;"
                       "reads: ld.acquire.gpu.global.b32 %r2, [%out+128];"
                       "setp.eq.u32 %p3, %r2, 0; @%p3 bra reads;"
                       "ld.global.b32 %r3, [%out]; done:",
                       store);
  };
  for (auto [store, found] :
       {std::pair("st.async.mmio.release.gpu.global.b32 [%out+128], %r1;", ""),
        {"red.async.release.gpu.global.add.u32 [%out+128], %r1;", ""},
        {"st.async.relaxed.gpu.global.b32 [%out+128], %r1;", "race"}}) {
    RunKernel run(kernel(store), "sm_100a");
    run.config.block = {64, 1, 1};
    run.output(std::vector<std::uint32_t>(64, 0));
    std::string finding = run.finding();
    EXPECT_EQ(finding.substr(0, std::strlen(found)), found) << finding;
    EXPECT_EQ(finding.empty(), *found == 0) << finding;
  }
}

TEST(WideAccess, StackMemoryIsTheThreadsOwn) {
  RunKernel run(
      "add.u32 %r0, %t, 1; shl.b32 %r0, %r0, 2; cvt.u64.u32 %x0, %r0;"
      "stacksave.u64 %x3; alloca.u64 %x1, %x0, 16;"
      // Each thread fills its t + 1 words.
      "mov.u32 %r1, 0; mov.u64 %x2, %x1;"
      "fill: st.local.b32 [%x2], %r1; add.u64 %x2, %x2, 4;"
      "add.u32 %r1, %r1, 1; setp.le.u32 %p1, %r1, %t; @%p1 bra fill;"
      "ld.local.b32 %r2, [%x2+-4]; and.b64 %x4, %x1, 15;"
      "stackrestore.u64 %x3; alloca.u64 %x5, %x0;"
      "setp.eq.u64 %p2, %x1, %x5; selp.b32 %r3, 1, 0, %p2;"
      "shl.b32 %r4, %t, 3; cvt.u64.u32 %x6, %r4; add.u64 %x6, %out, %x6;"
      "st.global.v2.b32 [%x6], {%r2, %r3};");
  run.runCleanly(Interleaving::eager);
  for (std::uint32_t i = 0; i < 32; ++i) {
    EXPECT_EQ(run.result<std::uint32_t>(2 * i), i);
    EXPECT_EQ(run.result<std::uint32_t>(2 * i + 1), 1u);
  }
}

TEST(WideAccess, StackMemoryIsChecked) {
  auto finding = [](const std::string &text) {
    return RunKernel("mov.u64 %x0, 64; alloca.u64 %x1, %x0;" + text).finding();
  };
  EXPECT_EQ(finding("st.local.b32 [%x1+60], %t;"), "");
  expectContains(finding("ld.local.b32 %r0, [%x1]; st.global.b32 [%out], %r0;"),
                 "uninitialized-store");
  expectContains(finding("mov.u64 %x2, 0x7fffffff; alloca.u64 %x3, %x2;"),
                 "stack-overflow");
  expectContains(finding("mov.u64 %x2, 4096; stackrestore.u64 %x2;"),
                 "stackrestore to 4096, which is no top");
  // What was given back is nobody's.
  expectContains(finding("stacksave.u64 %x4; alloca.u64 %x2, %x0; st.local.b32 "
                         "[%x2], %t; stackrestore.u64 %x4; alloca.u64 %x2, "
                         "%x0; ld.local.b32 %r0, [%x2]; st.global.b32 [%out], "
                         "%r0;"),
                 "uninitialized-store");
}

TEST(WideAccess, ReduxOfFloats) {
  auto result = [](const std::string &word, std::vector<float> values) {
    RunLanes lanes(".reg .f32 %d, %a; .reg .b32 %m;",
                   fmt::format("mov.u32 %m, -1; redux.sync.{}.f32 %d, %a, %m;",
                               word));
    for (int lane = 0; lane < 32; ++lane)
      lanes.set("%a", lane,
                std::bit_cast<std::uint32_t>(values[lane % values.size()]));
    return std::uint32_t(lanes.run().get("%d", 9));
  };
  auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
  EXPECT_EQ(result("min", {3, -2, 7}), bits(-2));
  EXPECT_EQ(result("max", {3, -20, 7}), bits(7));
  EXPECT_EQ(result("max.abs", {3, -20, 7}), bits(20));
  EXPECT_EQ(result("min", {0.0f, -0.0f}), bits(-0.0f));
  EXPECT_EQ(result("max", {-0.0f, 0.0f}), bits(0.0f));
  EXPECT_EQ(result("max", {1, NAN}), bits(1));
  EXPECT_EQ(result("max.NaN", {1, NAN}), 0x7fffffffu);
  EXPECT_EQ(result("min", {NAN}), 0x7fffffffu);
}

TEST(WideAccess, FmaIgnoresWhatLiesOutside) {
  // 0x7ff7 is what TMA puts where a tensor ends.
  EXPECT_EQ(calculate("fma.rn.oob.f16", "b16 b16 b16 b16",
                      {0x7ff7, 0x4000, 0x4400}),
            0u);
  EXPECT_EQ(calculate("fma.rn.oob.bf16x2", "b32 b32 b32 b32",
                      {0x40007ff7, 0x40004000, 0x3f803f80}),
            0x40a00000u);
  EXPECT_EQ(calculate("fma.rn.oob.relu.f16", "b16 b16 b16 b16",
                      {0xc000, 0x4000, 0x3c00}),
            0u);
  EXPECT_EQ(calculate("mad24.hi.sat.s32", "b32 b32 b32 b32",
                      {0x7fffff, 0x7fffff, 0x7fffffff}),
            0x7fffffffu);
}

} // namespace kiln::sim
