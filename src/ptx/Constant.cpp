// Constant: evaluate constant expressions while they are parsed.
#include "ptx/Constant.h"

#include "support/Error.h"

#include <array>
#include <bit>
#include <charconv>
#include <limits>

namespace kiln::ptx {

static Constant parseConditional(TokenStream &stream);

double Constant::real() const {
  if (isSingle)
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  if (isReal)
    return std::bit_cast<double>(bits);
  return isUnsigned ? static_cast<double>(bits)
                    : static_cast<double>(static_cast<std::int64_t>(bits));
}

static Constant integer(std::uint64_t bits, bool isUnsigned) {
  return {false, false, isUnsigned, bits};
}

static Constant ofDouble(double value) {
  return {true, false, false, std::bit_cast<std::uint64_t>(value)};
}

/// The value of an integer token: decimal, 0x, 0b or, after a 0, octal.
static Constant parseInteger(TokenStream &stream) {
  Token token = stream.next();
  std::string_view digits = token.text;
  bool isUnsigned = (digits.back() | 0x20) == 'u';
  if (isUnsigned)
    digits.remove_suffix(1);
  int base = 10;
  if (digits.size() > 1 && digits[0] == '0') {
    char kind = digits[1] | 0x20;
    base = kind == 'x' ? 16 : kind == 'b' ? 2 : 8;
    digits.remove_prefix(base == 8 ? 1 : 2);
  }
  std::uint64_t value = 0;
  auto [end, status] = std::from_chars(
      digits.data(), digits.data() + digits.size(), value, base);
  if (status == std::errc::result_out_of_range)
    stream.fail(token.line, fmt::format("the integer '{}' needs more than 64 "
                                        "bits",
                                        token.text.substr(0, 40)));
  if (status != std::errc() || end != digits.data() + digits.size())
    stream.fail(token.line,
                fmt::format("'{}' is not a valid octal number", token.text));
  bool isLarge = value > std::uint64_t(std::numeric_limits<int64_t>::max());
  return integer(value, isUnsigned || isLarge);
}

/// The value of a real token.
static Constant parseReal(TokenStream &stream) {
  std::string_view text = stream.next().text;
  char kind = text.size() > 1 && text[0] == '0' ? text[1] | 0x20 : '\0';
  const char *begin = text.data(), *end = begin + text.size();
  if (kind == 'f' || kind == 'd') {
    Constant result{true, kind == 'f', false, 0};
    std::from_chars(begin + 2, end, result.bits, 16);
    return result;
  }
  double value = 0;
  std::from_chars(begin, end, value);
  return ofDouble(value);
}

static Constant negate(Constant value) {
  if (value.isReal) {
    value.bits ^= std::uint64_t(1) << (value.isSingle ? 31 : 63);
    return value;
  }
  value.bits = 0 - value.bits;
  return value;
}

static bool isTrue(const Constant &value) {
  return value.isReal ? value.real() != 0 : value.bits != 0;
}

/// (.s64) or (.u64) and what it casts, or an expression in parentheses.
static Constant parseParenthesised(TokenStream &stream);

static Constant parseUnary(TokenStream &stream) {
  TokenStream::Nesting nesting(stream);
  const Token &token = stream.peek();
  if (token.kind == Token::Kind::integer)
    return parseInteger(stream);
  if (token.kind == Token::Kind::real)
    return parseReal(stream);
  if (token.is("WARP_SZ")) {
    stream.next();
    return integer(32, false);
  }
  if (token.is("("))
    return parseParenthesised(stream);
  if (stream.accept("+"))
    return parseUnary(stream);
  if (stream.accept("-"))
    return negate(parseUnary(stream));
  if (stream.accept("!"))
    return integer(isTrue(parseUnary(stream)) ? 0 : 1, false);
  if (!token.is("~"))
    stream.failExpected("a constant");
  int line = stream.next().line;
  Constant value = parseUnary(stream);
  if (value.isReal)
    stream.fail(line, "'~' takes an integer, this is a real number");
  value.bits = ~value.bits;
  return value;
}

static Constant parseParenthesised(TokenStream &stream) {
  stream.next();
  bool isUnsignedCast = stream.peek().is(".u64");
  if (isUnsignedCast || stream.peek().is(".s64")) {
    int line = stream.next().line;
    stream.expect(")", "after the type of a cast");
    Constant value = parseUnary(stream);
    if (value.isReal)
      stream.fail(line, "a cast takes an integer, this is a real number");
    value.isUnsigned = isUnsignedCast;
    return value;
  }
  Constant value = parseConditional(stream);
  stream.expect(")", "after the expression");
  return value;
}

/// How tightly a binary operator binds; 0: it is none.
static int precedence(const Token &token) {
  struct Level {
    std::string_view name;
    int level;
  };
  static constexpr std::array<Level, 18> kLevels = {{{"||", 1},
                                                     {"&&", 2},
                                                     {"|", 3},
                                                     {"^", 4},
                                                     {"&", 5},
                                                     {"==", 6},
                                                     {"!=", 6},
                                                     {"<", 7},
                                                     {">", 7},
                                                     {"<=", 7},
                                                     {">=", 7},
                                                     {"<<", 8},
                                                     {">>", 8},
                                                     {"+", 9},
                                                     {"-", 9},
                                                     {"*", 10},
                                                     {"/", 10},
                                                     {"%", 10}}};
  if (token.kind != Token::Kind::punctuation)
    return 0;
  for (const Level &entry : kLevels)
    if (token.is(entry.name))
      return entry.level;
  return 0;
}
static constexpr int kSumLevel = 9;
static constexpr int kProductLevel = 10;

/// a OP b for the comparisons; false where OP is none.
template <typename T>
static bool compare(std::string_view op, T a, T b, bool &result) {
  if (op == "==")
    return result = a == b, true;
  if (op == "!=")
    return result = a != b, true;
  if (op == "<")
    return result = a < b, true;
  if (op == ">")
    return result = a > b, true;
  if (op == "<=")
    return result = a <= b, true;
  if (op == ">=")
    return result = a >= b, true;
  return false;
}

static Constant applyReal(const TokenStream &stream, const Token &op, double a,
                          double b) {
  bool isTrue = false;
  if (compare(op.text, a, b, isTrue))
    return integer(isTrue, false);
  switch (op.text[0]) {
  case '+':
    return ofDouble(a + b);
  case '-':
    return ofDouble(a - b);
  case '*':
    return ofDouble(a * b);
  case '/':
    return ofDouble(a / b);
  default:
    stream.fail(
        op.line,
        fmt::format("'{}' takes integers, this is a real number", op.text));
  }
}

/// Shift as PTX does: by 64 or more everything is shifted out.
static std::uint64_t shift(bool isLeft, const Constant &a, std::uint64_t by) {
  if (isLeft)
    return by > 63 ? 0 : a.bits << by;
  if (a.isUnsigned)
    return by > 63 ? 0 : a.bits >> by;
  return static_cast<std::int64_t>(a.bits) >> (by > 63 ? 63 : by);
}

static std::uint64_t divide(const TokenStream &stream, const Token &op,
                            const Constant &a, const Constant &b) {
  if (b.bits == 0)
    stream.fail(op.line, fmt::format("'{}' by zero", op.text));
  bool isQuotient = op.is("/");
  if (a.isUnsigned || b.isUnsigned)
    return isQuotient ? a.bits / b.bits : a.bits % b.bits;
  auto left = static_cast<std::int64_t>(a.bits);
  auto right = static_cast<std::int64_t>(b.bits);
  if (right == -1) // the one quotient that could overflow
    return isQuotient ? 0 - a.bits : 0;
  return isQuotient ? left / right : left % right;
}

static Constant applyInteger(const TokenStream &stream, const Token &op,
                             const Constant &a, const Constant &b) {
  bool isUnsigned = a.isUnsigned || b.isUnsigned;
  bool isTrue = false;
  if (isUnsigned ? compare(op.text, a.bits, b.bits, isTrue)
                 : compare<std::int64_t>(op.text, a.bits, b.bits, isTrue))
    return integer(isTrue, false);
  if (op.is("<<") || op.is(">>"))
    return integer(shift(op.is("<<"), a, b.bits), a.isUnsigned);
  switch (op.text[0]) {
  case '+':
    return integer(a.bits + b.bits, isUnsigned);
  case '-':
    return integer(a.bits - b.bits, isUnsigned);
  case '*':
    return integer(a.bits * b.bits, isUnsigned);
  case '&':
    return integer(a.bits & b.bits, isUnsigned);
  case '|':
    return integer(a.bits | b.bits, isUnsigned);
  case '^':
    return integer(a.bits ^ b.bits, isUnsigned);
  default:
    return integer(divide(stream, op, a, b), isUnsigned);
  }
}

/// Operators of at least this level, from left to right.
static Constant parseBinary(TokenStream &stream, int level) {
  Constant left = parseUnary(stream);
  while (true) {
    int found = precedence(stream.peek());
    if (found == 0 || found < level)
      return left;
    Token op = stream.next();
    Constant right = parseBinary(stream, found + 1);
    if (op.is("&&"))
      left = integer(isTrue(left) && isTrue(right), false);
    else if (op.is("||"))
      left = integer(isTrue(left) || isTrue(right), false);
    else if (left.isReal || right.isReal)
      left = applyReal(stream, op, left.real(), right.real());
    else
      left = applyInteger(stream, op, left, right);
  }
}

static Constant parseConditional(TokenStream &stream) {
  TokenStream::Nesting nesting(stream);
  Constant condition = parseBinary(stream, 1);
  if (!stream.accept("?"))
    return condition;
  Constant ifTrue = parseConditional(stream);
  stream.expect(":", "between the values of '?'");
  Constant ifFalse = parseConditional(stream);
  return isTrue(condition) ? ifTrue : ifFalse;
}

bool isConstantNext(const TokenStream &stream) {
  const Token &token = stream.peek();
  return token.kind == Token::Kind::integer ||
         token.kind == Token::Kind::real || token.is("(") || token.is("-") ||
         token.is("+") || token.is("~") || token.is("!");
}

Constant parseConstant(TokenStream &stream) { return parseConditional(stream); }

/// What must be an integer, at the line where it began.
static std::int64_t asInteger(const TokenStream &stream, int line,
                              const Constant &value) {
  if (value.isReal)
    stream.fail(line, "expected an integer, this is a real number");
  return static_cast<std::int64_t>(value.bits);
}

std::int64_t parseIntegerConstant(TokenStream &stream) {
  int line = stream.peek().line;
  return asInteger(stream, line, parseConstant(stream));
}

std::int64_t parseOffset(TokenStream &stream) {
  std::uint64_t offset = 0;
  while (precedence(stream.peek()) == kSumLevel) {
    Token sign = stream.next();
    std::uint64_t value =
        asInteger(stream, sign.line, parseBinary(stream, kProductLevel));
    offset += sign.is("+") ? value : 0 - value;
  }
  return static_cast<std::int64_t>(offset);
}

} // namespace kiln::ptx
