// Gemm: what is refused of problems and schedules that have no words.
//
// What can be said in words is refused in the tables of docs/gemm.md, row by
// row (tests/docs/GemmPageTest.cpp).
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
  refused_gemm({.n = -8}, {}, "N is -8; it must be at least 1");
  refused_gemm({.k = Dim::argument("k") * 2}, {},
               "K is mul(k, 2); a runtime dimension is one argument");
  refused_gemm({.batch = 0}, {}, "batch is 0; it must be at least 1");
}

TEST(GemmErrors, NegativeNumbers) {
  refused_gemm({}, {.stages = -1}, "-1 stages; at least 1 is needed");
  refused_gemm({}, {.consumers = -1},
               "-1 consumers; a warp-specialized schedule has 1 or 2");
  refused_gemm({}, {.cluster_m = 0},
               "a cluster of 0x1 tiles; 1 to 8 CTAs form one");
  refused_gemm({}, {.raster_group = 0},
               "raster groups of 0; at least 1 is needed");
  refused_gemm({}, {.kind = GemmKind::cooperative, .ctas = -2},
               "-2 CTAs are no whole number of clusters of 1");
  refused_gemm({}, {.occupancy = 0},
               "0 CTAs per multiprocessor; 1 to 8 are possible");
}

TEST(GemmErrors, SumsThatCtasLeaveNoRegistersFor) {
  refused_gemm({},
               {.kind = GemmKind::pingpong,
                .tile_m = 128,
                .tile_n = 192,
                .stages = 1,
                .occupancy = 2},
               "an accumulator takes 192 registers of each thread, and 2 CTAs "
               "of 384 threads per multiprocessor have 80 each; use smaller "
               "tiles or fewer CTAs");
  refused_gemm({},
               {.tile_m = 64,
                .tile_n = 224,
                .stages = 1,
                .consumers = 1,
                .occupancy = 2},
               "an instruction of 224 columns needs 138 registers of each "
               "thread at entry, and 2 CTAs of 256 threads per multiprocessor "
               "have 128; use fewer columns or fewer CTAs");
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
      "'xx' is not a valid layout; use one of tn, nn, nt, tt");
  refused(
      0, [] { parse_gemm_kind("fast"); },
      "'fast' is not a valid schedule; use one of multistage, "
      "warp-specialized, "
      "cooperative, pingpong, vector");
  refused(
      0, [] { parse_gemm_bias("both"); },
      "'both' is not a valid bias; use one of none, row, column");
  refused(
      0, [] { parse_activation("elu"); },
      "'elu' is not a valid activation; use one of none, relu, gelu, silu");
}
