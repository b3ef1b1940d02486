// Attention: fused attention against float64, under every order.
#include "Draws.h"
#include "conformance/Conformance.h"

#include <kiln/kernels/attention.h>
#include <kiln/measure/reference.h>
#include <kiln/run/run.h>

#include <fmt/format.h>

using namespace conformance;

class Attention : public OnDevice {};
INSTANTIATE_ON_DEVICES(Attention);

namespace {
/// Host memory of a problem, with random numbers in it.
struct Tensors {
  std::vector<std::uint16_t> q, k, v, o;
  std::vector<float> lse;

  Tensors(const AttentionProblem &problem, unsigned seed) {
    AttentionProblem known = problem.resolved();
    auto batch = std::size_t(known.stored_batch());
    std::size_t rows = batch * known.heads * known.stored_queries();
    std::size_t keys = batch * known.kv_heads * known.stored_keys();
    for (auto *of : {&q, &k, &v, &o}) {
      bool is_of_queries = of == &q || of == &o;
      of->assign((is_of_queries ? rows : keys) * known.head_dim, 0xffff);
      if (of != &o)
        fill_random(known.type, of->data(), of->size(), ++seed, -2, 2);
    }
    lse.assign(rows, NAN);
  }
};
} // namespace

static void check_on(Device &device, const Kernel &kernel,
                     const AttentionProblem &problem, unsigned seed,
                     AttentionOffsets offsets = {}) {
  Tensors host(problem, seed);
  LaunchResult result =
      problem.is_packed()
          ? try_run(device, kernel, host.q, host.k, host.v, host.o, host.lse,
                    offsets.queries, offsets.keys)
          : try_run(device, kernel, host.q, host.k, host.v, host.o, host.lse);
  EXPECT_TRUE(result.findings.empty())
      << problem.to_string() << ": " << result.to_string();
  AttentionComparison comparison =
      compare_attention(problem, host.q.data(), host.k.data(), host.v.data(),
                        host.o.data(), host.lse.data(), offsets);
  EXPECT_TRUE(comparison.ok())
      << problem.to_string() << ": " << comparison.first_wrong;
}

/// On the simulator under all orders, with few multiprocessors, so that each
/// CTA has several tiles.
static void check(const std::string &id, const AttentionProblem &problem,
                  const AttentionSchedule &schedule = {}, unsigned seed = 1,
                  const AttentionOffsets &offsets = {}) {
  Kernel kernel = compile_checked(build_attention(problem, schedule));
  if (id != "sim") {
    if (Device *device = conformance::open(id).device.get())
      check_on(*device, kernel, problem, seed, offsets);
    return;
  }
  for (Interleaving order : {Interleaving::eager, Interleaving::lazy, Interleaving::random}) {
    SimOptions options{.interleaving = order, .seed = seed};
    options.device.sms = 2;
    check_on(*open_sim(options), kernel, problem, seed, offsets);
  }
}

TEST_P(Attention, EveryHeadDimension) {
  for (int head_dim : {64, 128, 256})
    check(GetParam(), {.heads = 2,
                       .queries = 200,
                       .keys = 300,
                       .head_dim = head_dim,
                       .type = head_dim == 128 ? f16 : bf16});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, Causal) {
  // As many keys as queries, more, and fewer: then some rows see none.
  for (auto [queries, keys] :
       {std::pair{300, 300}, std::pair{70, 333}, std::pair{300, 100}})
    check(GetParam(),
          {.queries = queries, .keys = keys, .head_dim = 64, .is_causal = true},
          {.consumers = 2, .tile_n = 64});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, OneQueryAndOneKey) {
  check(GetParam(), {.queries = 1, .keys = 1, .head_dim = 64});
  check(GetParam(),
        {.queries = 1, .keys = 500, .head_dim = 64, .is_causal = true});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, HeadsShareKeys) {
  for (int kv_heads : {1, 2})
    check(GetParam(),
          {.batch = 2,
           .heads = 4,
           .kv_heads = kv_heads,
           .queries = 60,
           .keys = 130,
           .head_dim = 64,
           .scale = 0.3,
           .layout = AttentionLayout::bshd},
          {.consumers = 2, .tile_n = 64});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, SlidingWindow) {
  // Both sides, with the causal mask, and windows that some queries miss.
  for (auto [left, right] :
       {std::pair{70, 20}, std::pair{40, -1}, std::pair{0, 0}})
    check(GetParam(),
          {.heads = 2,
           .queries = 200,
           .keys = 330,
           .head_dim = 64,
           .window_left = left,
           .window_right = right},
          {.consumers = 2, .tile_n = 32});
  check(GetParam(),
        {.queries = 300,
         .keys = 100,
         .head_dim = 64,
         .is_causal = true,
         .window_left = 33},
        {.consumers = 2, .tile_n = 32});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, SoftCap) {
  check(GetParam(),
        {.queries = 130, .keys = 100, .head_dim = 64, .soft_cap = 1.5},
        {.consumers = 2, .tile_n = 64});
  check(GetParam(),
        {.queries = 70,
         .keys = 100,
         .head_dim = 128,
         .is_causal = true,
         .soft_cap = 50},
        {.tile_n = 64});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, PackedSequences) {
  // Empty ones, of one row, of a tile and more; more keys than queries, and
  // none; rows behind the last sequence are nobody's.
  for (bool is_causal : {false, true})
    check(GetParam(),
          {.batch = 6,
           .heads = 2,
           .kv_heads = 1,
           .queries = 150,
           .keys = 170,
           .head_dim = 64,
           .is_causal = is_causal,
           .layout = is_causal ? AttentionLayout::bshd : AttentionLayout::bhsd,
           .total_queries = 350,
           .total_keys = 320},
          {.consumers = 2, .tile_n = 64}, 1,
          {{0, 1, 1, 129, 279, 284, 338}, {0, 1, 41, 110, 280, 280, 310}});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, PackedSequencesMayAllBeEmpty) {
  check(GetParam(),
        {.batch = 2,
         .queries = 3,
         .keys = 5,
         .head_dim = 64,
         .total_queries = 3,
         .total_keys = 5},
        {.consumers = 2, .tile_n = 16}, 1, {{0, 0, 0}, {0, 5, 5}});
  SKIP_WITHOUT_DEVICE();
}

