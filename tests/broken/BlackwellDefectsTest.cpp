// BlackwellDefects: what the simulator says of each mistake of
// BlackwellKernels, and of those the language does not let one make, planted in
// its PTX.
//
// Right kernels are silent under every order. A mistake gives a finding with
// that id, at an instruction that contains `line`, in a message with `word`.
#include "broken/BlackwellKernels.h"

#include <kiln/run/run.h>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln {
namespace {

using blackwell::Flaw;
using blackwell::Sizes;

/// A kernel as it is built and launched.
struct Subject {
  const char *name;
  Module (*build)(Flaw);
  Sizes sizes;
};

constexpr Subject kThreads{"threads", blackwell::threads,
                           blackwell::kThreadsSizes};
constexpr Subject kRoles{"roles", blackwell::roles, blackwell::kRolesSizes};
constexpr Subject kPair{"pair", blackwell::pair, blackwell::kPairSizes};

/// The id of what the language refuses while the kernel is built.
constexpr const char *kRefused = "refused";

struct Defect {
  const Subject &subject;
  /// Or "OLD => NEW" in the PTX, where OLD is first, "OLD =>> NEW": last.
  const char *flaw;
  const char *id, *line, *word;
};

const Defect kDefects[] = {
    {kThreads, "128 arrivals of one thread", "deadlock", "mbarrier.try_wait",
     "127 of 128 arrivals are missing"},
    {kThreads, "no proxy fence before the product", "proxy-fence",
     "tcgen05.mma", "missing: fence.proxy.async"},
    {kThreads, "no meeting before the product", "race", "tcgen05.mma",
     "missing: a barrier of the CTA"},
    {kThreads, "first product adds", "uninitialized-store", "st.global",
     "depends on bytes nobody wrote"},
    {kThreads, "commit by another thread", "tcgen05-commit", "tcgen05.commit",
     "thread 32 commits and has issued no"},
    {kThreads, "no commit", "refused", "", "nobody arrives at the mbarrier"},
    {kThreads, "tiles written while they are read", "tcgen05-operand-reuse",
     "st.shared", "missing: tcgen05.commit by thread 0"},
    {kThreads, "parity never turned", "tcgen05-not-awaited", "tcgen05.ld",
     "missing: tcgen05.commit by thread 0"},
    {kThreads, "no fence after the wait", "tcgen05-fence", "tcgen05.ld",
     "tcgen05.fence::after_thread_sync behind the wait"},
    {kThreads,
     "tcgen05.alloc => .reg .pred first; .reg .b32 lane; mov.u32 lane, "
     "%laneid; setp.eq.u32 first, lane, 0; @first tcgen05.alloc",
     "divergent-aligned", "tcgen05.alloc", "1 of 32 lanes"},
    {kThreads, "tcgen05.dealloc => //", "tcgen05-leak", "tcgen05.alloc",
     "columns 0 to 31"},
    {kThreads, "bar.sync \t0; =>> ", "tcgen05-not-awaited", "tcgen05.dealloc",
     "a tcgen05.ld of warp"},
    {kThreads, "tcgen05.wait::ld.sync.aligned; => ", "tcgen05-wait",
     "tcgen05.dealloc", "missing: tcgen05.wait::ld"},
    {kThreads, "134742032 => 101187600", "tcgen05-descriptor", "tcgen05.mma",
     "M is 96; 64 or 128 is accepted"},
    {kRoles, "128 arrivals of the loader", "deadlock", "mbarrier.try_wait",
     "127 of 128 arrivals are missing"},
    {kRoles, "128 arrivals of the tensor core", "deadlock", "mbarrier.try_wait",
     "127 of 128 arrivals are missing"},
    {kRoles, "one arrival of 128 threads", "mbarrier-unobserved",
     "mbarrier.arrive", "nobody has waited for phase 0"},
    {kRoles, "both begin with parity 0", "deadlock", "mbarrier.try_wait",
     "the mbarrier at mma2tma[0]"},
    {kRoles, "both begin with parity 1", "deadlock", "mbarrier.try_wait",
     "the mbarrier at tma2mma[0]"},
    {kRoles, "the loader does one K tile less", "deadlock", "mbarrier.try_wait",
     "the mbarrier at tma2mma[0]"},
    {kRoles, "the loader does one K tile more", "copy-at-exit",
     "cp.async.bulk.tensor.2d.shared::cluster",
     "a wait for phase 3 of the mbarrier at tma2mma[0]"},
    {kRoles, "only one tile's bytes are announced", "deadlock",
     "mbarrier.try_wait", "16384 bytes too many have come"},
    {kRoles, "bytes of a tile too many", "deadlock", "mbarrier.try_wait",
     "0 of 1 arrivals and 8192 bytes are missing"},
    {kRoles, "slots filled without a wait", "mbarrier-unobserved",
     "mbarrier.arrive.expect_tx", "tma2mma[0]"},
    {kRoles, "accumulator awaited before it was used", "deadlock",
     "mbarrier.try_wait", "the mbarrier at ld2mma"},
    {kRoles, "sums overwritten without a wait", "tcgen05-not-awaited",
     "tcgen05.mma", "missing: tcgen05.wait::ld"},
    {kRoles, "no fence before the next products", "tcgen05-fence",
     "tcgen05.mma", "tcgen05.fence::after_thread_sync"},
    {kRoles, "no fence before the sums are given back", "tcgen05-fence",
     "tcgen05.mma", "tcgen05.fence::before_thread_sync"},
    {kRoles, "multiplied without a wait", "copy-not-awaited", "tcgen05.mma",
     "a wait for phase 0 of the mbarrier at tma2mma[0]"},
    {kRoles, "slot released before it was read", "tcgen05-operand-reuse",
     "cp.async.bulk.tensor.2d.shared::cluster",
     "missing: tcgen05.commit by thread 128"},
    {kRoles, "slot never released", "refused", "",
     "nobody arrives at the mbarrier"},
    {kRoles, "the multiplier stays at one slot", "copy-not-awaited",
     "tcgen05.mma", "tma2mma[0]"},
    {kRoles, "sums never announced", "refused", "",
     "nobody arrives at the mbarrier"},
    {kRoles, "sums never given back", "refused", "",
     "nobody arrives at the mbarrier"},
    {kRoles, "sums given back before they are loaded", "tcgen05-not-awaited",
     "tcgen05.mma", "missing: tcgen05.wait::ld"},
    {kRoles, "staged over a store that reads", "copy-source-reuse", "st.shared",
     "missing: cp.async.bulk.wait_group.read"},
    {kRoles, "no proxy fence before the store", "proxy-fence",
     "cp.async.bulk.tensor.2d.global", "missing: fence.proxy.async"},
    {kRoles, "no meeting before the store", "race",
     "cp.async.bulk.tensor.2d.global", "missing: a barrier of the CTA"},
    {kRoles, "store never committed", "copy-at-exit",
     "cp.async.bulk.tensor.2d.global", "missing: cp.async.bulk.commit_group"},
    {kRoles, "leaves while a store reads", "bulk-store-at-exit",
     "cp.async.bulk.tensor.2d.global",
     "missing: cp.async.bulk.wait_group.read 0"},
    {kRoles, "no fence before the sums are loaded", "tcgen05-fence",
     "tcgen05.ld", "tcgen05.fence::after_thread_sync behind the wait"},
    {kRoles, "barriers made in a role", "mbarrier-uninitialized",
     "mbarrier.try_wait", "there is no initialised mbarrier"},
    {kRoles, "CTA barrier in a role", "deadlock", "", "barrier 0: "},
    {kRoles, "next tile of one warp alone", "deadlock", "mbarrier.try_wait",
     "barrier 1: 32 of 128 threads have arrived"},
    {kRoles, "next tile of some lanes alone", "deadlock", "mbarrier.try_wait",
     "other lanes of its warp"},
    {kPair, "the other CTA's loads awaited as one's own", "tcgen05-fence",
     "tcgen05.mma", "of CTA 1 of the cluster"},
    {kPair, "only the first CTA hears", "deadlock", "mbarrier.try_wait",
     "CTA (1, 0, 0), threads 0 to 127: the mbarrier at mma2ld"},
    {kPair, "CTAs hear that are not there", "refused", "",
     "the mask 0xc does not name CTAs of a cluster of 2"},
    {kPair, "each CTA tells itself", "deadlock", "mbarrier.try_wait",
     "128 of 256 arrivals are missing"},
    {kPair, "the threads of one CTA are counted", "mbarrier-unobserved",
     "mbarrier.arrive.release.cluster", "ld2mma"},
    {kPair, "both CTAs multiply", "deadlock", "mbarrier.try_wait",
     "CTA (1, 0, 0), thread 128: the mbarrier at full[0]"},
    {kPair, "tcgen05.mma.cta_group::2 => tcgen05.mma.cta_group::1",
     "tcgen05-cta-group", "tcgen05.mma", "a kernel has one"},
    {kPair,
     "tcgen05.alloc => .reg .pred own; .reg .b32 rank; mov.u32 rank, "
     "%cluster_ctarank; setp.eq.u32 own, rank, 0; @own tcgen05.alloc",
     "deadlock", "tcgen05.alloc",
     "the other one of the pair, has not asked for them"},
};

Kernel compiled(const Subject &subject, Flaw flaw) {
  return compile(subject.build(flaw), {.use_cache = false});
}

/// The right kernel with one piece of its PTX replaced.
Kernel edited(const Subject &subject, const std::string &change) {
  Kernel kernel = compiled(subject, "");
  bool isLast = change.find(" =>> ") != change.npos;
  std::string arrow = isLast ? " =>> " : " => ";
  std::size_t middle = change.find(arrow);
  std::string from = change.substr(0, middle);
  std::size_t at = isLast ? kernel.ptx.rfind(from) : kernel.ptx.find(from);
  if (at == std::string::npos)
    throw std::runtime_error(fmt::format("no '{}' in {}", from, kernel.ptx));
  kernel.ptx.replace(at, from.size(), change.substr(middle + arrow.size()));
  return kernel;
}

Kernel broken(const Defect &defect) {
  std::string flaw = defect.flaw;
  if (flaw.find(" =>") != flaw.npos)
    return edited(defect.subject, flaw);
  Kernel kernel = compiled(defect.subject, flaw);
  EXPECT_NE(kernel.ptx, compiled(defect.subject, "").ptx)
      << "the kernel '" << defect.subject.name << "' knows no '" << flaw << "'";
  return kernel;
}

std::vector<Finding> simulate(const Subject &subject, const Kernel &kernel,
                              Interleaving order, std::uint64_t seed) {
  auto device = open_sim({.device = DeviceDescription::b200(),
                          .interleaving = order,
                          .seed = seed,
                          .threads = 1});
  auto [m, n, k] = subject.sizes;
  std::vector<std::uint16_t> a(m * k), b(n * k), d(m * n);
  fill_random(f16, a.data(), a.size(), 1);
  fill_random(f16, b.data(), b.size(), 2);
  return try_run(*device, kernel, a, b, d).findings;
}

/// The instruction that a finding is told at.
std::string lineOf(const Kernel &kernel, const Finding &finding) {
  std::size_t begin = 0;
  for (int i = 1; i < finding.ptx_line; ++i)
    begin = kernel.ptx.find('\n', begin) + 1;
  return kernel.ptx.substr(begin, kernel.ptx.find('\n', begin) - begin);
}

TEST(BlackwellDefects, RightKernelsAreSilent) {
  for (const Subject &subject : {kThreads, kRoles, kPair}) {
    Kernel kernel = compiled(subject, "");
    for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random})
      for (std::uint64_t seed = 0; seed < 4; ++seed)
        for (const Finding &found : simulate(subject, kernel, order, seed))
          ADD_FAILURE() << subject.name << ": " << found.id << ": "
                        << found.message;
  }
}

/// What is found under each order, or the one sentence of the language, which
/// does not build it.
std::vector<Finding> findingsOf(const Defect &defect, Kernel &kernel) {
  try {
    kernel = broken(defect);
  } catch (const UserError &error) {
    return {{.id = kRefused, .message = error.what()}};
  }
  std::vector<Finding> all;
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random})
    for (Finding &one : simulate(defect.subject, kernel, order, 0))
      all.push_back(std::move(one));
  return all;
}

TEST(BlackwellDefects, EachIsFound) {
  for (const Defect &defect : kDefects) {
    Kernel kernel;
    bool isFound = false;
    std::string found;
    for (const Finding &one : findingsOf(defect, kernel)) {
      std::string line = lineOf(kernel, one);
      isFound |= one.id == defect.id && line.find(defect.line) != line.npos &&
                 one.message.find(defect.word) != one.message.npos;
      found += fmt::format("\n  {} at '{}': {}", one.id, line, one.message);
    }
    EXPECT_TRUE(isFound) << defect.subject.name << ", " << defect.flaw
                         << ": wanted " << defect.id << " at '" << defect.line
                         << "' with '" << defect.word << "', found" << found;
  }
}

} // namespace
} // namespace kiln
