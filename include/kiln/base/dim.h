// dim.h: Dim, a problem dimension that is a constant or known at launch.
//
// A GEMM server changes M at every step and must not compile again; another
// user wants M baked in so that loops have constant bounds. Both write the same
// kernel: a `Dim` is either a number or an expression over the kernel's scalar
// arguments, and folds to a number as soon as it can.
//
//     Dim m = kb.dim("m");            // a runtime argument, or Dim m = 4096;
//     kb.grid(ceil_div(m, 128));      // how the grid follows from it
//     for_range(0, ceil_div(k, 64))   // and inside the kernel the same word
//
// The launch contract stores these expressions; whoever launches the kernel
// evaluates them with the arguments at hand (`evaluate`).
#pragma once

#include <kiln/base/export.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace KILN_API kiln {

class Dim {
public:
  enum class Op : std::uint8_t {
    constant,
    argument, ///< a scalar argument, or "sms": the multiprocessors of a device
    add,
    sub,
    mul,
    div, ///< floor
    ceil_div,
    mod,
    min,
    max,
  };

  Dim() : Dim(0) {}
  Dim(std::int64_t value) : op_(Op::constant), value_(value) {}
  Dim(int value) : Dim(std::int64_t{value}) {}
  Dim(unsigned value) : Dim(std::int64_t{value}) {}
  Dim(std::size_t value) : Dim(static_cast<std::int64_t>(value)) {}

  /// The scalar argument of that name.
  static Dim argument(std::string name);
  /// An operation over two dims, folded where both are constants. Division by
  /// the constant 0 is a UserError.
  static Dim binary(Op op, const Dim &lhs, const Dim &rhs);

  Op op() const { return op_; }
  bool is_constant() const { return op_ == Op::constant; }
  /// The number; throws UserError naming the expression if it has none yet.
  std::int64_t constant() const;
  const std::string &argument_name() const { return name_; }
  const Dim &lhs() const { return *lhs_; }
  const Dim &rhs() const { return *rhs_; }

  /// The value, with arguments looked up by name.
  std::int64_t evaluate(
      const std::function<std::int64_t(const std::string &)> &lookup) const;

  /// A number that divides the value whatever the arguments are: 8 of m * 8, 1
  /// of m, 0 of 0.
  std::int64_t divisor() const;

  /// "ceil_div(m, 128)"
  std::string to_string() const;
  /// The inverse of `to_string`. Throws UserError.
  static Dim parse(const std::string &text);

  /// Same expression, not same value.
  bool operator==(const Dim &other) const;

private:
  Op op_;
  int depth_ = 0; ///< operations on the longest path down
  std::int64_t value_ = 0;
  std::string name_;
  std::shared_ptr<const Dim> lhs_, rhs_;
};

Dim operator+(const Dim &lhs, const Dim &rhs);
Dim operator-(const Dim &lhs, const Dim &rhs);
Dim operator*(const Dim &lhs, const Dim &rhs);
Dim operator/(const Dim &lhs, const Dim &rhs);
Dim operator%(const Dim &lhs, const Dim &rhs);
Dim ceil_div(const Dim &lhs, const Dim &rhs);
Dim min(const Dim &lhs, const Dim &rhs);
Dim max(const Dim &lhs, const Dim &rhs);

} // namespace kiln
