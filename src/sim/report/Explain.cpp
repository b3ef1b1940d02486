// Explain: what each finding means, a broken example, and the repair.
#include "kiln/sim.h"
#include "support/Error.h"

namespace kiln {

// In alphabetical order.
static constexpr Explanation kExplanations[] = {
    {"acquire-fence",
     "An atomic was read, and the data it announces right after it, with "
     "no fence between: the idiom of the last block. Released hardware "
     "orders them; the PTX text does not.",
     "atom.global.inc.u32 %r1, [counter], 63;  // the last one reads the "
     "sums\nld.global.f32 %f1, [sums];",
     "Put fence.acq_rel.gpu (__threadfence) between the atomic and the "
     "reads, or make the atomic .acquire."},
    {"assert",
     "An assertion of the kernel failed. On hardware the launch ends with "
     "CUDA_ERROR_ASSERT and the context is lost.",
     "assert(index < size);",
     "Make the condition hold; the finding names the assertion and its line."},
    {"async-copy-size",
     "cp.async copies 4, 8 or 16 bytes (.cg: 16) and reads at most as many "
     "from its source.",
     "cp.async.cg.shared.global [%r1], [%rd1], 8;",
     "Use .ca for 4 and 8 bytes, and a source size no larger than the copy."},
    {"barrier-count",
     "A named barrier is used for different numbers of threads at once, or for "
     "a number that is no multiple of 32. On hardware it hangs or releases too "
     "early.",
     "bar.sync 1, 100;",
     "Give every bar.sync and bar.arrive of one round the same multiple of "
     "32."},
    {"barrier-number", "A CTA has sixteen barriers, 0 to 15.", "bar.sync 16;",
     "Use a number from 0 to 15."},
    {"branch-table",
     "The index of a brx.idx lies outside its table of targets; hardware jumps "
     "anywhere.",
     "brx.idx %r1, table;  // %r1 = 9 of 4 targets",
     "Check the index before the branch."},
    {"bulk-barrier",
     "A bulk copy signals an mbarrier of another CTA than the one that "
     "receives the bytes.",
     "cp.async.bulk.shared::cluster ... [%r_remote], ..., [%r_own];",
     "Use the mbarrier of the CTA that receives the bytes (mapa of the same "
     "rank)."},
    {"bulk-size", "A bulk copy moves a multiple of 16 bytes.",
     "cp.async.bulk.shared::cluster.global... [%r1], [%rd1], 24, [%r2];",
     "Round the size up to 16, or copy the rest by ordinary loads."},
    {"call-target",
     "A call through a pointer goes where no function begins, or to one that "
     "takes other parameters. Hardware jumps anywhere.",
     "call (r), %rd1, (a), prototype;  // %rd1 was never set",
     "Check the pointer, the index into the table of functions, and the "
     "prototype."},
    {"cluster-barrier",
     "A thread waits at the cluster barrier without having arrived, or arrives "
     "twice without a wait between. The behaviour is undefined: the wait may "
     "fall through, or the barrier opens for everybody too early.",
     "barrier.cluster.wait.aligned;  // and no barrier.cluster.arrive",
     "Let every thread arrive once, then wait once."},
    {"copy-at-exit",
     "A thread or a CTA leaves the kernel while a copy that it began, or that "
     "fills its shared memory, has not been waited for. The memory goes to the "
     "next CTA, and the copy still reads or writes it.",
     "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [map, {%r1, %r2}], "
     "[tile];\ncp.async.bulk.commit_group;\nret;",
     "Stores: cp.async.bulk.wait_group.read 0 in the thread that issued them. "
     "Loads: wait for their mbarrier, or do not issue those that nobody needs, "
     "as a prologue does that loads past the last tile."},
    {"copy-not-awaited",
     "Bytes that an asynchronous copy writes were read or written before "
     "anybody waited for the copy, or by a thread that nothing orders "
     "after the wait.",
     "cp.async.bulk.shared::cluster.global... [tile], [%rd1], 64, "
     "[full];\nld.shared.b32 %r1, [tile];  // no wait for full",
     "Wait for the mbarrier's phase, or for the thread's group and then at "
     "a barrier, before the bytes are touched."},
    {"copy-source-reuse",
     "Bytes were written that an asynchronous copy may still be reading: "
     "the copy takes what comes later.",
     "cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], "
     "64;\ncp.async.bulk.commit_group;\nst.shared.b32 [tile], %r1;",
     "Wait with cp.async.bulk.wait_group.read in the thread that issued "
     "the copy; other threads pass a barrier after it."},
    {"cta-exit",
     "A CTA of the cluster reaches into the shared memory of another one, "
     "which "
     "has left the kernel, or which nothing keeps from leaving before.",
     "st.shared::cluster.b32 [%r1], %r2;  // of CTA 1\nret;  // no cluster "
     "barrier",
     "End with barrier.cluster.arrive and barrier.cluster.wait in every "
     "thread, "
     "or let the owner wait for an mbarrier that tells of the last access."},
    {"data-over-barrier",
     "Data was written over the bytes of a live mbarrier. The H200 keeps "
     "the state of barriers apart, so that it works there; the PTX text "
     "forbids it.",
     "mbarrier.init.shared.b64 [bar], 1;\nst.shared.b64 [bar], %rd1;",
     "Give barriers bytes of their own, or end them with mbarrier.inval "
     "first."},
    {"deadlock",
     "Everyone who is left waits for something nobody can do any more. On "
     "hardware the launch never returns. A lane waits when its loop goes round "
     "without an effect and reads what it read before. The ledger says who "
     "waits on what: for an mbarrier the phase, the arrivals and bytes that "
     "are "
     "missing, for a flag its value and last writer, and which instructions "
     "could have sent what is missing.",
     "mbarrier.arrive.expect_tx ... 32784;  // and 32768 bytes are loaded",
     "Look for the missing arrival, the wrong byte count, the wrong parity, or "
     "registers nobody gave back."},
    {"divergent-aligned",
     "An instruction for whole warps was reached by part of one. On hardware "
     "it hangs or does something else.",
     "@%p1 bar.sync 0;  // %p1 true in one lane",
     "Move it out of the branch, or make the branch uniform for the warp."},
    {"endless-loop",
     "A loop repeats itself: what decides about its next round, registers and "
     "the memory it reads, is as it was some rounds before, and no other "
     "thread can change it any more. The hardware would never end it.",
     "again: xor.b32 %r1, %r1, 1;\n"
     "       setp.lt.u32 %p1, %r1, 2;\n"
     "       @%p1 bra again;",
     "Look at the registers that the finding names: one of them was meant to "
     "change, or the condition to be another."},
    {"instruction-limit",
     "A CTA executed more warp instructions than --max-instructions allows.",
     "while (true) ++i;",
     "Raise the limit, or find the loop that moves without getting anywhere."},
    {"interrupted",
     "The caller cancelled the launch: Ctrl-C, SIGTERM or SimOptions::cancel. "
     "What was found until then is reported, and where each warp stood.",
     "kiln sim KERNEL.ptx --launch LAUNCH.json   # and Ctrl-C",
     "Run it to its end, or with --time-limit where it is to be ended anyway."},
    {"matrix-address",
     "A row address of ldmatrix or stmatrix is not a multiple of 16 bytes or "
     "not in shared memory.",
     "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r1}, [%r2];  // %r2 = 1032",
     "Align each row of the tile to 16 bytes."},
    {"mbarrier-address",
     "An mbarrier operation was given an address outside shared memory.",
     "mbarrier.init.b64 [%rd1], 1;  // %rd1 points to global memory",
     "Pass the barrier in shared memory."},
    {"mbarrier-bytes",
     "More bytes are expected on an mbarrier than it can count, 2^20 - 1; or a "
     "CTA ends while one still expects bytes that no copy has brought, or has "
     "got more bytes than were announced.",
     "mbarrier.arrive.expect_tx.shared.b64 _, [%r1], 2097152;",
     "Split a copy that is too large over several barriers or phases. "
     "Announce, "
     "with expect_tx, exactly the bytes of the copies that complete on the "
     "phase; a box that lies outside its tensor counts in full."},
    {"mbarrier-count",
     "An mbarrier is initialised for no arrival, or for more than 2^20 - 1.",
     "mbarrier.init.shared.b64 [%r1], 0;",
     "Give the number of arrivals of a phase, at least 1."},
    {"mbarrier-init-order",
     "An mbarrier was used by a thread that nothing orders after its "
     "initialisation: it may still see what lay there before.",
     "@%p mbarrier.init.shared.b64 [bar], 1;\nmbarrier.arrive.shared.b64 "
     "_, [bar];  // by other threads",
     "Put bar.sync between them; for other CTAs of a cluster, "
     "fence.mbarrier_init.release.cluster and a cluster barrier."},
    {"mbarrier-no-complete",
     "An arrival that says .noComplete completed the phase.",
     "mbarrier.arrive.noComplete.shared.b64 %rd1, [%r1], 1;  // the last one",
     "Leave the last arrival of a phase to an ordinary arrive."},
    {"mbarrier-over-arrival",
     "More arrivals came than the phase waits for. Hardware counts into the "
     "next phase, and somebody is released too early.",
     "mbarrier.init.shared.b64 [%r1], 1;  // and two threads arrive",
     "Initialise with the number of threads that arrive, or let one arrive for "
     "all."},
    {"mbarrier-reinitialized",
     "A live mbarrier is initialised again (warning). Whoever waits on it may "
     "wait forever.",
     "if (tid % 128 == 0) mbarrier.init ...  // by two threads",
     "Let one thread initialise, or end its life with mbarrier.inval first."},
    {"mbarrier-remote-scope",
     "An arrival at another CTA's mbarrier, or the wait for it, has the "
     "scope .cta, which is the default and does not reach across. For "
     "handing back a slot hardware orders it; data published this way is a "
     "race.",
     "mapa.shared::cluster.u32 %r1, bar, "
     "0;\nmbarrier.arrive.shared::cluster.b64 _, [%r1];",
     "Write .release.cluster at the arrival and .acquire.cluster at the "
     "wait."},
    {"mbarrier-uninitialized",
     "An operation on an mbarrier that nobody has initialised: a missing init, "
     "or no barrier between the init and its use by others.",
     "mbarrier.init ...;  // no bar.sync\nmbarrier.try_wait ...;",
     "Initialise by one thread, then synchronise the CTA (the cluster: "
     "fence.mbarrier_init and a cluster barrier)."},
    {"mbarrier-unobserved",
     "An arrival counts for the next phase of an mbarrier, and no test_wait or "
     "try_wait has come true for the phase before. Phases are told apart by "
     "one "
     "bit: a thread that waits for the lost one hangs, or goes on too early.",
     "mbarrier.arrive.shared.b64 _, [empty];  // completes phase 0\n"
     "mbarrier.arrive.shared.b64 _, [empty];  // nobody waited for it",
     "Arrive once for each wait: often the arrival goes to the wrong slot of a "
     "ring, or is one too many behind the loop."},
    {"memory-fence",
     "A flag or a lock was read that another thread set after it wrote the "
     "data, and then the data, all by volatile, relaxed or atomic accesses: no "
     "data race, but without fences the old data may be read.",
     "st.volatile.global.u32 [data], %r1;\natom.global.exch.b32 %r2, [flag], "
     "1;  // no fence between",
     "Put fence.acq_rel.gpu (__threadfence) between the data and the flag "
     "where "
     "they are written, and between the flag and the data where they are read; "
     "or set the flag with .release and read it with .acquire."},
    {"misaligned",
     "An access at an address that is not a multiple of its size; hardware "
     "ends the launch with \"misaligned address\".",
     "ld.global.v4.f32 {...}, [%rd1+4];",
     "Align the address, or use narrower accesses."},
    {"order-dependent",
     "Results differ between orders of events: something reads what another "
     "unit is still writing, or sums floats in no fixed order.",
     "ld.shared ...;  // before the wait for the TMA load",
     "Wait before reading; for sums of floats give a tolerance."},
    {"out-of-bounds",
     "An access outside every buffer, or outside the shared or local memory at "
     "hand.",
     "st.global.f32 [%rd1], %f1;  // row 129 of 128",
     "Guard the tail of the problem, or launch fewer CTAs."},
    {"proxy-fence",
     "A copy or a matrix product of the async proxy touches bytes that "
     "threads wrote through the generic proxy. They are ordered, but the "
     "async proxy may still see what was there before.",
     "st.shared.b32 [tile], %r1;\nbar.sync "
     "0;\ncp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 64;",
     "Let every writer execute fence.proxy.async.shared::cta before the "
     "barrier (.global for global memory)."},
    {"proxy-fence-after-read",
     "An async copy overwrites bytes that threads have read. They are "
     "ordered, but no fence.proxy.async stands between; released kernels "
     "leave it out and hardware forgives it, the PTX text does not.",
     "ld.shared.b32 %r1, [tile];\nbar.sync "
     "0;\ncp.async.bulk.shared::cluster.global... [tile], [%rd1], 64, "
     "[full];",
     "Execute fence.proxy.async.shared::cta after the reads."},
    {"ptx-version",
     "The PTX says a newer .version than any that the simulator has met. It "
     "runs what it knows; an instruction may mean more by now. A warning.",
     ".version 9.9",
     "Compile for the version that is known, or see that nothing the kernel "
     "uses has changed."},
    {"race",
     "Two threads touch the same bytes, one of them writes, and nothing "
     "orders them. Another order of the threads gives another answer, even "
     "where this run's was right.",
     "st.shared.b32 [tile], %r1;  // by thread 0\nld.shared.b32 %r2, "
     "[tile];  // by thread 32",
     "Put the missing edge between them: bar.sync in a CTA, "
     "barrier.cluster in a cluster, a fence and an atomic on each side "
     "between CTAs."},
    {"read-only",
     "A write to a constant variable or to the parameters of a kernel.",
     "st.global.u32 [const_table], %r1;", "Write to global memory."},
    {"refused",
     "The PTX, the launch or an instruction was refused before anything ran.",
     "ld.global.b128 %rq1, [%rd1];  // not supported",
     "The message names the line or the key, and what would be accepted."},
    {"same-value",
     "Two threads store the same value to the same bytes, and nothing orders "
     "them. Compilers that spread a small tensor over many warps do it; "
     "hardware leaves that value, whoever comes last. To the PTX text it is a "
     "race.",
     "st.shared.b32 [%r1], 0;  // by a thread of every warp",
     "Let one thread store, or put a barrier between the stores."},
    {"scope",
     "Two strong operations meet in the same bytes, and the scope of one "
     "does not take in the thread of the other: they are not atomic to "
     "each other.",
     "atom.cta.global.add.u32 %r1, [counter], 1;  // by two CTAs",
     "Use a scope that holds both threads: .cluster or .gpu."},
    {"setmaxnreg",
     "setmaxnreg.inc asks for fewer registers than the warp has, or .dec for "
     "more. Its effect on hardware is undefined.",
     "setmaxnreg.dec.sync.aligned.u32 160;  // with 136 at hand",
     "Increase from below and decrease from above the number at entry "
     "(.maxnreg)."},
    {"setmaxnreg-ignored",
     "setmaxnreg does nothing: without .maxnreg, .reqntid or .maxntid ptxas "
     "does not know how many registers a thread has, and ignores it (C7508). A "
     "warning.",
     ".entry gemm(...)  // no .reqntid",
     "Give the entry .reqntid or .maxntid and .minnctapersm, or .maxnreg."},
    {"stack-overflow",
     "Calls are nested too deeply, or their frames need more local memory than "
     "a thread can have (512 KiB). Hardware writes over other memory.",
     "int f(int n) { return n + f(n + 1); }",
     "Bound the recursion, or make it a loop."},
    {"tensor-map",
     "The address of a tensor copy holds no tensor map, or one of another rank "
     "than the instruction.",
     "cp.async.bulk.tensor.2d ... [%rd1, {...}]  // %rd1 is the tensor",
     "Pass the map, made for this rank, as a __grid_constant__ parameter."},
    {"time-limit", "The launch ran for as many seconds as --time-limit allows.",
     "kiln sim KERNEL.ptx --launch LAUNCH.json --time-limit 0.001",
     "Raise the limit, or see by the ledger who makes no progress. A smaller "
     "problem and --checks off are faster."},
    {"tma-coordinate",
     "Coordinates on which the TMA unit traps: an innermost one that is not a "
     "multiple of 16 bytes, or a store that starts below 0. Hardware says "
     "\"illegal instruction\".",
     "cp.async.bulk.tensor.2d ... {%r1, 0}  // %r1 = 3",
     "Start boxes on 16 bytes; store from non-negative coordinates."},
    {"tma-multicast",
     "A multicast mask names CTAs that the cluster does not have.",
     "... .multicast::cluster ..., 0x000c;  // in a cluster of 2",
     "Set one bit per rank of the cluster."},
    {"trap", "The kernel executed a trap.", "trap;",
     "See why it asked for it."},
    {"uninitialized-address",
     "An address or coordinate depends on bytes that nobody wrote.",
     "ld.shared.u32 %r1, [%r2];  // never stored\nld.global.f32 %f1, [%rd1];  "
     "// from %r1",
     "Write the index before it is used, and synchronise in between."},
    {"uninitialized-descriptor",
     "A matrix descriptor depends on bytes that nobody wrote.",
     "wgmma.mma_async ... %rd1, ...;  // %rd1 from an unwritten word",
     "Build the descriptor from the address of the tile."},
    {"uninitialized-predicate",
     "A branch or guard depends on bytes that nobody wrote.",
     "@%p1 bra L;  // %p1 compares an unwritten word",
     "Initialise what is compared."},
    {"uninitialized-size",
     "The size of a copy depends on bytes that nobody wrote.",
     "cp.async.bulk ... %r1 ...;  // %r1 never written",
     "Initialise the size."},
    {"uninitialized-store",
     "A value that depends on bytes nobody wrote goes to global memory: a "
     "result that no computation made.",
     "ld.shared.f32 %f1, [%r1];  // before the TMA load has "
     "landed\nst.global.f32 [%rd1], %f1;",
     "Wait for what fills the memory; write every element that is read."},
    {"warp-convergence",
     "Lanes of one warp pass data on, or one lane speaks for the others, "
     "and only their running together orders them. Hardware and compilers "
     "keep converged lanes in step; the PTX text promises it for "
     "bar.warp.sync alone.",
     "st.shared.b32 [%r1], %r2;  // each lane its own word\nld.shared.b32 "
     "%r3, [%r1+4];  // the neighbour's",
     "Put bar.warp.sync (__syncwarp) between the accesses, or before the "
     "one lane that arrives."},
    {"warp-mask",
     "A lane executes shfl, vote, match, redux, elect or bar.warp.sync with a "
     "mask that does not name it. The result is undefined.",
     "shfl.sync.bfly.b32 %r1, %r2, 16, 31, 0x0000ffff;  // by all 32 lanes",
     "Name every lane that executes the instruction: 0xffffffff for a whole "
     "warp."},
    {"warpgroup",
     "A wgmma in a CTA that has no whole warpgroup of four warps there.",
     ".reqntid 96", "Use a multiple of 128 threads."},
    {"wgmma-fence",
     "A wgmma uses registers that were touched since the last wgmma.fence "
     "of its warp. The tensor core may read or write them at the wrong "
     "moment; ptxas repairs it by waiting for every product.",
     "mov.f32 %f1, 0f00000000;\nwgmma.mma_async... {%f1, ...};  // no "
     "wgmma.fence",
     "Execute wgmma.fence.sync.aligned after the last access to the "
     "registers and before the first wgmma."},
    {"wgmma-fence-order",
     "Registers were written between wgmma.fence and the first wgmma that "
     "uses them, or accumulators were read and used again without a fence. "
     "Released compilers do both and ptxas puts a fence there (C7519); the PTX "
     "text wants the fence last.",
     "wgmma.fence.sync.aligned;\nmov.f32 %f1, "
     "0f00000000;\nwgmma.mma_async... {%f1, ...};",
     "Access the registers before the fence, and have one."},
    {"wgmma-mismatch",
     "The four warps of a warpgroup issue different multiplications; on "
     "hardware the result is undefined.",
     "wgmma.mma_async ... %rd1, ...;  // %rd1 differs per warp",
     "Compute descriptors from values that all four warps share."},
    {"wgmma-operand-reuse",
     "Shared memory is written that a wgmma may still be reading: nobody has "
     "waited for it. The product comes out wrong, sometimes.",
     "wgmma.commit_group...; mbarrier.arrive [empty];  // slot given back in "
     "flight",
     "Release a slot after the wgmma.wait_group that covers its product: with "
     "one group in flight, the slot before this one."},
    {"wgmma-register-in-flight",
     "An instruction touches an accumulator of a wgmma that no wait has "
     "covered. ptxas puts a wait in and serialises: the overlap is lost.",
     "wgmma.commit_group...;\nst.global.f32 [%rd1], %f1;",
     "Put wgmma.wait_group 0 before the first use of the registers."},
    {"wgmma-swizzle",
     "A wgmma reads an operand in another swizzle than the tensor map had that "
     "wrote it: rows and columns come out in another order.",
     "// the map has CU_TENSOR_MAP_SWIZZLE_64B, the descriptor bits 63:62 say "
     "1 "
     "(128 bytes)",
     "Give the map and the descriptor one swizzle: 1 is 128 bytes, 2 is 64, 3 "
     "is 32, 0 none."},
};

std::span<const Explanation> explanations() { return kExplanations; }

const Explanation &explain(std::string_view id) {
  std::string known;
  for (const Explanation &explanation : kExplanations) {
    if (explanation.id == id)
      return explanation;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", explanation.id);
  }
  userError("'{}' is not a finding of the simulator; there are {}", id, known);
}

} // namespace kiln
