// man_pages: roff, with the macros of man(7).
#include "man_pages.h"
#include "commands.h"

#include <kiln/base/error.h>
#include <kiln/base/file.h>
#include <kiln/base/text.h>

#include <CLI/CLI.hpp>
#include <fmt/format.h>


namespace kiln::cli {

/// Text as roff prints it: no hyphens made of minus signs, and no control line.
static std::string escaped(const std::string &text) {
  std::string result;
  for (char one : text) {
    if (one == '\\')
      result += "\\e";
    else if (one == '-')
      result += "\\-";
    else
      result += one;
  }
  if (!result.empty() && (result[0] == '.' || result[0] == '\''))
    result.insert(0, "\\&");
  return result;
}

namespace {

class ManPage {
public:
  /// `words`: "kiln", "bench", "gemm".
  ManPage(CLI::App &app, std::vector<std::string> words)
      : app_(app), words_(std::move(words)) {}

  std::string name() const { return fmt::format("{}", fmt::join(words_, "-")); }
  std::string to_string();

private:
  void add_synopsis();
  void add_options();
  void add_commands();
  void add_exit_statuses();

  CLI::App &app_;
  std::vector<std::string> words_;
  CLI::Formatter formatter_;
  std::string text_;
};

} // namespace

std::string ManPage::to_string() {
  text_ =
      fmt::format(".TH \"{}\" 1 \"\" \"{}\" \"Kiln\"\n.SH NAME\n{} \\- "
                  "{}\n",
                  escaped(name()), version_line(), escaped(name()),
                  escaped(app_.get_description()));
  add_synopsis();
  add_options();
  add_commands();
  add_exit_statuses();
  return text_;
}

void ManPage::add_synopsis() {
  text_ += fmt::format(".SH SYNOPSIS\n.B {}\n[\\fIOPTIONS\\fR]",
                       escaped(fmt::format("{}", fmt::join(words_, " "))));
  for (const CLI::Option *option : app_.get_options())
    if (option->get_positional())
      text_ += fmt::format(" \\fI{}\\fR", escaped(option->get_name(true)));
  if (!app_.get_subcommands({}).empty())
    text_ += " \\fICOMMAND\\fR";
  text_ += "\n";
}

void ManPage::add_options() {
  text_ += ".SH OPTIONS\n";
  for (const CLI::Option *option : app_.get_options()) {
    if (option->get_group().empty()) // hidden
      continue;
    bool isWord = option->get_positional();
    text_ += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n",
                         escaped(formatter_.make_option_name(option, isWord)),
                         escaped(formatter_.make_option_opts(option)),
                         escaped(formatter_.make_option_desc(option)));
  }
}

void ManPage::add_commands() {
  auto commands = app_.get_subcommands({});
  if (commands.empty())
    return;
  text_ += ".SH COMMANDS\n";
  for (const CLI::App *command : commands)
    text_ += fmt::format(".TP\n\\fB{}\\-{}\\fR(1)\n{}\n", escaped(name()),
                         escaped(command->get_name()),
                         escaped(command->get_description()));
}

void ManPage::add_exit_statuses() {
  static constexpr std::pair<ExitStatus, const char *> kStatuses[] = {
      {ExitStatus::ok, "All is right; there may be warnings."},
      {ExitStatus::wrong, "A comparison with the reference failed."},
      {ExitStatus::finding, "The simulator found an error."},
      {ExitStatus::refused, "The usage or the input is refused."},
      {ExitStatus::machine, "The driver or the machine failed."},
      {ExitStatus::internal, "Kiln has a defect."},
  };
  text_ += ".SH EXIT STATUS\n";
  for (auto [status, meaning] : kStatuses)
    text_ +=
        fmt::format(".TP\n\\fB{}\\fR\n{}\n", static_cast<int>(status), meaning);
}

static void write_pages(CLI::App &app, std::vector<std::string> words,
                        const std::filesystem::path &folder) {
  ManPage page(app, words);
  auto path = folder / (page.name() + ".1");
  write_file(path.string(), {page.to_string()});
  for (CLI::App *command : app.get_subcommands({})) {
    words.push_back(command->get_name());
    write_pages(*command, words, folder);
    words.pop_back();
  }
}

void write_man_pages(CLI::App &app, const std::filesystem::path &folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw RuntimeError(fmt::format("{}: {}", folder.string(), error.message()));
  write_pages(app, {"kiln"}, folder);
}

} // namespace kiln::cli
