// Poison: from the sources of an instruction to its results.
#include "sim/checks/Poison.h"
#include "sim/machine/Machine.h"

#include <algorithm>

namespace kiln::sim {

namespace {
/// The registers an instruction reads and writes, each once.
struct Registers {
  std::vector<Reg> sources, results;

  explicit Registers(const Op &op) {
    for (const Reg &reg : op.src)
      add(sources, reg);
    for (const Reg &reg : op.list)
      add(op.isListWritten ? results : sources, reg);
    add(results, op.dst);
    add(results, op.dst2);
  }

private:
  static void add(std::vector<Reg> &to, const Reg &reg) {
    auto isIt = [&](const Reg &other) { return other.index == reg.index; };
    if (reg.isValid() && std::none_of(to.begin(), to.end(), isIt))
      to.push_back(reg);
  }
};

using Lanes = std::array<std::uint64_t, kLanes>;
} // namespace

static Lanes valuesOf(const Warp &warp, const Reg &reg) {
  Lanes values;
  for (int lane = 0; lane < kLanes; ++lane)
    values[lane] = warp.read(reg, lane);
  return values;
}

static void putValues(Warp &warp, const Reg &reg, const Lanes &values) {
  for (int lane = 0; lane < kLanes; ++lane)
    warp.write(reg, lane, values[lane]);
}

/// Operands that say where bits go, and are no bits that go anywhere.
static std::vector<Reg> controlsOf(const Op &op) {
  std::vector<Reg> controls;
  for (std::size_t i = 0; i < std::size(op.src); ++i)
    if (op.poison.controls >> i & 1)
      controls.push_back(op.src[i]);
  return controls;
}

/// A bit of the result is poisoned where it changes with the poisoned bits of
/// some sources: the instruction itself says so.
static std::vector<Lanes> poisonOfBits(Warp &warp, const Op &op,
                                       const Registers &registers) {
  std::vector<Reg> controls = controlsOf(op), bad;
  LaneMask lost = 0; // lanes in which nobody knows where bits go
  for (const Reg &reg : controls)
    lost |= warp.poison(reg);
  if (op.psrc.isValid())
    lost |= warp.predPoison(op.psrc);
  for (const Reg &reg : registers.sources)
    if (warp.poison(reg))
      bad.push_back(reg);
  std::vector<Lanes> before, sources;
  for (const Reg &reg : registers.results)
    before.push_back(valuesOf(warp, reg));
  for (const Reg &reg : bad)
    sources.push_back(valuesOf(warp, reg));
  auto execute = [&](unsigned flipped) {
    for (std::size_t i = 0; i < bad.size(); ++i) {
      Lanes values = sources[i];
      for (int lane = 0; flipped >> i & 1 && lane < kLanes; ++lane)
        values[lane] ^= warp.poisonBits(bad[i], lane);
      putValues(warp, bad[i], values);
    }
    LaneMask predicate = op.pdst.isValid() ? warp.pred(op.pdst) : 0;
    op.handler(warp, op, kAllLanes);
    if (op.pdst.isValid())
      warp.setPred(op.pdst, kAllLanes, predicate);
    std::vector<Lanes> results;
    for (std::size_t i = 0; i < registers.results.size(); ++i) {
      results.push_back(valuesOf(warp, registers.results[i]));
      putValues(warp, registers.results[i], before[i]);
    }
    for (std::size_t i = 0; i < bad.size(); ++i)
      putValues(warp, bad[i], sources[i]);
    return results;
  };
  std::vector<Lanes> found(before.size(), Lanes{}), plain = execute(0);
  // Parts of a vector go their own ways, and may all change at once.
  unsigned all = (1u << bad.size()) - 1;
  for (unsigned flipped = bad.size() > 3 ? all : 1; flipped <= all; ++flipped) {
    std::vector<Lanes> changed = execute(flipped);
    for (std::size_t i = 0; i < found.size(); ++i)
      for (int lane = 0; lane < kLanes; ++lane)
        found[i][lane] |= changed[i][lane] ^ plain[i][lane];
  }
  for (Lanes &lanes : found)
    forEachLane(lost, [&](int lane) { lanes[lane] = ~std::uint64_t(0); });
  return found;
}

/// The poisoned bits of a single result from those of the sources.
static std::uint64_t poisonOfLane(const Warp &warp, const Op &op,
                                  const Registers &registers, int lane) {
  std::uint64_t bits = 0;
  for (const Reg &reg : registers.sources)
    bits |= warp.poisonBits(reg, lane);
  std::uint64_t low = 0xffff, high = 0xffff0000;
  switch (op.poison.kind) {
  case PoisonRule::Kind::upward:
    return bits ? ~std::uint64_t(0) << std::countr_zero(bits) : 0;
  case PoisonRule::Kind::halves:
    return (bits & low ? low : 0) | (bits & high ? high : 0);
  case PoisonRule::Kind::pack:
    return (warp.poisonBits(op.src[0], lane) ? high : 0) |
           (warp.poisonBits(op.src[1], lane) ? low : 0);
  default:
    return bits ? ~std::uint64_t(0) : 0;
  }
}

/// Lanes in which a predicate result is unknown: a comparison of unwritten
/// bytes, or an unknown predicate beside it, unless the other one decides.
static LaneMask poisonOfPredicate(Warp &warp, const Op &op, LaneMask compared) {
  if (!op.psrc.isValid())
    return compared;
  LaneMask unknown = warp.predPoison(op.psrc), other = warp.pred(op.psrc);
  LaneMask decides = 0;
  if (op.poison.join == PoisonRule::Join::conjunction)
    decides = ~other;
  else if (op.poison.join == PoisonRule::Join::disjunction)
    decides = other;
  return (compared & ~(decides & ~unknown)) | unknown;
}

/// What comes of unwritten bytes comes from where they were read.
static void passOrigin(Warp &warp, const Op &op, LaneMask active,
                       const Registers &registers) {
  std::uint32_t origin =
      op.psrc.isValid() && (warp.predPoison(op.psrc) & active)
          ? warp.predOrigin(op.psrc)
          : 0;
  for (const Reg &reg : registers.sources)
    if (!origin && (warp.poison(reg) & active))
      origin = warp.poisonOrigin(reg);
  for (const Reg &reg : registers.results)
    warp.setPoisonOrigin(reg, origin);
  for (Pred pred : {op.pdst, op.pdst2})
    if (pred.isValid())
      warp.setPredOrigin(pred, origin);
}

static void spreadPoison(Warp &warp, const Op &op, LaneMask active) {
  Registers registers(op);
  LaneMask compared = 0;
  for (const Reg &reg : registers.sources)
    compared |= warp.poison(reg);
  LaneMask ofPredicate = poisonOfPredicate(warp, op, compared);
  LaneMask unknownSource =
      op.psrc.isValid() ? warp.predPoison(op.psrc) : LaneMask(0);
  bool isByBits = op.poison.kind == PoisonRule::Kind::bits;
  std::vector<Lanes> bits(registers.results.size());
  if (isByBits)
    bits = poisonOfBits(warp, op, registers);
  else
    forEachLane(active & (compared | unknownSource), [&](int lane) {
      std::uint64_t all = unknownSource >> lane & 1
                              ? ~std::uint64_t(0)
                              : poisonOfLane(warp, op, registers, lane);
      for (Lanes &result : bits)
        result[lane] = all;
    });
  for (std::size_t i = 0; i < bits.size(); ++i)
    forEachLane(active, [&](int lane) {
      warp.setPoisonBits(registers.results[i], lane, bits[i][lane]);
    });
  for (Pred pred : {op.pdst, op.pdst2})
    if (pred.isValid())
      warp.setPredPoison(pred, active, ofPredicate);
  passOrigin(warp, op, active, registers);
}

void passPoison(Warp &warp, const Op &op, LaneMask active) {
  LaneMask from = 0;
  for (const Reg &source : op.src)
    if (source.isValid())
      from |= warp.poison(source);
  if (op.psrc.isValid())
    from |= warp.predPoison(op.psrc);
  for (const Reg &reg : op.list)
    if (!op.isListWritten)
      from |= warp.poison(reg);
  if (from & active)
    return spreadPoison(warp, op, active);
  warp.setResultPoison(op, active, 0);
}

} // namespace kiln::sim
