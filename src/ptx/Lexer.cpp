// Lexer: cut PTX text into tokens.
#include "ptx/Lexer.h"

#include "support/Error.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace kiln::ptx {

static bool isDigit(char c) { return c >= '0' && c <= '9'; }

static bool isHexDigit(char c) {
  return isDigit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// May this begin a name?
static bool isNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == '$' || c == '%';
}

/// May this stand inside a name?
static bool isNamePart(char c) {
  return (isNameStart(c) && c != '%') || isDigit(c);
}

namespace {
/// Walks over the text; each take function returns one token's characters.
class Scanner {
public:
  Scanner(std::string_view text, const TokenStream &stream)
      : text_(text), stream_(stream) {}

  /// The next token. `isAfterValue` says that `%` may be the operator,
  /// `isAfterSign` that `.5` is a number and no modifier.
  Token take(bool isAfterValue, bool isAfterSign) {
    skipBlanks();
    begin_ = at_;
    if (at_ == text_.size())
      return token(Token::Kind::end);
    char c = text_[at_];
    if (isDigit(c) || (c == '.' && isAfterSign && isDigit(ahead(1))))
      return takeNumber();
    if (c == '%' && (isAfterValue || !isNamePart(ahead(1))))
      return take(Token::Kind::punctuation, 1);
    if (isNameStart(c))
      return takeName();
    if (c == '.' && isNamePart(ahead(1)))
      return takeDotWord();
    if (c == '"')
      return takeString();
    return takePunctuation();
  }

private:
  std::string_view text_;
  const TokenStream &stream_;
  std::size_t at_ = 0;
  std::size_t begin_ = 0;
  int line_ = 1;

  char ahead(std::size_t count) const {
    return at_ + count < text_.size() ? text_[at_ + count] : '\0';
  }

  Token token(Token::Kind kind) const {
    return {kind, line_, text_.substr(begin_, at_ - begin_)};
  }

  Token take(Token::Kind kind, std::size_t count) {
    at_ += count;
    return token(kind);
  }

  void skipBlanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (c == '\n')
        ++line_;
      if (c == ' ' || (c >= '\t' && c <= '\r'))
        ++at_;
      else if (c == '/' && ahead(1) == '/')
        at_ = std::min(text_.find('\n', at_), text_.size());
      else if (c == '/' && ahead(1) == '*')
        skipBlockComment();
      else
        return;
    }
  }

  void skipBlockComment() {
    std::size_t end = text_.find("*/", at_ + 2);
    if (end == std::string_view::npos)
      stream_.fail(line_, "the comment that begins here has no '*/'");
    line_ += std::count(text_.begin() + at_, text_.begin() + end, '\n');
    at_ = end + 2;
  }

  Token takeName() {
    ++at_;
    while (isNamePart(ahead(0)))
      ++at_;
    return token(Token::Kind::name);
  }

  Token takeDotWord() {
    ++at_;
    while (true) {
      while (isNamePart(ahead(0)))
        ++at_;
      if (ahead(0) != ':' || ahead(1) != ':' || !isNamePart(ahead(2)))
        return token(Token::Kind::dotWord);
      at_ += 2;
    }
  }

  Token takeString() {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n')
      end += text_[end] == '\\' ? 2 : 1;
    if (end >= text_.size() || text_[end] != '"')
      stream_.fail(line_, "the string that begins here has no closing '\"'");
    at_ = end + 1;
    return token(Token::Kind::string);
  }

  Token takePunctuation() {
    static constexpr std::array<std::string_view, 8> kPairs = {
        "<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
    std::string_view pair = text_.substr(at_, 2);
    if (std::find(kPairs.begin(), kPairs.end(), pair) != kPairs.end())
      return take(Token::Kind::punctuation, 2);
    static constexpr std::string_view kSingles = "{}[]()<>,;:=+-*/&|^~!?@";
    char c = text_[at_];
    if (kSingles.find(c) != std::string_view::npos)
      return take(Token::Kind::punctuation, 1);
    bool isPrintable = c > ' ' && c < 127;
    std::string shown =
        isPrintable ? std::string(1, c)
                    : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    stream_.fail(line_, fmt::format("PTX has no character '{}'", shown));
  }

  template <typename Predicate> std::size_t skip(Predicate isPart) {
    std::size_t first = at_;
    while (isPart(ahead(0)))
      ++at_;
    return at_ - first;
  }

  Token takeNumber() {
    char kind = ahead(0) == '0' ? ahead(1) | 0x20 : '\0';
    if (kind == 'f' || kind == 'd') {
      at_ += 2;
      bool isWhole = skip(isHexDigit) == (kind == 'f' ? 8U : 16U);
      return endNumber(Token::Kind::real, isWhole);
    }
    if (kind == 'x' || kind == 'b') {
      at_ += 2;
      bool isWhole =
          kind == 'x' ? skip(isHexDigit) > 0
                      : skip([](char c) { return c == '0' || c == '1'; }) > 0;
      return endInteger(isWhole);
    }
    skip(isDigit);
    // `2.` is one too; what begins like a name after the point is a modifier.
    auto isExponent = [&](std::size_t at) {
      bool isSigned = ahead(at + 1) == '+' || ahead(at + 1) == '-';
      return (ahead(at) | 0x20) == 'e' &&
             isDigit(ahead(at + (isSigned ? 2 : 1)));
    };
    bool isReal = ahead(0) == '.' &&
                  (isDigit(ahead(1)) || !isNamePart(ahead(1)) || isExponent(1));
    if (isReal) {
      ++at_;
      skip(isDigit);
    }
    if (isExponent(0)) {
      isReal = true;
      at_ += 2;
      skip(isDigit);
    }
    return isReal ? endNumber(Token::Kind::real, true) : endInteger(true);
  }

  Token endInteger(bool isWhole) {
    if ((ahead(0) | 0x20) == 'u')
      ++at_;
    return endNumber(Token::Kind::integer, isWhole);
  }

  Token endNumber(Token::Kind kind, bool isWhole) {
    if (isWhole && !isNamePart(ahead(0)))
      return token(kind);
    skip(isNamePart);
    stream_.fail(
        line_,
        fmt::format(
            "'{}' is not a valid number; PTX writes 12, 0x1F, 017, "
            "0b11, 12U, 1.5, 0f and 8 or 0d and 16 hex digits",
            text_.substr(begin_, std::min<std::size_t>(at_ - begin_, 40))));
  }
};
} // namespace

