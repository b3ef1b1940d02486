// GemmRun: the arguments of a GEMM in the order its kernel takes them.
#include "GemmRun.h"

namespace conformance {

/// Small integers for integer types, so that products differ; else [-1, 1).
static std::vector<std::uint8_t> numbers(Type type, std::int64_t count,
                                         unsigned seed) {
  std::vector<std::uint8_t> bytes(count * size_bytes(type));
  double most = is_float(type) ? 1 : 9;
  fill_random(type, bytes.data(), count, seed, type == u8 ? 0 : -most, most);
  return bytes;
}

void expect_gemm(Device &device, const Kernel &kernel,
                 const GemmProblem &problem, const GemmSize &size,
                 unsigned seed) {
  GemmProblem sized = problem;
  sized.m = size.m, sized.n = size.n, sized.k = size.k;
  sized.batch = size.batch;
  ReferenceGemm reference = reference_of(sized);
  auto a = numbers(problem.type, reference.a_elements(), seed);
  auto b = numbers(problem.type, reference.b_elements(), seed + 100);
  auto d = poisoned(problem.out, reference.d_elements());
  std::vector<std::uint8_t> c, bias;
  std::vector<HostArgument> arguments = {a, b};
  if (problem.has_beta) {
    c = numbers(problem.out, reference.c_elements(), seed + 200);
    arguments.push_back(c);
  }
  if (problem.bias != GemmBias::none) {
    bias = numbers(problem.bias_type(), reference.bias_elements(), seed + 300);
    arguments.push_back(bias);
  }
  arguments.push_back(d);
  reference.a = a.data(), reference.b = b.data();
  reference.c = c.data(), reference.bias = bias.data();
  reference.poison = 0xFF;
  if (problem.has_alpha) {
    reference.alpha = 1.25;
    arguments.push_back(1.25f);
  }
  if (problem.has_beta) {
    reference.beta = -0.75;
    arguments.push_back(-0.75f);
  }
  for (const auto &[dim, value] : {std::pair{problem.m, size.m},
                                   {problem.n, size.n},
                                   {problem.k, size.k},
                                   {problem.batch, size.batch}})
    if (!dim.is_constant())
      arguments.push_back(value);
  LaunchResult result =
      try_run(device, kernel, std::span<const HostArgument>(arguments));
  for (const Finding &finding : result.findings)
    ADD_FAILURE() << kernel.name << ": " << finding.id << ": "
                  << finding.message;
  Comparison found = compare_gemm(reference, d.data());
  if (found.ok)
    return;
  ADD_FAILURE() << kernel.name << ", " << sized.to_string() << ": "
                << found.wrong << " of " << found.compared
                << " elements are wrong, " << found.touched_gaps
                << " between the rows were written";
  for (const Mismatch &wrong : found.first)
    ADD_FAILURE() << "d[" << wrong.batch << ", " << wrong.row << ", "
                  << wrong.col << "] is " << wrong.got << " and should be "
                  << wrong.want << " within " << wrong.tolerance;
}

} // namespace conformance
