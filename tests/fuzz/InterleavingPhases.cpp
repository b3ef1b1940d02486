// InterleavingPhases: what the threads of a kernel do with each other.
#include "InterleavingKernel.h"

namespace kiln::fuzz {

void Kernel::passOn(std::uint32_t flags, const char *index, std::uint32_t by) {
  std::string first = label();
  address("%x1", flags, index);
  emit("mov.u32 %r2, {};", by);
  emit("setp.eq.u32 %p2, {}, 0;", index);
  emit("@%p2 bra {};", first);
  emit("sub.u64 %x0, %x1, 4;");
  spin();
  emit("add.u32 %r2, %r1, {};", by);
  emit("{}:", first);
  publish();
}

void Kernel::addHoisted() {
  std::uint32_t data = slot(), out = allocate(grid);
  std::string over = label();
  elect(draw(live_), [&] { emit("st.shared.u32 [slots+{}], 5;", data); });
  // A value is followed through registers that have no other writer.
  std::string value = fresh(), other = fresh(), sum = fresh();
  if (toss() && data % 8 == 0)
    emit("ld.shared.v2.u32 {{{}, {}}}, [slots+{}];", value, other, data);
  else
    emit("ld.shared.u32 {}, [slots+{}];", value, data);
  emit("add.u32 {}, {}, 4;", sum, value);
  // No block has so many threads.
  emit("setp.lt.u32 %p1, %t, 2000;");
  if (toss()) {
    std::string chosen = fresh();
    emit("selp.u32 {}, %t, {}, %p1;", chosen, sum);
    sum = chosen;
  }
  emit("@%p1 bra {};", over);
  address("%x0", out, "%c");
  emit("st.global.u32 [%x0], {};", sum);
  emit("{}:", over);
  for (std::uint32_t i = 0; i < grid; ++i)
    wanted[out + i] = 0;
}

void Kernel::addChain() {
  std::uint32_t counter = allocate(1), flags = allocate(grid);
  std::uint32_t by = 1 + draw(5), shared = slot();
  bool isShared = toss();
  elect(draw(live_), [&] {
    address("%x2", counter, "0");
    emit("atom.global.add.u32 %r0, [%x2], 1;");
    if (isShared)
      emit("st.shared.u32 [slots+{}], %r0;", shared);
    passOn(flags, "%r0", by);
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

void Kernel::addExchange() {
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

void Kernel::addGridBarrier() {
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

void Kernel::addHandOver() {
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

void Kernel::addLock() {
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

void Kernel::addLastBlock() {
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

void Kernel::addNamedBarrier() {
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

void Kernel::addClusterBarrier() {
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

void Kernel::addPingPong() {
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

void Kernel::addQueue() {
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
  elect(draw(live_), [&] { passOn(flags, "%r5", by); });
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

void Kernel::addVote() {
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

void Kernel::addExit() {
  if (live_ <= 32)
    return;
  live_ = toss() || cluster > 1 ? 32 * (1 + draw((live_ - 1) / 32))
                                : 32 + draw(live_ - 32) + 1;
  emit("setp.ge.u32 %p0, %t, {};", live_);
  emit("@%p0 {};", toss() ? "exit" : "ret");
}

} // namespace kiln::fuzz
