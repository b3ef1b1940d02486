// LaunchChecks: registers of products and loads in flight, and unwritten bytes.
#include "sim/checks/LaunchChecks.h"
#include "sim/checks/Poison.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

/// Remember the accumulators that `op` touches.
static void noteTouched(Warp &warp, const Op &op) {
  WgmmaQueue &wgmma = warp.wgmma;
  wgmma.touched.resize(warp.code().registerCount);
  auto note = [&](const Reg &reg, bool isWritten) {
    if (!reg.isValid())
      return;
    WgmmaQueue::Touch &touch = wgmma.touched[reg.index];
    wgmma.touchedCount += !touch.op;
    bool wasWritten = touch.isWritten && touch.fences == wgmma.fences;
    if (isWritten || !wasWritten)
      touch = {&op, wgmma.fences, isWritten};
  };
  note(op.dst, true);
  note(op.dst2, true);
  for (const Reg &reg : op.src)
    note(reg, false);
  for (const Reg &reg : op.list)
    note(reg, op.isListWritten);
}

/// End the launch where `op` touches an accumulator in flight.
static void checkHeld(Warp &warp, const Op &op, LaneMask active) {
  const WgmmaQueue &wgmma = warp.wgmma;
  Findings &findings = warp.machine().findings();
  auto isAmong = [](const std::vector<Reg> &list, const Reg &reg) {
    return std::any_of(list.begin(), list.end(), [&](const Reg &held) {
      return held.index == reg.index;
    });
  };
  auto check = [&](const Reg &reg, bool isWritten) {
    if (!reg.isValid() || !wgmma.isHeld(reg))
      return;
    for (const WgmmaQueue::Held &held : wgmma.held) {
      bool isAccumulator = isAmong(held.registers, reg);
      if (!isAccumulator && !(isWritten && isAmong(held.fragment, reg)))
        continue;
      SourceLine line = findings.sourceLine(*held.op->origin);
      findings.report(
          FindingId::wgmmaRegisterInFlight, warp, op, active,
          fmt::format("this touches {} of the wgmma at {}:{}, which no "
                      "wgmma.wait_group has covered",
                      isAccumulator ? "an accumulator" : "operand A", line.file,
                      line.line));
    }
  };
  check(op.dst, true);
  check(op.dst2, true);
  for (const Reg &reg : op.src)
    check(reg, false);
  for (const Reg &reg : op.list)
    check(reg, op.isListWritten);
}

/// Whether `op` reads a register that a tcgen05.ld fills.
static bool isUseOf(const Op &load, const Op &op) {
  auto isFilled = [&](const Reg &reg) {
    return reg.isValid() && std::any_of(load.list.begin(), load.list.end(),
                                        [&](const Reg &filled) {
                                          return filled.index == reg.index;
                                        });
  };
  return std::any_of(std::begin(op.src), std::end(op.src), isFilled) ||
         (!op.isListWritten &&
          std::any_of(op.list.begin(), op.list.end(), isFilled));
}

/// An instruction that reads a register of a tcgen05.ld waits for it (PTX ISA,
/// tcgen05: register dependencies, same thread). That the load has read tensor
/// memory by then the text does not say, and hardware does.
static void noteUsed(Warp &warp, const Op &op) {
  auto &loads = warp.tensor.loads;
  for (TensorQueue::Load &load : loads)
    load.isUsed |= isUseOf(*load.op, op);
  for (; !loads.empty() && loads.front().isUsed; loads.pop_front())
    warp.group().clocks.deFacto().clock.learn(View::completed,
                                              warp.tensor.components->loads,
                                              {.all = loads.front().time});
}

/// `op` uses what loads before it have read, in some lanes at least: there the
/// access counts.
static void tellLate(RaceDetector &races, Warp &warp, const Op &op,
                     LaneMask active) {
  const Code &code = warp.code();
  warp.lateValues.resize(static_cast<std::size_t>(code.lateCount));
  for (const LateUse &use : code.lateUses[static_cast<std::size_t>(op.late)]) {
    const Op &load = code.ops[static_cast<std::size_t>(use.load)];
    if (use.number < 0) {
      load.effect->tellOrder(warp, load, active, use.elements);
      continue;
    }
    auto &[waiting, time] =
        warp.lateValues[static_cast<std::size_t>(use.number)];
    if (use.isBegin) {
      if (!(waiting & ~active))
        time = ++warp.clock.now;
      waiting |= active;
      continue;
    }
    LaneMask used = active & waiting;
    if (use.mask.isValid())
      used &= use.isUsedWhere ? warp.pred(use.mask) : ~warp.pred(use.mask);
    waiting &= ~used;
    if (!used)
      continue;
    races.setReadAt(time);
    load.effect->tellOrder(warp, load, used, use.elements);
    races.setReadAt();
  }
}

