// GemmWords: problems and schedules as text, there and back, and what is
// refused.
#include "RandomGemm.h"

#include <kiln/kernels/gemm_reference.h>

#include "../support/ErrorText.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kiln {

TEST(GemmWords, OfTheUsualProblemAndSchedule) {
  EXPECT_EQ(GemmProblem().to_string(), "1024x1024x1024 f16 -> f32 tn");
  EXPECT_EQ(GemmSchedule().to_string(), "warp-specialized 128x128x64 stages=4");
}

TEST(GemmWords, OfEveryField) {
  GemmProblem problem{.m = Dim::argument("m"),
                      .batch = 4,
                      .type = e5m2,
                      .out = bf16,
                      .layout = GemmLayout::nt,
                      .is_d_column_major = true,
                      .accumulate = f16,
                      .lda = 1032,
                      .ldb = Dim::argument("k") + 8,
                      .ldc = 3,
                      .ldd = Dim::argument("box"),
                      .batch_stride_a = 0,
                      .batch_stride_b = 5000,
                      .batch_stride_c = 7,
                      .batch_stride_d = Dim::argument("box"),
                      .has_alpha = true,
                      .has_beta = true,
                      .bias = GemmBias::column,
                      .act = Activation::gelu};
  EXPECT_EQ(problem.to_string(),
            "mx1024x1024 e5m2 -> bf16 nt batch=4 acc=f16 lda=1032 "
            "ldb=(add(k, 8)) ldc=3 ldd=(box) stride-a=0 stride-b=5000 "
            "stride-c=7 stride-d=(box) d=column alpha beta bias=column "
            "act=gelu");
  EXPECT_EQ(GemmProblem::parse(problem.to_string()), problem);
  GemmSchedule schedule{.kind = GemmKind::pingpong,
                        .tile_m = 64,
                        .tile_n = 192,
                        .tile_k = 128,
                        .stages = 3,
                        .instruction_n = 96,
                        .consumers = 3,
                        .split = GemmSplit::n,
                        .is_a_in_registers = true,
                        .swizzle = Swizzle::b64,
                        .cluster_m = 2,
                        .cluster_n = 4,
                        .split_k = 3,
                        .is_split_by_grid = true,
                        .is_swapped = true,
                        .is_multicast = false,
                        .raster = Raster::along_m,
                        .raster_group = 16,
                        .ctas = 128,
                        .occupancy = 2,
                        .epilogue_m = 64,
                        .epilogue_n = 32,
                        .producer_registers = 24,
                        .consumer_registers = 240};
  EXPECT_EQ(
      schedule.to_string(),
      "pingpong 64x192x128 stages=3 instr-n=96 consumers=3 "
      "split=n a-from=regs swizzle=64 cluster=2x4 multicast=off split-k=3 "
      "split-by=grid swap=on raster=m raster-group=16 ctas=128 occupancy=2 "
      "epilogue-tile=64x32 registers=24x240");
  EXPECT_EQ(GemmSchedule::parse(schedule.to_string()), schedule);
}

TEST(GemmWords, ThereAndBack) {
  RandomGemm random(1);
  for (int i = 0; i < 2000; ++i) {
    GemmProblem problem = random.problem();
    EXPECT_EQ(GemmProblem::parse(problem.to_string()), problem)
        << problem.to_string();
    GemmSchedule schedule = random.schedule();
    EXPECT_EQ(GemmSchedule::parse(schedule.to_string()), schedule)
        << schedule.to_string();
  }
}

TEST(GemmWords, WhatIsLeftOutIsUsualAndTheLastWordCounts) {
  EXPECT_EQ(GemmProblem::parse("64x128x256  bf16"),
            (GemmProblem{.m = 64, .n = 128, .k = 256, .type = bf16}));
  EXPECT_EQ(GemmProblem::parse("8x8x8 tn nt -> f16 d=column d=row"),
            (GemmProblem{
                .m = 8, .n = 8, .k = 8, .out = f16, .layout = GemmLayout::nt}));
  EXPECT_EQ(GemmSchedule::parse(""), GemmSchedule());
  EXPECT_EQ(GemmSchedule::parse("pingpong stages=3 64x64x64 stages=5"),
            (GemmSchedule{.kind = GemmKind::pingpong,
                          .tile_m = 64,
                          .tile_n = 64,
                          .stages = 5}));
}

