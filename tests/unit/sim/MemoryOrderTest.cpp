// MemoryOrder: semantics and scopes that modifiers and opcodes stand for.
#include "sim/program/MemorySemantics.h"
#include "ptx/Ast.h"

#include <gtest/gtest.h>

namespace kiln::sim {

static MemoryOrder orderOf(const std::string &instruction) {
  ptx::Module module = ptx::parse(
      ".version 8.6\n.target sm_90a\n.address_size 64\n"
      ".visible .entry test()\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
      ".reg .pred %p;\n" +
      instruction + "\nret;\n}\n");
  return memoryOrder(module.functions.at(0).body.at(0));
}

TEST(MemoryOrder, PlainAccessesAreWeak) {
  EXPECT_FALSE(orderOf("ld.global.b32 %r1, [%d1];").isStrong);
  EXPECT_FALSE(orderOf("st.shared.b32 [%r2], %r1;").isStrong);
}

TEST(MemoryOrder, OrderedAccessesAreStrong) {
  MemoryOrder load = orderOf("ld.acquire.cluster.global.b32 %r1, [%d1];");
  EXPECT_TRUE(load.isStrong && load.isAcquire && !load.isRelaxed);
  EXPECT_EQ(load.scope, Scope::cluster);
  MemoryOrder store = orderOf("st.volatile.global.b32 [%d1], %r1;");
  EXPECT_TRUE(store.isStrong && store.isRelaxed && !store.isAtomic);
  EXPECT_EQ(store.scope, Scope::gpu);
}

TEST(MemoryOrder, AtomicsAreRelaxedAndOfTheGpuUnlessTheySay) {
  MemoryOrder plain = orderOf("atom.global.add.u32 %r1, [%d1], 1;");
  EXPECT_TRUE(plain.isStrong && plain.isRelaxed && plain.isReturning);
  EXPECT_EQ(plain.scope, Scope::gpu);
  MemoryOrder red = orderOf("red.release.cta.global.add.u32 [%d1], 1;");
  EXPECT_TRUE(red.isAtomic && red.isRelease && !red.isReturning);
  EXPECT_EQ(red.scope, Scope::cta);
  MemoryOrder both = orderOf("atom.acq_rel.sys.global.add.u32 %r1, [%d1], 1;");
  EXPECT_TRUE(both.isAcquire && both.isRelease && !both.isRelaxed);
}

TEST(MemoryOrder, BarriersReleaseAndAcquireUnlessTheyAreRelaxed) {
  MemoryOrder arrive = orderOf("mbarrier.arrive.shared.b64 _, [%r1];");
  EXPECT_TRUE(arrive.isRelease && !arrive.isAcquire);
  EXPECT_EQ(arrive.scope, Scope::cta);
  MemoryOrder wait =
      orderOf("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, "
              "[%r1], 0;");
  EXPECT_TRUE(wait.isAcquire && !wait.isRelease);
  EXPECT_EQ(wait.scope, Scope::cluster);
  EXPECT_TRUE(orderOf("barrier.cluster.arrive.aligned;").isRelease);
  EXPECT_FALSE(orderOf("barrier.cluster.arrive.relaxed.aligned;").isRelease);
  EXPECT_EQ(orderOf("membar.cta;").scope, Scope::cta);
  EXPECT_EQ(orderOf("membar.gl;").scope, Scope::gpu);
  EXPECT_EQ(orderOf("fence.acq_rel.cluster;").scope, Scope::cluster);
}

} // namespace kiln::sim
