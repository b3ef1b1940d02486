// Program: decode a PTX function: registers, constants, special registers,
// branch targets and where their paths meet again.
#include "sim/program/Effect.h"
#include "sim/program/InstructionSet.h"
#include "sim/program/ReferenceHandlers.h"
#include "sim/program/SymbolLayout.h"
#include "sim/program/flow/ControlFlow.h"
#include "sim/program/flow/LateLoads.h"
#include "sim/program/flow/PlainRuns.h"
#include "sim/program/flow/SpinLoop.h"
#include "sim/program/flow/Unheeded.h"
#include "support/Error.h"
#include "support/limits/Budget.h"

#include <algorithm>
#include <cstring>

namespace kiln::sim {

Reg highHalf(const Reg &low) {
  if (low.bytes != 16)
    userError("a register of {} bytes stands where one of 16 is expected",
              low.bytes);
  return {low.offset + 8 * kLanes, 8, 8, low.index + 1};
}

/// Of all registers of a warp: what a kernel of a million lines may need.
static constexpr std::uint32_t kMaxRegisterBytes = std::uint32_t(1) << 30;

Decoder::Decoder(const InstructionSet &instructions, const ptx::Module &module,
                 const std::vector<const ptx::Function *> &functions,
                 Names names)
    : instructions_(instructions), names_(std::move(names)) {
  code_.module = &module;
  for (const ptx::Function *function : functions) {
    FunctionCode code;
    code.function = function;
    code.address = functionAddress(module, *function);
    code.localBytes = names_.localBytes(*function);
    code_.functionAt[code.address] = static_cast<int>(code_.functions.size());
    code_.functions.push_back(std::move(code));
  }
  begin(0);
}

void Decoder::begin(std::size_t number) {
  current_ = number;
  FunctionCode &code = current();
  code.first = static_cast<int>(code_.ops.size());
  code.predicateBegin = code_.predicateCount;
  registers_.clear();
  predicates_.clear();
  localAddresses_.clear();
  for (const ptx::Register &declared : code.function->registers) {
    if (declared.type == ptx::ScalarType::pred) {
      registers_.push_back({});
      predicates_.push_back(code_.predicateCount++);
      continue;
    }
    registers_.push_back(allocate(ptx::sizeBytes(declared.type)));
    predicates_.push_back(-1);
  }
  code.declared = registers_;
  code.declaredPredicates = predicates_;
  if (code.function->isEntry)
    return;
  // The parser numbers registers as they are declared: those of results and
  // parameters are the first.
  int reg = 0;
  for (const ptx::Variable &result : code.function->results)
    code.results.push_back(parameterSlot(result, reg));
  for (const ptx::Variable &parameter : code.function->parameters)
    code.parameters.push_back(parameterSlot(parameter, reg));
}

Slot Decoder::parameterSlot(const ptx::Variable &parameter, int &reg) const {
  auto bytes = static_cast<std::uint32_t>(parameter.bytes);
  if (parameter.space != ptx::StateSpace::none) {
    const Symbol *place = symbol(parameter.name);
    return {{}, static_cast<std::uint32_t>(place->address), bytes};
  }
  if (parameter.type == ptx::ScalarType::pred)
    userErrorAt({"PTX", static_cast<unsigned>(function().line)},
                "the simulator does not pass the predicate {} to or from the "
                "function {}; a register of 32 bits can be passed",
                parameter.name, function().name);
  return {registers_[reg++], 0, bytes};
}

int Decoder::functionNumber(const std::string &name) const {
  const ptx::Function *wanted = module().find(name);
  if (!wanted || !wanted->hasBody)
    return -1;
  auto found = code_.functionAt.find(functionAddress(module(), *wanted));
  return found == code_.functionAt.end() ? -1 : found->second;
}

Slot Decoder::slot(const ptx::Instruction &instruction,
                   const ptx::Operand &operand) {
  if (operand.kind != ptx::Operand::Kind::symbol) {
    Reg value = reg(operand);
    return {value, 0, value.bytes};
  }
  const Symbol *found = symbol(operand.name);
  if (!found || found->space != ptx::StateSpace::local)
    refuse(instruction,
           fmt::format("'{}' is not a parameter declared for a call",
                       operand.name));
  return {{},
          static_cast<std::uint32_t>(found->address),
          static_cast<std::uint32_t>(found->bytes)};
}

Reg Decoder::allocate(int bytes) {
  if (bytes == 16) {
    Reg low = allocate(8);
    allocate(8); // highHalf(low)
    low.bytes = 16;
    return low;
  }
  std::uint16_t width = bytes > 4 ? 8 : 4;
  if (code_.registerBytes >= kMaxRegisterBytes)
    userError("the registers and constants of the kernel need more than {} "
              "bytes of each warp",
              kMaxRegisterBytes);
  Reg reg{code_.registerBytes, width, static_cast<std::uint16_t>(bytes),
          code_.registerCount++};
  code_.registerBytes += static_cast<std::uint32_t>(width) * kLanes;
  current().registers.push_back(reg);
  return reg;
}

Reg Decoder::scratch(int bytes) { return allocate(bytes); }

Pred Decoder::scratchPred() { return {code_.predicateCount++, false}; }

const Symbol *Decoder::symbol(const std::string &name) const {
  return names_.find(function(), name);
}

void Decoder::refuse(const ptx::Instruction &instruction,
                     const std::string &why) const {
  userErrorAt({"PTX", static_cast<unsigned>(instruction.line)},
              "the simulator does not support '{}': {}", instruction.text, why);
}

Reg Decoder::constant(std::uint64_t bits, int bytes) {
  if (bytes < 8)
    bits &= (std::uint64_t(1) << (8 * bytes)) - 1;
  auto [found, isNew] = constants_.try_emplace({bits, bytes});
  if (isNew) {
    found->second = allocate(bytes);
    code_.initialValues.push_back(
        {.reg = found->second,
         .value = [bits](const Warp &, int) { return bits; },
         .isConstant = true});
  }
  return found->second;
}

Reg Decoder::sharedAddress(std::uint64_t plain, int bytes) {
  auto [found, isNew] = sharedAddresses_.try_emplace({plain, bytes});
  if (isNew) {
    found->second = allocate(bytes);
    auto rank = instructions_.findSpecial("%cluster_ctarank")->value;
    code_.initialValues.push_back(
        {found->second, [plain, rank](const Warp &warp, int lane) {
           return plain + (rank(warp, lane) << kRankShift);
         }});
  }
  return found->second;
}

Reg Decoder::reg(const ptx::Operand &operand) { return reg(operand, 0); }

Reg Decoder::reg(const ptx::Operand &operand, int bytes) {
  switch (operand.kind) {
  case ptx::Operand::Kind::reg:
    return registers_[operand.reg];
  case ptx::Operand::Kind::sink:
    return scratch(bytes ? bytes : 8);
  case ptx::Operand::Kind::immediate:
    return constant(operand.bits, bytes ? bytes : 8);
  case ptx::Operand::Kind::real: {
    if (bytes == 8 || bytes == 0) {
      if (!operand.isSingle)
        return constant(operand.bits, 8);
      float single = std::bit_cast<float>(std::uint32_t(operand.bits));
      return constant(std::bit_cast<std::uint64_t>(double(single)), 8);
    }
    if (operand.isSingle)
      return constant(operand.bits, 4);
    float single = float(std::bit_cast<double>(operand.bits));
    return constant(std::bit_cast<std::uint32_t>(single), 4);
  }
  case ptx::Operand::Kind::special: {
    auto [found, isNew] = specials_.try_emplace(operand.name);
    if (!isNew)
      return found->second;
    if (auto special = instructions_.findSpecial(operand.name)) {
      found->second = allocate(special->bytes);
      code_.initialValues.push_back(
          {found->second, special->value, special->isUniform, special->fill});
      return found->second;
    }
    specials_.erase(found);
    userError("the simulator does not know the special register {}",
              operand.name);
  }
  case ptx::Operand::Kind::symbol: {
    const Symbol *found = symbol(operand.name);
    if (!found)
      userError("the symbol {} is declared nowhere", operand.name);
    if (found->space == ptx::StateSpace::local) {
      // Filled when the function is entered: its frame may be anywhere.
      std::uint64_t offset = found->address + operand.offset;
      if (bytes == 4) {
        // LLVM's short pointers; a register of its own, as it is narrower.
        auto &known = current().localAddresses;
        for (const auto &[place, at] : known)
          if (at == offset && place.bytes == 4)
            return place;
        return known.emplace_back(allocate(4), offset).first;
      }
      auto [place, isNew] = localAddresses_.try_emplace(offset);
      if (isNew) {
        place->second = allocate(8);
        current().localAddresses.emplace_back(place->second, offset);
      }
      return place->second;
    }
    std::uint64_t address = found->address + operand.offset;
    if (found->space == ptx::StateSpace::shared)
      return sharedAddress(address, bytes ? bytes : 8);
    return constant(address, bytes ? bytes : 8);
  }
  default:
    internalError("an operand of another kind than its form says");
  }
}

Pred Decoder::pred(const ptx::Operand &operand) {
  if (operand.kind == ptx::Operand::Kind::sink)
    return scratchPred();
  if (operand.kind == ptx::Operand::Kind::immediate) {
    // A constant predicate: a fresh one is false, and its negation true.
    Pred never = scratchPred();
    never.isNegated = (operand.bits != 0) != operand.isNegated;
    return never;
  }
  return {predicates_[operand.reg], operand.isNegated};
}

Pred Decoder::predOfRegister(int reg) const {
  return {reg < 0 ? -1 : predicates_[reg], false};
}

Reg Decoder::address(const ptx::Operand &operand, std::int64_t &offset) {
  const ptx::Operand &base = operand.elements[0];
  offset =
      static_cast<std::int64_t>(static_cast<std::uint64_t>(operand.offset) +
                                static_cast<std::uint64_t>(base.offset));
  if (base.kind == ptx::Operand::Kind::symbol) {
    ptx::Operand plain = base;
    plain.offset = 0;
    return reg(plain, 8);
  }
  return reg(base, 8);
}

Space Decoder::spaceOfAddress(const ptx::Operand &operand,
                              Space declared) const {
  const ptx::Operand &base = operand.elements[0];
  if (declared != Space::param)
    return declared;
  if (!function().isEntry)
    return Space::local;
  if (base.kind != ptx::Operand::Kind::symbol)
    return declared;
  const Symbol *found = symbol(base.name);
  return found && found->space == ptx::StateSpace::local ? Space::local
                                                         : declared;
}

std::vector<Reg> Decoder::vector(const ptx::Operand &operand, int bytes) {
  if (operand.kind != ptx::Operand::Kind::vector)
    return {reg(operand, bytes)};
  std::vector<Reg> list;
  for (const ptx::Operand &element : operand.elements)
    list.push_back(reg(element, bytes));
  return list;
}

void Decoder::noteRefusal(const ptx::Instruction &instruction,
                          const UserError &error) {
  refusals_.emplace_back(
      instruction.line, fmt::format("\n  line {}: {}\n    {}", instruction.line,
                                    instruction.text, error.message()));
}

std::vector<const Instruction *> Decoder::checkSyntax() {
  std::vector<const Instruction *> rows;
  for (const ptx::Instruction &instruction : function().body) {
    const Instruction *row = instructions_.find(instruction.opcode);
    try {
      if (!row)
        refuse(instruction, fmt::format("no unit knows the opcode '{}'",
                                        instruction.opcode));
      row->syntax.check(function(), instruction);
    } catch (const UserError &error) {
      noteRefusal(instruction, error);
      row = nullptr;
    }
    rows.push_back(row);
  }
  return rows;
}

void Decoder::decodeBody() {
  const ptx::Function &function = *current().function;
  std::vector<const Instruction *> rows = checkSyntax();
  // Where paths go is known when every branch has its label.
  std::vector<int> meets = refusals_.empty()
                               ? immediatePostDominators(function, rows)
                               : std::vector<int>(function.body.size(), -1);
  for (std::size_t i = 0; i < function.body.size(); ++i) {
    const ptx::Instruction &instruction = function.body[i];
    const Instruction *row = rows[i];
    checkBudget();
    if (!row)
      continue; // it has been told
    Op op;
    op.row = row;
    op.origin = &instruction;
    if (row->traits.semantics)
      op.semantics = row->traits.semantics(instruction);
    op.reconverge = meets[i] < 0 ? -1 : firstInstruction() + meets[i];
    op.guard = predOfRegister(instruction.predicate);
    op.guard.isNegated = instruction.isPredicateNegated;
    try {
      if (row->isArithmetic())
        op.poison = row->traits.poison ? row->traits.poison(instruction)
                                       : PoisonRule{PoisonRule::Kind::all};
      row->decode(*this, instruction, op);
      op.effect = std::make_shared<Effect>(effectOf(*this, instruction, *row));
      op.isQuiet = op.effect->isQuiet();
      op.isAligned = op.effect->isAligned;
      code_.hasCtaBarrier |= op.effect->kind == EffectKind::ctaBarrier;
      code_.hasTrigger |= op.effect->isTrigger;
      code_.hasPrimaryWait |= op.effect->isPrimaryWait;
    } catch (const UserError &error) {
      // All of them are told at once, before anything runs.
      noteRefusal(instruction, error);
    }
    code_.ops.push_back(std::move(op));
  }
  if (!refusals_.empty())
    return; // nothing will run
  addSpinLoops(*this, code_.ops, firstInstruction());
  markUnheeded(function, code_.ops, firstInstruction());
  markLate(*this, code_, firstInstruction());
}

void Decoder::tellRefusals() {
  constexpr std::size_t kMostTold = 20;
  const ptx::Function &entry = *code_.functions.front().function;
  std::stable_sort(
      refusals_.begin(), refusals_.end(),
      [](const auto &a, const auto &b) { return a.first < b.first; });
  std::string told;
  for (std::size_t i = 0; i < std::min(kMostTold, refusals_.size()); ++i)
    told += refusals_[i].second;
  userErrorAt({"PTX", static_cast<unsigned>(entry.line)},
              "{} cannot be simulated, {} instruction{} not supported:{}{}",
              entry.name, refusals_.size(),
              refusals_.size() == 1 ? " is" : "s are", told,
              refusals_.size() > kMostTold ? "\n  ..." : "");
}

bool Decoder::touchesAccumulator(const Op &op) const {
  auto isOne = [&](const Reg &reg) {
    return reg.isValid() && accumulators_.contains(reg.index);
  };
  return op.row->unit != Unit::wgmma &&
         (isOne(op.dst) || isOne(op.dst2) ||
          std::any_of(std::begin(op.src), std::end(op.src), isOne) ||
          std::any_of(op.list.begin(), op.list.end(), isOne));
}

bool Decoder::readsLoaded(const Op &op) const {
  auto isOne = [&](const Reg &reg) {
    return reg.isValid() && loaded_.contains(reg.index);
  };
  return std::any_of(std::begin(op.src), std::end(op.src), isOne) ||
         (!op.isListWritten &&
          std::any_of(op.list.begin(), op.list.end(), isOne));
}

void Decoder::fillFile() {
  code_.file.resize((code_.registerBytes + sizeof(FileLine) - 1) /
                    sizeof(FileLine));
  auto *file = reinterpret_cast<std::uint8_t *>(code_.file.data());
  for (const auto &[constant, reg] : constants_)
    for (std::size_t lane = 0; lane < kLanes; ++lane)
      std::memcpy(file + reg.offset + lane * reg.width, &constant.first,
                  reg.width);
}

Code Decoder::decode(Execution execution) {
  for (std::size_t i = 0; i < code_.functions.size(); ++i) {
    if (i > 0)
      begin(i);
    std::size_t first = code_.ops.size();
    decodeBody();
    // Falling off the end of a function is leaving it, where its last
    // instruction stands.
    auto leave = std::make_shared<ptx::Instruction>();
    leave->opcode = "ret";
    leave->text = "ret;";
    leave->line = code_.functions[i].function->line;
    if (code_.ops.size() > first) {
      leave->line = code_.ops.back().origin->line;
      leave->source = code_.ops.back().origin->source;
    }
    Op end;
    end.row = instructions_.find(leave->opcode);
    end.origin = leave.get();
    end.effect = std::make_shared<Effect>(effectOf(*this, *leave, *end.row));
    end.isQuiet = false;
    end.row->decode(*this, *leave, end);
    end.extra = leave; // keeps it
    code_.ops.push_back(std::move(end));
    current().predicateEnd = code_.predicateCount;
  }
  if (!accumulators_.empty())
    for (Op &op : code_.ops)
      op.touchesAccumulator = touchesAccumulator(op);
  if (!loaded_.empty())
    for (Op &op : code_.ops)
      op.readsLoaded = readsLoaded(op);
  if (!refusals_.empty())
    tellRefusals();
  markTracked(code_);
  if (execution == Execution::fast)
    markPlain(code_);
  else
    for (Op &op : code_.ops)
      op.handler = referenceOf(op.handler);
  fillFile();
  return std::move(code_);
}

} // namespace kiln::sim
