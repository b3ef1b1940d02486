// LaunchRaces: what clusters touched, compared in the order of their numbers.
#include "sim/checks/LaunchRaces.h"
#include "sim/machine/Machine.h"

#include <algorithm>
#include <cstring>
#include <fmt/format.h>
#include <utility>

namespace kiln::sim {

LaunchRaces::LaunchRaces(Machine &machine)
    : machine_(machine), told_{{}, FindingQuota(machine.config().max_findings)} {}

void LaunchRaces::takeFindings(RaceDetector &races) {
  told_.quota.take(races.quota());
  for (const RaceFinding &found : races.findings())
    if (!told_.isTold(machine_, found.id, found.places, found.count))
      told_.findings.push_back(found);
  if (const EarlyAccesses *early = races.early())
    early_.take(*early);
}

void LaunchRaces::takePages(RaceDetector &races) {
  Shadow &shadow = races.global().cells;
  for (auto [first, page] : shadow.pages())
    takePage(races, first, *page);
  shadow = {};
}

void LaunchRaces::takeCommon(RaceDetector &races) {
  takeFindings(races);
  common_ = &races;
}

void LaunchRaces::take(std::unique_ptr<LaunchChecks> checks) {
  // What waits longer is put in its place after all.
  constexpr std::size_t kMostBytes = std::size_t(32) << 20;
  using Answer = AccessExtents::Answer;
  RaceDetector &races = checks->races();
  takeFindings(races);
  // What one cluster has deferred another one may collide with.
  for (const AccessExtents::Extent &one : races.extents().list())
    if (extents_.note(one.op, one.kind, one.touched) == Answer::touchBehind)
      restoreFallen();
  const auto &list = races.extents().list();
  auto hasFallen = [&](const AccessExtents::Extent &one) {
    return AccessExtents::isDeferred(one.kind) && !extents_.isDeferred(one.op);
  };
  if (std::any_of(list.begin(), list.end(), hasFallen))
    races.restoreOf([&](std::uint32_t op) { return !extents_.isDeferred(op); });
  takePages(races);
  if (races.deferred().isEmpty())
    return;
  races.deferred().shrink();
  deferredBytes_ += sizeof(LaunchChecks) + races.deferred().bytes();
  deferred_.push_back(std::move(checks));
  if (deferredBytes_ > kMostBytes)
    restoreAll();
}

void LaunchRaces::restoreFallen() {
  for (const auto &checks : deferred_) {
    RaceDetector &races = checks->races();
    races.restoreOf([&](std::uint32_t op) { return extents_.hasFallen(op); });
    takePages(races);
  }
  extents_.settle();
}

void LaunchRaces::restoreAll() {
  for (const auto &checks : deferred_) {
    checks->races().restoreAll();
    takePages(checks->races());
  }
  deferred_.clear();
  deferredBytes_ = 0;
  if (RaceDetector *races = std::exchange(common_, nullptr)) {
    races->restoreAll();
    takePages(*races);
  }
}

/// What a page has of a cell's values; null: nothing.
static const std::uint8_t *
valuesOfCell(const std::unique_ptr<std::uint8_t[]> &values, std::size_t cell) {
  return values ? &values[cell * Shadow::kCellBytes] : nullptr;
}

void LaunchRaces::takePage(RaceDetector &races, std::uint64_t first,
                           Shadow::Page &page) {
  PageTouches &touched = pages_[first / Shadow::kPageCells];
  auto compareCell = [&](std::size_t i, const Record &record,
                         std::uint16_t bytes) {
    compare(races, first + i, record, bytes, touched.cells[i],
            valuesOfCell(touched.values, i), valuesOfCell(page.values, i));
  };
  if (page.isSplit) {
    Shadow &shadow = races.global().cells;
    for (std::size_t i = 0; i < Shadow::kPageCells; ++i) {
      shadow.forEach(page.cells[i], [&](const Record &record) {
        compareCell(i, record, record.bytes);
      });
      shadow.forEach(page.cells[i], [&](const Record &record) {
        add(races, record, record.bytes, CellSet(1) << i, touched,
            valuesOfCell(page.values, i));
      });
    }
    return;
  }
  CellSet shared = 0; // cells that may collide
  page.forEachLayer([&](const Layer &layer) {
    shared |= layer.cells &
              (touched.written | (layer.record.isWrite() ? touched.read : 0));
  });
  if (shared && page.reads)
    page.reads->tidy();
  for (; shared; shared &= shared - 1) {
    auto i = static_cast<std::size_t>(std::countr_zero(shared));
    page.forEachLayer([&](const Layer &layer) {
      if (layer.cells >> i & 1)
        compareCell(i, layer.recordOf(i), layer.record.bytes);
    });
  }
  page.forEachLayer([&](const Layer &layer) {
    for (CellSet left = layer.cells; left; left &= left - 1) {
      auto i = static_cast<std::size_t>(std::countr_zero(left));
      add(races, layer.recordOf(i), layer.record.bytes, CellSet(1) << i,
          touched, valuesOfCell(page.values, i));
    }
  });
}

void LaunchRaces::add(const RaceDetector &races, const Record &record,
                      std::uint16_t bytes, CellSet cells, PageTouches &page,
                      const std::uint8_t *values) {
  const Agent &who = races.agent(record.component);
  std::uint32_t thread =
      who.kind == Agent::Kind::mbarrier
          ? 0
          : who.number * kLanes +
                static_cast<std::uint32_t>(firstLane(record.lanes));
  bool isKept = record.isWrite() && record.isKept() && values;
  if (isKept && !page.values)
    page.values =
        std::make_unique_for_overwrite<std::uint8_t[]>(Shadow::kPageBytes);
  (record.isWrite() ? page.written : page.read) |= cells;
  for (; cells; cells &= cells - 1) {
    auto cell = static_cast<std::size_t>(std::countr_zero(cells));
    Touches &touches = page.cells[cell];
    Touch &touch = record.isWrite() ? touches.write : touches.read;
    touch.cta = who.ctaNumber + 1;
    touch.op = record.op;
    touch.thread = thread;
    touch.bytes |= bytes;
    touch.isStrong |= record.isStrong();
    touch.kept &= static_cast<std::uint16_t>(~bytes);
    if (!isKept)
      continue;
    touch.kept |= bytes;
    std::uint8_t *to = &page.values[cell * Shadow::kCellBytes];
    if (bytes == 0xffff)
      std::memcpy(to, values, Shadow::kCellBytes);
    else
      for (unsigned left = bytes; left; left &= left - 1)
        to[std::countr_zero(left)] = values[std::countr_zero(left)];
  }
}

void LaunchRaces::compare(const RaceDetector &races, std::uint64_t cell,
                          const Record &record, std::uint16_t bytes,
                          const Touches &touches,
                          const std::uint8_t *earlierValues,
                          const std::uint8_t *values) {
  auto overlapOf = [&](const Touch &touch) {
    bool isMorallyStrong = touch.isStrong && record.isStrong();
    return static_cast<std::uint16_t>(
        touch.cta && !isMorallyStrong ? touch.bytes & bytes : 0);
  };
  std::uint16_t written = overlapOf(touches.write);
  // Bytes that both have left alike.
  std::uint16_t alike = 0;
  if (written && record.isWrite() && record.isKept() && values)
    for (unsigned left = written & touches.write.kept; left; left &= left - 1) {
      int i = std::countr_zero(left);
      alike |= static_cast<std::uint16_t>((values[i] == earlierValues[i]) << i);
    }
  if (written)
    report(races, written == alike ? FindingId::sameValue : FindingId::race,
           cell, record,
           static_cast<std::uint16_t>(written == alike ? written
                                                       : written & ~alike),
           touches.write, true);
  if (record.isWrite() && overlapOf(touches.read))
    report(races, FindingId::race, cell, record, overlapOf(touches.read),
           touches.read, false);
}

void LaunchRaces::report(const RaceDetector &races, FindingId id,
                         std::uint64_t cell, const Record &record,
                         std::uint16_t overlap, const Touch &earlier,
                         bool isEarlierWrite) {
  PlacePair places = placesOf(machine_, record.op, earlier.op);
  if (machine_.findings().isAllowed(id) || told_.isTold(machine_, id, places))
    return;
  const Agent &who = races.agent(record.component);
  const Op &op = machine_.code().ops[record.op];
  const ptx::Instruction &origin = *machine_.code().ops[earlier.op].origin;
  SourceLine line = machine_.findings().sourceLine(origin);
  const auto &grid = machine_.config().grid;
  std::uint32_t number = earlier.cta - 1;
  std::uint64_t address = cell * Shadow::kCellBytes +
                          static_cast<unsigned>(std::countr_zero(overlap));
  std::string message = fmt::format(
      "this {} global address {:#x} ({}), which thread {} of CTA ({}, {}, {}) "
      "at {}:{} {}; nothing orders the two{}",
      record.isWrite() ? "writes" : "reads", address,
      machine_.memory().describe(address), std::uint32_t(earlier.thread),
      number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1],
      line.file, line.line, isEarlierWrite ? "writes" : "reads",
      id == FindingId::sameValue
          ? ", which write the same value; missing: one CTA that writes for all"
          : "; missing: release and acquire at .gpu scope (a fence and an "
            "atomic on each side); CTAs run in any order");
  int thread =
      who.kind == Agent::Kind::mbarrier
          ? 0
          : static_cast<int>(who.number) * kLanes + firstLane(record.lanes);
  Region *region = machine_.memory().find(address);
  told_.findings.push_back(
      {id,
       machine_.findings().make(
           id, who.cta, thread, 0, op, message,
           {"global", address, region ? region->name : std::string()}),
       places});
  Finding &told = told_.findings.back().finding;
  told.bytes = static_cast<std::uint32_t>(std::popcount(overlap));
  told.missing =
      id == FindingId::sameValue
          ? "one CTA that writes for all"
          : "release and acquire at .gpu scope (a fence and an atomic on each "
            "side)";
  Dim3 cta{number % grid[0], number / grid[0] % grid[1],
           number / grid[0] / grid[1]};
  told.other = Finding::Other{
      fmt::format("thread {} of CTA ({}, {}, {})",
                  std::uint32_t(earlier.thread), cta[0], cta[1], cta[2]),
      line,
      origin.line,
      isEarlierWrite,
      machine_.findings().stackOf(origin),
      cta,
      "warp",
      static_cast<int>(earlier.thread) / kLanes};
}

std::uint64_t LaunchRaces::bytes() const {
  std::uint64_t total = early_.bytes() + deferredBytes_;
  for (const auto &[number, page] : pages_)
    total += sizeof(PageTouches) + (page.values ? Shadow::kPageBytes : 0);
  return total;
}

std::vector<Finding> LaunchRaces::findings() const {
  std::vector<Finding> result;
  for (const RaceFinding &found : told_.findings) {
    result.push_back(found.finding);
    result.back().count = found.count;
  }
  return result;
}

} // namespace kiln::sim
