// vector_kernel: a matrix times a vector, one row or one column of D.
//
// Every element of the matrix is used once, so that nothing is gained by shared
// memory or the tensor core: what counts is how many bytes are in flight. A
// warp has one element of D: its lanes read neighbouring pieces of a row of the
// matrix, the widest that the row's alignment allows, two at a time, and of the
// vector, which stays in L1; then they add up what they have.
#include "vector_kernel.h"
#include "gemm/checks.h"
#include "output.h"

#include <kiln/language/value/control.h>
#include <kiln/language/threads/dependent_launch.h>
#include <kiln/language/value/math.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/threads/warp.h>

#include <array>

namespace kiln::gemm_kernel {

static constexpr int kWarps = 4, kLanes = 32;
static constexpr int kAtOnce = 2; ///< pieces of a lane

namespace {
/// Which operand is the matrix, and how wide its rows can be read.
struct Product {
  KernelProblem computed;
  bool is_matrix_a;
  Dim rows;
  StoredMatrix matrix, vector;
  int width; ///< elements of a piece

  Product(const GemmProblem &problem, const GemmSchedule &schedule)
      : computed(problem, schedule), is_matrix_a(computed.problem.n == Dim(1)),
        rows(is_matrix_a ? computed.problem.m : computed.problem.n),
        matrix(is_matrix_a ? computed.a() : computed.b()),
        vector(is_matrix_a ? computed.b() : computed.a()), width(1) {
    const Dim &k = computed.problem.k;
    if (!is_vector_k_major()) // one element in each of its rows
      vector = {1, k, k, vector.product};
    auto divides = [&](int count) {
      auto is_multiple = [&](const Dim &dim) {
        return dim.is_constant() && dim.constant() % count == 0;
      };
      bool has_products =
          computed.problem.batch == Dim(1) ||
          (is_multiple(matrix.product) && is_multiple(vector.product));
      return has_products && is_multiple(k) && is_multiple(matrix.stride) &&
             is_multiple(vector.stride);
    };
    while (width * 2 * size_bytes(computed.problem.type) <= 16 &&
           divides(width * 2))
      width *= 2;
  }
  bool is_matrix_k_major() const {
    const GemmProblem &problem = computed.problem;
    return is_matrix_a ? problem.a_is_k_major() : problem.b_is_k_major();
  }
  bool is_vector_k_major() const {
    const GemmProblem &problem = computed.problem;
    return is_matrix_a ? problem.b_is_k_major() : problem.a_is_k_major();
  }
};

class VectorKernel {
public:
  VectorKernel(const GemmProblem &problem, const GemmSchedule &schedule,
               const DeviceDescription &device)
      : product_(problem, schedule),
        kb_(gemm_kernel_name(problem, schedule, device),
            {.warpgroups = 1, .target = device.target()}) {
    declare_operands();
    output_.emplace(kb_, product_.computed, schedule);
    for (const Dim &dim : {problem.m, problem.n, problem.k, problem.batch})
      if (!dim.is_constant())
        kb_.dim(dim.argument_name());
  }

  Module build();

private:
  const GemmProblem &shape() const { return product_.computed.problem; }
  void declare_operands();
  /// Add the products of a step's pieces; those beyond K count nothing where
  /// `is_checked`.
  Value added(const Value &sum, const Value &row, const Value &first,
              bool is_checked) const;

