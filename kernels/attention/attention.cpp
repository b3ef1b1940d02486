// attention: the schedule of FlashAttention-3.
//
// A CTA takes tiles of queries one after another. A producer loads Q once per
// tile and blocks of K and V, the last one first; each consumer, a warpgroup,
// has 64 queries. The scores S of a block become probabilities P in registers,
// and P is operand A of the next product:
//
//     consumer 0   | QK1 PV0 | softmax of 1       | QK2 PV1 | softmax of 2 ...
//     consumer 1   |         | QK1 PV0 | softmax of 1       | QK2 PV1 | ...
//
// Inside a consumer PV of the block before is in flight under the softmax of
// this one. Consumers fall into step by themselves, one computing exponentials
// while the tensor core works for the other: barriers that make them take turns
// change figures by no more than 1.5%, in both directions.
#include <kiln/attention.h>

#include <kiln/kiln.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln {

namespace {

constexpr int kRows = 64; ///< queries of a consumer
constexpr int kThreads = 128;
constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
/// Of K and V, so that the CTAs that run together find them in L2.
constexpr std::int64_t kL2Bytes = 32 << 20;

/// One tile of queries.
struct Tile {
  Value batch, head, kv_head, row;
  Value blocks; ///< of keys that one of its queries sees, at least 1
};

/// The running maximum and sum of each row. The sum is a thread's own part.
struct Softmax {
  RegisterTile largest, sum;

  explicit Softmax(const RegisterLayout &rows)
      : largest(f32, rows), sum(f32, rows) {}
};

class AttentionKernel {
public:
  AttentionKernel(const AttentionProblem &problem,
                  const AttentionSchedule &schedule)
      : problem_(problem), schedule_(schedule),
        kb_(name(problem, schedule),
            {.warpgroups = schedule.consumers + 1, .ftz = true}),
        q_(map("q", problem.heads, problem.queries, tile_m())),
        k_(map("k", problem.kv_heads, problem.keys, schedule.tile_n)),
        v_(map("v", problem.kv_heads, problem.keys, schedule.tile_n)),
        o_(map("o", problem.heads, problem.queries, kRows, 64)),
        lse_(kb_.tensor("lse", f32,
                        {problem.batch, problem.heads, problem.queries, 1})),
        q_pipe_(kb_, problem.head_dim == 256 ? 1 : 2, {q_},
                {.consumers = schedule.consumers, .name = "q"}),
        k_pipe_(kb_, schedule.stages, {k_},
                {.consumers = schedule.consumers, .name = "k"}),
        v_pipe_(kb_, schedule.stages, {v_},
                {.consumers = schedule.consumers, .name = "v"}),
        out_(kb_, o_, {.warpgroups = schedule.consumers, .buffers = 1}),
        scale_(problem.scale * kLog2E) {}

  Module build();

private:
  static std::string name(const AttentionProblem &problem,
                          const AttentionSchedule &schedule);
  TmaTensor map(const char *name, int heads, int length, int rows,
                int columns = 0);
  int tile_m() const { return schedule_.consumers * kRows; }
  int tiles_m() const { return (problem_.queries + tile_m() - 1) / tile_m(); }
  /// What the CTAs divide among them: tiles, or pairs of tiles of a head.
  int items() const {
    int steps = problem_.is_causal ? (tiles_m() + 1) / 2 : tiles_m();
    return problem_.batch * problem_.heads * steps;
  }
  /// How many keys more there are than queries.
  int shift() const { return problem_.keys - problem_.queries; }
  void for_each_tile(const std::function<void(const Tile &)> &body);
  void produce();
  void consume(const Value &which);
  void multiply_tile(const Tile &tile, const Value &which, Softmax &softmax);
  Value seen_keys(const Value &row) const;
  void mask(RegisterTile &scores, const Value &block, const Value &row) const;
  RegisterTile probabilities(RegisterTile scores, Softmax &softmax,
                             RegisterTile *rescale, bool is_masked) const;
  void store(const Tile &tile, const Value &which, Softmax &softmax);

