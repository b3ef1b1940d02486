// kernel: the schedules. All share one way to load a tile, one main loop and
// one way out; they differ in who does what when.
//
//     multistage        one warpgroup   | load ahead, multiply, store
//     warp-specialized  producer        | load, load, load, ...
//                       consumers       | multiply ............ store
//     cooperative       producer        | load ................ load ...
//                       consumers 0, 1  | multiply ..... store  multiply ...
//     pingpong          producer        | load ................ load ...
//                       consumer 0      | multiply  store    multiply  store
//                       consumer 1      |           multiply  store    ...
#include "kernel.h"

#include "output.h"
#include "trace.h"

#include <kiln/cluster.h>
#include <kiln/control.h>
#include <kiln/dependent_launch.h>
#include <kiln/register_tile.h>
#include <kiln/threads.h>

namespace kiln::gemm_kernel {

namespace {

/// What one consumer computes of an output tile.
struct Share {
  int rows, columns;
  Value first_row, first_column;

  Share(const GemmSchedule &schedule, const Value &consumer)
      : rows(schedule.consumer_rows()), columns(schedule.consumer_columns()),
        first_row(consumer * (rows == schedule.tile_m ? 0 : rows)),
        first_column(consumer * (columns == schedule.tile_n ? 0 : columns)) {}
};

class GemmKernel {
public:
  GemmKernel(const GemmProblem &problem, const GemmSchedule &schedule,
             const GemmDebug &debug, const DeviceDescription &device)
      : schedule_(schedule), problem_(problem, schedule),
        kb_(gemm_kernel_name(problem, schedule, device),
            options(schedule, debug, device)),
        trace_(problem_.problem, schedule), operands_(kb_, problem_, schedule),
        output_(kb_, problem_, schedule),
        scheduler_(declare_dims(), ceil_div(shape().m, schedule.tile_m),
                   ceil_div(shape().n, schedule.tile_n), shape().batch,
                   order(schedule)) {
    if (schedule.kind == GemmKind::pingpong)
      make_turns();
    operands_.make_pipeline(kb_, scheduler_); // all threads meet there
    output_.make_buffers(kb_, operands_.pipeline());
    // What is ahead in the stream may still run: up to here nothing of it was
    // touched. What comes next may set itself up as well.
    wait_for_dependencies();
    if (!is_long())
      launch_dependents();
  }

  Module build() {
    if (schedule_.kind == GemmKind::multistage)
      multistage();
    else
      specialized();
    operands_.pipeline().finish();
    return kb_.module();
  }

private:
  static KernelOptions options(const GemmSchedule &schedule,
                               const GemmDebug &debug,
                               const DeviceDescription &device);
  static TileSchedulerOptions order(const GemmSchedule &schedule);
  KernelBuilder &declare_dims();
  bool is_long() const;
  const GemmProblem &shape() const { return problem_.problem; }

  /// From `begin`, with `second` behind it, to before `end`.
  struct Range {
    At begin, end, second;
  };
  Range k_range() const;
  void make_turns();
  void multistage();
  void specialized();
  void produce();
  void consume(const Value &consumer);
  void take_turns(const Value &consumer, Accumulator &accumulator);
  void multiply_tile(Accumulator &accumulator, const Share &share);
  void multiply(Accumulator &accumulator, const Slot &slot, const Share &share);
  void store(Accumulator &accumulator, const OutputTile &tile,
             const Share &share, const Value &consumer);

