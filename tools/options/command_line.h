// command_line: how a command declares its options. CLI11 does the parsing.
//
// CLI11 is a header that costs each file that includes it four seconds; it is
// included behind this one, in three files.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
} // namespace CLI

namespace kiln::cli {

/// An option that was declared, to say more about it.
class Option {
public:
  explicit Option(CLI::Option &option) : option_(&option) {}

  Option required();
  /// Takes that many values; most = -1: any number from `least` on.
  Option expected(int count);
  Option expected(int least, int most);
  /// --help shows the value it has now.
  Option capture_default_str();
  /// --help shows this as the value it has.
  Option default_text(const std::string &text);
  /// Each occurrence takes one value, not all words that follow.
  Option one_value_each();
  /// Several values may stand in one word, with this between them.
  Option delimiter(char delimiter);
  /// Not together with this option of the same command.
  Option excludes(Option other);
  /// --help does not show it.
  Option hidden();
  /// What stands for the value in --help: "SECONDS".
  Option value_name(const std::string &name);
  /// The value names a file that exists.
  Option existing_file();

private:
  CLI::Option *option_;
};

/// A command, or `kiln` itself.
class Command {
public:
  explicit Command(CLI::App &app) : app_(&app) {}

  Command add_subcommand(const std::string &name,
                         const std::string &description);
  /// `names`: "--order", "-o,--output", or a bare word for what has no dashes.
  /// `value` is written while the command line is parsed. Values are strings,
  /// numbers, optional ones, and vectors of them.
  template <typename Value>
  Option add_option(const std::string &names, Value &value,
                    const std::string &description);
  Option add_flag(const std::string &names, bool &value,
                  const std::string &description);
  /// The option that was declared under this name.
  Option get_option(const std::string &name);

  /// Called once the command line is parsed and names this command.
  void callback(std::function<void()> function);
  /// Whether one of its subcommands was named.
  bool has_subcommand() const;
  /// Everything from the first word that is no option on is another program's.
  void prefix_command();
  /// Whatever follows is taken, and nobody looks at it.
  void any_words();
  std::vector<std::string> remaining() const;

private:
  CLI::App *app_;
};

} // namespace kiln::cli
