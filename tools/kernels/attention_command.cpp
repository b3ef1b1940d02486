// attention_command: one attention from its sizes to a verdict.
#include "attention_tensors.h"
#include "commands.h"
#include "kernel_command.h"
#include "kernel_run.h"
#include "console/say.h"
#include "options/field_flags.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace kiln::cli {

/// Launches that are timed after the verified one.
static constexpr int kTimedAttentions = 10;

namespace {

struct AttentionCommand {
  std::vector<std::string> sizes;
  FieldFlags<AttentionProblem> fields;
  FieldFlags<AttentionSchedule> schedule_fields;
  std::vector<int> lengths, key_lengths;
  KernelCommand common;

  AttentionProblem problem() const;
  AttentionSchedule schedule() const;
  AttentionOffsets offsets() const;
};

} // namespace

/// Where packed sequences of these lengths begin.
static std::vector<std::int32_t> offsets_of(const std::vector<int> &lengths) {
  std::vector<std::int32_t> offsets = {0};
  for (int length : lengths)
    offsets.push_back(offsets.back() + length);
  return offsets;
}

AttentionOffsets AttentionCommand::offsets() const {
  return {offsets_of(lengths),
          offsets_of(key_lengths.empty() ? lengths : key_lengths)};
}

/// Refuse lengths that are not those of `count` sequences of at most `most`.
static void check_lengths(const char *option, const std::vector<int> &lengths,
                          int count, const char *what, int most) {
  if (static_cast<int>(lengths.size()) != count)
    throw UserError(fmt::format("{} has {} numbers; there are {} sequences",
                                option, lengths.size(), count));
  for (int length : lengths)
    if (length < 0 || length > most)
      throw UserError(fmt::format("{}: a sequence of {} {}; 0 to {} are "
                                  "possible",
                                  option, length, what, most));
}

AttentionProblem AttentionCommand::problem() const {
  AttentionProblem problem;
  set_sizes(problem, sizes);
  fields.apply_to(problem);
  if (lengths.empty() && !key_lengths.empty())
    throw UserError("--key-lengths without --lengths; give both");
  if (!lengths.empty()) {
    check_lengths("--lengths", lengths, problem.batch, "queries",
                  problem.queries);
    AttentionOffsets packed = offsets();
    if (key_lengths.empty())
      check_lengths("--lengths", lengths, problem.batch, "keys", problem.keys);
    else
      check_lengths("--key-lengths", key_lengths, problem.batch, "keys",
                    problem.keys);
    problem.total_queries = std::max(packed.queries.back(), problem.queries);
    problem.total_keys = std::max(packed.keys.back(), problem.keys);
  }
  return problem.resolved();
}

AttentionSchedule AttentionCommand::schedule() const {
  AttentionSchedule schedule;
  schedule_fields.apply_to(schedule);
  return schedule;
}

/// Run once into `host`; on a GPU some times more, for the time. False where
/// the simulator found an error.
static bool launch(Device &device, const AttentionProblem &problem, const Kernel &kernel,
                   AttentionTensors &host, const CheckSettings &settings,
                   Outputs &outputs) {
  AttentionBuffers buffers(device, host);
  return run_kernel(device, kernel, buffers.arguments(kernel),
                    {kTimedAttentions, problem.operations(host.offsets)},
                    settings, outputs, [&] {
                      buffers.fetch(device, host);
                      return std::vector<std::span<const std::byte>>{host.o,
                                                                     host.lse};
                    });
}

static ExitStatus verify(const AttentionProblem &problem,
                         const AttentionTensors &host) {
  AttentionComparison result = host.compare(problem);
  if (result.is_sampled)
    report("compared", "{} rows, spread over O", result.compared);
  if (result.ok()) {
    say("PASS max_rel_err={:.2e}, of lse {:.2e}\n", result.max_rel_err,
        result.max_lse_err);
    return ExitStatus::ok;
  }
  report("wrong", "{}", result.first_wrong);
  say("FAIL max_rel_err={:.2e}, of lse {:.2e}, {} of {} rows are wrong\n",
      result.max_rel_err, result.max_lse_err, result.wrong, result.compared);
  return ExitStatus::wrong;
}

static ExitStatus run_command(const AttentionCommand &command) {
  AttentionProblem problem = command.problem();
  AttentionSchedule schedule = command.schedule();
  std::optional<AttentionTensors> host;
  return run(
      command.common,
      {.what = "attention",
       .problem = problem.to_string(),
       .build = [&] { return build_attention(problem, schedule); },
       .launch =
           [&](Device &device, const Kernel &kernel,
               const CheckSettings &settings, Outputs &outputs) {
             host.emplace(problem, command.offsets(), command.common.data_seed);
             return launch(device, problem, kernel, *host, settings, outputs);
           },
       .verify = [&] { return verify(problem, *host); }});
}

void add_attention_command(Command app, Action &action) {
  Command command = app.add_subcommand(
      "attention", "build, run and verify O = softmax(scale * Q * K^T) * V");
  auto options = std::make_shared<AttentionCommand>();
  command
      .add_option("sizes", options->sizes, sizes_help<AttentionProblem>())
      .value_name("N")
      .required()
      .expected(6);
  options->fields.add_to(command);
  command
      .add_option("--lengths", options->lengths,
                  help_of<AttentionProblem>("total-queries"))
      .value_name("N")
      .delimiter(',');
  command
      .add_option("--key-lengths", options->key_lengths,
                  help_of<AttentionProblem>("total-keys"))
      .value_name("N")
      .delimiter(',');
  options->schedule_fields.add_to(command);
  options->common.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
