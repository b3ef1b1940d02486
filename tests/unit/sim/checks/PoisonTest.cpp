// Poison: bytes that nobody wrote, on their way through registers and memory.
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

namespace kiln::sim {

namespace {
/// One instruction on unwritten bits of %a, %b and %c.
struct Case {
  std::string instruction; ///< of %d, %a, %b, %c, all of `bits`
  std::uint64_t a, badA, b, badB;
  std::uint64_t expected; ///< bits of %d that are unwritten
  int bits = 32;
};
} // namespace

static std::uint64_t poisonOf(const Case &one) {
  RunLanes lanes(fmt::format(".reg .b{} %d, %a, %b, %c;", one.bits),
                 one.instruction);
  lanes.set("%a", 3, one.a).setPoisonBits("%a", 3, one.badA);
  lanes.set("%b", 3, one.b).setPoisonBits("%b", 3, one.badB);
  lanes.run();
  EXPECT_EQ(lanes.poison("%d") & ~8u, 0u) << one.instruction;
  return lanes.poisonBits("%d", 3);
}

TEST(Poison, GoesWhereTheBitsGo) {
  const Case cases[] = {
      {"mov.b32 %d, %a;", 0, 0xff00, 0, 0, 0xff00},
      {"shl.b32 %d, %a, 8;", 0, 0xff00, 0, 0, 0xff0000},
      {"shl.b32 %d, %a, 4;", 0, 0xff00, 0, 0, 0xffff00},
      {"shl.b32 %d, %a, 32;", 0, 0xff00, 0, 0, 0},
      {"shr.u32 %d, %a, 8;", 0, 0xff00, 0, 0, 0xff},
      {"shr.u32 %d, %a, 16;", 0, 0xff00, 0, 0, 0},
      {"shr.s32 %d, %a, 8;", 0, 0xff000000, 0, 0, 0xffff0000},
      {"shl.b32 %d, %a, %b;", 0, 0, 8, 0xff, 0xffffffff}, // by how much?
      {"not.b32 %d, %a;", 0, 0xff00, 0, 0, 0xff00},
      {"and.b32 %d, %a, %b;", 0, 0xff00, 0xffff00ff, 0, 0},
      {"and.b32 %d, %a, %b;", 0, 0xff00, 0x00001000, 0, 0xff00},
      {"and.b32 %d, %a, %b;", 0, 0xff00, 0, 0xff00, 0xff00},
      {"or.b32 %d, %a, %b;", 0, 0xffff, 0x000000ff, 0, 0xff00},
      {"xor.b32 %d, %a, %b;", 0, 0xff, 0, 0xff00, 0xffff},
      {"xor.b32 %d, %a, %a;", 5, 0xffffffff, 0, 0, 0}, // zero, whatever it is
      {"lop3.b32 %d, %a, %b, %c, 0xc0;", 0, 0xff, 0, 0xff00, 0},      // a & b
      {"lop3.b32 %d, %a, %b, %c, 0xfc;", 0, 0xff, 0, 0xff00, 0xffff}, // a | b
      {"prmt.b32 %d, %a, %b, 0x5140;", 0, 0xff00, 0, 0xff, 0xffff00},
      {"prmt.b32 %d, %a, %b, 0x7632;", 0, 0xffff, 0, 0, 0},
      {"shf.r.wrap.b32 %d, %a, %b, 16;", 0, 0xffff, 0, 0xff, 0xff0000},
      {"bfe.u32 %d, %a, 8, 8;", 0, 0xff00ff, 0, 0, 0},
      {"bfe.s32 %d, %a, 8, 8;", 0, 0xff00, 0, 0, 0xffffffff},
      {"bfi.b32 %d, %a, %b, 8, 8;", 0, 0, 0, 0xff00, 0},
      {"bfi.b32 %d, %a, %b, 8, 8;", 0, 0xff, 0, 0, 0xff00},
      {"brev.b32 %d, %a;", 0, 0xff, 0, 0, 0xff000000},
      {"cvt.u32.u8 %d, %a;", 0, 0xffffff00, 0, 0, 0},
      {"cvt.s32.s16 %d, %a;", 0, 0xff00, 0, 0, 0xffffff00},
      {"cvt.s32.s16 %d, %a;", 0, 0xff, 0, 0, 0xff},
      {"add.u32 %d, %a, %b;", 0, 0xff00, 0, 0, 0xffffff00},
      {"mul.lo.u32 %d, %a, %b;", 0, 0xff00, 3, 0, 0xffffff00},
      {"mul.hi.u32 %d, %a, %b;", 0, 0xff00, 3, 0, 0xffffffff},
      {"add.f32 %d, %a, %b;", 0, 0xff00, 0, 0, 0xffffffff},
      {"add.f16x2 %d, %a, %b;", 0, 0xff00, 0, 0, 0xffff},
      {"fma.rn.bf16x2 %d, %a, %b, %c;", 0, 0xff000000, 0, 0, 0xffff0000},
      {"cvt.rn.f16x2.f32 %d, %a, %b;", 0, 0xff, 0, 0, 0xffff0000},
      {"cvt.rn.bf16x2.f32 %d, %a, %b;", 0, 0, 0, 0xff, 0xffff},
      {"popc.b32 %d, %a;", 0, 0xff, 0, 0, 0xffffffff},
      {"shl.b64 %d, %a, 24;", 0, 0xff00, 0, 0, 0xff00000000, 64},
      {"and.b64 %d, %a, %b;", 0, ~0ull, 0xff000000ff, 0, 0xff000000ff, 64},
  };
  for (const Case &one : cases)
    EXPECT_EQ(poisonOf(one), one.expected)
        << one.instruction
        << fmt::format(" a {:#x} b {:#x}", one.badA, one.badB)
        << fmt::format(" gives {:#x}", poisonOf(one));
}

TEST(Poison, PartsOfAVectorKeepTheirOwn) {
  RunLanes pack(".reg .b16 %h<4>; .reg .b64 %d;",
                "mov.b64 %d, {%h0, %h1, %h2, %h3};");
  pack.setPoisonBits("%h1", 0, 0xff00).setPoisonBits("%h3", 0, 0xffff).run();
  EXPECT_EQ(pack.poisonBits("%d", 0), 0xffff0000ff000000u);
  RunLanes unpack(".reg .b32 %low, %high; .reg .b64 %a;",
                  "mov.b64 {%low, %high}, %a;");
  unpack.setPoisonBits("%a", 0, 0xff00000000).run();
  EXPECT_EQ(unpack.poison("%low"), 0u);
  EXPECT_EQ(unpack.poisonBits("%high", 0), 0xffu);
}

TEST(Poison, OfAPredicateIsMasked) {
  const char *registers = ".reg .pred %p<4>; .reg .b32 %a, %b, %d;";
  RunLanes logic(registers, "and.pred %p2, %p0, %p1;"
                            "or.pred %p3, %p0, %p1;");
  logic.setPred("%p1", 0b0011).setPredPoison("%p0", 0b0101).run();
  EXPECT_EQ(logic.predPoison("%p2"), 0b0001u);
  EXPECT_EQ(logic.predPoison("%p3"), 0b0100u);
  RunLanes compare(registers, "setp.lt.and.u32 %p2, %a, 7, %p1;"
                              "setp.lt.or.u32 %p3, %a, 7, %p1;");
  compare.setPred("%p1", 0b0011).setPoison("%a", 0b0101).run();
  EXPECT_EQ(compare.predPoison("%p2"), 0b0001u);
  EXPECT_EQ(compare.predPoison("%p3"), 0b0100u);
  RunLanes select(registers, "selp.b32 %d, %a, %b, %p0;");
  select.setPred("%p0", 0b01).setPoison("%a", 0b10).run();
  EXPECT_EQ(select.poison("%d"), 0u);
  // Nobody knows whether lanes 0 and 1 take the move: what they have afterwards
  // is unknown, and that is all.
  RunLanes guarded(registers, "@%p0 mov.b32 %d, %a;");
  guarded.setPred("%p0", 0b101).setPredPoison("%p0", 0b011).run();
  EXPECT_EQ(guarded.poison("%d"), 0b011u);
}

/// 64 bytes of `in` are written, those behind are not.
static std::string findingOf(const std::string &instructions) {
  RunKernel run(instructions);
  run.input(counting<std::uint8_t>(64)).output(counting<std::uint32_t>(1));
  run.config.block = {1, 1, 1};
  return run.finding();
}

TEST(Poison, OnlyStoredBytesCount) {
  // Bytes 60 to 67: the upper four were never written.
  const std::string load = "ld.global.u32 %r1, [%in + 64];"
                           "ld.global.u32 %r0, [%in + 60];"
                           "mov.b64 %x0, {%r0, %r1};";
  EXPECT_EQ(findingOf(load + "st.global.u32 [%out], %x0;"), "");
  EXPECT_EQ(findingOf(load + "shl.b64 %x1, %x0, 32;"
                             "st.global.u64 [%out], %x1;"),
            "");
  expectContains(findingOf(load + "st.global.u64 [%out], %x0;"),
                 "uninitialized-store");
  expectContains(findingOf(load + "shr.u64 %x1, %x0, 8;"
                                  "st.global.u32 [%out], %x1;"),
                 "uninitialized-store");
  expectContains(findingOf("ld.global.u32 %r1, [%in + 64];"
                           "red.global.add.u32 [%out], %r1;"),
                 "uninitialized-store");
}

TEST(Poison, StaysInSharedAndLocalMemory) {
  const std::string load = "ld.global.u32 %r1, [%in + 64];";
  for (const char *space : {"shared", "local"}) {
    std::string name = space == std::string("local") ? "frame" : "tile";
    std::string declare = ".local .align 8 .b8 frame[16];";
    auto through = [&](const std::string &instructions) {
      return findingOf(declare + load + instructions);
    };
    // A store of unwritten bytes over written ones makes them unwritten.
    std::string spoil = fmt::format("st.{0}.u32 [{1}], 7;"
                                    "st.{0}.u8 [{1} + 1], %r1;",
                                    space, name);
    EXPECT_EQ(through(spoil + fmt::format("ld.{}.u8 %r2, [{}];"
                                          "st.global.u8 [%out], %r2;",
                                          space, name)),
              "");
    expectContains(through(spoil + fmt::format("ld.{}.u16 %r2, [{}];"
                                               "st.global.u16 [%out], %r2;",
                                               space, name)),
                   "uninitialized-store");
    expectContains(through(fmt::format("ld.{}.u32 %r2, [{} + 8];"
                                       "st.global.u32 [%out], %r2;",
                                       space, name)),
                   "uninitialized-store");
  }
}

/// A branch that compares a word of shared memory which nobody wrote; %r1 is
/// counted on one way, and %r4 is an address on both.
static std::string afterBranch(const std::string &inside,
                               const std::string &behind) {
  RunKernel run("ld.shared.u32 %r0, [%s];"
                "mov.u32 %r1, 1;"
                "mov.u32 %r2, 4;"
                "setp.gt.u32 %p0, %r0, 7;"
                "@%p0 bra more;"
                "add.u32 %r1, %r1, 1;"
                "add.u32 %r4, %s, 64;"
                "st.shared.u32 [%r4], %r2;" +
                inside + "more:" + behind);
  run.config.block = {1, 1, 1};
  return run.finding();
}

TEST(Poison, ABranchWhoseResultsAreDroppedIsNoFinding) {
  EXPECT_EQ(afterBranch("", "st.global.u32 [%out], %r2;"), "");
  expectContains(afterBranch("", "st.global.u32 [%out], %r1;"),
                 "uninitialized-store: ");
  expectContains(afterBranch("", "ld.shared.u32 %r5, [%s+64];"
                                 "st.global.u32 [%out], %r5;"),
                 "uninitialized-store: ");
  expectContains(afterBranch("st.global.u32 [%out], %r2;", ""),
                 "uninitialized-store: ");
  expectContains(
      afterBranch("bar.sync 0;", ""),
      "uninitialized-predicate: whether these lanes come here was decided at "
      "PTX:");
  expectContains(afterBranch("", "@%p0 st.global.u32 [%out], %r2;"),
                 "uninitialized-predicate: the predicate depends on bytes that "
                 "nobody wrote");
}

/// What is said where %r9, or what `ending` stores, comes from %r1, which was
/// loaded from `in` that nobody wrote; %r2 is the lane's word of the tile, %r3
/// its row of a matrix, %x2 its word of the output.
static std::string
originOf(const std::string &between,
         const std::string &ending = "st.global.u32 [%x2], %r9;") {
  RunKernel run(R"(
    .local .align 4 .b32 own;
    shl.b32 %r0, %t, 2;
    add.u32 %r2, %s, %r0;
    cvt.u64.u32 %x2, %r0;
    add.u64 %x2, %x2, %out;
    and.b32 %r3, %t, 7;
    shl.b32 %r3, %r3, 4;
    add.u32 %r3, %r3, %s;
    setp.eq.u32 %p0, %t, 0;
    ld.global.u32 %r1, [%in];
  )" + between + "\nbar.warp.sync 0xffffffff;\n" +
                ending);
  run.config.allow = {"warp-convergence"};
  return run.finding();
}

