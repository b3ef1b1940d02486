// kernel_problem: what is transposed, and who can load and store it.
#include "kernel_problem.h"

namespace kiln::gemm_kernel {

bool StoredMatrix::suits_tma(Type type, const Dim &batch) const {
  auto fits = [&](const Dim &elements) {
    return elements.is_constant() &&
           bytes_of(type, elements.constant()) % 16 == 0;
  };
  return fits(stride) && (!has_batch(batch) || fits(product));
}

KernelProblem::KernelProblem(const GemmProblem &given,
                             const GemmSchedule &schedule, bool with_tma)
    : problem(given),
      is_swapped(given.is_d_column_major != schedule.is_swapped),
      is_repacked(schedule.is_repacked), has_tma(with_tma) {
  if (!is_swapped)
    return;
  std::swap(problem.m, problem.n);
  std::swap(problem.lda, problem.ldb);
  std::swap(problem.batch_stride_a, problem.batch_stride_b);
  bool a_by_k = given.b_is_k_major(), b_by_k = given.a_is_k_major();
  problem.layout = a_by_k ? (b_by_k ? GemmLayout::tn : GemmLayout::tt)
                          : (b_by_k ? GemmLayout::nn : GemmLayout::nt);
  if (given.bias != GemmBias::none)
    problem.bias =
        given.bias == GemmBias::row ? GemmBias::column : GemmBias::row;
  problem.is_d_column_major = schedule.is_swapped;
}

StoredMatrix KernelProblem::a() const {
  bool by_k = problem.a_is_k_major();
  return {by_k ? problem.m : problem.k, by_k ? problem.k : problem.m,
          problem.stride_a(), problem.product_stride_a()};
}

StoredMatrix KernelProblem::b() const {
  bool by_k = problem.b_is_k_major();
  return {by_k ? problem.n : problem.k, by_k ? problem.k : problem.n,
          problem.stride_b(), problem.product_stride_b()};
}

Dim KernelProblem::tiles(const GemmSchedule &schedule) const {
  auto along = [](const Dim &extent, int tile, int cluster) {
    return ceil_div(extent, tile * cluster) * cluster;
  };
  return along(problem.m, schedule.tile_m, schedule.cluster_m) *
         along(problem.n, schedule.tile_n, schedule.cluster_n) * problem.batch;
}

bool KernelProblem::a_suits_tma() const {
  return a().suits_tma(problem.type, problem.batch);
}

bool KernelProblem::b_suits_tma() const {
  return b().suits_tma(problem.type, problem.batch);
}

int KernelProblem::producer_registers() const {
  if (uses_tma())
    return 40;
  int registers = 96;
  auto add = [&](const StoredMatrix &matrix, bool is_k_major, bool uses_tma) {
    if (!uses_tma && (!is_k_major || !matrix.stride.is_constant()))
      registers += 8;
  };
  add(a(), problem.a_is_k_major(), a_uses_tma());
  add(b(), problem.b_is_k_major(), b_uses_tma());
  return registers;
}

bool KernelProblem::stores_by_tma() const {
  if (problem.is_d_column_major || !has_tma)
    return false;
  StoredMatrix d{problem.m, problem.n, problem.stride_d(),
                 problem.product_stride_d()};
  return d.suits_tma(problem.out, problem.batch);
}

} // namespace kiln::gemm_kernel
