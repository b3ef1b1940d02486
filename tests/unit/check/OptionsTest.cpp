// Options: one table for the command line, the environment, C and the pages. A
// row that nobody has seen before is there in each.
#include "kiln/check/options.h"
#include "kiln/base/file.h"
#include "options/check_flags.h"
#include "unit/support/ErrorText.h"

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>

#include <cstring>

namespace kiln {

using testing::HasSubstr;

/// The table, and a row that stands for the next one.
static std::vector<CheckOption> withOneMore() {
  std::vector<CheckOption> options(check_options().begin(),
                                   check_options().end());
  options.push_back({"fake-limit", OptionKind::whole, "N",
                     "a whole number from 1 to 9", "5", "stop after N fakes",
                     door_everywhere,
                     {},
                     "fakes",
                     [](CheckSettings &settings, const OptionText &text) {
                       settings.sim.threads =
                           static_cast<int>(text.whole(1, 9));
                     }});
  return options;
}

/// What the command line makes of the words.
static CheckSettings parse(std::vector<std::string> words,
                           std::span<const CheckOption> options,
                           std::string *help = nullptr) {
  CLI::App app;
  cli::CheckFlags flags(options);
  flags.add_to(cli::Command(app), door_launches);
  std::reverse(words.begin(), words.end());
  app.parse(words);
  if (help)
    *help = app.help();
  return flags.settings();
}

TEST(Options, AFakeRowIsOnTheCommandLine) {
  std::vector<CheckOption> options = withOneMore();
  std::string help;
  EXPECT_EQ(parse({"--fake-limit", "7"}, options, &help).sim.threads, 7);
  EXPECT_THAT(help, HasSubstr("--fake-limit N"));
  EXPECT_THAT(help, HasSubstr("stop after N fakes; default: 5"));
  EXPECT_THAT(help, Not(HasSubstr("--fakes"))) << "the old name is hidden";
  EXPECT_EQ(parse({"--fakes", "3"}, options).sim.threads, 3);
  EXPECT_EQ(errorText([&] { parse({"--fake-limit", "10"}, options); }),
            "--fake-limit is '10'; it takes a whole number from 1 to 9");
  EXPECT_EQ(errorText([&] { parse({"--fakes", "x"}, options); }),
            "--fakes is 'x'; it takes a whole number from 1 to 9");
}

TEST(Options, AFakeRowReachesAProgram) {
  std::vector<CheckOption> options = withOneMore();
  CLI::App app;
  cli::CheckFlags flags(options);
  flags.add_to(cli::Command(app), door_programs);
  app.parse("--fake-limit 4 --allow race --allow deadlock --report out.json");
  auto all = flags.variables();
  std::map<std::string, std::string> variables(all.begin(), all.end());
  EXPECT_EQ(variables["KILN_FAKE_LIMIT"], "4");
  EXPECT_EQ(variables["KILN_ALLOW"], "race,deadlock");
  EXPECT_EQ(variables["KILN_REPORT"][0], '/') << "it may change its folder";

  CheckSettings settings;
  auto read = [&](const std::string &name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() ? std::nullopt
                                    : std::optional(found->second);
  };
  set_from_environment(settings, door_programs, read, options);
  EXPECT_EQ(settings.sim.threads, 4);
  EXPECT_EQ(settings.sim.allow, (std::vector<std::string>{"race", "deadlock"}));
  variables = {{"KILN_FAKES", "0"}};
  EXPECT_EQ(errorText([&] {
              set_from_environment(settings, door_programs, read, options);
            }),
            "KILN_FAKES is '0'; it takes a whole number from 1 to 9");
}

TEST(Options, AFakeRowIsInCAndOnThePages) {
  std::vector<CheckOption> options = withOneMore();
  CheckSettings settings;
  set_options(settings, "fake_limit=6,seed=3", options);
  EXPECT_EQ(settings.sim.threads, 6);
  EXPECT_EQ(settings.interleavings.seed, 3u);
  EXPECT_THAT(errorText([&] { set_options(settings, "none=1", options); }),
              HasSubstr("'none' is not an option; use one of interleaving, "));
  EXPECT_EQ(errorText([&] { set_options(settings, "fast", options); }),
            "'fast' is not an option; write key=value");
  EXPECT_THAT(options_header(options), HasSubstr("  uint64_t fake_limit;\n"));
  EXPECT_THAT(options_page(options),
              HasSubstr("| `--fake-limit N` | `KILN_FAKE_LIMIT` | a whole number "
                        "from 1 to 9 | 5 | stop after N fakes |\n"));
  bool isListed = false;
  for (const Setting &setting : option_variables(options))
    isListed |= setting.variable == "KILN_FAKE_LIMIT" && setting.value == "5";
  EXPECT_TRUE(isListed);
}

TEST(Options, AStructureMayBeSmallerThanTheTable) {
  std::vector<CheckOption> options = withOneMore();
  std::vector<std::uint64_t> structure(1 + options.size());
  structure[0] = structure.size() * 8;
  for (std::size_t i = 0; i < options.size(); ++i)
    if (options[i].kind == OptionKind::whole ||
        options[i].kind == OptionKind::flag)
      structure[1 + i] = UINT64_MAX;
    else if (double unset = -1; options[i].kind == OptionKind::seconds)
      std::memcpy(&structure[1 + i], &unset, 8);
  structure.back() = 2;
  CheckSettings settings;
  set_from_structure(settings, structure.data(), options);
  EXPECT_EQ(settings.sim.threads, 2);
  EXPECT_EQ(settings.interleavings.word(), "all");
  EXPECT_EQ(settings.sim.max_instructions, SimOptions().max_instructions);
  EXPECT_EQ(settings.sim.time_limit_s, 0);

  structure.back() = 20;
  EXPECT_EQ(errorText([&] {
              set_from_structure(settings, structure.data(), options);
            }),
            "options.fake_limit is '20'; it takes a whole number from 1 to 9");
  structure[0] -= 8; // of a client that knows one row less
  settings = {};
  set_from_structure(settings, structure.data(), options);
  EXPECT_EQ(settings.sim.threads, 0);
  for (std::size_t bytes : {std::size_t(0), std::size_t(12),
                            8 * (2 + options.size())}) {
    structure[0] = bytes;
    EXPECT_THAT(errorText([&] {
                  set_from_structure(settings, structure.data(), options);
                }),
                HasSubstr("the options have " + std::to_string(bytes) +
                          " bytes; this library knows up to "));
  }
}

TEST(Options, ValuesAreHeldAgainstWhatIsAccepted) {
  auto refusal = [](const std::string &text) {
    CheckSettings settings;
    return errorText([&] { set_options(settings, text); });
  };
  EXPECT_EQ(refusal("interleaving=late"),
            "interleaving is 'late'; it takes eager, lazy, random or all");
  EXPECT_EQ(refusal("order=late"),
            "order is 'late'; it takes eager, lazy, random or all");
  EXPECT_EQ(refusal("checks=maybe"), "checks is 'maybe'; it takes on or off");
  EXPECT_EQ(refusal("time_limit=nan"),
            "time_limit is 'nan'; it takes a number of seconds from 0 on");
  EXPECT_EQ(refusal("seed=-1"),
            "seed is '-1'; it takes a whole number from 0 on");
  EXPECT_EQ(refusal("interleavings=2000000000"),
            "interleavings is '2000000000'; it takes a whole number from 1 to "
            "1000000");
  EXPECT_EQ(refusal("kernel=("),
            "kernel is '('; it takes a regular expression");
  EXPECT_THAT(refusal("allow=nothing"), HasSubstr("'nothing'"));
  EXPECT_THAT(refusal("gpu=abacus"), HasSubstr("abacus"));
}

TEST(Options, ThePagesAreThoseOfTheTable) {
  EXPECT_THAT(read_file(KILN_SOURCE_DIR "/docs/options.md"),
              HasSubstr(options_page()))
      << "put this into docs/options.md:\n"
      << options_page();
  EXPECT_EQ(read_file(KILN_SOURCE_DIR "/include/kiln/c/kiln_options.h"),
            options_header())
      << "put this into include/kiln/c/kiln_options.h:\n"
      << options_header();
}

} // namespace kiln