TEST(GemmWords, RefusedOfAProblem) {
  auto refused = [](const char *text) {
    return errorText([&] { GemmProblem::parse(text); });
  };
  EXPECT_EQ(refused(""),
            "'' is not a valid problem: it must begin with MxNxK, for "
            "example 4096x4096x1024");
  EXPECT_EQ(refused("f16 8x8x8"), "'f16 8x8x8' is not a valid problem: it must "
                                  "begin with MxNxK, for example "
                                  "4096x4096x1024");
  EXPECT_EQ(refused("8x0x8"), "N is '0'; it must be a whole number from 1 on, "
                              "or the name of an argument");
  EXPECT_EQ(refused("8x8x8 lda=-3"),
            "lda is '-3'; it must be a whole number from 1 on, or the name of "
            "an argument");
  EXPECT_EQ(refused("8x8x8 stride-a=-3"),
            "stride-a is '-3'; it must be a whole number from 0 on, or the "
            "name of an argument");
  EXPECT_EQ(
      refused("8x8x8 fast"),
      "unknown problem field 'fast': a problem is MxNxK, then a type, "
      "-> and a type, a layout (tn, nn, nt, tt), alpha, beta, and batch, "
      "acc, lda, ldb, ldc, ldd, stride-a, stride-b, stride-c, stride-d, d, "
      "bias, act or scales with = and a value");
  EXPECT_EQ(refused("8x8x8 bias=both"),
            "'both' is not a valid bias; use one of none, row, column");
  EXPECT_EQ(
      refused("8x8x8 act=tanh"),
      "'tanh' is not a valid activation; use one of none, relu, gelu, silu");
  EXPECT_EQ(refused("8x8x8 d=up"),
            "'up' is not a valid layout of D; use one of row, column");
  EXPECT_NE(refused("8x8x8 ->").find("there is no type \"\""),
            std::string::npos);
  EXPECT_NE(refused("8x8x8 acc=f17").find("there is no type \"f17\""),
            std::string::npos);
}

TEST(GemmWords, RefusedOfASchedule) {
  auto refused = [](const char *text) {
    return errorText([&] { GemmSchedule::parse(text); });
  };
  EXPECT_EQ(
      refused("fast"),
      "unknown schedule field 'fast': a schedule is one of "
      "multistage, warp-specialized, cooperative, pingpong, vector, a tile "
      "MxNxK, and stages, instr-n, consumers, split, a-from, swizzle, "
      "cluster, cta-group, multicast, split-k, split-by, swap, repack, raster, "
      "raster-group, ctas, "
      "occupancy, epilogue-tile, registers with = and a value");
  for (const char *tile : {"128x128", "128x128x64x", "1x1x0", "128x12ax64"})
    EXPECT_EQ(
        refused(tile),
        fmt::format(
            "'{}' is not a valid tile; write MxNxK, for example 128x128x64",
            tile));
  EXPECT_EQ(refused("stages=x"), "stages is 'x'; it must be a whole number "
                                 "from 0 to 2147483647");
  EXPECT_EQ(refused("cluster=2"),
            "cluster is '2'; write two numbers, for example 2x1");
  EXPECT_EQ(refused("cluster=2x0"), "cluster is '0'; it must be a whole number "
                                    "from 1 to 2147483647");
  EXPECT_EQ(refused("split=k"),
            "'k' is not a valid value of split; use one of m, n");
  EXPECT_EQ(refused("a-from=disk"),
            "'disk' is not a valid value of a-from; use one of smem, regs");
  EXPECT_EQ(refused("swizzle=16"),
            "'16' is not a valid value of swizzle; use one of 0, 32, 64, 128");
  EXPECT_EQ(refused("multicast=yes"),
            "'yes' is not a valid value of multicast; use one of on, off");
  EXPECT_EQ(refused("raster=z"),
            "'z' is not a valid value of raster; use one of n, m");
}

