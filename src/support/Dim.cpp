// Dim: folding, evaluating, printing and parsing of problem dimensions.
//
// Both folding and evaluating go through `apply`, so that a constant kernel and
// the same kernel with runtime arguments cannot disagree about a number.
#include "kiln/base/dim.h"

#include "support/Error.h"

#include <array>
#include <charconv>
#include <numeric>
#include <optional>
#include <string_view>

namespace kiln {

/// Operations may nest so deep: every walk over a Dim is recursive, and a saved
/// kernel that somebody else wrote must not exhaust the stack.
static constexpr int kMaxDepth = 200;

/// In the order of `Dim::Op`, from `add` on.
static constexpr std::array<std::string_view, 8> kOpNames = {
    "add", "sub", "mul", "div", "ceil_div", "mod", "min", "max"};
static constexpr int kFirstOp = static_cast<int>(Dim::Op::add);

static std::string_view opName(Dim::Op op) {
  return kOpNames[static_cast<int>(op) - kFirstOp];
}

static std::optional<Dim::Op> opByName(std::string_view name) {
  for (std::size_t i = 0; i < kOpNames.size(); ++i)
    if (kOpNames[i] == name)
      return static_cast<Dim::Op>(kFirstOp + static_cast<int>(i));
  return std::nullopt;
}

static bool isLetter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static bool isIdentifier(std::string_view text) {
  if (text.empty() || !isLetter(text[0]))
    return false;
  for (char c : text)
    if (!isLetter(c) && !isDigit(c))
      return false;
  return true;
}

/// The operation on numbers. `describe` names the expression in errors; it is
/// called only then.
template <typename Describe>
static std::int64_t apply(Dim::Op op, std::int64_t lhs, std::int64_t rhs,
                          Describe describe) {
  auto overflow = [&]() {
    userError("{} does not fit 64 bits ({} and {}); dimensions must stay "
              "between -2^63 and 2^63 - 1",
              describe(), lhs, rhs);
  };
  std::int64_t result = 0;
  switch (op) {
  case Dim::Op::add:
    if (__builtin_add_overflow(lhs, rhs, &result))
      overflow();
    return result;
  case Dim::Op::sub:
    if (__builtin_sub_overflow(lhs, rhs, &result))
      overflow();
    return result;
  case Dim::Op::mul:
    if (__builtin_mul_overflow(lhs, rhs, &result))
      overflow();
    return result;
  case Dim::Op::min:
    return std::min(lhs, rhs);
  case Dim::Op::max:
    return std::max(lhs, rhs);
  default:
    break;
  }
  if (rhs == 0)
    userError("{} divides {} by zero; the divisor must not be 0", describe(),
              lhs);
  if (lhs == INT64_MIN && rhs == -1) {
    if (op == Dim::Op::mod)
      return 0;
    overflow();
  }
  std::int64_t quotient = lhs / rhs;
  std::int64_t remainder = lhs % rhs;
  bool isNegative = (lhs < 0) != (rhs < 0);
  if (op == Dim::Op::ceil_div)
    return quotient + (remainder != 0 && !isNegative);
  bool mustStepDown = remainder != 0 && isNegative;
  if (op == Dim::Op::div)
    return quotient - mustStepDown;
  return mustStepDown ? remainder + rhs : remainder;
}

Dim Dim::argument(std::string name) {
  if (!isIdentifier(name))
    userError("a dimension cannot be called \"{}\"; a name is letters, digits "
              "and _, and begins with no digit",
              name);
  Dim dim;
  dim.op_ = Op::argument;
  dim.name_ = std::move(name);
  return dim;
}

/// "op(lhs, rhs)"
static std::string describeBinary(Dim::Op op, const Dim &lhs, const Dim &rhs) {
  return fmt::format("{}({}, {})", opName(op), lhs.to_string(),
                     rhs.to_string());
}

/// The operand that the operation leaves as it is: x of x + 0 or x * 1.
static const Dim *findUnchanged(Dim::Op op, const Dim &lhs, const Dim &rhs) {
  auto is = [](const Dim &dim, std::int64_t value) {
    return dim.is_constant() && dim.constant() == value;
  };
  switch (op) {
  case Dim::Op::add:
    return is(rhs, 0) ? &lhs : is(lhs, 0) ? &rhs : nullptr;
  case Dim::Op::sub:
    return is(rhs, 0) ? &lhs : nullptr;
  case Dim::Op::mul:
    return is(rhs, 1) ? &lhs : is(lhs, 1) ? &rhs : nullptr;
  case Dim::Op::div:
  case Dim::Op::ceil_div:
    return is(rhs, 1) ? &lhs : nullptr;
  default:
    return nullptr;
  }
}

Dim Dim::binary(Op op, const Dim &lhs, const Dim &rhs) {
  if (op == Op::constant || op == Op::argument)
    internalError("a Dim was made of two operands and no operation");
  auto describe = [&] { return describeBinary(op, lhs, rhs); };
  if (lhs.is_constant() && rhs.is_constant())
    return apply(op, lhs.value_, rhs.value_, describe);
  bool divides = op == Op::div || op == Op::ceil_div || op == Op::mod;
  if (divides && rhs.is_constant() && rhs.value_ == 0)
    userError("{} divides by zero; the divisor must not be 0", describe());
  if (const Dim *unchanged = findUnchanged(op, lhs, rhs))
    return *unchanged;
  Dim dim;
  dim.op_ = op;
  dim.depth_ = std::max(lhs.depth_, rhs.depth_) + 1;
  if (dim.depth_ > kMaxDepth)
    userError("a dimension nests more than {} operations; compute part of it "
              "before the launch and pass it as an argument",
              kMaxDepth);
  dim.lhs_ = std::make_shared<const Dim>(lhs);
  dim.rhs_ = std::make_shared<const Dim>(rhs);
  return dim;
}

std::int64_t Dim::constant() const {
  if (!is_constant())
    userError("{} is known only at launch; a constant is needed here",
              to_string());
  return value_;
}

std::int64_t Dim::evaluate(
    const std::function<std::int64_t(const std::string &)> &lookup) const {
  if (op_ == Op::constant)
    return value_;
  if (op_ == Op::argument)
    return lookup(name_);
  return apply(op_, lhs_->evaluate(lookup), rhs_->evaluate(lookup),
               [&] { return to_string(); });
}

std::int64_t Dim::divisor() const {
  switch (op_) {
  case Op::constant:
    return value_ < 0 ? -value_ : value_;
  case Op::mul: {
    std::int64_t product = 0;
    bool isHuge =
        __builtin_mul_overflow(lhs_->divisor(), rhs_->divisor(), &product);
    return isHuge ? 1 : product;
  }
  case Op::argument:
  case Op::div:
  case Op::ceil_div:
    return 1;
  default: // sums, rests and choices of multiples
    return std::gcd(lhs_->divisor(), rhs_->divisor());
  }
}

std::string Dim::to_string() const {
  if (op_ == Op::constant)
    return std::to_string(value_);
  if (op_ == Op::argument)
    return name_;
  return describeBinary(op_, *lhs_, *rhs_);
}

bool Dim::operator==(const Dim &other) const {
  if (op_ != other.op_)
    return false;
  if (op_ == Op::constant)
    return value_ == other.value_;
  if (op_ == Op::argument)
    return name_ == other.name_;
  auto same = [](const std::shared_ptr<const Dim> &a,
                 const std::shared_ptr<const Dim> &b) {
    return a == b || *a == *b;
  };
  return same(lhs_, other.lhs_) && same(rhs_, other.rhs_);
}

namespace {

/// Recursive descent over
///     dim := integer | identifier | operation '(' dim ',' dim ')'
class DimParser {
public:
  explicit DimParser(std::string_view text) : text_(text) {}

