// tune_configs_command: the blocks that find_configs finds, as a table.
#include "console/say.h"
#include "bench/tile_configs.h"
#include "tune_commands.h"

#include <fmt/format.h>

namespace kiln::cli {

namespace {
struct ConfigsOptions {
  std::vector<int> occupancy = {1}, buffers = {1};
  std::string type = "f16", device = "h200";
};
} // namespace

static void check(const char *option, int value, int most) {
  if (value < 1 || value > most)
    throw UserError(
        fmt::format("{} {}; it must be from 1 to {}", option, value, most));
}

static ExitStatus show_configs(const ConfigsOptions &options) {
  constexpr int kMostBuffers = 16;
  const auto &device = DeviceDescription::by_name(options.device);
  Type type = parse_type(options.type);
  for (int occupancy : options.occupancy)
    check("--occupancy", occupancy, device.max_ctas_per_sm);
  for (int buffers : options.buffers)
    check("--buffers", buffers, kMostBuffers);
  say("{:>7} {:>9} {:>7} {:>7} {:>7} {:>5} {:>7}\n", "buffers", "occupancy",
      "block_m", "block_n", "block_k", "warps", "instr_n");
  for (int buffers : options.buffers)
    for (int occupancy : options.occupancy)
      for (const TileConfig &one :
           find_configs(occupancy, buffers, type, device))
        say("{:7} {:9} {:7} {:7} {:7} {:5} {:7}\n", buffers, one.occupancy,
            one.block_m, one.block_n, one.block_k, one.warps,
            one.instruction_n);
  return ExitStatus::ok;
}

void add_configs_command(Command tune, Action &action) {
  Command command = tune.add_subcommand(
      "configs", "blocks that fill a multiprocessor, by Gluon's find_configs");
  auto options = std::make_shared<ConfigsOptions>();
  command
      .add_option("--occupancy", options->occupancy,
                  "CTAs of a multiprocessor: 1,2")
      .delimiter(',');
  command
      .add_option("--buffers", options->buffers,
                  "blocks of A and B in shared memory: 1,2")
      .delimiter(',');
  command.add_option("--type", options->type, "of A and B")
      .capture_default_str();
  command.add_option("--device", options->device, "a name that `kiln devices --all` lists")
      .capture_default_str();
  command.callback([&action, options] {
    action = [options] { return show_configs(*options); };
  });
}

} // namespace kiln::cli
