// check_flags: declare the rows of the table, and hand over what was written.
#include "check_flags.h"
#include "console/output_file.h"

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <fmt/ranges.h>

namespace kiln::cli {

/// "eager|lazy|random|all", or "N"
static std::string value_of_help(const CheckOption &option) {
  return option.words.empty() ? option.value
                              : fmt::format("{}", fmt::join(option.words, "|"));
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
    bool is_list = option.kind == OptionKind::list;
    auto add = [&](const std::string &spelled, auto &texts, auto &text,
                   const std::string &help) {
      return is_list ? command.add_option(spelled, texts, help).one_value_each()
                     : command.add_option(spelled, text, help);
    };
    add(name, flag.texts, flag.text,
        fmt::format("{}; default: {}", option.help, option.fallback))
        .value_name(value_of_help(option));
    if (option.old_name)
      add(fmt::format("--{}", option.old_name), flag.old_texts, flag.old_text,
          fmt::format("the old name of {}", name))
          .hidden();
  }
}

void CheckFlags::give(const std::string &name, const std::string &text) {
  auto option =
      std::find_if(options_.begin(), options_.end(),
                   [&](const CheckOption &one) { return one.name == name; });
  if (option == options_.end())
    throw InternalError(fmt::format("there is no option {}", name));
  Flag &flag = flags_.emplace_back();
  flag.option = &*option;
  flag.text = text;
}

std::vector<std::pair<std::string, std::string>>
CheckFlags::Flag::given() const {
  std::vector<std::pair<std::string, std::string>> all;
  std::string name = fmt::format("--{}", option->name), old_name;
  if (option->old_name)
    old_name = fmt::format("--{}", option->old_name);
  for (const std::string &one : old_texts)
    all.emplace_back(old_name, one);
  if (old_text)
    all.emplace_back(old_name, *old_text);
  for (const std::string &one : texts)
    all.emplace_back(name, one);
  if (text)
    all.emplace_back(name, *text);
  if (is_on)
    all.emplace_back(name, "on");
  return all;
}

CheckSettings CheckFlags::settings() const {
  CheckSettings settings;
  for (const Flag &flag : flags_)
    for (const auto &[spelled, text] : flag.given())
      set_option(settings, *flag.option, spelled, text);
  settings.interleavings.list(); // throws where there are not so many
  return settings;
}

void CheckFlags::check_outputs() const {
  for (const Flag &flag : flags_)
    for (const auto &[spelled, text] : flag.given())
      if (flag.option->kind == OptionKind::folder)
        make_folder(spelled.c_str(), text);
      else if (flag.option->kind == OptionKind::path && text != "-")
        check_output(spelled.c_str(), text);
}

/// What a program in another folder understands.
static std::string value_of(const CheckOption &option,
                            const std::vector<std::string> &words) {
  if (option.kind == OptionKind::list)
    return fmt::format("{}", fmt::join(words, ","));
  const std::string &last = words.back();
  bool isPlace = option.kind == OptionKind::path ||
                 option.kind == OptionKind::folder;
  if (isPlace && !last.empty() && last != "-")
    return std::filesystem::absolute(last);
  return last;
}

std::vector<std::pair<std::string, std::string>>
CheckFlags::variables() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Flag &flag : flags_) {
    std::vector<std::string> words;
    for (const auto &[spelled, text] : flag.given())
      words.push_back(text);
    if (!words.empty())
      all.emplace_back(variable_name(*flag.option),
                       value_of(*flag.option, words));
  }
  return all;
}

} // namespace kiln::cli
