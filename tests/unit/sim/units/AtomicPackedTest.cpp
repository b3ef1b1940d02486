// AtomicPacked: atom and red of halves, vectors and 128 bits, values of 128
// bits, and what else a CTA's threads do together: bar.red, getctarank,
// mbarrier.pending_count, tensormap.replace.
#include "sim/machine/memory/TensorMapImage.h"
#include "support/Half.h"
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

namespace kiln::sim {

TEST(AtomicPacked, AddsHalvesAndPairs) {
  RunKernel run(".reg .b16 %h<2>;"
                "mov.b16 %h0, 0x3c00;"     // 1 as f16
                "mov.b32 %r1, 0x40003c00;" // {1, 2}
                "red.global.add.noftz.f16 [%out], %h0;"
                "atom.global.add.noftz.f16x2 %r2, [%out+4], %r1;"
                "mov.b32 %r1, 0x40003f80;" // {1, 2} as bf16
                "red.relaxed.gpu.global.add.noftz.bf16x2 [%out+8], %r1;");
  run.output(std::vector<std::uint16_t>(16, 0)).runCleanly(Interleaving::eager);
  EXPECT_EQ(halfToFloat(run.result<std::uint16_t>(0)), 32);
  EXPECT_EQ(halfToFloat(run.result<std::uint16_t>(2)), 32);
  EXPECT_EQ(halfToFloat(run.result<std::uint16_t>(3)), 64);
  EXPECT_EQ(bfloatToFloat(run.result<std::uint16_t>(4)), 32);
  EXPECT_EQ(bfloatToFloat(run.result<std::uint16_t>(5)), 64);
}

TEST(AtomicPacked, AddsVectors) {
  RunKernel run(
      "cvt.rn.f32.u32 %f0, %t; mov.f32 %f1, 0f3f800000;"
      "red.global.add.v2.f32 [%out], {%f0, %f1};"
      "atom.global.add.v4.f32 {%f2, %f3, %f4, %f5}, [%out+16], "
      "{%f1, %f1, %f0, %f0};"
      "mov.b32 %r1, 0x40003c00;"
      "atom.global.max.noftz.v2.f16x2 {%r2, %r3}, [%out+32], {%r1, %r1};"
      // What lane 31 found there: the sums of those before it.
      "setp.eq.u32 %p1, %t, 31;"
      "@%p1 st.global.v4.f32 [%out+64], {%f2, %f3, %f4, %f5};");
  run.output(std::vector<float>(32, 0)).runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<float>(0), 496);
  EXPECT_EQ(run.result<float>(1), 32);
  EXPECT_EQ(run.result<float>(4), 32);
  EXPECT_EQ(run.result<float>(7), 496);
  EXPECT_EQ(run.result<std::uint32_t>(8), 0x40003c00u);
  EXPECT_EQ(run.result<std::uint32_t>(9), 0x40003c00u);
  EXPECT_EQ(run.result<float>(16), 31);
  EXPECT_EQ(run.result<float>(19), 465);
}

TEST(AtomicPacked, SwapsSixteenAndHundredTwentyEightBits) {
  RunKernel run(".reg .b16 %h<3>; .reg .b128 %q<3>;"
                "setp.ne.u32 %p1, %t, 0;"
                "@%p1 bra end;"
                "mov.b16 %h0, 7; mov.b16 %h1, 9;"
                "atom.global.cas.b16 %h2, [%out], %h0, %h1;"
                "atom.global.cas.b16 %h2, [%out+2], %h0, %h1;"
                "mov.b64 %x0, 1; mov.b64 %x1, 2; mov.b64 %x2, 3;"
                "mov.b128 %q0, {%x0, %x1};"
                "mov.b128 %q1, {%x2, %x2};"
                "atom.global.cas.b128 %q2, [%out+16], %q0, %q1;"
                "st.global.b128 [%out+32], %q2;"
                "atom.global.exch.b128 %q2, [%out+16], %q0;"
                "mov.b128 %q0, %q2;"
                "mov.b128 {%x3, %x4}, %q0;"
                "st.global.v2.b64 [%out+48], {%x4, %x3};"
                "ld.global.b128 %q0, [%out+16];"
                "st.global.b128 [%out+64], %q0;"
                "end:");
  std::vector<std::uint64_t> memory(16, 0);
  memory[0] = 7 | 8 << 16;
  memory[2] = 1;
  memory[3] = 2;
  run.output(memory).runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<std::uint16_t>(0), 9);
  EXPECT_EQ(run.result<std::uint16_t>(1), 8);
  const std::uint64_t expected[] = {1, 2, 1, 2, 3, 3, 1, 2};
  for (int i = 0; i < 8; ++i)
    EXPECT_EQ(run.result<std::uint64_t>(2 + i), expected[i]) << i;
}