TEST(Poison, RemembersWhereItWasReadFirst) {
  const std::string stored = "st.shared.u32 [%r2], %r1;\n",
                    waited = "bar.warp.sync 0xffffffff;\n";
  const std::string cases[] = {
      "mov.u32 %r9, %r1;",
      stored + "ld.shared.u32 %r9, [%r2];",
      stored + waited + "ld.shared.v2.u32 {%r9, %r8}, [%s+8];",
      "st.local.u32 [own], %r1; ld.local.u32 %r9, [own];",
      "shfl.sync.idx.b32 %r9, %r1, 3, 31, 0xffffffff;",
      stored + "atom.shared.exch.b32 %r9, [%r2], 5;",
      stored + waited +
          "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r9}, [%r3];",
      "stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r1};\n" + waited +
          "ld.shared.u32 %r9, [%r2];",
      "mov.u32 %r8, 0; mov.f32 %f1, 0f00000000;\n"
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, "
      "{%r1, %r8, %r8, %r8}, {%r8, %r8}, {%f1, %f1, %f1, %f1};\n"
      "mov.b32 %r9, %f1;"};
  for (const std::string &between : cases) {
    SCOPED_TRACE(between);
    std::string found = originOf(between);
    expectContains(found, "uninitialized-store: a value that depends on bytes "
                          "nobody wrote goes to global memory; they were read "
                          "at PTX:");
    expectContains(found, ": byte 0 of in (8192 bytes), which nobody wrote");
  }
  expectContains(originOf(stored + "fence.proxy.async.shared::cta;",
                          "@%p0 cp.async.bulk.global.shared::cta.bulk_group "
                          "[%out], [%s], 16;\n"
                          "cp.async.bulk.commit_group;\n"
                          "cp.async.bulk.wait_group 0;"),
                 "an asynchronous copy takes bytes that nobody wrote to global "
                 "memory; they were read at PTX:");
}

