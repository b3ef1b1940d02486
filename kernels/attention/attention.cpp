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
// this one, and so it is from tile to tile: QK of a tile's first block is
// issued beside the last PV of the tile before. Consumers fall into step by
// themselves, one computing exponentials while the tensor core works for the
// other: barriers that make them take turns change figures by no more than
// 1.5%, in both directions.
#include "tiles.h"

#include "fields/field_text.h"

#include <kiln/kiln.h>

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace kiln {

namespace {

constexpr int kRows = 64; ///< queries of a consumer
constexpr double kLog2E = 1.4426950408889634, kLn2 = 0.6931471805599453;
/// A tile whose last product is still to be made.
struct Unfinished {
  Var is_there{i1, false};
  Var batch{i32, 0}, head{i32, 0};
  Var row{i32, 0};  ///< of O, the consumer's first one
  Var rows{i32, 0}; ///< that are left of the sequence
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
        q_(map(tensor("q", problem.heads, problem_.stored_queries()),
               tile_m())),
        k_(map(tensor("k", problem.kv_heads, problem_.stored_keys()),
               schedule.tile_n)),
        v_(map(tensor("v", problem.kv_heads, problem_.stored_keys()),
               schedule.tile_n)),
        o_(tensor("o", problem.heads, problem_.stored_queries())),
        o_map_(map(o_, kRows, std::min(problem.head_dim, 128))),
        lse_(kb_.tensor("lse", f32,
                        {problem_.stored_batch(), problem.heads,
                         problem_.stored_queries(), 1})),
        tiles_(kb_, problem, tile_m(), schedule.tile_n),
        q_pipe_(kb_, schedule.q_stages, {q_},
                {.consumers = schedule.consumers, .name = "q"}),
        k_pipe_(kb_, schedule.stages, {k_},
                {.consumers = schedule.consumers, .name = "k"}),
        v_pipe_(kb_, schedule.stages, {v_},
                {.consumers = schedule.consumers, .name = "v"}),
        out_(kb_, o_map_, {.warpgroups = schedule.consumers, .buffers = 1}),
        scale_((problem.soft_cap ? problem.soft_cap : problem.scale) * kLog2E) {
  }

  Module build();

private:
  static std::string name(const AttentionProblem &problem,
                          const AttentionSchedule &schedule);
  Tensor tensor(const char *name, int heads, int length);
  TmaTensor map(const Tensor &tensor, int rows, int columns = 0);
  int tile_m() const { return schedule_.consumers * kRows; }
  void produce();
  void consume(const Value &which);
  void first_block(const AttentionTile &tile, const Value &row,
                   const Slot &q_slot);
  void turn(const AttentionTile &tile, const Value &row, const Slot &q_slot,
            const Value &block, bool is_masked);
  void multiply_tile(const AttentionTile &tile);
  void finish_tile();
  SharedTile queries_of(const Slot &slot) const {
    return slot[q_].slice(which_ * kRows, 0, kRows, problem_.head_dim);
  }
  RegisterTile scores_of(const AttentionTile &tile, const Value &row,
                         const Value &block, bool is_masked) const;
  RegisterTile probabilities(RegisterTile scores, Softmax &softmax,
                             RegisterTile *rescale, bool is_masked) const;
  void store();

  AttentionProblem problem_;
  AttentionSchedule schedule_;
  KernelBuilder kb_;
  TmaTensor q_, k_, v_;
  Tensor o_;
  TmaTensor o_map_;
  Tensor lse_;
  AttentionTiles tiles_;
  Pipeline q_pipe_, k_pipe_, v_pipe_;
  Epilogue out_;
  double scale_; ///< exp2(scale_ * score)
  // Of a consumer.
  Value which_;
  Accumulator *scores_ = nullptr, *sums_ = nullptr;
  RegisterTile *weights_ = nullptr; ///< probabilities of the block before
  Softmax *softmax_ = nullptr;
  Unfinished *unfinished_ = nullptr;
};

} // namespace

std::string AttentionKernel::name(const AttentionProblem &problem,
                                  const AttentionSchedule &schedule) {
  return fmt::format("attention{}{}_{}x{}x{}", fields::name_of(problem, true),
                     fields::name_of(problem, false),
                     schedule.consumers * kRows, schedule.tile_n,
                     schedule.stages);
}

/// A tensor [batch, head, sequence, head dimension].
Tensor AttentionKernel::tensor(const char *name, int heads, int length) {
  Dim h = heads, s = length, d = problem_.head_dim;
  std::vector<Dim> strides = {h * s * d, s * d, d, 1};
  if (problem_.layout == AttentionLayout::bshd)
    strides = {h * s * d, d, h * d, 1};
  return kb_.tensor(name, problem_.type, {problem_.stored_batch(), h, s, d},
                    strides);
}

TmaTensor AttentionKernel::map(const Tensor &tensor, int rows, int columns) {
  return kb_.tensor_map(
      tensor, {.tile = {1, 1, rows, columns ? columns : problem_.head_dim},
               .swizzle = Swizzle::b128});
}

/// The first block of K comes before Q: its slot is free while the consumers
/// still work on the queries of the tile before.
void AttentionKernel::produce() {
  tiles_.for_each([&](const AttentionTile &tile) {
    auto load = [&](Pipeline &pipe, const TmaTensor &tensor,
                    const Value &block) {
      pipe.produce([&](const Slot &slot) {
        slot.load(tensor, {tile.batch, tile.kv_head,
                           tile.k_begin + block * schedule_.tile_n, 0});
      });
    };
    Value last = tile.end - 1;
    load(k_pipe_, k_, last);
    q_pipe_.produce([&](const Slot &slot) {
      slot.load(q_, {tile.batch, tile.head, tile.q_begin + tile.row, 0});
    });
    load(v_pipe_, v_, last);
    for_range(last - 1, tile.first - 1, -1, [&](Value block) {
      load(k_pipe_, k_, block);
      load(v_pipe_, v_, block);
    });
  });
}

/// The scores of a block, those of keys that their query does not see
/// -infinity.
RegisterTile AttentionKernel::scores_of(const AttentionTile &tile,
                                        const Value &row, const Value &block,
                                        bool is_masked) const {
  RegisterTile scores = scores_->tile();
  if (problem_.soft_cap) // tanh, exact enough for a large cap
    scores = 1.0 - 2.0 * rcp(exp2(scores * (2 * kLog2E * problem_.scale /
                                            problem_.soft_cap)) +
                             1.0);
  if (!is_masked)
    return scores;
  const RegisterLayout &layout = scores.layout();
  RegisterLayout rows = layout.per_row();
  std::vector<int> row_of = rows.registers_for(layout);
  Value column = block * schedule_.tile_n + scores.column(0);
  // Counted from the thread's first column on.
  std::vector<Value> from(rows.registers()), to(rows.registers());
  for (int reg = 0; reg < layout.registers(); ++reg) {
    if (to[row_of[reg]].is_valid())
      continue;
    Value query = row + scores.row(reg);
    from[row_of[reg]] = tiles_.first_key(tile, query) - column;
    to[row_of[reg]] = tiles_.end_key(tile, query) - column;
  }
  int origin = layout.element(0, 0).column;
  for (int reg = 0; reg < layout.registers(); ++reg) {
    int at = layout.element(0, reg).column - origin;
    Value is_seen = to[row_of[reg]] > at;
    if (problem_.window_left >= 0)
      is_seen = is_seen && from[row_of[reg]] <= at;
    scores.set(reg, select(is_seen, scores.element(reg), -INFINITY));
  }
  return scores;
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

/// The first block of a tile, beside the last product of the tile before.
void AttentionKernel::first_block(const AttentionTile &tile, const Value &row,
                                  const Slot &q_slot) {
  Accumulator &s = *scores_, &acc = *sums_;
  Value block = tile.end - 1;
  bool is_masked = problem_.has_mask(schedule_.tile_n);
  Slot k = k_pipe_.acquire();
  auto begin = [&] {
    s.reset();
    s.mma(queries_of(q_slot), k[k_].transpose());
  };
  auto take = [&](Softmax &softmax) {
    k_pipe_.release(k);
    if_(block == tile.first, [&] { q_pipe_.release(q_slot); });
    return probabilities(scores_of(tile, row, block, is_masked), softmax,
                         nullptr, is_masked);
  };
  if_(
      unfinished_->is_there,
      [&] {
        begin();
        Slot v = v_pipe_.acquire();
        acc.mma(*weights_, v[v_]);
        wgmma_wait(1);
        Softmax softmax(softmax_->sum.layout());
        RegisterTile weights = take(softmax);
        wgmma_wait(0, {.after = &softmax.sum});
        v_pipe_.release(v);
        store();
        *weights_ = cast(weights, problem_.type);
        softmax_->largest = softmax.largest;
        softmax_->sum = softmax.sum;
      },
      [&] {
        begin();
        wgmma_wait(0);
        *weights_ = cast(take(*softmax_), problem_.type);
      });
  acc.start_from(RegisterTile(f32, acc.layout(), 0.0));
}

/// Another block: its scores beside the product of the block before.
void AttentionKernel::turn(const AttentionTile &tile, const Value &row,
                           const Slot &q_slot, const Value &block,
                           bool is_masked) {
  Accumulator &s = *scores_, &acc = *sums_;
  Slot k = k_pipe_.acquire();
  s.reset();
  s.mma(queries_of(q_slot), k[k_].transpose());
  Slot v = v_pipe_.acquire();
  acc.mma(*weights_, v[v_]);
  wgmma_wait(1);
  k_pipe_.release(k);
  if_(block == tile.first, [&] { q_pipe_.release(q_slot); });
  RegisterTile rescale(f32, softmax_->sum.layout());
  RegisterTile weights = probabilities(scores_of(tile, row, block, is_masked),
                                       *softmax_, &rescale, is_masked);
  wgmma_wait(0, {.after = &softmax_->sum});
  v_pipe_.release(v);
  // Most maxima are found in the first blocks.
  Value rose = rescale.element(0) < 1.0;
  for (int reg = 1; reg < rescale.registers(); ++reg)
    rose = rose || rescale.element(reg) < 1.0;
  if_(vote_any(rose), [&] { acc.start_from(acc.tile() * rescale); });
  *weights_ = cast(weights, problem_.type);
}

/// All blocks of keys of one tile, the last one first; its last product is left
/// for the next tile.
void AttentionKernel::multiply_tile(const AttentionTile &tile) {
  Value row = tile.row + which_ * kRows;
  Slot q_slot = q_pipe_.acquire();
  first_block(tile, row, q_slot);
  auto clamped = [](const Value &x, const Value &least, const Value &most) {
    return max(min(x, most), least);
  };
  // Blocks from `low` up to `high` need no mask.
  int n = schedule_.tile_n;
  Value last = tile.end - 1;
  Value high = clamped(tiles_.end_key(tile, row) / n, tile.first, last);
  Value low = tile.first;
  if (problem_.window_left >= 0)
    low = clamped(ceil_div(tiles_.first_key(tile, row + (kRows - 1)), n),
                  tile.first, high);
  auto turns = [&](const Value &from, const Value &to, bool is_masked) {
    for_range(from - 1, to - 1, -1,
              [&](Value block) { turn(tile, row, q_slot, block, is_masked); });
  };
  if (problem_.window_right >= 0)
    turns(last, high, true);
  turns(problem_.window_right >= 0 ? high : last, low, false);
  if (problem_.window_left >= 0)
    turns(low, tile.first, true);
  unfinished_->batch = tile.batch;
  unfinished_->head = tile.head;
  unfinished_->row = tile.q_begin + row;
  unfinished_->rows = tile.queries - row;
  // Where Q has one slot, the next tile's comes too late.
  if (schedule_.q_stages == 1)
    return finish_tile();
  unfinished_->is_there = true;
}

/// The last product of the last tile.
void AttentionKernel::finish_tile() {
  Slot v = v_pipe_.acquire();
  sums_->mma(*weights_, v[v_]);
  wgmma_wait(0);
  v_pipe_.release(v);
  store();
}

/// Divide the sums of the tile that is unfinished, and write it and its lse.
void AttentionKernel::store() {
  Value batch = unfinished_->batch, head = unfinished_->head;
  Value row = unfinished_->row, rows = unfinished_->rows;
  // Four lanes share a row.
  RegisterTile sum = kiln::map(
      [](Value x) {
        x = x + shuffle_xor(x, 1);
        return x + shuffle_xor(x, 2);
      },
      softmax_->sum);
  RegisterTile inverse =
      kiln::map([](Value x) { return select(x == 0.0, 0.0, rcp(x)); }, sum);
  sums_->start_from(sums_->tile() * inverse);
  RegisterTile lse = kiln::map(
      [&](Value largest, Value total) {
        return select(total == 0.0, -INFINITY,
                      fma(largest, scale_, log2(total)) * kLn2);
      },
      softmax_->largest, sum);
  auto head_of = [&](const Tensor &tensor) {
    return tensor.index(0, batch).index(0, head);
  };
  auto by_tma = [&] { out_.store(*sums_, {batch, head, row, 0}, {}, which_); };
  if (!problem_.is_packed()) {
    lse.store(head_of(lse_), {row, 0});
    return by_tma();
  }
  // Rows behind the end are the next sequence's.
  lse.store(head_of(lse_).slice(0, row, rows), {0, 0});
  if_(rows >= kRows, by_tma, [&] {
    sums_->store(head_of(o_).slice(0, row, rows), {0, 0},
                 {.column_multiple = 8});
  });
}

void AttentionKernel::consume(const Value &which) {
  Accumulator s(f32, kRows, schedule_.tile_n);
  Accumulator acc(f32, kRows, problem_.head_dim);
  Softmax softmax(s.layout().per_row());
  RegisterTile weights(problem_.type, s.layout());
  Unfinished unfinished;
  which_ = which;
  scores_ = &s;
  sums_ = &acc;
  softmax_ = &softmax;
  weights_ = &weights;
  unfinished_ = &unfinished;
  tiles_.for_each([&](const AttentionTile &tile) { multiply_tile(tile); });
  if_(unfinished.is_there, [&] { finish_tile(); });
  out_.finish();
}

Module AttentionKernel::build() {
  kb_.grid(min(Dim(tiles_.items()), Dim::argument("sms")));
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
        d == 64 && !(problem.window_right >= 0 && problem.queries <= 2048) ? 3
                                                                           : 2;
  if (schedule.tile_n == 0)
    schedule.tile_n = d == 256 ? 64 : 128;
  if (schedule.stages == 0)
    schedule.stages = d == 64 ? 3 : 2;
  if (schedule.q_stages == 0)
    schedule.q_stages = d == 256 ? 1 : 2;
  if (schedule.consumers < 2 || schedule.consumers > 3)
    throw UserError(fmt::format("attention with {} consumers; 2 or 3 can be",
                                schedule.consumers));
  if (schedule.tile_n < 16 || schedule.tile_n > 256 || schedule.tile_n % 16)
    throw UserError(fmt::format(
        "attention with blocks of {} keys; use a multiple of 16 up to 256",
        schedule.tile_n));
  for (int stages : {schedule.stages, schedule.q_stages})
    if (stages < 1)
      throw UserError(fmt::format(
          "attention with {} stages; at least 1 is needed", stages));
  return schedule;
}

Module build_attention(const AttentionProblem &problem,
                       const AttentionSchedule &schedule) {
  AttentionProblem known = problem.resolved();
  return AttentionKernel(known, resolved(known, schedule)).build();
}

} // namespace kiln
