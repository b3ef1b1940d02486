// MangledSize: the grammar of the Itanium C++ ABI (5.1), as far as names of
// kernels go, with sizes for values.
#include "support/text/MangledSize.h"

#include <algorithm>
#include <cctype>
#include <vector>

namespace kiln {

namespace {

using Size = std::uint64_t;

struct Unread {};

class MangledName {
public:
  explicit MangledName(std::string_view name) : text_(name) {}

  Size encoding() {
    if (!take("_Z"))
      throw Unread();
    Size size = nameOf();
    while (!text_.empty() && text_[0] != '.' && text_[0] != 'E')
      size = add(size, type());
    return size;
  }

private:
  /// Longer than anything; sums stay below the end of the type.
  static constexpr Size kHuge = Size(1) << 40;
  /// Nested deeper than anybody's.
  static constexpr int kDeepest = 256;
  /// A builtin type, "operator+", "(anonymous namespace)" and such words.
  static constexpr Size kWord = 24;
  static constexpr Size kStandardWord = 100; ///< "std::basic_string<char, ...>"

  static Size add(Size a, Size b) { return std::min(a + b, kHuge); }

  char peek() const { return text_.empty() ? 0 : text_[0]; }
  bool take(std::string_view word) {
    if (!text_.starts_with(word))
      return false;
    text_.remove_prefix(word.size());
    return true;
  }
  char next() {
    if (text_.empty())
      throw Unread();
    char c = text_[0];
    text_.remove_prefix(1);
    return c;
  }
  bool isDigit() const { return peek() >= '0' && peek() <= '9'; }
  Size keep(Size size) {
    candidates_.push_back(size);
    return size;
  }

  /// "S_", "S1Z_": what was read before; the numbers have base 36.
  std::size_t sequence() {
    if (take("_"))
      return 0;
    std::size_t number = 0;
    for (char c = next(); c != '_'; c = next()) {
      bool isNumber = c >= '0' && c <= '9';
      if ((!isNumber && !(c >= 'A' && c <= 'Z')) || number > text_.size() * 36)
        throw Unread();
      number = number * 36 + static_cast<std::size_t>(isNumber ? c - '0'
                                                               : c - 'A' + 10);
    }
    return number + 1;
  }

  /// Behind its S. `isStandard`: it is a word that is no part of the name.
  Size substitution(bool &isStandard) {
    isStandard = std::islower(static_cast<unsigned char>(peek()));
    if (isStandard) {
      next();
      return kStandardWord;
    }
    std::size_t index = sequence();
    if (index >= candidates_.size())
      throw Unread();
    return candidates_[index];
  }

  Size sourceName() {
    Size length = 0;
    while (isDigit()) {
      length = length * 10 + static_cast<Size>(next() - '0');
      if (length > text_.size())
        throw Unread();
    }
    if (length > text_.size())
      throw Unread();
    text_.remove_prefix(length);
    return std::max(length, kWord);
  }

  /// A name without what it is in: of a thing, an operator, a constructor, a
  /// lambda.
  Size unqualified() {
    take("L"); // of one file
    Size size = 0;
    if (isDigit())
      size = sourceName();
    else if (take("Ul"))
      size = lambda();
    else if (take("Ut"))
      size = kWord + numbered();
    else if (peek() == 'C' || peek() == 'D') {
      next();
      next();
      size = lastName_;
    } else if (take("cv"))
      size = type();
    else if (std::islower(static_cast<unsigned char>(peek()))) {
      next();
      next();
      size = kWord;
    } else
      throw Unread();
    lastName_ = size;
    while (take("B")) // an ABI tag
      size = add(size, sourceName());
    return add(size, 2);
  }
  Size numbered() {
    while (isDigit())
      next();
    if (!take("_"))
      throw Unread();
    return kWord;
  }
  Size lambda() {
    Size size = kWord;
    while (!take("E"))
      size = add(size, type());
    return add(size, numbered());
  }

  Size templateArguments() {
    Size size = 2;
    while (!take("E"))
      size = add(size, add(argument(), 2));
    return size;
  }
  Size argument() {
    Size size = 0;
    if (take("J") || take("I"))
      size = templateArguments();
    else if (take("L"))
      size = literal();
    else if (peek() == 'X')
      throw Unread();
    else
      size = type();
    largestArgument_ = std::max(largestArgument_, size);
    return size;
  }
  Size literal() {
    if (text_.starts_with("_Z")) {
      Size size = encoding();
      if (!take("E"))
        throw Unread();
      return size;
    }
    Size size = type();
    while (!take("E")) {
      next();
      ++size;
    }
    return add(size, 4);
  }

