// Ast: a PTX module as text says it, with names resolved.
//
// The parser knows PTX's grammar, scopes and directives, and no instruction: an
// instruction is its opcode, its modifiers and its operands, whatever they are.
// What they mean is for whoever runs or prints them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln::ptx {

/// A declared type: of a register, a variable, or a modifier such as .f32.
enum class ScalarType : std::uint8_t {
  pred,
  b8,
  b16,
  b32,
  b64,
  b128,
  u8,
  u16,
  u32,
  u64,
  s8,
  s16,
  s32,
  s64,
  u2,
  s2,
  u4,
  s4,
  b1,
  f16,
  f16x2,
  bf16,
  bf16x2,
  tf32,
  f32,
  f64,
  e4m3,
  e5m2,
  e4m3x2,
  e5m2x2,
  e2m3,
  e3m2,
  e2m1,
  ue8m0,
  ue4m3,
  e2m3x2,
  e3m2x2,
  e2m1x2,
  ue8m0x2,
  e4m3x4,
  e5m2x4,
  e2m3x4,
  e3m2x4,
  e2m1x4,
};
/// Bytes of a value in memory; pred and what is smaller than a byte have 1.
int sizeBytes(ScalarType type);
/// "f32"
std::string_view name(ScalarType type);
/// "f32" -> f32; false where it is no type.
bool parseScalarType(const std::string &text, ScalarType &type);

enum class StateSpace : std::uint8_t {
  none,
  global,
  constant,
  shared,
  local,
  param
};

/// A register of a function; scopes have been resolved, so that two registers
/// of one name in two scopes are two entries. Of `.reg .b32 %r<9>` those have
/// an entry that are used.
struct Register {
  std::string name; ///< "%r1"
  ScalarType type;
};

struct Operand {
  enum class Kind : std::uint8_t {
    reg,       ///< `reg`; `name`: the selector of `%r1.b0`, mostly empty
    special,   ///< a special register: `name` ("%tid.x", "WARP_SZ")
    immediate, ///< `bits`: an integer, sign-extended to 64 bits
    real,    ///< `bits`: of a double (0d... and decimals) or of a float (0f...)
    symbol,  ///< `name` + `offset`: a variable or a function, as a value
    address, ///< [ elements[0] + offset ] and, for tensor copies, more elements
    vector,  ///< { elements }
    label,   ///< `name`, `target`: the index of an instruction
    sink,    ///< _
    list,    ///< ( elements ) of a call
  };
  Kind kind = Kind::sink;
  int reg = -1;           ///< index into Function::registers
  int pairedReg = -1;     ///< the %p2 of `%r1|%p2`; -1: none
  bool isNegated = false; ///< !%p1 or -%r1
  bool isSingle = false;  ///< real: 0f..., `bits` holds 32
  std::uint64_t bits = 0;
  std::string name;
  std::int64_t offset = 0;
  int target = -1;
  std::vector<Operand> elements;
};

/// Where an instruction comes from in the source that was compiled to PTX.
struct SourceRef {
  int file = 0; ///< key of Module::files; 0: unknown
  int line = 0;
  int inlined = -1; ///< of Function::inlined; -1: it was not inlined
};

/// A function that was inlined, and where.
struct Inlined {
  std::string name; ///< a label of the section .debug_str
  SourceRef at;
};

struct Instruction {
  int line = 0; ///< of the PTX text, from 1
  SourceRef source;
  int predicate = -1; ///< register index; -1: always
  bool isPredicateNegated = false;
  std::string opcode; ///< "mbarrier"
  std::vector<std::string>
      modifiers; ///< {"try_wait", "parity", "shared::cta", "b64"}
  std::vector<Operand> operands;
  std::string text; ///< as written, on one line, for messages

  bool has(const char *modifier) const;
  /// "mbarrier.try_wait.parity.shared::cta.b64"
  std::string fullOpcode() const;
};

/// A variable: global, constant, shared, local, or a parameter.
struct Variable {
  StateSpace space = StateSpace::none; ///< none: a .reg parameter
  ScalarType type = ScalarType::b8;    ///< of an element
  std::string name;
  int align = 1;
  std::uint64_t bytes = 0; ///< 0: an extern array without a size
  bool isExtern = false;
  bool isVisible = false;
  bool isWeak = false;    ///< visible, and one of several is enough
  bool isManaged = false; ///< the host uses it at the same address
  int line = 0;
  /// Initial bytes, shorter than `bytes` where the rest is zero.
  std::vector<std::uint8_t> init;
  /// Addresses inside the initialiser: `symbol` + `addend` goes to `offset`,
  /// generic(symbol) where isGeneric.
  struct Relocation {
    std::uint64_t offset;
    std::string symbol;
    std::int64_t addend;
    bool isGeneric;
    int bytes;
    int shift = 0; ///< bits to the right first: 8 for 0xFF00(symbol)
  };
  std::vector<Relocation> relocations;
};

struct Function {
  std::string name;
  bool isEntry = false;
  bool hasBody = false;   ///< false: a declaration
  bool isVisible = false; ///< to other modules, or wanted from them
  bool isWeak = false;    ///< visible, and one of several is enough
  int line = 0;
  std::vector<Variable> parameters;
  std::vector<Variable> results; ///< of a device function
  std::vector<Register> registers;
  std::vector<Variable> locals; ///< .local and .shared and .param inside it,
                                ///< scopes resolved by unique names
  std::vector<Instruction> body;
  std::vector<Inlined> inlined; ///< from .loc ... inlined_at
  /// Directives with numbers: "reqntid", "maxntid", "minnctapersm", "maxnreg",
  /// "reqnctapercluster", "explicitcluster", "maxclusterrank", "noreturn".
  std::map<std::string, std::vector<int>> directives;
  /// brx.idx tables: name -> instruction indices; call tables: name ->
  /// functions.
  std::map<std::string, std::vector<int>> branchTargets;
  std::map<std::string, std::vector<std::string>> callTargets;
};

struct Module {
  int versionMajor = 0, versionMinor = 0;
  int versionLine = 0;                    ///< of .version; 0: there is none
  std::string target;                     ///< "sm_90a"
  int targetLine = 0;                     ///< of .target
  std::vector<std::string> targetOptions; ///< "debug", "texmode_independent"
  int addressSize = 64;
  std::map<int, std::string> files;                ///< from .file
  std::map<std::string, std::string> debugStrings; ///< of .debug_str, by label
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::map<std::string, std::string> aliases; ///< from .alias: name -> function
  /// Where `variables` and `functions` have a name: modules have thousands.
  std::unordered_map<std::string, std::size_t> variableIndex, functionIndex;

  /// Ten times PTX's own: 86 of 8.6.
  int version() const { return 10 * versionMajor + versionMinor; }
  /// By name or alias; the one with the body where there are two.
  const Function *find(const std::string &name) const;
  const Variable *findVariable(const std::string &name) const;
  std::vector<const Function *> entries() const;
};

/// Parse. Throws UserError with the line, the text there and what was expected.
/// `origin` names the text in messages.
Module parse(const std::string &text, const std::string &origin = "PTX");

} // namespace kiln::ptx
