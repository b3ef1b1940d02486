// RandomGemm: problems and schedules of random fields, most of them usual.
#pragma once

#include <kiln/kernels/gemm.h>

#include <random>

namespace kiln {

class RandomGemm {
public:
  explicit RandomGemm(unsigned seed) : engine_(seed) {}

  GemmProblem problem() {
    GemmProblem problem{.m = dim("m"), .n = dim("n"), .k = dim("k")};
    vary(problem.batch, [&] { return dim("batch"); });
    vary(problem.type, [&] { return pick({f16, bf16, tf32, e4m3, i8, u8}); });
    vary(problem.out, [&] { return pick({f32, f16, bf16, e4m3, i32}); });
    vary(problem.layout, [&] {
      return pick({GemmLayout::nn, GemmLayout::nt, GemmLayout::tt});
    });
    vary(problem.is_d_column_major, [] { return true; });
    vary(problem.accumulate, [&] { return std::optional(pick({f32, f16})); });
    for (auto field :
         {&GemmProblem::lda, &GemmProblem::ldb, &GemmProblem::ldc,
          &GemmProblem::ldd, &GemmProblem::batch_stride_a,
          &GemmProblem::batch_stride_b, &GemmProblem::batch_stride_c,
          &GemmProblem::batch_stride_d})
      vary(problem.*field, [&] { return std::optional(dim("lda")); });
    vary(problem.has_alpha, [] { return true; });
    vary(problem.has_beta, [] { return true; });
    vary(problem.bias, [&] { return pick({GemmBias::row, GemmBias::column}); });
    vary(problem.act, [&] {
      return pick({Activation::relu, Activation::gelu, Activation::silu});
    });
    return problem;
  }

  GemmSchedule schedule() {
    GemmSchedule schedule{
        .kind = pick({GemmKind::multistage, GemmKind::warp_specialized,
                      GemmKind::cooperative, GemmKind::pingpong}),
        .tile_m = pick({64, 128}),
        .tile_n = pick({64, 128, 256}),
        .tile_k = pick({32, 64, 128}),
        .stages = pick({1, 2, 3, 4, 5})};
    // Numbers that no fit would choose, so that they are never the usual ones.
    for (auto field :
         {&GemmSchedule::instruction_n, &GemmSchedule::consumers,
          &GemmSchedule::ctas, &GemmSchedule::epilogue_m,
          &GemmSchedule::epilogue_n, &GemmSchedule::producer_registers,
          &GemmSchedule::consumer_registers, &GemmSchedule::cluster_m,
          &GemmSchedule::cluster_n, &GemmSchedule::raster_group,
          &GemmSchedule::occupancy, &GemmSchedule::split_k})
      vary(schedule.*field, [&] { return pick({1009, 1013, 10091}); });
    vary(schedule.split, [] { return GemmSplit::n; });
    vary(schedule.is_a_in_registers, [] { return true; });
    vary(schedule.swizzle,
         [&] { return pick({Swizzle::none, Swizzle::b32, Swizzle::b64}); });
    vary(schedule.is_multicast, [] { return false; });
    vary(schedule.raster, [] { return Raster::along_m; });
    vary(schedule.is_swapped, [] { return true; });
    vary(schedule.split_k, [&] { return pick({2, 9}); });
    vary(schedule.is_split_by_grid, [] { return true; });
    return schedule;
  }

private:
  template <typename T> T pick(std::initializer_list<T> list) {
    return list.begin()[engine_() % list.size()];
  }
  /// Change a field, one time in five.
  template <typename T, typename Make> void vary(T &field, Make make) {
    if (engine_() % 5 == 0)
      field = make();
  }
  Dim dim(const char *own) {
    Dim named = Dim::argument(pick<const char *>({"max", "a_", "_b", "x"}));
    return pick<Dim>({Dim(8), Dim(64), Dim(4096), Dim::argument(own), named,
                      named + 8, named * Dim::argument("x1")});
  }

  std::mt19937 engine_;
};

} // namespace kiln
