// ParseVariables: declarations of memory, with their initial bytes.
#include "ptx/ParseVariables.h"

#include "ptx/Constant.h"
#include "support/Error.h"

#include <algorithm>
#include <bit>

namespace kiln::ptx {

/// No variable is larger: sums of sizes and offsets then never overflow.
static constexpr std::uint64_t kMaxBytes = std::uint64_t(1) << 48;
/// Nor are the initial bytes of all variables, which `{ {1}, {1} }` could make
/// much larger than their text.
static constexpr std::uint64_t kMaxInitialBytes = std::uint64_t(64) << 20;

StateSpace parseStateSpace(std::string_view dotWord) {
  if (dotWord == ".global")
    return StateSpace::global;
  if (dotWord == ".const")
    return StateSpace::constant;
  if (dotWord == ".shared")
    return StateSpace::shared;
  if (dotWord == ".local")
    return StateSpace::local;
  if (dotWord == ".param")
    return StateSpace::param;
  return StateSpace::none;
}

ScalarType expectType(TokenStream &stream) {
  ScalarType type = ScalarType::b8;
  const Token &token = stream.peek();
  if (!token.isDotWord() ||
      !parseScalarType(std::string(token.text.substr(1)), type))
    stream.failExpected("a type such as .b32");
  stream.next();
  return type;
}

bool skipAttribute(TokenStream &stream) {
  bool isManaged = false;
  stream.expect("(", "after .attribute");
  for (int depth = 1; depth > 0;) {
    if (stream.peek().kind == Token::Kind::end)
      stream.failExpected("')' after the attribute");
    std::string_view text = stream.next().text;
    depth += text == "(" ? 1 : text == ")" ? -1 : 0;
    isManaged |= text == ".managed";
  }
  return isManaged;
}

/// Take `.align n`'s n.
static int parseAlignment(TokenStream &stream) {
  int line = stream.peek().line;
  int align = stream.expectInt("the alignment in bytes");
  if (align <= 0 || !std::has_single_bit(static_cast<unsigned>(align)))
    stream.fail(line,
                fmt::format("an alignment is a power of two, not {}", align));
  return align;
}

/// The 4 of ".v4"; 1 for other words.
static int vectorLength(std::string_view dotWord) {
  if (dotWord == ".v2")
    return 2;
  if (dotWord == ".v4")
    return 4;
  return dotWord == ".v8" ? 8 : 1;
}

VariableHead parseVariableHead(TokenStream &stream, StateSpace space) {
  VariableHead head;
  head.variable.space = space;
  int align = 0;
  while (true) {
    if (stream.accept(".align")) {
      align = parseAlignment(stream);
    } else if (stream.accept(".attribute")) {
      head.variable.isManaged |= skipAttribute(stream);
    } else if (vectorLength(stream.peek().text) > 1) {
      head.vectorLength = vectorLength(stream.next().text);
    } else {
      break;
    }
  }
  head.variable.type = expectType(stream);
  int natural = sizeBytes(head.variable.type) * head.vectorLength;
  head.variable.align = align > 0 ? align : natural;
  return head;
}

namespace {
/// Fills a variable's initial bytes from `{ {1, 2}, {3} }`.
class InitialiserParser {
public:
  InitialiserParser(TokenStream &stream, Variable &variable,
                    const std::vector<std::uint64_t> &dimensions)
      : stream_(stream), variable_(variable), dimensions_(dimensions),
        strides_(dimensions.size()) {
    std::uint64_t bytes = sizeBytes(variable.type);
    for (std::size_t level = dimensions.size(); level-- > 0;) {
      strides_[level] = bytes;
      bytes *= std::max<std::uint64_t>(dimensions[level], 1);
    }
  }

  /// Parse one value or one list of values; how many there were.
  std::uint64_t parse(std::size_t level = 0, std::uint64_t offset = 0) {
    TokenStream::Nesting nesting(stream_);
    if (level == dimensions_.size()) {
      parseValue(offset);
      return 1;
    }
    stream_.expect("{", "before a list of values");
    std::uint64_t count = 0;
    while (!stream_.peek().is("}")) {
      if (dimensions_[level] != 0 && count == dimensions_[level])
        stream_.fail(stream_.peek().line,
                     fmt::format("'{}' has more values than the {} it can hold",
                                 variable_.name, dimensions_[level]));
      parse(level + 1, offset + count * strides_[level]);
      ++count;
      if (!stream_.accept(","))
        break;
    }
    stream_.expect("}", "after a list of values");
    return count;
  }

private:
  TokenStream &stream_;
  Variable &variable_;
  const std::vector<std::uint64_t> &dimensions_;
  std::vector<std::uint64_t> strides_;

  void parseValue(std::uint64_t offset) {
    const Token &token = stream_.peek();
    bool isMask = token.kind == Token::Kind::integer && stream_.peek(1).is("(");
    if (isMask)
      return parseMask(offset);
    if (token.isName() && !token.is("WARP_SZ")) {
      if (sizeBytes(variable_.type) > 8)
        stream_.fail(token.line,
                     fmt::format("an address cannot initialise '{}', whose "
                                 "elements have {} bytes",
                                 variable_.name, sizeBytes(variable_.type)));
      return addRelocation(offset, sizeBytes(variable_.type), 0);
    }
    int line = token.line;
    store(offset, bitsOf(parseConstant(stream_), line));
  }

