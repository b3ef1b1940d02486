// RaceJudge: whether two accesses are ordered, by the PTX text or de facto.
#include "sim/checks/RaceDetector.h"
#include "sim/machine/Machine.h"
#include "sim/program/Effect.h"

#include <algorithm>

namespace kiln::sim {

/// Whether two accesses of one warp's lanes are in program order: no byte was
/// touched by two lanes.
static bool isProgramOrder(const Record &a, const Record &b,
                           std::uint16_t overlap) {
  LaneMask lanes = a.lanesOf(overlap) | b.lanesOf(overlap);
  if ((lanes & (lanes - 1)) == 0 || a.isSplitLike(b))
    return true;
  for (unsigned left = overlap; left; left &= left - 1) {
    auto byte = static_cast<std::uint16_t>(left & -left);
    LaneMask both = a.lanesOf(byte) | b.lanesOf(byte);
    if (both & (both - 1))
      return false;
  }
  return true;
}

bool RaceDetector::isOrderedStrictly(const Access &access,
                                     const Record &earlier,
                                     std::uint16_t overlap, View view) const {
  const Record &later = access.record;
  bool isOwn = earlier.component == access.warp->clock.lanes;
  if (isOwn && later.component == earlier.component &&
      isProgramOrder(earlier, later, overlap))
    return true;
  LaneMask lanes = earlier.lanesOf(overlap);
  // Of copies that each lane sees by itself it knows by its own wait.
  bool isEachOwn = earlier.component == access.warp->clock.copies &&
                   isProgramOrder(earlier, later, overlap);
  bool isOrdered = true;
  access.warp->group().clocks.forEachPart(
      access.issuers, [&](LaneMask some, const Knowledge &knowledge) {
        if (!isOrdered)
          return;
        if (isOwn) {
          // A lane knows what it did itself.
          bool isOne = (some & (some - 1)) == 0;
          isOrdered =
              knowledge.coversOwn(view, earlier.time, lanes, isOne ? some : 0);
          return;
        }
        const Epoch *known = knowledge.find(view, earlier.component);
        isOrdered = known && known->covers(earlier.time,
                                           isEachOwn ? lanes & some : lanes);
      });
  return isOrdered;
}

bool RaceDetector::isOrderedDeFacto(const Access &access, const Record &earlier,
                                    std::uint16_t overlap, View view) const {
  const LaneClocks &clocks = access.warp->group().clocks;
  const Knowledge &knowledge = clocks.deFacto();
  LaneMask lanes = earlier.lanesOf(overlap);
  if (earlier.component == access.warp->clock.lanes)
    // Lanes that run together know of each other.
    return knowledge.coversOwn(view, earlier.time, lanes, clocks.lanes());
  const Epoch *known = knowledge.clock.find(view, earlier.component);
  return known && known->covers(earlier.time, lanes);
}

bool RaceDetector::isObservedBefore(const Access &access, const Record &earlier,
                                    std::uint16_t overlap,
                                    const ShadowedMemory &memory,
                                    std::uint64_t cell) const {
  if (!earlier.isStrong() || !earlier.isWrite() || earlier.isAsync() ||
      !memory.observations.size())
    return false;
  const Observation *last = memory.observations.find(
      cell * Shadow::kCellBytes +
      static_cast<unsigned>(std::countr_zero(overlap)));
  return last && last->isOfAll &&
         isOrderedStrictly(access, last->record, overlap, access.view);
}

bool RaceDetector::isMutual(const Access &access, const Record &earlier) const {
  if (access.record.scope() == Scope::gpu && earlier.scope() == Scope::gpu)
    return true;
  const Agent &other = agent(earlier.component);
  const WarpClock &mine = access.warp->clock;
  if (other.ctaNumber == mine.cta)
    return true;
  Scope needed =
      other.clusterNumber == mine.cluster ? Scope::cluster : Scope::gpu;
  return access.record.scope() >= needed && earlier.scope() >= needed;
}

bool RaceDetector::isSameValue(const Access &access,
                               const Record &earlier) const {
  return access.isSame && earlier.isWrite() &&
         agent(earlier.component).kind == Agent::Kind::lanes;
}

bool RaceDetector::isUsedAtOnce(std::uint32_t load) const {
  auto [known, isNew] = usedAtOnce_.try_emplace(load, false);
  if (!isNew)
    return known->second;
  const std::vector<Op> &ops = machine_.code().ops;
  const Op &read = ops[load];
  auto isOfLoad = [&](const Reg &reg) {
    return reg.isValid() && std::any_of(read.list.begin(), read.list.end(),
                                        [&](const Reg &filled) {
                                          return filled.index == reg.index;
                                        });
  };
  bool isUsed = false, hasMet = false;
  for (std::size_t i = load + 1; i < ops.size(); ++i) {
    const Op &op = ops[i];
    bool isUse = std::any_of(std::begin(op.src), std::end(op.src), isOfLoad) ||
                 (!op.isListWritten &&
                  std::any_of(op.list.begin(), op.list.end(), isOfLoad));
    bool isBarrier = op.effect->kind == EffectKind::ctaBarrier;
    bool isFlag = op.semantics.isStrong && op.effect->kind != EffectKind::load;
    if (isFlag)
      return false;
    // Between threads the barrier behind the use hands on, if any does.
    if ((isUse && !hasMet) || (isBarrier && isUsed))
      return known->second = true;
    isUsed |= isUse;
    hasMet |= isBarrier;
  }
  return false;
}

bool RaceDetector::isFlaggedAfterRead(const Access &access,
                                      const Record &earlier,
                                      std::uint16_t overlap) const {
  const Record &later = access.record;
  bool isStoreAfterLoad =
      later.isWrite() && !later.isStrong() && !later.isAsync() &&
      later.component == access.warp->clock.lanes && !earlier.isWrite() &&
      !earlier.isStrong() && !earlier.isAsync() &&
      machine_.code().ops[earlier.op].effect->kind == EffectKind::load;
  if (!isStoreAfterLoad)
    return false;
  const Epoch *known = access.warp->group().clocks.deFacto().apparent.find(
      View::completed, earlier.component);
  return known && known->covers(earlier.time, earlier.lanesOf(overlap)) &&
         isUsedAtOnce(earlier.op);
}

bool RaceDetector::isCopiedSince(const Record &earlier, std::uint16_t overlap,
                                 ShadowedMemory &memory,
                                 std::uint64_t index) const {
  if (!earlier.isWrite() || earlier.isAsync() || !memory.owner)
    return false;
  std::uint16_t left = overlap;
  memory.cells.forEach(memory.cells.cell(index), [&](const Record &record) {
    const Op &op = machine_.code().ops[record.op];
    if (op.effect->kind == EffectKind::mapCopy && !record.isWrite() &&
        record.component == earlier.component && record.time > earlier.time)
      left &= static_cast<std::uint16_t>(~record.bytes);
  });
  return !left;
}

bool RaceDetector::isCopyBeforeProduct(const Access &access,
                                       const Record &earlier) const {
  return agent(earlier.component).kind == Agent::Kind::copies &&
         access.view != View::generic &&
         agent(access.record.component).kind == Agent::Kind::products;
}

RaceDetector::Verdict RaceDetector::judge(const Access &access,
                                          const Record &earlier,
                                          std::uint16_t overlap) const {
  if (isPipelined(access, earlier))
    return Verdict::ordered;
  View strictly = earlier.isAsync() && access.view != View::tensor
                      ? View::completed
                      : access.view;
  if (isOrderedStrictly(access, earlier, overlap, strictly))
    return Verdict::ordered;
  if (earlier.isStrong() && access.record.isStrong() &&
      isMutual(access, earlier))
    return Verdict::strong;
  // A read that is over cannot see what an async write does later: there, no
  // proxy fence is missed.
  View view = earlier.isAsync() || !earlier.isWrite() ||
                      isCopyBeforeProduct(access, earlier)
                  ? View::completed
                  : access.view;
  bool isDeFacto = isOrderedDeFacto(access, earlier, overlap, view) ||
                   isSameValue(access, earlier) ||
                   isFirstOfSwap(access, earlier) ||
                   isFlaggedAfterRead(access, earlier, overlap);
  return isDeFacto ? Verdict::deFacto : Verdict::unordered;
}

} // namespace kiln::sim
