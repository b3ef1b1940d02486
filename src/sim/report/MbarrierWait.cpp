// MbarrierWait: what a warp that waits for an mbarrier has seen of it, what is
// missing, and which instructions could send it.
#include "sim/program/Effect.h"
#include "sim/report/Ledger.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <unordered_map>

namespace kiln::sim {

/// A warp that comes two phases late waits for the next one of that parity.
static std::string lapOf(const Warp &warp, std::uint32_t address) {
  auto found = warp.cta().mbarrierHistory.find(address);
  if (found == warp.cta().mbarrierHistory.end())
    return "";
  const MbarrierHistory &barrier = found->second;
  auto seen = barrier.seen.find(warp.clock.lanes);
  std::uint32_t before = seen == barrier.seen.end() ? 0 : seen->second;
  if (barrier.phases == before + 1)
    return fmt::format(". The warp has seen {} of them and asks for phase {}: "
                       "phase {} is over, and has the other parity",
                       before, barrier.phases, before);
  if (barrier.phases < before + 2)
    return "";
  return fmt::format(". The warp has seen {} of them: it may have come too "
                     "late for phase {}, which looks like phase {} now",
                     before, before, barrier.phases);
}

namespace {

/// Registers that have one value whoever executes: constants, and what is moved
/// and added up of constants.
class FixedValues {
public:
  explicit FixedValues(const Warp &warp) : warp_(warp) {
    for (const InitialValue &initial : warp.code().initialValues)
      initial_[initial.reg.index] = &initial;
    for (const Op &op : warp.code().ops) {
      note(op.dst, op);
      note(op.dst2, op);
      for (const Reg &reg : op.list)
        if (op.isListWritten)
          note(reg, op);
    }
  }

  /// Nothing where it is not certain.
  std::optional<std::uint64_t> find(const Reg &reg, int depth = 4) const {
    if (auto initial = initial_.find(reg.index); initial != initial_.end())
      return sameForAll(*initial->second);
    auto found = writers_.find(reg.index);
    const Op *writer = found == writers_.end() ? nullptr : found->second;
    bool isMove = writer && writer->origin->opcode == "mov";
    bool isSum = writer && writer->origin->opcode == "add";
    if (!depth || (!isMove && !isSum))
      return std::nullopt;
    std::uint64_t sum = 0;
    for (int i = 0; i < (isMove ? 1 : 2); ++i) {
      auto part = writer->src[i].isValid() ? find(writer->src[i], depth - 1)
                                           : std::nullopt;
      if (!part)
        return std::nullopt;
      sum += *part;
    }
    return sum;
  }

private:
  void note(const Reg &reg, const Op &op) {
    if (reg.isValid() && !writers_.try_emplace(reg.index, &op).second)
      writers_[reg.index] = nullptr; // more than one
  }
  /// What a warp starts with, unless threads differ in it, as in %tid.
  std::optional<std::uint64_t> sameForAll(const InitialValue &initial) const {
    std::uint64_t first = initial.value(warp_, 0);
    for (const auto &warp : warp_.cta().warps())
      for (int lane = 0; lane < kLanes; ++lane)
        if (initial.value(*warp, lane) != first)
          return std::nullopt;
    return first;
  }

  const Warp &warp_;
  std::unordered_map<std::uint32_t, const InitialValue *> initial_;
  std::unordered_map<std::uint32_t, const Op *> writers_;
};

} // namespace

/// Whether an instruction that has not signalled an mbarrier might have: not
/// where its address is another one, nor where it has signalled others, and
/// none of the same variable.
static bool canReach(const Machine &machine, const Cta &cta,
                     const FixedValues &values, const Op &op,
                     std::uint32_t address) {
  const Findings &findings = machine.findings();
  const Effect &effect = *op.effect;
  bool isCopy = effect.barrier.isValid();
  if (auto base = values.find(isCopy ? effect.barrier : effect.address)) {
    std::uint64_t offset = static_cast<std::uint64_t>(
        isCopy ? effect.barrierOffset : effect.offset);
    return ((*base + offset) & ((1u << kRankShift) - 1)) == address;
  }
  auto nameOf = [&](std::uint32_t at) {
    std::string name = findings.sharedName(at);
    return name.substr(0, name.find('['));
  };
  bool isKnown = false;
  for (const auto &[other, barrier] : cta.mbarriers) {
    const auto &senders = barrier.senders;
    if (std::find(senders.begin(), senders.end(), &op) == senders.end())
      continue;
    if (nameOf(other) == nameOf(address))
      return true;
    isKnown = true;
  }
  return !isKnown;
}

Wait waitForMbarrier(const Machine &machine, const Warp &warp,
                     std::uint32_t address, std::uint32_t parity) {
  const Cta &cta = warp.cta();
  Wait wait{fmt::format("the mbarrier at {}, phase of parity {}",
                        machine.findings().describeShared(address), parity)};
  wait.object = {"shared", address, machine.findings().sharedName(address)};
  wait.kind = "mbarrier";
  auto found = cta.mbarriers.find(address);
  if (found == cta.mbarriers.end())
    return wait;
  const MbarrierState &barrier = found->second;
  std::string bytes =
      barrier.txCount < 0
          ? fmt::format(" are missing and {} bytes too many have come",
                        -barrier.txCount)
      : barrier.txCount > 0
          ? fmt::format(" and {} bytes are missing", barrier.txCount)
          : " are missing";
  wait.what += fmt::format(": {} of {} arrivals{}, {} complete",
                           barrier.pending, barrier.expected, bytes,
                           barrier.phase == 1
                               ? "1 phase is"
                               : fmt::format("{} phases are", barrier.phase));
  wait.what += lapOf(warp, address);
  auto isSender = [&](const Op *op) {
    return std::find(barrier.senders.begin(), barrier.senders.end(), op) !=
           barrier.senders.end();
  };
  FixedValues values(warp);
  auto others = instructions(machine, [&](const Op &op) {
    const Effect &effect = *op.effect;
    bool isArrival = effect.kind == EffectKind::barrierArrive;
    bool isCopy = effect.kind == EffectKind::copyIn && effect.barrier.isValid();
    return !isSender(&op) &&
           ((isArrival && barrier.pending) ||
            (isCopy && barrier.txCount > 0)) &&
           canReach(machine, cta, values, op, address);
  });
  wait.source = barrier.senders.empty()
                    ? "no arrival so far"
                    : "arrivals so far came from " + places(machine, barrier.senders);
  if (!others.empty())
    wait.source += "; others could come from " + places(machine, others);
  return wait;
}

} // namespace kiln::sim