TEST(Poison, FragmentsRememberWhatWasRead) {
  // Elements of A that nobody wrote reach D.
  RunKernel run(
      ".reg .b32 %a<8>, %b<8>, %c<8>, %d<8>;"
      "wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%a0, %a1, %a2, %a3, "
      "%a4, %a5, %a6, %a7}, [%in+4096];"
      "wmma.load.b.sync.aligned.col.m16n16k16.global.f16 {%b0, %b1, %b2, %b3, "
      "%b4, %b5, %b6, %b7}, [%in];"
      "wmma.load.c.sync.aligned.row.m16n16k16.global.f16 {%c0, %c1, %c2, "
      "%c3}, [%in+1024];"
      "wmma.mma.sync.aligned.row.col.m16n16k16.f16.f16 {%d0, %d1, %d2, %d3}, "
      "{%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, "
      "%b5, %b6, %b7}, {%c0, %c1, %c2, %c3};"
      "wmma.store.d.sync.aligned.row.m16n16k16.global.f16 [%out], {%d0, %d1, "
      "%d2, %d3};");
  run.input(std::vector<std::uint16_t>(1024));
  std::string found = run.finding();
  expectContains(found, "uninitialized-store: a value that depends on bytes "
                        "nobody wrote goes to global memory; they were read "
                        "at PTX:");
  expectContains(found, ": byte 4096 of in (8192 bytes), which nobody wrote");
}

