// Options: the table of what checks can be told.
#include "kiln/check/options.h"
#include "kiln/check/explanation.h"
#include "kiln/check/report.h"
#include "support/Error.h"
#include "support/Knobs.h"
#include "support/text/NamePattern.h"

#include <limits>

namespace kiln {

static constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

/// The whole numbers that an option takes, in words and as it reads them.
template <std::uint64_t least, std::uint64_t most = kAny> struct Whole {
  static const char *words() {
    static const std::string text =
        most == kAny ? fmt::format("a whole number from {} on", least)
                     : fmt::format("a whole number from {} to {}", least, most);
    return text.c_str();
  }
  static std::uint64_t of(const OptionText &text) {
    return text.whole(least, most);
  }
};
using Interleaved = Whole<1, kMaxInterleavings>;
using HostThreads = Whole<0, kMaxSimThreads>;
using Multiprocessors = Whole<0, kMaxSimSms>;
using FromNought = Whole<0>;
using FromOne = Whole<1>;

/// An id of a finding; explain() lists them where there is none of that name.
static std::string findingOf(const OptionText &text) {
  return std::string(explain(text.text).id);
}

static std::string regexOf(const OptionText &text) {
  NamePattern(std::string(text.spelled), std::string(text.text));
  return std::string(text.text);
}

using S = CheckSettings;
using T = OptionText;

static const std::vector<CheckOption> kOptions = {
    {"interleaving", OptionKind::words, "WORD", "eager, lazy, random or all",
     "all",
     "run each launch in this interleaving: asynchronous operations take effect "
     "at once (eager), as late as the program allows (lazy), or at moments drawn "
     "from the seed (random); all: in eager, lazy and random ones",
     door_everywhere,
     {"eager", "lazy", "random", "all"},
     "order",
     [](S &s, const T &t) { s.interleavings.set(t.word()); }},
    {"interleavings", OptionKind::whole, "N",
     Interleaved::words(), "3, or 1 where an interleaving is named",
     "run each launch in N interleavings; those after eager and lazy are random",
     door_everywhere,
     {},
     "schedules",
     [](S &s, const T &t) { s.interleavings.count = Interleaved::of(t); }},
    {"seed", OptionKind::whole, "N", FromNought::words(), "0",
     "the seed for random interleavings; each further one takes the next seed",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.interleavings.seed = FromNought::of(t); }},
    {"checks", OptionKind::words, "WORD", "on or off", "on",
     "look for defects; off: run faster, and only what would trap on a GPU is "
     "found",
     door_everywhere,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.sim.checks = t.on_off(); }},
    {"target-check", OptionKind::words, "WORD", "on or off", "on",
     "refuse PTX that uses what its .target or .version does not have, as ptxas "
     "does; off: run it anyway",
     door_everywhere,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.sim.target_check = t.on_off(); }},
    {"threads", OptionKind::whole, "N", HostThreads::words(),
     "0: all cores", "simulate with N host threads",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) {
       s.sim.threads = static_cast<int>(HostThreads::of(t));
     }},
    {"gpu", OptionKind::text, "NAME", "a name that `kiln devices --all` lists",
     "what the PTX needs", "simulate this GPU, such as h200 or rtx5090",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) {
       DeviceDescription::by_name(t.text); // throws where there is none
       s.gpu = t.text;
     }},
    {"sms", OptionKind::whole, "N", Multiprocessors::words(),
     "0: as the GPU has", "simulate a GPU with N multiprocessors",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sms = static_cast<int>(Multiprocessors::of(t)); }},
    {"max-instructions", OptionKind::whole, "N", FromNought::words(),
     "250000000",
     "end a launch when a CTA has executed N warp instructions; 0: never",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.max_instructions = FromNought::of(t); }},
    {"time-limit", OptionKind::seconds, "SECONDS",
     "a number of seconds from 0 on", "0",
     "end a launch after so many seconds, and refuse PTX whose reading takes "
     "as long; 0: never",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.time_limit_s = t.not_negative(); }},
    {"allow", OptionKind::list, "ID", "an id that `kiln explain` lists", "none",
     "hide findings with this ID", door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.allow.push_back(findingOf(t)); }},
    {"warn", OptionKind::list, "ID", "an id that `kiln explain` lists", "none",
     "downgrade errors with this ID to warnings", door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.warn.push_back(findingOf(t)); }},
    {"report", OptionKind::path, "FILE", "a file name", "none",
     "write launches, findings and the verdict to this file: as a page where "
     "its name ends in .html, as SARIF 2.1.0 where it ends in .sarif, as JUnit "
     "XML where it ends in .xml, as text where it ends in .txt, else as JSON",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.report_path = t.text; }},
    {"timeline", OptionKind::path, "FILE", "a file name, or -", "none",
     "write who did what when to this file, for Perfetto; -: print the first "
     "CTA as a table",
     door_launches,
     {},
     nullptr,
     [](S &s, const T &t) {
       s.timeline_path = t.text;
       s.sim.timeline = !t.text.empty();
     }},
    {"stats", OptionKind::flag, "", "on or off", "off",
     "print where the time of the simulation went", door_launches,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.sim.stats = t.on_off(); }},
    {"kernel", OptionKind::text, "REGEX", "a regular expression", "all",
     "check only kernels whose name matches; the others run unchecked",
     door_programs,
     {},
     nullptr,
     [](S &s, const T &t) { s.kernel = regexOf(t); }},
    {"launch", OptionKind::list, "N", FromOne::words(), "all",
     "check only the launch of this number", door_programs,
     {},
     nullptr,
     [](S &s, const T &t) { s.launches.push_back(FromOne::of(t)); }},
    {"capture", OptionKind::folder, "FOLDER", "a folder", "none",
     "write the chosen launches to this folder: PTX, launch file and memory, for "
     "`kiln sim FOLDER/NAME.json`",
     door_programs,
     {},
     nullptr,
     [](S &s, const T &t) { s.capture_folder = t.text; }},
    {"memory-limit", OptionKind::text, "BYTES",
     "a number of bytes from 0 on, with K, M or G after it for units of 1024",
     "0", "end a launch that takes the memory of this process beyond BYTES; 0: "
     "never",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.memory_limit_bytes = t.bytes(); }},
    {"max-findings", OptionKind::whole, "N", FromNought::words(), "1000",
     "keep N findings of a launch, errors first, and count the rest; 0: keep all",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) { s.sim.max_findings = FromNought::of(t); }},
    {"detail", OptionKind::words, "WORD", "on or off",
     "on where --report names a page (.html) or JSON",
     "record what a report page shows of a launch besides its findings: executions "
     "of each line, the timeline, mbarriers, shared memory",
     door_everywhere,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.detail = t.on_off(); }},
    {"profile", OptionKind::path, "FILE", "a file name, or -", "none",
     "count what each instruction costs and write it to this file: as a page for "
     "speedscope.app where its name ends in .speedscope.json, as a roofline where "
     "it ends in .svg, as a table where it ends in .txt, else as JSON; -: print "
     "the table",
     door_everywhere,
     {},
     nullptr,
     [](S &s, const T &t) {
       s.profile_path = t.text;
       s.sim.profile = !s.profile_path.empty();
     }},
    {"total-time-limit", OptionKind::seconds, "SECONDS",
     "a number of seconds from 0 on", "0",
     "end the launch that is running after so many seconds of the program, and "
     "refuse later ones; 0: never",
     door_programs,
     {},
     nullptr,
     [](S &s, const T &t) { s.total_time_limit_s = t.not_negative(); }},
    {"summary", OptionKind::flag, "", "on or off", "off",
     "print a table of the program's kernels at its end: launches, CTAs, warp "
     "instructions, time, findings",
     door_programs,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.has_summary = t.on_off(); }},
    {"verbose", OptionKind::flag, "", "on or off", "off",
     "print names of templates in full, not the first 60 characters of their "
     "arguments",
     door_programs,
     {"on", "off"},
     nullptr,
     [](S &s, const T &t) { s.is_verbose = t.on_off(); }},
    {"mma", OptionKind::words, "WORD", "exact or fast", "exact",
     "accumulate MMAs as tensor cores do, bit for bit (exact), or those of 16 "
     "bits and more in f32, one product after another (fast)",
     door_everywhere,
     {"exact", "fast"},
     nullptr,
     [](S &s, const T &t) { s.sim.is_mma_fast = t.word() == "fast"; }},
};

std::span<const CheckOption> check_options() { return kOptions; }

std::vector<Setting>
option_variables(std::span<const CheckOption> options) {
  std::vector<Setting> all;
  for (const CheckOption &option : options) {
    std::string variable = variable_name(option);
    std::optional<std::string> set = readVariable(variable);
    all.push_back({.variable = variable,
                   .meaning = option.help,
                   .value = set.value_or(option.fallback),
                   .is_default = !set});
  }
  return all;
}

DeviceDescription
CheckSettings::device(const DeviceDescription &fallback) const {
  DeviceDescription device =
      gpu.empty() ? fallback : DeviceDescription::by_name(gpu);
  if (sms > 0)
    device.sms = sms;
  return device;
}

SimOptions CheckSettings::sim_options(const DeviceDescription &fallback) const {
  SimOptions options = sim;
  options.device = device(fallback);
  options.detail = detail.value_or(shows_detail(report_path));
  SeededInterleaving first = interleavings.list().front();
  options.interleaving = first.kind;
  options.seed = first.seed;
  return options;
}

ExploreOptions
CheckSettings::explore_options(const DeviceDescription &fallback) const {
  return {interleavings, sim_options(fallback)};
}

} // namespace kiln
