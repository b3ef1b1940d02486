// attention_tensors: fill, copy, compare.
#include "attention_tensors.h"
#include "kernel_command.h"

#include <kiln/measure/reference.h>
#include <kiln/run/arguments.h>
#include <kiln/run/host_memory.h>

#include <algorithm>

namespace kiln::cli {

AttentionTensors::AttentionTensors(const AttentionProblem &problem,
                                   const AttentionOffsets &offsets,
                                   std::uint64_t seed)
    : offsets(offsets) {
  auto batch = std::size_t(problem.stored_batch());
  auto rows = batch * problem.heads * problem.stored_queries();
  auto keys = batch * problem.kv_heads * problem.stored_keys();
  auto d = std::size_t(problem.head_dim);
  HostMemory together;
  double bytes = 4.0 * (double(rows) + double(keys)) * double(d);
  together.take(static_cast<std::uint64_t>(std::min(bytes, 1e18)),
                "Q, K, V and O");
  // NaN in every float type, so that what nobody wrote cannot pass.
  q = host_bytes("Q", rows * d * 2);
  k = host_bytes("K", keys * d * 2);
  v = host_bytes("V", keys * d * 2);
  o = host_bytes("O", rows * d * 2, std::byte{0xff});
  lse = host_bytes("lse", rows * 4, std::byte{0xff});
  fill_normal(problem.type, q.data(), rows * d, seed);
  fill_normal(problem.type, k.data(), keys * d, seed + 1);
  fill_normal(problem.type, v.data(), keys * d, seed + 2);
}

std::size_t AttentionTensors::bytes() const {
  return q.size() + k.size() + v.size() + o.size() + lse.size();
}

AttentionComparison AttentionTensors::compare(const AttentionProblem &problem,
                                              std::int64_t max_products) const {
  return compare_attention(problem, q.data(), k.data(), v.data(), o.data(),
                           reinterpret_cast<const float *>(lse.data()), offsets,
                           max_products);
}

AttentionBuffers::AttentionBuffers(Device &device, const AttentionTensors &host)
    : q(copied(device, host.q)), k(copied(device, host.k)),
      v(copied(device, host.v)), o(copied(device, host.o)),
      lse(copied(device, host.lse)),
      query_offsets(copied(device, host.offsets.queries)),
      key_offsets(copied(device, host.offsets.keys)) {}

std::vector<LaunchArgument>
AttentionBuffers::arguments(const Kernel &kernel) const {
  const NamedArgument given[] = {{"q", q},
                                 {"k", k},
                                 {"v", v},
                                 {"o", o},
                                 {"lse", lse},
                                 {"query_offsets", query_offsets},
                                 {"key_offsets", key_offsets}};
  return arguments_by_name(kernel, given);
}

void AttentionBuffers::fetch(Device &device, AttentionTensors &host) const {
  device.copy_out(host.o.data(), o, host.o.size());
  device.copy_out(host.lse.data(), lse, host.lse.size());
}

} // namespace kiln::cli
