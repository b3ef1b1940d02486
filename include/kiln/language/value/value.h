// value.h: Value, what a kernel computes with, and Var, what it changes.
//
// A Value is an expression of the kernel under construction. Operators build
// the arithmetic; literals and Dims take the type of the other operand; the
// C++ line that wrote an operation travels with it into the PTX.
//
//     Value row = block_id() * 128 + thread_id();   // i32
//     if_(row < m, [&] { y(row) = alpha * x(row); });
//
// A Value belongs to the region it was made in: what a loop body computes is
// not visible after the loop. A Var is, and can be assigned:
//
//     Var sum(f32, 0);
//     for_range(0, n, [&](Value i) { sum = sum + x(i); });
//     y(0) = sum;
#pragma once

#include <kiln/base/dim.h>
#include <kiln/base/error.h>
#include <kiln/base/export.h>
#include <kiln/base/types.h>
#include <kiln/base/where.h>

#include <concepts>
#include <variant>

namespace KILN_API kiln {

class Value {
public:
  Value() = default;

  Type type() const { return type_; }
  /// False for a default-constructed one, which nothing accepts.
  bool is_valid() const { return impl_ != nullptr; }
  void *impl() const { return impl_; } ///< the compiler's own handle
  const void *kernel() const { return kernel_; }

private:
  friend struct Make;
  Value(void *impl, const void *kernel, Type type)
      : impl_(impl), kernel_(kernel), type_(type) {}

  void *impl_ = nullptr;
  const void *kernel_ = nullptr; ///< whose kernel it is
  Type type_ = Type::i32;
};

/// An operand with the line it stands on: a Value or anything that turns into
/// one, a literal, or a Dim. Never written by hand; every function that takes
/// operands takes these.
class At {
public:
  At(const Value &value, Where where = Where::current())
      : operand_(value), where_(where) {}
  template <typename T>
    requires(!std::is_arithmetic_v<T> && !std::same_as<T, Value> &&
             !std::same_as<T, At> && std::convertible_to<const T &, Value>)
  At(const T &value, Where where = Where::current())
      : operand_(static_cast<Value>(value)), where_(where) {}
  template <std::integral T>
  At(T literal, Where where = Where::current())
      : operand_(static_cast<std::int64_t>(literal)), where_(where) {}
  At(double literal, Where where = Where::current())
      : operand_(literal), where_(where) {}
  At(const Dim &dim, Where where = Where::current())
      : operand_(dim), where_(where) {}

  const Where &where() const { return where_; }
  const std::variant<Value, std::int64_t, double, Dim> &operand() const {
    return operand_;
  }

private:
  std::variant<Value, std::int64_t, double, Dim> operand_;
  Where where_;
};

/// A mutable variable of the kernel. It costs nothing but the register it
/// ends up in.
class Var {
public:
  /// A variable of that type with its first value.
  Var(Type type, At initial);
  /// The type of the first value; literals are i32 or f32.
  explicit Var(At initial);
  Var(const Var &) = delete;

  Type type() const { return type_; }
  operator Value() const;
  Var &operator=(At value);
  Var &operator=(const Var &other) { return *this = At(other); }

private:
  void *slot_ = nullptr;
  const void *kernel_ = nullptr;
  Type type_;
};

// Arithmetic. Both operands have one type; integer division truncates towards
// zero, as in C++. There is no implicit conversion: `cast` says it. `/` of f32
// is rounded correctly (div.rn) and costs some ten instructions; fast_divide
// and rcp (math.h) cost two and one.
Value operator+(const Value &lhs, At rhs);
Value operator-(const Value &lhs, At rhs);
Value operator*(const Value &lhs, At rhs);
Value operator/(const Value &lhs, At rhs);
Value operator%(const Value &lhs, At rhs);
// Bits, of integers and of i1.
Value operator&(const Value &lhs, At rhs);
Value operator|(const Value &lhs, At rhs);
Value operator^(const Value &lhs, At rhs);
Value operator<<(const Value &lhs, At rhs);
Value operator>>(const Value &lhs, At rhs);
// Comparisons give an i1.
Value operator==(const Value &lhs, At rhs);
Value operator!=(const Value &lhs, At rhs);
Value operator<(const Value &lhs, At rhs);
Value operator<=(const Value &lhs, At rhs);
Value operator>(const Value &lhs, At rhs);
Value operator>=(const Value &lhs, At rhs);
/// Of i1, both sides computed: there is no short cut.
Value operator&&(const Value &lhs, At rhs);
Value operator||(const Value &lhs, At rhs);
Value operator!(At operand);
Value operator-(At operand);

/// A literal or a Dim on the left.
template <typename T>
concept Literal = std::is_arithmetic_v<T> || std::same_as<T, Dim>;

/// A literal or Dim as a Value of the type `like` has.
Value literal_like(At literal, const Value &like);
/// What `operand` is worth as a Value; literals are i32 or f32.
Value value_of(At operand);

/// The Value on the right of a literal, with the line it stands on.
struct RightOfLiteral {
  Value value;
  Where where;

  template <typename T>
    requires(!std::is_arithmetic_v<T> && std::convertible_to<const T &, Value>)
  RightOfLiteral(const T &value, Where where = Where::current())
      : value(value), where(where) {}
};

#define KILN_LITERAL_ON_THE_LEFT(op)                                           \
  template <Literal T> Value operator op(T lhs, RightOfLiteral rhs) {          \
    return literal_like(At(lhs, rhs.where), rhs.value)                         \
        op At(rhs.value, rhs.where);                                           \
  }
KILN_LITERAL_ON_THE_LEFT(+)
KILN_LITERAL_ON_THE_LEFT(-)
KILN_LITERAL_ON_THE_LEFT(*)
KILN_LITERAL_ON_THE_LEFT(/)
KILN_LITERAL_ON_THE_LEFT(%)
#undef KILN_LITERAL_ON_THE_LEFT

/// A literal of a stated type.
Value constant(Type type, At literal);
/// `value` in another type: integers are truncated or extended by their sign,
/// floats rounded to nearest even, float to integer truncates.
Value cast(At value, Type type);
/// `condition ? on_true : on_false`; both are computed.
Value select(At condition, At on_true, At on_false);
Value min(const Value &lhs, At rhs);
Value max(const Value &lhs, At rhs);
/// ceil(lhs / rhs) of non-negative integers.
Value ceil_div(const Value &lhs, At rhs);

} // namespace kiln
