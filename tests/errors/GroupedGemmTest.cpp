// What grouped GEMMs and their scheduler refuse.
#include "Refused.h"

#include <kiln/kernels/grouped_gemm.h>

using namespace errors;

static void refuse(const GroupedGemmProblem &problem,
                   const std::string &message,
                   const GroupedGemmSchedule &schedule = {}) {
  refused(0, [&] { build_grouped_gemm(problem, schedule); }, message);
}

TEST(GroupedGemmErrors, Problems) {
  refuse({.groups = 0}, "a grouped GEMM of 0 groups; at least 1 is needed");
  refuse({.k = -8},
         "a grouped GEMM of -8 elements along K; at least 1 is needed");
  refuse({.k = 8, .type = f32},
         "a grouped GEMM of bf16, f16 or e4m3, not of f32");
  refuse({.k = 16, .type = e4m3, .out = e4m3},
         "a grouped GEMM of e4m3 gives bf16, f16 or f32, not e4m3");
  refuse({.k = 16, .type = e4m3, .scaling = Scaling::mx},
         "a grouped GEMM with scales=mx; use none or blocks");
  refuse({.k = 16, .type = e4m3, .scaling = Scaling::tensor},
         "a grouped GEMM with scales=tensor; use none or blocks");
  refuse({.k = 8, .scaling = Scaling::blocks},
         "factors of blocks of bf16; e4m3 has them");
  refuse({.k = 8, .type = e4m3},
         "a grouped GEMM with K = 8; TMA takes rows of a multiple of 16 bytes, "
         "16 elements of e4m3");
  refuse({.k = 8, .type = f16, .out = bf16},
         "a grouped GEMM of f16 gives f16 or f32, not bf16");
  refuse({.k = 20}, "a grouped GEMM with K = 20; TMA takes rows of a multiple "
                    "of 16 bytes, 8 elements of bf16");
  refuse({.groups = 1 << 12,
          .rows = 1 << 20,
          .k = 8,
          .layout = GroupLayout::masked},
         "a grouped GEMM of 4096 groups of 1048576 rows and 1 columns is too "
         "large to count in 32 bits");
}

TEST(GroupedGemmErrors, Schedules) {
  refuse({.k = 64},
         "tiles of 96 rows of B; 1x1x1x64 bf16 -> bf16 contiguous has a "
         "multiple of 64 up to 256",
         {.tile_n = 96});
  refuse({.k = 64, .type = e4m3, .scaling = Scaling::blocks, .is_swiglu = true},
         "tiles of 256 rows of B; 1x1x1x64 e4m3 -> bf16 contiguous "
         "scales=blocks swiglu has a multiple of 128 up to 128",
         {.tile_n = 256});
  refuse({.k = 64}, "-1 CTAs; 0 stands for one on each multiprocessor",
         {.ctas = -1});
  refuse({.n = 256, .k = 64},
         "9 stages of 128x256 tiles; 1 to 4 fit into shared memory",
         {.stages = 9});
}

TEST(GroupedGemmErrors, Scheduler) {
  KernelBuilder kb("k", {.threads = 128});
  Tensor offsets = kb.tensor("offsets", i32, {9});
  auto rows = [&](const Value &group) -> GroupRows {
    return {offsets(group), offsets(group + 1)};
  };
  refused(
      __LINE__, [&] { GroupedTileScheduler(kb, 0, 128, 4, 1024, rows); },
      "a scheduler of 0 groups; at least 1 is needed");
  refused(
      __LINE__, [&] { GroupedTileScheduler(kb, 8, -1, 4, 1024, rows); },
      "a scheduler of -1 rows of a tile; at least 1 is needed");
  GroupedTileSchedulerOptions options{.ctas = -2};
  refused(
      __LINE__, [&] { GroupedTileScheduler(kb, 8, 64, 4, 9, rows, options); },
      "-2 CTAs; 0 stands for as many as fit");
}
