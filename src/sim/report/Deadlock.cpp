// Deadlock: who waits for what, and who could have sent it.
//
// The ledger is read from the state in which everything stands still. A group
// of lanes is blocked in an instruction, or it spins: then the instructions of
// its loop that read say what it waits for.
#include "sim/program/Effect.h"
#include "sim/program/flow/SpinLoop.h"
#include "sim/report/Endings.h"
#include "sim/report/Ledger.h"
#include "sim/units/memory/Access.h"
#include "support/Error.h"

#include <algorithm>
#include <fmt/ranges.h>
#include <ranges>

namespace kiln::sim {

std::string places(const Machine &machine, const std::vector<const Op *> &ops) {
  std::vector<std::string> all;
  for (const Op *op : ops)
    if (std::string place = machine.findings().placeOf(*op);
        std::find(all.begin(), all.end(), place) == all.end())
      all.push_back(place);
  std::size_t more = all.size() > kPlaces ? all.size() - kPlaces : 0;
  all.resize(all.size() - more);
  std::string text = fmt::format("{}", fmt::join(all, ", "));
  return more ? text + fmt::format(" and {} more", more) : text;
}

/// What lies at an address that a loop reads, and who wrote it last.
static Wait waitForFlag(Machine &machine, Warp &warp, const Op &op, int lane) {
  const Effect &effect = *op.effect;
  std::uint64_t address = warp.read(effect.address, lane) +
                          static_cast<std::uint64_t>(effect.offset);
  bool isShared = effect.space == Space::shared ||
                  (effect.space == Space::generic &&
                   address >> kWindowShift == kSharedWindow >> kWindowShift);
  std::size_t bytes = static_cast<std::size_t>(std::clamp(effect.bytes, 1, 8));
  ByteRange place;
  try {
    place = Accessor(warp, op, "a poll")
                .locate(effect.space, address, bytes, 1, lane, false);
  } catch (const Unexecuted &) {
    // The register has another value by now.
    Wait wait{"what a loop reads, at an address that has changed since"};
    wait.kind = "memory";
    return wait;
  }
  std::uint64_t value = 0;
  std::memcpy(&value, place.data, bytes);
  Wait wait;
  wait.kind = "memory";
  if (isShared) {
    address = place.offset + kFirstSharedAddress;
    wait.object = {"shared", address};
    wait.what =
        fmt::format("the {} bytes at shared address {}", bytes, address);
  } else {
    Region *region = machine.memory().find(address);
    wait.object = {"global", address, region ? region->name : ""};
    wait.what = fmt::format("the {} bytes at global address {:#x} ({})", bytes,
                            address, machine.memory().describe(address));
  }
  wait.what += fmt::format(", which are {:#x}", value);
  if (const LastWriter *last = warp.cta().cluster().lastWriters().find(place.data))
    wait.what +=
        fmt::format(", last written by thread {} of CTA ({}, {}, {}) at {}",
                    last->thread, last->cta[0], last->cta[1], last->cta[2],
                    machine.findings().placeOf(*last->op));
  else if (!place.isWritten(bytes))
    wait.what += ", and nobody has written them";
  auto writers = instructions(machine, [&](const Op &other) {
    const Effect &by = *other.effect;
    bool isWrite =
        by.kind == EffectKind::store || by.kind == EffectKind::atomic;
    Space other_space = isShared ? Space::shared : Space::global;
    return isWrite && &other != &op &&
           (by.space == other_space || by.space == Space::generic);
  });
  wait.source = writers.empty()
                    ? "no instruction of the kernel can write there"
                    : "it could be written by " + places(machine, writers);
  return wait;
}

/// What is read last, which decides, and by which lanes: not by those that a
/// predicate turns off.
static std::pair<const Op *, LaneMask> lastPoll(const Warp &warp,
                                                const Group &group) {
  std::vector<const Op *> polls = warp.pollsOf(group);
  for (const Op *poll : std::views::reverse(polls)) {
    Pred guard = poll->guard;
    LaneMask lanes = guard.isValid() ? warp.pred(guard) : kAllLanes;
    if (lanes & group.lanes)
      return {poll, lanes & group.lanes};
  }
  return {polls.back(), group.lanes};
}

static Wait waitInLoop(Machine &machine, Warp &warp, const Group &group) {
  auto [poll, lanes] = lastPoll(warp, group);
  const Op &op = *poll;
  const Effect &effect = *op.effect;
  int lane = firstLane(lanes);
  Wait wait;
  if (effect.kind == EffectKind::barrierWait) {
    std::uint64_t address = warp.read(effect.address, lane) +
                            static_cast<std::uint64_t>(effect.offset);
    wait = waitForMbarrier(
        machine, warp,
        static_cast<std::uint32_t>(address & ((1u << kRankShift) - 1)),
        static_cast<std::uint32_t>(warp.read(effect.operand, lane) & 1));
  } else {
    wait = waitForFlag(machine, warp, op, lane);
  }
  wait.op = &op;
  return wait;
}

/// The warps that a named barrier of the CTA still waits for.
static std::string missingAt(Machine &machine, Cta &cta,
                             std::uint64_t barrier) {
  std::vector<std::string> missing;
  for (auto &warp : cta.warps()) {
    const Group *elsewhere = nullptr;
    for (const Group &group : warp->groups())
      if (group.wait.kind != WaitReason::Kind::ctaBarrier ||
          group.wait.object != barrier)
        elsewhere = &group;
    if (elsewhere && missing.size() < kPlaces)
      missing.push_back(fmt::format(
          "warp {} is at {}", warp->index(),
          machine.findings().placeOf(warp->code().ops[elsewhere->pc])));
    if (warp->isDone() && missing.size() < kPlaces)
      missing.push_back(fmt::format("warp {} has left", warp->index()));
  }
  return fmt::format("{}", fmt::join(missing, "; "));
}

/// A loop of several rounds, or with branches in it, that repeats itself.
static Wait waitInRepeat(Machine &machine, Warp &warp) {
  const LoopWatch &watch = warp.watch();
  Wait wait{fmt::format("a loop that repeats itself every {} rounds and reads "
                        "memory at {}",
                        watch.period(),
                        places(machine, watch.polls(warp.code())))};
  wait.kind = "loop";
  wait.op = &warp.code().ops[watch.head()];
  return wait;
}

/// tcgen05.alloc: columns that are taken, or the other CTA of the pair.
static Wait waitForColumns(const Machine &machine, Cta &cta,
                           const WaitReason &reason) {
  Wait wait;
  wait.kind = "tensor-memory";
  const TensorMemory &memory = cta.tensorMemory();
  if (memory.wanted) {
    wait.what =
        fmt::format("tcgen05.alloc.cta_group::2 of {} columns: CTA {} of the "
                    "cluster, the other one of the pair, has not asked for "
                    "them",
                    reason.object, cta.rankInCluster() ^ 1);
    return wait;
  }
  std::vector<std::string> taken;
  for (const TensorMemory::Allocation &one : memory.allocations)
    taken.push_back(fmt::format("columns {} to {} at {}", one.column,
                                one.column + one.columns - 1,
                                machine.findings().placeOf(*one.op)));
  wait.what = fmt::format("tcgen05.alloc of {} columns of tensor memory, which "
                          "has {}",
                          reason.object, TensorMemory::kColumns);
  wait.source = fmt::format("allocated are {}", fmt::join(taken, ", "));
  return wait;
}

static Wait waitOf(Machine &machine, Warp &warp, const Group &group) {
  if (group.isStuck)
    return waitInRepeat(machine, warp);
  if (group.isSpinning)
    return waitInLoop(machine, warp, group);
  Cta &cta = warp.cta();
  const WaitReason &reason = group.wait;
  Wait wait;
  switch (reason.kind) {
  case WaitReason::Kind::mbarrier:
    wait = waitForMbarrier(machine, warp,
                           static_cast<std::uint32_t>(reason.object),
                           reason.detail);
    break;
  case WaitReason::Kind::ctaBarrier: {
    const CtaBarrier &barrier = cta.barriers[reason.object];
    wait.kind = "barrier";
    wait.number = reason.object;
    wait.what =
        fmt::format("barrier {}: {} of {} threads have arrived", reason.object,
                    barrier.arrived,
                    barrier.expected ? barrier.expected : cta.liveThreads());
    wait.source = missingAt(machine, cta, reason.object);
    break;
  }
  case WaitReason::Kind::clusterBarrier: {
    std::uint32_t live = 0;
    wait.kind = "cluster";
    for (std::size_t rank = 0; rank < cta.cluster().size(); ++rank)
      live += cta.cluster().cta(static_cast<int>(rank)).liveThreads();
    wait.what =
        fmt::format("the cluster barrier: {} of {} threads have arrived",
                    cta.cluster().barrierArrived, live);
    break;
  }
  case WaitReason::Kind::registers:
    wait.kind = "registers";
    wait.what = fmt::format("setmaxnreg {}: {} registers are free in the CTA, "
                            "the warp needs {} more",
                            reason.detail, cta.registerPool,
                            (static_cast<int>(reason.detail) - warp.registers) *
                                kLanes);
    if (auto releases = instructions(machine,
                                     [](const Op &op) {
                                       return op.effect->kind ==
                                                  EffectKind::registers &&
                                              op.effect->isGivingUp;
                                     });
        releases.empty())
      wait.source = "no setmaxnreg.dec of the kernel releases registers";
    else
      wait.source = "registers are released at " + places(machine, releases);
    break;
  case WaitReason::Kind::lanes:
    wait.kind = "lanes";
    wait.what = fmt::format("other lanes of its warp: those of the mask {:#x}",
                            reason.object);
    break;
  case WaitReason::Kind::wgmma:
    wait.kind = "wgmma";
    wait.what = "a wgmma that not all four warps have issued";
    break;
  case WaitReason::Kind::primary:
    wait.kind = "launch";
    wait.what = "the end of the launch ahead of this one";
    break;
  case WaitReason::Kind::tensorMemory:
    wait = waitForColumns(machine, cta, reason);
    break;
  default:
    // It could have gone on: the launch has lost its turn, which says nothing
    // of the kernel.
    internalError("threads {} to {} of CTA ({}, {}, {}) wait for nothing at "
                  "{}, and were not run",
                  warp.thread(firstLane(group.lanes)),
                  warp.thread(31 - std::countl_zero(group.lanes)),
                  cta.index()[0], cta.index()[1], cta.index()[2],
                  machine.findings().placeOf(warp.code().ops[group.pc]));
  }
  wait.op = &warp.code().ops[group.pc];
  return wait;
}

/// Where a group stands while the launch is under way.
static Wait standOf(Machine &machine, Warp &warp, const Group &group) {
  Wait wait{group.isParked ? "waiting where paths of its warp meet"
                           : "running"};
  wait.op = &warp.code().ops[group.pc];
  bool isWaiting =
      group.isSpinning || group.wait.kind != WaitReason::Kind::none;
  if (group.isParked || !isWaiting)
    return wait;
  try {
    return waitOf(machine, warp, group);
  } catch (const Unexecuted &) {
    // What it reads is not there, which it will find out itself.
    return wait;
  }
}

static std::string show(const Machine &machine, const Line &line) {
  std::string threads =
      line.first == line.last
          ? fmt::format("thread {}", line.first)
          : fmt::format("threads {} to {}", line.first, line.last);
  std::string text =
      fmt::format("\n  CTA ({}, {}, {}), {}: {}, at {}", line.cta[0],
                  line.cta[1], line.cta[2], threads, line.wait.what,
                  machine.findings().placeOf(*line.wait.op));
  return line.wait.source.empty() ? text : text + "\n    " + line.wait.source;
}

/// One line for each group; warps in a row that wait for the same are one.
template <typename Of>
static std::vector<Line> linesOf(const std::vector<Cluster *> &clusters,
                                 Of &&of) {
  std::vector<Line> lines;
  for (Cluster *cluster : clusters)
    for (std::size_t rank = 0; rank < cluster->size(); ++rank)
      for (auto &warp : cluster->cta(static_cast<int>(rank)).warps())
        for (Group &group : warp->groups()) {
          int first = warp->thread(firstLane(group.lanes));
          int last = warp->thread(31 - std::countl_zero(group.lanes));
          Wait wait = of(*warp, group);
          if (!lines.empty() && lines.back().cta == warp->cta().index() &&
              lines.back().last + 1 == first &&
              lines.back().wait.op == wait.op &&
              lines.back().wait.what == wait.what)
            lines.back().last = last;
          else
            lines.push_back({warp->cta().index(), first, last, wait});
        }
  return lines;
}

std::vector<Line> linesOf(Machine &machine,
                          const std::vector<Cluster *> &clusters) {
  return linesOf(clusters, [&](Warp &warp, Group &group) {
    return standOf(machine, warp, group);
  });
}

std::string showAll(const Machine &machine, const std::vector<Line> &lines) {
  std::string text;
  for (std::size_t i = 0; i < lines.size() && i < kLines; ++i)
    text += show(machine, lines[i]);
  if (lines.size() > kLines)
    text += fmt::format("\n  and {} more", lines.size() - kLines);
  return text;
}

/// Whether everyone in a cluster is in a loop that repeats itself.
static bool isAllStuck(Cluster *cluster) {
  for (std::size_t rank = 0; rank < cluster->size(); ++rank)
    for (auto &warp : cluster->cta(static_cast<int>(rank)).warps())
      for (const Group &group : warp->groups())
        if (!group.isStuck)
          return false;
  return true;
}

Finding describeDeadlock(Machine &machine,
                         const std::vector<Cluster *> &clusters,
                         std::uint64_t notBegun) {
  std::vector<Line> lines = linesOf(clusters, [&](Warp &warp, Group &group) {
    return waitOf(machine, warp, group);
  });
  // Barriers of threads wait for those who wait for something else.
  auto named = std::find_if(lines.begin(), lines.end(), [](const Line &line) {
    return *line.wait.object.space != 0;
  });
  const Line &first = named == lines.end() ? lines.front() : *named;
  FindingId id = FindingId::deadlock;
  std::string what = "all remaining threads are blocked:";
  if (std::all_of(clusters.begin(), clusters.end(), isAllStuck)) {
    id = FindingId::endlessLoop;
    what = "all remaining threads repeat loops that make no progress, and no "
           "thread can change what they read:";
  }
  Finding finding{.id = {},
                  .message = what + showAll(machine, lines),
                  .where =
                      machine.findings().sourceLine(*first.wait.op->origin),
                  .ptx_line = first.wait.op->origin->line,
                  .cta = first.cta,
                  .thread = first.first,
                  .space = first.wait.object.space,
                  .address = first.wait.object.address,
                  .buffer = first.wait.object.name,
                  .waits = waitsOf(machine, clusters, lines)};
  if (notBegun)
    finding.message +=
        fmt::format("\n  {} CTAs have not begun: the device has no room for "
                    "them until others end",
                    notBegun);
  return machine.findings().ending(id, std::move(finding));
}

Finding describeLimit(Cluster &cluster) {
  Machine &machine = cluster.machine();
  std::vector<Line> lines = linesOf({&cluster}, [&](Warp &warp, Group &group) {
    Wait wait{group.isSpinning ? "spinning" : "running or waiting"};
    wait.op = &warp.code().ops[std::min<std::size_t>(
        static_cast<std::size_t>(group.pc), warp.code().ops.size() - 1)];
    return wait;
  });
  const Dim3 &cta = cluster.cta(0).index();
  return machine.findings().ending(
      FindingId::instructionLimit,
      {.id = {},
       .message = fmt::format(
           "CTA ({}, {}, {}) has executed {} warp instructions and is not "
           "done; the limit is {} (--max-instructions). It needs more, or it "
           "moves without getting anywhere:{}",
           cta[0], cta[1], cta[2], cluster.instructions / cluster.size(),
           machine.config().max_instructions, showAll(machine, lines)),
       .where = machine.findings().sourceLine(*lines.front().wait.op->origin),
       .ptx_line = lines.front().wait.op->origin->line,
       .cta = cta});
}

} // namespace kiln::sim
