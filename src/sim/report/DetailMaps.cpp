// DetailMaps: what was noted of a cluster, as a report page shows it.
#include "kiln/base/text.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"
#include "sim/report/DetailRecorder.h"

#include <algorithm>
#include <iterator>

namespace kiln::sim {

/// Events of a timeline that are kept at either end of it, clusters that are
/// shown, and what is shown of each of them.
static constexpr std::size_t kTimelineEnd = 1500;
static constexpr std::size_t kMostBarriers = 64, kMostMaps = 4,
                             kMostMapRuns = 1500;

void ClusterDetail::add(ClusterDetail &&other) {
  counts.add(other.counts);
  auto move = [](auto &to, auto &from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()),
              std::make_move_iterator(from.end()));
  };
  if (kept.shared.size() >= kMostMaps)
    return;
  move(kept.timeline.events, other.kept.timeline.events);
  kept.events_left_out += other.kept.events_left_out;
  move(kept.roles, other.kept.roles);
  move(kept.barriers, other.kept.barriers);
  move(kept.shared, other.kept.shared);
  move(kept.tensor, other.kept.tensor);
}

/// The unit that makes the accesses of an instruction.
static const char *unitOf(const Op &op) {
  switch (op.effect->kind) {
  case EffectKind::copyIn:
    return op.effect->barrier.isValid() ? "tma" : "cp.async";
  case EffectKind::copyOut:
    return "tma";
  case EffectKind::product:
    return "wgmma";
  case EffectKind::tensorProduct:
    return "tcgen05";
  default:
    return "warp";
  }
}

LaunchDetail::SharedMap DetailRecorder::mapOf(Cta &cta) {
  using Map = LaunchDetail::SharedMap;
  const Machine &machine = cluster_.machine();
  Map map;
  map.cta = cta.index();
  map.begin = kFirstSharedAddress;
  map.end = kFirstSharedAddress + cta.sharedBytes();
  const std::vector<Cell> &cells = cellsOf(cta);
  auto addressOf = [&](std::size_t cell) {
    return static_cast<std::uint32_t>(kFirstSharedAddress +
                                      cell * Shadow::kCellBytes);
  };
  auto runOf = [&](std::size_t i, bool isCoarse) {
    const Cell &cell = cells[i];
    Map::Run run{addressOf(i), std::min(addressOf(i + 1), map.end)};
    bool isValid = cta.sharedValid.all(i * Shadow::kCellBytes,
                                       run.end - run.begin);
    bool isNoted = cell.write.op != Touch::kNone;
    run.state = isValid || isNoted ? Map::State::written
                                   : Map::State::unwritten;
    if (isNoted) {
      const Op &op = machine.code().ops[cell.write.op];
      run.unit = unitOf(op);
      run.warp = isCoarse ? -1 : cell.write.warp;
      run.ptx_line = op.origin->line;
    }
    auto live = cta.mbarriers.lower_bound(run.begin);
    if (live != cta.mbarriers.end() && live->first < run.end) {
      run.state = Map::State::written;
      run.unit = "mbarrier";
      run.warp = -1;
      run.ptx_line = 0;
      return run;
    }
    if (cell.flight >= 0) {
      const Flight &flight = flights_[static_cast<std::size_t>(cell.flight)];
      auto barrier = flight.barrier.first->mbarriers.find(flight.barrier.second);
      if (barrier != flight.barrier.first->mbarriers.end() &&
          barrier->second.phase == flight.phase)
        run.state = Map::State::in_flight;
    }
    return run;
  };
  auto collect = [&](bool isCoarse) {
    map.runs.clear();
    map.is_coarse = isCoarse;
    for (std::size_t i = 0; addressOf(i) < map.end && i < cells.size(); ++i) {
      Map::Run run = runOf(i, isCoarse);
      Map::Run *last = map.runs.empty() ? nullptr : &map.runs.back();
      if (last && last->state == run.state && last->warp == run.warp &&
          last->ptx_line == run.ptx_line && last->unit == run.unit)
        last->end = run.end;
      else
        map.runs.push_back(std::move(run));
    }
  };
  collect(false);
  if (map.runs.size() > kMostMapRuns)
    collect(true);
  if (map.runs.size() > kMostMapRuns)
    map.runs.resize(kMostMapRuns);
  for (const Op &op : machine.code().ops)
    for (Map::Run &run : map.runs)
      if (run.ptx_line == op.origin->line && !run.where.is_known())
        run.where = placeOf(op);
  // Names change where objects begin and end; barriers have eight bytes.
  constexpr std::uint32_t kStep = 8;
  for (std::uint32_t at = map.begin; at < map.end; at += kStep) {
    std::string name = machine.findings().sharedName(at);
    std::uint8_t swizzle = cells[(at - map.begin) / Shadow::kCellBytes].swizzle;
    if (!map.objects.empty() && map.objects.back().end == at &&
        map.objects.back().name == name) {
      map.objects.back().end = std::min(at + kStep, map.end);
      map.objects.back().swizzle =
          std::max<int>(map.objects.back().swizzle, swizzle);
    } else if (!name.empty()) {
      map.objects.push_back({name, at, std::min(at + kStep, map.end), swizzle});
    }
  }
  return map;
}