TEST_P(Attention, NobodysRowsStayAsTheyAre) {
  AttentionProblem problem{.batch = 2,
                           .queries = 70,
                           .keys = 70,
                           .head_dim = 64,
                           .total_queries = 200,
                           .total_keys = 100};
  std::vector<std::int32_t> offsets = {0, 70, 90};
  Kernel kernel = compile_checked(build_attention(problem));
  SKIP_WITHOUT_DEVICE();
  Tensors host(problem, 3);
  run(*conformance::open(GetParam()).device, kernel, host.q, host.k, host.v,
      host.o, host.lse, offsets, offsets);
  for (std::size_t i = 90 * 64; i < host.o.size(); ++i)
    ASSERT_EQ(host.o[i], 0xffff) << i;
  for (std::size_t i = 0; i < host.lse.size(); ++i)
    ASSERT_EQ(std::isnan(host.lse[i]), i >= 90) << i;
}

/// One of a few numbers.
static int one_of(std::mt19937 &random, const std::vector<int> &numbers) {
  return numbers[random() % numbers.size()];
}

TEST_P(Attention, RandomProblems) {
  SKIP_WITHOUT_DEVICE();
  std::mt19937 random(2024);
  for (int draw = 0; draw < draws(30); ++draw) {
    int sharing = one_of(random, {1, 2, 3});
    AttentionProblem problem;
    problem.batch = one_of(random, {1, 1, 2});
    problem.kv_heads = one_of(random, {1, 1, 2});
    problem.heads = problem.kv_heads * sharing;
    problem.queries = 1 + static_cast<int>(random() % 200);
    problem.keys = 1 + static_cast<int>(random() % 300);
    problem.head_dim = one_of(random, {64, 64, 64, 128, 128, 256});
    problem.type = one_of(random, {0, 1}) ? f16 : bf16;
    problem.is_causal = one_of(random, {0, 1}) != 0;
    if (one_of(random, {0, 1}))
      problem.layout = AttentionLayout::bshd;
    if (one_of(random, {0, 0, 1}))
      problem.window_left = static_cast<int>(random() % 200);
    if (!problem.is_causal && one_of(random, {0, 0, 1}))
      problem.window_right = static_cast<int>(random() % 100);
    problem.soft_cap = one_of(random, {0, 0, 0, 2, 30});
    AttentionOffsets offsets;
    if (one_of(random, {0, 0, 1})) {
      for (auto [numbers, most] : {std::pair{&offsets.queries, problem.queries},
                                   std::pair{&offsets.keys, problem.keys}}) {
        *numbers = {0};
        for (int i = 0; i < problem.batch; ++i)
          numbers->push_back(numbers->back() +
                             static_cast<int>(random() % (most + 1)));
      }
      problem.total_queries = std::max(problem.queries, offsets.queries.back());
      problem.total_keys = std::max(problem.keys, offsets.keys.back());
    }
    AttentionSchedule schedule;
    schedule.consumers = problem.head_dim == 64 ? one_of(random, {0, 2}) : 0;
    schedule.tile_n = one_of(random, {0, 16, 48, 64});
    schedule.stages = one_of(random, {0, 1, 2});
    SCOPED_TRACE(fmt::format("draw {}: {}, blocks of {}", draw,
                             problem.to_string(), schedule.tile_n));
    Kernel kernel =
        compile(build_attention(problem, schedule), {.use_cache = false});
    if (GetParam() != "sim") {
      if (Device *device = conformance::open(GetParam()).device.get())
        check_on(*device, kernel, problem, draw, offsets);
      continue;
    }
    SimOptions options{.interleaving = static_cast<Interleaving>(draw % 3),
                       .seed = static_cast<std::uint64_t>(draw)};
    options.device.sms = one_of(random, {1, 2, 132});
    check_on(*open_sim(options), kernel, problem, draw, offsets);
  }
}
