// check_flags: declare the rows of the table, and hand over what was written.
#include "check_flags.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

/// "run each launch in N interleavings (a whole number ...; default 3)"
static std::string help_of(const CheckOption &option) {
  if (option.kind == OptionKind::flag)
    return option.help;
  return fmt::format("{} ({}; default: {})", option.help, option.accepted,
                     option.fallback);
}

void CheckFlags::add_to(Command command, unsigned doors,
                        std::initializer_list<std::string_view> but_for) {
  for (const CheckOption &option : options_) {
    if (!(option.doors & doors) ||
        std::find(but_for.begin(), but_for.end(), option.name) != but_for.end())
      continue;
    Flag &flag = flags_.emplace_back();
    flag.option = &option;
    std::string name = fmt::format("--{}", option.name);
    if (option.kind == OptionKind::flag) {
      command.add_flag(name, flag.is_on, option.help);
      continue;
    }
    command.add_option(name, flag.texts, help_of(option))
        .one_value_each()
        .value_name(option.value);
    if (option.old_name)
      command
          .add_option(fmt::format("--{}", option.old_name), flag.old_texts,
                      fmt::format("the old name of {}", name))
          .one_value_each()
          .hidden();
  }
}

void CheckFlags::give(const std::string &name, const std::string &text) {
  auto option = std::find_if(
      options_.begin(), options_.end(),
      [&](const CheckOption &one) { return one.name == name; });
  if (option == options_.end())
    throw InternalError(fmt::format("there is no option {}", name));
  Flag &flag = flags_.emplace_back();
  flag.option = &*option;
  flag.texts = {text};
}

std::vector<std::string> CheckFlags::Flag::given() const {
  if (option->kind == OptionKind::flag)
    return is_on ? std::vector<std::string>{"on"} : std::vector<std::string>{};
  std::vector<std::string> all = old_texts;
  all.insert(all.end(), texts.begin(), texts.end());
  return all;
}

CheckSettings CheckFlags::settings() const {
  CheckSettings settings;
  for (const Flag &flag : flags_) {
    for (const std::string &text : flag.old_texts)
      set_option(settings, *flag.option,
                 fmt::format("--{}", flag.option->old_name), text);
    for (const std::string &text : flag.texts)
      set_option(settings, *flag.option,
                 fmt::format("--{}", flag.option->name), text);
    if (flag.is_on)
      set_option(settings, *flag.option, flag.option->name, "on");
  }
  settings.interleavings.list(); // throws where there are not so many
  return settings;
}

/// What a program in another folder understands.
static std::string value_of(const CheckOption &option,
                            const std::vector<std::string> &given) {
  if (option.kind == OptionKind::list)
    return fmt::format("{}", fmt::join(given, ","));
  if (option.kind == OptionKind::path && !given.back().empty() &&
      given.back() != "-")
    return std::filesystem::absolute(given.back());
  return given.back();
}

std::vector<std::pair<std::string, std::string>>
CheckFlags::variables() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Flag &flag : flags_)
    if (std::vector<std::string> given = flag.given(); !given.empty())
      all.emplace_back(variable_name(*flag.option),
                       value_of(*flag.option, given));
  return all;
}

} // namespace kiln::cli
