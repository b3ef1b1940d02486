// ReleasedProbes: more that kernels of others rely on: who is waited for at a
// barrier, counters that are set back, stores and slots that are handed on.
//
// As in PracticeProbes, the simulator must give the hardware's answer and call
// none of them an error.
#include "golden/Probes.h"

namespace kiln::golden {

/// Threads that have left are not waited for: 300 of 512 come to the barrier.
static Probe exitedThreads() {
  Probe probe{.group = "practice", .name = "exited_threads_at_a_barrier"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %a, %n;
.reg .b64 %g;
.reg .pred %p;
setp.ge.u32 %p, %t, 300;
@%p bra done;
mad.lo.u32 %a, %t, 4, %smem;
mad.lo.u32 %n, %t, 77, 5;
st.shared.u32 [%a], %n;
bar.sync 0;
sub.u32 %n, 299, %t;
mad.lo.u32 %a, %n, 4, %smem;
ld.shared.u32 %n, [%a];
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
done:
)");
  probe.threads = 512;
  probe.smemBytes = 1200;
  probe.outputBytes = 1200;
  return probe;
}

/// Half of the threads write shared and global memory and leave; the others
/// meet without them, and read.
static Probe exitAsArrival() {
  Probe probe{.group = "practice", .name = "exit_as_arrival"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %a, %n, %m;
.reg .b64 %g;
.reg .pred %p;
mad.lo.u32 %a, %t, 4, %smem;
mad.wide.u32 %g, %t, 4, %out;
setp.lt.u32 %p, %t, 256;
@%p bra stay;
mad.lo.u32 %n, %t, 77, 5;
st.shared.u32 [%a], %n;
st.global.u32 [%g], %t;
bra done;
stay:
bar.sync 0;
ld.shared.u32 %n, [%a+1024];
ld.global.u32 %m, [%g+1024];
add.u32 %n, %n, %m;
st.global.u32 [%g], %n;
done:
)");
  probe.threads = 512;
  probe.smemBytes = 2048;
  probe.outputBytes = 2048;
  return probe;
}

/// Lanes of each warp come to a barrier by two paths: to one instruction, or,
/// where `isSplit`, to one of two.
static Probe twoPaths(bool isSplit) {
  Probe probe{.group = "practice",
              .name = isSplit ? "two_instructions_of_a_barrier"
                              : "two_paths_to_a_barrier"};
  const char *joined = R"(
@%p bra odd;
st.shared.u32 [%a], %t;
bra meet;
odd:
mad.lo.u32 %n, %t, 3, 1;
st.shared.u32 [%a], %n;
meet:
bar.sync 0;
)";
  const char *split = R"(
@%p bra odd;
st.shared.u32 [%a], %t;
bar.sync 0;
bra meet;
odd:
mad.lo.u32 %n, %t, 3, 1;
st.shared.u32 [%a], %n;
bar.sync 0;
meet:
)";
  probe.ptx = moduleText(0, 0,
                         std::string(R"(
.reg .b32 %a, %n;
.reg .b64 %g;
.reg .pred %p;
and.b32 %n, %t, 1;
setp.ne.u32 %p, %n, 0;
mad.lo.u32 %a, %t, 4, %smem;
)") + (isSplit ? split : joined) +
                             R"(
xor.b32 %n, %t, 33;
mad.lo.u32 %a, %n, 4, %smem;
ld.shared.u32 %n, [%a];
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
)");
  probe.threads = 64;
  probe.smemBytes = 256;
  probe.outputBytes = 256;
  return probe;
}

/// Each CTA leaves a number and counts; the last one sets the counter back with
/// a plain store: the atomics come before it, since its own has seen them.
static Probe counterReset() {
  Probe probe{.group = "practice", .name = "counter_reset"};
  probe.ptx = moduleText(1, 0, R"(
.reg .b32 %a, %cta;
.reg .b64 %g;
.reg .pred %p;
mov.u32 %cta, %ctaid.x;
setp.ne.u32 %p, %t, 0;
@%p bra done;
mad.wide.u32 %g, %cta, 4, %out;
st.global.u32 [%g+4], %cta;
fence.acq_rel.gpu;
atom.relaxed.gpu.global.add.u32 %a, [%in1], 1;
setp.ne.u32 %p, %a, 63;
@%p bra done;
fence.acq_rel.gpu;
st.global.u32 [%in1], 0;
st.global.u32 [%out], %a;
done:
)");
  probe.ctas = 64;
  probe.inputs = {Bytes(4, 0)};
  probe.outputBytes = 65 * 4;
  return probe;
}

/// A bulk store that was committed, and whose thread leaves at once.
static Probe storeAtExit() {
  Probe probe{.group = "practice", .name = "bulk_store_at_exit"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %a, %n, %cta;
.reg .b64 %g;
.reg .pred %p;
mov.u32 %cta, %ctaid.x;
mad.lo.u32 %n, %cta, 1000, %t;
mad.lo.u32 %a, %t, 4, %smem;
st.shared.u32 [%a], %n;
fence.proxy.async.shared::cta;
bar.sync 0;
setp.ne.u32 %p, %t, 0;
@%p bra done;
mad.wide.u32 %g, %cta, 1024, %out;
cp.async.bulk.global.shared::cta.bulk_group [%g], [%smem], 1024;
cp.async.bulk.commit_group;
done:
)");
  probe.ctas = 512;
  probe.threads = 256;
  probe.smemBytes = 1024;
  probe.outputBytes = std::size_t(512) * 1024;
  return probe;
}

