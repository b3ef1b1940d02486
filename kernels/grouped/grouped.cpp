// grouped: one persistent launch over the tiles of all groups.
//
// A producer and two consumers, as in the cooperative GEMM: each consumer has
// 64 of a tile's 128 rows. What differs is where a tile comes from. The
// scheduler walks through the groups and reads from memory which rows are
// theirs; a tile of A may begin at any row, and its last rows may be another
// group's. They are multiplied like the rest and not stored: a full tile leaves
// by TMA, the last one of a group row by row.
//
// Factors of blocks: each K tile has a sum of its own, which is multiplied by
// the factors of its rows and of its block of B and added to the tile's. They
// are read from global memory one K tile ahead.
#include "fields/field_text.h"

#include <kiln/kernels/grouped_gemm.h>

#include <kiln/kiln.h>

#include <fmt/format.h>

namespace kiln {

namespace {

constexpr int kTileM = 128, kConsumers = 2;
constexpr int kRows = kTileM / kConsumers; ///< of a consumer
constexpr int kProducerRegisters = 40, kConsumerRegisters = 232;

class GroupedKernel {
public:
  GroupedKernel(const GroupedGemmProblem &problem,
                const GroupedGemmSchedule &schedule)
      : problem_(problem), schedule_(schedule),
        kb_(name(problem, schedule), {.warpgroups = kConsumers + 1}),
        a_(kb_.tensor_map(
            "a", problem.type, {stored_rows(), problem.k},
            {.tile = {kTileM, tile_k()}, .swizzle = Swizzle::b128})),
        b_(kb_.tensor_map(
            "b", problem.type,
            {problem.groups, problem.halves(), problem.n, problem.k},
            {.tile = {1, problem.halves(), columns(), tile_k()},
             .swizzle = Swizzle::b128})),
        numbers_(kb_.tensor(is_masked() ? "counts" : "offsets", i32,
                            {problem.row_numbers()})),
        d_(kb_.tensor("d", problem.out, {stored_rows(), problem.n})),
        scheduler_(kb_, problem.groups, kTileM, ceil_div(problem.n, columns()),
                   stored_rows(),
                   [this](const Value &group) { return rows_of(group); },
                   {.ctas = schedule.ctas}),
        pipeline_(kb_, schedule.stages, {a_, b_}, {.consumers = kConsumers}) {
    if (has_scales()) {
      a_scales_ =
          kb_.tensor("a_scales", f32, {problem.k_blocks(), stored_rows()});
      b_scales_ = kb_.tensor("b_scales", f32,
                             {problem.groups, problem.halves(),
                              problem.n_blocks(), problem.k_blocks()});
    }
    if (!stores_by_tma(problem))
      return;
    TileLayout tile = subtile(problem, schedule);
    TmaTensor map = kb_.tensor_map(
        d_, {.tile = {tile.rows, tile.columns}, .swizzle = tile.swizzle});
    epilogue_.emplace(kb_, map, EpilogueOptions{.warpgroups = kConsumers});
  }

  Module build() {
    warpgroup(kConsumers, {.registers = kProducerRegisters},
              [&] { produce(); });
    warpgroups(0, kConsumers, {.registers = kConsumerRegisters},
               [&](Value consumer) { consume(consumer); });
    return kb_.module();
  }

