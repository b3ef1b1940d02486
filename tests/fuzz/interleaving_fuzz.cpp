// interleaving_fuzz: kernels of elected lanes, tickets, spin loops and
// barriers, all of them right: in every interleaving they end, nothing is
// found, and their results are those that the host works out.
//
// A kernel is a list of phases, each drawn from the seed with its shape: who is
// elected and how the branch to it is written, how its loop spins, how it
// publishes. What a phase must leave in memory is put down while it is written.
//
//     interleaving_fuzz --kernels 300 --seeds 4
//     interleaving_fuzz --seed 7 --only 123 --show    one kernel, and its PTX
#include "kiln/base/error.h"
#include "kiln/check/sim.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace kiln::fuzz {
namespace {

struct Options {
  std::uint64_t seed = 1, kernels = 100, seeds = 3;
  std::optional<std::uint64_t> only;
  bool isShown = false;
};

Options readOptions(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    auto number = [&] {
      if (++i == argc)
        throw UserError(word + " wants a value");
      return std::strtoull(argv[i], nullptr, 10);
    };
    if (word == "--seed")
      options.seed = number();
    else if (word == "--kernels")
      options.kernels = number();
    else if (word == "--seeds")
      options.seeds = number();
    else if (word == "--only")
      options.only = number();
    else if (word == "--show")
      options.isShown = true;
    else
      throw UserError("no option " + word);
  }
  return options;
}

/// A kernel in the making, and what it must leave in memory.
class Kernel {
public:
  explicit Kernel(std::mt19937_64 &random) : random_(random) {
    constexpr std::uint32_t kGrids[] = {1, 2, 4, 12, 40};
    grid = kGrids[draw(std::size(kGrids))];
    threads = 32 * (1 + draw(4));
    cluster = grid % 2 == 0 && draw(3) == 0 ? 2 : 1;
    live_ = threads;
    begin();
    std::uint32_t phases = 1 + draw(5);
    for (std::uint32_t i = 0; i < phases; ++i)
      addPhase();
    end();
  }

  std::string ptx() const {
    return fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 memory)
{{
.shared .align 8 .b32 slots[{}];
.reg .b32 %t, %c, %w, %n, %r<10>;
.reg .b64 %m, %x<6>;
.reg .pred %p<6>;
ld.param.u64 %m, [memory];
mov.u32 %t, %tid.x;
mov.u32 %c, %ctaid.x;
mov.u32 %n, %nctaid.x;
shr.u32 %w, %t, 5;
{}ret;
}}
)",
                       kSlots, text_);
  }

  std::uint32_t grid, threads, cluster;
  std::uint32_t words = 0;                       ///< of memory
  std::map<std::uint32_t, std::uint32_t> wanted; ///< of some of them