/// `touching` has touched a register of a product; null: it is the first one.
static void tellUnfenced(RaceDetector &races, const WgmmaBegin &event,
                         const Op *touching, bool isWritten) {
  Warp &warp = event.warp;
  // Of registers that were read alone ptxas only wants to know that the reads
  // are over, and sees to it (C7519); released kernels rely on it.
  bool isError = !warp.wgmma.isFenced && (warp.wgmma.issued == 0 || isWritten);
  FindingId id = FindingId::wgmmaFence;
  std::string why = "no wgmma.fence stands before the kernel's first wgmma";
  if (touching)
    why = fmt::format("a register of this wgmma is {} at {}, and no "
                      "wgmma.fence stands between",
                      isWritten ? "touched" : "read",
                      warp.machine().findings().placeOf(*touching));
  if (!isError) {
    id = FindingId::wgmmaFenceOrder;
    why += warp.wgmma.isFenced
               ? "; the one before it does not count by the PTX text"
               : "; ptxas puts one in";
  }
  Access access{.warp = &warp, .op = &event.op, .issuers = event.lanes};
  Record earlier{};
  earlier.component = warp.clock.lanes;
  earlier.lanes = event.lanes;
  if (touching)
    earlier.op = static_cast<std::uint32_t>(touching - warp.code().ops.data());
  if (!races.isTold(id, access, earlier))
    races.tell(id, access, earlier, why, {});
}

/// Registers that were touched need a wgmma.fence before a product uses them,
/// and the first product of a kernel needs one in any case.
/// Warn where TMA wrote an operand in another swizzle than it is read in. Its
/// first bytes tell.
void LaunchChecks::on(const OperandRead &event) {
  ShadowedMemory &shadow = event.cta.shadow;
  if (event.firstOffset >= event.cta.shared.size() || shadow.swizzles.empty())
    return;
  Warp &warp = event.warp;
  FindingId id = event.op.effect->kind == EffectKind::product
                     ? FindingId::wgmmaSwizzle
                     : FindingId::tcgen05Swizzle;
  auto check = [&](const Record &record) {
    auto written = shadow.swizzles.find(record.op);
    if (!record.isWrite() || written == shadow.swizzles.end() ||
        written->second == event.swizzleBytes)
      return;
    Findings &findings = warp.machine().findings();
    findings.report(
        id, warp, event.op, warp.live(),
        fmt::format("operand {} is read in swizzle {} and was written in "
                    "swizzle {} at {}",
                    event.isA ? "A" : "B", event.swizzleBytes, written->second,
                    findings.placeOf(warp.code().ops[record.op])),
        {"shared", event.start});
  };
  shadow.cells.peek(event.firstOffset / Shadow::kCellBytes, check);
}

void LaunchChecks::on(const WgmmaBegin &event) {
  Warp &warp = event.warp;
  WgmmaQueue &wgmma = warp.wgmma;
  const Op *touching = nullptr;
  bool isWritten = false;
  for (const auto &list : {event.accumulator, event.fragment})
    for (const Reg &reg : list) {
      if (!wgmma.touchedCount || reg.index >= wgmma.touched.size())
        break;
      WgmmaQueue::Touch &touch = wgmma.touched[reg.index];
      if (touch.op && touch.fences == wgmma.fences &&
          (!touching || touch.isWritten >= isWritten)) {
        touching = touch.op;
        isWritten = touch.isWritten;
      }
      wgmma.touchedCount -= touch.op != nullptr;
      touch = {};
    }
  bool isFirst = wgmma.issued == 0;
  if (touching || (isFirst && !wgmma.isFenced))
    tellUnfenced(races_, event, touching, isWritten);
}

void LaunchChecks::on(const RegisterUse &event) {
  Warp &warp = event.warp;
  const Op &op = event.op;
  LaneMask active = event.lanes;
  if (op.touchesAccumulator) {
    if (!warp.wgmma.held.empty())
      checkHeld(warp, op, active);
    noteTouched(warp, op);
  }
  if (op.readsLoaded && !warp.tensor.loads.empty())
    noteUsed(warp, op);
  if (op.late >= 0)
    tellLate(races_, warp, op, active);
  if (op.poison.isGeneral())
    passPoison(warp, op, active);
}

EventMask LaunchChecks::interests() const {
  EventMask mask =
      maskOf(EventKind::lifetime, EventKind::registers, EventKind::access,
             EventKind::async, EventKind::barrier, EventKind::fence,
             EventKind::allocation);
  return races_.keepsValues() ? mask | maskOf(EventKind::storedValue) : mask;
}

std::uint64_t LaunchChecks::bytes() const {
  return races_.global().cells.bytes() + races_.deferred().bytes();
}

} // namespace kiln::sim
