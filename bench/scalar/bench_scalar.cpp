// bench_scalar: ordinary CUDA kernels on the simulator, beside the same
// algorithms in C++ on one core.
//
//     build/bin/bench_scalar [--rounds N] [--one-thread] [--json FILE]
//                            [--old BINARY] [CASE...]
//
// Twelve kernels as people write them (kernels/), single instructions, and what
// starts before anything is computed. Each is run with the checks off and on,
// by one thread and by all of them, in turns with the host's loop and with
// another build of this program (--old). The best of the rounds counts. On one
// thread that is time of the processor, so that others on the machine disturb
// little; on all of them it is time by the clock.
#include "older.h"

#include <kiln/base/error.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>

using namespace scalar;

namespace {
struct Options {
  int rounds = 5;
  bool is_one_thread = false, is_serving = false;
  const char *json = nullptr, *old = nullptr;
  std::vector<std::string> names;

  bool wants(const Case &one) const {
    return names.empty() ||
           std::find(names.begin(), names.end(), one.name) != names.end();
  }
};

/// What the runs of a case with one setting came to.
struct Row {
  Setting setting;
  Sample now, old;
};

struct Report {
  const Case *one;
  Sample host;
  std::vector<Row> rows;
};
} // namespace

static double time_us(const Sample &sample, const Setting &setting) {
  return setting.threads == 1 ? sample.cpu_us : sample.wall_us;
}
static double time_us(const Row &row) { return time_us(row.now, row.setting); }

static double old_over_new(const Row &row) {
  return time_us(row.old, row.setting) / time_us(row);
}

static Report measure(Runner &runner, Older *older, Case &one,
                      const Options &options) {
  Report report{&one, {}, {}};
  for (int threads : {1, 0})
    for (bool has_checks : {false, true})
      if (threads == 1 || !options.is_one_thread)
        report.rows.push_back({{has_checks, threads}, {}, {}});
  // The first round warms everything up and compares the results.
  for (int round = 0; round <= options.rounds; ++round) {
    if (one.on_host) {
      Sample sample = runner.on_host(one);
      if (round)
        report.host.keep_best(sample);
    }
    for (Row &row : report.rows) {
      Sample now = runner.simulate(one, row.setting), old;
      if (older)
        old = older->simulate(one, row.setting);
      if (!round)
        continue;
      row.now.keep_best(now);
      row.old.keep_best(old);
    }
  }
  return report;
}

/// The number that a row of what starts is about, and what it is.
static std::pair<double, const char *> start_cost(const Case &one,
                                                  double time_us) {
  if (one.allocated_bytes)
    return {time_us, "us per allocation"};
  if (one.launches > 1)
    return {time_us / one.launches, "us per launch"};
  return {1e3 * time_us / static_cast<double>(one.warps()), "ns per warp"};
}

static void print_setting(const Row &row) {
  std::printf("  %-10s %-11s",
              row.setting.has_checks ? "all checks" : "no checks",
              row.setting.threads == 1 ? "one thread" : "all threads");
}

static void print_old(const Row &row, bool has_old) {
  if (has_old)
    std::printf(", old over new %.2f", old_over_new(row));
  std::printf("\n");
}

static void print(const Report &report, bool has_old) {
  const Case &one = *report.one;
  if (one.group == Group::starts) {
    std::printf("%s\n", one.name.c_str());
    for (const Row &row : report.rows) {
      auto [cost, unit] = start_cost(one, time_us(row));
      print_setting(row);
      std::printf(" %9.1f %s", cost, unit);
      if (one.launches == 1 && !one.allocated_bytes)
        std::printf(", %.1f ns per CTA",
                    1e3 * time_us(row) / static_cast<double>(one.ctas()));
      print_old(row, has_old);
    }
    return;
  }
  std::printf("%s: %.0f warp instructions", one.name.c_str(),
              report.rows[0].now.instructions);
  if (one.on_host)
    std::printf(", %.2f ms in C++", 1e-3 * report.host.cpu_us);
  std::printf("\n");
  for (const Row &row : report.rows) {
    print_setting(row);
    std::printf(" %8.2f ms, %7.1f ns per warp instruction", 1e-3 * time_us(row),
                1e3 * time_us(row) / row.now.instructions);
    if (one.iterations)
      std::printf(", %.2f ns per thread and iteration",
                  1e3 * time_us(row) / one.iterations);
    if (one.on_host)
      std::printf(", %7.1f times C++", time_us(row) / report.host.cpu_us);
    print_old(row, has_old);
  }
}