private:
  static constexpr std::uint32_t kSlots = 64;

  std::uint32_t draw(std::size_t below) {
    return static_cast<std::uint32_t>(random_() % below);
  }
  bool toss() { return draw(2); }
  template <typename... Args>
  void emit(fmt::format_string<Args...> format, Args &&...args) {
    text_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  std::string label() { return fmt::format("L{}", labels_++); }
  /// Words of memory, all zero.
  std::uint32_t allocate(std::uint32_t count) {
    return (words += count) - count;
  }
  /// A word of shared memory, zero; a kernel has fewer phases than there are.
  std::uint32_t slot() { return 4 * slots_++; }
  /// %x = address of a word, counted from `base` by a register.
  void address(const char *to, std::uint32_t base, const char *index) {
    emit("mad.wide.u32 {}, {}, 4, %m;", to, index);
    emit("add.u64 {}, {}, {};", to, to, 4 * base);
  }

  void begin() {
    emit("setp.ge.u32 %p0, %t, {};", kSlots);
    std::string first = label();
    emit("mul.lo.u32 %r0, %t, 4;");
    emit("mov.u32 %r1, slots;");
    emit("add.u32 %r0, %r0, %r1;");
    emit("{}:", first);
    // A block of 32 threads has two words each.
    emit("@!%p0 st.shared.u32 [%r0], 0;");
    if (threads == 32)
      emit("@!%p0 st.shared.u32 [%r0+128], 0;");
    emit("bar.sync 0;");
    if (cluster > 1)
      meetCluster();
  }

  void end() {
    if (cluster == 1)
      return;
    // The shared memory of a CTA stays until others are done with it; all but
    // the first warp may leave behind their arrival.
    emit("barrier.cluster.arrive.release.aligned;");
    if (toss()) {
      emit("setp.ne.u32 %p0, %w, 0;");
      emit("@%p0 {};", toss() ? "exit" : "ret");
    }
    emit("barrier.cluster.wait.acquire.aligned;");
  }

  void meetCluster() {
    emit("barrier.cluster.arrive.release.aligned;");
    emit("barrier.cluster.wait.acquire.aligned;");
  }

  /// `body` is for thread `who` alone.
  template <typename Body> void elect(std::uint32_t who, Body &&body) {
    std::string over = label();
    switch (draw(4)) {
    case 0:
      emit("setp.ne.u32 %p0, %t, {};", who);
      emit("@%p0 bra {};", over);
      break;
    case 1: {
      std::string in = label();
      emit("setp.eq.u32 %p0, %t, {};", who);
      emit("@%p0 bra {};", in);
      emit("bra {};", over);
      emit("{}:", in);
      break;
    }
    case 2: // its warp first
      emit("setp.ne.u32 %p0, %w, {};", who / 32);
      emit("@%p0 bra {};", over);
      emit("setp.ne.u32 %p1, %t, {};", who);
      emit("@%p1 bra {};", over);
      break;
    default: { // the others meet behind it and do something
      std::string other = label();
      emit("setp.ne.u32 %p0, %t, {};", who);
      emit("@%p0 bra {};", other);
      body();
      emit("bra {};", over);
      emit("{}:", other);
      emit("add.u32 %r9, %t, 1;");
      emit("{}:", over);
      return;
    }
    }
    body();
    emit("{}:", over);
  }

  /// Until the word at %x0 is `enough`, which %r1 is then.
  void spin(std::uint32_t enough = 1) {
    std::string again = label(), out = label();
    auto load = [&] {
      switch (draw(3)) {
      case 0:
        return emit("ld.acquire.gpu.global.u32 %r1, [%x0];");
      case 1:
        return emit("atom.acquire.gpu.global.or.b32 %r1, [%x0], 0;");
      default:
        return emit("ld.acquire.sys.global.u32 %r1, [%x0];");
      }
    };
    bool isSlow = draw(3) == 0;
    switch (draw(4)) {
    case 0:
      emit("{}:", again);
      load();
      if (isSlow)
        emit("nanosleep.u32 20;");
      emit("setp.lt.u32 %p1, %r1, {};", enough);
      emit("@%p1 bra {};", again);
      break;
    case 1:
      emit("{}:", again);
      load();
      emit("setp.ge.u32 %p1, %r1, {};", enough);
      emit("@%p1 bra {};", out);
      if (isSlow)
        emit("nanosleep.u32 20;");
      emit("bra {};", again);
      emit("{}:", out);
      break;
    case 2: // a fence behind
      emit("{}:", again);
      emit("{} %r1, [%x0];",
           toss() ? "ld.relaxed.gpu.global.u32" : "ld.volatile.global.u32");
      emit("setp.lt.u32 %p1, %r1, {};", enough);
      emit("@%p1 bra {};", again);
      emit("{};", toss() ? "fence.acq_rel.gpu" : "membar.gl");
      break;
    default: // with a growing delay
      emit("mov.u32 %r8, 8;");
      emit("{}:", again);
      load();
      emit("setp.ge.u32 %p1, %r1, {};", enough);
      emit("@%p1 bra {};", out);
      emit("nanosleep.u32 %r8;");
      emit("shl.b32 %r8, %r8, 1;");
      emit("min.u32 %r8, %r8, 256;");
      emit("bra {};", again);
      emit("{}:", out);
    }
  }

  /// The word at %x1 becomes %r2.
  void publish() {
    switch (draw(4)) {
    case 0:
      return emit("st.release.gpu.global.u32 [%x1], %r2;");
    case 1:
      emit("fence.acq_rel.gpu;");
      return emit("st.relaxed.gpu.global.u32 [%x1], %r2;");
    case 2:
      return emit("atom.release.gpu.global.exch.b32 %r3, [%x1], %r2;");
    default:
      return emit("red.release.gpu.global.add.u32 [%x1], %r2;");
    }
  }

  void meetThreads() {
    switch (draw(3)) {
    case 0:
      return emit("bar.sync 0;");
    case 1:
      return emit("barrier.sync 0;");
    default:
      return emit("bar.warp.sync -1;\nbar.sync 0;");
    }
  }

  /// A look-back: each CTA takes a ticket, waits for the one before, publishes.
  void addChain() {
    std::uint32_t counter = allocate(1), flags = allocate(grid);
    std::uint32_t by = 1 + draw(5), shared = slot();
    bool isShared = toss();
    elect(draw(live_), [&] {
      std::string first = label();
      address("%x2", counter, "0");
      emit("atom.global.add.u32 %r0, [%x2], 1;");
      if (isShared)
        emit("st.shared.u32 [slots+{}], %r0;", shared);
      address("%x1", flags, "%r0");
      emit("mov.u32 %r2, {};", by);
      emit("setp.eq.u32 %p2, %r0, 0;");
      emit("@%p2 bra {};", first);
      emit("sub.u64 %x0, %x1, 4;");
      spin();
      emit("add.u32 %r2, %r1, {};", by);
      emit("{}:", first);
      publish();
    });
    for (std::uint32_t i = 0; i < grid; ++i)
      wanted[flags + i] = by * (i + 1);
    if (!isShared)
      return;
    // What the elected one took is everybody's.
    std::uint32_t out = allocate(grid * threads);
    meetThreads();
    emit("ld.shared.u32 %r0, [slots+{}];", shared);
    emit("mad.lo.u32 %r1, %r0, {}, %t;", threads);
    address("%x0", out, "%r1");
    emit("add.u32 %r2, %r1, 3;");
    emit("st.global.u32 [%x0], %r2;");
    for (std::uint32_t i = 0; i < grid; ++i)
      for (std::uint32_t t = 0; t < live_; ++t)
        wanted[out + i * threads + t] = i * threads + t + 3;
  }

  /// A few threads of each CTA tell those of the next, and wait to be told.
  void addExchange() {
    std::uint32_t count = 1 + draw(3), first = draw(live_ - count + 1);
    std::uint32_t flags = allocate(grid * count), out = allocate(grid * count);
    std::uint32_t by = 1 + draw(5);
    std::string over = label();
    emit("sub.u32 %r4, %t, {};", first);
    emit("setp.ge.u32 %p0, %r4, {};", count);
    emit("@%p0 bra {};", over);
    emit("add.u32 %r0, %c, 1;");
    emit("setp.eq.u32 %p1, %r0, %n;");
    emit("selp.u32 %r0, 0, %r0, %p1;");
    emit("mad.lo.u32 %r0, %r0, {}, %r4;", count);
    address("%x1", flags, "%r0");
    emit("add.u32 %r2, %c, {};", by);
    publish();
    emit("mad.lo.u32 %r0, %c, {}, %r4;", count);
    address("%x0", flags, "%r0");
    address("%x3", out, "%r0");
    spin();
    emit("st.global.u32 [%x3], %r1;");
    emit("{}:", over);
    for (std::uint32_t i = 0; i < grid; ++i)
      for (std::uint32_t j = 0; j < count; ++j)
        wanted[out + i * count + j] = (i + grid - 1) % grid + by;
  }

  /// All threads of the grid meet, and read what others have written.
  void addGridBarrier() {
    std::uint32_t parts = allocate(grid), counter = allocate(1);
    std::uint32_t out = allocate(grid), who = draw(live_);
    elect(who, [&] {
      address("%x0", parts, "%c");
      emit("mul.lo.u32 %r0, %c, 5;");
      emit("st.global.u32 [%x0], %r0;");
    });
    emit("bar.sync 0;");
    elect(draw(live_), [&] {
      address("%x0", counter, "0");
      emit("atom.acq_rel.gpu.global.add.u32 %r0, [%x0], 1;");
      spin(grid);
    });
    emit("bar.sync 0;");
    elect(draw(live_), [&] {
      emit("sub.u32 %r0, %n, %c;");
      emit("sub.u32 %r0, %r0, 1;");
      address("%x0", parts, "%r0");
      address("%x1", out, "%c");
      emit("ld.global.u32 %r1, [%x0];");
      emit("st.global.u32 [%x1], %r1;");
    });
    for (std::uint32_t i = 0; i < grid; ++i)
      wanted[out + i] = 5 * (grid - 1 - i);
  }

  /// A thread waits for another of its CTA, perhaps of its warp.
  void addHandOver() {
    if (live_ < 2)
      return;
    std::uint32_t waits = draw(live_), sends = draw(live_ - 1);
    sends += sends >= waits;
    if (toss() && (waits | 31) < live_) // of one warp
      sends = (waits & ~31u) + (waits + 1 + draw(31)) % 32;
    std::uint32_t flag = slot(), data = slot(), out = allocate(grid);
    std::string send = label(), again = label(), over = label();
    emit("setp.eq.u32 %p0, %t, {};", sends);
    emit("@%p0 bra {};", send);
    emit("setp.ne.u32 %p0, %t, {};", waits);
    emit("@%p0 bra {};", over);
    emit("{}:", again);
    emit("ld.acquire.cta.shared.u32 %r0, [slots+{}];", flag);
    emit("setp.eq.u32 %p1, %r0, 0;");
    emit("@%p1 bra {};", again);
    emit("ld.shared.u32 %r1, [slots+{}];", data);
    address("%x0", out, "%c");
    emit("st.global.u32 [%x0], %r1;");
    emit("bra {};", over);
    emit("{}:", send);
    emit("add.u32 %r0, %c, 9;");
    emit("st.shared.u32 [slots+{}], %r0;", data);
    emit("st.release.cta.shared.u32 [slots+{}], 1;", flag);
    emit("{}:", over);
    for (std::uint32_t i = 0; i < grid; ++i)
      wanted[out + i] = i + 9;
  }

  /// A lock that some threads of every CTA take, one after the other.
  void addLock() {
    std::uint32_t lock = allocate(1), sum = allocate(1);
    std::uint32_t every = grid > 4 ? 32 : 1u << draw(6), rest = draw(every);
    std::string over = label(), again = label(), busy = label();
    emit("and.b32 %r0, %t, {};", every - 1);
    emit("setp.ne.u32 %p0, %r0, {};", rest);
    emit("@%p0 bra {};", over);
    address("%x0", lock, "0");
    address("%x1", sum, "0");
    auto work = [&] {
      emit("ld.global.u32 %r1, [%x1];");
      emit("add.u32 %r1, %r1, 1;");
      emit("st.global.u32 [%x1], %r1;");
      emit("{}", toss() ? "st.release.gpu.global.u32 [%x0], 0;"
                        : "atom.release.gpu.global.exch.b32 %r3, [%x0], 0;");
    };
    emit("{}:", again);
    emit("atom.acquire.gpu.global.cas.b32 %r2, [%x0], 0, 1;");
    emit("setp.ne.u32 %p1, %r2, 0;");
    if (toss()) {
      emit("@%p1 bra {};", again);
      work();
    } else { // with the work inside the loop
      emit("@%p1 bra {};", busy);
      work();
      emit("{}:", busy);
      emit("@%p1 bra {};", again);
    }
    emit("{}:", over);
    std::uint32_t takers = 0;
    for (std::uint32_t t = 0; t < live_; ++t)
      takers += t % every == rest;
    wanted[sum] = grid * takers;
  }

  /// The last CTA adds up what all have left.
  void addLastBlock() {
    std::uint32_t parts = allocate(grid), counter = allocate(1);
    std::uint32_t out = allocate(1), sum = 0;
    elect(draw(live_), [&] {
      std::string over = label(), again = label();
      address("%x0", parts, "%c");
      emit("mad.lo.u32 %r0, %c, 3, 1;");
      emit("st.global.u32 [%x0], %r0;");
      address("%x1", counter, "0");
      emit("fence.acq_rel.gpu;");
      emit("atom.global.add.u32 %r0, [%x1], 1;");
      emit("add.u32 %r0, %r0, 1;");
      emit("setp.ne.u32 %p1, %r0, %n;");
      emit("@%p1 bra {};", over);
      emit("fence.acq_rel.gpu;");
      address("%x0", parts, "0");
      emit("mov.u32 %r1, 0;");
      emit("{}:", again);
      emit("ld.global.u32 %r2, [%x0];");
      emit("add.u32 %r1, %r1, %r2;");
      emit("add.u64 %x0, %x0, 4;");
      emit("sub.u32 %r0, %r0, 1;");
      emit("setp.ne.u32 %p2, %r0, 0;");
      emit("@%p2 bra {};", again);
      address("%x2", out, "0");
      emit("st.global.u32 [%x2], %r1;");
      emit("{}:", over);
    });
    for (std::uint32_t i = 0; i < grid; ++i)
      sum += 3 * i + 1;
    wanted[out] = sum;
  }

  /// One warp arrives at a named barrier and goes on, another waits there.
  void addNamedBarrier() {
    if (live_ < 64 || live_ % 32)
      return;
    std::uint32_t warps = live_ / 32, arrives = draw(warps);
    std::uint32_t waits = (arrives + 1 + draw(warps - 1)) % warps;
    std::uint32_t name = 1 + named_++, data = slot(), out = allocate(grid * 32);
    std::string wait = label(), over = label();
    emit("setp.eq.u32 %p0, %w, {};", waits);
    emit("@%p0 bra {};", wait);
    emit("setp.ne.u32 %p0, %w, {};", arrives);
    emit("@%p0 bra {};", over);
    elect(32 * arrives + draw(32), [&] {
      emit("add.u32 %r0, %c, 4;");
      emit("st.shared.u32 [slots+{}], %r0;", data);
    });
    emit("bar.arrive {}, 64;", name);
    emit("bra {};", over);
    emit("{}:", wait);
    emit("bar.sync {}, 64;", name);
    emit("ld.shared.u32 %r0, [slots+{}];", data);
    emit("and.b32 %r1, %t, 31;");
    emit("mad.lo.u32 %r1, %c, 32, %r1;");
    address("%x0", out, "%r1");
    emit("st.global.u32 [%x0], %r0;");
    emit("{}:", over);
    for (std::uint32_t i = 0; i < 32 * grid; ++i)
      wanted[out + i] = i / 32 + 4;
  }

  /// The CTAs of a cluster read each other's shared memory.
  void addClusterBarrier() {
    if (cluster == 1)
      return;
    std::uint32_t data = slot(), out = allocate(grid);
    elect(draw(live_), [&] {
      emit("add.u32 %r0, %c, 6;");
      emit("st.shared.u32 [slots+{}], %r0;", data);
    });
    emit("barrier.cluster.arrive.release.aligned;");
    if (toss()) {
      std::uint32_t delay = draw(64);
      std::string again = label();
      emit("add.u32 %r0, %w, {};", delay);
      emit("{}:", again);
      emit("sub.u32 %r0, %r0, 1;");
      emit("setp.gt.s32 %p0, %r0, 0;");
      emit("@%p0 bra {};", again);
    }
    emit("barrier.cluster.wait.acquire.aligned;");
    elect(draw(live_), [&] {
      emit("mov.u32 %r0, %cluster_ctarank;");
      emit("xor.b32 %r0, %r0, 1;");
      emit("mov.u32 %r1, slots;");
      emit("mapa.shared::cluster.u32 %r1, %r1, %r0;");
      emit("ld.shared::cluster.u32 %r2, [%r1+{}];", data);
      address("%x0", out, "%c");
      emit("st.global.u32 [%x0], %r2;");
    });
    for (std::uint32_t i = 0; i < grid; ++i)
      wanted[out + i] = (i ^ 1) + 6;
  }

  /// Two threads give a flag back and forth: of two CTAs, or of one.
  void addPingPong() {
    std::uint32_t flag = allocate(1), out = allocate(1), rounds = 2 + draw(6);
    bool isOfTwo = grid > 1 && toss();
    std::uint32_t one = draw(live_), other = draw(live_);
    if (!isOfTwo && one / 32 == other / 32)
      return;
    std::string over = label(), again = label();
    emit("mov.u32 %r4, {};", 2 * rounds);
    emit("setp.eq.u32 %p0, %t, {};", one);
    emit("setp.eq.and.u32 %p0, %c, 0, %p0;");
    emit("@%p0 mov.u32 %r4, 0;");
    emit("setp.eq.u32 %p0, %t, {};", other);
    emit("setp.eq.and.u32 %p0, %c, {}, %p0;", isOfTwo ? grid - 1 : 0);
    emit("@%p0 mov.u32 %r4, 1;");
    emit("setp.ge.u32 %p0, %r4, {};", 2 * rounds);
    emit("@%p0 bra {};", over);
    address("%x0", flag, "0");
    emit("{}:", again);
    emit("ld.acquire.gpu.global.u32 %r1, [%x0];");
    emit("setp.ne.u32 %p1, %r1, %r4;");
    emit("@%p1 bra {};", again);
    address("%x2", out, "0");
    emit("ld.global.u32 %r2, [%x2];");
    emit("mad.lo.u32 %r2, %r2, 3, 1;");
    emit("st.global.u32 [%x2], %r2;");
    emit("add.u32 %r1, %r1, 1;");
    emit("st.release.gpu.global.u32 [%x0], %r1;");
    emit("add.u32 %r4, %r4, 2;");
    emit("setp.lt.u32 %p1, %r4, {};", 2 * rounds);
    emit("@%p1 bra {};", again);
    emit("{}:", over);
    std::uint32_t value = 0;
    for (std::uint32_t i = 0; i < 2 * rounds; ++i)
      value = 3 * value + 1;
    wanted[flag] = 2 * rounds;
    wanted[out] = value;
  }

  /// CTAs take tiles from a queue until there are none; each tile waits for the
  /// one before.
  void addQueue() {
    std::uint32_t tiles = 2 * grid + 1, counter = allocate(1);
    std::uint32_t flags = allocate(tiles), out = allocate(tiles * threads);
    std::uint32_t taken = slot(), by = 1 + draw(5);
    std::string next = label(), done = label();
    emit("{}:", next);
    elect(draw(live_), [&] {
      address("%x2", counter, "0");
      emit("atom.global.add.u32 %r0, [%x2], 1;");
      emit("st.shared.u32 [slots+{}], %r0;", taken);
    });
    meetThreads();
    emit("ld.shared.u32 %r5, [slots+{}];", taken);
    meetThreads();
    emit("setp.ge.u32 %p3, %r5, {};", tiles);
    emit("@%p3 bra {};", done);
    elect(draw(live_), [&] {
      std::string first = label();
      address("%x1", flags, "%r5");
      emit("mov.u32 %r2, {};", by);
      emit("setp.eq.u32 %p2, %r5, 0;");
      emit("@%p2 bra {};", first);
      emit("sub.u64 %x0, %x1, 4;");
      spin();
      emit("add.u32 %r2, %r1, {};", by);
      emit("{}:", first);
      publish();
    });
    emit("mad.lo.u32 %r1, %r5, {}, %t;", threads);
    address("%x0", out, "%r1");
    emit("st.global.u32 [%x0], %r5;");
    emit("bra {};", next);
    emit("{}:", done);
    for (std::uint32_t i = 0; i < tiles; ++i) {
      wanted[flags + i] = by * (i + 1);
      for (std::uint32_t t = 0; t < live_; ++t)
        wanted[out + i * threads + t] = i;
    }
  }

  /// All threads count those of a kind, or the lanes of a warp add up.
  void addVote() {
    std::uint32_t out = allocate(grid * threads), kind = 2 + draw(4), sum = 0;
    bool isOfWarp = toss() && live_ % 32 == 0;
    emit("rem.u32 %r0, %t, {};", kind);
    emit("setp.eq.u32 %p1, %r0, 0;");
    if (isOfWarp)
      emit("redux.sync.add.u32 %r0, %t, -1;");
    else
      emit("bar.red.popc.u32 %r0, 0, %p1;");
    emit("mad.lo.u32 %r1, %c, {}, %t;", threads);
    address("%x0", out, "%r1");
    emit("st.global.u32 [%x0], %r0;");
    for (std::uint32_t t = 0; t < live_; ++t)
      sum += t % kind == 0;
    for (std::uint32_t i = 0; i < grid; ++i)
      for (std::uint32_t t = 0; t < live_; ++t)
        wanted[out + i * threads + t] =
            isOfWarp ? 32 * (t & ~31u) + 31 * 16 : sum;
  }

  /// Whole warps leave, or some lanes of the last one.
  void addExit() {
    if (live_ <= 32)
      return;
    live_ = toss() || cluster > 1 ? 32 * (1 + draw((live_ - 1) / 32))
                                  : 32 + draw(live_ - 32) + 1;
    emit("setp.ge.u32 %p0, %t, {};", live_);
    emit("@%p0 {};", toss() ? "exit" : "ret");
  }

  void addPhase() {
    switch (draw(14)) {
    case 0:
      addQueue();
      break;
    case 1:
      addChain();
      break;
    case 2:
      addExchange();
      break;
    case 3:
      addGridBarrier();
      break;
    case 4:
      addHandOver();
      break;
    case 5:
      addLock();
      break;
    case 6:
      addLastBlock();
      break;
    case 7:
      addNamedBarrier();
      break;
    case 8:
      addClusterBarrier();
      break;
    case 9:
      meetThreads();
      break;
    case 10:
      addVote();
      break;
    case 11:
      addChain();
      break;
    case 12:
      addPingPong();
      break;
    default:
      addExit();
    }
    if (toss())
      meetThreads();
  }

  std::mt19937_64 &random_;
  std::string text_;
  std::uint32_t live_, labels_ = 0, slots_ = 0, named_ = 0;
};