  /// 0xFF00(symbol): one byte of its address.
  void parseMask(std::uint64_t offset) {
    int line = stream_.peek().line;
    Token token = stream_.next();
    std::uint64_t mask = 0xFF;
    int shift = 0;
    while (shift < 64 && token.text != fmt::format("0x{:X}", mask << shift) &&
           token.text != fmt::format("0x{:x}", mask << shift))
      shift += 8;
    if (shift == 64)
      stream_.fail(line, fmt::format("a mask of an address is 0xFF, 0xFF00 and "
                                     "so on, not '{}'",
                                     token.text));
    stream_.expect("(", "after the mask of an address");
    addRelocation(offset, 1, shift);
    stream_.expect(")", "after the masked address");
  }

  void addRelocation(std::uint64_t offset, int bytes, int shift) {
    bool isGeneric = stream_.peek().is("generic") && stream_.peek(1).is("(");
    if (isGeneric) {
      stream_.next();
      stream_.next();
    }
    Token symbol = stream_.expectName("a variable or a function");
    if (isGeneric)
      stream_.expect(")", "after generic(symbol");
    std::int64_t addend = parseOffset(stream_);
    variable_.relocations.push_back(
        {offset, std::string(symbol.text), addend, isGeneric, bytes, shift});
    store(offset, 0);
  }

  /// The bits of a constant as the variable's type holds it.
  std::uint64_t bitsOf(const Constant &value, int line) {
    bool isFloat =
        variable_.type == ScalarType::f32 || variable_.type == ScalarType::f64;
    if (!value.isReal && !isFloat)
      return value.bits;
    if (sizeBytes(variable_.type) == 8)
      return std::bit_cast<std::uint64_t>(value.real());
    if (sizeBytes(variable_.type) != 4)
      stream_.fail(line,
                   fmt::format("a real number cannot initialise '{}', "
                               "whose elements have {} bytes",
                               variable_.name, sizeBytes(variable_.type)));
    if (value.isSingle) // not by way of a double, which would quiet a NaN
      return value.bits;
    return std::bit_cast<std::uint32_t>(static_cast<float>(value.real()));
  }

  void store(std::uint64_t offset, std::uint64_t bits) {
    std::uint64_t size = sizeBytes(variable_.type);
    std::uint64_t before = variable_.init.size();
    std::uint64_t after = std::max(before, offset + size);
    if (after - before > kMaxInitialBytes - stream_.initialBytes)
      stream_.fail(stream_.peek().line,
                   fmt::format("with the initialiser of '{}' those of the "
                               "module span more than {} bytes",
                               variable_.name, kMaxInitialBytes));
    stream_.initialBytes += after - before;
    variable_.init.resize(after);
    for (std::uint64_t byte = 0; byte < std::min<std::uint64_t>(size, 8);
         ++byte)
      variable_.init[offset + byte] = bits >> (8 * byte);
  }
};
} // namespace

/// Parse `[4][]`: 0 stands for a dimension without a size.
static std::vector<std::uint64_t> parseDimensions(TokenStream &stream) {
  std::vector<std::uint64_t> dimensions;
  while (stream.accept("[")) {
    int line = stream.peek().line;
    std::int64_t size = 0;
    if (!stream.peek().is("]"))
      size = parseIntegerConstant(stream);
    if (size < 0)
      stream.fail(line, fmt::format("an array cannot have {} elements", size));
    stream.expect("]", "after the size of an array");
    if (size == 0 && !dimensions.empty())
      stream.fail(line, "only the first dimension of an array may be empty");
    dimensions.push_back(size);
  }
  return dimensions;
}

/// The size of `count` times `bytes`, if a variable may have it.
static std::uint64_t multiplied(const TokenStream &stream, const Token &name,
                                std::uint64_t bytes, std::uint64_t count) {
  if (count != 0 && bytes > kMaxBytes / count)
    stream.fail(name.line, fmt::format("'{}' is larger than {} bytes",
                                       name.text, kMaxBytes));
  return bytes * count;
}

Variable parseDeclarator(TokenStream &stream, const VariableHead &head) {
  Variable variable = head.variable;
  Token name = stream.expectName("a variable");
  variable.name = name.text;
  variable.line = name.line;
  std::vector<std::uint64_t> dimensions = parseDimensions(stream);
  if (head.vectorLength > 1)
    dimensions.push_back(head.vectorLength);
  std::uint64_t rowBytes = sizeBytes(variable.type);
  for (std::size_t level = 1; level < dimensions.size(); ++level)
    rowBytes = multiplied(stream, name, rowBytes, dimensions[level]);
  std::uint64_t rows = dimensions.empty() ? 1 : dimensions[0];
  variable.bytes = multiplied(stream, name, rowBytes, rows);
  if (!stream.accept("="))
    return variable;
  std::uint64_t count = InitialiserParser(stream, variable, dimensions).parse();
  if (variable.bytes == 0)
    variable.bytes = count * rowBytes;
  return variable;
}

/// `.ptr .global .align 1`: what a pointer parameter points to.
static void skipPointee(TokenStream &stream) {
  if (!stream.accept(".ptr"))
    return;
  if (parseStateSpace(stream.peek().text) != StateSpace::none)
    stream.next();
  if (stream.accept(".align"))
    parseAlignment(stream);
}

std::vector<Variable> parseParameters(TokenStream &stream) {
  std::vector<Variable> parameters;
  stream.expect("(", "before parameters");
  while (!stream.peek().is(")")) {
    StateSpace space = StateSpace::none;
    if (stream.accept(".param"))
      space = StateSpace::param;
    else if (!stream.accept(".reg"))
      stream.failExpected("'.param', '.reg' or ')'");
    VariableHead head = parseVariableHead(stream, space);
    skipPointee(stream);
    parameters.push_back(parseDeclarator(stream, head));
    if (!stream.accept(","))
      break;
  }
  stream.expect(")", "after the parameters");
  return parameters;
}

} // namespace kiln::ptx
