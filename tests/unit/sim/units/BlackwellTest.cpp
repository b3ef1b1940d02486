// Blackwell: what sm_100 adds beside tensor memory: TMA loads for a pair of
// CTAs, pairs of floats, minima of three, and clusterlaunchcontrol.
#include "sim/machine/memory/TensorMapImage.h"
#include "unit/sim/RunKernel.h"

#include <bit>
#include <cmath>

namespace kiln::sim {

static constexpr const char *kClusterBarrier =
    "barrier.cluster.arrive.release.aligned;\n"
    "barrier.cluster.wait.acquire.aligned;\n";

/// CTA 1 loads 64 bytes into its own shared memory and tells the mbarrier that
/// `barrier` computes in %r0 from %bar.
static RunKernel loadForPair(const std::string &barrier) {
  return RunKernel(fmt::format(R"(
    setp.eq.u32 %p0, %t, 0;
    setp.eq.and.u32 %p1, %rank, 1, %p0;
    setp.eq.and.u32 %p2, %rank, 0, %p0;
    @%p0 mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
    {1}
    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 64;
    {0}
    @%p1 cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2 [tile], [%map, {{0}}], [%r0];
    @!%p2 bra arrived;
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p3, [barrier], 0;
    @!%p3 bra wait;
  arrived:
    {1}
    @%p1 ld.shared.u32 %r3, [tile+12];
    @%p1 st.global.u32 [%out], %r3;
    {1}
  )",
                               barrier, kClusterBarrier),
                   "sm_100a");
}

static void setMap(RunKernel &run) {
  run.config.grid = run.config.cluster = {2, 1, 1};
  TensorMap map = {.type = Type::i32,
                   .address = run.inputAddress(),
                   .dims = {16},
                   .box = {16},
                   .element_strides = {1}};
  auto image = encode(map);
  std::memcpy(run.config.params.data() + 64, image.data(), image.size());
  run.input(counting<std::uint32_t>(16));
}

TEST(Blackwell, ALoadOfOneCtaCountsOnTheOtherOfThePair) {
  RunKernel run = loadForPair("and.b32 %r0, %bar, 0xfeffffff;");
  setMap(run);
  for (Interleaving order : kOrders)
    EXPECT_EQ(run.runCleanly(order).result<std::uint32_t>(0), 3u);
}

TEST(Blackwell, PairsOfFloats) {
  auto bits = [](float low, float high) {
    return std::uint64_t(std::bit_cast<std::uint32_t>(high)) << 32 |
           std::bit_cast<std::uint32_t>(low);
  };
  RunKernel run(R"(
    ld.global.v2.b64 {%x0, %x1}, [%in];
    ld.global.b64 %x2, [%in+16];
    add.rn.f32x2 %x3, %x0, %x1;
    st.global.b64 [%out], %x3;
    sub.rn.f32x2 %x3, %x0, %x1;
    st.global.b64 [%out+8], %x3;
    mul.rn.ftz.f32x2 %x3, %x0, %x1;
    st.global.b64 [%out+16], %x3;
    fma.rn.f32x2 %x3, %x0, %x1, %x2;
    st.global.b64 [%out+24], %x3;
  )",
                "sm_100a");
  run.config.block = {1, 1, 1};
  run.input(std::vector<std::uint64_t>{bits(1.5f, 1e-30f), bits(4, 1e-10f),
                                       bits(0.25f, 3)});
  run.runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<std::uint64_t>(0), bits(5.5f, 1e-30f + 1e-10f));
  EXPECT_EQ(run.result<std::uint64_t>(1), bits(-2.5f, 1e-30f - 1e-10f));
  EXPECT_EQ(run.result<std::uint64_t>(2), bits(6, 0)); // flushed
  EXPECT_EQ(run.result<std::uint64_t>(3), bits(6.25f, 3));
}

TEST(Blackwell, SumsOfFloatsAndHalves) {
  RunKernel run(R"(
    .reg .b16 %half, %bfloat;
    mov.b16 %half, 0x3e00;
    mov.b16 %bfloat, 0x4040;
    mov.f32 %f0, 0f3fa00000;
    add.rn.f32.f16 %f1, %half, %f0;
    st.global.f32 [%out], %f1;
    sub.rn.f32.bf16 %f1, %bfloat, %f0;
    st.global.f32 [%out+4], %f1;
    fma.rn.f32.bf16 %f1, %bfloat, %bfloat, %f0;
    st.global.f32 [%out+8], %f1;
    add.rz.sat.f32.bf16 %f1, %bfloat, %f0;
    st.global.f32 [%out+12], %f1;
  )",
                "sm_100a");
  run.config.block = {1, 1, 1};
  run.runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<float>(0), 1.5f + 1.25f);
  EXPECT_EQ(run.result<float>(1), 3 - 1.25f);
  EXPECT_EQ(run.result<float>(2), 9 + 1.25f);
  EXPECT_EQ(run.result<float>(3), 1);
}

TEST(Blackwell, TheLargestOfThree) {
  const char *body = R"(
    max.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%out], %f3;
    min.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%out+4], %f3;
    max.abs.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%out+8], %f3;
    mov.f32 %f1, 0f7fc00000;
    max.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%out+12], %f3;
    max.NaN.f32 %f3, %f0, %f1, %f2;
    st.global.f32 [%out+16], %f3;
  )";
  std::string values = "mov.f32 %f0, 0f40000000; mov.f32 %f1, 0fc0800000; "
                       "mov.f32 %f2, 0f3f800000;\n"; // 2, -4, 1
  RunKernel run(values + body, "sm_100a");
  run.config.block = {1, 1, 1};
  run.runCleanly(Interleaving::eager);
  EXPECT_EQ(run.result<float>(0), 2.0f);
  EXPECT_EQ(run.result<float>(1), -4.0f);
  EXPECT_EQ(run.result<float>(2), 4.0f);
  EXPECT_EQ(run.result<float>(3), 2.0f);
  EXPECT_TRUE(std::isnan(run.result<float>(4)));
}

TEST(Blackwell, NoClusterIsLeftToCancel) {
  RunKernel run(R"(
    .reg .b128 %q;
    setp.eq.u32 %p0, %t, 0;
    @!%p0 bra end;
    mbarrier.init.shared::cta.b64 [barrier], 1;
    fence.mbarrier_init.release.cluster;
    fence.proxy.async;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [barrier], 16;
    clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [barrier];
  wait:
    mbarrier.try_wait.parity.shared::cta.b64 %p1, [barrier], 0;
    @!%p1 bra wait;
    ld.shared.b128 %q, [tile];
    clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p2, %q;
    clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %r1, %q;
    selp.u32 %r0, 1, 7, %p2;
    st.global.u32 [%out], %r0;
    st.global.u32 [%out+4], %r1;
  end:
  )",
                "sm_100a");
  for (Interleaving order : kOrders) {
    EXPECT_EQ(run.runCleanly(order).result<std::uint32_t>(0), 7u);
    EXPECT_EQ(run.result<std::uint32_t>(1), 0u);
  }
}

} // namespace kiln::sim