  AttentionProblem problem_;
  AttentionSchedule schedule_;
  KernelBuilder kb_;
  TmaTensor q_, k_, v_, o_;
  Tensor lse_;
  Pipeline q_pipe_, k_pipe_, v_pipe_;
  Epilogue out_;
  double scale_; ///< exp2(scale_ * score)
  Accumulator *scores_ = nullptr, *sums_ = nullptr;
};

} // namespace

std::string AttentionKernel::name(const AttentionProblem &problem,
                                  const AttentionSchedule &schedule) {
  return fmt::format(
      "attention_{}x{}x{}_{}x{}_d{}_{}{}{}_{}x{}x{}", problem.batch,
      problem.heads, problem.kv_heads, problem.queries, problem.keys,
      problem.head_dim, kiln::name(problem.type),
      problem.is_causal ? "_causal" : "",
      problem.layout == AttentionLayout::bshd ? "_bshd" : "",
      schedule.consumers * kRows, schedule.tile_n, schedule.stages);
}

/// A tensor map over [batch, head, sequence, head dimension].
TmaTensor AttentionKernel::map(const char *name, int heads, int length,
                               int rows, int columns) {
  Dim h = heads, s = length, d = problem_.head_dim;
  std::vector<Dim> strides = {h * s * d, s * d, d, 1};
  if (problem_.layout == AttentionLayout::bshd)
    strides = {h * s * d, d, h * d, 1};
  return kb_.tensor_map(
      name, problem_.type, {problem_.batch, h, s, d},
      {.tile = {1, 1, rows, columns ? columns : problem_.head_dim},
       .swizzle = Swizzle::b128},
      strides);
}

/// Keys from 0 on that the query at `row` sees.
Value AttentionKernel::seen_keys(const Value &row) const {
  if (!problem_.is_causal)
    return constant(i32, problem_.keys);
  return max(min(row + (shift() + 1), problem_.keys), 0);
}

/// Heads go in groups whose K and V stay in L2 together; a group goes through
/// its rows, all heads at each. Under the causal mask the last rows have the
/// most to do: a CTA then takes a tile from the end and one from the beginning,
/// which together are as much work as any other such pair.
void AttentionKernel::for_each_tile(
    const std::function<void(const Tile &)> &body) {
  std::int64_t per_head = std::int64_t(problem_.keys) * problem_.head_dim * 2 *
                          size_bytes(problem_.type);
  int sharing = problem_.heads / problem_.kv_heads;
  int all = problem_.batch * problem_.heads;
  int group = static_cast<int>(std::clamp<std::int64_t>(
      kL2Bytes / per_head * sharing, std::min(sharing, all), all));
  int steps = items() / all, last = tiles_m() - 1;
  for_range(block_id(), items(), grid_size(), [&](Value index) {
    Value first = index / (group * steps) * group;
    Value count = min(constant(i32, all) - first, group);
    Value rest = index % (group * steps);
    Value head = first + rest % count, step = rest / count;
    Tile tile;
    tile.batch = head / problem_.heads;
    tile.head = head % problem_.heads;
    tile.kv_head = tile.head / sharing;
    auto take = [&](const Value &row) {
      tile.row = row * tile_m();
      Value seen = seen_keys(tile.row + (tile_m() - 1));
      tile.blocks = max(ceil_div(seen, schedule_.tile_n), 1);
      body(tile);
    };
    if (!problem_.is_causal)
      return take(step);
    // The one in the middle stands alone.
    Value tiles = select(step * 2 == last, 1, 2);
    for_range(0, tiles,
              [&](Value i) { take(select(i == 0, last - step, step)); });
  });
}

/// The first block of K comes before Q: its slot is free while the consumers
/// still work on the queries of the tile before.
void AttentionKernel::produce() {
  for_each_tile([&](const Tile &tile) {
    auto load = [&](Pipeline &pipe, const TmaTensor &tensor,
                    const Value &block) {
      pipe.produce([&](const Slot &slot) {
        slot.load(tensor,
                  {tile.batch, tile.kv_head, block * schedule_.tile_n, 0});
      });
    };
    Value last = tile.blocks - 1;
    load(k_pipe_, k_, last);
    q_pipe_.produce([&](const Slot &slot) {
      slot.load(q_, {tile.batch, tile.head, tile.row, 0});
    });
    load(v_pipe_, v_, last);
    for_range(last - 1, -1, -1, [&](Value block) {
      load(k_pipe_, k_, block);
      load(v_pipe_, v_, block);
    });
  });
}

