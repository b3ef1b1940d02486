// PracticeProbes: what the text forbids or leaves open and released kernels do.
//
// Each shows that the hardware gives the answer their authors expect: the
// simulator must give it too and call none of them an error.
#include "golden/Probes.h"

namespace kiln::golden {

static TensorMap wordsMap() {
  TensorMap map;
  map.type = Type::u32;
  map.dims = {32, 16};
  map.strides_bytes = {128};
  map.box = {32, 1};
  map.element_strides = {1, 1};
  return map;
}

/// All threads read a slot that the copy engine fills again after a barrier of
/// the CTA: no proxy fence between the reads and the next copy.
static Probe readBeforeCopy() {
  Probe probe{.group = "practice", .name = "read_then_copy_without_fence"};
  probe.ptx = moduleText(1, 1, R"(
.reg .b32 %round, %parity, %a, %n, %sum;
.reg .b64 %g, %state;
.reg .pred %p, %q;
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared::cta.b64 [%smem], 1;
bar.sync 0;
mov.u32 %round, 0;
mov.u32 %sum, 0;
again:
@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%smem], 128;
add.u32 %a, %smem, 1024;
@%q cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%a], [%map0, {0, %round}], [%smem];
and.b32 %parity, %round, 1;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem], %parity;
@!%p bra wait;
mad.lo.u32 %a, %t, 4, %smem;
ld.shared.u32 %n, [%a+1024];
mad.lo.u32 %sum, %sum, 31, %n;
bar.sync 0;
add.u32 %round, %round, 1;
setp.lt.u32 %p, %round, 16;
@%p bra again;
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %sum;
)");
  probe.smemBytes = 2048;
  probe.inputs = {randomBytes(Type::u32, 512, 71, 0, 4294967295.0)};
  probe.maps = {{wordsMap(), 1}};
  probe.outputBytes = 128;
  return probe;
}

/// CTA 0 fills a slot of both CTAs again when both have arrived at its
/// mbarrier, by arrivals of the default scope, which is the CTA.
static Probe plainRemoteArrive() {
  Probe probe{.group = "practice", .name = "plain_remote_arrive"};
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
@!%lead bra consume;
and.b32 %parity, %round, 1;
xor.b32 %parity, %parity, 1;
wait_empty:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem+8], %parity;
@!%p bra wait_empty;
consume:
bar.warp.sync 0xffffffff;
@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, [%smem], 128;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
add.u32 %a, %smem, 1024;
@%lead cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%a], [%map0, {0, %round}], [%smem], %mask;
and.b32 %parity, %round, 1;
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem], %parity;
@!%p bra wait;
mad.lo.u32 %a, %t, 4, %smem;
ld.shared.u32 %n, [%a+1024];
mad.lo.u32 %sum, %sum, 31, %n;
mbarrier.arrive.shared::cluster.b64 _, [%empty];
add.u32 %round, %round, 1;
setp.lt.u32 %p, %round, 16;
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
  probe.inputs = {randomBytes(Type::u32, 512, 72, 0, 4294967295.0)};
  probe.maps = {{wordsMap(), 1}};
  probe.outputBytes = 256;
  return probe;
}

/// Lanes of one warp that write and read shared memory without bar.warp.sync.
static Probe convergedLanes() {
  Probe probe{.group = "practice", .name = "converged_lanes"};
  probe.ptx = moduleText(1, 0, R"(
.reg .b32 %a, %b, %n, %step;
.reg .b64 %g;
.reg .pred %p;
mad.wide.u32 %g, %t, 4, %in1;
ld.global.u32 %n, [%g];
mad.lo.u32 %a, %t, 4, %smem;
mov.u32 %step, 1;
again:
st.volatile.shared.u32 [%a], %n;
add.u32 %b, %t, %step;
and.b32 %b, %b, 31;
mad.lo.u32 %b, %b, 4, %smem;
ld.volatile.shared.u32 %b, [%b];
mad.lo.u32 %n, %n, 31, %b;
shl.b32 %step, %step, 1;
setp.lt.u32 %p, %step, 32;
@%p bra again;
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
)");
  probe.smemBytes = 128;
  probe.inputs = {randomBytes(Type::u32, 32, 73, 0, 4294967295.0)};
  probe.outputBytes = 128;
  return probe;
}

