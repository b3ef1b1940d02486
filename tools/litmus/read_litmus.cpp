// read_litmus: the text of a litmus test (docs/litmus.md).
#include "litmus_test.h"

#include "support/Error.h"
#include <kiln/base/file.h>

#include <algorithm>
#include <charconv>
#include <sstream>

namespace kiln::cli {

static constexpr int kMaxCtas = 8, kMaxWarps = 16;
static constexpr std::uint32_t kMaxVariableBytes = 16384;

const char *name(LitmusExpectation expectation) {
  static constexpr const char *kNames[] = {"allowed", "forbidden", "undefined"};
  return kNames[static_cast<int>(expectation)];
}

namespace {

/// The lines of a file, and what is wrong with one.
class Reader {
public:
  Reader(std::string_view text, std::string file) : file_(std::move(file)) {
    std::istringstream lines{std::string(text)};
    for (std::string line; std::getline(lines, line);) {
      if (std::size_t comment = line.find("//"); comment != line.npos)
        line.resize(comment);
      lines_.push_back(line);
    }
  }

  LitmusTest read();

private:
  template <typename... Arguments>
  [[noreturn]] void fail(fmt::format_string<Arguments...> text,
                         Arguments &&...arguments) const {
    std::string message =
        fmt::format(text, std::forward<Arguments>(arguments)...);
    if (!number_) // the whole file
      throw UserError(file_ + ": " + message);
    throw UserError(SourceLine(file_, static_cast<unsigned>(number_)),
                    std::move(message));
  }
  std::uint32_t number(const std::string &word, std::uint32_t least,
                       std::uint32_t most, const char *what) const;
  void read_header(const std::string &key, std::istringstream &words);
  void read_variable(LitmusTest::Variable::Kind kind,
                     std::istringstream &words);
  void read_thread(const std::string &name, std::istringstream &words);
  void read_condition(const std::string &text);
  int observed(const std::string &word);
  void check();

  std::string file_;
  std::vector<std::string> lines_;
  int number_ = 0;
  LitmusTest test_;
  bool has_expectation_ = false;
};

/// A condition: terms with ~, /\ and \/, the first binding most.
class ConditionReader {
public:
  using Term = LitmusTest::Term;
  ConditionReader(const std::string &text) : text_(text) {}

  /// False where the text is none; `rest` says from where on.
  template <typename Observe> bool read(Observe &&observe) {
    return either(observe) && (skip(), at_ == text_.size());
  }
  std::vector<Term> terms;
  std::string rest() const { return text_.substr(at_); }

private:
  void skip() {
    while (at_ < text_.size() &&
           std::isspace(static_cast<unsigned char>(text_[at_])))
      ++at_;
  }
  bool take(std::string_view word) {
    skip();
    if (std::string_view(text_).substr(at_, word.size()) != word)
      return false;
    at_ += word.size();
    return true;
  }
  template <typename Observe> bool either(Observe &observe) {
    if (!both(observe))
      return false;
    while (take("\\/")) {
      if (!both(observe))
        return false;
      terms.push_back({Term::Kind::either});
    }
    return true;
  }
  template <typename Observe> bool both(Observe &observe) {
    if (!single(observe))
      return false;
    while (take("/\\")) {
      if (!single(observe))
        return false;
      terms.push_back({Term::Kind::both});
    }
    return true;
  }
  template <typename Observe> bool single(Observe &observe) {
    if (++depth_ > 64)
      return false;
    bool is_fine = false;
    if (take("~")) {
      is_fine = single(observe);
      terms.push_back({Term::Kind::negation});
    } else if (take("(")) {
      is_fine = either(observe) && take(")");
    } else {
      is_fine = comparison(observe);
    }
    --depth_;
    return is_fine;
  }
  template <typename Observe> bool comparison(Observe &observe) {
    skip();
    std::size_t end = text_.find_first_of(" =!)", at_);
    if (end == text_.npos || end == at_)
      return false;
    std::string word = text_.substr(at_, end - at_);
    at_ = end;
    bool is_equal = take("==");
    if (!is_equal && !take("!="))
      return false;
    skip();
    std::uint32_t value = 0;
    bool is_hex = take("0x");
    auto [last, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), value,
                        is_hex ? 16 : 10);
    if (error != std::errc())
      return false;
    at_ = static_cast<std::size_t>(last - text_.data());
    terms.push_back({is_equal ? Term::Kind::equal : Term::Kind::different,
                     observe(word), value});
    return true;
  }

