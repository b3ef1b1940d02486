// What attention refuses.
#include "Refused.h"

#include <kiln/kernels/attention.h>

using namespace errors;

static void refuse(const AttentionProblem &problem, const std::string &message,
                   const AttentionSchedule &schedule = {}) {
  refused(0, [&] { build_attention(problem, schedule); }, message);
}

TEST(AttentionErrors, Problems) {
  refuse({.batch = 0}, "attention with 0 sequences; at least 1 is needed");
  refuse({.keys = -3}, "attention with -3 keys; at least 1 is needed");
  refuse({.heads = 6, .kv_heads = 4},
         "6 heads cannot share 4 key heads evenly; use a divisor of 6");
  refuse({.head_dim = 96},
         "a head dimension of 96; attention takes 64, 128 and 256");
  refuse({.type = f32}, "attention of bf16 or f16, not of f32");
  refuse({.scale = -1}, "scores scaled by -1; use a number greater than 0");
  refuse({.is_causal = true, .window_right = 3},
         "a causal mask with a window of 3 keys behind a query; use one of "
         "them");
  refuse({.window_left = -2},
         "a window of -2 keys before and -1 behind a query; use 0 or more, or "
         "-1 for all");
  refuse({.soft_cap = -1},
         "scores capped at -1; use a number greater than 0, or 0 for none");
  refuse({.queries = 20, .keys = 30, .total_queries = 19, .total_keys = 30},
         "packed sequences of 19 queries and 30 keys in all; the longest ones "
         "have 20 and 30");
  refuse(
      {.batch = 1 << 15, .heads = 1 << 15, .queries = 2},
      "attention of 32768 sequences with 32768 heads of 2 queries and 1 keys "
      "is too large to count in 32 bits");
}

TEST(AttentionErrors, Schedules) {
  refuse({}, "attention with 4 consumers; 2 or 3 can be", {.consumers = 4});
  refuse({}, "attention with blocks of 40 keys; use a multiple of 16 up to 256",
         {.tile_n = 40});
  refuse({}, "attention with -1 stages; at least 1 is needed", {.stages = -1});
}