/// Tiles that cp.async brought and a wgmma multiplies, with a wait and a
/// barrier between and no proxy fence.
static Probe asyncCopyThenProduct() {
  Probe probe{.group = "practice", .name = "cp_async_then_wgmma"};
  probe.ptx = moduleText(1, 0, R"(
.reg .b32 %s, %d<4>;
.reg .b64 %g, %x, %y;
mad.wide.u32 %g, %t, 16, %in1;
mad.lo.u32 %s, %t, 16, %smem;
cp.async.cg.shared.global [%s], [%g], 16;
cp.async.cg.shared.global [%s+2048], [%g+2048], 16;
cp.async.wait_all;
bar.sync 0;
shr.u32 %s, %smem, 4;
cvt.u64.u32 %x, %s;
or.b64 %x, %x, 0x1000080000;
add.u64 %y, %x, 128;
wgmma.fence.sync.aligned;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, %x, %y, 0, 1, 1, 0, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %g, %t, 16, %out;
st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};
)");
  probe.threads = 128;
  probe.smemBytes = 4096;
  std::vector<std::uint16_t> halves;
  for (std::uint8_t byte : randomBytes(Type::u8, 2048, 76, 0, 6))
    halves.push_back(static_cast<std::uint16_t>(to_bits(Type::f16, byte - 3)));
  probe.inputs = {bytesOf(halves)};
  probe.outputBytes = 2048;
  return probe;
}

/// As plain_remote_arrive, and nothing else between the CTAs: the slot goes
/// back by arrivals of the default scope alone.
static Probe remoteArriveAlone() {
  Probe probe{.group = "practice", .name = "plain_remote_arrive_alone"};
  probe.ptx = moduleText(1, 1, R"(
.reg .b32 %round, %parity, %a, %n, %sum, %own, %empty;
.reg .b16 %mask;
.reg .b64 %g, %state;
.reg .pred %p, %q, %lead;
mov.u32 %own, %cluster_ctarank;
setp.eq.u32 %q, %t, 0;
setp.eq.and.u32 %lead, %own, 0, %q;
@%q mbarrier.init.shared::cta.b64 [%smem], 1;
@%q mbarrier.init.shared::cta.b64 [%smem+8], 64;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %empty, %smem, 8;
mapa.shared::cluster.u32 %empty, %empty, 0;
mov.u32 %round, 0;
mov.u32 %sum, 0;
mov.u16 %mask, 3;
again:
@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%smem], 128;
@!%lead bra consume;
and.b32 %parity, %round, 1;
xor.b32 %parity, %parity, 1;
wait_empty:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem+8], %parity;
@!%p bra wait_empty;
add.u32 %a, %smem, 1024;
cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%map0, {0, %round}], [%smem], %mask;
consume:
bar.warp.sync 0xffffffff;
and.b32 %parity, %round, 1;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem], %parity;
@!%p bra wait;
mad.lo.u32 %a, %t, 4, %smem;
ld.shared.u32 %n, [%a+1024];
mad.lo.u32 %sum, %sum, 31, %n;
mbarrier.arrive.shared::cluster.b64 _, [%empty];
add.u32 %round, %round, 1;
setp.lt.u32 %p, %round, 256;
@%p bra again;
mad.lo.u32 %n, %own, 32, %t;
mad.wide.u32 %g, %n, 4, %out;
st.global.u32 [%g], %sum;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
)");
  probe.ctas = 2;
  probe.cluster = 2;
  probe.smemBytes = 2048;
  TensorMap map;
  map.type = Type::u32;
  map.dims = {32, 256};
  map.strides_bytes = {128};
  map.box = {32, 1};
  map.element_strides = {1, 1};
  probe.inputs = {randomBytes(Type::u32, 8192, 77, 0, 4294967295.0)};
  probe.maps = {{map, 1}};
  probe.outputBytes = 256;
  return probe;
}

/// Pairs of halves compared into masks, and numbers without digits on one side
/// of the point.
static Probe pairMasks() {
  Probe probe{.group = "conversion", .name = "set_pairs_into_masks"};
  probe.ptx = moduleText(2, 0, R"(
.reg .b32 %a, %b, %d<4>;
.reg .f32 %f<3>;
.reg .b64 %g;
mad.wide.u32 %g, %t, 4, %in1;
ld.global.u32 %a, [%g];
mad.wide.u32 %g, %t, 4, %in2;
ld.global.u32 %b, [%g];
set.gt.u32.f16x2 %d0, %a, %b;
set.leu.s32.f16x2 %d1, %a, %b;
set.ne.u32.bf16x2 %d2, %a, %b;
mov.f32 %f0, 2.;
mov.f32 %f1, .5;
fma.rn.f32 %f2, %f0, %f0, %f1;
mov.b32 %d3, %f2;
mad.wide.u32 %g, %t, 16, %out;
st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};
)");
  std::vector<std::uint16_t> left, right;
  const std::uint16_t edges[] = {0x0000, 0x8000, 0x3c00, 0xbc00, 0x7c00,
                                 0xfc00, 0x7e00, 0x0001, 0x3c01};
  for (int i = 0; i < 64; ++i) {
    left.push_back(edges[i % 9]);
    right.push_back(edges[i / 9 % 9]);
  }
  probe.inputs = {bytesOf(left), bytesOf(right)};
  probe.outputBytes = 512;
  return probe;
}

void addReleasedProbes(std::vector<Probe> &list) {
  list.push_back(exitedThreads());
  list.push_back(exitAsArrival());
  list.push_back(twoPaths(/*isSplit=*/false));
  list.push_back(twoPaths(/*isSplit=*/true));
  list.push_back(counterReset());
  list.push_back(storeAtExit());
  list.push_back(asyncCopyThenProduct());
  list.push_back(remoteArriveAlone());
  list.push_back(pairMasks());
}

} // namespace kiln::golden