  std::string text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

} // namespace

std::uint32_t Reader::number(const std::string &word, std::uint32_t least,
                             std::uint32_t most, const char *what) const {
  std::uint32_t value = 0;
  bool is_hex = word.starts_with("0x");
  const char *first = word.data() + (is_hex ? 2 : 0);
  auto [last, error] = std::from_chars(first, word.data() + word.size(), value,
                                       is_hex ? 16 : 10);
  if (error != std::errc() || last != word.data() + word.size() ||
      value < least || value > most)
    fail("'{}' is not a valid {}; expected a number from {} to {}", word, what,
         least, most);
  return value;
}

/// Everything behind the words that were read, without blanks around it.
static std::string rest_of(std::istringstream &words) {
  std::string rest;
  std::getline(words, rest);
  std::size_t first = rest.find_first_not_of(" \t\r");
  if (first == rest.npos)
    return "";
  return rest.substr(first, rest.find_last_not_of(" \t\r") + 1 - first);
}

/// r0 to r7, d0 to d7, p0 to p7, lead, and what a kernel has for itself.
static bool is_register(std::string_view name) {
  bool is_numbered = name.size() == 2 && name[1] >= '0' && name[1] <= '7';
  return name == "lead" || name[0] == '_' ||
         (is_numbered && (name[0] == 'r' || name[0] == 'd' || name[0] == 'p'));
}

void Reader::read_variable(LitmusTest::Variable::Kind kind,
                           std::istringstream &words) {
  LitmusTest::Variable variable{.kind = kind};
  std::string word, value;
  words >> variable.name >> word;
  if (variable.name.empty() ||
      !std::all_of(variable.name.begin(), variable.name.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
      }))
    fail("a variable needs a name of letters and digits, not '{}'",
         variable.name);
  if (is_register(variable.name))
    fail("{} is a register of every thread; give the variable another name",
         variable.name);
  for (const LitmusTest::Variable &other : test_.variables)
    if (other.name == variable.name)
      fail("there is a variable {} already", variable.name);
  if (kind == LitmusTest::Variable::Kind::mbarrier) {
    variable.bytes = 8;
    variable.value =
        number(word.empty() ? "1" : word, 1, 1048575, "number of arrivals");
    test_.variables.push_back(variable);
    return;
  }
  if (!word.empty() && word != "=") {
    variable.bytes = number(word, 4, kMaxVariableBytes, "size in bytes");
    if (variable.bytes % 4)
      fail("{} bytes are not whole words; a size is a multiple of 4",
           variable.bytes);
    words >> word;
  }
  if (word == "=" && words >> value)
    variable.value = number(value, 0, 0xffffffff, "value");
  test_.variables.push_back(variable);
}

void Reader::read_thread(const std::string &name, std::istringstream &words) {
  LitmusTest::Thread thread{.name = name,
                            .warp = static_cast<int>(test_.threads.size()),
                            .line = number_};
  if (name != fmt::format("P{}", test_.threads.size()))
    fail("threads are called P0, P1, ... in their order; expected P{}, not {}",
         test_.threads.size(), name);
  for (std::string word, value; words >> word;) {
    if (word == "all")
      thread.is_whole_warp = true;
    else if (word == "cta" && words >> value)
      thread.cta = static_cast<int>(number(value, 0, kMaxCtas - 1, "CTA"));
    else if (word == "warp" && words >> value)
      thread.warp = static_cast<int>(number(value, 0, kMaxWarps - 1, "warp"));
    else
      fail("'{}' says nothing of a thread; expected cta N, warp N or all",
           word);
  }
  for (const LitmusTest::Thread &other : test_.threads)
    if (other.cta == thread.cta && other.warp == thread.warp)
      fail("{} is in warp {} of CTA {}, where {} is", name, thread.warp,
           thread.cta, other.name);
  test_.ctas = std::max(test_.ctas, thread.cta + 1);
  test_.threads.push_back(thread);
}

int Reader::observed(const std::string &word) {
  LitmusTest::Observed what{.name = word};
  if (std::size_t colon = word.find(':'); colon != word.npos) {
    std::string thread = word.substr(0, colon);
    what.name = word.substr(colon + 1);
    for (std::size_t i = 0; i < test_.threads.size(); ++i)
      if (test_.threads[i].name == thread)
        what.thread = static_cast<int>(i);
    if (what.thread < 0)
      fail("the condition names {}, and there is no such thread", thread);
    if (what.name.size() != 2 || what.name[0] != 'r' || what.name[1] < '0' ||
        what.name[1] > '7')
      fail("the condition names {}; the registers that it can see are r0 to r7",
           word);
  } else if (std::none_of(test_.variables.begin(), test_.variables.end(),
                          [&](const LitmusTest::Variable &variable) {
                            return variable.name == word &&
                                   variable.kind !=
                                       LitmusTest::Variable::Kind::mbarrier;
                          })) {
    fail("the condition names {}; expected a variable of global or shared "
         "memory, or a register as P0:r0",
         word);
  }
  auto found = std::find(test_.observed.begin(), test_.observed.end(), what);
  if (found == test_.observed.end()) {
    test_.observed.push_back(what);
    return static_cast<int>(test_.observed.size()) - 1;
  }
  return static_cast<int>(found - test_.observed.begin());
}

void Reader::read_condition(const std::string &text) {
  ConditionReader reader(text);
  if (!reader.read([&](const std::string &word) { return observed(word); }))
    fail("the condition cannot be read from '{}' on; expected comparisons as "
         "P0:r0 == 1 or x != 2, with ~, /\\, \\/ and parentheses",
         reader.rest());
  test_.condition = std::move(reader.terms);
}

