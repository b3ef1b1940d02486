// OptionText: values of options as people write them, and where they write them.
#include "kiln/check/options.h"
#include "support/Error.h"
#include "support/Knobs.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/ranges.h>
#include <limits>

namespace kiln {

void OptionText::refuse() const {
  userError("{} is '{}'; it takes {}", spelled, text, accepted);
}

std::uint64_t OptionText::whole(std::uint64_t least, std::uint64_t most) const {
  std::uint64_t number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      number < least || number > most)
    refuse();
  return number;
}

double OptionText::not_negative() const {
  double number = 0;
  auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() ||
      !(number >= 0) || !std::isfinite(number))
    refuse();
  return number;
}

std::uint64_t OptionText::bytes() const {
  std::uint64_t number = 0;
  const char *last = text.data() + text.size();
  auto [end, error] = std::from_chars(text.data(), last, number);
  if (error != std::errc() || last - end > 1)
    refuse();
  int shift = 0;
  if (end != last) {
    constexpr std::string_view kUnits = "KMG";
    std::size_t unit = kUnits.find(*end);
    if (unit == std::string_view::npos)
      refuse();
    shift = 10 * (static_cast<int>(unit) + 1);
  }
  if (number > std::numeric_limits<std::uint64_t>::max() >> shift)
    refuse();
  return number << shift;
}

bool OptionText::on_off() const {
  if (std::optional<bool> isOn = parseSwitch(text))
    return *isOn;
  refuse();
}

std::string OptionText::word() const {
  if (std::find(words.begin(), words.end(), text) == words.end())
    refuse();
  return std::string(text);
}

/// The name with other letters between its words.
static std::string spell(const char *name, char dash) {
  std::string text = name;
  std::replace(text.begin(), text.end(), '-', dash);
  return text;
}

std::string key_name(const CheckOption &option) {
  return spell(option.name, '_');
}

/// "KILN_TIME_LIMIT" of "time-limit".
static std::string variableOf(const char *name) {
  std::string text = "KILN_" + spell(name, '_');
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string variable_name(const CheckOption &option) {
  return variableOf(option.name);
}

void set_option(CheckSettings &settings, const CheckOption &option,
                std::string_view spelled, std::string_view text) {
  option.set(settings, {spelled, text, option.accepted, option.words});
}

/// The words between commas; empty ones are none.
template <typename Body>
static void forEachWord(std::string_view text, const Body &body) {
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty())
      body(word);
  }
}

void set_value(CheckSettings &settings, const CheckOption &option,
               std::string_view spelled, std::string_view text) {
  if (option.kind != OptionKind::list)
    return set_option(settings, option, spelled, text);
  forEachWord(text, [&](std::string_view word) {
    set_option(settings, option, spelled, word);
  });
}

/// The option of that key, old names too.
static const CheckOption &find(std::string_view key,
                               std::span<const CheckOption> options) {
  std::vector<std::string> keys;
  for (const CheckOption &option : options) {
    keys.push_back(key_name(option));
    if (key == keys.back() ||
        (option.old_name && key == spell(option.old_name, '_')))
      return option;
  }
  userError("'{}' is not an option; use one of {}", key, fmt::join(keys, ", "));
}

void set_options(CheckSettings &settings, std::string_view text,
                 std::span<const CheckOption> options) {
  forEachWord(text, [&](std::string_view word) {
    std::size_t equals = word.find('=');
    if (equals == std::string_view::npos)
      userError("'{}' is not an option; write key=value", word);
    std::string_view key = word.substr(0, equals);
    set_option(settings, find(key, options), key, word.substr(equals + 1));
  });
}

void set_from_environment(CheckSettings &settings, unsigned doors,
                          const ReadVariable &read,
                          std::span<const CheckOption> options) {
  for (const CheckOption &option : options) {
    if (!(option.doors & doors))
      continue;
    std::string variable = variable_name(option);
    std::optional<std::string> text = read(variable);
    if (!text && option.old_name) {
      variable = variableOf(option.old_name);
      text = read(variable);
    }
    if (text)
      set_value(settings, option, variable, *text);
  }
}

std::string options_page(std::span<const CheckOption> options) {
  std::string text = "| option | in the environment | takes | default | what it "
                     "does |\n|---|---|---|---|---|\n";
  for (const CheckOption &option : options)
    text += fmt::format("| `--{}{}{}` | `{}` | {} | {} | {} |\n", option.name,
                        *option.value ? " " : "", option.value,
                        variable_name(option), option.accepted, option.fallback,
                        option.help);
  return text;
}

} // namespace kiln