TEST(AtomicPacked, FindsAndRefuses) {
  expectContains(
      RunKernel("red.global.add.v4.f32 [%out+4], {%f0, %f0, %f0, %f0};")
          .finding(),
      "misaligned: an atomic of 16 bytes at global address");
  expectContains(RunKernel("red.global.add.noftz.f16x2 [%x0], %r0;").finding(),
                 "uninitialized-address");
  expectRefusals({
      {"red.global.inc.noftz.f16x2 [%d], %r;",
       "the operation inc is not one of its type"},
      {"atom.global.exch.b16 %h, [%d], %h;",
       "its type is not one of the operation"},
      {"red.global.add.v2.f32 [%d], {%r, %r, %r, %r, %r};",
       "operand 2 of red.add.v2 is a vector of 5, and must be a vector of 2 of "
       "type .f32"},
  });
}

TEST(BarrierReduction, CountsAndCombines) {
  RunKernel run("setp.lt.u32 %p0, %t, 40;"
                "bar.red.popc.u32 %r1, 0, %p0;"
                "bar.red.and.pred %p1, 0, %p0;"
                "barrier.cta.red.or.aligned.pred %p2, 1, 64, !%p0;"
                "bar.red.and.pred %p3, 2, 64, !%p4;"
                "selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 1, 0, %p2;"
                "selp.u32 %r4, 1, 0, %p3;"
                "mul.wide.u32 %x0, %t, 16; add.u64 %x0, %x0, %out;"
                "st.global.v4.b32 [%x0], {%r1, %r2, %r3, %r4};");
  run.config.block = {64, 1, 1};
  for (Interleaving order : kOrders) {
    run.runCleanly(order);
    for (int thread = 0; thread < 64; ++thread) {
      EXPECT_EQ(run.result<std::uint32_t>(4 * thread), 40u);
      EXPECT_EQ(run.result<std::uint32_t>(4 * thread + 1), 0u);
      EXPECT_EQ(run.result<std::uint32_t>(4 * thread + 2), 1u);
      EXPECT_EQ(run.result<std::uint32_t>(4 * thread + 3), 1u);
    }
  }
}

TEST(ClusterAddress, SaysWhoseItIs) {
  RunKernel run("mapa.shared::cluster.u32 %r0, %s, 1;"
                "getctarank.shared::cluster.u32 %r1, %r0;"
                "getctarank.shared::cluster.u32 %r2, %s;"
                "cvt.u64.u32 %x0, %r0; cvta.shared.u64 %x0, %x0;"
                "getctarank.u64 %r3, %x0;"
                "shl.b32 %r4, %rank, 4; cvt.u64.u32 %x1, %r4;"
                "add.u64 %x1, %x1, %out;"
                "mov.b32 %r5, 0;"
                "st.global.v4.b32 [%x1], {%r1, %r2, %r3, %r5};");
  run.config.cluster = run.config.grid = {2, 1, 1};
  run.runCleanly(Interleaving::eager);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(run.result<std::uint32_t>(4 * rank), 1u);
    EXPECT_EQ(run.result<std::uint32_t>(4 * rank + 1), rank);
    EXPECT_EQ(run.result<std::uint32_t>(4 * rank + 2), 1u);
  }
}

TEST(MbarrierState, HoldsThePendingCount) {
  RunKernel run("setp.ne.u32 %p1, %t, 0;"
                "@%p1 bra end;"
                "mbarrier.init.shared.b64 [%bar], 5;"
                "mbarrier.arrive.shared.b64 %x0, [%bar];"
                "mbarrier.arrive.shared.b64 %x1, [%bar];"
                "mbarrier.pending_count.b64 %r0, %x1;"
                "mbarrier.test_wait.shared.b64 %p2, [%bar], %x0;"
                "selp.u32 %r1, 1, 0, %p2;"
                "st.global.v2.b32 [%out], {%r0, %r1};"
                "end:");
  run.runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<std::uint32_t>(0), 4u);
  EXPECT_EQ(run.result<std::uint32_t>(1), 0u);
}

