// Program: an entry and the functions it reaches, decoded for execution, 32
// lanes at a time.
//
// Decoding turns every operand into a register: immediates, addresses of
// variables and special registers that do not change become registers that are
// filled once per warp. An instruction is then a handler and register numbers,
// and the handler's loop over 32 lanes is all that is left at run time.
//
// Registers hold 32 lanes of 4 or of 8 bytes; 8- and 16-bit values live in
// 4-byte lanes, zero-extended. Predicates are lane masks. Every function has
// registers of its own; a call that enters a function a second time saves them
// (Calls.cpp).
#pragma once

#include "ptx/Ast.h"
#include "sim/program/AddressSpaces.h"
#include "sim/program/Lanes.h"
#include "sim/program/MemorySemantics.h"
#include "sim/program/PoisonRule.h"
#include "sim/program/Syntax.h"

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

namespace kiln {
class UserError;
}

namespace kiln::sim {

class Warp;
class InstructionSet;
struct Effect;
struct Instruction;
struct Op;
struct SpinLoop;

/// A register of the decoded program: lanes at `offset` in the warp's file.
struct Reg {
  std::uint32_t offset = 0; ///< in bytes
  std::uint16_t width = 0;  ///< bytes of a lane: 4 or 8; 0: none
  std::uint16_t bytes = 0;  ///< bytes of the value: 1, 2, 4, 8
  std::uint32_t index = 0;  ///< for what is known of it beside its value

  bool isValid() const { return width != 0; }
};

/// A register of 16 bytes is two of 8, one behind the other. Throws UserError
/// for another register, which has no half behind it.
Reg highHalf(const Reg &low);

/// A predicate of the decoded program.
struct Pred {
  std::int32_t index = -1;
  bool isNegated = false;

