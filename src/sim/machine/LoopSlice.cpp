// LoopSlice: which registers decide about a loop, of the instructions that a
// LoopWatch has seen executed.
#include "sim/machine/LoopWatch.h"
#include "sim/machine/SpecialRegisters.h"
#include "sim/machine/Warp.h"
#include "sim/program/Effect.h"

#include <algorithm>
#include <fmt/format.h>

namespace kiln::sim {

static const FunctionCode &functionOf(const Code &code, int pc) {
  auto next = std::upper_bound(
      code.functions.begin(), code.functions.end(), pc,
      [](int at, const FunctionCode &function) { return at < function.first; });
  return *std::prev(next);
}

/// The numbers of an operand's registers and predicates.
static void collect(const Code &code, const FunctionCode &function,
                    const ptx::Operand &operand,
                    std::vector<std::uint32_t> &into) {
  for (int name : {operand.reg, operand.pairedReg}) {
    if (name < 0)
      continue;
    const Reg &reg = function.declared[name];
    if (!reg.isValid())
      into.push_back(code.registerCount + function.declaredPredicates[name]);
    else
      into.push_back(reg.index);
    if (reg.bytes == 16)
      into.push_back(highHalf(reg).index);
  }
  for (const ptx::Operand &element : operand.elements)
    collect(code, function, element, into);
}

LoopWatch::Uses LoopWatch::usesOf(const Code &code, int pc) {
  const Op &op = code.ops[pc];
  const FunctionCode &function = functionOf(code, pc);
  const std::vector<ptx::Operand> &operands = op.origin->operands;
  Uses uses;
  // Where the first operand is no result, as in brx, it is a source; that a
  // result counts for a source too takes nothing away.
  for (const ptx::Operand &operand : operands)
    collect(code, function, operand, uses.sources);
  if (!operands.empty() && operands[0].kind != ptx::Operand::Kind::address)
    collect(code, function, operands[0], uses.results);
  // Predicates that no operand names: the guard, the carry flag.
  auto number = [&](Pred pred, Numbers &into) {
    if (pred.isValid())
      into.push_back(code.registerCount +
                     static_cast<std::uint32_t>(pred.index));
  };
  number(op.guard, uses.sources);
  number(op.psrc, uses.sources);
  number(op.pdst, uses.results);
  number(op.pdst2, uses.results);
  if (op.row->traits.flow == Flow::leave)
    for (const Slot &slot : function.results)
      if (slot.reg.isValid())
        uses.sources.push_back(slot.reg.index);
  return uses;
}

bool LoopWatch::hasWayOut(const Code &code, int pc) {
  std::vector<bool> isKnown(code.ops.size());
  std::vector<int> next = {pc};
  auto visit = [&](int to) {
    if (to >= 0 && !isKnown[static_cast<std::size_t>(to)])
      next.push_back(to);
  };
  while (!next.empty()) {
    int at = next.back();
    next.pop_back();
    const Op &op = code.ops[static_cast<std::size_t>(at)];
    isKnown[static_cast<std::size_t>(at)] = true;
    Flow flow = op.row ? op.row->traits.flow : Flow::leave;
    // Where a table or a call leads to nobody follows.
    bool isCall = op.row && op.row->unit == Unit::control && flow == Flow::next;
    if (flow == Flow::leave || flow == Flow::branchTable || isCall)
      return true;
    if (flow == Flow::branch)
      visit(op.target);
    if (flow != Flow::branch || op.guard.isValid())
      visit(at + 1);
  }
  return false;
}

/// Whether an instruction tells of time, or of who happens to be there.
static bool readsMoment(const Op &op) {
  const ptx::Instruction &instruction = *op.origin;
  return op.row->traits.isOfTheMoment ||
         std::any_of(instruction.operands.begin(), instruction.operands.end(),
                     [](const ptx::Operand &operand) {
                       return operand.kind == ptx::Operand::Kind::special &&
                              isClock(operand.name);
                     });
}

LoopWatch::Kind LoopWatch::kindOf(const Code &code, int pc) {
  Kind &kind = kinds_[pc];
  if (kind != Kind::unknown)
    return kind;
  const Op &op = code.ops[pc];
  EffectKind effect = op.effect->kind;
  Unit unit = op.row->unit;
  bool isRead = effect == EffectKind::load || effect == EffectKind::atomic ||
                effect == EffectKind::barrierWait;
  if (isRead) {
    Uses uses = usesOf(code, pc);
    // What an atomic without a result found in memory, nobody can record.
    bool isOpen = effect != EffectKind::load && uses.results.empty();
    kind = isOpen ? Kind::open : Kind::input;
    inputs_.emplace(pc, std::move(uses));
  } else if (effect == EffectKind::barrierArrive && unit == Unit::mbarrier &&
             usesOf(code, pc).results.empty()) {
    kind = Kind::counted;
  } else if (unit == Unit::copies || unit == Unit::wgmma ||
             unit == Unit::tcgen05 || unit == Unit::mbarrier ||
             readsMoment(op) ||
             (op.effect->isReduction && unit == Unit::barrier)) {
    kind = Kind::open;
  } else if (op.row->isArithmetic() || unit == Unit::warp ||
             (effect == EffectKind::none &&
              (unit == Unit::matrix || unit == Unit::memory))) {
    kind = Kind::pure;
  } else {
    kind = Kind::rooted;
  }
  return kind;
}

LoopWatch::Numbers LoopWatch::slice(const Code &code) const {
  Numbers deciding;
  std::vector<bool> isDeciding(code.registerCount + code.predicateCount);
  auto take = [&](std::uint32_t number) {
    if (!isDeciding[number])
      deciding.push_back(number);
    isDeciding[number] = true;
  };
  std::unordered_map<std::uint32_t, Numbers> sources; ///< by result
  for (int pc = 0; pc < static_cast<int>(seen_.size()); ++pc) {
    if (!seen_[pc].isKnown)
      continue;
    Uses uses = usesOf(code, pc);
    if (code.ops[pc].guard.isValid())
      take(code.registerCount +
           static_cast<std::uint32_t>(code.ops[pc].guard.index));
    if (kinds_[pc] == Kind::pure)
      for (std::uint32_t result : uses.results)
        sources[result].insert(sources[result].end(), uses.sources.begin(),
                               uses.sources.end());
    else
      for (std::uint32_t source : uses.sources)
        take(source);
  }
  for (std::size_t next = 0; next < deciding.size();) // `take` adds to them
    if (auto found = sources.find(deciding[next++]); found != sources.end())
      for (std::uint32_t source : found->second)
        take(source);
  return deciding;
}

std::vector<const Op *> LoopWatch::loop(const Code &code) const {
  std::vector<const Op *> ops;
  for (std::size_t pc = 0; pc < seen_.size(); ++pc)
    if (seen_[pc].isRecent || (!period_ && seen_[pc].isKnown))
      ops.push_back(&code.ops[pc]);
  return ops;
}

std::vector<const Op *> LoopWatch::polls(const Code &code) const {
  std::vector<const Op *> ops;
  for (std::size_t pc = 0; pc < seen_.size(); ++pc)
    if (seen_[pc].isPoll)
      ops.push_back(&code.ops[pc]);
  return ops;
}

std::vector<std::string> LoopWatch::registers(const Warp &warp,
                                              int lane) const {
  const Code &code = warp.code();
  std::vector<bool> isWritten(code.registerCount + code.predicateCount);
  for (int pc = 0; pc < static_cast<int>(seen_.size()); ++pc)
    if (seen_[pc].isRecent)
      for (std::uint32_t number : usesOf(code, pc).results)
        isWritten[number] = true;
  std::vector<bool> isShown(isWritten.size());
  for (const Kept &kept : kept_)
    isShown[kept.number] = isWritten[kept.number];
  std::vector<std::string> texts;
  for (const FunctionCode &function : code.functions)
    for (std::size_t i = 0; i < function.declared.size(); ++i) {
      const Reg &reg = function.declared[i];
      int predicate = function.declaredPredicates[i];
      const std::string &name = function.function->registers[i].name;
      if (reg.isValid() && isShown[reg.index])
        texts.push_back(fmt::format("{} = {:#x}", name, warp.read(reg, lane)));
      if (predicate >= 0 && isShown[code.registerCount + predicate])
        texts.push_back(
            fmt::format("{} = {}", name, warp.pred({predicate}) >> lane & 1));
    }
  return texts;
}

} // namespace kiln::sim
