// output: scale, add, activate, store.
#include "output.h"

#include <kiln/language/value/control.h>
#include <kiln/language/value/math.h>
#include <kiln/language/threads/threads.h>

namespace kiln::gemm_kernel {

/// One subtile of D in shared memory.
static TileLayout subtile(const KernelProblem &computed,
                          const GemmSchedule &schedule) {
  auto layout = computed.stores_by_tma() ? TileLayout::of : staged_tile;
  return layout(computed.problem.out, schedule.epilogue_m, schedule.epilogue_n);
}

/// Columns of tensor memory that a thread loads at once, of `all`.
static int loaded_columns(int all) {
  constexpr int kMost = 32; // registers
  return all % kMost ? all : kMost;
}

/// Threads have read a buffer when they have written what is in it, TMA has
/// not: it needs a second one.
static EpilogueOptions options_of(const KernelProblem &computed,
                                  const GemmSchedule &schedule) {
  return {.warpgroups = schedule.consumers,
          .buffers = computed.stores_by_tma() ? 2 : 1,
          .load_columns = loaded_columns(schedule.epilogue_n),
          .column_multiple = 8}; // divides tiles and shares
}

int subtile_columns(const KernelProblem &computed,
                    const GemmSchedule &schedule) {
  int all = schedule.consumer_columns();
  int columns = std::min(128 / size_bytes(computed.problem.out), all);
  while (computed.stores_by_tma() && columns > 8 && all % columns != 0)
    columns -= 8;
  return columns;
}

/// Elements of D that can be stored together, wherever a tile begins.
static int neighbours(const GemmProblem &problem) {
  const Dim &length = problem.is_d_column_major ? problem.m : problem.n;
  auto divides = [&](int count) {
    auto is_multiple = [&](const Dim &dim) {
      return dim.is_constant() && dim.constant() % count == 0;
    };
    bool has_products =
        problem.batch == Dim(1) || is_multiple(problem.product_stride_d());
    return is_multiple(problem.stride_d()) && is_multiple(length) &&
           has_products;
  };
  int count = std::min(8, 16 / size_bytes(problem.out));
  while (count > 1 && !divides(count))
    count /= 2;
  return count;
}

/// The way out through sums in shared memory, where the schedule asks for it.
static std::optional<Sums> sums_of(const GemmProblem &problem,
                                   const GemmSchedule &schedule) {
  if (!uses_sums(schedule))
    return std::nullopt;
  return Sums(schedule, problem.accumulator(), problem.is_d_column_major,
              neighbours(problem));
}

/// Shared memory that a CTA with one tile has no use for behind its products.
static int slots_bytes(const KernelProblem &problem,
                       const GemmSchedule &schedule) {
  int bytes = 0;
  for (const TileLayout &tile : slot_tiles(problem, schedule))
    bytes += tile.stride_bytes() * schedule.stages;
  return bytes;
}

OutputBuffers output_buffers(const KernelProblem &problem,
                             const GemmSchedule &schedule) {
  if (auto sums = sums_of(problem.problem, schedule)) {
    if (schedule.is_split_by_grid) // they go through a workspace
      return {sums->layout()};
    // A CTA with one tile has no use for its slots any more.
    bool is_last = !schedule.is_persistent() &&
                   schedule.cluster_m * schedule.cluster_n == 1;
    int sum_bytes = sums->layout().stride_bytes() * schedule.consumers;
    return {sums->layout(), schedule.consumers,
            is_last && sum_bytes <= slots_bytes(problem, schedule)};
  }
  EpilogueOptions options = options_of(problem, schedule);
  TileLayout tile = subtile(problem, schedule);
  int count = options.warpgroups * options.buffers;
  // Without TMA all threads meet behind the last product.
  return {tile, count,
          !problem.has_tma &&
              count * tile.stride_bytes() <= slots_bytes(problem, schedule)};
}

Output::Output(KernelBuilder &kb, const KernelProblem &computed,
               const GemmSchedule &schedule)
    : problem_(computed.problem), schedule_(schedule),
      options_(options_of(computed, schedule)),
      sums_(sums_of(problem_, schedule)),
      is_over_slots_(schedule.kind != GemmKind::vector &&
                     output_buffers(computed, schedule).is_over_slots) {
  // As stored: lines, one `stride` behind the other.
  const Dim &lines = problem_.is_d_column_major ? problem_.n : problem_.m;
  const Dim &length = problem_.is_d_column_major ? problem_.m : problem_.n;
  StoredMatrix d{lines, length, problem_.stride_d(),
                 problem_.product_stride_d()};
  if (problem_.scaling == Scaling::tensor) {
    a_scale_ = kb.tensor("a_scales", f32, {1});
    b_scale_ = kb.tensor("b_scales", f32, {1});
  }
  if (problem_.has_beta)
    c_ = declare_tensor(
        kb, "c", problem_.out,
        {lines, length, problem_.stride_c(), problem_.product_stride_c()},
        problem_.batch);
  if (problem_.bias != GemmBias::none)
    bias_ =
        kb.tensor("bias", problem_.bias_type(),
                  {problem_.bias == GemmBias::row ? problem_.m : problem_.n});
  bool is_by_element = schedule.kind == GemmKind::vector;
  if (computed.stores_by_tma() && !sums_ && !is_by_element) {
    d_map_ =
        declare_map(kb, "d", subtile(computed, schedule), d, problem_.batch);
  } else {
    d_ = declare_tensor(kb, "d", problem_.out, d, problem_.batch);
  }
  if (problem_.has_alpha)
    alpha_ = kb.scalar("alpha", f32);
  if (problem_.has_beta)
    beta_ = kb.scalar("beta", f32);
}

void Output::declare_workspaces(KernelBuilder &kb, const Dim &tiles) {
  if (sums_)
    sums_->declare_workspaces(kb, tiles);
}

void Output::make_buffers(KernelBuilder &kb, const SharedTile &first_slot) {
  std::optional<SharedTile> over;
  if (is_over_slots_)
    over = first_slot;
  options_.place.over = over;
  if (sums_)
    sums_->make_buffers(kb, over);
  else if (d_map_)
    epilogue_.emplace(kb, *d_map_, options_);
  else
    epilogue_.emplace(kb, *d_, schedule_.epilogue_m, schedule_.epilogue_n,
                      options_);
}

void Output::begin(const Value &tile) const { sums_->begin(tile); }

void Output::start() {
  if (!a_scale_)
    return;
  a_factor_ = (*a_scale_)(0);
  b_factor_ = (*b_scale_)(0);
}

/// What sums are multiplied by, if they are.
std::optional<Value> Output::factor() const {
  if (!a_factor_)
    return alpha_;
  Value factor = *a_factor_ * *b_factor_;
  return alpha_ ? *alpha_ * factor : factor;
}

/// act(x), in f32.
static Value activate(Activation act, const Value &x) {
  switch (act) {
  case Activation::none:
    return x;
  case Activation::relu:
    return max(x, 0.0);
  case Activation::gelu: {
    // x / 2 * (1 + tanh(u)) with u = sqrt(2 / pi) * (x + 0.044715 x^3), and
    // (1 + tanh(u)) / 2 = 1 / (1 + 2^(-2 u log2 e)): exp2 is more exact than
    // the hardware's tanh.
    Value cubic = fma(x * x * x, 0.044715, x);
    return x * rcp(exp2(cubic * -2.302208198) + 1.0);
  }
  case Activation::silu:
    return x * rcp(exp2(x * -1.44269504) + 1.0);
  }
  return x;
}

Values Output::finished(const Values &values, const OutputTile &tile,
                        const Value &row, const Value &column) const {
  // Integers stay as they are, unless something has to be computed.
  std::optional<Value> times = factor();
  bool is_plain = !times && !c_ && !bias_ && problem_.act == Activation::none;
  if (is_plain)
    return values;
  Values results;
  for (int i = 0; i < static_cast<int>(values.size()); ++i) {
    Value x = cast(values[i], f32);
    bool is_down = problem_.is_d_column_major;
    Value y = is_down ? row + i : row, at = is_down ? column : column + i;
    Value is_inside = y < problem_.m && at < problem_.n;
    auto read = [&](const Tensor &tensor, const std::vector<At> &indices) {
      Var element(f32, 0.0);
      if_(is_inside, [&] { element = cast(tensor.at(indices), f32); });
      return Value(element);
    };
    if (times)
      x = x * *times;
    if (c_) {
      std::vector<At> indices{is_down ? at : y, is_down ? y : at};
      if (c_->shape().size() == 3)
        indices.insert(indices.begin(), tile.batch);
      x = fma(*beta_, read(*c_, indices), x);
    }
    if (bias_)
      x = x + read(*bias_, {problem_.bias == GemmBias::row ? y : at});
    x = activate(problem_.act, x);
    if (problem_.out == Type::i32) // cast alone would cut off
      x = cast(x, i32, Rounding::nearest_even);
    results.push_back(x);
  }
  return results;
}

Sums::Taker Output::taker(const OutputTile &tile, const Value &row,
                          const Value &column) const {
  bool is_down = problem_.is_d_column_major;
  return
      [=, this](const Values &values, const Value &line, const Value &first) {
        Value r = row + (is_down ? first : line);
        Value c = column + (is_down ? line : first);
        store_line(finished(values, tile, r, c), tile, is_down ? c : r,
                   is_down ? r : c);
      };
}

std::vector<At> Output::origin(const OutputTile &tile, const Value &row,
                               const Value &column) const {
  std::vector<At> origin{row, column};
  if (problem_.batch != Dim(1))
    origin.insert(origin.begin(), tile.batch);
  return origin;
}

Tensor Output::matrix(const OutputTile &tile) const {
  return problem_.batch != Dim(1) ? d_->index(0, tile.batch) : *d_;
}

template <typename AnySums>
void Output::store_sums(AnySums &sums, const OutputTile &tile, const Value &row,
                        const Value &column, const Value &warpgroup) {
  if (sums_)
    return sums_->exchange(sums, warpgroup, tile, taker(tile, row, column));
  auto map = [&](const Values &values, const Value &r, const Value &c) {
    return finished(values, tile, r, c);
  };
  epilogue_->store(sums, origin(tile, row, column), map, warpgroup);
}

void Output::store(Accumulator &accumulator, const OutputTile &tile,
                   const Value &row, const Value &column,
                   const Value &warpgroup) {
  store_sums(accumulator, tile, row, column, warpgroup);
}

void Output::store(const TensorTile &sums, const OutputTile &tile,
                   const Value &row, const Value &column,
                   const Value &warpgroup) {
  store_sums(sums, tile, row, column, warpgroup);
}

void Output::store(const Value &sum, const OutputTile &tile, const Value &row,
                   const Value &column) const {
  taker(tile, row, column)({sum}, constant(i32, 0), constant(i32, 0));
}

/// Neighbours of a line of D as it is stored, which begin there.
void Output::store_line(const Values &values, const OutputTile &tile,
                        const Value &line, const Value &first) const {
  Tensor d = matrix(tile);
  // All of them are inside, or none: neighbours() divides the lines.
  if_(line < d.shape()[0] && first < d.shape()[1],
      [&] { d.store_vector({line, first}, cast(values, problem_.out)); });
}

void Output::finish() {
  if (epilogue_)
    epilogue_->finish();
}

} // namespace kiln::gemm_kernel
