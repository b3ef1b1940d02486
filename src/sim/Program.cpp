// Program: decode a PTX function: registers, constants, special registers,
// branch targets and where their paths meet again.
#include "sim/Program.h"
#include "sim/ControlFlow.h"
#include "sim/Machine.h"
#include "sim/Warp.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln::sim {

Decoder::Decoder(
    const ptx::Module &module, const ptx::Function &function,
    const std::function<const Symbol *(const std::string &)> &symbols)
    : module_(module), function_(function), symbols_(symbols) {
  code_.function = &function;
  code_.module = &module;
  for (const ptx::Register &declared : function.registers) {
    if (declared.type == ptx::ScalarType::pred) {
      registers_.push_back({});
      predicates_.push_back(code_.predicateCount++);
      continue;
    }
    registers_.push_back(allocate(ptx::sizeBytes(declared.type)));
    predicates_.push_back(-1);
  }
}

Reg Decoder::allocate(int bytes) {
  std::uint16_t width = bytes > 4 ? 8 : 4;
  Reg reg{code_.registerBytes, width, static_cast<std::uint16_t>(bytes),
          code_.registerCount++};
  code_.registerBytes += static_cast<std::uint32_t>(width) * kLanes;
  return reg;
}

Reg Decoder::scratch(int bytes) { return allocate(bytes); }

Pred Decoder::scratchPred() { return {code_.predicateCount++, false}; }

const Symbol *Decoder::symbol(const std::string &name) const {
  return symbols_(name);
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
        {found->second, [bits](const Warp &, int) { return bits; }});
  }
  return found->second;
}

namespace {
/// A special register that keeps its value while a warp lives.
struct Special {
  const char *name;
  int bytes;
  std::uint64_t (*value)(const Warp &warp, int lane);
};
} // namespace

/// Coordinate `axis` of the thread in its CTA.
static std::uint64_t threadCoordinate(const Warp &warp, int lane, int axis) {
  const Dim3 &block = warp.cta().machine().config().block;
  std::uint32_t linear = warp.thread(lane);
  if (axis == 0)
    return linear % block[0];
  if (axis == 1)
    return linear / block[0] % block[1];
  return linear / block[0] / block[1];
}

template <int Axis> static std::uint64_t tid(const Warp &warp, int lane) {
  return threadCoordinate(warp, lane, Axis);
}
template <int Axis> static std::uint64_t ntid(const Warp &warp, int) {
  return warp.cta().machine().config().block[Axis];
}
template <int Axis> static std::uint64_t ctaid(const Warp &warp, int) {
  return warp.cta().index()[Axis];
}
template <int Axis> static std::uint64_t nctaid(const Warp &warp, int) {
  return warp.cta().machine().config().grid[Axis];
}
template <int Axis> static std::uint64_t clusterid(const Warp &warp, int) {
  return warp.cta().index()[Axis] / warp.cta().machine().config().cluster[Axis];
}
template <int Axis> static std::uint64_t nclusterid(const Warp &warp, int) {
  const LaunchConfig &config = warp.cta().machine().config();
  return config.grid[Axis] / config.cluster[Axis];
}
template <int Axis> static std::uint64_t ctaidInCluster(const Warp &warp, int) {
  return warp.cta().index()[Axis] % warp.cta().machine().config().cluster[Axis];
}
template <int Axis>
static std::uint64_t nctaidInCluster(const Warp &warp, int) {
  return warp.cta().machine().config().cluster[Axis];
}