TEST(GemmWords, StagesAreNoMoreThanTheKTilesOfACta) {
  auto stages = [](const char *problem, const char *schedule) {
    return fit(GemmProblem::parse(problem), GemmSchedule::parse(schedule))
        .stages;
  };
  EXPECT_EQ(stages("4096x4096x100 bf16 -> bf16 tn", "128x128x64 stages=4"), 2);
  // Of a persistent kernel each has several tiles one behind the other, or one.
  const char *persistent = "pingpong 128x128x64 stages=4";
  EXPECT_EQ(stages("4096x4096x100 bf16 -> bf16 tn", persistent), 4);
  EXPECT_EQ(stages("1024x1024x100 bf16 -> bf16 tn", persistent), 2);
  EXPECT_EQ(stages("mx1024x100 bf16 -> bf16 tn", persistent), 4);
  EXPECT_EQ(stages("1024x1024x100 bf16 -> bf16 tn",
                   "pingpong 128x128x64 stages=4 ctas=60"),
            4);
}

TEST(GemmProblem, Accumulators) {
  EXPECT_EQ(GemmProblem{}.accumulator(), f32);
  EXPECT_EQ(GemmProblem{.type = i8}.accumulator(), i32);
  EXPECT_EQ(GemmProblem{.type = u8}.accumulator(), i32);
  EXPECT_EQ((GemmProblem{.type = e4m3, .accumulate = f16}.accumulator()), f16);
}

TEST(GemmProblem, Strides) {
  GemmProblem problem{.m = 10, .n = 20, .k = 30};
  auto strides = [&] {
    return std::array{
        problem.stride_a().constant(), problem.stride_b().constant(),
        problem.stride_c().constant(), problem.stride_d().constant()};
  };
  EXPECT_EQ(strides(), (std::array<std::int64_t, 4>{30, 30, 20, 20}));
  problem.layout = GemmLayout::nt;
  problem.is_d_column_major = true;
  EXPECT_EQ(strides(), (std::array<std::int64_t, 4>{10, 20, 10, 10}));
  problem.lda = 11, problem.ldb = 21, problem.ldc = 12, problem.ldd = 13;
  EXPECT_EQ(strides(), (std::array<std::int64_t, 4>{11, 21, 12, 13}));
}

TEST(GemmReference, HasEveryFieldOfTheProblem) {
  ReferenceGemm gemm = reference_of({.m = 10,
                                     .n = 20,
                                     .k = 30,
                                     .batch = 2,
                                     .type = i8,
                                     .out = i32,
                                     .layout = GemmLayout::nt,
                                     .is_d_column_major = true,
                                     .ldd = 16,
                                     .batch_stride_b = 0,
                                     .batch_stride_d = 400,
                                     .bias = GemmBias::row,
                                     .act = Activation::relu});
  EXPECT_EQ(gemm.a_elements(), 2 * 30 * 10);
  EXPECT_EQ(gemm.b_elements(), 30 * 20);
  EXPECT_EQ(gemm.d_elements(), 400 + 20 * 16);
  EXPECT_EQ(gemm.bias_elements(), 10);
  EXPECT_EQ(gemm.type, i8);
  EXPECT_EQ(gemm.out, i32);
  EXPECT_EQ(gemm.accumulate, i32);
  EXPECT_FALSE(gemm.a_row_major);
  EXPECT_TRUE(gemm.b_row_major);
  EXPECT_FALSE(gemm.d_row_major);
  EXPECT_EQ(gemm.act, Activation::relu);
  EXPECT_EQ(errorText([] { reference_of({.n = Dim::argument("n")}); }),
            "n is known only at launch; a constant is needed here");
}

} // namespace kiln
