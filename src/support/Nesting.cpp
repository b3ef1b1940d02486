// Nesting: how deep the brackets of a text go, without a parser.
//
// Strings and comments do not count. Angle brackets are counted apart, because
// MLIR has `->` and `>=` too: a '>' too many must not hide the others.
//
// MLIR's parser recurses over the operators of an affine expression as well,
// `(d0 + d0 + ...)`, so those of one pair of brackets count like a level each.
#include "kiln/text.h"
#include "support/Error.h"

#include <algorithm>
#include <vector>

namespace kiln {

static constexpr std::size_t kMaxJsonDepth = 64;
static constexpr std::size_t kMaxMlirDepth = 128;

namespace {

class NestingScan {
public:
  NestingScan(std::string_view text, TextFormat format,
              const std::string &origin)
      : text_(text), isMlir_(format == TextFormat::mlir), origin_(origin),
        limit_(isMlir_ ? kMaxMlirDepth : kMaxJsonDepth) {}

  void check() {
    for (; at_ < text_.size(); ++at_)
      step();
  }

private:
  /// A pair of brackets that is open, and the operators in it since a comma.
  struct Level {
    char open;
    std::size_t operators = 0;
  };

  void step() {
    char c = text_[at_];
    if (c == '\n')
      ++line_;
    else if (c == '"')
      skipString();
    else if (isMlir_ && c == '/' && ahead() == '/')
      at_ = std::min(text_.find('\n', at_), text_.size()) - 1;
    else if (c == '{' || c == '[' || (isMlir_ && c == '('))
      open(c);
    else if (c == '}' || c == ']' || (isMlir_ && c == ')'))
      close();
    else if (isMlir_)
      stepMlir(c);
  }

  void stepMlir(char c) {
    bool isArrow = c == '-' && ahead() == '>';
    if (isArrow || (c == '>' && ahead() == '='))
      ++at_;
    else if (c == '<')
      ++angles_, refuseDeep();
    else if (c == '>')
      angles_ -= angles_ > 0;
    else if (c == ',' && !levels_.empty())
      levels_.back().operators = 0;
    else if (isOperator(c))
      countOperator();
  }

  /// + - * and the first letter of mod, floordiv and ceildiv.
  bool isOperator(char c) const {
    if (c == '+' || c == '-' || c == '*')
      return true;
    if (at_ > 0 && text_[at_ - 1] != ' ' && text_[at_ - 1] != '\n')
      return false;
    std::string_view rest = text_.substr(at_);
    return rest.starts_with("mod ") || rest.starts_with("floordiv ") ||
           rest.starts_with("ceildiv ");
  }

  void countOperator() {
    bool isExpression = !levels_.empty() && levels_.back().open != '{';
    if (!isExpression || ++levels_.back().operators <= limit_)
      return;
    userErrorAt(SourceLine(origin_, line_),
                "an expression has more than {} operators; Kiln reads {} of "
                "them between two brackets",
                limit_, limit_);
  }

  void skipString() {
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      at_ += text_[at_] == '\\';
      if (at_ < text_.size() && text_[at_] == '\n')
        ++line_;
    }
  }

  void open(char c) {
    levels_.push_back({c});
    refuseDeep();
  }

  void close() {
    if (!levels_.empty())
      levels_.pop_back();
  }

  void refuseDeep() const {
    if (levels_.size() + angles_ > limit_)
      userErrorAt(SourceLine(origin_, line_),
                  "brackets are nested {} levels deep here; Kiln reads at "
                  "most {} levels",
                  levels_.size() + angles_, limit_);
  }

  char ahead() const { return at_ + 1 < text_.size() ? text_[at_ + 1] : '\0'; }

  std::string_view text_;
  bool isMlir_;
  const std::string &origin_;
  std::size_t limit_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
  std::vector<Level> levels_;
  std::size_t angles_ = 0;
};

} // namespace

void check_nesting(std::string_view text, TextFormat format,
                   const std::string &origin) {
  NestingScan(text, format, origin).check();
}

} // namespace kiln
