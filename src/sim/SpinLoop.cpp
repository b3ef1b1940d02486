// SpinLoop: the backward slice of a loop's branches and addresses.
#include "sim/SpinLoop.h"
#include "sim/Event.h"

#include <set>

namespace kiln::sim {

namespace {
/// Registers of the AST that an instruction writes and reads.
struct Uses {
  std::set<int> written, read;
};
} // namespace

static void collect(const ptx::Operand &operand, std::set<int> &into) {
  if (operand.reg >= 0)
    into.insert(operand.reg);
  if (operand.pairedReg >= 0)
    into.insert(operand.pairedReg);
  for (const ptx::Operand &element : operand.elements)
    collect(element, into);
}

static Uses usesOf(const ptx::Instruction &instruction) {
  Uses uses;
  if (instruction.predicate >= 0)
    uses.read.insert(instruction.predicate);
  for (std::size_t i = 0; i < instruction.operands.size(); ++i) {
    const ptx::Operand &operand = instruction.operands[i];
    bool isResult = i == 0 && operand.kind != ptx::Operand::Kind::address;
    collect(operand, isResult ? uses.written : uses.read);
  }
  return uses;
}

std::shared_ptr<const SpinLoop>
spinLoopOf(Decoder &decoder, const std::vector<Op> &ops, int branch) {
  int first = ops[branch].target;
  bool isWait = false;
  std::vector<Uses> uses;
  std::set<int> written, deciding;
  for (int i = first; i <= branch; ++i) {
    const Op &op = ops[i];
    Uses mine = usesOf(*op.origin);
    isWait |= op.event->isPoll();
    if (op.origin->predicate >= 0)
      deciding.insert(op.origin->predicate);
    if (op.event->isPoll() || op.origin->opcode == "brx")
      deciding.insert(mine.read.begin(), mine.read.end());
    written.insert(mine.written.begin(), mine.written.end());
    uses.push_back(std::move(mine));
  }
  if (!isWait)
    return nullptr;
  for (std::size_t before = 0; before != deciding.size();) {
    before = deciding.size();
    for (const Uses &one : uses)
      for (int reg : one.written)
        if (deciding.contains(reg)) {
          deciding.insert(one.read.begin(), one.read.end());
          break;
        }
  }
  auto loop = std::make_shared<SpinLoop>();
  loop->length = branch - first;
  for (int reg : deciding) {
    if (!written.contains(reg))
      continue;
    if (Pred pred = decoder.predOfRegister(reg); pred.isValid()) {
      loop->predicates.push_back(pred);
      continue;
    }
    ptx::Operand operand;
    operand.kind = ptx::Operand::Kind::reg;
    operand.reg = reg;
    loop->registers.push_back(decoder.reg(operand));
  }
  return loop;
}

} // namespace kiln::sim
