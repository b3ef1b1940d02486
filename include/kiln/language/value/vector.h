// vector.h: several values at once: packed words, and work done by pairs.
//
// A vector is a std::vector<Value>, as load_vector gives it. Its arithmetic is
// element by element; two neighbours of f16 or bf16 become one instruction on a
// word of 32 bits (add.rn.f16x2), an odd one at the end one of its own:
//
//     Values x = a.load_vector({row, 8 * thread_id()}, 8);   // f16
//     Values y = fma(x, scale, b.load_vector({row, 8 * thread_id()}, 8));
//     stmatrix(tile(row, column), {pack({y[0], y[1]})});
//
// Both sides have one type and one length; a scalar or a literal on the right
// stands for as many of itself.
#pragma once

#include <kiln/base/export.h>
#include <kiln/language/value/value.h>
#include <kiln/base/where.h>

#include <optional>
#include <vector>

namespace KILN_API kiln {

using Values = std::vector<Value>;

/// The right operand of a vector, with its line: a vector, or a scalar that
/// stands for as many. Never written by hand.
class AtEach {
public:
  AtEach(const Values &values, Where where = Where::current())
      : values_(values), where_(where) {}
  AtEach(const At &scalar) : scalar_(scalar), where_(scalar.where()) {}
  template <typename T>
    requires(!std::same_as<T, Values> && !std::same_as<T, AtEach> &&
             !std::same_as<T, At> &&
             std::constructible_from<At, const T &, Where>)
  AtEach(const T &scalar, Where where = Where::current())
      : scalar_(At(scalar, where)), where_(where) {}

  const Where &where() const { return where_; }
  /// Nothing where it is a vector.
  const std::optional<At> &scalar() const { return scalar_; }
  const Values &values() const { return values_; }

private:
  Values values_;
  std::optional<At> scalar_;
  Where where_;
};

// Of f16 and bf16, by pairs: add, sub, mul, fma, min and max .f16x2 or .bf16x2.
Values operator+(const Values &lhs, AtEach rhs);
Values operator-(const Values &lhs, AtEach rhs);
Values operator*(const Values &lhs, AtEach rhs);
Values min(const Values &lhs, At rhs);
Values min(const Values &lhs, const Values &rhs,
           Where where = Where::current());
Values max(const Values &lhs, At rhs);
Values max(const Values &lhs, const Values &rhs,
           Where where = Where::current());
/// a * b + c rounded once.
Values fma(const Values &a, AtEach b, AtEach c);

/// Each in another type, as `cast` of one does; by pairs
///
///     from f32 to f16 and bf16            cvt.rn.f16x2.f32
///     from f32 and f16 to e4m3 and e5m2   cvt.rn.satfinite.e4m3x2.f32
///     from e4m3 and e5m2 to f16           cvt.rn.f16x2.e4m3x2
Values cast(const Values &values, Type type, Where where = Where::current());

/// The bits of two values of 16 bits or four of 8, the first one lowest, as a
/// u32. Two f32 become a word of halves in one instruction
/// (cvt.rn.f16x2.f32):
///
///     Value word = pack({cast(x, f16), cast(y, f16)});
Value pack(const Values &values, Where where = Where::current());
/// What `pack` put into a word of 32 bits: two or four values of `type`.
Values unpack(At word, Type type);

} // namespace kiln
