// prove_fuzz: small kernels of mbarriers, copies, named barriers, flags,
// cluster barriers and atomics, right and wrong: the search that leaves orders
// out (docs/prove.md) sees the same final states and the same findings as brute
// force.
//
//     prove_fuzz --kernels 100
//     prove_fuzz --seed 7 --only 123 --show    one kernel, and its PTX
#include "DrawOptions.h"
#include "kiln/base/error.h"
#include "kiln/check/prove.h"
#include "kiln/check/sim.h"

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kiln::fuzz {
namespace {

/// A few warps with a few operations each, drawn from a seed.
class SmallKernel {
public:
  static constexpr std::uint32_t kWords = 256;

  explicit SmallKernel(std::uint64_t seed) : random_(seed) {
    ctas = draw(3) == 0 ? 2 : 1;
    isCluster = ctas == 2 && draw(2) == 0;
    warps = ctas == 2 ? 1 + draw(2) : 2 + draw(2);
    countsAll_ = draw(4) == 0;
    std::uint32_t left = ctas * warps > 3 ? 5 : 6;
    for (std::uint32_t i = 0; i < kBarriers; ++i)
      counts_[i] = 1 + draw(3);
    kinds_ = draw(1u << kKinds) | 1u << draw(kKinds);
    for (std::uint32_t warp = 0; warp < warps; ++warp) {
      std::uint32_t count = 1 + draw(std::max(1u, left / warps));
      emit("W{}:", warp);
      for (std::uint32_t i = 0; i < count; ++i)
        addOperation(warp, i);
      emit("bra.uni END;");
    }
  }

  std::string ptx() const {
    std::string dispatch;
    for (std::uint32_t warp = 0; warp < warps; ++warp)
      dispatch +=
          fmt::format("setp.eq.u32 %q, %w, {0};\n@%q bra W{0};\n", warp);
    return fmt::format(R"(.version 8.0
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 memory)
{{
.shared .align 16 .b8 tile[1024];
.shared .align 8 .b64 barrier[{}];
.reg .b32 %t, %w, %l, %c, %s, %b, %r<8>;
.reg .b64 %m, %o, %x<4>;
.reg .pred %e, %p, %q, %first;
mov.u32 %t, %tid.x;
mov.u32 %c, %ctaid.x;
shr.u32 %w, %t, 5;
and.b32 %l, %t, 31;
mov.u32 %s, tile;
mov.u32 %b, barrier;
setp.eq.u32 %e, %l, 0;
setp.eq.u32 %first, %t, 0;
ld.param.u64 %m, [memory];
cvta.to.global.u64 %m, %m;
mad.lo.u32 %r0, %c, 4, %w;
mad.wide.u32 %o, %r0, 32, %m;
{}{}bar.sync 0{};
{}{}END:
ret;
}}
)",
                       kBarriers, begin(), isCluster ? meetCluster() : "",
                       countsAll_ ? "" : fmt::format(", {}", 32 * warps),
                       dispatch, text_);
  }

  std::uint32_t ctas = 1, warps = 2;
  bool isCluster = false;

private:
  static constexpr std::uint32_t kBarriers = 2, kKinds = 14;

  std::uint32_t draw(std::uint32_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  template <typename... Args>
  void emit(fmt::format_string<Args...> format, Args &&...args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string begin() const {
    std::string text;
    for (std::uint32_t i = 0; i < kBarriers; ++i)
      text += fmt::format("@%first mbarrier.init.shared.b64 [%b+{}], {};\n",
                          8 * i, counts_[i]);
    return text + "@%first fence.mbarrier_init.release.cluster;\n";
  }
  static std::string meetCluster() {
    return "barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\n";
  }

  /// Words 0 to 63 are what warps have seen; then flags, counters and what is
  /// copied.
  void addOperation(std::uint32_t warp, std::uint32_t number) {
    std::uint32_t kind = draw(kKinds);
    while (!(kinds_ >> kind & 1))
      kind = draw(kKinds);
    std::uint32_t barrier = 8 * draw(kBarriers), flag = 4 * (128 + draw(2));
    std::uint32_t parity = draw(4) == 0;
    std::uint32_t slot = 4 * number, place = 16 * (warp * 8 + number);
    std::string label = fmt::format("L{}", labels_++);
    switch (kind) {
    case 0:
    case 1:
      return emit("@%e mbarrier.arrive.shared.b64 _, [%b+{}];", barrier);
    case 2:
    case 3:
      emit("{}:", label);
      emit("mbarrier.try_wait.parity.shared.b64 %p, [%b+{}], {};", barrier,
           parity);
      return emit("@!%p bra {};", label);
    case 4:
      emit("mbarrier.test_wait.parity.shared.b64 %p, [%b+{}], {};", barrier,
           parity);
      emit("selp.u32 %r1, 2, 1, %p;");
      return emit("@%e st.global.u32 [%o+{}], %r1;", slot);
    case 5:
    case 6:
      emit("@%e mbarrier.arrive.expect_tx.shared.b64 _, [%b+{}], 16;", barrier);
      return copy(barrier, place);
    case 7:
      copy(barrier, place);
      return emit("@%e mbarrier.expect_tx.relaxed.cta.shared.b64 [%b+{}], 16;",
                  barrier);
    case 8:
      emit("@%e atom.global.add.u32 %r1, [%m+{}], 1;", flag);
      return emit("@%e st.global.u32 [%o+{}], %r1;", slot);
    case 9:
      return emit("@%e red.global.add.u32 [%m+{}], {};", flag, 1 + draw(2));
    case 10:
      emit("@%e st.release.gpu.global.u32 [%m+{}], {};", flag, 1 + draw(2));
      return;
    case 11:
      emit("{}:", label);
      emit("ld.acquire.gpu.global.u32 %r1, [%m+{}];", flag);
      emit("setp.eq.u32 %p, %r1, 0;");
      return emit("@%p bra {};", label);
    case 12:
      if (isCluster)
        return emit("barrier.cluster.arrive;\nbarrier.cluster.wait;");
      return emit("bar.{} 1, 64;", draw(3) ? "sync" : "arrive");
    default:
      emit("@%e atom.global.cas.b32 %r1, [%m+{}], {}, {};", flag, draw(2),
           1 + draw(2));
      return emit("@%e st.global.u32 [%o+{}], %r1;", slot);
    }
  }
  void copy(std::uint32_t barrier, std::uint32_t place) {
    emit("add.u32 %r2, %s, {};", place);
    emit("add.u32 %r3, %b, {};", barrier);
    emit("add.u64 %x0, %m, 768;");
    emit("@%e cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::"
         "bytes [%r2], [%x0], 16, [%r3];");
  }

  std::mt19937_64 random_;
  std::string text_;
  std::uint32_t counts_[kBarriers];
  std::uint32_t kinds_ = 0, labels_ = 0;
  bool countsAll_ = false; ///< the barrier at the beginning, those that live
};

Proof explore(const SmallKernel &kernel, const std::string &ptx,
              bool isBruteForce, std::uint64_t most) {
  auto device = open_sim({.threads = 1});
  std::vector<std::uint32_t> memory(SmallKernel::kWords, 0);
  Buffer buffer = device->allocate(4 * memory.size());
  device->copy_in(buffer, memory.data(), 4 * memory.size());
  LaunchDescription launch;
  std::string_view text = ptx;
  launch.module = device->load({&text, 1});
  launch.name = "test";
  launch.grid = {kernel.ctas, 1, 1};
  launch.block = {32 * kernel.warps, 1, 1};
  launch.cluster = {kernel.isCluster ? kernel.ctas : 1, 1, 1};
  launch.parameters = {{buffer}};
  ProveOptions options;
  options.sim.max_instructions = 100'000;
  options.max_interleavings = most;
  options.is_brute_force = isBruteForce;
  options.stops_at_first = false;
  return prove(*device, launch, options);
}

std::string describe(const Proof &proof) {
  return fmt::format("{} executed, {} known, {} final states, findings: {}{}{}",
                     proof.executed, proof.redundant, proof.final_states.size(),
                     fmt::join(proof.findings, " "),
                     proof.reason.empty() ? "" : ", gave up ", proof.reason);
}

int check(const DrawOptions &options) {
  std::uint64_t compared = 0, tooLarge = 0, wrong = 0, all = 0, few = 0;
  std::uint64_t several = 0, found = 0;
  std::uint64_t first = options.only.value_or(0);
  std::uint64_t last = options.only ? first + 1 : options.kernels;
  for (std::uint64_t i = first; i < last; ++i) {
    SmallKernel kernel(options.seed * 1'000'003 + i);
    std::string ptx = kernel.ptx();
    if (options.isShown)
      std::printf("%s", ptx.c_str());
    Proof reduced = explore(kernel, ptx, false, options.limit);
    Proof brute = explore(kernel, ptx, true, options.limit);
    bool isWhole = brute.reason.empty() && reduced.reason.empty();
    bool isDoubtful = !reduced.reason.empty() && brute.reason.empty();
    tooLarge += !isWhole && !isDoubtful;
    if (!isWhole && !isDoubtful && !options.isShown)
      continue;
    ++compared;
    all += brute.executed;
    few += reduced.executed + reduced.redundant;
    several += brute.final_states.size() > 1;
    found += !brute.findings.empty();
    bool isSame = !isDoubtful && reduced.final_states == brute.final_states &&
                  reduced.findings == brute.findings;
    if (isSame && !options.isShown)
      continue;
    wrong += !isSame;
    std::printf("kernel %llu of seed %llu%s\n  reduced: %s\n  brute:   %s\n",
                static_cast<unsigned long long>(i),
                static_cast<unsigned long long>(options.seed),
                isSame ? "" : ": not the same", describe(reduced).c_str(),
                describe(brute).c_str());
  }
  std::printf("%s\n",
              fmt::format("{} kernels compared ({} with several final states, "
                          "{} with findings), {} too large: {} interleavings "
                          "by brute force, {} reduced; {} not the same",
                          compared, several, found, tooLarge, all, few, wrong)
                  .c_str());
  return wrong ? 1 : 0;
}

} // namespace
} // namespace kiln::fuzz

int main(int argc, char **argv) {
  try {
    return kiln::fuzz::check(
        kiln::fuzz::readDrawOptions(argc, argv, "--most", 20000));
  } catch (const std::exception &error) {
    std::fprintf(stderr, "prove_fuzz: %s\n", error.what());
    return 2;
  }
}
