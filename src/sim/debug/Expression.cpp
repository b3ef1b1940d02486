// Expression: a parser by precedence, and an evaluator of its tree.
#include "sim/debug/Expression.h"
#include "support/Error.h"

#include <charconv>
#include <cmath>
#include <cstdlib>

namespace kiln::sim {

/// Deeper ones are nobody's question.
static constexpr int kMaxDepth = 64;
static constexpr std::size_t kMaxText = 4096;

struct Expression::Node {
  enum class Kind : std::uint8_t { number, reg, memory, symbol, unary, binary };
  Kind kind = Kind::number;
  DebugValue value = {};
  std::string name = {}; ///< of a register, a space, a symbol; an operator
  std::optional<Type> type = {};
  std::shared_ptr<const Node> left = {}, right = {};
};

using Node = Expression::Node;
using NodePointer = std::shared_ptr<const Node>;

DebugValue DebugValue::of(Type type, std::uint64_t bits) {
  if (is_float(type))
    return {true, 0, from_bits(type, bits)};
  int unused = 64 - std::max(1, size_bits(type));
  bits <<= unused;
  return {false,
          is_signed_integer(type) ? static_cast<std::int64_t>(bits) >> unused
                                  : static_cast<std::int64_t>(bits >> unused),
          0};
}

std::string DebugValue::text() const {
  return isReal ? fmt::format("{}", real) : fmt::format("{}", whole);
}

Type parseDebugType(std::string_view text) {
  std::string name(text);
  if (name.size() > 1 && (name[0] == 's' || name[0] == 'b') && name[1] >= '0' &&
      name[1] <= '9')
    name[0] = name[0] == 's' ? 'i' : 'u';
  return parse_type(name);
}

namespace {

struct Operator {
  std::string_view text;
  int precedence;
};
/// The longer ones first.
constexpr Operator kOperators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7},
    {"<<", 8}, {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},
    {">", 7},  {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};

bool isWordPart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' || c == '$';
}

class ExpressionParser {
public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  NodePointer parseAll() {
    NodePointer root = binary(0);
    if (skip(); at_ < text_.size())
      refuse("an operator or the end");
    return root;
  }

private:
  [[noreturn]] void refuse(const char *expected) const {
    userError("'{}' is no expression: at column {} {} is expected", text_,
              at_ + 1, expected);
  }
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t'))
      ++at_;
  }
  bool take(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c)
      return false;
    ++at_;
    return true;
  }
  void need(char c, const char *what) {
    if (!take(c))
      refuse(what);
  }
  std::string word(bool hasDots) {
    std::size_t begin = at_;
    while (at_ < text_.size() &&
           (isWordPart(text_[at_]) || (hasDots && text_[at_] == '.')))
      ++at_;
    return std::string(text_.substr(begin, at_ - begin));
  }
  const Operator *nextOperator() {
    skip();
    for (const Operator &one : kOperators)
      if (text_.substr(at_).starts_with(one.text))
        return &one;
    return nullptr;
  }
  NodePointer binary(int least) {
    NodePointer left = unary();
    for (;;) {
      const Operator *found = nextOperator();
      if (!found || found->precedence <= least)
        return left;
      at_ += found->text.size();
      Node node{.kind = Node::Kind::binary, .name = std::string(found->text)};
      node.left = left;
      node.right = binary(found->precedence);
      left = std::make_shared<const Node>(std::move(node));
    }
  }
  NodePointer unary() {
    if (++depth_ > kMaxDepth)
      refuse("less nesting");
    skip();
    char c = at_ < text_.size() ? text_[at_] : 0;
    NodePointer result;
    if (c == '-' || c == '!' || c == '~') {
      ++at_;
      Node node{.kind = Node::Kind::unary, .name = std::string(1, c)};
      node.left = unary();
      result = std::make_shared<const Node>(std::move(node));
    } else {
      result = primary(c);
    }
    --depth_;
    return result;
  }
  NodePointer primary(char c) {
    if (take('(')) {
      NodePointer inside = binary(0);
      need(')', "')'");
      return inside;
    }
    if (c == '%') {
      ++at_;
      Node node{.kind = Node::Kind::reg, .name = "%" + word(true)};
      if (node.name.size() < 2)
        refuse("the name of a register");
      node.type = type();
      return std::make_shared<const Node>(std::move(node));
    }
    if ((c >= '0' && c <= '9') || c == '.')
      return number();
    if (!isWordPart(c))
      refuse("a value");
    Node node{.kind = Node::Kind::symbol, .name = word(false)};
    if (!take('['))
      return std::make_shared<const Node>(std::move(node));
    node.kind = Node::Kind::memory;
    node.left = binary(0);
    need(']', "']'");
    node.type = type();
    return std::make_shared<const Node>(std::move(node));
  }
  std::optional<Type> type() {
    if (at_ >= text_.size() || text_[at_] != ':')
      return {};
    ++at_;
    return parseDebugType(word(false));
  }
  NodePointer number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    Node node;
    std::uint64_t whole = 0;
    bool isHex = text_.substr(at_).starts_with("0x");
    auto read = isHex ? std::from_chars(begin + 2, end, whole, 16)
                      : std::from_chars(begin, end, whole, 10);
    node.value.whole = static_cast<std::int64_t>(whole);
    bool isReal =
        !isHex && (read.ec != std::errc() ||
                   (read.ptr != end && (*read.ptr == '.' || *read.ptr == 'e')));
    if (isReal) {
      node.value.isReal = true;
      auto real = std::from_chars(begin, end, node.value.real);
      read.ec = real.ec;
      read.ptr = real.ptr;
    }
    if (read.ec != std::errc())
      refuse("a number of 64 bits");
    at_ = static_cast<std::size_t>(read.ptr - text_.data());
    return std::make_shared<const Node>(std::move(node));
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