/// Scores of keys that their query does not see become -infinity.
void AttentionKernel::mask(RegisterTile &scores, const Value &block,
                           const Value &row) const {
  const RegisterLayout &layout = scores.layout();
  RegisterLayout rows = layout.per_row();
  std::vector<int> row_of = rows.registers_for(layout);
  Value first = block * schedule_.tile_n + scores.column(0);
  std::vector<Value> left(rows.registers()); // keys from the first one on
  for (int reg = 0; reg < layout.registers(); ++reg)
    if (Value &keys = left[row_of[reg]]; !keys.is_valid())
      keys = seen_keys(row + scores.row(reg)) - first;
  int origin = layout.element(0, 0).column;
  for (int reg = 0; reg < layout.registers(); ++reg)
    scores.set(
        reg, select(left[row_of[reg]] > layout.element(0, reg).column - origin,
                    scores.element(reg), -INFINITY));
}

/// exp2(scale * (score - maximum)), and the running sums with them. `rescale`
/// becomes what sums of the blocks before are to be multiplied by; null: there
/// are none.
RegisterTile AttentionKernel::probabilities(RegisterTile scores,
                                            Softmax &softmax,
                                            RegisterTile *rescale,
                                            bool is_masked) const {
  RegisterTile largest = reduce_rows(scores, Reduction::max);
  if (rescale)
    largest = max(largest, softmax.largest);
  RegisterTile shift = largest * scale_;
  if (is_masked) // a row may have seen nothing yet
    shift = kiln::map([](Value x) { return select(x == -INFINITY, 0.0, x); },
                      shift);
  if (rescale)
    *rescale = exp2(softmax.largest * scale_ - shift);
  scores = exp2(fma(scores, scale_, -shift));
  const RegisterLayout &layout = scores.layout();
  std::vector<int> row_of = shift.layout().registers_for(layout);
  RegisterTile sum(f32, shift.layout(), 0.0);
  if (rescale)
    sum = softmax.sum * *rescale;
  for (int reg = 0; reg < layout.registers(); ++reg)
    sum.set(row_of[reg], sum.element(row_of[reg]) + scores.element(reg));
  softmax.largest = largest;
  softmax.sum = sum;
  return scores;
}

/// All blocks of keys of one tile, the last one first.
void AttentionKernel::multiply_tile(const Tile &tile, const Value &which,
                                    Softmax &softmax) {
  int n = schedule_.tile_n;
  Accumulator &s = *scores_, &acc = *sums_;
  Value row = tile.row + which * kRows;
  Slot q_slot = q_pipe_.acquire();
  SharedTile q = q_slot[q_].slice(which * kRows, 0, kRows, problem_.head_dim);
  // Blocks below this one need no mask.
  Value unmasked = seen_keys(row) / n;
  bool may_mask = problem_.is_causal || problem_.keys % n != 0;

  Value last = tile.blocks - 1;
  Slot k_first = k_pipe_.acquire();
  s.reset();
  s.mma(q, k_first[k_].transpose());
  wgmma_wait(0);
  k_pipe_.release(k_first);
  if_(last == 0, [&] { q_pipe_.release(q_slot); });
  RegisterTile first = s.tile();
  if (may_mask)
    mask(first, last, row);
  RegisterTile p =
      cast(probabilities(std::move(first), softmax, nullptr, may_mask),
           problem_.type);
  acc.start_from(RegisterTile(f32, acc.layout(), 0.0));

  auto turn = [&](const Value &block, bool is_masked) {
    Slot k = k_pipe_.acquire();
    s.reset();
    s.mma(q, k[k_].transpose());
    Slot v = v_pipe_.acquire();
    acc.mma(p, v[v_]);
    wgmma_wait(1);
    k_pipe_.release(k);
    if_(block == 0, [&] { q_pipe_.release(q_slot); });
    RegisterTile scores = s.tile();
    if (is_masked)
      mask(scores, block, row);
    RegisterTile rescale(f32, softmax.sum.layout());
    RegisterTile weights =
        probabilities(std::move(scores), softmax, &rescale, is_masked);
    wgmma_wait(0, {.after = &softmax.sum});
    v_pipe_.release(v);
    // Most maxima are found in the first blocks.
    Value rose = rescale.element(0) < 1.0;
    for (int reg = 1; reg < rescale.registers(); ++reg)
      rose = rose || rescale.element(reg) < 1.0;
    if_(vote_any(rose), [&] { acc.start_from(acc.tile() * rescale); });
    p = cast(weights, problem_.type);
  };
  if (problem_.is_causal)
    for_range(last - 1, unmasked - 1, -1,
              [&](Value block) { turn(block, true); });
  for_range(min(last, unmasked) - 1, -1, -1,
            [&](Value block) { turn(block, false); });

  Slot v = v_pipe_.acquire();
  acc.mma(p, v[v_]);
  wgmma_wait(0);
  v_pipe_.release(v);
}

