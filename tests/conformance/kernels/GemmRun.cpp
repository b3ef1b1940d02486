// GemmRun: a GEMM with random operands, held against a reference.
#include "GemmRun.h"

#include <kiln/run/arguments.h>
#include <kiln/run/run.h>

namespace conformance {

/// Small integers for integer types, so that products differ; [-4, 4) for
/// floats of less than a byte, else [-1, 1).
static std::vector<std::uint8_t> numbers(Type type, std::int64_t count,
                                         unsigned seed) {
  std::vector<std::uint8_t> bytes(bytes_of(type, count));
  double most = is_subbyte(type) ? 4 : is_float(type) ? 1 : 9;
  fill_random(type, bytes.data(), count, seed, type == u8 ? 0 : -most, most);
  return bytes;
}

/// Factors around 1, of each product or, of tensor, of all. Those of mx and nv
/// that belong to no row are NaN, and to no block of K 0.
static std::vector<std::uint8_t> factors(Scaling scaling, int batch,
                                         const ScaledOperand &operand,
                                         unsigned seed) {
  if (scaling == Scaling::tensor)
    batch = 1;
  Type type = block_of(scaling).type;
  std::int64_t count = scale_count(scaling, operand);
  std::vector<std::uint8_t> bytes(batch * bytes_of(type, count), 0xff);
  std::mt19937 random(seed);
  std::uniform_real_distribution<> around(0.125, 4);
  std::int64_t step = block_of(scaling).k,
               blocks = (operand.k + step - 1) / step;
  bool has_pieces = scaling == Scaling::mx || scaling == Scaling::nv;
  std::int64_t all = has_pieces ? (blocks + 3) / 4 * 4 : blocks;
  for (int b = 0; b < batch; ++b)
    for (std::int64_t row = 0; row < operand.rows; ++row)
      for (std::int64_t block = 0; block < all; ++block)
        store_bits(type, bytes.data(),
                   b * count + scale_index(scaling, operand, row, block * step),
                   block < blocks ? to_bits(type, around(random)) : 0);
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
  std::vector<std::uint8_t> a_scales, b_scales;
  if (problem.scaling != Scaling::none) {
    a_scales = factors(problem.scaling, size.batch, {true, size.m, size.k},
                       seed + 400);
    b_scales = factors(problem.scaling, size.batch, {false, size.n, size.k},
                       seed + 500);
  }
  if (problem.has_beta)
    c = numbers(problem.out, reference.c_elements(), seed + 200);
  if (problem.bias != GemmBias::none)
    bias = numbers(problem.bias_type(), reference.bias_elements(), seed + 300);
  reference.a = a.data(), reference.b = b.data();
  reference.a_scales = a_scales.data(), reference.b_scales = b_scales.data();
  reference.c = c.data(), reference.bias = bias.data();
  reference.poison = 0xFF;
  if (problem.has_alpha)
    reference.alpha = 1.25;
  if (problem.has_beta)
    reference.beta = -0.75;
  const std::string_view names[] = {"a",    "b",     "a_scales", "b_scales",
                                    "c",    "bias",  "d",        "alpha",
                                    "beta", "m",     "n",        "k",
                                    "batch"};
  const HostArgument given[] = {a,
                                b,
                                a_scales,
                                b_scales,
                                c,
                                bias,
                                d,
                                static_cast<float>(reference.alpha),
                                static_cast<float>(reference.beta),
                                size.m,
                                size.n,
                                size.k,
                                size.batch};
  std::vector<HostArgument> arguments;
  for (std::size_t i : argument_order(kernel, names))
    arguments.push_back(given[i]);
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

static GemmSize size_of(const GemmProblem &problem) {
  auto value = [](const Dim &dim) {
    return dim.is_constant() ? static_cast<int>(dim.constant()) : 37;
  };
  return {value(problem.m), value(problem.n), value(problem.k),
          value(problem.batch)};
}

void expect_gemms(const std::string &id, const std::vector<GemmCase> &cases) {
  unsigned seed = 0;
  for (const GemmCase &one : cases) {
    SCOPED_TRACE(one.problem + " | " + one.schedule);
    GemmProblem problem = GemmProblem::parse(one.problem);
    Kernel kernel =
        compile_checked(build_gemm(problem, GemmSchedule::parse(one.schedule)));
    if (auto &device = conformance::open(id).device)
      expect_gemm(*device, kernel, problem, size_of(problem), ++seed);
  }
}

} // namespace conformance
