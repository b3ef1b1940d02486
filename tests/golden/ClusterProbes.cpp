// ClusterProbes: two CTAs that copy, store and arrive at each other.
#include "golden/Probes.h"

namespace kiln::golden {

/// A poisoned tile of 2 KiB at 1024 in both CTAs, an mbarrier for one arrival
/// at 0, and both CTAs know of them. %own is the rank, %peer the other one.
static const char *kBegin = R"(
.reg .b32 %i, %a, %b, %n, %own, %peer, %far, %tile;
.reg .b16 %mask;
.reg .b64 %g, %state;
.reg .pred %p, %q, %r;
mov.u32 %own, %cluster_ctarank;
xor.b32 %peer, %own, 1;
mov.u32 %i, %t;
fill:
mad.lo.u32 %a, %i, 4, %smem;
mad.lo.u32 %b, %own, 0x10000, %i;
st.shared.u32 [%a+1024], %b;
add.u32 %i, %i, 32;
setp.lt.u32 %p, %i, 512;
@%p bra fill;
fence.proxy.async.shared::cta;
setp.eq.u32 %q, %t, 0;
@%q mbarrier.init.shared::cta.b64 [%smem], 1;
fence.mbarrier_init.release.cluster;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
add.u32 %tile, %smem, 1024;
)";

static const char *kWait = R"(
wait:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, [%smem], 0;
@!%p bra wait;
)";

/// Both tiles to the output, and nobody leaves before the other is done.
static const char *kEnd = R"(
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
mov.u32 %i, %t;
copy:
mad.lo.u32 %a, %i, 4, %smem;
ld.shared.u32 %b, [%a+1024];
mad.lo.u32 %n, %own, 512, %i;
mad.wide.u32 %g, %n, 4, %out;
st.global.u32 [%g], %b;
add.u32 %i, %i, 32;
setp.lt.u32 %p, %i, 512;
@%p bra copy;
barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
)";

static Probe clusterProbe(const std::string &name, const std::string &middle,
                          bool hasMap) {
  Probe probe{.group = "cluster", .name = name};
  probe.ptx = moduleText(1, hasMap ? 1 : 0, kBegin + middle + kEnd);
  probe.ctas = 2;
  probe.cluster = 2;
  probe.smemBytes = 4096;
  probe.inputs = {randomBytes(Type::u32, 1024, 61, 0, 4294967295.0)};
  if (hasMap) {
    TensorMap map;
    map.type = Type::u32;
    map.dims = {28, 30};
    map.strides_bytes = {128};
    map.box = {16, 8};
    map.element_strides = {1, 1};
    map.swizzle = Swizzle::b64;
    probe.maps = {{map, 1}};
  }
  probe.outputBytes = 4096;
  probe.rowBytes = 512;
  return probe;
}

/// Each CTA expects what `bytes` says, by rank.
static std::string expect(int first, int second) {
  return fmt::format("setp.eq.u32 %r, %own, 0;\n"
                     "selp.u32 %n, {}, {}, %r;\n"
                     "@%q mbarrier.arrive.expect_tx.shared::cta.b64 %state, "
                     "[%smem], %n;\n",
                     first, second);
}

static std::string tensorLoad(int mask, int x, int y, int offset) {
  return fmt::format("mov.u16 %mask, {};\n"
                     "add.u32 %a, %tile, {};\n"
                     "@%q cp.async.bulk.tensor.2d.shared::cluster.global."
                     "mbarrier::complete_tx::bytes.multicast::cluster [%a], "
                     "[%map0, {{{}, {}}}], [%smem], %mask;\n",
                     mask, offset, x, y);
}

void addClusterProbes(std::vector<Probe> &list) {
  const std::string onlyFirst = "setp.eq.and.u32 %q, %own, 0, %q;\n";
  for (int mask = 1; mask <= 3; ++mask)
    for (int x : {4, 16, -8})
      list.push_back(
          clusterProbe(fmt::format("multicast_{}_x{}", mask, x),
                       expect(mask & 1 ? 512 : 0, mask & 2 ? 512 : 0) +
                           onlyFirst + tensorLoad(mask, x, 3, 512) + kWait,
                       true));
  list.push_back(clusterProbe(
      "multicast_both",
      expect(1024, 1024) + "setp.eq.u32 %r, %own, 0;\n@!%r bra second;\n" +
          tensorLoad(3, 0, 0, 0) + "bra join;\nsecond:\n" +
          tensorLoad(3, 4, 24, 512) + "join:\n" + kWait,
      true));
  list.push_back(clusterProbe(
      "bulk_multicast",
      expect(256, 256) + onlyFirst +
          "mov.u16 %mask, 3;\n"
          "@%q cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
          "bytes.multicast::cluster [%tile], [%in1], 256, [%smem], %mask;\n" +
          kWait,
      false));
  list.push_back(clusterProbe(
      "bulk_to_peer",
      expect(256, 256) +
          "mapa.shared::cluster.u32 %a, %tile, %peer;\n"
          "mapa.shared::cluster.u32 %far, %smem, %peer;\n"
          "@%q cp.async.bulk.shared::cluster.shared::cta.mbarrier::"
          "complete_tx::bytes [%a+512], [%tile], 256, [%far];\n" +
          kWait,
      false));
  list.push_back(clusterProbe(
      "st_async",
      expect(128, 128) +
          "mad.lo.u32 %b, %t, 4, %tile;\n"
          "mapa.shared::cluster.u32 %a, %b, %peer;\n"
          "mapa.shared::cluster.u32 %far, %smem, %peer;\n"
          "mad.lo.u32 %n, %own, 100, %t;\n"
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 "
          "[%a], %n, [%far];\n" +
          kWait,
      false));
  list.push_back(clusterProbe("remote_access",
                              "mad.lo.u32 %b, %t, 4, %tile;\n"
                              "mapa.shared::cluster.u32 %a, %b, %peer;\n"
                              "ld.shared::cluster.u32 %n, [%a];\n"
                              "mul.lo.u32 %n, %n, 3;\n"
                              "st.shared::cluster.u32 [%a+512], %n;\n"
                              "atom.shared::cluster.add.u32 %n, [%a+1024], 5;\n"
                              "st.shared.u32 [%b+256], %n;\n",
                              false));
  list.push_back(clusterProbe(
      "remote_arrive",
      "mapa.shared::cluster.u32 %far, %smem, %peer;\n"
      "@%q mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%far];\n" +
          std::string(kWait),
      false));
}

} // namespace kiln::golden
