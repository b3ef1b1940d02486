// SyntaxMatch: an instruction held against the forms of its opcode.
#pragma once

#include "sim/program/Syntax.h"

#include <array>
#include <utility>

namespace kiln::sim {

/// An instruction, its modifiers read.
class Said {
public:
  Said(const Syntax &syntax, const ptx::Function &function,
       const ptx::Instruction &instruction);

  /// How many operands a form has here at least, and at most.
  std::pair<std::size_t, std::size_t> counts(const FormRule &form) const;
  /// The first operand that is not what the form wants; their number where all
  /// are. Asked where their number is right.
  std::size_t firstUnfit(const FormRule &form) const;
  bool hasTypes(const FormRule &form) const;
  bool hasCount(const FormRule &form) const;
  bool isLike(const FormRule &form) const;
  [[noreturn]] void refuseModifiers() const;
  [[noreturn]] void refuseOperands() const;

  const ptx::Instruction &instruction;
  Words words;

private:
  bool isPresent(const OperandRule &rule) const {
    return rule.condition < 0 || words.test(rule.condition);
  }
  ptx::ScalarType typeOf(const OperandRule &rule) const;
  bool fits(const OperandRule &rule, const ptx::Operand &operand) const;
  bool fitsRegister(const OperandRule &rule, const ptx::Operand &operand,
                    ptx::ScalarType type) const;
  bool fitsValue(const OperandRule &rule, const ptx::Operand &operand,
                 ptx::ScalarType type) const;
  bool fitsPredicate(const OperandRule &rule,
                     const ptx::Operand &operand) const;
  bool fitsPair(const OperandRule &rule, const ptx::Operand &operand) const;
  bool fitsAddress(const ptx::Operand &base) const;
  bool fitsList(const OperandRule &rule, const ptx::Operand &list) const;
  bool areAll(const OperandRule &rule, const ptx::Operand &vector,
              ptx::ScalarType type) const;
  ptx::ScalarType declared(int reg) const {
    return function_.registers[reg].type;
  }
  /// Call `body(rule, number of the operand)` while it says so.
  template <typename Body>
  void forEachOperand(const FormRule &form, Body &&body) const {
    std::size_t at = 0;
    std::size_t optional = instruction.operands.size() - counts(form).first;
    for (const OperandRule &rule : form.operands) {
      if (!isPresent(rule) || (rule.isOptional && optional == 0))
        continue;
      optional -= rule.isOptional ? 1 : 0;
      if (!body(rule, at++))
        return;
    }
  }
  [[noreturn]] void refuseCount() const;
  std::string listOf(const Words &some) const;
  std::string nameOf(const FormRule &form) const;
  std::string found(const ptx::Operand &operand) const;
  std::string wanted(const OperandRule &rule) const;
  std::string operandList(const FormRule &form) const;

  const Syntax &syntax_;
  const ptx::Function &function_;
  std::array<ptx::ScalarType, 8> types_{};
  std::size_t typeCount_ = 0;
  std::size_t vectorLength_ = 1; ///< of .v2, .v4 or .v8
  std::size_t rank_ = 0;         ///< of .2d
};

} // namespace kiln::sim
