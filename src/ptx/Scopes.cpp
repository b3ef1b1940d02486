// Scopes: declare and look up names.
#include "ptx/Scopes.h"

#include "support/Error.h"

#include <algorithm>
#include <charconv>
#include <ranges>

namespace kiln::ptx {

/// Call `use(prefix, number)` for each way to read a name as a prefix and a
/// number without leading zeros: %r12 is %r + 12 and %r1 + 2. Stops when `use`
/// returns true.
template <typename Use>
static void forEachSplit(std::string_view name, Use use) {
  static constexpr std::size_t kMaxDigits = 9; // fits an int
  for (std::size_t digits = 1; digits <= kMaxDigits; ++digits) {
    if (digits >= name.size())
      return;
    std::size_t begin = name.size() - digits;
    if (name[begin] < '0' || name[begin] > '9')
      return;
    if (name[begin] == '0' && digits > 1)
      continue;
    int number = 0;
    std::from_chars(name.data() + begin, name.data() + name.size(), number);
    if (use(name.substr(0, begin), number))
      return;
  }
}

Scopes::Scopes(TokenStream &stream, Function &function, IsTaken isTaken)
    : stream_(stream), function_(function), isTaken_(std::move(isTaken)) {}

void Scopes::open(int line) {
  if (stack_.size() >= TokenStream::kMaxDepth)
    stream_.fail(line, fmt::format("nested deeper than {} levels",
                                   TokenStream::kMaxDepth));
  int id = static_cast<int>(parents_.size());
  parents_.push_back(stack_.empty() ? -1 : current());
  stack_.push_back({id, line, {}, {}, {}});
}

void Scopes::close() { stack_.pop_back(); }

Scopes::Entity &Scopes::declare(const Token &name) {
  auto [place, isNew] = stack_.back().names.try_emplace(name.text);
  if (!isNew)
    stream_.fail(name.line,
                 fmt::format("'{}' is declared twice in one scope, first in "
                             "line {}",
                             name.text, place->second.line));
  place->second.line = name.line;
  return place->second;
}

int Scopes::addRegister(std::string_view name, ScalarType type, int width) {
  int first = static_cast<int>(function_.registers.size());
  if (width == 1)
    function_.registers.push_back({std::string(name), type});
  for (int i = 0; i < width && width > 1; ++i)
    function_.registers.push_back({fmt::format("{}.{}", name, "xyzw"[i]), type});
  return first;
}

void Scopes::declareRegister(const Token &name, ScalarType type, int width) {
  Scope &scope = stack_.back();
  forEachSplit(name.text, [&](std::string_view prefix, int number) {
    auto range = scope.ranges.find(prefix);
    if (range != scope.ranges.end() && number < range->second.count)
      stream_.fail(name.line,
                   fmt::format("'{}' is declared twice in one scope, first as "
                               "one of '{}<{}>' in line {}",
                               name.text, prefix, range->second.count,
                               range->second.line));
    auto [place, isNew] = scope.smallest.try_emplace(prefix, number);
    place->second = std::min(place->second, number);
    return false;
  });
  Entity &entity = declare(name);
  entity.width = width;
  entity.reg = addRegister(name.text, type, width);
}

void Scopes::declareRegisters(const Token &prefix, int count, ScalarType type,
                              int width) {
  Scope &scope = stack_.back();
  auto [place, isNew] =
      scope.ranges.try_emplace(prefix.text,
                               Range{count, type, prefix.line, width});
  auto single = scope.smallest.find(prefix.text);
  bool isOverlap = single != scope.smallest.end() && single->second < count;
  if (!isNew || isOverlap)
    stream_.fail(prefix.line,
                 fmt::format("registers of '{}<{}>' are declared twice in one "
                             "scope",
                             prefix.text, count));
}

void Scopes::declareParameter(const Token &name) {
  declare(name).variable = name.text;
  uses_[std::string(name.text)] = 1;
}

std::string Scopes::declareVariable(const Token &name) {
  Entity &entity = declare(name);
  std::string own(name.text);
  int &uses = uses_[own];
  if (uses == 0 && isTaken_(own))
    uses = 1;
  if (uses > 0)
    own += fmt::format("@{}", uses);
  ++uses;
  entity.variable = own;
  return own;
}

void Scopes::declareLabel(const Token &name, int target,
                          const std::string &table) {
  bool isNew =
      labels_.try_emplace({current(), name.text}, target, table).second;
  if (!isNew)
    stream_.fail(
        name.line,
        fmt::format("the label '{}' is defined twice in one scope", name.text));
}

std::string Scopes::uniqueTable(std::string_view name) {
  std::string own(name);
  int uses = tableUses_[own]++;
  return uses == 0 ? own : fmt::format("{}@{}", own, uses);
}

int Scopes::findInRanges(Scope &scope, std::string_view name) {
  int found = -1;
  if (scope.ranges.empty())
    return found;
  forEachSplit(name, [&](std::string_view prefix, int number) {
    auto range = scope.ranges.find(prefix);
    if (range == scope.ranges.end() || number >= range->second.count)
      return false;
    const Range &of = range->second;
    found = addRegister(name, of.type, of.width);
    scope.names[name] = {found, "", of.line, of.width};
    return true;
  });
  return found;
}

Scopes::Found Scopes::find(std::string_view name) {
  for (Scope &scope : std::views::reverse(stack_)) {
    auto entity = scope.names.find(name);
    if (entity == scope.names.end()) {
      if (findInRanges(scope, name) < 0)
        continue;
      entity = scope.names.find(name);
    }
    if (entity->second.reg >= 0)
      return {entity->second.reg, nullptr, entity->second.width};
    return {-1, &entity->second.variable};
  }
  return {};
}

const Scopes::Label *Scopes::findLabel(int scope, std::string_view name) const {
  for (; scope >= 0; scope = parents_[scope]) {
    auto label = labels_.find({scope, name});
    if (label != labels_.end())
      return &label->second;
  }
  return nullptr;
}

} // namespace kiln::ptx
