// sim_options: parse the simulator's options, show what it found.
#include "sim_options.h"

#include <kiln/error.h>

#include <fmt/format.h>

namespace kiln::cli {

void SimFlags::add_to(CLI::App &command) {
  command
      .add_option("--order", order,
                  "when asynchronous work takes effect: eager, lazy, random")
      ->capture_default_str();
  command.add_option("--seed", seed, "of the random order")
      ->capture_default_str();
  command.add_option("--checks", checks, "of the simulator: on or off")
      ->capture_default_str();
  command.add_option("--threads", threads, "of this machine; 0: all")
      ->capture_default_str();
  command.add_option("--sms", sms, "multiprocessors of the simulated device");
  command.add_option("--max-instructions", max_instructions,
                     "end a CTA that has executed so many warp instructions");
}

SimOptions SimFlags::options() const {
  SimOptions options;
  options.order = parse_sim_order(order);
  options.seed = seed;
  if (checks != "on" && checks != "off")
    throw UserError(
        fmt::format("--checks is '{}'; it takes on or off", checks));
  options.checks = checks == "on";
  if (threads < 0 || sms < 0)
    throw UserError(fmt::format(
        "--threads {} and --sms {} must not be negative", threads, sms));
  options.threads = threads;
  if (sms > 0)
    options.device.sms = sms;
  options.max_instructions = max_instructions;
  return options;
}

void show_finding(const Finding &finding) {
  const char *grade = finding.grade == Finding::Grade::error     ? "error"
                      : finding.grade == Finding::Grade::warning ? "warning"
                                                                 : "note";
  std::string place;
  if (finding.where.is_known())
    place = fmt::format(" at {}:{}", finding.where.file, finding.where.line);
  fmt::print("{:<10} {}{}: {}\n", grade, finding.id, place, finding.message);
}

} // namespace kiln::cli