void Reader::read_header(const std::string &key, std::istringstream &words) {
  using Kind = LitmusTest::Variable::Kind;
  if (key == "target") {
    words >> test_.target;
  } else if (key == "rule") {
    test_.rule += (test_.rule.empty() ? "" : " ") + rest_of(words);
  } else if (key == "observed") {
    test_.observed_on.push_back(rest_of(words));
  } else if (key == "expect") {
    std::string word;
    words >> word;
    for (auto expectation :
         {LitmusExpectation::allowed, LitmusExpectation::forbidden,
          LitmusExpectation::undefined})
      if (word == cli::name(expectation)) {
        test_.expectation = expectation;
        has_expectation_ = true;
        return;
      }
    fail("'{}' is not a valid expectation; expected allowed, forbidden or "
         "undefined",
         word);
  } else if (key == "finding") {
    for (std::string id; words >> id;)
      test_.findings.push_back(id);
  } else if (key == "cluster") {
    test_.is_cluster = true;
  } else if (key == "global") {
    read_variable(Kind::global, words);
  } else if (key == "shared") {
    read_variable(Kind::shared, words);
  } else if (key == "mbarrier") {
    read_variable(Kind::mbarrier, words);
  } else {
    fail("'{}' begins no line of a litmus test; expected litmus, target, rule, "
         "expect, finding, observed, cluster, global, shared, mbarrier, a "
         "thread (P0) or exists",
         key);
  }
}

void Reader::check() {
  number_ = 0;
  if (test_.name.empty())
    fail("the file is no litmus test: its first line says `litmus NAME`");
  if (test_.threads.empty())
    fail("the test has no thread");
  if (test_.condition.empty())
    fail("the test has no condition; expected a line `exists ...`");
  if (!has_expectation_)
    fail("the test has no line `expect allowed`, `expect forbidden` or `expect "
         "undefined`");
  if (test_.expectation == LitmusExpectation::undefined &&
      test_.findings.empty())
    fail("a test whose outcome is undefined names the findings of which the "
         "simulator reports one: `finding race`");
}

LitmusTest Reader::read() {
  test_.file = file_;
  LitmusTest::Thread *thread = nullptr;
  for (const std::string &line : lines_) {
    ++number_;
    std::istringstream words(line);
    std::string key;
    bool is_code = thread && !line.empty() &&
                   std::isspace(static_cast<unsigned char>(line[0]));
    if (!(words >> key))
      continue;
    if (is_code) {
      thread->code += line + "\n";
    } else if (number_ > 0 && test_.name.empty()) {
      if (key != "litmus" || (test_.name = rest_of(words)).empty())
        fail("the first line says `litmus NAME`, not '{}'", line);
    } else if (key == "exists") {
      thread = nullptr;
      read_condition(rest_of(words));
    } else if (key[0] == 'P' && key.size() > 1 &&
               std::isdigit(static_cast<unsigned char>(key[1]))) {
      read_thread(key, words);
      thread = &test_.threads.back();
    } else {
      read_header(key, words);
    }
  }
  check();
  return std::move(test_);
}

LitmusTest LitmusTest::parse(std::string_view text, const std::string &file) {
  return Reader(text, file).read();
}

LitmusTest LitmusTest::load(const std::string &path) {
  return parse(read_file(path), path);
}

bool LitmusTest::holds(const std::vector<std::uint32_t> &values) const {
  std::vector<bool> stack;
  for (const Term &term : condition) {
    if (term.kind == Term::Kind::equal || term.kind == Term::Kind::different) {
      bool is_equal =
          values.at(static_cast<std::size_t>(term.observed)) == term.value;
      stack.push_back(is_equal == (term.kind == Term::Kind::equal));
      continue;
    }
    bool right = stack.back();
    if (term.kind == Term::Kind::negation) {
      stack.back() = !right;
      continue;
    }
    stack.pop_back();
    stack.back() = term.kind == Term::Kind::both ? right && stack.back()
                                                 : right || stack.back();
  }
  return stack.back();
}

std::string
LitmusTest::to_string(const std::vector<std::uint32_t> &values) const {
  std::string text;
  for (std::size_t i = 0; i < observed.size(); ++i) {
    const Observed &what = observed[i];
    text += fmt::format(
        "{}{}{}={}", i ? " " : "",
        what.thread < 0
            ? ""
            : threads[static_cast<std::size_t>(what.thread)].name + ":",
        what.name, values.at(i));
  }
  return text;
}

int LitmusTest::warps() const {
  int last = 0;
  for (const Thread &thread : threads)
    last = std::max(last, thread.warp);
  return last + 1;
}

std::uint32_t LitmusTest::global_bytes() const {
  std::uint32_t bytes = 0;
  for (const Variable &variable : variables)
    if (variable.kind == Variable::Kind::global)
      bytes += (variable.bytes + 127) / 128 * 128;
  return std::max(bytes, 128u);
}

} // namespace kiln::cli
