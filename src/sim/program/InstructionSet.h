// InstructionSet: the registry of instructions, one row for each opcode.
//
// Units offer rows (units/Units.h); the decoder looks an opcode up, holds the
// instruction against the row's syntax and lets the row decode it.
#pragma once

#include "sim/program/AddressUse.h"
#include "sim/program/Operations.h"
#include "sim/program/Program.h"
#include "sim/program/Syntax.h"

#include <optional>
#include <string_view>

namespace kiln::sim {

/// Decodes an instruction into `op`: sets its handler and operands. The
/// instruction has one of the forms of its row's syntax. Throws UserError
/// (Decoder::refuse) for what that does not tell: types that do not go
/// together, or a vector of the wrong length.
using DecodeFunction = void (*)(Decoder &decoder,
                                const ptx::Instruction &instruction, Op &op);

/// Who executes an instruction.
enum class Unit : std::uint8_t {
  scalar,
  floating,
  conversion,
  address,
  memory,
  control,
  warp,
  barrier,
  mbarrier,
  copies,
  wgmma,
  tcgen05,
  matrix,
};
const char *nameOf(Unit unit);

/// Where an instruction leads.
enum class Flow : std::uint8_t { next, branch, branchTable, leave };

/// What an instruction is to those who do not execute it.
struct Traits {
  /// What others can see of it; null: nothing.
  void (*effect)(Decoder &decoder, const ptx::Instruction &instruction,
                 Effect &effect) = nullptr;
  /// The order of its accesses; null: it has no say in it.
  MemorySemantics (*semantics)(const ptx::Instruction &instruction) = nullptr;
  /// What becomes of unwritten bytes; null: of arithmetic, everything is
  /// spoilt, and of others, nothing is passed on.
  PoisonRule (*poison)(const ptx::Instruction &instruction) = nullptr;
  /// What it does with addresses; null: no result points where they do, and
  /// what lies there is of no concern.
  AddressUse (*addresses)(const ptx::Instruction &instruction) = nullptr;
  Flow flow = Flow::next;
  /// Its result tells of time, or of who happens to be there.
  bool isOfTheMoment = false;
  /// The floating-point operations that it does; null: none.
  Operations (*operations)(const ptx::Instruction &instruction) = nullptr;
};

/// One opcode of the registry. docs/simulator.md's table is made from these.
struct Instruction {
  const char *opcode; ///< "add", "mbarrier": the word before the first dot
  DecodeFunction decode;
  Unit unit;
  const char *forms; ///< what is supported, in words
  Syntax syntax;     ///< its modifiers and operands
  Traits traits = {};

  /// A pure function of its sources, lane by lane.
  bool isArithmetic() const {
    return unit == Unit::scalar || unit == Unit::floating ||
           unit == Unit::conversion || unit == Unit::address;
  }
};

/// A special register that keeps its value while a warp lives.
struct SpecialRegister {
  int bytes;
  std::uint64_t (*value)(const Warp &warp, int lane);
  bool isUniform; ///< the same in all lanes of a warp
  void (*fill)(const Warp &warp, std::uint32_t *lanes); ///< InitialValue::fill
};

class InstructionSet {
public:
  /// Finds a special register by its name; nothing where there is none.
  using FindSpecial = std::optional<SpecialRegister> (*)(std::string_view name);

  InstructionSet(std::vector<Instruction> rows, FindSpecial findSpecial);

  /// The row of an opcode; null: nobody knows it.
  const Instruction *find(std::string_view opcode) const;
  std::optional<SpecialRegister> findSpecial(std::string_view name) const {
    return findSpecial_(name);
  }
  const std::vector<Instruction> &rows() const { return rows_; }

private:
  std::vector<Instruction> rows_;
  std::map<std::string_view, const Instruction *> byOpcode_;
  FindSpecial findSpecial_;
};

} // namespace kiln::sim
