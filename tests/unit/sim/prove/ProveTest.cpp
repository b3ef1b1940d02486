// Prove: how many orders there are, what they lead to, and which of them are
// left out.
#include "kiln/check/prove.h"
#include "kiln/check/sim.h"

#include <algorithm>
#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

/// Warps of a CTA, each of which executes its part; lane 0 of each is %e, and
/// words of memory are at %m.
struct Warps {
  std::string common;
  std::vector<std::string> parts;
  std::uint32_t ctas = 1, cluster = 1;

  std::string ptx() const {
    std::string dispatch, body;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      dispatch += fmt::format("setp.eq.u32 %q, %w, {0};\n@%q bra W{0};\n", i);
      body += fmt::format("W{}:\n{}\nbra END;\n", i, parts[i]);
    }
    return fmt::format(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 memory)
.maxntid {}
{{
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 bar[4];
.reg .b32 %t, %w, %l, %c, %r<8>;
.reg .b64 %m, %x<4>;
.reg .pred %e, %p, %q, %first;
mov.u32 %t, %tid.x;
mov.u32 %c, %ctaid.x;
shr.u32 %w, %t, 5;
and.b32 %l, %t, 31;
setp.eq.u32 %e, %l, 0;
setp.eq.u32 %first, %t, 0;
ld.param.u64 %m, [memory];
cvta.to.global.u64 %m, %m;
{}
{}{}END:
ret;
}}
)",
                       32 * parts.size(), common, dispatch, body);
  }
};

constexpr std::size_t kWords = 256;

class Proving {
public:
  explicit Proving(const Warps &warps)
      : ptx_(warps.ptx()), device_(open_sim({.threads = 1})),
        buffer_(device_->allocate(4 * kWords)) {
    std::vector<std::uint32_t> zeros(kWords, 0);
    device_->copy_in(buffer_, zeros.data(), 4 * kWords);
    launch.ptx = ptx_;
    launch.grid = {warps.ctas, 1, 1};
    launch.cluster = {warps.cluster, 1, 1};
    launch.block = {32 * static_cast<std::uint32_t>(warps.parts.size()), 1, 1};
    launch.parameters = {{buffer_}};
  }
  Proof prove() { return kiln::prove(*device_, launch, options); }
  Device &device() { return *device_; }

  LaunchDescription launch;
  ProveOptions options;

private:
  std::string ptx_;
  std::shared_ptr<Device> device_;
  Buffer buffer_;
};

/// Initialise mbarrier 0 and 1 for so many arrivals.
std::string barriers(int first, int second) {
  return fmt::format("@%first mbarrier.init.shared.b64 [bar], {};\n"
                     "@%first mbarrier.init.shared.b64 [bar+8], {};\n"
                     "@%first fence.mbarrier_init.release.cluster;\n"
                     "bar.sync 0;\n",
                     first, second);
}
std::string wait(int barrier, int parity, const char *label) {
  return fmt::format(
      "{2}:\nmbarrier.try_wait.parity.shared.b64 %p, [bar+{0}], {1};\n"
      "@!%p bra {2};\n",
      8 * barrier, parity, label);
}
std::string arrive(int barrier) {
  return fmt::format("@%e mbarrier.arrive.shared.b64 _, [bar+{}];\n",
                     8 * barrier);
}
/// Take a ticket and leave it at a word.
std::string ticket(int word) {
  return fmt::format("@%e atom.global.add.u32 %r0, [%m], 1;\n"
                     "@%e st.global.u32 [%m+{}], %r0;\n",
                     4 * word);
}
std::string lock(int word, const char *label) {
  return fmt::format("{1}:\natom.global.cas.b32 %r0, [%m+{0}], 0, 1;\n"
                     "setp.ne.u32 %p, %r0, 0;\n@%p bra {1};\n",
                     4 * word, label);
}

} // namespace

TEST(Prove, AtomicsOfThreeWarpsHaveSixOrders) {
  Proof proof =
      Proving({.common = "", .parts = {ticket(1), ticket(2), ticket(3)}})
          .prove();
  EXPECT_EQ(proof.verdict, ProofVerdict::proved) << proof.to_string();
  EXPECT_EQ(proof.executed, 6u) << proof.to_string();
  EXPECT_EQ(proof.final_states.size(), 6u);
}

TEST(Prove, ArrivalsAtOneBarrierCommute) {
  Warps warps{.common = barriers(3, 1),
              .parts = {arrive(0) + wait(0, 0, "A"),
                        arrive(0) + wait(0, 0, "B"),
                        arrive(0) + wait(0, 0, "C")}};
  Proof proof = Proving(warps).prove();
  EXPECT_EQ(proof.verdict, ProofVerdict::proved) << proof.to_string();
  EXPECT_EQ(proof.executed, 1u) << proof.to_string();
}