DebugValue wholeOf(std::int64_t value) { return {false, value, 0}; }
DebugValue realOf(double value) { return {true, 0, value}; }

DebugValue ofReals(const std::string &name, double a, double b) {
  if (name == "+")
    return realOf(a + b);
  if (name == "-")
    return realOf(a - b);
  if (name == "*")
    return realOf(a * b);
  if (name == "/")
    return realOf(a / b);
  if (name == "==")
    return wholeOf(a == b);
  if (name == "!=")
    return wholeOf(a != b);
  if (name == "<")
    return wholeOf(a < b);
  if (name == ">")
    return wholeOf(a > b);
  if (name == "<=")
    return wholeOf(a <= b);
  if (name == ">=")
    return wholeOf(a >= b);
  userError("'{}' is for integers, not for {} and {}", name, a, b);
}

/// As the hardware computes: what does not fit wraps.
DebugValue ofWholes(const std::string &name, std::int64_t a, std::int64_t b) {
  auto x = static_cast<std::uint64_t>(a), y = static_cast<std::uint64_t>(b);
  auto wrapped = [](std::uint64_t bits) {
    return wholeOf(static_cast<std::int64_t>(bits));
  };
  if ((name == "/" || name == "%") && b == 0)
    userError("{} {} 0 has no value", a, name);
  if (name == "+")
    return wrapped(x + y);
  if (name == "-")
    return wrapped(x - y);
  if (name == "*")
    return wrapped(x * y);
  if (name == "/")
    return b == -1 ? wrapped(0 - x) : wholeOf(a / b);
  if (name == "%")
    return b == -1 ? wholeOf(0) : wholeOf(a % b);
  if (name == "<<")
    return wrapped(y < 64 ? x << y : 0);
  if (name == ">>")
    return wrapped(y < 64 ? x >> y : 0);
  if (name == "&")
    return wrapped(x & y);
  if (name == "|")
    return wrapped(x | y);
  if (name == "^")
    return wrapped(x ^ y);
  if (name == "==")
    return wholeOf(a == b);
  if (name == "!=")
    return wholeOf(a != b);
  if (name == "<")
    return wholeOf(a < b);
  if (name == ">")
    return wholeOf(a > b);
  if (name == "<=")
    return wholeOf(a <= b);
  return wholeOf(a >= b);
}

DebugValue evaluateUnary(const Node &node, const DebugValue &value) {
  if (node.name == "!")
    return wholeOf(!value.isTrue());
  if (node.name == "-")
    return value.isReal ? realOf(-value.real) : ofWholes("-", 0, value.whole);
  if (value.isReal)
    userError("'~' is for integers, not for {}", value.real);
  return wholeOf(~value.whole);
}

/// `isParameter`: it is an address of parameters.
DebugValue evaluateNode(const Node &node, ExpressionScope &scope,
                        bool isParameter) {
  switch (node.kind) {
  case Node::Kind::number:
    return node.value;
  case Node::Kind::reg:
    return scope.registerValue(node.name, node.type);
  case Node::Kind::symbol:
    return scope.symbol(node.name, isParameter);
  case Node::Kind::memory: {
    DebugValue address = evaluateNode(*node.left, scope, node.name == "param");
    if (address.isReal)
      userError("the address {} is no integer", address.real);
    return scope.memory(node.name, static_cast<std::uint64_t>(address.whole),
                        node.type.value_or(Type::u32));
  }
  case Node::Kind::unary:
    return evaluateUnary(node, evaluateNode(*node.left, scope, isParameter));
  case Node::Kind::binary:
    break;
  }
  DebugValue left = evaluateNode(*node.left, scope, isParameter);
  if (node.name == "&&" && !left.isTrue())
    return wholeOf(0);
  if (node.name == "||" && left.isTrue())
    return wholeOf(1);
  DebugValue right = evaluateNode(*node.right, scope, isParameter);
  if (node.name == "&&" || node.name == "||")
    return wholeOf(right.isTrue());
  return left.isReal || right.isReal
             ? ofReals(node.name, left.number(), right.number())
             : ofWholes(node.name, left.whole, right.whole);
}

} // namespace

Expression Expression::parse(std::string_view text) {
  if (text.size() > kMaxText)
    userError("an expression of {} characters is too long; use at most {}",
              text.size(), kMaxText);
  Expression expression;
  expression.text_ = text;
  expression.root_ = ExpressionParser(expression.text_).parseAll();
  return expression;
}

DebugValue Expression::evaluate(ExpressionScope &scope,
                                bool isParameter) const {
  return evaluateNode(*root_, scope, isParameter);
}

} // namespace kiln::sim
