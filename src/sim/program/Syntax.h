// Syntax: the modifiers and operands that an instruction takes, form by form.
//
// Each row of the registry (Program.h) has its forms, in words, and every
// instruction of a program is held against them before a unit decodes it: a
// unit may then take its operands without asking how many there are and what
// they are. The measure is ptxas: a form takes what ptxas takes.
//
//     "sync up|down, b32 -> =b32|p b32 u32; sync any -> p"
//
// are two forms. The first needs .sync and one of .up and .down, not both, may
// have .b32 beside them, and has three operands. The first form whose modifiers
// and operands are those of the instruction is it. Words in capitals stand for
// several modifiers: kClasses in Syntax.cpp. An operand is one of
//
//     t  t1  t2    a value of the last type that is named, the first, the
//                  second
//     w            a value of twice the bits of t
//     b32 f32 ...  a value of that type: a register of its size and kind, or a
//                  literal
//     r64          a register of 64 bits
//     p            a predicate, `!%p` too
//     v            a value of 32 bits or a part of one: %r1.b0
//     [a]  [t]     an address; a tensor map's address with coordinates
//     {t}          a vector of as many t as .v2, .v4 or .v8 says; without them a t,
//                  in braces or not
//     {t}*  {*}    a vector in braces, of t or of anything; how long it has to
//                  be is for the unit to say
//     {/}          a vector in braces whose elements are the parts of a t
//     imm          an integer literal
//     label  name  a label; a table of targets or a prototype
//     f  ()        a function; the arguments or results of a call
//     _            nothing but _
//     policy mask  a cache policy where there is .L2::cache_hint; the CTAs of
//                  .multicast::cluster
//
// In front of it, `=` means that it is written, `_` that it may be `_`, `~`
// that its register may be wider than the type, `-` that it may be negated.
// Behind it, `|p` means that it may be paired with a predicate and `|p!` that
// it must be; `%` that special registers and `&` that addresses of symbols are
// values too; `?` that it may be missing; `:word` that it is there where the
// modifier is, and only there.
#pragma once

#include "ptx/Ast.h"

#include <bitset>
#include <string_view>

namespace kiln::sim {

/// Modifiers by their numbers in a Syntax.
using Words = std::bitset<128>;

/// What one operand may be.
struct OperandRule {
  enum class Kind : std::uint8_t {
    value,
    reg,
    predicate,
    part,
    address,
    tensor,
    byVector, ///< one value or a vector, as .v2 says
    vector,
    parts,
    immediate,
    label,
    name,
    function,
    list,
    sink,
  };
  enum class TypeOf : std::uint8_t { given, any, last, first, second, wide };

  Kind kind = Kind::value;
  TypeOf typeOf = TypeOf::given;
  ptx::ScalarType type = ptx::ScalarType::b32; ///< where it is given
  bool isResult = false, canSink = false, canBeWider = false;
  bool canNegate = false, canPair = false, mustPair = false;
  bool canBeSpecial = false, canBeSymbol = false;
  bool isOptional = false;
  int condition = -1; ///< the number of a modifier
};

/// A form, ready for comparing.
struct FormRule {
  std::vector<Words> needs;     ///< one of each
  Words takes;                  ///< those of `needs` too
  std::vector<Words> exclusive; ///< at most one of each
  std::vector<OperandRule> operands;
  std::size_t types = 0; ///< how many the instruction names; 0: any number

  bool hasModifiers(const Words &words) const;
};

/// The forms of one opcode.
class Syntax {
public:
  Syntax(const char *forms);

  /// The number of the form that the instruction has. Throws UserError where
  /// it has none: the reason alone, without line and text.
  std::size_t check(const ptx::Function &function,
                    const ptx::Instruction &instruction) const;

  struct Word {
    std::string_view text;
    std::uint8_t number;
    bool isType;
    ptx::ScalarType type; ///< where it is one
  };
  /// A modifier that some form knows; else null.
  const Word *find(std::string_view text) const;
  /// The modifier of a number.
  std::string_view text(std::size_t number) const;
  const std::vector<FormRule> &rules() const { return rules_; }

private:
  FormRule formOf(std::string_view form);
  const Word &add(std::string_view text);
  Words alternatives(std::string_view token, Words &types);
  Words wordsOf(std::string_view list, FormRule &form);
  OperandRule operandOf(std::string_view token);

  std::vector<Word> words_; ///< by text
  std::vector<FormRule> rules_;
};

} // namespace kiln::sim