/// A map made from zeros in shared memory, published, and used for a load.
static std::string madeFromNothing(const std::string &acquire) {
  return std::string(
             "shl.b32 %r0, %t, 2; add.u32 %r0, %r0, %s;"
             "mov.b32 %r1, 0; st.shared.b32 [%r0], %r1;"
             "bar.warp.sync -1;"
             "setp.eq.u32 %p0, %t, 0;"
             "cvt.u64.u32 %x0, %s;"
             "@%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 "
             "[%x0], %in;"
             "@%p0 tensormap.replace.tile.rank.shared::cta.b1024.b32 [%x0], 1;"
             "@%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%x0], "
             "0, 4;"
             "@%p0 tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%x0], "
             "1, 2;"
             "@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 "
             "[%x0], 0, "
             "16;"
             "@%p0 tensormap.replace.tile.global_dim.shared::cta.b1024.b32 "
             "[%x0], 1, "
             "8;"
             "mov.b64 %x1, 64;"
             "@%p0 tensormap.replace.tile.global_stride.shared::cta.b1024.b64 "
             "[%x0], "
             "0, %x1;"
             "@%p0 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 "
             "[%x0], 0, 1;"
             "@%p0 tensormap.replace.tile.element_stride.shared::cta.b1024.b32 "
             "[%x0], 1, 1;"
             "@%p0 tensormap.replace.tile.elemtype.shared::cta.b1024.b32 "
             "[%x0], 7;"
             "@%p0 "
             "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 "
             "[%x0], 0;"
             "@%p0 tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 "
             "[%x0], "
             "0;"
             "@%p0 tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 "
             "[%x0], 0;"
             "bar.warp.sync -1;"
             "add.u64 %x2, %out, 4096;"
             "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic."
             "release."
             "gpu.sync.aligned [%x2], [%x0], 128;") +
         acquire +
         std::string(
             "@%p0 mbarrier.init.shared.b64 [%bar], 1;"
             "fence.mbarrier_init.release.cluster;"
             "bar.sync 0;"
             "mov.b32 %r2, 4; mov.b32 %r3, 2;"
             "@%p0 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 32;"
             "@%p0 cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::"
             "complete_tx::bytes [%s+1024], [%x2, {%r2, %r3}], [%bar];"
             "wait: mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;"
             "@!%p1 bra wait;"
             "setp.lt.u32 %p2, %t, 8;"
             "@%p2 ld.shared.b32 %r4, [%r0+1024];"
             "mul.wide.u32 %x3, %t, 4; add.u64 %x3, %x3, %out;"
             "@%p2 st.global.b32 [%x3], %r4;");
}

TEST(TensorMapReplace, MakesAMapFromNothing) {
  RunKernel run(madeFromNothing(
      "fence.proxy.tensormap::generic.acquire.gpu [%x2], 128;"));
  run.input(counting<std::uint32_t>(128)).runCleanly(Interleaving::eager);
  // Columns 4 to 7 of rows 2 and 3 of 16 columns; the values' bits as they are.
  for (std::uint32_t i = 0; i < 8; ++i)
    EXPECT_EQ(run.result<std::uint32_t>(i), (2 + i / 4) * 16 + 4 + i % 4);
}

TEST(TensorMapReplace, NeedsAFenceBeforeItIsUsed) {
  for (const char *other :
       {"", "fence.proxy.tensormap::generic.acquire.gpu [%x2 + 128], 128;",
        "fence.proxy.async;"}) {
    RunKernel run(madeFromNothing(other));
    run.input(counting<std::uint32_t>(128));
    expectContains(run.finding(),
                   "tensormap-fence: this uses the tensor map at ");
    expectContains(run.finding(),
                   "missing: fence.proxy.tensormap::generic.acquire of the map "
                   "before this");
  }
  // A map that is changed where it lies needs a release too.
  const std::string change =
      "add.u64 %x2, %out, 4096;"
      "tensormap.replace.tile.global_dim.global.b1024.b32 [%x2], 0, 16;";
  const std::string release = "fence.proxy.tensormap::generic.release.gpu;";
  const std::string acquire =
      "fence.proxy.tensormap::generic.acquire.gpu [%x2], 128;";
  auto changed = [&](const std::string &fences) {
    RunKernel run("setp.eq.u32 %p0, %t, 0;"
                  "@%p0 mbarrier.init.shared.b64 [%bar], 1;"
                  "fence.mbarrier_init.release.cluster;"
                  "bar.sync 0; @!%p0 bra done;" +
                  change + fences +
                  "mov.b32 %r2, 0;"
                  "mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 32;"
                  "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::"
                  "complete_tx::bytes [%s], [%x2, {%r2}], [%bar];"
                  "wait: mbarrier.try_wait.parity.shared.b64 %p1, [%bar], 0;"
                  "@!%p1 bra wait;"
                  "done:");
    TensorMap map;
    map.type = Type::u32;
    map.address = run.inputAddress();
    map.dims = {12};
    map.box = {8};
    map.element_strides = {1};
    auto image = encode(map);
    std::vector<std::uint8_t> bytes(4096 + image.size());
    std::memcpy(bytes.data() + 4096, image.data(), image.size());
    run.input(counting<std::uint32_t>(128)).output(bytes);
    return run.finding();
  };
  EXPECT_EQ(changed(release + acquire), "");
  expectContains(changed(acquire),
                 "missing: fence.proxy.tensormap::generic.release behind it");
  expectContains(changed(release), "missing: fence.proxy.tensormap::generic."
                                   "acquire of the map before this");
}

