// Needs: instructions held against the table.
#include "isa/Needs.h"

#include "isa/PtxVersion.h"
#include "support/Error.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <unordered_map>

namespace kiln::isa {

namespace {
/// A target that will do, and since when.
struct Choice {
  Target target;
  int version;
};

/// A row, read.
struct Need {
  const NeedsRow *row;
  std::vector<std::vector<std::string_view>> words; ///< one of each, in order
  std::vector<std::string_view> excluded;
  std::vector<Choice> choices; ///< empty: any target

  bool matches(const Spelled &instruction) const;
  /// The oldest version that will do on a target; nothing where none does.
  std::optional<int> version(const Target &target) const;
};

using Table = std::unordered_map<std::string_view, std::vector<Need>>;
} // namespace

static std::vector<std::string_view> split(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    std::size_t end = std::min(text.find(mark), text.size());
    if (end > 0)
      parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

static bool contains(const std::vector<std::string_view> &list,
                     std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

static Need readRow(const NeedsRow &row) {
  Need need{&row};
  for (std::string_view token : split(row.modifiers, ' '))
    if (token.starts_with('!'))
      need.excluded.push_back(token.substr(1));
    else
      need.words.push_back(split(token, '|'));
  for (std::string_view token : split(row.targets, ' ')) {
    std::size_t colon = std::min(token.find(':'), token.size());
    std::optional<Target> target = findTarget(token.substr(0, colon));
    if (!target)
      internalError("'{}' is no target", token);
    int version = row.version;
    if (colon < token.size())
      std::from_chars(token.data() + colon + 1, token.data() + token.size(),
                      version);
    need.choices.push_back({*target, version});
  }
  return need;
}

static const Table &table() {
  static const Table read = [] {
    Table table;
    for (const NeedsRow &row : needsTable())
      for (std::string_view opcode : split(row.opcodes, '|'))
        table[opcode].push_back(readRow(row));
    return table;
  }();
  return read;
}

bool Need::matches(const Spelled &instruction) const {
  if (row->operands && row->operands != instruction.operands)
    return false;
  std::size_t found = 0;
  for (std::string_view modifier : instruction.modifiers) {
    if (contains(excluded, modifier))
      return false;
    if (found < words.size() && contains(words[found], modifier))
      ++found;
  }
  return found == words.size();
}

std::optional<int> Need::version(const Target &target) const {
  if (choices.empty())
    return row->version;
  std::optional<int> oldest;
  for (const Choice &choice : choices)
    if (includes(target, choice.target))
      oldest = std::min(oldest.value_or(choice.version), choice.version);
  return oldest;
}

bool matches(const NeedsRow &row, const Spelled &instruction) {
  auto isOpcode = contains(split(row.opcodes, '|'), instruction.opcode);
  return (row.opcodes == "*" || isOpcode) && readRow(row).matches(instruction);
}

/// The rows that the instruction matches.
template <typename Body>
static void forEachNeed(const Spelled &instruction, const Body &body) {
  for (std::string_view opcode : {instruction.opcode, std::string_view("*")})
    if (auto found = table().find(opcode); found != table().end())
      for (const Need &need : found->second)
        if (need.matches(instruction))
          body(need);
}

/// "wgmma.mma_async", "cvt.e4m3x2": what of it the row is about.
static std::string nameOf(const Spelled &instruction, const Need &need) {
  std::string name(instruction.opcode);
  std::size_t found = 0;
  for (std::string_view modifier : instruction.modifiers)
    if (found < need.words.size() && contains(need.words[found], modifier)) {
      name += fmt::format(".{}", modifier);
      ++found;
    }
  if (need.words.empty() && !instruction.modifiers.empty())
    name += fmt::format(".{}", instruction.modifiers[0]);
  return name;
}

/// "sm_90 or newer"; "sm_100a, sm_100f, sm_103a or sm_103f".
static std::string namesOf(const std::vector<Choice> &choices) {
  const Target *plain = nullptr; // the oldest, which the others include
  for (const Choice &choice : choices)
    if (!choice.target.variant && (!plain || includes(*plain, choice.target)))
      plain = &choice.target;
  if (plain)
    return plain->name() + " or newer";
  std::vector<std::string> names;
  for (const Architecture &row : architectures())
    for (char variant : {'a', 'f'}) {
      Target target{&row, variant};
      auto isOne = [&](const Choice &choice) {
        return includes(target, choice.target);
      };
      if (target.since() && std::any_of(choices.begin(), choices.end(), isOne))
        names.push_back(target.name());
    }
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return text;
}

std::optional<Lack> findLack(const Spelled &instruction,
                             const std::optional<Target> &target, int version) {
  std::optional<Lack> lack;
  forEachNeed(instruction, [&](const Need &need) {
    std::optional<int> needed =
        target ? need.version(*target) : std::optional<int>(0);
    if (lack || (needed && (version == 0 || version >= *needed)))
      return;
    lack = Lack{nameOf(instruction, need), needed.value_or(0),
                needed ? "" : namesOf(need.choices)};
  });
  return lack;
}

std::string Lack::needed() const {
  if (version)
    return fmt::format(".version {} or newer", ptxVersionText(version));
  return ".target " + targets;
}

int neededVersion(const Spelled &instruction, const Target &target) {
  int needed = 0;
  forEachNeed(instruction, [&](const Need &need) {
    needed = std::max(needed, need.version(target).value_or(0));
  });
  return needed;
}

/// Take what is before the first of some marks, and the blanks behind it.
static std::string_view take(std::string_view &text, const char *marks) {
  std::size_t end = std::min(text.find_first_of(marks), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  std::size_t next = text.find_first_not_of(" \t");
  text.remove_prefix(std::min(next, text.size()));
  return word;
}

/// How many there are between commas, outside of all brackets.
static int countOperands(std::string_view text) {
  int depth = 0, count = !text.empty() && text[0] != ';';
  for (char c : text) {
    depth +=
        (c == '[' || c == '{' || c == '(') - (c == ']' || c == '}' || c == ')');
    count += c == ',' && depth == 0;
  }
  return count;
}

Spelled spell(std::string_view statement) {
  std::string_view word;
  // A guard, a label or a brace before the instruction.
  do
    word = take(statement, " \t;");
  while (!statement.empty() && statement[0] != ';' &&
         (word.empty() || word == "{" || word[0] == '@' || word.back() == ':'));
  Spelled spelled;
  std::vector<std::string_view> words = split(word, '.');
  if (words.empty())
    return spelled;
  spelled.opcode = words[0];
  spelled.modifiers.assign(words.begin() + 1, words.end());
  spelled.operands = countOperands(statement);
  return spelled;
}

std::vector<Spelled> spellAll(std::string_view text) {
  std::vector<Spelled> all;
  for (std::string_view line : split(text, '\n'))
    for (std::string_view statement : split(line, ';'))
      if (Spelled one = spell(statement); !one.opcode.empty())
        all.push_back(std::move(one));
  return all;
}

} // namespace kiln::isa
