// PlainRuns: which instructions are plain, and how far they go.
#include "sim/program/flow/PlainRuns.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <limits>

namespace kiln::sim {

/// Whether an instruction does nothing but give one result, or a predicate,
/// from sources that stand in it.
static bool isPlain(const Op &op) {
  bool isPure = op.row->isArithmetic() &&
                (op.row->unit != Unit::address || op.origin->opcode == "cvta");
  bool isSimple = op.list.empty() && !op.dst2.isValid() && !op.pdst2.isValid();
  // A clock has no source.
  bool hasSource = op.src[0].isValid() || op.psrc.isValid();
  return isPure && isSimple && hasSource && op.isQuiet && !op.isAligned &&
         op.effect->kind == EffectKind::none && op.target < 0 && !op.spin &&
         !op.touchesAccumulator && !op.readsLoaded && op.late < 0 &&
         op.poison.kind != PoisonRule::Kind::none;
}

/// Whether it is a load or a store that says nothing of the order of others,
/// and that no other instruction tells of.
static bool isWeakAccess(const Op &op) {
  bool isAccess = op.effect->kind == EffectKind::load ||
                  op.effect->kind == EffectKind::store;
  return isAccess && (op.origin->opcode == "ld" || op.origin->opcode == "st") &&
         !op.list.empty() && !op.effect->isStrong && !op.isAligned &&
         !op.isMasked && op.target < 0 && !op.spin;
}

void markTracked(Code &code) {
  for (Op &op : code.ops)
    op.isTracked = op.touchesAccumulator || op.readsLoaded || op.late >= 0 ||
                   op.poison.isGeneral();
}

void markPlain(Code &code) {
  std::vector<bool> isMeeting(code.ops.size() + 1);
  for (const Op &op : code.ops)
    if (op.reconverge >= 0)
      isMeeting[static_cast<std::size_t>(op.reconverge)] = true;
  auto numberOf = [&](const Reg &reg) {
    return reg.isValid() ? reg.index : code.registerCount;
  };
  std::uint16_t count = 0, straightCount = 0;
  auto addOne = [](std::uint16_t &sum) {
    if (sum < std::numeric_limits<std::uint16_t>::max())
      ++sum;
  };
  for (std::size_t i = code.ops.size(); i-- > 0;) {
    Op &op = code.ops[i];
    if (isMeeting[i + 1])
      count = straightCount = 0;
    bool isPlainOne = isPlain(op);
    if (isPlainOne || isWeakAccess(op))
      addOne(straightCount);
    else
      straightCount = 0;
    op.straightCount = straightCount;
    if (!isPlainOne) {
      count = 0;
      continue;
    }
    addOne(count);
    op.plainCount = count;
    for (std::size_t source = 0; source < std::size(op.src); ++source)
      op.plainSources[source] = numberOf(op.src[source]);
    op.plainResult = numberOf(op.dst);
  }
}

} // namespace kiln::sim
