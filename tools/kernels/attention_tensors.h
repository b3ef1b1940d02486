// attention_tensors: the tensors of an attention, on the host and on a device.
#pragma once

#include <kiln/kernels/attention.h>
#include <kiln/run/device.h>

#include <cstddef>
#include <vector>

namespace kiln::cli {

/// On the host: Q, K and V normally distributed, O and lse poisoned.
struct AttentionTensors {
  std::vector<std::byte> q, k, v, o, lse;
  AttentionOffsets offsets;

  AttentionTensors(const AttentionProblem &problem,
                   const AttentionOffsets &offsets, std::uint64_t seed);
  std::size_t bytes() const;
  /// Of more multiplications than that, some rows.
  AttentionComparison compare(const AttentionProblem &problem,
                              std::int64_t max_products = std::int64_t{1}
                                                          << 30) const;
};

/// Copies of them on a device.
struct AttentionBuffers {
  Buffer q, k, v, o, lse, query_offsets, key_offsets;

  AttentionBuffers(Device &device, const AttentionTensors &host);
  /// Of build_attention's kernel.
  std::vector<LaunchArgument> arguments(const Kernel &kernel) const;
  /// O and lse.
  void fetch(Device &device, AttentionTensors &host) const;
};

} // namespace kiln::cli