void DetailRecorder::addTensor(Cta &cta, LaunchDetail &detail) const {
  const TensorMemory *memory = cta.findTensorMemory();
  if (!memory || memory->allocations.empty())
    return;
  LaunchDetail::TensorColumns map{cta.index(), {}};
  for (const TensorMemory::Allocation &one : memory->allocations)
    for (std::uint32_t i = 0; i < one.columns; ++i) {
      std::uint32_t column = one.column + i;
      bool isWritten = false;
      for (std::uint32_t lane = 0; lane < TensorMemory::kLanes && !isWritten;
           lane += 16)
        isWritten = memory->valid.all(TensorMemory::offset(lane, column), 4);
      auto *last = map.columns.empty() ? nullptr : &map.columns.back();
      if (i > 0 && last && last->is_written == isWritten)
        last->end = column + 1;
      else
        map.columns.push_back({column, column + 1, isWritten,
                               one.op->origin->line, placeOf(*one.op)});
    }
  detail.tensor.push_back(std::move(map));
}

/// "v_empty[1]"; of one in an array that the PTX declares "full+8".
static std::string barrierName(const Findings &findings,
                               std::uint32_t address) {
  std::string name = findings.sharedName(address);
  const auto *variable = findings.sharedVariable(address);
  if (!variable || variable->first != name ||
      variable->second.address == address)
    return name;
  return fmt::format("{}+{}", name, address - variable->second.address);
}

void DetailRecorder::addBarriers(LaunchDetail &detail) const {
  const Findings &findings = cluster_.machine().findings();
  for (const auto &[key, history] : barriers_) {
    if (history.first.empty())
      continue;
    LaunchDetail::Barrier barrier{key.first->index(), key.second,
                                  barrierName(findings, key.second),
                                  history.expected, history.first,
                                  history.leftOut};
    barrier.events.insert(barrier.events.end(), history.last.begin(),
                          history.last.end());
    detail.barriers.push_back(std::move(barrier));
  }
  std::sort(detail.barriers.begin(), detail.barriers.end(),
            [](const auto &a, const auto &b) {
              return std::tie(a.cta[2], a.cta[1], a.cta[0], a.address) <
                     std::tie(b.cta[2], b.cta[1], b.cta[0], b.address);
            });
  if (detail.barriers.size() > kMostBarriers)
    detail.barriers.resize(kMostBarriers);
}

void DetailRecorder::addRoles(LaunchDetail &detail) const {
  std::set<std::pair<std::array<std::uint32_t, 3>, int>> producers, consumers;
  for (const auto &[cta, warp] : producers_)
    producers.insert({cta->index(), warp});
  for (const auto &[cta, warp] : consumers_)
    consumers.insert({cta->index(), warp});
  // Who waits for filled slots empties them.
  for (const Timeline::Event &event : detail.timeline.events)
    if (event.kind == Timeline::Kind::wait &&
        event.row.agent == Timeline::Agent::warp &&
        event.awaited == Timeline::Awaited::full)
      consumers.insert({event.cta, event.row.number});
  auto all = producers;
  all.insert(consumers.begin(), consumers.end());
  for (const auto &key : all)
    detail.roles.push_back(
        {key.first, key.second,
         !consumers.contains(key)   ? "producer"
         : !producers.contains(key) ? "consumer"
                                    : "producer and consumer"});
}

ClusterDetail DetailRecorder::take(bool isKept) {
  ClusterDetail detail{counts_, {}};
  if (!isKept)
    return detail;
  LaunchDetail &kept = detail.kept;
  kept.timeline.events = recorder_.take();
  addRoles(kept);
  auto &events = kept.timeline.events;
  if (events.size() > 2 * kTimelineEnd) {
    // By time, whatever CTA they are of.
    std::stable_sort(events.begin(), events.end(),
                     [](const auto &a, const auto &b) { return a.start < b.start; });
    kept.events_left_out = events.size() - 2 * kTimelineEnd;
    events.erase(events.begin() + kTimelineEnd,
                 events.end() - static_cast<std::ptrdiff_t>(kTimelineEnd));
  }
  addBarriers(kept);
  for (std::size_t rank = 0; rank < cluster_.size() && rank < kMostMaps;
       ++rank) {
    Cta &cta = cluster_.cta(static_cast<int>(rank));
    kept.shared.push_back(mapOf(cta));
    addTensor(cta, kept);
  }
  return detail;
}

/// The row of the listing that each instruction is in: what the decoder makes of
/// one instruction is one row.
static std::vector<std::size_t> rowsOf(const Code &code) {
  std::vector<std::size_t> rows;
  std::size_t row = 0;
  for (std::size_t i = 0; i < code.ops.size(); ++i) {
    row += i > 0 && code.ops[i].origin != code.ops[i - 1].origin;
    rows.push_back(row);
  }
  return rows;
}

static Listing listingOf(const Machine &machine) {
  const Findings &findings = machine.findings();
  const ptx::Instruction *last = nullptr;
  Listing listing;
  for (const Op &op : machine.code().ops) {
    if (op.origin != last)
      listing.lines.push_back({op.origin->line, quote(op.origin->text),
                               findings.sourceLine(*op.origin),
                               findings.stackOf(*op.origin)});
    last = op.origin;
  }
  return listing;
}

LaunchDetail detailOf(const Machine &machine, ClusterDetail &&clusters) {
  LaunchDetail detail = std::move(clusters.kept);
  detail.listing = listingOf(machine);
  std::vector<std::size_t> rows = rowsOf(machine.code());
  auto figure = [&](const char *name, const std::vector<std::uint64_t> &counts) {
    std::vector<double> &values = detail.figures[name];
    values.resize(detail.listing.lines.size());
    for (std::size_t i = 0; i < counts.size(); ++i)
      values[rows[i]] += static_cast<double>(counts[i]);
  };
  figure("executions", clusters.counts.executions);
  figure("lanes", clusters.counts.lanes);
  figure("divergent", clusters.counts.divergent);
  return detail;
}

} // namespace kiln::sim