  Size nested() {
    while (peek() == 'r' || peek() == 'V' || peek() == 'K' || peek() == 'R' ||
           peek() == 'O')
      next();
    Size size = 0;
    bool isKept = true; ///< what is read so far can be referred to
    while (!take("E")) {
      if (!isKept)
        keep(size);
      isKept = false;
      if (take("I"))
        size = add(size, templateArguments());
      else if (peek() == 'S') {
        next();
        if (peek() == 't' && size == 0) {
          next();
          size = kWord;
          isKept = true;
          continue;
        }
        bool isStandard = false;
        size = add(size, substitution(isStandard));
        isKept = true;
      } else if (peek() == 'T')
        size = add(size, parameter());
      else
        size = add(size, unqualified());
    }
    return size;
  }

  Size local() {
    Size size = encodingInside();
    if (!take("E"))
      throw Unread();
    if (take("s"))
      size = add(size, kWord);
    else if (take("d"))
      throw Unread();
    else
      size = add(size, nameOf());
    if (take("_") && !isDigit())
      take("_");
    while (isDigit())
      next();
    take("_");
    return size;
  }
  Size encodingInside() {
    Size size = nameOf();
    while (peek() != 'E' && peek() != 0)
      size = add(size, type());
    return size;
  }

  Size nameOf() {
    Deeper deeper(*this);
    if (take("N"))
      return nested();
    if (take("Z"))
      return local();
    Size size = 0;
    bool isCandidate = true;
    if (peek() == 'S' && !text_.starts_with("St")) {
      next();
      bool isStandard = false;
      size = substitution(isStandard);
      isCandidate = false;
    } else {
      size = take("St") ? kWord : 0;
      size = add(size, unqualified());
    }
    if (!take("I"))
      return size;
    if (isCandidate)
      keep(size);
    return add(size, templateArguments());
  }

  Size parameter() {
    next(); // T
    sequence();
    return std::max(largestArgument_, kWord);
  }

  Size type() {
    Deeper deeper(*this);
    char c = peek();
    if (c == 'r' || c == 'V' || c == 'K') {
      while (peek() == 'r' || peek() == 'V' || peek() == 'K')
        next();
      return keep(add(type(), kWord));
    }
    if (c == 'P' || c == 'R' || c == 'O' || c == 'C' || c == 'G') {
      next();
      return keep(add(type(), 10));
    }
    if (c == 'T') {
      Size size = keep(parameter());
      return take("I") ? keep(add(size, templateArguments())) : size;
    }
    if (c == 'S' && !text_.starts_with("St"))
      return substituted();
    if (isDigit() || c == 'N' || c == 'Z' || c == 'S')
      return keep(nameOf());
    return builtOf(next());
  }

  Size substituted() {
    next();
    bool isStandard = false;
    Size size = substitution(isStandard);
    return take("I") ? keep(add(size, templateArguments())) : size;
  }

  /// Types that begin with their own letter.
  Size builtOf(char c) {
    if (c == 'F') {
      take("Y");
      Size size = kWord;
      while (!take("E"))
        size = add(size, add(type(), 2));
      return keep(size);
    }
    if (c == 'A') {
      Size size = kWord;
      for (char digit = next(); digit != '_'; digit = next())
        if (digit < '0' || digit > '9')
          throw Unread();
      return keep(add(size, type()));
    }
    if (c == 'M') {
      Size size = type();
      return keep(add(size, type()));
    }
    if (c == 'u')
      return keep(sourceName());
    if (c == 'D') {
      char kind = next();
      if (kind == 'p')
        return keep(add(type(), kWord));
      if (kind == 'F') { // _Float16
        while (isDigit())
          next();
        if (!take("_") && !take("b"))
          throw Unread();
        return kWord;
      }
      if (kind != 'n' && kind != 'h' && kind != 's' && kind != 'i' &&
          kind != 'u' && kind != 'a')
        throw Unread();
      return kWord;
    }
    if (!std::islower(static_cast<unsigned char>(c)))
      throw Unread();
    return kWord;
  }

  struct Deeper {
    explicit Deeper(MangledName &name) : name(name) {
      if (++name.depth_ > kDeepest)
        throw Unread();
    }
    ~Deeper() { --name.depth_; }
    MangledName &name;
  };

  std::string_view text_;
  std::vector<Size> candidates_;
  Size largestArgument_ = 0, lastName_ = kWord;
  int depth_ = 0;
};

} // namespace

std::optional<std::uint64_t> demangledSize(std::string_view name) {
  try {
    return MangledName(name).encoding();
  } catch (const Unread &) {
    return std::nullopt;
  }
}

} // namespace kiln