  Product product_;
  KernelBuilder kb_;
  std::optional<Tensor> matrix_, vector_; ///< of this CTA's product
  std::optional<Output> output_;
};
} // namespace

void VectorKernel::declare_operands() {
  auto declare = [&](const char *name, const StoredMatrix &stored) {
    return declare_tensor(kb_, name, shape().type, stored, shape().batch);
  };
  // The caller's A comes first.
  bool is_matrix_first = product_.is_matrix_a != product_.computed.is_swapped;
  if (is_matrix_first)
    matrix_ = declare("a", product_.matrix);
  vector_ = declare(is_matrix_first ? "b" : "a", product_.vector);
  if (!is_matrix_first)
    matrix_ = declare("b", product_.matrix);
}

Value VectorKernel::added(const Value &sum, const Value &row,
                          const Value &first, bool is_checked) const {
  int width = product_.width;
  Value last = value_of(At(shape().k)) - width;
  std::vector<Value> places;
  std::vector<Values> pieces, factors;
  for (int i = 0; i < kAtOnce; ++i) {
    Value at = first + (lane_id() + i * kLanes) * width;
    places.push_back(at);
    Value inside = is_checked ? min(at, last) : at;
    pieces.push_back(
        matrix_->load_vector({row, inside}, width, CacheHint::streaming));
    factors.push_back(vector_->load_vector({0, inside}, width));
  }
  Value result = sum;
  for (int i = 0; i < kAtOnce; ++i) {
    Values x = cast(pieces[i], f32), y = cast(factors[i], f32);
    Value part = result;
    for (int j = 0; j < width; ++j)
      part = fma(x[j], y[j], part);
    result = is_checked ? select(places[i] <= last, part, result) : part;
  }
  return result;
}

Module VectorKernel::build() {
  Dim blocks = ceil_div(product_.rows, kWarps);
  kb_.grid(blocks * shape().batch);
  wait_for_dependencies();
  launch_dependents();
  Value block = block_id(), batch = constant(i32, 0);
  if (shape().batch != Dim(1)) {
    batch = block / blocks;
    block = block - batch * blocks;
    for (std::optional<Tensor> *operand : {&matrix_, &vector_})
      if ((*operand)->shape().size() == 3)
        *operand = (*operand)->index(0, batch);
  }
  output_->start();
  Value row = block * kWarps + warp_id();
  if_(row < product_.rows, [&] {
    int step = kLanes * product_.width * kAtOnce;
    Var sum(f32, 0.0);
    const Dim &k = shape().k;
    Value whole = value_of(k / step * step);
    for_range(0, whole, step,
              [&](Value first) { sum = added(sum, row, first, false); });
    bool is_whole = k.is_constant() && k.constant() % step == 0;
    if (!is_whole)
      sum = added(sum, row, whole, true);
    Value all = warp_reduce(sum, Reduction::add);
    OutputTile tile{.batch = batch};
    Value zero = constant(i32, 0);
    if_(lane_id() == 0, [&] {
      if (product_.is_matrix_a)
        output_->store(all, tile, row, zero);
      else
        output_->store(all, tile, zero, row);
    });
  });
  return kb_.module();
}

GemmSchedule fit_vector(const GemmProblem &problem,
                        const GemmSchedule &schedule) {
  if (problem.m != Dim(1) && problem.n != Dim(1))
    refuse("a product of {} by {} in a vector schedule; it has one row or one "
           "column",
           problem.m.to_string(), problem.n.to_string());
  GemmSchedule usual{.kind = GemmKind::vector, .stages = 1}, fitted = usual;
  for (const Field<GemmSchedule> &field : GemmSchedule::fields())
    if (!field.is_always_said && field.get(schedule) != field.get(usual))
      refuse("{}={} in a vector schedule; leave it out", field.key,
             field.get(schedule));
  static constexpr std::array kTypes{Type::f16, Type::bf16, Type::e4m3,
                                     Type::e5m2};
  if (!is_one_of(problem.type, kTypes) || problem.accumulator() != Type::f32)
    refuse("a product of {} with sums in {} in a vector schedule; use f16, "
           "bf16, e4m3 or e5m2 with sums in f32",
           name(problem.type), name(problem.accumulator()));
  if (problem.scaling != Scaling::none && problem.scaling != Scaling::tensor)
    refuse("scales={} in a vector schedule; use none or tensor",
           name(problem.scaling));
  Product product(problem, usual);
  if (!product.is_matrix_k_major())
    refuse("layout {} in a vector schedule; K must be contiguous in the matrix",
           name(problem.layout));
  bool is_dense =
      product.is_vector_k_major() ||
      (product.is_matrix_a ? product.computed.b() : product.computed.a())
              .stride == Dim(1);
  if (!is_dense)
    refuse("the elements of the vector are apart; a vector schedule needs "
           "them one behind the other");
  bool is_row = problem.m == Dim(1);
  fitted.tile_m = is_row ? 1 : kWarps;
  fitted.tile_n = is_row ? kWarps : 1;
  fitted.tile_k = kLanes * product.width * kAtOnce;
  return fitted;
}

Module build_vector_kernel(const GemmProblem &problem,
                           const GemmSchedule &schedule,
                           const DeviceDescription &device) {
  return VectorKernel(problem, schedule, device).build();
}

} // namespace kiln::gemm_kernel
