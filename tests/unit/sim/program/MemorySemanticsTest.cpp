// MemorySemantics: semantics and scopes that modifiers and opcodes stand for.
#include "sim/units/Units.h"

#include <gtest/gtest.h>

namespace kiln::sim {

static MemorySemantics semanticsOf(const std::string &instruction) {
  ptx::Module module = ptx::parse(
      ".version 8.6\n.target sm_90a\n.address_size 64\n"
      ".visible .entry test()\n{\n.reg .b32 %r<4>;\n.reg .b64 %d<4>;\n"
      ".reg .pred %p;\n" +
      instruction + "\nret;\n}\n");
  const ptx::Instruction &first = module.functions.at(0).body.at(0);
  return instructionSet().find(first.opcode)->traits.semantics(first);
}

TEST(MemorySemantics, PlainAccessesAreWeak) {
  EXPECT_FALSE(semanticsOf("ld.global.b32 %r1, [%d1];").isStrong);
  EXPECT_FALSE(semanticsOf("st.shared.b32 [%r2], %r1;").isStrong);
}

TEST(MemorySemantics, OrderedAccessesAreStrong) {
  MemorySemantics load =
      semanticsOf("ld.acquire.cluster.global.b32 %r1, [%d1];");
  EXPECT_TRUE(load.isStrong && load.isAcquire && !load.isRelaxed);
  EXPECT_EQ(load.scope, Scope::cluster);
  MemorySemantics store = semanticsOf("st.volatile.global.b32 [%d1], %r1;");
  EXPECT_TRUE(store.isStrong && store.isRelaxed && !store.isAtomic);
  EXPECT_EQ(store.scope, Scope::gpu);
}

TEST(MemorySemantics, AtomicsAreRelaxedAndOfTheGpuUnlessTheySay) {
  MemorySemantics plain = semanticsOf("atom.global.add.u32 %r1, [%d1], 1;");
  EXPECT_TRUE(plain.isStrong && plain.isRelaxed && plain.isReturning);
  EXPECT_EQ(plain.scope, Scope::gpu);
  MemorySemantics red = semanticsOf("red.release.cta.global.add.u32 [%d1], 1;");
  EXPECT_TRUE(red.isAtomic && red.isRelease && !red.isReturning);
  EXPECT_EQ(red.scope, Scope::cta);
  MemorySemantics both =
      semanticsOf("atom.acq_rel.sys.global.add.u32 %r1, [%d1], 1;");
  EXPECT_TRUE(both.isAcquire && both.isRelease && !both.isRelaxed);
}

TEST(MemorySemantics, BarriersReleaseAndAcquireUnlessTheyAreRelaxed) {
  MemorySemantics arrive = semanticsOf("mbarrier.arrive.shared.b64 _, [%r1];");
  EXPECT_TRUE(arrive.isRelease && !arrive.isAcquire);
  EXPECT_EQ(arrive.scope, Scope::cta);
  MemorySemantics wait = semanticsOf(
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p, "
      "[%r1], 0;");
  EXPECT_TRUE(wait.isAcquire && !wait.isRelease);
  EXPECT_EQ(wait.scope, Scope::cluster);
  EXPECT_TRUE(semanticsOf("barrier.cluster.arrive.aligned;").isRelease);
  EXPECT_FALSE(
      semanticsOf("barrier.cluster.arrive.relaxed.aligned;").isRelease);
  EXPECT_EQ(semanticsOf("membar.cta;").scope, Scope::cta);
  EXPECT_EQ(semanticsOf("membar.gl;").scope, Scope::gpu);
  EXPECT_EQ(semanticsOf("fence.acq_rel.cluster;").scope, Scope::cluster);
}

} // namespace kiln::sim
