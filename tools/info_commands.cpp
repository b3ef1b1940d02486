// info_commands: env, devices and cache: what Kiln finds where it runs.
#include "commands.h"
#include "console/say.h"
#include "support/limits/Confine.h"

#include <kiln/check/options.h>
#include <kiln/check/sim.h>
#include <kiln/run/environment.h>

#include <algorithm>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kiln::cli {

static ExitStatus show_environment() {
  std::vector<Setting> all = settings();
  for (Setting &setting : option_variables())
    all.push_back(std::move(setting));
  std::size_t width = 0;
  for (const Setting &setting : all)
    width = std::max(width, setting.variable.size());
  for (const Setting &setting : all)
    say("{:<{}}  {} ({})\n{:<{}}  {}\n", setting.variable, width, setting.value,
        setting.origin(), "", width, setting.meaning);
  say("{:<{}}  {}\n{:<{}}  what confines `kiln sim` to the files it writes and "
      "the sources it quotes; `kiln run` is not confined\n",
      "confinement", width, availableConfinement().to_string(), "", width);
  return ExitStatus::ok;
}

static ExitStatus show_devices() {
  DeviceListing listing = list_devices();
  for (const DeviceListing::Entry &entry : listing.devices) {
    const DeviceDescription &device = entry.description;
    say("{}  {}: {}, {} SMs, {} KiB shared memory per CTA, {:.0f} GiB, "
        "{} MiB L2, {} MHz\n",
        entry.id, entry.name, device.target(), device.sms,
        device.max_smem_per_cta_bytes / 1024,
        static_cast<double>(device.memory_bytes) / (1ull << 30),
        device.l2_bytes >> 20, device.sm_clock_mhz);
  }
  say("sim     the simulator, as {}\n", SimOptions().device.name);
  for (const std::string &reason : listing.missing)
    say("none  {}\n", reason);
  return ExitStatus::ok;
}

/// Every GPU that `--gpu` takes, as it is published.
static ExitStatus show_known_devices() {
  say("{:<11} {:<30} {:<8} {:<8} {:>4} {:>7} {:>5} {:>6} {:>5} {:>6} {:>8}\n",
      "name", "GPU", "target", "MMA", "SMs", "smem", "L2", "memory", "GB/s",
      "MHz", "TFLOP/s");
  say("{:<11} {:<30} {:<8} {:<8} {:>4} {:>7} {:>5} {:>6} {:>5} {:>6} {:>8}\n",
      "", "", "", "", "", "KiB", "MiB", "GiB", "", "", "f16");
  for (std::string_view word : DeviceDescription::known_names()) {
    const DeviceDescription &device = DeviceDescription::by_name(word);
    say("{:<11} {:<30} {:<8} {:<8} {:>4} {:>7} {:>5} {:>6} {:>5.0f} {:>6} "
        "{:>8.0f}\n",
        word, device.name, device.target(), name(device.tensor_core),
        device.sms, device.max_smem_per_cta_bytes >> 10, device.l2_bytes >> 20,
        device.memory_bytes >> 30, device.memory_gb_per_s, device.sm_clock_mhz,
        device.f16_tflops);
  }
  return ExitStatus::ok;
}

static std::string mebibytes(std::uint64_t bytes) {
  return fmt::format("{:.1f} MiB", static_cast<double>(bytes) / (1 << 20));
}

static ExitStatus show_cache(bool is_clearing) {
  CacheInfo cache = is_clearing ? clear_cache() : cache_info();
  if (!cache.is_on) {
    say("the cache is off\n");
    return ExitStatus::ok;
  }
  const char *plural = cache.entries == 1 ? "entry" : "entries";
  if (is_clearing)
    say("removed {} {}, {}, from {}\n", cache.entries, plural,
        mebibytes(cache.bytes), cache.folder);
  else
    say("folder   {}\nentries  {}\nsize     {}\nlimit    {}\n", cache.folder,
        cache.entries, mebibytes(cache.bytes), mebibytes(cache.limit_bytes));
  return ExitStatus::ok;
}

static nlohmann::json json_of(const Explanation &explanation) {
  return {{"id", explanation.id},
          {"grade", name(explanation.grade)},
          {"ends_launch", explanation.ends_launch},
          {"cause", explanation.cause},
          {"broken", explanation.broken},
          {"fix", explanation.repair}};
}

/// One finding, or all of them, as an array.
static ExitStatus show_explanations_json(const std::string &id) {
  nlohmann::json rows = nlohmann::json::array();
  if (id.empty())
    for (const Explanation &explanation : explanations())
      rows.push_back(json_of(explanation));
  else
    rows.push_back(json_of(kiln::explain(id)));
  say("{}\n", rows.dump(1));
  return ExitStatus::ok;
}

static ExitStatus show_explanation(const std::string &id) {
  if (id.empty()) {
    for (const Explanation &explanation : explanations())
      say("{:8} {}\n", name(explanation.grade), explanation.id);
    return ExitStatus::ok;
  }
  const Explanation &explanation = kiln::explain(id);
  say("{} ({}{})\n\n{}\n\nBroken:\n", explanation.id, name(explanation.grade),
      explanation.ends_launch ? "; ends the launch" : "", explanation.cause);
  std::string_view rest = explanation.broken;
  while (!rest.empty()) {
    std::size_t end = std::min(rest.find('\n'), rest.size());
    say("    {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  say("\nFix: {}\n", explanation.repair);
  return ExitStatus::ok;
}

void add_info_commands(Command app, Action &action) {
  Command explain = app.add_subcommand(
      "explain", "what a finding of the simulator means, and its fix");
  auto id = std::make_shared<std::string>();
  explain.add_option("id", *id, "of the finding; none: list them all");
  auto is_json = std::make_shared<bool>(false);
  explain.add_flag("--json", *is_json,
                   "an array of JSON objects: id, grade, ends_launch, cause, "
                   "broken, fix");
  explain.callback([&action, id, is_json] {
    action = [id, is_json] {
      return *is_json ? show_explanations_json(*id) : show_explanation(*id);
    };
  });
  app.add_subcommand("env", "the environment variables Kiln reads")
      .callback([&action] { action = show_environment; });
  Command devices = app.add_subcommand(
      "devices", "what kernels can run on here, and what not");
  auto is_all = std::make_shared<bool>(false);
  devices.add_flag("--all", *is_all,
                   "the GPUs that can be simulated, with their figures");
  devices.callback([&action, is_all] {
    action = *is_all ? show_known_devices : show_devices;
  });
  Command cache =
      app.add_subcommand("cache", "where compiled kernels are kept");
  auto is_clearing = std::make_shared<bool>(false);
  cache.add_flag("--clear", *is_clearing, "remove every entry");
  cache.callback([&action, is_clearing] {
    action = [is_clearing] { return show_cache(*is_clearing); };
  });
}

} // namespace kiln::cli
