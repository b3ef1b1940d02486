// command_line: pass declarations on to CLI11.
#include "command_line.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <optional>
#include <utility>

namespace kiln::cli {

Option Option::required() {
  option_->required();
  return *this;
}

Option Option::expected(int count) {
  option_->expected(count);
  return *this;
}

Option Option::expected(int least, int most) {
  option_->expected(least, most);
  return *this;
}

Option Option::capture_default_str() {
  option_->capture_default_str();
  return *this;
}

Option Option::default_text(const std::string &text) {
  option_->default_str(text);
  return *this;
}

Option Option::one_value_each() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::delimiter(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::excludes(Option other) {
  option_->excludes(other.option_);
  return *this;
}

Option Option::hidden() {
  option_->group("");
  return *this;
}

Option Option::value_name(const std::string &name) {
  option_->type_name(name);
  return *this;
}

Option Option::existing_file() {
  option_->check(CLI::ExistingFile);
  return *this;
}

Command Command::add_subcommand(const std::string &name,
                                const std::string &description) {
  CLI::App *added = app_->add_subcommand(name, description);
  // One of its subcommands at most; one that has none takes none.
  app_->require_subcommand(0, 1);
  return Command(*added);
}

template <typename Value>
Option Command::add_option(const std::string &names, Value &value,
                           const std::string &description) {
  return Option(*app_->add_option(names, value, description));
}

template Option Command::add_option(const std::string &, std::string &,
                                    const std::string &);
template Option Command::add_option(const std::string &, int &,
                                    const std::string &);
template Option Command::add_option(const std::string &, std::uint64_t &,
                                    const std::string &);
template Option Command::add_option(const std::string &, double &,
                                    const std::string &);
template Option Command::add_option(const std::string &,
                                    std::optional<double> &,
                                    const std::string &);
template Option Command::add_option(const std::string &,
                                    std::optional<std::string> &,
                                    const std::string &);
template Option Command::add_option(const std::string &, std::vector<int> &,
                                    const std::string &);
template Option Command::add_option(const std::string &,
                                    std::vector<std::string> &,
                                    const std::string &);

Option Command::add_flag(const std::string &names, bool &value,
                         const std::string &description) {
  return Option(*app_->add_flag(names, value, description));
}

Option Command::get_option(const std::string &name) {
  return Option(*app_->get_option(name));
}

void Command::callback(std::function<void()> function) {
  app_->callback(std::move(function));
}

bool Command::has_subcommand() const {
  return !app_->get_subcommands().empty();
}

void Command::prefix_command() { app_->prefix_command(); }

void Command::any_words() {
  app_->allow_extras();
  app_->set_help_flag();
}

std::vector<std::string> Command::remaining() const {
  return app_->remaining();
}

} // namespace kiln::cli