TokenStream::TokenStream(std::string_view text, std::string origin)
    : text_(text), origin_(std::move(origin)) {
  scan();
}

void TokenStream::scan() {
  Scanner scanner(text_, *this);
  bool isAfterValue = false, isAfterSign = false;
  do {
    tokens_.push_back(scanner.take(isAfterValue, isAfterSign));
    const Token &last = tokens_.back();
    isAfterSign = last.kind == Token::Kind::punctuation && !last.is(")");
    isAfterValue = last.kind == Token::Kind::integer || last.is(")");
  } while (tokens_.back().kind != Token::Kind::end);
}

const Token &TokenStream::peek(std::size_t ahead) const {
  return tokens_[std::min(position_ + ahead, tokens_.size() - 1)];
}

Token TokenStream::next() {
  const Token &token = peek();
  if (token.kind != Token::Kind::end)
    ++position_;
  return token;
}

bool TokenStream::accept(std::string_view what) {
  if (!peek().is(what))
    return false;
  next();
  return true;
}

Token TokenStream::expect(std::string_view what, std::string_view where) {
  if (!peek().is(what))
    failExpected(fmt::format("'{}' {}", what, where));
  return next();
}

Token TokenStream::expectName(std::string_view ofWhat) {
  if (!peek().isName())
    failExpected(fmt::format("the name of {}", ofWhat));
  return next();
}

int TokenStream::expectInt(std::string_view what) {
  std::string_view digits = peek().text;
  int value = 0;
  auto [end, status] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool isWhole = end == digits.data() + digits.size();
  if (peek().kind != Token::Kind::integer || status != std::errc() || !isWhole)
    failExpected(what);
  next();
  return value;
}

std::string TokenStream::textSince(std::size_t first) const {
  std::string line;
  const char *end = nullptr;
  for (std::size_t index = first; index < position_; ++index) {
    const std::string_view &text = tokens_[index].text;
    if (end && end != text.data())
      line += ' ';
    line += text;
    end = text.data() + text.size();
  }
  return line;
}

/// At most this much of a line or a token is quoted.
static constexpr std::size_t kMaxQuoted = 160;

static std::string quoted(std::string_view text) {
  std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos)
    return "";
  text = text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
  if (text.size() <= kMaxQuoted)
    return std::string(text);
  return std::string(text.substr(0, kMaxQuoted)) + "...";
}

void TokenStream::failExpected(std::string_view what) const {
  const Token &token = peek();
  bool isEnd = token.kind == Token::Kind::end;
  fail(token.line,
       isEnd
           ? fmt::format("expected {}, found the end of the text", what)
           : fmt::format("expected {}, found '{}'", what, quoted(token.text)));
}

void TokenStream::fail(int line, std::string_view message) const {
  std::string_view rest = text_;
  for (int number = 1; number < line; ++number)
    rest.remove_prefix(std::min(rest.find('\n') + 1, rest.size()));
  std::string text = quoted(rest.substr(0, rest.find('\n')));
  userErrorAt(SourceLine(origin_, line), "{}{}{}", message,
              text.empty() ? "" : ": ", text);
}

TokenStream::Nesting::Nesting(TokenStream &stream) : stream_(stream) {
  if (stream.depth_ >= kMaxDepth)
    stream.fail(stream.peek().line,
                fmt::format("nested deeper than {} levels", kMaxDepth));
  ++stream.depth_;
}

} // namespace kiln::ptx
