// gemm_sets: fill, copy, launch and look at it.
#include "gemm_sets.h"

#include <algorithm>

namespace kiln::cli {

static void fill_matrices(const ReferenceGemm &gemm, std::uint64_t seed,
                          GemmMatrices &host) {
  auto count = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  fill_normal(gemm.type, host.a.data(), count(gemm.a_elements()), seed);
  fill_normal(gemm.type, host.b.data(), count(gemm.b_elements()), seed + 1);
  if (!host.c.empty())
    fill_normal(gemm.out, host.c.data(), count(gemm.c_elements()), seed + 2);
}

static std::size_t bytes_of(const GemmMatrices &host) {
  return host.a.size() + host.b.size() + host.a_scales.size() +
         host.b_scales.size() + host.c.size() + host.bias.size() +
         host.d.size();
}

static CublasOperands operands_of(const GemmBuffers &buffers) {
  return {buffers.a, buffers.b,        buffers.c,       buffers.bias,
          buffers.d, buffers.a_scales, buffers.b_scales};
}

GemmSets::GemmSets(Device &device, const ReferenceGemm &gemm, bool has_c,
                   std::uint64_t seed)
    : device_(device), host_(gemm, has_c, seed) {
  fill_matrices(gemm, seed, host_);
  gemm_ = host_.of(gemm);
  int count = buffer_sets(bytes_of(host_), device.description());
  for (int i = 0; i < count; ++i)
    sets_.push_back(copy_in(device, host_));
}

Contender GemmSets::contender(std::string name, const Kernel &kernel) const {
  Contender contender{std::move(name), {}};
  std::vector<LaunchArgument> workspaces; // of one launch at a time
  for (const GemmBuffers &buffers : sets_) {
    std::vector<LaunchArgument> arguments =
        launch_arguments(kernel, gemm_, buffers);
    auto given = static_cast<std::ptrdiff_t>(arguments.size());
    arguments.insert(arguments.end(), workspaces.begin(), workspaces.end());
    arguments = with_workspaces(device_, kernel, arguments);
    workspaces.assign(arguments.begin() + given, arguments.end());
    contender.launches.push_back(
        [workspaces, submit = device_.prepare(
                         resolve(kernel, arguments, device_.description()))](
            const Stream &stream) { submit(stream); });
  }
  return contender;
}

Contender GemmSets::contender(std::string name,
                              const std::shared_ptr<CublasPlan> &plan) const {
  Contender contender{std::move(name), {}};
  for (const GemmBuffers &buffers : sets_)
    contender.launches.push_back(
        [plan, operands = operands_of(buffers)](const Stream &stream) {
          plan->enqueue(operands, stream);
        });
  return contender;
}

Comparison GemmSets::verify(const Contender &contender) {
  const Buffer &d = sets_.front().d;
  std::fill(host_.d.begin(), host_.d.end(), std::byte{*gemm_.poison});
  device_.copy_in(d, host_.d.data(), host_.d.size());
  contender.launches.front()({});
  device_.copy_out(host_.d.data(), d, host_.d.size());
  device_.synchronize();
  return compare_gemm(gemm_, host_.d.data());
}

double GemmSets::operations() const {
  double operations = 2;
  for (std::int64_t extent : {gemm_.batch, gemm_.m, gemm_.n, gemm_.k})
    operations *= static_cast<double>(extent);
  return operations;
}

double GemmSets::bytes() const {
  std::int64_t operands = bytes_of(gemm_.type, (gemm_.m + gemm_.n) * gemm_.k);
  std::int64_t outputs =
      bytes_of(gemm_.out, gemm_.m * gemm_.n) * (gemm_.c ? 2 : 1);
  return static_cast<double>(gemm_.batch * (operands + outputs));
}

} // namespace kiln::cli