  bool isValid() const { return index >= 0; }
};

/// What a handler did with its instruction.
enum class Step : std::uint8_t {
  next,    ///< go on with the next one
  same,    ///< likewise, and memory is as it was
  yield,   ///< likewise, and the warp's turn is over
  jumped,  ///< the handler has set where the group goes
  blocked, ///< try this instruction again when something has changed
};

/// Execute `op` for the lanes of `active` (never empty, predicate applied).
using Handler = Step (*)(Warp &warp, const Op &op, LaneMask active);

/// A decoded instruction. What plain ones need stands first.
struct alignas(64) Op {
  Handler handler = nullptr;
  Pred guard; ///< @p
  /// So many instructions from here on are plain: pure functions of registers,
  /// lane by lane, with no place between them where lanes meet (PlainRuns.h).
  std::uint16_t plainCount = 0;
  /// So many are plain or weak accesses, likewise.
  std::uint16_t straightCount = 0;
  bool isQuiet = true;    ///< Effect::isQuiet
  bool isAligned = false; ///< for whole warps
  /// The checks have to know of what it does with registers (RegisterUse).
  bool isTracked = false;
  bool isListWritten = false; ///< `list` holds destinations
  bool decidesLoop = false; ///< what it gives decides about a loop that waits
  bool isMasked = false;    ///< a load; others tell of it (`late`)
  Reg dst;
  Reg src[4];
  /// Of a plain one, for what is known beside values: the sources and the
  /// result by Reg::index; Code::registerCount where there is none.
  std::array<std::uint32_t, 4> plainSources{};
  std::uint32_t plainResult = 0;
  PoisonRule poison; ///< how unwritten bytes of sources reach results
  Pred pdst, psrc, pdst2;
  Reg dst2;
  std::vector<Reg> list; ///< vector operands: destinations or sources
  std::int64_t imm = 0;            ///< a static offset, count or mode
  std::uint32_t flags = 0;         ///< meaning is the handler's own
  int target = -1;                 ///< of a branch
  int reconverge = -1;             ///< its immediate post-dominator; -1: none
  MemorySemantics semantics;       ///< of an access, a fence or a barrier
  bool touchesAccumulator = false; ///< a register of some wgmma, not as one
  bool readsLoaded = false;        ///< a register of some tcgen05.ld
  std::shared_ptr<const void> extra; ///< decoded state of a rich instruction
  std::shared_ptr<const Effect> effect;
  std::shared_ptr<const SpinLoop> spin; ///< of a branch backwards; may be null
  /// A wait or an atomic whose answer decides nothing at all.
  bool isUnheeded = false;
  std::int32_t late = -1;           ///< which of Code::lateUses; -1: none
  const Instruction *row = nullptr; ///< of the registry
  const ptx::Instruction *origin = nullptr;
};

/// What an instruction makes of a value that a load has read (LateLoads.h).
struct LateUse {
  int load = -1;   ///< index of the instruction
  int number = -1; ///< of the value (Warp::lateValues); -1: it counts at once
  std::uint32_t elements = 0; ///< of the load, one bit each
  bool isBegin = false;       ///< it is read here, and counts nowhere yet
  Pred mask;                  ///< not valid: it counts in all lanes
  bool isUsedWhere = true;    ///< it counts where `mask` is that
};

/// A register whose 32 lanes are filled when a warp starts.
struct InitialValue {
  Reg reg;
  /// lane -> bits
  std::function<std::uint64_t(const Warp &, int lane)> value;
  bool isUniform = true; ///< every lane has that of the first
  /// All lanes at once, of a register of four bytes; null: one by one.
  void (*fill)(const Warp &warp, std::uint32_t *lanes) = nullptr;
  bool isConstant = false; ///< the same in all warps: it stands in Code::file
};

/// Sixteen lanes of four bytes lie in one line of the host's cache.
struct alignas(64) FileLine {
  std::uint8_t bytes[64];
};

/// Where a parameter or a result is: a register, or bytes of a frame, which is
/// no larger than a thread's local memory (SymbolLayout).
struct Slot {
  Reg reg; ///< not valid: in local memory
  std::uint32_t offset = 0, bytes = 0;
};

/// One function's part of the program.
struct FunctionCode {
  const ptx::Function *function = nullptr;
  std::uint64_t address = 0; ///< as a value
  int first = 0;             ///< of Code::ops
  std::vector<Reg> registers;
  int predicateBegin = 0, predicateEnd = 0;
  std::uint32_t localBytes = 0; ///< of its frame
  /// Registers that hold the address of something in the frame.
  std::vector<std::pair<Reg, std::uint64_t>> localAddresses;
  std::vector<Slot> parameters, results; ///< not of an entry
  /// By register of the AST: one of the two, the other is none.
  std::vector<Reg> declared;
  std::vector<int> declaredPredicates;
};

/// The program of a launch.
struct Code {
  const ptx::Module *module = nullptr;
  std::vector<FunctionCode> functions;               ///< the entry first
  std::unordered_map<std::uint64_t, int> functionAt; ///< by address
  std::vector<Op> ops;
  std::vector<std::vector<LateUse>> lateUses; ///< by Op::late
  int lateCount = 0;                          ///< LateUse::number
  std::uint32_t registerBytes = 0;
  std::uint32_t registerCount = 0;
  int predicateCount = 0;
  bool hasCtaBarrier = false;  ///< some instruction waits at one, or arrives
  bool hasTrigger = false;     ///< some instruction lets dependents begin
  bool hasPrimaryWait = false; ///< some waits for the launch ahead
  std::vector<InitialValue> initialValues;
  /// The registers of a warp before they are filled: constants and zeros.
  std::vector<FileLine> file;
};

/// Where variables, parameters and functions are, decided before decoding.
struct Symbol {
  ptx::StateSpace space; ///< none: a function
  std::uint64_t address; ///< in its space (local: from the frame's base)
  std::uint64_t bytes;
};

/// What names mean; SymbolLayout decides it.
struct Names {
  std::function<const Symbol *(const ptx::Function &, const std::string &)>
      find;
  std::function<std::uint32_t(const ptx::Function &)> localBytes;
};

/// How a program is to be executed.
enum class Execution : std::uint8_t {
  fast,
  reference, ///< lane by lane: the same, for comparison (ReferenceHandlers.h)
};

/// Decodes functions, the entry first. Units ask it for registers; it owns
/// their numbering.
class Decoder {
public:
  Decoder(const InstructionSet &instructions, const ptx::Module &module,
          const std::vector<const ptx::Function *> &functions, Names names);

