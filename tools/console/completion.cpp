// completion: one list of commands, options and values, and a script around it
// for each shell.
#include "completion.h"

#include <kiln/base/error.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <map>

namespace kiln::cli {

namespace {
struct Entry {
  std::string path; ///< "kiln bench gemm"
  std::string word; ///< "--type", or a command
  std::string help;
  std::vector<std::string> values = {}; ///< that an option takes
  bool is_command = false;
};
} // namespace

/// "eager|lazy|random|all" as a list.
static std::vector<std::string> values_of(const CLI::Option &option) {
  std::vector<std::string> values;
  std::string name = option.get_type_name();
  if (name.find('|') == std::string::npos)
    return values;
  for (std::size_t at = 0; at < name.size();) {
    std::size_t end = std::min(name.find('|', at), name.size());
    values.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return values;
}

static void collect(CLI::App &app, const std::string &path,
                    std::vector<Entry> &entries) {
  for (const CLI::Option *option : app.get_options())
    if (!option->get_group().empty() && !option->get_lnames().empty())
      entries.push_back({path, "--" + option->get_lnames().front(),
                         option->get_description(), values_of(*option)});
  for (CLI::App *command : app.get_subcommands({})) {
    entries.push_back({.path = path,
                       .word = command->get_name(),
                       .help = command->get_description(),
                       .is_command = true});
    collect(*command, path + " " + command->get_name(), entries);
  }
}

/// Single quotes, for any shell.
static std::string in_quotes(const std::string &text) {
  std::string result = "'";
  for (char one : text)
    result += one == '\'' ? std::string("'\\''") : std::string(1, one);
  return result + "'";
}

static std::string bash_script(const std::vector<Entry> &entries) {
  std::string paths, values, words;
  std::map<std::string, std::vector<std::string>> by_path;
  for (const Entry &entry : entries) {
    by_path[entry.path].push_back(entry.word);
    if (entry.is_command)
      paths += fmt::format("      {}) path=\"$path $word\" ;;\n",
                           in_quotes(entry.path + " " + entry.word));
    if (!entry.values.empty())
      values += fmt::format("    {}) words={} ;;\n",
                            in_quotes(entry.path + " " + entry.word),
                            in_quotes(fmt::format(
                                "{}", fmt::join(entry.values, " "))));
  }
  for (const auto &[path, list] : by_path)
    words += fmt::format("    {}) words={} ;;\n", in_quotes(path),
                         in_quotes(fmt::format("{}", fmt::join(list, " "))));
  return fmt::format(R"(_kiln() {{
  local path=kiln word words=
  local current=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  for word in "${{COMP_WORDS[@]:1:COMP_CWORD-1}}"; do
    case "$path $word" in
{}    esac
  done
  case "$path" in
{}  esac
  case "$path $before" in
{}  esac
  COMPREPLY=($(compgen -W "$words" -- "$current"))
  [ ${{#COMPREPLY[@]}} -gt 0 ] || COMPREPLY=($(compgen -f -- "$current"))
}}
complete -o filenames -F _kiln kiln
)",
                     paths, words, values);
}

static std::string fish_script(const std::vector<Entry> &entries) {
  std::string script = "complete -c kiln -e\n";
  for (const Entry &entry : entries) {
    std::size_t space = entry.path.rfind(' ');
    std::string where =
        space == std::string::npos
            ? "__fish_use_subcommand"
            : "__fish_seen_subcommand_from " + entry.path.substr(space + 1);
    std::string what = entry.is_command ? "-a " + entry.word
                                        : "-l " + entry.word.substr(2);
    if (!entry.values.empty())
      what += fmt::format(" -x -a {}", in_quotes(fmt::format("{}", fmt::join(
                                           entry.values, " "))));
    script += fmt::format("complete -c kiln -n {} {} -d {}\n", in_quotes(where),
                          what, in_quotes(entry.help));
  }
  return script;
}

std::string completion_script(CLI::App &app, const std::string &shell) {
  std::vector<Entry> entries;
  collect(app, "kiln", entries);
  if (shell == "bash")
    return bash_script(entries);
  if (shell == "zsh")
    return "autoload -U +X bashcompinit && bashcompinit\n" +
           bash_script(entries);
  if (shell == "fish")
    return fish_script(entries);
  throw UserError(
      fmt::format("'{}' is not a shell; use bash, zsh or fish", shell));
}

} // namespace kiln::cli
