// Gemm: what is refused of problems and schedules.
#include "Refused.h"

using namespace errors;

/// `problem` and `schedule` do not go together, for this reason.
static void refused_gemm(const GemmProblem &problem,
                         const GemmSchedule &schedule,
                         const std::string &message) {
  refused(0, [&] { build_gemm(problem, schedule); }, message);
}

TEST(GemmErrors, Dimensions) {
  refused_gemm({.m = 0}, {}, "M is 0; it must be at least 1");
  refused_gemm({.k = Dim::argument("k") * 2}, {},
               "K is mul(k, 2); a runtime dimension is one argument");
}

TEST(GemmErrors, Types) {
  refused_gemm({.type = f32}, {}, "gemm multiplies f16 or bf16, not f32");
  refused_gemm({.out = i32}, {}, "gemm writes f32, f16 or bf16, not i32");
}

TEST(GemmErrors, RowsOfWholeChunks) {
  refused_gemm({.k = 100}, {},
               "A has rows of K 100 elements, 200 bytes, in layout tn; TMA "
               "needs a multiple of 16 bytes: make K a multiple of 8");
  refused_gemm({.n = 257, .layout = GemmLayout::tt}, {},
               "B has rows of N 257 elements, 514 bytes, in layout tt; TMA "
               "needs a multiple of 16 bytes: make N a multiple of 8");
  refused_gemm({.m = 1, .layout = GemmLayout::nn}, {},
               "A has rows of M 1 elements, 2 bytes, in layout nn; TMA needs a "
               "multiple of 16 bytes: make M a multiple of 8");
}

TEST(GemmErrors, Tiles) {
  refused_gemm({}, {.tile_m = 96},
               "tile 96x128x64: M must be 64, 128, 192 or 256");
  refused_gemm({}, {.tile_n = 100},
               "tile 128x100x64: N must be a multiple of 8 from 8 to 256 in "
               "layout tn");
  refused_gemm({.layout = GemmLayout::tt}, {.tile_n = 96},
               "tile 128x96x64: N must be a multiple of 64 from 64 to 256 in "
               "layout tt");
  refused_gemm({}, {.tile_k = 32},
               "tile 128x128x32: K must be 64, 128, 192 or 256");
  refused_gemm({}, {.tile_m = 256, .tile_n = 128},
               "tile 256x128x64: its accumulator takes 256 registers of each "
               "thread; the warpgroup that multiplies can hold 192");
}

TEST(GemmErrors, Stages) {
  refused_gemm({}, {.stages = 0}, "0 stages; at least 1 is needed");
  refused_gemm({}, {.stages = 9},
               "9 stages of 128x128x64 do not fit into shared memory; 7 do");
}

TEST(GemmErrors, RegistersThatWouldHang) {
  GemmSchedule schedule{.producer_registers = 256, .consumer_registers = 256};
  EXPECT_NO_THROW(build_gemm({}, schedule));
  schedule.consumer_registers = 260;
  EXPECT_THROW(build_gemm({}, schedule), UserError);
}

TEST(GemmErrors, Words) {
  refused(
      0, [] { parse_gemm_layout("xx"); },
      "'xx' is no layout; use one of tn, nn, nt, tt");
  refused(
      0, [] { parse_gemm_kind("fast"); },
      "'fast' is no schedule; use one of multistage, warp-specialized");
}
