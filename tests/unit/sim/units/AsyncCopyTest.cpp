// AsyncCopy: cp.async, its groups, and its arrivals at mbarriers.
#include "unit/sim/RunKernel.h"
#include "unit/sim/units/RunLanes.h"

namespace kiln::sim {

/// Thread t copies 16 bytes to tile + 16 t; %x0 = in + 16 t, %x1 = out + 16 t,
/// %r0 = tile + 16 t.
static const char *const kAddresses = R"(
  shl.b32 %r1, %t, 4;
  add.u32 %r0, %s, %r1;
  cvt.u64.u32 %x2, %r1;
  add.u64 %x0, %in, %x2;
  add.u64 %x1, %out, %x2;
)";
/// tile + 16 t to out + 16 t.
static const char *const kStore = R"(
  ld.shared.v4.b32 {%r4, %r5, %r6, %r7}, [%r0];
  st.global.v4.b32 [%x1], {%r4, %r5, %r6, %r7};
)";

static std::string kernel(const std::string &copies) {
  return kAddresses + copies + kStore;
}

TEST(AsyncCopy, CopiesAtTheLatestAtTheWait) {
  for (Interleaving order : kOrders) {
    RunKernel run(kernel("cp.async.cg.shared.global [%r0], [%x0], 16;"
                         "cp.async.commit_group;"
                         "cp.async.wait_group 0;"));
    run.input(counting<std::uint32_t>(128)).runCleanly(order);
    for (std::uint32_t i = 0; i < 128; ++i)
      EXPECT_EQ(run.result<std::uint32_t>(i), i);
  }
}

TEST(AsyncCopy, AWaitLeavesTheNewestGroups) {
  // Lazily, the second group is not there when one may be in flight.
  RunKernel run(kernel("st.shared.v2.b64 [%r0], {0, 0};"
                       "cp.async.ca.shared.global [%r0], [%x0], 4;"
                       "cp.async.commit_group;"
                       "cp.async.ca.shared.global [%r0+8], [%x0+8], 8;"
                       "cp.async.commit_group;"
                       "cp.async.wait_group 1;"));
  run.input(counting<std::uint32_t>(128));
  run.config.interleaving = Interleaving::lazy;
  expectContains(run.finding(), "copy-not-awaited: this reads shared address");
  EXPECT_EQ(run.result<std::uint32_t>(4), 4u);
  EXPECT_EQ(run.result<std::uint32_t>(6), 0u);
  run.config.interleaving = Interleaving::eager;
  expectContains(run.finding(), "copy-not-awaited: this reads shared address");
  EXPECT_EQ(run.result<std::uint32_t>(6), 6u) << "and still a finding";
}

TEST(AsyncCopy, WaitAllNeedsNoCommit) {
  RunKernel run(kernel("cp.async.ca.shared::cta.global.L2::128B [%r0], [%x0], "
                       "16;"
                       "cp.async.wait_all;"));
  run.input(counting<std::uint32_t>(128)).runCleanly(Interleaving::lazy);
  EXPECT_EQ(run.result<std::uint32_t>(127), 127u);
}

TEST(AsyncCopy, FillsWithZeros) {
  for (Interleaving order : kOrders) {
    // Lane t takes t % 4 words; odd lanes of 8 ignore their source.
    RunKernel run(kernel("and.b32 %r2, %t, 3; shl.b32 %r2, %r2, 2;"
                         "and.b32 %r3, %t, 8; setp.ne.u32 %p0, %r3, 0;"
                         "@%p0 bra ignoring;"
                         "cp.async.cg.shared.global [%r0], [%x0], 16, %r2;"
                         "bra both;"
                         "ignoring:"
                         "cp.async.cg.shared.global.L2::cache_hint [%r0], "
                         "[%x0], 16, %p0, %x3;"
                         "both:"
                         "cp.async.wait_all;"));
    run.input(std::vector<std::uint32_t>(128, 7)).runCleanly(order);
    for (std::uint32_t lane = 0; lane < 32; ++lane)
      for (std::uint32_t word = 0; word < 4; ++word) {
        bool isCopied = !(lane & 8) && word < lane % 4;
        EXPECT_EQ(run.result<std::uint32_t>(lane * 4 + word),
                  isCopied ? 7u : 0u)
            << lane << " " << word;
      }
  }
}

TEST(AsyncCopy, UnwrittenBytesStayUnwritten) {
  RunKernel run(kernel("cp.async.cg.shared.global [%r0], [%x0], 16;"
                       "cp.async.wait_all;"));
  run.input(counting<std::uint32_t>(125));
  expectContains(run.finding(), "uninitialized-store: a value that depends on "
                                "bytes nobody wrote goes to global memory; "
                                "they were read at PTX:27: byte 500 of in "
                                "(8192 bytes), which nobody wrote: thread 31");
}