/// Each CTA leaves a number, fences and counts; the last one adds them all up,
/// without an acquire behind the count.
static Probe lastBlock() {
  Probe probe{.group = "practice", .name = "last_block"};
  probe.ptx = moduleText(1, 0, R"(
.reg .b32 %a, %n, %sum, %cta;
.reg .b64 %g;
.reg .pred %p;
mov.u32 %cta, %ctaid.x;
setp.ne.u32 %p, %t, 0;
@%p bra done;
mad.wide.u32 %g, %cta, 4, %in1;
ld.global.u32 %n, [%g+4];
mad.wide.u32 %g, %cta, 4, %out;
st.global.u32 [%g+4], %n;
membar.gl;
atom.global.add.u32 %a, [%in1], 1;
setp.ne.u32 %p, %a, 63;
@%p bra done;
mov.u32 %sum, 0;
mov.u32 %a, 0;
again:
mad.wide.u32 %g, %a, 4, %out;
ld.global.u32 %n, [%g+4];
mad.lo.u32 %sum, %sum, 31, %n;
add.u32 %a, %a, 1;
setp.lt.u32 %p, %a, 64;
@%p bra again;
st.global.u32 [%out], %sum;
done:
)");
  probe.ctas = 64;
  probe.inputs = {randomBytes(Type::u32, 65, 74, 0, 4294967295.0)};
  std::fill_n(probe.inputs[0].begin(), 4, 0);
  probe.outputBytes = 65 * 4;
  return probe;
}

/// Accumulators and fragments written after wgmma.fence: ptxas repairs it.
static Probe writtenAfterFence() {
  Probe probe{.group = "practice", .name = "written_after_wgmma_fence"};
  probe.ptx = moduleText(1, 0, R"(
.reg .b32 %s, %a<4>, %d<4>;
.reg .b64 %g, %x, %desc;
mad.wide.u32 %g, %t, 8, %in1;
ld.global.u64 %x, [%g];
mad.lo.u32 %s, %t, 8, %smem;
st.shared.u64 [%s], %x;
fence.proxy.async.shared::cta;
bar.sync 0;
shr.u32 %s, %smem, 4;
cvt.u64.u32 %desc, %s;
or.b64 %desc, %desc, 0x4000004000010000;
mad.wide.u32 %g, %t, 8, %in1;
wgmma.fence.sync.aligned;
ld.global.v2.u32 {%a0, %a1}, [%g];
mov.u32 %a2, %a1;
mov.u32 %a3, %a0;
mov.u32 %d0, 0x3f800000;
mov.u32 %d1, 0x40000000;
mov.u32 %d2, 0;
mov.u32 %d3, 0;
wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, {%a0, %a1, %a2, %a3}, %desc, 1, 1, 1, 0;
wgmma.commit_group.sync.aligned;
wgmma.wait_group.sync.aligned 0;
mad.wide.u32 %g, %t, 16, %out;
st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};
)");
  probe.threads = 128;
  probe.smemBytes = 1024;
  std::vector<std::uint16_t> halves;
  for (std::uint8_t byte : randomBytes(Type::u8, 512, 75, 0, 6))
    halves.push_back(static_cast<std::uint16_t>(to_bits(Type::f16, byte - 3)));
  probe.inputs = {bytesOf(halves)};
  probe.outputBytes = 2048;
  return probe;
}