  Dim parseAll() {
    Dim dim = parseDim(0);
    skipSpaces();
    if (position_ != text_.size())
      fail("the end");
    return dim;
  }

private:
  Dim parseDim(int depth) {
    if (depth > kMaxDepth)
      userError("a dimension nests more than {} operations", kMaxDepth);
    skipSpaces();
    if (!isAtEnd() && (isDigit(peek()) || peek() == '-'))
      return parseInteger();
    std::size_t start = position_;
    if (isAtEnd() || !isLetter(peek()))
      fail("an integer, a name or an operation");
    while (!isAtEnd() && (isLetter(peek()) || isDigit(peek())))
      ++position_;
    std::string_view name = text_.substr(start, position_ - start);
    skipSpaces();
    if (isAtEnd() || peek() != '(')
      return Dim::argument(std::string(name));
    std::optional<Dim::Op> op = opByName(name);
    if (!op) {
      position_ = start;
      fail("one of add, sub, mul, div, ceil_div, mod, min, max");
    }
    expect('(');
    Dim lhs = parseDim(depth + 1);
    expect(',');
    Dim rhs = parseDim(depth + 1);
    expect(')');
    return Dim::binary(*op, lhs, rhs);
  }

  Dim parseInteger() {
    std::int64_t value = 0;
    const char *begin = text_.data() + position_;
    auto [end, error] =
        std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc())
      fail("an integer of 64 bits");
    position_ += end - begin;
    return value;
  }

  void expect(char c) {
    skipSpaces();
    if (isAtEnd() || peek() != c)
      fail(fmt::format("'{}'", c));
    ++position_;
  }

  void skipSpaces() {
    while (!isAtEnd() && peek() == ' ')
      ++position_;
  }

  bool isAtEnd() const { return position_ == text_.size(); }
  char peek() const { return text_[position_]; }

  [[noreturn]] void fail(std::string_view wanted) const {
    userError("\"{}\" is not a valid dimension: {} is wanted at character {}",
              text_, wanted, position_ + 1);
  }

  std::string_view text_;
  std::size_t position_ = 0;
};

} // namespace

Dim Dim::parse(const std::string &text) { return DimParser(text).parseAll(); }

Dim operator+(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::add, lhs, rhs);
}

Dim operator-(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::sub, lhs, rhs);
}

Dim operator*(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::mul, lhs, rhs);
}

Dim operator/(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::div, lhs, rhs);
}

Dim operator%(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::mod, lhs, rhs);
}

Dim ceil_div(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::ceil_div, lhs, rhs);
}

Dim min(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::min, lhs, rhs);
}

Dim max(const Dim &lhs, const Dim &rhs) {
  return Dim::binary(Dim::Op::max, lhs, rhs);
}

} // namespace kiln