  /// Decode everything. Throws UserError listing every instruction that no unit
  /// knows, with its line.
  Code decode(Execution execution = Execution::fast);

  // For the units.

  /// A value operand of `bytes` (1, 2, 4, 8): a register as declared (its value
  /// is read or written in `bytes`), an immediate, a special register, or the
  /// address of a symbol.
  Reg reg(const ptx::Operand &operand, int bytes);
  /// A register's own size.
  Reg reg(const ptx::Operand &operand);
  /// A predicate operand, `!%p` included.
  Pred pred(const ptx::Operand &operand);
  /// A constant in a register.
  Reg constant(std::uint64_t bits, int bytes);
  /// The base of an address operand as an 8-byte register; its static offset
  /// is put into `offset`.
  Reg address(const ptx::Operand &operand, std::int64_t &offset);
  /// Registers of {a, b, ...}, or of a single operand.
  std::vector<Reg> vector(const ptx::Operand &operand, int bytes);
  /// A fresh register or predicate no PTX name stands for.
  Reg scratch(int bytes);
  Pred scratchPred();
  /// The carry flag CC.CF of the function: add.cc sets it, addc reads it.
  Pred carry();
  /// A wgmma uses this register: other instructions that do are marked
  /// (Op::touchesAccumulator).
  void markAccumulator(Reg reg) { accumulators_.insert(reg.index); }
  /// A tcgen05.ld fills this register: instructions that read it are marked
  /// (Op::readsLoaded).
  void markLoaded(Reg reg) { loaded_.insert(reg.index); }
  /// The predicate of a register number of the AST; -1: none.
  Pred predOfRegister(int reg) const;
  const Symbol *symbol(const std::string &name) const;
  /// The space an address lies in: what the instruction says, except that the
  /// parameters of a call are private to the thread.
  Space spaceOfAddress(const ptx::Operand &operand, Space declared) const;

  const ptx::Module &module() const { return *code_.module; }
  /// The one that is being decoded.
  const ptx::Function &function() const { return *current().function; }
  /// The number of the function's first instruction in the program.
  int firstInstruction() const { return current().first; }
  /// The function of that name in Code::functions; -1: none with a body.
  int functionNumber(const std::string &name) const;
  /// A parameter of a call, or a result.
  Slot slot(const ptx::Instruction &instruction, const ptx::Operand &operand);
  /// Refuse the instruction at hand: "unsupported: WHY".
  [[noreturn]] void refuse(const ptx::Instruction &instruction,
                           const std::string &why) const;

private:
  /// Whether an instruction other than a wgmma uses a register of one.
  bool touchesAccumulator(const Op &op) const;
  bool readsLoaded(const Op &op) const;
  Reg allocate(int bytes);
  /// The address of a shared variable in the CTA of the warp.
  Reg sharedAddress(std::uint64_t plain, int bytes);
  /// Make Code::file.
  void fillFile();
  /// Number the registers of the next function.
  void begin(std::size_t number);
  void decodeBody();
  /// The row of each instruction of the function; null where it has none of
  /// the row's forms.
  std::vector<const Instruction *> checkSyntax();
  [[noreturn]] void tellRefusals();
  void noteRefusal(const ptx::Instruction &instruction, const UserError &error);
  /// Of a result or a parameter; `reg` counts those that are registers.
  Slot parameterSlot(const ptx::Variable &parameter, int &reg) const;
  FunctionCode &current() { return code_.functions[current_]; }
  const FunctionCode &current() const { return code_.functions[current_]; }

  const InstructionSet &instructions_;
  Pred carry_;
  Names names_;
  Code code_;
  std::size_t current_ = 0;
  std::vector<std::pair<int, std::string>> refusals_; ///< by line
  std::vector<Reg> registers_;                        ///< per ptx register
  std::vector<int> predicates_; ///< per ptx register; -1: not a predicate
  std::map<std::pair<std::uint64_t, int>, Reg> constants_, sharedAddresses_;
  std::map<std::string, Reg> specials_;
  std::set<std::uint32_t> accumulators_, loaded_; ///< Reg::index
  std::map<std::uint64_t, Reg> localAddresses_;   ///< of the function
};

} // namespace kiln::sim
