// attention_command: one attention from its sizes to a verdict.
#include "attention_tensors.h"
#include "commands.h"
#include "kernel_command.h"
#include "kernel_run.h"
#include "console/say.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>

namespace kiln::cli {

/// Launches that are timed after the verified one.
static constexpr int kTimedAttentions = 10;

namespace {

struct AttentionCommand {
  std::vector<int> sizes;
  std::string type = "bf16", layout = "bhsd";
  bool is_causal = false;
  double scale = 0, soft_cap = 0;
  std::vector<int> window, lengths, key_lengths;
  AttentionSchedule schedule;
  KernelCommand common;

  AttentionProblem problem() const;
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
  if (layout != "bhsd" && layout != "bshd")
    throw UserError(fmt::format(
        "'{}' is not a valid layout; expected bhsd or bshd", layout));
  AttentionProblem problem{.batch = sizes[0],
                           .heads = sizes[1],
                           .kv_heads = sizes[2],
                           .queries = sizes[3],
                           .keys = sizes[4],
                           .head_dim = sizes[5],
                           .type = parse_type(type),
                           .is_causal = is_causal,
                           .scale = scale,
                           .soft_cap = soft_cap};
  if (!window.empty())
    problem.window_left = window[0];
  if (window.size() > 1)
    problem.window_right = window[1];
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
  if (layout == "bshd")
    problem.layout = AttentionLayout::bshd;
  return problem.resolved();
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
  std::optional<AttentionTensors> host;
  return run(
      command.common,
      {.what = "attention",
       .problem = problem.to_string(),
       .build = [&] { return build_attention(problem, command.schedule); },
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
      .add_option("sizes", options->sizes,
                  "sequences, heads, key heads, queries, keys, and the head "
                  "dimension: 64, 128 or 256")
      .required()
      .expected(6);
  command.add_flag("--causal", options->is_causal,
                   "query i sees the keys up to i + keys - queries");
  command
      .add_option("--window", options->window,
                  "keys that a query sees before its own, and behind it: "
                  "LEFT or LEFT,RIGHT; -1: all")
      .delimiter(',')
      .expected(1, 2);
  command.add_option("--soft-cap", options->soft_cap,
                     "scores become C * tanh(score / C); 0: they do not");
  command
      .add_option("--lengths", options->lengths,
                  "pack sequences of these numbers of queries, one behind the "
                  "other")
      .delimiter(',');
  command
      .add_option("--key-lengths", options->key_lengths,
                  "and of these numbers of keys; as many as queries where it "
                  "is not given")
      .delimiter(',');
  command.add_option("--type", options->type, "of Q, K, V and O: bf16, f16")
      .capture_default_str();
  command
      .add_option("--layout", options->layout,
                  "the slowest dimension first: bhsd or bshd")
      .capture_default_str();
  command.add_option("--scale", options->scale,
                     "of the scores; 0: 1 / sqrt(head dimension)");
  command.add_option("--consumers", options->schedule.consumers,
                     "warpgroups of 64 queries; 0: by head dimension");
  command.add_option("--tile-n", options->schedule.tile_n,
                     "keys of a block; 0: by head dimension");
  command.add_option("--stages", options->schedule.stages,
                     "blocks of K and of V in shared memory; 0: by head "
                     "dimension");
  command.add_option("--q-stages", options->schedule.q_stages,
                     "tiles of Q in shared memory; 0: by head dimension");
  options->common.add_to(command);
  command.callback([&action, options] {
    action = [options] { return run_command(*options); };
  });
}

} // namespace kiln::cli
