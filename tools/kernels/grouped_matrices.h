// grouped_matrices: the matrices of a grouped product, on the host and on a
// device.
#pragma once

#include <kiln/run/device.h>
#include <kiln/kernels/grouped_gemm.h>

#include <cstddef>
#include <vector>

namespace kiln::cli {

/// On the host: A and B normally distributed, D poisoned.
struct GroupedMatrices {
  std::vector<std::byte> a, b, d;
  std::vector<float> a_scales, b_scales;
  std::vector<std::int32_t> numbers; ///< of rows

  GroupedMatrices(const GroupedGemmProblem &problem,
                  const std::vector<int> &group_rows, std::uint64_t seed);
  std::size_t bytes() const { return a.size() + b.size() + d.size(); }
  GroupedComparison compare(const GroupedGemmProblem &problem,
                            const std::vector<int> &group_rows) const;
};

/// Copies of them on a device.
struct GroupedBuffers {
  Buffer a, b, d, numbers, a_scales, b_scales;

  GroupedBuffers(Device &device, const GroupedMatrices &host);
  /// Of build_grouped_gemm's kernel.
  std::vector<LaunchArgument> arguments(const Kernel &kernel) const;
  /// D.
  void fetch(Device &device, GroupedMatrices &host) const;
};

} // namespace kiln::cli
