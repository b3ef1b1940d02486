// Reachable: follow names from function to function.
#include "sim/program/flow/Reachable.h"

#include <unordered_set>

namespace kiln::sim {

namespace {
class Walk {
public:
  Walk(const ptx::Module &module, const ptx::Function &entry)
      : module_(module) {
    found_.functions.push_back(&entry);
    isFound_.insert(&entry);
    walk();
    if (callsByPointer_) {
      reachPointers();
      walk();
    }
  }

  Reachable found() { return std::move(found_); }

private:
  void walk() {
    while (next_ < found_.functions.size())
      visit(*found_.functions[next_++]); // adds those it calls
  }

  void visit(const ptx::Function &function) {
    own_.clear();
    for (const auto *list :
         {&function.parameters, &function.results, &function.locals})
      for (const ptx::Variable &variable : *list) {
        own_.insert(variable.name);
        visitInitialiser(variable);
      }
    for (const ptx::Instruction &instruction : function.body)
      visit(instruction);
    for (const auto &[table, targets] : function.callTargets)
      for (const std::string &target : targets)
        reach(target);
  }

  void visit(const ptx::Instruction &instruction) {
    bool isCall = instruction.opcode == "call";
    for (const ptx::Operand &operand : instruction.operands) {
      callsByPointer_ |= isCall && operand.kind == ptx::Operand::Kind::reg;
      visit(operand);
    }
  }

  /// A pointer may come from another launch, in memory: a table of virtual
  /// functions, say. It means any function whose address somebody takes.
  void reachPointers() {
    auto reachFunction = [&](const std::string &name) {
      if (module_.find(name))
        reach(name);
    };
    for (const ptx::Variable &variable : module_.variables)
      for (const ptx::Variable::Relocation &relocation : variable.relocations)
        reachFunction(relocation.symbol);
    for (const ptx::Function &function : module_.functions)
      for (const ptx::Instruction &instruction : function.body)
        for (const ptx::Operand &operand : instruction.operands)
          if (operand.kind == ptx::Operand::Kind::symbol &&
              instruction.opcode != "call")
            reachFunction(operand.name);
  }

  void visit(const ptx::Operand &operand) {
    for (const ptx::Operand &element : operand.elements)
      visit(element);
    if (operand.kind == ptx::Operand::Kind::symbol &&
        !own_.contains(operand.name))
      reach(operand.name);
  }

  void visitInitialiser(const ptx::Variable &variable) {
    for (const ptx::Variable::Relocation &relocation : variable.relocations)
      reach(relocation.symbol);
  }

  /// Without recursion: a chain of pointers may be as long as the module.
  void reach(const std::string &name) {
    std::vector<const std::string *> open = {&name};
    while (!open.empty()) {
      const std::string &next = *open.back();
      open.pop_back();
      if (const ptx::Function *function = module_.find(next)) {
        if (function->hasBody && isFound_.insert(function).second)
          found_.functions.push_back(function);
        continue;
      }
      const ptx::Variable *variable = module_.findVariable(next);
      if (!variable || !found_.variables.insert(next).second)
        continue;
      for (std::size_t i = variable->relocations.size(); i-- > 0;)
        open.push_back(&variable->relocations[i].symbol);
    }
  }

  const ptx::Module &module_;
  Reachable found_;
  std::size_t next_ = 0; ///< of the functions: not yet visited
  bool callsByPointer_ = false;
  std::unordered_set<const ptx::Function *> isFound_;
  std::set<std::string> own_; ///< names of the function at hand
};
} // namespace

Reachable reachableFrom(const ptx::Module &module, const ptx::Function &entry) {
  return Walk(module, entry).found();
}

} // namespace kiln::sim
