// DetailRecorder: note what happens, and when; DetailMaps has what is made of it.
#include "sim/report/DetailRecorder.h"
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <utility>

namespace kiln::sim {

/// Events of one mbarrier that are kept: the first ones and the last ones.
static constexpr std::size_t kFirstEvents = 24, kLastEvents = 72;
/// Writes in flight that are told apart.
static constexpr std::size_t kMostFlights = 1 << 20;

static constexpr std::uint64_t kCellBytes = Shadow::kCellBytes;

void InstructionCounts::add(const InstructionCounts &other) {
  auto sum = [](std::vector<std::uint64_t> &to,
                const std::vector<std::uint64_t> &from) {
    to.resize(std::max(to.size(), from.size()));
    for (std::size_t i = 0; i < from.size(); ++i)
      to[i] += from[i];
  };
  sum(executions, other.executions);
  sum(lanes, other.lanes);
  sum(divergent, other.divergent);
}

DetailRecorder::DetailRecorder(Cluster &cluster, Recorder &recorder,
                               RaceDetector *races)
    : cluster_(cluster), recorder_(recorder), races_(races),
      racesTold_(races ? races->findings().size() : 0) {
  std::size_t count = cluster.machine().code().ops.size();
  counts_.executions.resize(count);
  counts_.lanes.resize(count);
  counts_.divergent.resize(count);
}

EventMask DetailRecorder::interests() const {
  return maskOf(EventKind::instruction, EventKind::access, EventKind::async,
                EventKind::barrier);
}

DetailRecorder::Time DetailRecorder::timeOf(const Warp &warp) const {
  return recorder_.now(warp);
}

std::uint32_t DetailRecorder::indexOf(const Op &op) const {
  return static_cast<std::uint32_t>(&op -
                                    cluster_.machine().code().ops.data());
}

SourceLine DetailRecorder::placeOf(const Op &op) const {
  return cluster_.machine().findings().sourceLine(*op.origin);
}

std::vector<DetailRecorder::Cell> &DetailRecorder::cellsOf(Cta &cta) {
  std::vector<Cell> &cells = cells_[&cta];
  if (cells.empty())
    cells.resize(cta.sharedBytes() / kCellBytes + 1);
  return cells;
}

void DetailRecorder::on(const InstructionBegin &event) {
  Warp &warp = event.warp;
  std::vector<std::uint32_t> &times = executed_[{&warp.cta(), warp.index()}];
  if (times.empty())
    times.resize(counts_.executions.size());
  // From 1 on: 0 is never.
  times[indexOf(event.op)] = static_cast<std::uint32_t>(timeOf(warp)) + 1;
  isApart_ = warp.group().lanes != warp.live();
}

void DetailRecorder::on(const InstructionEnd &event) {
  std::uint32_t index = indexOf(event.op);
  if (event.step != Step::blocked) { // else it will be executed again
    ++counts_.executions[index];
    counts_.lanes[index] += static_cast<std::uint64_t>(countLanes(event.lanes));
    counts_.divergent[index] += isApart_;
  }
  const Effect &effect = *event.op.effect;
  WarpKey key(&event.warp.cta(), event.warp.index());
  if (effect.kind == EffectKind::copyIn)
    producers_.insert(key);
  if (effect.kind == EffectKind::product ||
      effect.kind == EffectKind::tensorProduct)
    consumers_.insert(key);
  for (const Key &barrier : std::exchange(changed_, {})) {
    History &history = barriers_[barrier];
    if (history.first.empty())
      continue;
    auto &last =
        history.last.empty() ? history.first.back() : history.last.back();
    fill(last, barrier);
    // The clock has gone on while it waited.
    if (last.what == LaunchDetail::BarrierEvent::What::wait)
      last.time = timeOf(event.warp);
  }
  stampFresh(event.warp);
}

void DetailRecorder::note(Cta &owner, std::uint64_t begin, std::size_t bytes,
                          bool isWrite, const Touch &touch, int swizzle,
                          std::int32_t flight) {
  std::vector<Cell> &cells = cellsOf(owner);
  std::uint64_t last = (begin + std::max<std::size_t>(bytes, 1) - 1) /
                       kCellBytes;
  for (std::uint64_t i = begin / kCellBytes; i <= last && i < cells.size();
       ++i) {
    (isWrite ? cells[i].write : cells[i].read) = touch;
    if (!isWrite)
      continue;
    cells[i].flight = flight;
    if (swizzle >= 0)
      cells[i].swizzle = static_cast<std::uint8_t>(swizzle);
  }
}

void DetailRecorder::on(const ThreadAccess &event) {
  stampFresh(event.warp);
  Touch touch{indexOf(event.op), static_cast<std::uint32_t>(timeOf(event.warp)),
              static_cast<std::int16_t>(event.warp.index())};
  for (const LaneAccess &access : event.accesses)
    if (access.owner)
      note(*access.owner, access.address, access.bytes, access.isWrite, touch,
           -1, -1);
}

void DetailRecorder::on(const AsyncAccess &event) {
  stampFresh(event.warp);
  if (!event.owner || !event.ranges.empty())
    return;
  Touch touch{indexOf(event.op), static_cast<std::uint32_t>(timeOf(event.warp)),
              static_cast<std::int16_t>(event.warp.index())};
  std::int32_t flight = -1;
  if (event.isWrite && event.over.by == Completion::By::mbarrier &&
      event.over.cta && flights_.size() < kMostFlights) {
    auto found = event.over.cta->mbarriers.find(event.over.object);
    flight = static_cast<std::int32_t>(flights_.size());
    flights_.push_back(
        {{event.over.cta, event.over.object},
         found == event.over.cta->mbarriers.end() ? 0 : found->second.phase});
  }
  for (const ByteRun &run : event.runs)
    note(*event.owner, run.begin, run.bytes, event.isWrite, touch,
         event.swizzle, flight);
  for (const PageCells &page : event.cells)
    for (CellSet cells = page.cells; cells; cells &= cells - 1)
      note(*event.owner,
           (page.page * Shadow::kPageCells +
            static_cast<std::uint64_t>(std::countr_zero(cells))) *
               kCellBytes,
           kCellBytes, event.isWrite, touch, event.swizzle, flight);
}

// Mbarriers.

void DetailRecorder::fill(LaunchDetail::BarrierEvent &event,
                          const Key &key) const {
  auto found = key.first->mbarriers.find(key.second);
  if (found == key.first->mbarriers.end())
    return;
  event.phase = found->second.phase;
  event.pending = found->second.pending;
  event.bytes = found->second.txCount;
}

LaunchDetail::BarrierEvent &
DetailRecorder::note(const Key &key, LaunchDetail::BarrierEvent::What what,
                     const Warp *warp, int lanes, const Op *op) {
  LaunchDetail::BarrierEvent event;
  event.what = what;
  event.lanes = lanes;
  event.cta = key.first->index();
  if (warp) {
    event.warp = warp->index();
    event.time = timeOf(*warp);
    event.cta = warp->cta().index();
  }
  if (op) {
    event.ptx_line = op->origin->line;
    event.where = placeOf(*op);
  }
  fill(event, key);
  History &history = barriers_[key];
  if (auto state = key.first->mbarriers.find(key.second);
      state != key.first->mbarriers.end())
    history.expected = state->second.expected;
  if (history.first.size() < kFirstEvents) {
    history.first.push_back(std::move(event));
    return history.first.back();
  }
  if (history.last.size() == kLastEvents) {
    history.last.erase(history.last.begin());
    ++history.leftOut;
  }
  history.last.push_back(std::move(event));
  return history.last.back();
}

void DetailRecorder::on(const MbarrierEvent &event) {
  using From = MbarrierEvent::What;
  using To = LaunchDetail::BarrierEvent::What;
  Key key(&event.cta, event.address);
  To what = To::init;
  switch (event.what) {
  case From::use:
    return;
  case From::init:
    break;
  case From::inval:
    what = To::inval;
    break;
  case From::copy:
    what = To::copy;
    break;
  case From::arrive:
    what = To::arrive;
    break;
  case From::wait:
    what = To::wait;
    break;
  }
  note(key, what, &event.warp, countLanes(event.lanes), &event.op);
  if (what == To::arrive || what == To::copy)
    barriers_[key].senders[{&event.warp.cta(), event.warp.index()}] |=
        event.lanes;
  changed_.push_back(key);
}

DetailRecorder::Key DetailRecorder::keyOf(const MbarrierState &barrier) {
  for (std::size_t rank = 0; rank < cluster_.size(); ++rank) {
    Cta &cta = cluster_.cta(static_cast<int>(rank));
    for (auto &[address, state] : cta.mbarriers)
      if (&state == &barrier)
        return {&cta, address};
  }
  return {nullptr, 0};
}

void DetailRecorder::on(const MbarrierPhase &event) {
  Key key = keyOf(event.barrier);
  if (!key.first)
    return;
  auto &noted = note(key, LaunchDetail::BarrierEvent::What::phase, nullptr, 0,
                     nullptr);
  noted.time = recorder_.phaseTime(*key.first, key.second,
                                   event.barrier.phase ? event.barrier.phase - 1
                                                       : 0);
}

void DetailRecorder::on(const CopyArrival &event) {
  if (Key key = keyOf(event.barrier); key.first) {
    note(key, LaunchDetail::BarrierEvent::What::arrive, &event.warp, 1,
         nullptr);
    barriers_[key].senders[{&event.warp.cta(), event.warp.index()}] |=
        LaneMask(1) << event.lane;
  }
}

void DetailRecorder::on(const TensorArrival &event) {
  if (Key key = keyOf(event.barrier); key.first) {
    note(key, LaunchDetail::BarrierEvent::What::arrive, &event.warp, 1,
         nullptr);
    barriers_[key].senders[{&event.warp.cta(), event.warp.index()}] |=
        LaneMask(1) << event.lane;
  }
}

const DetailRecorder::Senders *
DetailRecorder::sendersOf(const Cta &cta, std::uint32_t address) const {
  auto found = barriers_.find({const_cast<Cta *>(&cta), address});
  return found == barriers_.end() ? nullptr : &found->second.senders;
}

// Findings.

bool DetailRecorder::isMine(const Finding &finding) const {
  if (!finding.cta)
    return false;
  for (std::size_t rank = 0; rank < cluster_.size(); ++rank)
    if (cluster_.cta(static_cast<int>(rank)).index() == *finding.cta)
      return true;
  return false;
}

void DetailRecorder::stampOther(Finding &finding, Time now) const {
  Finding::Other &other = *finding.other;
  if (!other.cta)
    return;
  const std::vector<Op> &ops = cluster_.machine().code().ops;
  auto isIt = [&](std::uint32_t op) {
    return op < ops.size() && ops[op].origin->line == other.ptx_line;
  };
  // What the memory says of the very bytes.
  for (const auto &[cta, cells] : cells_) {
    std::uint64_t cell =
        finding.space == "shared" && finding.address &&
                cta->index() == *other.cta
            ? (*finding.address - kFirstSharedAddress) / kCellBytes
            : cells.size();
    if (cell >= cells.size())
      continue;
    const Touch &touch = other.is_write ? cells[cell].write : cells[cell].read;
    if (isIt(touch.op)) {
      other.time = touch.time;
      return;
    }
  }
  // Else when it was executed last.
  std::optional<Time> latest;
  for (const auto &[key, times] : executed_) {
    if (key.first->index() != *other.cta ||
        (other.unit == "warp" && key.second != other.number))
      continue;
    for (std::uint32_t op = 0; op < times.size(); ++op)
      if (times[op] && isIt(op) && times[op] - 1u <= now &&
          (!latest || times[op] - 1u > *latest))
        latest = times[op] - 1u;
  }
  other.time = latest;
}

void DetailRecorder::stampFresh(const Warp &warp) {
  auto stampNew = [&](Finding &finding) {
    if (finding.time || !isMine(finding))
      return;
    finding.time = timeOf(warp);
    if (finding.other)
      stampOther(finding, *finding.time);
  };
  if (races_ && races_->findings().size() > racesTold_) {
    for (; racesTold_ < races_->findings().size(); ++racesTold_)
      stampNew(races_->findings()[racesTold_].finding);
  }
  for (; findingsTold_ < cluster_.findings.size(); ++findingsTold_)
    stampNew(cluster_.findings[findingsTold_]);
}

void DetailRecorder::stamp(Finding &finding) const {
  if (finding.time || !isMine(finding) || finding.thread < 0)
    return;
  for (std::size_t rank = 0; rank < cluster_.size(); ++rank)
    for (const auto &warp : cluster_.cta(static_cast<int>(rank)).warps())
      if (warp->cta().index() == *finding.cta &&
          warp->index() == finding.thread / kLanes)
        finding.time = timeOf(*warp);
  if (finding.other && finding.time)
    stampOther(finding, *finding.time);
}

} // namespace kiln::sim