static constexpr Special kSpecials[] = {
    {"%tid.x", 4, tid<0>},
    {"%tid.y", 4, tid<1>},
    {"%tid.z", 4, tid<2>},
    {"%ntid.x", 4, ntid<0>},
    {"%ntid.y", 4, ntid<1>},
    {"%ntid.z", 4, ntid<2>},
    {"%ctaid.x", 4, ctaid<0>},
    {"%ctaid.y", 4, ctaid<1>},
    {"%ctaid.z", 4, ctaid<2>},
    {"%nctaid.x", 4, nctaid<0>},
    {"%nctaid.y", 4, nctaid<1>},
    {"%nctaid.z", 4, nctaid<2>},
    {"%clusterid.x", 4, clusterid<0>},
    {"%clusterid.y", 4, clusterid<1>},
    {"%clusterid.z", 4, clusterid<2>},
    {"%nclusterid.x", 4, nclusterid<0>},
    {"%nclusterid.y", 4, nclusterid<1>},
    {"%nclusterid.z", 4, nclusterid<2>},
    {"%cluster_ctaid.x", 4, ctaidInCluster<0>},
    {"%cluster_ctaid.y", 4, ctaidInCluster<1>},
    {"%cluster_ctaid.z", 4, ctaidInCluster<2>},
    {"%cluster_nctaid.x", 4, nctaidInCluster<0>},
    {"%cluster_nctaid.y", 4, nctaidInCluster<1>},
    {"%cluster_nctaid.z", 4, nctaidInCluster<2>},
    {"%cluster_ctarank", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().rankInCluster());
     }},
    {"%cluster_nctarank", 4,
     [](const Warp &warp, int) {
       const Dim3 &cluster = warp.cta().machine().config().cluster;
       return std::uint64_t(cluster[0]) * cluster[1] * cluster[2];
     }},
    {"%laneid", 4, [](const Warp &, int lane) { return std::uint64_t(lane); }},
    {"%warpid", 4,
     [](const Warp &warp, int) { return std::uint64_t(warp.index()); }},
    {"%nwarpid", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().warps().size());
     }},
    {"%lanemask_eq", 4,
     [](const Warp &, int lane) { return std::uint64_t(1) << lane; }},
    {"%lanemask_lt", 4,
     [](const Warp &, int lane) { return (std::uint64_t(1) << lane) - 1; }},
    {"%lanemask_le", 4,
     [](const Warp &, int lane) { return (std::uint64_t(2) << lane) - 1; }},
    {"%lanemask_gt", 4,
     [](const Warp &, int lane) {
       return std::uint64_t(~((std::uint32_t)((std::uint64_t(2) << lane) - 1)));
     }},
    {"%lanemask_ge", 4,
     [](const Warp &, int lane) {
       return std::uint64_t(~((std::uint32_t)((std::uint64_t(1) << lane) - 1)));
     }},
    {"%smid", 4,
     [](const Warp &warp, int) { return std::uint64_t(warp.cta().sm()); }},
    {"%nsmid", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().machine().config().device.sms);
     }},
    {"%gridid", 8, [](const Warp &, int) { return std::uint64_t(0); }},
    {"%dynamic_smem_size", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().machine().config().dynamicSmemBytes);
     }},
    {"%total_smem_size", 4,
     [](const Warp &warp, int) {
       return std::uint64_t(warp.cta().sharedBytes());
     }},
    {"WARP_SZ", 4, [](const Warp &, int) { return std::uint64_t(32); }},
};

Reg Decoder::reg(const ptx::Operand &operand) { return reg(operand, 0); }

Reg Decoder::reg(const ptx::Operand &operand, int bytes) {
  switch (operand.kind) {
  case ptx::Operand::Kind::reg: {
    Reg reg = registers_[operand.reg];
    if (!reg.isValid())
      userError("the predicate {} stands where a value is expected",
                function_.registers[operand.reg].name);
    return reg;
  }
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
    for (const Special &special : kSpecials) {
      if (operand.name != special.name)
        continue;
      found->second = allocate(special.bytes);
      code_.initialValues.push_back({found->second, special.value});
      return found->second;
    }
    specials_.erase(found);
    userError("the simulator does not know the special register {}",
              operand.name);
  }
  case ptx::Operand::Kind::symbol: {
    const Symbol *found = symbols_(operand.name);
    if (!found)
      userError("the symbol {} is declared nowhere", operand.name);
    return constant(found->address + operand.offset, bytes ? bytes : 8);
  }
  default:
    userError("an operand of another kind stands where a value is expected");
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
  if (operand.kind != ptx::Operand::Kind::reg || predicates_[operand.reg] < 0)
    userError("a predicate is expected where '{}' stands", operand.name);
  return {predicates_[operand.reg], operand.isNegated};
}

