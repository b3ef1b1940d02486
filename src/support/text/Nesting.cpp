// Nesting: how deep the brackets of a text go, without a parser.
//
// Strings and comments do not count. Angle brackets are counted apart, because
// MLIR has `->` and `>=` too: a '>' too many must not hide the others.
//
// MLIR's parser recurses over the operators of an affine expression as well,
// `(d0 + d0 + ...)`, so those of one pair of brackets count like a level each.
//
// An alias of MLIR, `#a1 = [#a0, #a0]`, stands for a text: how deep that is
// counts where the alias is used, and how long it is counts as often.
#include "kiln/base/text.h"
#include "support/Error.h"

#include <algorithm>
#include <cctype>
#include <unordered_map>
#include <utility>
#include <vector>

namespace kiln {

static constexpr std::size_t kMaxJsonDepth = 64;
static constexpr std::size_t kMaxMlirDepth = 128;
static constexpr std::size_t kMaxWritten = std::size_t(1) << 24;

namespace {

/// The aliases of a text, and what they stand for.
class Aliases {
public:
  struct Extent {
    std::size_t depth = 0, characters = 0;
  };

  /// What a name stands for so far; null: it is not an alias.
  const Extent *find(std::string_view name) const {
    auto found = known_.find(name);
    return found == known_.end() ? nullptr : &found->second;
  }
  /// From here on the text is what `name` stands for.
  void begin(std::string_view name, std::size_t at) {
    end(at);
    open_ = true;
    name_ = name;
    extent_ = {};
    begin_ = at;
  }
  void end(std::size_t at) {
    if (!std::exchange(open_, false))
      return;
    extent_.characters += at - begin_;
    known_.emplace(name_, extent_);
  }
  void deepen(std::size_t depth) {
    extent_.depth = std::max(extent_.depth, depth);
  }
  /// An alias is used. Returns the length of all that were, written out.
  std::size_t use(const Extent &alias) {
    extent_.characters += alias.characters;
    return written_ += alias.characters;
  }

private:
  std::unordered_map<std::string_view, Extent> known_;
  bool open_ = false;     ///< in a definition
  std::string_view name_; ///< of it, with the # or the !
  Extent extent_;
  std::size_t begin_ = 0, written_ = 0;
};

class NestingScan {
public:
  NestingScan(std::string_view text, TextFormat format,
              const std::string &origin)
      : text_(text), isMlir_(format == TextFormat::mlir), origin_(origin),
        limit_(isMlir_ ? kMaxMlirDepth : kMaxJsonDepth) {}

  void check() {
    for (; at_ < text_.size(); ++at_) {
      char c = text_[at_];
      bool isSpace = c == ' ' || c == '\t' || c == '\r' || c == '\n';
      bool isComment = isMlir_ && c == '/' && ahead() == '/';
      if (isMlir_ && !isSpace && !isComment)
        stepToken(c);
      step();
    }
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

  /// Where the definition of an alias begins and ends.
  void stepToken(char c) {
    std::string_view alias = std::exchange(alias_, {});
    char last = std::exchange(last_, c);
    bool isFirst = std::exchange(lineOfLast_, line_) != line_;
    if (depth() > 0)
      return;
    bool isOperation =
        std::isalpha(static_cast<unsigned char>(c)) || c == '"' || c == '%';
    if (c == '=' && !alias.empty())
      aliases_.begin(alias, at_);
    else if (isFirst && isOperation && last != '=' && last != ':' &&
             last != '-')
      aliases_.end(at_);
  }

  /// The name of an alias, or of something of a dialect.
  void stepName() {
    auto isInName = [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) || c == '$' ||
             c == '.' || c == '_' || c == '-';
    };
    std::size_t begin = at_;
    while (isInName(ahead()))
      ++at_;
    alias_ = text_.substr(begin, at_ + 1 - begin);
    const Aliases::Extent *alias = aliases_.find(alias_);
    if (!alias)
      return;
    refuseDeep(alias->depth);
    if (aliases_.use(*alias) > kMaxWritten)
      userErrorAt(SourceLine(origin_, line_),
                  "written out, the aliases that are used up to here have more "
                  "than {} characters; Kiln reads at most {}",
                  kMaxWritten, kMaxWritten);
  }

  void stepMlir(char c) {
    bool isArrow = c == '-' && ahead() == '>';
    if (isArrow || (c == '>' && ahead() == '='))
      ++at_;
    else if (c == '#' || c == '!')
      stepName();
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

  std::size_t depth() const { return levels_.size() + angles_; }

  /// With `more` levels of an alias that is used here.
  void refuseDeep(std::size_t more = 0) {
    aliases_.deepen(depth() + more);
    if (depth() + more > limit_)
      userErrorAt(SourceLine(origin_, line_),
                  "brackets are nested {} levels deep here{}; Kiln reads at "
                  "most {} levels",
                  depth() + more,
                  more ? fmt::format(", {} of them in {}", more, alias_) : "",
                  limit_);
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

  Aliases aliases_;
  std::string_view alias_;  ///< the name that was read last, if nothing else
  char last_ = '\0';        ///< the character before, spaces left out
  unsigned lineOfLast_ = 0; ///< its line
};

} // namespace

void check_nesting(std::string_view text, TextFormat format,
                   const std::string &origin) {
  NestingScan(text, format, origin).check();
}

} // namespace kiln