/// Divide by the sums, and write the tile and its lse.
void AttentionKernel::store(const Tile &tile, const Value &which,
                            Softmax &softmax) {
  Value row = tile.row + which * kRows;
  // Four lanes share a row.
  RegisterTile sum = kiln::map(
      [](Value x) {
        x = x + shuffle_xor(x, 1);
        return x + shuffle_xor(x, 2);
      },
      softmax.sum);
  RegisterTile inverse =
      kiln::map([](Value x) { return select(x == 0.0, 0.0, rcp(x)); }, sum);
  sums_->start_from(sums_->tile() * inverse);
  RegisterTile lse = kiln::map(
      [&](Value largest, Value total) {
        return select(total == 0.0, -INFINITY,
                      fma(largest, scale_, log2(total)) * kLn2);
      },
      softmax.largest, sum);
  lse.store(lse_.index(0, tile.batch).index(0, tile.head), {row, 0});
  out_.store(*sums_, {tile.batch, tile.head, row, 0}, {}, which);
}

void AttentionKernel::consume(const Value &which) {
  Accumulator s(f32, kRows, schedule_.tile_n);
  Accumulator acc(f32, kRows, problem_.head_dim);
  scores_ = &s;
  sums_ = &acc;
  Softmax softmax(s.layout().per_row());
  for_each_tile([&](const Tile &tile) {
    multiply_tile(tile, which, softmax);
    store(tile, which, softmax);
  });
  out_.finish();
}

Module AttentionKernel::build() {
  kb_.grid(min(Dim(items()), Dim::argument("sms")));
  int consumers = schedule_.consumers;
  int producer_registers = consumers == 2 ? 24 : 32;
  int consumer_registers = consumers == 2 ? 240 : 160;
  warpgroup(consumers, {.registers = producer_registers},
            [&] { one_thread([&] { produce(); }); });
  warpgroups(0, consumers, {.registers = consumer_registers},
             [&](Value which) { consume(which); });
  return kb_.module();
}

/// What was left to us.
static AttentionSchedule resolved(const AttentionProblem &problem,
                                  AttentionSchedule schedule) {
  int d = problem.head_dim;
  if (schedule.consumers == 0)
    // Short causal sequences waste less of a smaller tile.
    schedule.consumers =
        d == 64 && !(problem.is_causal && problem.queries <= 2048) ? 3 : 2;
  if (schedule.tile_n == 0)
    schedule.tile_n = d == 256 ? 64 : 128;
  if (schedule.stages == 0)
    schedule.stages = d == 64 ? 3 : 2;
  if (schedule.consumers < 2 || schedule.consumers > 3)
    throw UserError(fmt::format("attention with {} consumers; 2 or 3 can be",
                                schedule.consumers));
  if (schedule.tile_n < 16 || schedule.tile_n > 256 || schedule.tile_n % 16)
    throw UserError(fmt::format(
        "attention with blocks of {} keys; use a multiple of 16 up to 256",
        schedule.tile_n));
  if (schedule.stages < 1)
    throw UserError(fmt::format(
        "attention with {} stages; at least 1 is needed", schedule.stages));
  return schedule;
}

Module build_attention(const AttentionProblem &problem,
                       const AttentionSchedule &schedule) {
  AttentionProblem known = problem.resolved();
  return AttentionKernel(known, resolved(known, schedule)).build();
}

} // namespace kiln