/// The mbarrier is for `count` arrivals; everybody waits for its first phase.
static std::string arriving(int count, const std::string &arrivals) {
  return kernel(fmt::format("setp.eq.u32 %p1, %t, 0;"
                            "@%p1 mbarrier.init.shared.b64 [%bar], {};"
                            "bar.sync 0;"
                            "cp.async.cg.shared.global [%r0], [%x0], 16;"
                            "{}"
                            "wait:"
                            "mbarrier.try_wait.parity.shared.b64 %p2, [%bar], "
                            "0;"
                            "@!%p2 bra wait;",
                            count, arrivals));
}

TEST(AsyncCopy, ArrivesWhenTheCopiesAreDone) {
  for (Interleaving order : kOrders) {
    RunKernel counted(
        arriving(32, "cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];"));
    counted.input(counting<std::uint32_t>(128)).runCleanly(order);
    EXPECT_EQ(counted.result<std::uint32_t>(127), 127u);
    // Without .noinc its arrival is one more, and the phase needs its own.
    RunKernel added(arriving(32, "cp.async.mbarrier.arrive.shared.b64 [%bar];"
                                 "mbarrier.arrive.shared.b64 _, [%bar];"));
    added.input(counting<std::uint32_t>(128)).runCleanly(order);
    EXPECT_EQ(added.result<std::uint32_t>(127), 127u);
  }
}

TEST(AsyncCopy, AddedArrivalsCompleteNoPhase) {
  RunKernel run(arriving(32, "cp.async.mbarrier.arrive.shared.b64 [%bar];"));
  run.input(counting<std::uint32_t>(128));
  expectContains(run.finding(), "32 of 32 arrivals");
}

TEST(AsyncCopy, FindsWhatIsWrong) {
  RunKernel size(kernel("mov.u32 %r2, 20;"
                        "cp.async.cg.shared.global [%r0], [%x0], 16, %r2;"));
  size.input(counting<std::uint32_t>(128));
  expectContains(size.finding(),
                 "async-copy-size: cp.async takes 20 bytes of its source and "
                 "writes 16; the source has at most as many");
  RunKernel aligned(kernel("cp.async.cg.shared.global [%r0+8], [%x0], 16;"));
  aligned.input(counting<std::uint32_t>(128));
  expectContains(aligned.finding(),
                 "misaligned: an asynchronous copy of 16 bytes at shared "
                 "address 1032, which is not a multiple of 16");
  RunKernel outside(kernel("cp.async.cg.shared.global [%r0], [%x0+8190], 16;"));
  expectContains(outside.finding(), "out-of-bounds: an asynchronous copy of 16 "
                                    "bytes at global address");
  RunKernel unknown(kernel("cp.async.cg.shared.global [%r9], [%x0], 16;"));
  expectContains(unknown.finding(), "uninitialized-address: the address "
                                    "depends on bytes that nobody wrote");
  RunKernel nowhere(kernel("cp.async.mbarrier.arrive.shared.b64 [%bar];"));
  expectContains(nowhere.finding(), "mbarrier-uninitialized: there is no "
                                    "initialised mbarrier at shared address");
  RunKernel over(kernel("setp.eq.u32 %p1, %t, 0;"
                        "@%p1 mbarrier.init.shared.b64 [%bar], 1;"
                        "@%p1 mbarrier.arrive.expect_tx.shared.b64 _, [%bar], "
                        "16;"
                        "cp.async.mbarrier.arrive.noinc.shared.b64 [%bar];"));
  expectContains(over.finding(),
                 "mbarrier-over-arrival: an arrival of cp.async "
                 "at the mbarrier at shared address");
  RunKernel many(kernel("setp.eq.u32 %p1, %t, 0;"
                        "@%p1 mbarrier.init.shared.b64 [%bar], 1048575;"
                        "cp.async.mbarrier.arrive.shared.b64 [%bar];"));
  expectContains(
      many.finding(),
      "mbarrier-count: cp.async adds an arrival to the 1048575 that");
}

TEST(AsyncCopy, RefusesByReason) {
  expectRefusals({
      {"cp.async.cg.shared.global [%r], [%d], 8;",
       "8 bytes; cp.async.ca copies 4, 8 or 16 and cp.async.cg 16"},
      {"cp.async.ca.shared.global [%r], [%d], 2;", "2 bytes; cp.async.ca"},
      {"cp.async.ca.shared.global [%r], [%d], %r;",
       "operand 3 of cp.async.ca is the register %r of type .b32, and must be "
       "an integer constant"},
      {"cp.async.ca.shared.global [%r], [%d];",
       "cp.async.ca takes 3 to 4 operands (address, address, integer, optional "
       "value) or 4 operands (address, address, integer, predicate), not 2"},
      {"cp.async.ca.shared.global [%r], [%d], 16, %r, %d;",
       "(address, address, integer, predicate), not 5"},
      {"cp.async.mbarrier.arrive.b64;",
       "cp.async.mbarrier.arrive takes 1 operand (address), not 0"},
      {"cp.async.wait_group %r;",
       "operand 1 of cp.async.wait_group is the register %r of type .b32, and "
       "must be an integer constant"},
      {"cp.async.shared.global [%r], [%d], 16;",
       "cp.async needs one of .commit_group .wait_group .wait_all .mbarrier "
       ".ca .cg .bulk"},
  });
}

} // namespace kiln::sim
