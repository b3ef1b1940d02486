// prove_command: a launch in every interleaving.
//
// The last line begins with the verdict: proved, counterexample or gave up.
#include "commands.h"
#include "console/output_file.h"
#include "console/say.h"
#include "console/show_findings.h"
#include "launch_files.h"
#include "options/check_flags.h"
#include "prove_launch.h"

#include <kiln/check/launch_file.h>
#include <kiln/check/sim.h>

#include <fmt/format.h>
#include <utility>

namespace kiln::cli {

namespace {

struct ProveCommand {
  std::string ptx_path, launch_path;
  std::string save_path; ///< of the counterexample; empty: none is written
  std::uint64_t most = ProveOptions{}.max_interleavings;
  bool is_brute_force = false;
  CheckFlags check;
};

} // namespace

/// What is wrong with what a run left; empty: nothing.
static std::string judge(const PreparedJob &job) {
  std::vector<LaunchJob::Bytes> memory = job.memory();
  for (std::size_t i = 0; i < memory.size(); ++i) {
    const auto &want = job.job().expected[i];
    if (!want)
      continue;
    BufferComparison compared =
        compare_buffer(job.job().file.buffers[i], memory[i], *want);
    if (compared.wrong)
      return compared.first.empty() ? "a result is wrong"
                                    : compared.first.front();
  }
  return "";
}

/// Prove one launch of a job; those before it have been executed.
static Proof prove_one(const PreparedJob &job, std::size_t index,
                       const ProveCommand &command,
                       const CheckSettings &settings) {
  ProveOptions options =
      prove_options(settings, job.job().sim_options(settings.sim));
  options.max_interleavings = command.most;
  options.is_brute_force = command.is_brute_force;
  if (index + 1 == job.descriptions().size())
    options.judge = [&] { return judge(job); };
  return prove_launch(job.device(), job.descriptions()[index],
                      std::move(options));
}

static void save(const std::string &path, const ProveCommand &command,
                 const PreparedJob &job, std::size_t launch,
                 const Proof &proof) {
  Counterexample{.ptx_paths = job.job().ptx_paths,
                 .launch_path = command.launch_path,
                 .launch = launch,
                 .cluster = proof.cluster,
                 .path = proof.path}
      .save(path);
  report("saved", "{}; `kiln sim --replay {}` makes these choices again", path,
         path);
}

static ExitStatus run_command(ProveCommand command) {
  if (command.launch_path.empty() && names_its_ptx(command.ptx_path))
    std::swap(command.launch_path, command.ptx_path);
  if (command.launch_path.empty())
    throw UserError("`kiln prove` takes --launch FILE, or a launch file that "
                    "names its PTX");
  CheckSettings settings = command.check.settings();
  check_output("--save", command.save_path);
  LaunchJob loaded = LaunchJob::load(command.ptx_path, command.launch_path);
  SimOptions sim =
      settings
          .explore_options(settings.gpu.empty() ? loaded.device()
                                                : DeviceDescription::h200())
          .sim;
  settings.sim = loaded.sim_options(std::move(sim));
  PreparedJob job(std::move(loaded), open_sim(settings.sim));
  Proof last;
  Outputs outputs;
  for (std::size_t i = 0; i < job.descriptions().size(); ++i) {
    last = prove_one(job, i, command, settings);
    if (last.verdict != ProofVerdict::proved) {
      for (Finding &finding : last.result.findings) {
        job.name_places(finding);
        show_finding(finding);
      }
      if (last.verdict == ProofVerdict::counterexample &&
          !command.save_path.empty())
        outputs.attempt(
            [&] { save(command.save_path, command, job, i, last); });
      break;
    }
    if (i + 1 < job.descriptions().size())
      say("launch {}: {}", i + 1, last.to_string());
  }
  say("{}", last.to_string());
  return outputs.conclude(exit_status_of(last));
}

void add_prove_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "prove", "run launches in every interleaving, and say that none has an "
               "error, or show one that has");
  auto options = std::make_shared<ProveCommand>();
  command
      .add_option(
          "kernel", options->ptx_path,
          "the PTX file, a saved kernel, or a launch file that names its "
          "PTX")
      .required();
  command.add_option("--launch", options->launch_path,
                     "the launch file: grid, arguments, what is expected");
  command
      .add_option("--most", options->most,
                  "give up after N interleavings; 0: never")
      .value_name("N")
      .capture_default_str();
  command
      .add_option(
          "--save", options->save_path,
          "write a counterexample to this file, for `kiln sim --replay`")
      .value_name("FILE");
  command.add_flag("--brute-force", options->is_brute_force,
                   "leave no order out, of small kernels alone");
  options->check.add_to(command, door_launches,
                        {"interleaving", "interleavings", "seed", "report",
                         "timeline", "stats", "profile", "detail", "threads"});
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
