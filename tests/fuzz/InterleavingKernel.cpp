// InterleavingKernel: the frame of a kernel, and the pieces of its phases.
#include "InterleavingKernel.h"

namespace kiln::fuzz {

Kernel::Kernel(std::mt19937_64 &random) : random_(random) {
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

std::string Kernel::ptx() const {
  return fmt::format(R"(.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 memory)
{{
.shared .align 8 .b32 slots[{}];
.reg .b32 %t, %c, %w, %n, %r<10>, %h<32>;
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

void Kernel::begin() {
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

void Kernel::end() {
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

void Kernel::meetCluster() {
  emit("barrier.cluster.arrive.release.aligned;");
  emit("barrier.cluster.wait.acquire.aligned;");
}

void Kernel::elect(std::uint32_t who, const std::function<void()> &body) {
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

void Kernel::spin(std::uint32_t enough) {
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

void Kernel::publish() {
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

void Kernel::meetThreads() {
  switch (draw(3)) {
  case 0:
    return emit("bar.sync 0;");
  case 1:
    return emit("barrier.sync 0;");
  default:
    return emit("bar.warp.sync -1;\nbar.sync 0;");
  }
}

void Kernel::addPhase() {
  using Add = void (Kernel::*)();
  static constexpr Add kPhases[] = {
      &Kernel::addQueue,          &Kernel::addChain,
      &Kernel::addExchange,       &Kernel::addGridBarrier,
      &Kernel::addHandOver,       &Kernel::addLock,
      &Kernel::addLastBlock,      &Kernel::addNamedBarrier,
      &Kernel::addClusterBarrier, &Kernel::meetThreads,
      &Kernel::addVote,           &Kernel::addHoisted,
      &Kernel::addPingPong,       &Kernel::addExit};
  (this->*kPhases[draw(std::size(kPhases))])();
  if (toss())
    meetThreads();
}

} // namespace kiln::fuzz