Pred Decoder::predOfRegister(int reg) const {
  return {reg < 0 ? -1 : predicates_[reg], false};
}

Reg Decoder::address(const ptx::Operand &operand, std::int64_t &offset) {
  offset = operand.offset;
  const ptx::Operand *base = &operand;
  if (operand.kind == ptx::Operand::Kind::address) {
    base = &operand.elements.at(0);
    offset += base->offset;
  }
  if (base->kind == ptx::Operand::Kind::symbol) {
    ptx::Operand plain = *base;
    plain.offset = 0;
    return reg(plain, 8);
  }
  if (base->kind == ptx::Operand::Kind::immediate)
    return constant(base->bits, 8);
  return reg(*base, 8);
}

Space Decoder::spaceOfAddress(const ptx::Operand &operand,
                              Space declared) const {
  const ptx::Operand &base = operand.kind == ptx::Operand::Kind::address
                                 ? operand.elements.at(0)
                                 : operand;
  if (declared != Space::param || base.kind != ptx::Operand::Kind::symbol)
    return declared;
  const Symbol *found = symbols_(base.name);
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

Code Decoder::decode() {
  std::vector<int> meets = immediatePostDominators(function_);
  std::string unknown;
  int count = 0;
  for (std::size_t i = 0; i < function_.body.size(); ++i) {
    const ptx::Instruction &instruction = function_.body[i];
    Op op;
    op.origin = &instruction;
    op.reconverge = meets[i];
    op.guard = predOfRegister(instruction.predicate);
    op.guard.isNegated = instruction.isPredicateNegated;
    const Instruction *known = findInstruction(instruction.opcode);
    try {
      if (!known)
        refuse(instruction, fmt::format("no unit knows the opcode '{}'",
                                        instruction.opcode));
      op.isArithmetic = known->isArithmetic();
      known->decode(*this, instruction, op);
    } catch (const UserError &error) {
      // All of them are told at once, before anything runs.
      if (++count <= 20)
        unknown += fmt::format("\n  line {}: {}\n    {}", instruction.line,
                               instruction.text, error.message());
    }
    code_.ops.push_back(std::move(op));
  }
  if (count)
    userErrorAt({"PTX", static_cast<unsigned>(function_.line)},
                "{} cannot be simulated, {} instruction{} not supported:{}{}",
                function_.name, count, count == 1 ? " is" : "s are", unknown,
                count > 20 ? "\n  ..." : "");
  return std::move(code_);
}

std::vector<const Instruction *> allInstructions() {
  static const std::vector<Instruction> table = [] {
    std::vector<Instruction> all;
    for (auto unit :
         {scalarInstructions, floatInstructions, conversionInstructions,
          memoryInstructions, controlInstructions, warpInstructions,
          barrierInstructions, mbarrierInstructions, tmaInstructions,
          wgmmaInstructions, matrixInstructions}) {
      std::vector<Instruction> more = unit();
      all.insert(all.end(), more.begin(), more.end());
    }
    return all;
  }();
  std::vector<const Instruction *> pointers;
  for (const Instruction &instruction : table)
    pointers.push_back(&instruction);
  return pointers;
}

const Instruction *findInstruction(const std::string &opcode) {
  static const std::map<std::string, const Instruction *> index = [] {
    std::map<std::string, const Instruction *> byName;
    for (const Instruction *instruction : allInstructions())
      byName.emplace(instruction->opcode, instruction);
    return byName;
  }();
  auto found = index.find(opcode);
  return found == index.end() ? nullptr : found->second;
}

} // namespace kiln::sim