/// Accumulators that are read between two products, with no wgmma.fence behind
/// the reads: ptxas puts one in.
static Probe readBetweenProducts() {
  Probe probe = writtenAfterFence();
  probe.name = "read_between_products";
  auto replace = [&](const std::string &from, const std::string &to) {
    probe.ptx.replace(probe.ptx.find(from), from.size(), to);
  };
  const std::string product =
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%d0, %d1, %d2, %d3}, "
      "{%a0, %a1, %a2, %a3}, %desc, 1, 1, 1, 0;\n"
      "wgmma.commit_group.sync.aligned;\n"
      "wgmma.wait_group.sync.aligned 0;\n";
  replace("wgmma.fence.sync.aligned;\n", "");
  replace("wgmma.mma_async", "wgmma.fence.sync.aligned;\nwgmma.mma_async");
  replace("st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};\n",
          "st.global.v4.u32 [%g], {%d0, %d1, %d2, %d3};\n" + product +
              "st.global.v4.u32 [%g+2048], {%d0, %d1, %d2, %d3};\n");
  probe.outputBytes = 4096;
  return probe;
}

/// Threads of two warps store one value to one place, which nothing orders.
static Probe sameValue() {
  Probe probe{.group = "practice", .name = "same_value"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %n;
.reg .b64 %g;
mov.u32 %n, 0x1234567;
st.shared.u32 [%smem], %n;
bar.sync 0;
ld.shared.u32 %n, [%smem];
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
)");
  probe.threads = 64;
  probe.smemBytes = 16;
  probe.outputBytes = 256;
  return probe;
}

/// Two threads initialise one mbarrier with one count before the CTA's barrier.
static Probe doubleInit() {
  Probe probe{.group = "practice", .name = "double_init"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %n;
.reg .b64 %g, %state;
.reg .pred %p, %q;
and.b32 %n, %t, 31;
setp.eq.u32 %q, %n, 0;
@%q mbarrier.init.shared::cta.b64 [%smem], 64;
bar.sync 0;
mbarrier.arrive.shared::cta.b64 %state, [%smem];
wait:
mbarrier.try_wait.parity.shared::cta.b64 %p, [%smem], 0;
@!%p bra wait;
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 1;
selp.u32 %n, 1, 2, %p;
mad.wide.u32 %g, %t, 4, %out;
st.global.u32 [%g], %n;
)");
  probe.threads = 64;
  probe.smemBytes = 8;
  probe.outputBytes = 256;
  return probe;
}

/// Data stored over a live mbarrier, its phases, and the data read again.
static Probe dataOverBarrier() {
  Probe probe{.group = "practice", .name = "data_over_live_barrier"};
  probe.ptx = moduleText(0, 0, R"(
.reg .b32 %n;
.reg .b64 %x, %y, %z, %state;
.reg .pred %p, %q, %r;
setp.ne.u32 %q, %t, 0;
@%q bra done;
mbarrier.init.shared::cta.b64 [%smem], 2;
mov.u64 %x, 0x0123456789abcdef;
st.volatile.shared.u64 [%smem], %x;
mbarrier.arrive.shared::cta.b64 %state, [%smem];
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
selp.u32 %n, 1, 0, %p;
st.global.u32 [%out], %n;
ld.volatile.shared.u64 %y, [%smem];
st.global.u64 [%out+8], %y;
mbarrier.arrive.shared::cta.b64 %state, [%smem];
mbarrier.test_wait.parity.shared::cta.b64 %p, [%smem], 0;
selp.u32 %n, 1, 0, %p;
st.global.u32 [%out+4], %n;
ld.volatile.shared.u64 %z, [%smem];
st.global.u64 [%out+16], %z;
done:
)");
  probe.smemBytes = 8;
  probe.outputBytes = 24;
  return probe;
}

void addPracticeProbes(std::vector<Probe> &list) {
  list.push_back(readBeforeCopy());
  list.push_back(plainRemoteArrive());
  list.push_back(convergedLanes());
  list.push_back(lastBlock());
  list.push_back(writtenAfterFence());
  list.push_back(readBetweenProducts());
  list.push_back(sameValue());
  list.push_back(doubleInit());
  list.push_back(dataOverBarrier());
}

} // namespace kiln::golden