  /// One piece of a tile on its way to D.
  static TileLayout subtile(const GroupedGemmProblem &problem,
                            const GroupedGemmSchedule &schedule) {
    int columns = schedule.tile_n / problem.halves();
    return TileLayout::of(problem.out, kRows,
                          std::min(128 / size_bytes(problem.out), columns));
  }
  static bool stores_by_tma(const GroupedGemmProblem &problem) {
    return problem.n * size_bytes(problem.out) % 16 == 0;
  }

private:
  static std::string name(const GroupedGemmProblem &problem,
                          const GroupedGemmSchedule &schedule);
  bool is_masked() const { return problem_.layout == GroupLayout::masked; }
  bool has_scales() const { return problem_.scaling != Scaling::none; }
  Dim stored_rows() const { return problem_.stored_rows(); }
  int tile_k() const { return 128 / size_bytes(problem_.type); }
  /// Of D, of a tile.
  int columns() const { return schedule_.tile_n / problem_.halves(); }
  GroupRows rows_of(const Value &group) const;
  void produce();
  void consume(const Value &consumer);
  void multiply(Accumulator &sums, const Value &consumer);
  RegisterTile factored_sums(Accumulator &part, const GroupedTile &tile,
                             const Value &consumer);
  RegisterTile gated(const RegisterTile &sums, const RegisterLayout &to) const;
  SharedTile rows_of(const Slot &slot, const Value &consumer) const {
    return slot[a_].slice(consumer * kRows, 0, kRows, tile_k());
  }
  void store(Accumulator &sums, const GroupedTile &tile, const Value &consumer);

