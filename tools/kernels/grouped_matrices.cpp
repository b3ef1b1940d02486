// grouped_matrices: fill, copy, compare.
#include "grouped_matrices.h"
#include "kernel_command.h"

#include <kiln/measure/reference.h>
#include <kiln/run/arguments.h>
#include <kiln/run/host_memory.h>

namespace kiln::cli {

GroupedMatrices::GroupedMatrices(const GroupedGemmProblem &problem,
                                 const std::vector<int> &group_rows,
                                 std::uint64_t seed) {
  auto rows = static_cast<std::size_t>(problem.stored_rows());
  auto k = static_cast<std::size_t>(problem.k);
  auto n = static_cast<std::size_t>(problem.n);
  std::size_t b_count = problem.groups * problem.b_rows() * k;
  auto in = static_cast<std::size_t>(size_bytes(problem.type));
  auto out = static_cast<std::size_t>(size_bytes(problem.out));
  HostMemory together;
  together.take(rows * k * in, "A");
  together.take(b_count * in, "B");
  together.take(rows * n * out, "D");
  a = host_bytes("A", rows * k * in);
  b = host_bytes("B", b_count * in);
  // NaN in every float type, so that what nobody wrote cannot pass.
  d = host_bytes("D", rows * n * out, std::byte{0xff});
  fill_normal(problem.type, a.data(), rows * k, seed);
  fill_normal(problem.type, b.data(), b_count, seed + 1);
  numbers = row_numbers(problem, group_rows);
  if (problem.scaling == Scaling::none)
    return;
  std::size_t k_blocks = problem.k_blocks();
  a_scales.resize(rows * k_blocks);
  b_scales.resize(k_blocks * problem.n_blocks() * problem.halves() *
                  problem.groups);
  fill_random(Type::f32, a_scales.data(), a_scales.size(), seed + 2, 0.5, 2);
  fill_random(Type::f32, b_scales.data(), b_scales.size(), seed + 3, 0.5, 2);
}

GroupedComparison
GroupedMatrices::compare(const GroupedGemmProblem &problem,
                         const std::vector<int> &group_rows) const {
  return compare_grouped_gemm(
      problem, group_rows,
      {a.data(), b.data(), a_scales.data(), b_scales.data()}, d.data());
}

GroupedBuffers::GroupedBuffers(Device &device, const GroupedMatrices &host)
    : a(copied(device, host.a)), b(copied(device, host.b)),
      d(copied(device, host.d)), numbers(copied(device, host.numbers)) {
  if (host.a_scales.empty())
    return;
  a_scales = copied(device, host.a_scales);
  b_scales = copied(device, host.b_scales);
}

std::vector<LaunchArgument>
GroupedBuffers::arguments(const Kernel &kernel) const {
  const NamedArgument given[] = {{"a", a},
                                 {"b", b},
                                 {"d", d},
                                 {"offsets", numbers},
                                 {"counts", numbers},
                                 {"a_scales", a_scales},
                                 {"b_scales", b_scales}};
  return arguments_by_name(kernel, given);
}

void GroupedBuffers::fetch(Device &device, GroupedMatrices &host) const {
  device.copy_out(host.d.data(), d, host.d.size());
}

} // namespace kiln::cli