/// What is wrong with one run; empty: nothing.
std::string run(const Kernel &kernel, const std::string &ptx, Interleaving order,
                std::uint64_t seed) {
  SimOptions options;
  options.interleaving = order;
  options.seed = seed;
  options.threads = 1;
  options.max_instructions = 10'000'000;
  options.device = sim_device_for(ptx);
  auto device = open_sim(options);
  std::vector<std::uint32_t> memory(kernel.words + 1, 0);
  Buffer buffer = device->allocate(4 * memory.size());
  device->copy_in(buffer, memory.data(), 4 * memory.size(), Stream());
  LaunchDescription launch;
  launch.name = "test";
  launch.ptx = ptx;
  launch.grid = {kernel.grid, 1, 1};
  launch.block = {kernel.threads, 1, 1};
  launch.cluster = {kernel.cluster, 1, 1};
  launch.parameters = {{buffer}};
  std::string text;
  try {
    for (const Finding &finding : device->launch(launch, Stream()).findings)
      text += fmt::format("\n  {}: {}", finding.id, finding.message);
  } catch (const Error &error) {
    return fmt::format("\n  {}", error.what());
  }
  device->copy_out(memory.data(), buffer, 4 * memory.size(), Stream());
  for (auto [word, value] : kernel.wanted)
    if (memory[word] != value) {
      text += fmt::format("\n  word {} is {} and should be {}", word,
                          memory[word], value);
      break;
    }
  return text;
}

