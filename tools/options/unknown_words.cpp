// unknown_words: look words up, and compare them with those that exist.
#include "unknown_words.h"

#include <kiln/base/error.h>

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cli {

/// Letters to insert, remove or replace to get from one word to the other.
static std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (char letter : from) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < to.size(); ++j) {
      std::size_t replaced = diagonal + (letter != to[j]);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

/// "; did you mean '--schedule'?" where one of them is near.
static std::string suggestion(std::string_view word,
                              const std::vector<std::string> &known) {
  std::string_view best;
  std::size_t least = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string &candidate : known)
    if (std::size_t away = distance(word, candidate); away < least) {
      least = away;
      best = candidate;
    }
  return best.empty() ? "" : fmt::format("; did you mean '{}'?", best);
}

static std::vector<std::string> options_of(const CLI::App &command) {
  std::vector<std::string> names;
  for (const CLI::Option *option : command.get_options())
    for (const std::string &name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

static bool takes_value(const CLI::App &command, const std::string &word) {
  const CLI::Option *option = command.get_option_no_throw(word);
  return option && option->get_items_expected_max() > 0;
}

static const CLI::App *find_command(const CLI::App &app,
                                    const std::string &name) {
  for (const CLI::App *command : app.get_subcommands({}))
    if (command->check_name(name))
      return command;
  return nullptr;
}

static const CLI::App &command_named(const CLI::App &app,
                                     const std::string &name) {
  if (const CLI::App *command = find_command(app, name))
    return *command;
  std::vector<std::string> names;
  for (const CLI::App *command : app.get_subcommands({}))
    names.push_back(command->get_name());
  throw UserError(fmt::format("there is no command '{}'{}; see `kiln --help`",
                              name, suggestion(name, names)));
}

void check_words(const CLI::App &app, int argc, const char *const *argv) {
  const CLI::App *command = &app;
  std::string path = "kiln";
  bool is_first = true;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--")
      return; // the rest are no options
    if (!word.starts_with("--")) {
      if (word.starts_with("-") && word.size() > 1)
        continue; // a short option, or a negative number
      if (is_first)
        command = &command_named(app, word);
      else if (const CLI::App *inner = find_command(*command, word))
        command = inner;
      else if (command->get_prefix_command())
        return; // a program, and what is its own
      else
        continue;
      if (command->get_allow_extras())
        return;
      path += " " + command->get_name();
      is_first = false;
      continue;
    }
    bool has_value = word.find('=') != std::string::npos;
    word = word.substr(0, word.find('='));
    std::vector<std::string> known = options_of(*command);
    if (std::find(known.begin(), known.end(), word) == known.end())
      throw UserError(
          fmt::format("there is no option {} of `{}`{}; see `{} --help`", word,
                      path, suggestion(word, known), path));
    if (command->get_prefix_command() && !has_value &&
        takes_value(*command, word))
      ++i; // it is not the program
  }
}

} // namespace kiln::cli