TEST(TensorMapReplace, FindsWhatIsWrong) {
  const std::string zeros = "shl.b32 %r0, %t, 2; add.u32 %r0, %r0, %s;"
                            "mov.b32 %r1, 0; st.shared.b32 [%r0], %r1;"
                            "bar.warp.sync -1; cvt.u64.u32 %x0, %s;";
  expectContains(
      RunKernel(zeros + "tensormap.replace.tile.rank.shared::cta.b1024.b32 "
                        "[%x0], 5;")
          .finding(),
      "tensor-map: 5 cannot be put into the field (index 0), or the bytes are "
      "no tensor map");
  expectContains(
      RunKernel(zeros + "mov.b32 %r1, 1; st.shared.b32 [%r0], %r1;"
                        "bar.warp.sync -1;"
                        "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 "
                        "[%x0], 6;")
          .finding(),
      "or the bytes are no tensor map");
  expectRefusals({
      {"tensormap.replace.tile.swizzle_width.shared::cta.b1024.b32 [%d], 0;",
       "the modifier .swizzle_width is not known for tensormap"},
      {"tensormap.frobnicate [%d];",
       "the modifier .frobnicate is not known for tensormap"},
  });
}

TEST(Video, ComputesWithParts) {
  auto one = [](const char *instruction, std::uint32_t a, std::uint32_t b) {
    RunLanes lanes(".reg .b32 %d, %a, %b, %c;", instruction);
    lanes.set("%a", 0, a).set("%b", 0, b).set("%c", 0, 1000);
    return static_cast<std::uint32_t>(lanes.run().get("%d"));
  };
  EXPECT_EQ(one("vadd.s32.s32.u32 %d, %a.b1, %b.h0;", 0xff00, 0x10005), 4u);
  EXPECT_EQ(one("vsub.u32.u32.u32.sat %d, %a, %b;", 3, 5), 0u);
  EXPECT_EQ(one("vabsdiff.u32.u32.u32.add %d, %a, %b, %c;", 3, 5), 1002u);
  EXPECT_EQ(one("vmax.s32.s32.s32 %d, %a, %b;", 0xffffffff, 5), 5u);
  EXPECT_EQ(one("vshl.u32.u32.u32.wrap %d, %a, %b;", 3, 33), 6u);
  EXPECT_EQ(one("vshr.u32.u32.u32.clamp %d, %a, %b;", 3, 33), 0u);
  EXPECT_EQ(one("vmad.s32.s32.s32 %d, %a.h0, %b.b0, %c;", 0xfffe, 7), 986u);
  EXPECT_EQ(one("vset.u32.u32.lt %d, %a, %b;", 3, 5), 1u);
  EXPECT_EQ(
      one("vadd2.s32.s32.s32.sat %d, %a, %b, %c;", 0x7fff0001, 0x00010002),
      0x7fff0003u);
  EXPECT_EQ(
      one("vabsdiff4.u32.u32.u32.add %d, %a, %b, %c;", 0x01020304, 0x04030201),
      1008u);
  EXPECT_EQ(one("vmin4.u32.u32.u32 %d, %a, %b, %c;", 0x01090304, 0x04030209),
            0x01030204u);
  EXPECT_EQ(one("vavrg2.u32.u32.u32 %d, %a, %b, %c;", 0x00030001, 0x00040001),
            0x00040001u);
}

} // namespace kiln::sim