  GemmSchedule schedule_;
  KernelProblem problem_;
  KernelBuilder kb_;
  Trace trace_;
  Operands operands_;
  Output output_;
  TileScheduler scheduler_;
  std::optional<MbarrierArray> turns_; ///< of two consumers
};

} // namespace

KernelOptions GemmKernel::options(const GemmSchedule &schedule,
                                  const GemmDebug &debug,
                                  const DeviceDescription &device) {
  bool is_alone = schedule.kind == GemmKind::multistage;
  return {.warpgroups = is_alone ? 1 : schedule.consumers + 1,
          .ctas_per_sm = schedule.occupancy,
          .cluster = {.x = schedule.cluster_m * schedule.cluster_n *
                           schedule.split_k},
          .target = device.target(),
          .debug_print = debug.is_traced && !schedule.is_persistent()};
}

TileSchedulerOptions GemmKernel::order(const GemmSchedule &schedule) {
  return {.is_persistent = schedule.is_persistent(),
          .ctas = schedule.ctas,
          .raster = schedule.raster,
          .group = schedule.raster_group,
          .cluster_m = schedule.cluster_m,
          .cluster_n = schedule.cluster_n,
          .split = schedule.split_k};
}

/// Whether a tile takes so long that a launch ahead of time gains nothing. Few
/// CTAs with much to load are slower where the next ones already stand beside
/// them.
bool GemmKernel::is_long() const {
  constexpr int kLong = 256;
  const Dim &tiles = operands_.k_tiles();
  return tiles.is_constant() && tiles.constant() / schedule_.split_k >= kLong;
}

/// The K tiles of this CTA: all of them, or its part.
GemmKernel::Range GemmKernel::k_range() const {
  const Dim &tiles = operands_.k_tiles();
  if (schedule_.split_k == 1)
    return {0, tiles, 1};
  Value rank = cluster_rank(), parts = constant(i32, schedule_.split_k);
  Value begin = rank * tiles / parts, end = (rank + 1) * tiles / parts;
  return {begin, end, begin + 1};
}

/// The runtime dimensions are the last arguments, in the caller's order.
KernelBuilder &GemmKernel::declare_dims() {
  GemmProblem given = shape();
  if (problem_.is_swapped)
    std::swap(given.m, given.n);
  for (const Dim &dim : {given.m, given.n, given.k, given.batch})
    if (!dim.is_constant())
      kb_.dim(dim.argument_name());
  return kb_;
}

/// accumulator += the consumer's part of the slot's tiles.
void GemmKernel::multiply(Accumulator &accumulator, const Slot &slot,
                          const Share &share) {
  SharedTile a = operands_.a(slot), b = operands_.b(slot);
  if (share.rows != schedule_.tile_m)
    a = a.slice(share.first_row, 0, share.rows, schedule_.tile_k);
  if (share.columns != schedule_.tile_n)
    b = b.slice(0, share.first_column, schedule_.tile_k, share.columns);
  if (!schedule_.is_a_in_registers)
    return accumulator.mma(a, b);
  auto layout =
      RegisterLayout::wgmma_operand(shape().type, share.rows, schedule_.tile_k);
  RegisterTile in_registers = load_tile(layout, a);
  // One thread gives the slot back, to TMA: by then all have read theirs.
  fence_async_shared();
  sync_warpgroup();
  accumulator.mma(in_registers, b);
  accumulator.wait(0); // the registers are free for the next tile
}

/// All K tiles of one output tile; the first one overwrites the accumulator.
void GemmKernel::multiply_tile(Accumulator &accumulator, const Share &share) {
  auto step = [&](const Value &k_tile) {
    trace_.consumer_waits(k_tile);
    operands_.pipeline().consume(accumulator, [&](const Slot &slot) {
      trace_.consumer_multiplies(k_tile);
      multiply(accumulator, slot, share);
    });
    trace_.consumer_releases(k_tile);
  };
  Range range = k_range();
  accumulator.reset();
  step(schedule_.split_k == 1 ? constant(i32, 0) : value_of(range.begin));
  for_range(range.second, range.end, [&](Value k_tile) { step(k_tile); });
}

void GemmKernel::store(Accumulator &accumulator, const OutputTile &tile,
                       const Share &share, const Value &consumer) {
  output_.store(accumulator, tile, tile.m * schedule_.tile_m + share.first_row,
                tile.n * schedule_.tile_n + share.first_column, consumer);
}

/// One warpgroup loads as far ahead as it has slots.
void GemmKernel::multistage() {
  const Dim &k_tiles = operands_.k_tiles();
  // Consuming tile i frees the slot of the tile before it, for tile i + ahead;
  // with one slot, its own.
  int ahead = std::max(1, schedule_.stages - 1);
  Accumulator accumulator(shape().accumulator(), schedule_.tile_m,
                          schedule_.tile_n, schedule_.instruction_n);
  Value consumer = constant(i32, 0);
  Share share(schedule_, consumer);
  scheduler_.for_each([&](const OutputTile &tile) {
    auto load_if_any = [&](const Value &k_tile) {
      if_(k_tile < k_tiles, [&] { operands_.load(tile, k_tile); });
    };
    Value row = tile.m * schedule_.tile_m, column = tile.n * schedule_.tile_n;
    auto step = [&](const Value &k_tile) {
      trace_.main_waits(k_tile);
      operands_.pipeline().consume(accumulator, [&](const Slot &slot) {
        trace_.main_multiplies(k_tile);
        multiply(accumulator, slot, share);
      });
      Value next = k_tile + ahead;
      load_if_any(next);
      trace_.main_loads(k_tile, next, k_tiles, row, column);
    };
    for (int i = 0; i < ahead; ++i) {
      if (k_tiles.is_constant())
        operands_.load(tile, i); // fit() has no more stages than K tiles
      else
        load_if_any(constant(i32, i));
      trace_.prologue_loads(constant(i32, i), row, column);
    }
    step(constant(i32, 0));
    for_range(1, k_tiles, [&](Value k_tile) { step(k_tile); });
    operands_.pipeline().drain(accumulator);
    trace_.stores();
    store(accumulator, tile, share, consumer);
  });
  output_.finish();
}

/// The consumers are warpgroups 0 and up, the producer is the last one.
void GemmKernel::specialized() {
  warpgroup(schedule_.consumers, {.registers = schedule_.producer_registers},
            [&] { produce(); });
  warpgroups(0, schedule_.consumers,
             {.registers = schedule_.consumer_registers},
             [&](Value consumer) { consume(consumer); });
}

/// Load every K tile of every output tile of this CTA.
void GemmKernel::produce() {
  auto load_all = [&] {
    Range range = k_range();
    scheduler_.for_each([&](const OutputTile &tile) {
      for_range(range.begin, range.end, [&](Value k_tile) {
        trace_.producer_waits(k_tile);
        operands_.load(tile, k_tile);
        trace_.producer_loaded(k_tile);
      });
    });
  };
  if (!operands_.uses_tma())
    return load_all();
  one_thread(load_all);
}

/// One barrier for each of two consumers, completed when it may multiply.
void GemmKernel::make_turns() {
  turns_ = kb_.mbarriers(2, "turn");
  one_thread([&] {
    for (int i : {0, 1})
      (*turns_)[i].init(1);
  });
}

/// Two consumers take the CTA's tiles alternately. Each multiplies alone, with
/// the whole tensor core, while the other one stores.
void GemmKernel::take_turns(const Value &consumer, Accumulator &accumulator) {
  Share share(schedule_, consumer);
  const Dim &k_tiles = operands_.k_tiles();
  // The first one need not wait: a fresh barrier's phase before counts as done.
  Var parity(i32, 1 - consumer);
  operands_.pipeline().skip(consumer * k_tiles);
  scheduler_.for_each(consumer, 2, [&](const OutputTile &tile) {
    (*turns_)[consumer].wait(parity);
    multiply_tile(accumulator, share);
    one_thread([&] { (*turns_)[1 - consumer].arrive(); });
    operands_.pipeline().drain(accumulator);
    operands_.pipeline().skip(k_tiles);
    parity = parity ^ 1;
    store(accumulator, tile, share, consumer);
  });
}

void GemmKernel::consume(const Value &consumer) {
  Share share(schedule_, consumer);
  Accumulator accumulator(shape().accumulator(), share.rows, share.columns,
                          schedule_.instruction_n);
  if (schedule_.kind == GemmKind::pingpong) {
    take_turns(consumer, accumulator);
  } else {
    scheduler_.for_each([&](const OutputTile &tile) {
      multiply_tile(accumulator, share);
      operands_.pipeline().drain(accumulator);
      trace_.consumer_stores();
      store(accumulator, tile, share, consumer);
    });
  }
  output_.finish();
}

Module build_kernel(const GemmProblem &problem, const GemmSchedule &schedule,
                    const GemmDebug &debug, const DeviceDescription &device) {
  return GemmKernel(problem, schedule, debug, device).build();
}

} // namespace kiln::gemm_kernel