/// Over the twelve kernels, for each setting.
static void print_means(const std::vector<Report> &reports) {
  if (reports.empty())
    return;
  for (std::size_t i = 0; i < reports.front().rows.size(); ++i) {
    double sum = 0, least = 1e30;
    int count = 0;
    for (const Report &report : reports) {
      if (report.one->group != Group::kernels)
        continue;
      double ratio = old_over_new(report.rows[i]);
      sum += std::log(ratio);
      least = std::min(least, ratio);
      ++count;
    }
    if (!count)
      continue;
    print_setting(reports.front().rows[i]);
    std::printf(" old over new: geometric mean %.2f, least %.2f\n",
                std::exp(sum / count), least);
  }
}

static constexpr const char *kGroups[] = {"kernels", "instructions", "starts"};

static void write_json(const char *path, const std::vector<Report> &reports,
                       const Options &options) {
  std::FILE *file = std::fopen(path, "w");
  if (!file)
    throw kiln::RuntimeError(std::string(path) + " cannot be written");
  std::fprintf(file, "{\n \"rounds\": %d,\n \"cases\": [", options.rounds);
  const char *comma = "";
  for (const Report &report : reports) {
    const Case &one = *report.one;
    std::fprintf(file, "%s\n  {\"name\": \"%s\", \"group\": \"%s\", ", comma,
                 one.name.c_str(), kGroups[static_cast<int>(one.group)]);
    std::fprintf(file,
                 "\"has_atomics\": %s, \"ctas\": %.0f, \"warps\": %.0f, "
                 "\"launches\": %d, \"instructions\": %.0f",
                 one.has_atomics ? "true" : "false",
                 static_cast<double>(one.ctas()),
                 static_cast<double>(one.warps()), one.launches,
                 report.rows[0].now.instructions);
    if (one.on_host)
      std::fprintf(file, ", \"host_us\": %.1f", report.host.cpu_us);
    std::fprintf(file, ",\n   \"runs\": [");
    const char *separator = "";
    for (const Row &row : report.rows) {
      std::fprintf(file,
                   "%s\n    {\"checks\": \"%s\", \"threads\": \"%s\", "
                   "\"us\": %.1f",
                   separator, row.setting.has_checks ? "on" : "off",
                   row.setting.threads == 1 ? "one" : "all", time_us(row));
      if (options.old)
        std::fprintf(file, ", \"old_us\": %.1f, \"old_over_new\": %.2f",
                     time_us(row.old, row.setting), old_over_new(row));
      std::fprintf(file, "}");
      separator = ",";
    }
    std::fprintf(file, "]}");
    comma = ",";
  }
  std::fprintf(file, "\n ]\n}\n");
  if (std::fclose(file) != 0)
    throw kiln::RuntimeError(std::string(path) + " cannot be written");
}

static Options parse(int argc, char **argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    auto is = [&](const char *name) { return !std::strcmp(argv[i], name); };
    auto value = [&]() -> const char * {
      if (i + 1 == argc)
        throw kiln::UserError(std::string(argv[i]) + " needs a value");
      return argv[++i];
    };
    if (is("--rounds"))
      options.rounds = std::max(1, std::atoi(value()));
    else if (is("--one-thread"))
      options.is_one_thread = true;
    else if (is("--json"))
      options.json = value();
    else if (is("--old"))
      options.old = value();
    else if (is("--serve"))
      options.is_serving = true;
    else if (argv[i][0] == '-')
      throw kiln::UserError(std::string(argv[i]) +
                            " is not an option; expected --rounds N, "
                            "--one-thread, --json FILE, --old BINARY or names "
                            "of cases");
    else
      options.names.emplace_back(argv[i]);
  }
  return options;
}

int main(int argc, char **argv) try {
  Options options = parse(argc, argv);
  std::vector<Case> cases = kernel_cases();
  for (auto make : {instruction_cases, start_cases})
    for (Case &one : make())
      cases.push_back(std::move(one));
  Runner runner;
  if (options.is_serving) {
    serve(runner, cases);
    return 0;
  }
  for (const std::string &name : options.names)
    if (std::none_of(cases.begin(), cases.end(),
                     [&](const Case &one) { return one.name == name; }))
      throw kiln::UserError("there is no case " + name);
  std::optional<Older> older;
  if (options.old)
    older.emplace(options.old);
  std::vector<Report> reports;
  for (Case &one : cases) {
    if (!options.wants(one))
      continue;
    reports.push_back(measure(runner, older ? &*older : nullptr, one, options));
    print(reports.back(), options.old != nullptr);
    std::fflush(stdout);
  }
  if (options.old)
    print_means(reports);
  if (options.json)
    write_json(options.json, reports, options);
  return 0;
} catch (const std::exception &error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