TEST(Prove, LocksInOppositeOrderDeadlock) {
  // Warps that run one after the other never meet.
  auto part = [](int first, int second, const char *a, const char *b) {
    return "@!%e bra END;\n" + lock(first, a) + lock(second, b) +
           fmt::format("atom.global.exch.b32 %r1, [%m+{}], 0;\n"
                       "atom.global.exch.b32 %r1, [%m+{}], 0;\n",
                       4 * second, 4 * first);
  };
  Proving proving(
      {.common = "", .parts = {part(1, 2, "A", "B"), part(2, 1, "C", "D")}});
  Proof proof = proving.prove();
  ASSERT_EQ(proof.verdict, ProofVerdict::counterexample) << proof.to_string();
  EXPECT_EQ(proof.result.findings.back().id, "deadlock");
  EXPECT_LE(proof.story.size(), 20u);
  // The same choices lead there again, on another device.
  Proving again(
      {.common = "", .parts = {part(1, 2, "A", "B"), part(2, 1, "C", "D")}});
  LaunchResult result =
      replay(again.device(), again.launch, proof.path, proof.cluster, {});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.findings.back().message,
            proof.result.findings.back().message);
  // One order of both is right.
  Proof right = Proving({.common = "",
                         .parts = {part(1, 2, "A", "B"), part(1, 2, "C", "D")}})
                    .prove();
  EXPECT_EQ(right.verdict, ProofVerdict::proved) << right.to_string();
}

TEST(Prove, AWaitThatComesTooLateMissesItsPhase) {
  // Nothing keeps the first warp from completing two phases before the second
  // has looked at the first.
  Warps warps{.common = barriers(1, 1),
              .parts = {arrive(0) + arrive(0), wait(0, 0, "A")}};
  Proof proof = Proving(warps).prove();
  ASSERT_EQ(proof.verdict, ProofVerdict::counterexample) << proof.to_string();
  EXPECT_EQ(proof.result.findings.back().id, "deadlock");
  // Where the second barrier says that it has looked, it does not.
  warps.parts = {arrive(0) + wait(1, 0, "B") + arrive(0),
                 wait(0, 0, "A") + arrive(1)};
  Proof right = Proving(warps).prove();
  EXPECT_EQ(right.verdict, ProofVerdict::proved) << right.to_string();
}

TEST(Prove, BytesThatAreAnnouncedTooLate) {
  std::string copy = "mov.u32 %r1, tile;\nmov.u32 %r2, bar;\n"
                     "@%e cp.async.bulk.shared::cluster.global.mbarrier::"
                     "complete_tx::bytes [%r1], [%m], 16, [%r2];\n";
  std::string expect =
      "@%e mbarrier.expect_tx.relaxed.cta.shared.b64 [bar], 16;\n";
  std::string read = wait(0, 0, "A") + "ld.shared.u32 %r3, [tile];\n"
                                       "@%e st.global.u32 [%m+64], %r3;\n";
  Warps warps{.common = barriers(1, 1),
              .parts = {arrive(0) + expect + copy, read}};
  EXPECT_EQ(Proving(warps).prove().verdict, ProofVerdict::counterexample);
  warps.parts[0] = expect + arrive(0) + copy;
  Proof right = Proving(warps).prove();
  EXPECT_EQ(right.verdict, ProofVerdict::proved) << right.to_string();
}

TEST(Prove, RegistersThatAreEnoughForAll) {
  Warps warps{.common = "", .parts = {}};
  for (int i = 0; i < 12; ++i)
    warps.parts.push_back(i < 4 ? "setmaxnreg.dec.sync.aligned.u32 40;"
                                : "setmaxnreg.inc.sync.aligned.u32 200;");
  Proving proving(warps);
  proving.options.sim.registers_at_entry = 152;
  Proof proof = proving.prove();
  EXPECT_EQ(proof.verdict, ProofVerdict::proved) << proof.to_string();
  EXPECT_EQ(proof.executed, 1u) << proof.to_string();
}

TEST(Prove, CtasThatDoNotTalkAreExploredOneByOne) {
  auto part = [](int word) {
    return fmt::format("mov.u32 %r2, tile;\n"
                       "@%e atom.shared.add.u32 %r0, [%r2], 1;\n"
                       "@%e st.shared.u32 [%r2+{}], %r0;\n",
                       4 * word);
  };
  Warps warps{.common = "@%first st.shared.u32 [tile], 0;\nbar.sync 0;\n",
              .parts = {part(1), part(2), part(3)},
              .ctas = 4};
  Proof proof = Proving(warps).prove();
  EXPECT_EQ(proof.verdict, ProofVerdict::proved) << proof.to_string();
  EXPECT_EQ(proof.executed, 4 * 6u) << proof.to_string();
}

TEST(Prove, GivesUpAtItsLimit) {
  Proving proving({.common = "", .parts = {ticket(1), ticket(2), ticket(3)}});
  proving.options.max_interleavings = 3;
  Proof proof = proving.prove();
  EXPECT_EQ(proof.verdict, ProofVerdict::gave_up);
  EXPECT_EQ(proof.executed + proof.redundant, 3u);
  EXPECT_NE(proof.to_string().find("\ngave up at the limit of 3"),
            std::string::npos)
      << proof.to_string();
}

TEST(Prove, BruteForceSeesTheSame) {
  Warps warps{
      .common = barriers(1, 1),
      .parts = {ticket(1) + arrive(0), ticket(2), wait(0, 0, "A") + ticket(3)}};
  Proof reduced = Proving(warps).prove();
  Proving whole(warps);
  whole.options.is_brute_force = true;
  Proof brute = whole.prove();
  EXPECT_EQ(reduced.final_states, brute.final_states);
  EXPECT_GT(brute.executed, 4 * reduced.executed) << brute.to_string();
}

} // namespace kiln