  GroupedGemmProblem problem_;
  GroupedGemmSchedule schedule_;
  KernelBuilder kb_;
  TmaTensor a_, b_;
  Tensor numbers_, d_;
  GroupedTileScheduler scheduler_;
  Pipeline pipeline_;
  std::optional<Epilogue> epilogue_;
  std::optional<Tensor> a_scales_, b_scales_;
};

} // namespace

std::string GroupedKernel::name(const GroupedGemmProblem &problem,
                                const GroupedGemmSchedule &schedule) {
  return fmt::format("grouped{}{}_{}x{}_{}", fields::name_of(problem, true),
                     fields::name_of(problem, false), kTileM, schedule.tile_n,
                     schedule.stages);
}

GroupRows GroupedKernel::rows_of(const Value &group) const {
  if (!is_masked())
    return {numbers_(group), numbers_(group + 1)};
  Value begin = group * problem_.rows;
  return {begin, begin + min(numbers_(group), problem_.rows)};
}

void GroupedKernel::produce() {
  Dim k_tiles = ceil_div(problem_.k, tile_k());
  one_thread([&] {
    scheduler_.for_each([&](const GroupedTile &tile) {
      Value column = tile.n * columns();
      for_range(0, k_tiles, [&](Value k) {
        pipeline_.produce([&](const Slot &slot) {
          slot.load(a_, {tile.row, k * tile_k()});
          slot.load(b_, {tile.group, 0, column, k * tile_k()});
        });
      });
    });
  });
}

/// The sums of one tile.
void GroupedKernel::multiply(Accumulator &sums, const Value &consumer) {
  sums.reset();
  for_range(0, ceil_div(problem_.k, tile_k()), [&](Value) {
    pipeline_.consume(sums, [&](const Slot &slot) {
      sums.mma(rows_of(slot, consumer), slot[b_].transpose());
    });
  });
  pipeline_.drain(sums);
}

/// The same, with factors.
RegisterTile GroupedKernel::factored_sums(Accumulator &part,
                                          const GroupedTile &tile,
                                          const Value &consumer) {
  Value first = tile.row + consumer * kRows;
  Value n = tile.n * columns() / block_of(problem_.scaling).b_columns;
  BlockFactors factors;
  factors.parts = problem_.halves();
  factors.of_row = [&](const Value &block, const Value &row) -> Value {
    return (*a_scales_)(block, min(first + row, // others' rows are not stored
                                   constant(i32, problem_.stored_rows() - 1)));
  };
  factors.of_part = [&](const Value &block, int half) -> Value {
    return b_scales_->index(0, tile.group)(half, n, block);
  };
  return scaled_accumulators(part, 0, problem_.k_blocks(), factors, pipeline_,
                     [&](const Slot &slot) {
                       part.mma(rows_of(slot, consumer), slot[b_].transpose());
                     });
}

/// silu(gate) * up, of sums that have them side by side.
RegisterTile GroupedKernel::gated(const RegisterTile &sums,
                                  const RegisterLayout &to) const {
  constexpr double kLog2E = 1.4426950408889634;
  RegisterTile gate = sums.slice(0, 0, kRows, columns());
  RegisterTile up = sums.slice(0, columns(), kRows, columns());
  RegisterTile result(f32, to);
  for (int reg = 0; reg < to.registers(); ++reg) {
    Value x = gate.element(reg);
    result.set(reg, x * rcp(exp2(x * -kLog2E) + 1.0) * up.element(reg));
  }
  return result;
}

void GroupedKernel::consume(const Value &consumer) {
  Accumulator sums(f32, kRows, schedule_.tile_n);
  std::optional<Accumulator> out;
  if (has_scales() || problem_.is_swiglu)
    out.emplace(f32, kRows, columns());
  scheduler_.for_each([&](const GroupedTile &tile) {
    if (!has_scales()) {
      multiply(sums, consumer);
      if (!out)
        return store(sums, tile, consumer);
    }
    RegisterTile result =
        has_scales() ? factored_sums(sums, tile, consumer) : sums.tile();
    out->start_from(problem_.is_swiglu ? gated(result, out->layout()) : result);
    store(*out, tile, consumer);
  });
  if (epilogue_)
    epilogue_->finish();
}

/// Rows that are not the group's stay as they are.
void GroupedKernel::store(Accumulator &sums, const GroupedTile &tile,
                          const Value &consumer) {
  Value first = consumer * kRows;
  Value row = tile.row + first, rows = tile.rows - first;
  Value column = tile.n * columns();
  auto store_rows = [&] {
    sums.store(d_.slice(0, row, rows), {0, column}, {.column_multiple = 8});
  };
  if (!epilogue_)
    return store_rows();
  if_(
      rows >= kRows,
      [&] { epilogue_->store(sums, {row, column}, {}, consumer); }, store_rows);
}

/// The schedule with what was left open filled in.
static GroupedGemmSchedule filled(const GroupedGemmProblem &problem,
                                  GroupedGemmSchedule schedule) {
  // With factors a tile's sums are there twice.
  bool has_scales = problem.scaling != Scaling::none;
  int most = has_scales ? 128 : 256, least = 64 * problem.halves();
  if (schedule.tile_n == 0)
    for (schedule.tile_n = least;
         schedule.tile_n < most && schedule.tile_n < problem.b_rows();)
      schedule.tile_n += schedule.tile_n == 64 ? 64 : 128;
  if (schedule.tile_n % least != 0 || schedule.tile_n < least ||
      schedule.tile_n > most)
    throw UserError(fmt::format("tiles of {} rows of B; {} has a multiple of "
                                "{} up to {}",
                                schedule.tile_n, problem.to_string(), least,
                                most));
  if (schedule.ctas < 0)
    throw UserError(fmt::format(
        "{} CTAs; 0 stands for one on each multiprocessor", schedule.ctas));
  int reserved = 1024; // between arrays of different alignment
  if (GroupedKernel::stores_by_tma(problem))
    reserved += epilogue_bytes(GroupedKernel::subtile(problem, schedule),
                               {.warpgroups = kConsumers});
  int tile_k = 128 / size_bytes(problem.type);
  TileLayout a{problem.type, kTileM, tile_k, Swizzle::b128};
  TileLayout b{problem.type, schedule.tile_n, tile_k, Swizzle::b128};
  int fitting = max_stages({a, b}, reserved);
  if (schedule.stages == 0)
    schedule.stages = fitting;
  if (schedule.stages < 1 || schedule.stages > fitting)
    throw UserError(fmt::format("{} stages of 128x{} tiles; 1 to {} fit into "
                                "shared memory",
                                schedule.stages, schedule.tile_n, fitting));
  return schedule;
}

Module build_grouped_gemm(const GroupedGemmProblem &problem,
                          const GroupedGemmSchedule &schedule) {
  problem.check();
  return GroupedKernel(problem, filled(problem, schedule)).build();
}

} // namespace kiln
