// tune_database_command: databases of tuned schedules, shown and joined.
#include "console/say.h"
#include "tune_commands.h"

#include <kiln/kernels/tuning.h>

#include <algorithm>
#include <filesystem>
#include <fmt/format.h>
#include <utility>

namespace kiln::cli {

static ExitStatus show(const std::string &asked) {
  TuningDatabase database(chosen_database(asked), TuningDatabase::Access::read);
  std::vector<TunedSchedule> entries = database.entries();
  std::size_t width = 0;
  for (const TunedSchedule &entry : entries)
    width = std::max(width, entry.problem.size());
  std::string heading;
  for (const TunedSchedule &entry : entries) {
    std::string group = fmt::format("{}, {}", entry.device, entry.kernels);
    if (entry.kernels != gemm_family())
      group += fmt::format(" (not used: kernels are {} now)", gemm_family());
    if (std::exchange(heading, group) != group)
      say("{}\n", group);
    say("  {:<{}}  {:9.2f} us  {}  (of {}, {})\n", entry.problem, width,
        entry.us, entry.schedule, entry.candidates, entry.date);
  }
  say("{}: {} problem{}\n", database.path(), entries.size(),
      entries.size() == 1 ? "" : "s");
  return ExitStatus::ok;
}

static ExitStatus merge(const std::string &to,
                        const std::vector<std::string> &from) {
  using Access = TuningDatabase::Access;
  // All are read before anything is written.
  std::vector<std::vector<TunedSchedule>> inputs;
  for (const std::string &path : from) {
    std::error_code ignored;
    if (std::filesystem::equivalent(path, to, ignored))
      throw UserError(fmt::format("{} is merged into itself; the first "
                                  "database is what the others go into",
                                  path));
    inputs.push_back(TuningDatabase(path, Access::read).entries());
  }
  TuningDatabase database(to, Access::write);
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto conflicts = database.merge(inputs[i]);
    say("{}: {} problem{}, {} conflict{}\n", from[i], inputs[i].size(),
        inputs[i].size() == 1 ? "" : "s", conflicts.size(),
        conflicts.size() == 1 ? "" : "s");
    for (const auto &[kept, dropped] : conflicts)
      say("  {} on {}: {} ({:.2f} us) stays, not {} ({:.2f} us)\n",
          kept.problem, kept.device, kept.schedule, kept.us, dropped.schedule,
          dropped.us);
  }
  std::size_t count = database.entries().size();
  say("{}: {} problem{}\n", to, count, count == 1 ? "" : "s");
  return ExitStatus::ok;
}

void add_database_commands(Command tune, Action &action) {
  Command showing =
      tune.add_subcommand("show", "what a database of schedules has");
  auto path = std::make_shared<std::string>();
  showing.add_option("database", *path, "left out: KILN_TUNE_DB");
  showing.callback(
      [&action, path] { action = [path] { return show(*path); }; });
  Command merging = tune.add_subcommand(
      "merge", "join databases: the faster of two schedules stays");
  auto to = std::make_shared<std::string>();
  auto from = std::make_shared<std::vector<std::string>>();
  merging.add_option("to", *to, "the database the others go into").required();
  merging.add_option("from", *from, "the others").required().expected(1, -1);
  merging.callback([&action, to, from] {
    action = [to, from] { return merge(*to, *from); };
  });
}

} // namespace kiln::cli
