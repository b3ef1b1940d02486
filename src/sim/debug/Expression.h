// Expression: what people ask of a thread: `%r3 > 7 && shared[%rd1 + 8]:f16 !=
// 0`.
//
// The operators are those of C. Registers are named as in the PTX, special ones
// too (%tid.x, %ctaid.x, %laneid); memory is SPACE[ADDRESS]:TYPE; a name is the
// address of a shared or global variable, or of a parameter of the kernel. A
// value is an integer of 64 bits or a double.
#pragma once

#include "kiln/base/types.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::sim {

struct DebugValue {
  bool isReal = false;
  std::int64_t whole = 0;
  double real = 0;

  static DebugValue of(Type type, std::uint64_t bits);
  double number() const { return isReal ? real : static_cast<double>(whole); }
  bool isTrue() const { return isReal ? real != 0 : whole != 0; }
  std::string text() const;
};

/// "f32", and PTX's "s32" and "b32". Throws UserError.
Type parseDebugType(std::string_view text);

/// What names mean where an expression is evaluated. Its functions throw
/// UserError where there is nothing of that name or at that address.
class ExpressionScope {
public:
  virtual ~ExpressionScope() = default;
  virtual DebugValue registerValue(const std::string &name,
                                   std::optional<Type> type) = 0;
  virtual DebugValue memory(const std::string &space, std::uint64_t address,
                            Type type) = 0;
  /// `isParameter`: parameters of the kernel have the names first.
  virtual DebugValue symbol(const std::string &name, bool isParameter) = 0;
};

class Expression {
public:
  struct Node; ///< of Expression.cpp

  /// Throws UserError with the column where it is none.
  static Expression parse(std::string_view text);
  DebugValue evaluate(ExpressionScope &scope, bool isParameter = false) const;
  const std::string &text() const { return text_; }

private:
  std::string text_;
  std::shared_ptr<const Node> root_;
};

} // namespace kiln::sim