/// How many interleavings of a kernel went wrong.
int tryKernel(const Options &options, std::uint64_t number) {
  std::mt19937_64 random(options.seed * 0x9e3779b97f4a7c15 + number);
  Kernel kernel(random);
  std::string ptx = kernel.ptx();
  if (options.isShown)
    std::fputs(ptx.c_str(), stdout);
  int wrong = 0;
  auto look = [&](const char *name, Interleaving order, std::uint64_t seed) {
    std::string text = run(kernel, ptx, order, seed);
    if (text.empty())
      return;
    if (++wrong == 1)
      fmt::print("kernel {} of seed {}, grid {}, block {}, cluster {}, {} with "
                 "seed {}:{}\n",
                 number, options.seed, kernel.grid, kernel.threads,
                 kernel.cluster, name, seed, text);
  };
  look("eager", Interleaving::eager, 0);
  look("lazy", Interleaving::lazy, 0);
  for (std::uint64_t seed = 0; seed < options.seeds; ++seed)
    look("random", Interleaving::random, seed);
  return wrong;
}

int run(const Options &options) {
  std::uint64_t first = options.only.value_or(0);
  std::uint64_t last = options.only ? first + 1 : options.kernels;
  std::uint64_t kernels = 0;
  int wrong = 0;
  for (std::uint64_t number = first; number < last; ++number) {
    int count = tryKernel(options, number);
    kernels += count > 0;
    wrong += count;
  }
  fmt::print("{} kernels in {} interleavings each: {} went wrong, in {} "
             "interleavings\n",
             last - first, options.seeds + 2, kernels, wrong);
  return kernels > 0;
}

} // namespace
} // namespace kiln::fuzz

int main(int argc, char **argv) {
  try {
    return kiln::fuzz::run(kiln::fuzz::readOptions(argc, argv));
  } catch (const kiln::Error &error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 3;
  }
}
