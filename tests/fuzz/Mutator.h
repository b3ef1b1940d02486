// Mutator: PTX to PTX that is wrong in its own way.
//
// One to four changes: operands, modifiers, opcodes and guards of instructions;
// literals; whole instructions and labels; declarations of registers, variables
// and parameters; directives; now and then any token at all. Most texts still
// parse, and many of them run.
#pragma once

#include "fuzz/Dice.h"
#include "fuzz/Statements.h"

#include <map>
#include <vector>

namespace kiln::fuzz {

/// What stands elsewhere and can be put here: a sample of each form of the
/// registry's instructions.
struct Pieces {
  Pieces();

  std::vector<Instruction> instructions;
  std::map<std::string, std::vector<std::vector<std::string>>>
      modifiersOf;                    ///< the lists each opcode is seen with
  std::vector<std::string> modifiers; ///< each once
  std::vector<std::string> opcodes;   ///< of the simulator's instructions
};

/// One program under mutation.
class Mutator {
public:
  Mutator(Dice &dice, const Pieces &pieces, Statements &statements)
      : dice_(dice), pieces_(pieces), statements_(statements) {}

  /// Make one change.
  void mutate();

private:
  // Changes of one instruction (MutateInstruction.cpp).
  void changeOperands(Instruction &instruction);
  void changeOperandInside(Instruction &instruction);
  void changeModifiers(Instruction &instruction);
  void changeGuard(Instruction &instruction);
  void changeOpcode(Instruction &instruction);
  void changeInstruction();
  void changeLiteral();
  Tokens anyOperand(int depth = 0);
  Tokens addressOperand(int depth);
  Tokens groupOperand(int depth);

  // Changes of the program (MutateProgram.cpp).
  void moveInstructions();
  void addInstruction();
  void changeLabels();
  void changeRegisters();
  void changeVariable();
  void changeHead();
  void changeDirective();
  void changeToken();

  /// The index of any statement of a kind before `end`; the number of
  /// statements where there is none.
  std::size_t find(Statement::Kind kind, std::size_t end = ~std::size_t(0));
  /// The same for an instruction, which is the place of the change from here
  /// on: what names are known there depends on it.
  std::size_t findPlace();
  /// Names that the program has.
  std::string registerName();
  std::string predicateName();
  std::string labelName();
  std::string symbolName();
  void insert(std::size_t at, Statement statement);
  void insertText(std::size_t at, const std::string &text);

  Dice &dice_;
  const Pieces &pieces_;
  Statements &statements_;
  std::size_t place_ = ~std::size_t(0);
};

} // namespace kiln::fuzz