TEST(Poison, GlobalMemoryNamesTheStoreOfSuchAValue) {
  RunKernel run("ld.global.u32 %r1, [%in];\n"
                "st.global.u32 [%out], %r1;\n"
                "ld.global.u32 %r2, [%out];\n"
                "add.u64 %x0, %out, 64;\n"
                "st.global.u32 [%x0], %r2;");
  run.config.block = {1, 1, 1};
  LaunchResult result = run.run();
  ASSERT_EQ(result.findings.size(), 2u);
  expectContains(result.findings[1].message,
                 "byte 0 of out (8192 bytes), where PTX:");
  expectContains(result.findings[1].message,
                 " has stored a value that depends on bytes nobody wrote; they "
                 "were read at PTX:");
}

TEST(Poison, CopiesRememberWhatTheyHaveRead) {
  const std::string load = "ld.shared.u32 %r9, [%s+4];";
  for (const std::string &between : {
           "cp.async.ca.shared.global [%s], [%in], 16;\ncp.async.wait_all;\n" +
               load,
           R"(mbarrier.init.shared.b64 [%bar], 1;
           fence.mbarrier_init.release.cluster;
           mbarrier.arrive.expect_tx.shared.b64 _, [%bar], 16;
           cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes
             [%s], [%in], 16, [%bar];
         wait:
           mbarrier.try_wait.parity.shared.b64 %p2, [%bar], 0;
           @!%p2 bra wait;
         )" + load}) {
    RunKernel run(between + "\nst.global.u32 [%out], %r9;");
    run.config.block = {1, 1, 1};
    expectContains(run.finding(), ": byte 0 of in (8192 bytes), which nobody "
                                  "wrote: thread 0");
    // What is written behind it has nothing to do with it.
    RunKernel mended(between + "\nst.shared.u32 [%s+4], 7;\n" + load +
                     "\nst.global.u32 [%out], %r9;");
    mended.config.block = {1, 1, 1};
    EXPECT_EQ(mended.finding(), "");
  }
}

} // namespace kiln::sim
