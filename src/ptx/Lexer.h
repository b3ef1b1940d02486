// Lexer: PTX text as tokens, and the errors that quote it.
//
// The text is cut into tokens at once: a token is a view of the text and its
// line, so a module costs a few bytes per character however it is written.
// Modifiers keep their dot and their colons: ".shared::cta" is one token.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::ptx {

struct Token {
  enum class Kind : std::uint8_t {
    name,        ///< foo, %r1, $L__BB0_2, _
    dotWord,     ///< .f32, .shared::cta, .2d
    integer,     ///< 12, 0x1F, 017, 0b11, 12U
    real,        ///< 0f3F800000, 0d..., 1.5e3
    string,      ///< "text", with its quotes
    punctuation, ///< one character, or << >> <= >= == != && ||
    end,
  };
  Kind kind = Kind::end;
  int line = 0; ///< from 1
  std::string_view text;

  bool is(std::string_view what) const { return text == what; }
  bool isName() const { return kind == Kind::name; }
  bool isDotWord() const { return kind == Kind::dotWord; }
};

/// The tokens of a text and a place among them. Views the text: it must outlive
/// the stream.
class TokenStream {
public:
  /// Throws UserError for what is no token and for a comment or a string that
  /// does not end.
  TokenStream(std::string_view text, std::string origin);

  /// The token ahead; at the end of the text, the end again and again.
  const Token &peek(std::size_t ahead = 0) const;
  Token next();
  /// Take the next token if it is `what`.
  bool accept(std::string_view what);
  /// Take `what`, or fail with "expected ';' after the instruction".
  Token expect(std::string_view what, std::string_view where);
  /// Take a name, or fail with "expected the name of a function".
  Token expectName(std::string_view ofWhat);
  /// Take a plain integer that fits an int.
  int expectInt(std::string_view what);

  std::size_t position() const { return position_; }
  /// The tokens from `first` to the one before the next, on one line.
  std::string textSince(std::size_t first) const;

  /// "file:line: expected what, found 'this': the line's text".
  [[noreturn]] void failExpected(std::string_view what) const;
  /// "file:line: message: the line's text".
  [[noreturn]] void fail(int line, std::string_view message) const;

  /// Bounds recursion: text nested deeper than this many levels is refused, so
  /// that no input can exhaust the stack.
  static constexpr int kMaxDepth = 200;
  class Nesting {
  public:
    explicit Nesting(TokenStream &stream);
    ~Nesting() { --stream_.depth_; }
    Nesting(const Nesting &) = delete;
    Nesting &operator=(const Nesting &) = delete;

  private:
    TokenStream &stream_;
  };

  /// Bytes that initialisers take so far, which are bounded (ParseVariables).
  std::uint64_t initialBytes = 0;

private:
  std::string_view text_;
  std::string origin_;
  std::vector<Token> tokens_;
  std::size_t position_ = 0;
  int depth_ = 0;

  void scan();
};

} // namespace kiln::ptx
