// Scopes: which register or variable a name means inside a function.
//
// Braces open a scope whose names hide the outer ones; inline assembly lives in
// such scopes, so one function may declare `p` a hundred times. The function's
// tables are flat: each declaration gets a register index, or a variable's name
// that no other in the function has.
//
//     .reg .b32 %r<4>;           ->  %r0 .. %r3, an entry when first used
//     { .param .b64 param0; }    ->  local "param0"
//     { .param .b64 param0; }    ->  local "param0@1" ('@' is in no PTX name)
//
// Labels may be used before they are defined, so they are kept for all scopes
// and looked up when the function ends.
#pragma once

#include "ptx/Ast.h"
#include "ptx/Lexer.h"

#include <functional>
#include <string_view>
#include <unordered_map>

namespace kiln::ptx {

class Scopes {
public:
  using IsTaken = std::function<bool(const std::string &)>;

  /// `isTaken`: is this the name of something outside of the function?
  Scopes(TokenStream &stream, Function &function, IsTaken isTaken);

  void open(int line);
  void close();
  std::size_t depth() const { return stack_.size(); }
  /// The current scope, for findLabel after it has been closed.
  int current() const { return stack_.back().id; }
  /// Where the current scope was opened.
  int openedAt() const { return stack_.back().line; }

  /// `width`: of a vector, whose elements are registers one behind the other.
  void declareRegister(const Token &name, ScalarType type, int width = 1);
  /// %r<count>: %r0 up to but without %r(count).
  void declareRegisters(const Token &prefix, int count, ScalarType type,
                        int width = 1);
  /// A parameter keeps its name.
  void declareParameter(const Token &name);
  /// The name that the variable has in the function's tables.
  std::string declareVariable(const Token &name);
  /// A label of the instruction `target`, or of the table `table`.
  void declareLabel(const Token &name, int target,
                    const std::string &table = "");
  /// A name for a table that no other table of the function has.
  std::string uniqueTable(std::string_view name);

  struct Found {
    int reg = -1;
    const std::string *variable = nullptr;
    int width = 1; ///< of a vector of registers, which begins with `reg`
  };
  /// The register or the variable that a name means here, if any.
  Found find(std::string_view name);

  struct Label {
    int target = -1;
    std::string table;
  };
  /// The label that a name means in a scope, closed or not; null: none.
  const Label *findLabel(int scope, std::string_view name) const;

private:
  struct Entity {
    int reg = -1;
    std::string variable;
    int line = 0;
    int width = 1;
  };
  struct Range {
    int count;
    ScalarType type;
    int line;
    int width = 1;
  };
  struct Scope {
    int id;
    int line;
    std::unordered_map<std::string_view, Entity> names;
    std::unordered_map<std::string_view, Range> ranges;
    /// The smallest n of the names prefix+n declared one by one.
    std::unordered_map<std::string_view, int> smallest;
  };
  struct LabelKey {
    int scope;
    std::string_view name;
    bool operator==(const LabelKey &) const = default;
  };
  struct LabelHash {
    std::size_t operator()(const LabelKey &key) const {
      return std::hash<std::string_view>()(key.name) * 31 + key.scope;
    }
  };

  TokenStream &stream_;
  Function &function_;
  IsTaken isTaken_;
  std::vector<Scope> stack_;
  std::vector<int> parents_; ///< of each scope ever opened
  std::unordered_map<LabelKey, Label, LabelHash> labels_;
  std::unordered_map<std::string, int> uses_; ///< of a variable's name
  std::unordered_map<std::string, int> tableUses_;

  Entity &declare(const Token &name);
  /// The first of `width`.
  int addRegister(std::string_view name, ScalarType type, int width);
  int findInRanges(Scope &scope, std::string_view name);
};

} // namespace kiln::ptx
