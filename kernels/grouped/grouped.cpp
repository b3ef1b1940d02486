// grouped: one persistent launch over the tiles of all groups.
//
// A producer and two consumers, as in the cooperative GEMM: each consumer has
// 64 of a tile's 128 rows. What differs is where a tile comes from. The
// scheduler walks through the groups and reads from memory which rows are
// theirs; a tile of A may begin at any row, and its last rows may be another
// group's. They are multiplied like the rest and not stored: a full tile leaves
// by TMA, the last one of a group row by row.
#include <kiln/grouped_gemm.h>

#include <kiln/kiln.h>

#include <fmt/format.h>

namespace kiln {

namespace {

constexpr int kTileM = 128, kTileK = 64, kConsumers = 2;
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
            {.tile = {kTileM, kTileK}, .swizzle = Swizzle::b128})),
        b_(kb_.tensor_map(
            "b", problem.type, {problem.groups, problem.n, problem.k},
            {.tile = {1, schedule.tile_n, kTileK}, .swizzle = Swizzle::b128})),
        numbers_(kb_.tensor(is_masked() ? "counts" : "offsets", i32,
                            {problem.row_numbers()})),
        d_(kb_.tensor("d", problem.out, {stored_rows(), problem.n})),
        scheduler_(kb_, problem.groups, kTileM,
                   ceil_div(problem.n, schedule.tile_n), stored_rows(),
                   [this](const Value &group) { return rows_of(group); },
                   {.ctas = schedule.ctas}),
        pipeline_(kb_, schedule.stages, {a_, b_}, {.consumers = kConsumers}) {
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
    int columns = std::min(128 / size_bytes(problem.out), schedule.tile_n);
    return TileLayout::of(problem.out, kRows, columns);
  }
  static bool stores_by_tma(const GroupedGemmProblem &problem) {
    return problem.n * size_bytes(problem.out) % 16 == 0;
  }

private:
  static std::string name(const GroupedGemmProblem &problem,
                          const GroupedGemmSchedule &schedule);
  bool is_masked() const { return problem_.layout == GroupLayout::masked; }
  Dim stored_rows() const { return problem_.stored_rows(); }
  GroupRows rows_of(const Value &group) const;
  void produce();
  void consume(const Value &consumer);
  void store(Accumulator &sums, const GroupedTile &tile, const Value &consumer);

  GroupedGemmProblem problem_;
  GroupedGemmSchedule schedule_;
  KernelBuilder kb_;
  TmaTensor a_, b_;
  Tensor numbers_, d_;
  GroupedTileScheduler scheduler_;
  Pipeline pipeline_;
  std::optional<Epilogue> epilogue_;
};

} // namespace

std::string GroupedKernel::name(const GroupedGemmProblem &problem,
                                const GroupedGemmSchedule &schedule) {
  return fmt::format("grouped_{}x{}x{}x{}_{}_{}{}_{}x{}x{}_{}", problem.groups,
                     problem.rows, problem.n, problem.k,
                     kiln::name(problem.type), kiln::name(problem.out),
                     problem.layout == GroupLayout::masked ? "_masked" : "",
                     kTileM, schedule.tile_n, kTileK, schedule.stages);
}

GroupRows GroupedKernel::rows_of(const Value &group) const {
  if (!is_masked())
    return {numbers_(group), numbers_(group + 1)};
  Value begin = group * problem_.rows;
  return {begin, begin + min(numbers_(group), problem_.rows)};
}

void GroupedKernel::produce() {
  Dim k_tiles = ceil_div(problem_.k, kTileK);
  one_thread([&] {
    scheduler_.for_each([&](const GroupedTile &tile) {
      Value column = tile.n * schedule_.tile_n;
      for_range(0, k_tiles, [&](Value k) {
        pipeline_.produce([&](const Slot &slot) {
          slot.load(a_, {tile.row, k * kTileK});
          slot.load(b_, {tile.group, column, k * kTileK});
        });
      });
    });
  });
}

void GroupedKernel::consume(const Value &consumer) {
  Dim k_tiles = ceil_div(problem_.k, kTileK);
  Accumulator sums(f32, kRows, schedule_.tile_n);
  scheduler_.for_each([&](const GroupedTile &tile) {
    sums.reset();
    for_range(0, k_tiles, [&](Value) {
      pipeline_.consume(sums, [&](const Slot &slot) {
        SharedTile a = slot[a_].slice(consumer * kRows, 0, kRows, kTileK);
        sums.mma(a, slot[b_].transpose());
      });
    });
    pipeline_.drain(sums);
    store(sums, tile, consumer);
  });
  if (epilogue_)
    epilogue_->finish();
}

/// Rows that are not the group's stay as they are.
void GroupedKernel::store(Accumulator &sums, const GroupedTile &tile,
                          const Value &consumer) {
  Value first = consumer * kRows;
  Value row = tile.row + first, rows = tile.rows - first;
  Value column = tile.n * schedule_.tile_n;
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
  if (schedule.tile_n == 0)
    for (schedule.tile_n = 64;
         schedule.tile_n < 256 && schedule.tile_n < problem.n;)
      schedule.tile_n += schedule.tile_n == 64 ? 64 : 128;
  if (schedule.tile_n % 64 != 0 || schedule.tile_n < 64 ||
      schedule.tile_n > 256)
    throw UserError(fmt::format("tiles of {} columns; a grouped GEMM has 64, "
                                "128, 192 or 256",
                                schedule.tile_n));
  if (schedule.ctas < 0)
    throw UserError(fmt::format(
        "{} CTAs; 0 stands for one on each multiprocessor", schedule.ctas));
  int reserved = 1024; // between arrays of different alignment
  if (GroupedKernel::stores_by_tma(problem))
    reserved += epilogue_bytes(GroupedKernel::subtile(problem, schedule),
                               {.warpgroups = kConsumers});
  TileLayout a{problem.type, kTileM, kTileK, Swizzle::b128};
  TileLayout b{problem.type, schedule.tile_n, kTileK, Swizzle::b128};
  int most = max_stages({a, b}, reserved);
  if (schedule.stages == 0)
    schedule.stages = most;
  if (schedule.stages < 1 || schedule.stages > most)
    throw UserError(fmt::format("{} stages of 128x{} tiles; 1 to {} fit into "
                                "shared memory",
                                schedule.stages, schedule.tile_n, most));
  return schedule;
}

Module build_grouped_gemm(const GroupedGemmProblem &problem,
                          const GroupedGemmSchedule &schedule) {
  problem.check();
  return GroupedKernel(problem, filled(problem, schedule)).build();
}

} // namespace kiln
