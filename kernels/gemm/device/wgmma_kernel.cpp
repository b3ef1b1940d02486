// wgmma_kernel: the schedules of Hopper. They differ in who does what when.
//
//     multistage        one warpgroup   | load ahead, multiply, store
//     warp-specialized  producer        | load, load, load, ...
//                       consumers       | multiply ............ store
//     cooperative       producer        | load ................ load ...
//                       consumers 0, 1  | multiply ..... store  multiply ...
//     pingpong          producer        | load ................ load ...
//                       consumer 0      | multiply  store    multiply  store
//                       consumer 1      |           multiply  store    ...
#include "main_loop.h"

#include <kiln/language/value/control.h>
#include <kiln/language/tile/register_tile.h>
#include <kiln/language/tensorcore/scaled_accumulators.h>
#include <kiln/language/threads/threads.h>

namespace kiln::gemm_kernel {

namespace {
class WgmmaKernel : public MainLoop {
public:
  WgmmaKernel(const GemmProblem &problem, const GemmSchedule &schedule,
              const GemmDebug &debug, const DeviceDescription &device)
      : MainLoop(problem, schedule, device, options(schedule, debug, device)) {}

private:
  static KernelOptions options(const GemmSchedule &schedule,
                               const GemmDebug &debug,
                               const DeviceDescription &device);
  void make_barriers() override;
  PipelineOptions pipeline_options() const override;
  void roles() override;
  void multistage();
  void consume(const Value &consumer);
  void take_turns(const Value &consumer, Accumulator &accumulator);
  void multiply_tile(Accumulator &accumulator, const OutputTile &tile,
                     const Share &share);
  void multiply_blocks(Accumulator &accumulator, const OutputTile &tile,
                       const Share &share);
  void multiply(Accumulator &accumulator, const Slot &slot, const Share &share);

  std::optional<MbarrierArray> turns_; ///< of two consumers
};
} // namespace

KernelOptions WgmmaKernel::options(const GemmSchedule &schedule,
                                   const GemmDebug &debug,
                                   const DeviceDescription &device) {
  bool is_alone = schedule.kind == GemmKind::multistage;
  return {.warpgroups = is_alone ? 1 : schedule.consumers + 1,
          .ctas_per_sm = schedule.occupancy,
          .cluster = {.x = schedule.cluster_ctas()},
          .target = device.target(),
          .debug_print = debug.is_traced && !schedule.is_persistent()};
}

/// One barrier for each of two consumers that take turns, completed when it may
/// multiply.
void WgmmaKernel::make_barriers() {
  if (schedule_.kind != GemmKind::pingpong)
    return;
  turns_ = kb_.mbarriers(2, "turn");
  one_thread([&] {
    for (int i : {0, 1})
      (*turns_)[i].init(1);
  });
}

PipelineOptions WgmmaKernel::pipeline_options() const {
  bool is_one = schedule_.kind == GemmKind::pingpong;
  return {.consumers = is_one ? 1 : schedule_.consumers,
          .is_read_by_threads = schedule_.is_a_in_registers};
}

/// The consumers are warpgroups 0 and up, the producer is the last one.
void WgmmaKernel::roles() {
  if (schedule_.kind == GemmKind::multistage)
    return multistage();
  warpgroup(schedule_.consumers, {.registers = schedule_.producer_registers},
            [&] {
              if (operands_.uses_tma())
                one_thread([&] { load_all(); });
              else
                load_all();
            });
  warpgroups(0, schedule_.consumers,
             {.registers = schedule_.consumer_registers},
             [&](Value consumer) { consume(consumer); });
}

/// accumulator += the consumer's part of the slot's tiles.
void WgmmaKernel::multiply(Accumulator &accumulator, const Slot &slot,
                           const Share &share) {
  SharedTile a = a_of(slot, share), b = b_of(slot, share);
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
void WgmmaKernel::multiply_tile(Accumulator &accumulator,
                                const OutputTile &tile, const Share &share) {
  if (shape().scaling == Scaling::blocks)
    return multiply_blocks(accumulator, tile, share);
  auto step = [&](const Value &k_tile) {
    trace_.consumer_waits(k_tile);
    operands_.pipeline().consume(accumulator, [&](const Slot &slot) {
      trace_.consumer_multiplies(k_tile);
      multiply(accumulator, slot, share);
    });
    trace_.consumer_releases(k_tile);
  };
  Range range = k_range(tile);
  accumulator.reset();
  step(schedule_.split_k == 1 ? constant(i32, 0) : value_of(range.begin));
  for_range(range.second, range.end, [&](Value k_tile) { step(k_tile); });
}

/// The same with factors: a K tile is a block of them.
void WgmmaKernel::multiply_blocks(Accumulator &accumulator,
                                  const OutputTile &tile, const Share &share) {
  Value first = tile.m * schedule_.tile_m + share.first_row;
  BlockFactors factors;
  factors.of_row = [&](const Value &block, const Value &row) {
    return operands_.a_factor(tile, block, first + row);
  };
  factors.of_part = [&](const Value &block, int) {
    return operands_.b_factor(tile, block);
  };
  Range range = k_range(tile);
  accumulator.start_from(scaled_accumulators(
      accumulator, range.begin, range.end, factors, operands_.pipeline(),
      [&](const Slot &slot) { multiply(accumulator, slot, share); }));
}

/// One warpgroup loads as far ahead as it has slots.
void WgmmaKernel::multistage() {
  const Dim &k_tiles = operands_.k_tiles();
  // Consuming tile i frees the slot of the tile before it, for tile i + ahead;
  // with one slot, its own.
  int ahead = std::max(1, schedule_.stages - 1);
  Accumulator accumulator(shape().accumulator(), schedule_.tile_m,
                          schedule_.tile_n, schedule_.instruction_n);
  Value consumer = constant(i32, 0);
  Share share(schedule_, consumer);
  output_.start();
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

/// Two consumers take the CTA's tiles alternately. Each multiplies alone, with
/// the whole tensor core, while the other one stores.
void WgmmaKernel::take_turns(const Value &consumer, Accumulator &accumulator) {
  Share share(schedule_, consumer);
  const Dim &k_tiles = operands_.k_tiles();
  // The first one need not wait: a fresh barrier's phase before counts as done.
  Var parity(i32, 1 - consumer);
  operands_.pipeline().skip(consumer * k_tiles);
  scheduler_.for_each(consumer, 2, [&](const OutputTile &tile) {
    (*turns_)[consumer].wait(parity);
    multiply_tile(accumulator, tile, share);
    one_thread([&] { (*turns_)[1 - consumer].arrive(); });
    operands_.pipeline().drain(accumulator);
    operands_.pipeline().skip(k_tiles);
    parity = parity ^ 1;
    store(accumulator, tile, share, consumer);
  });
}

void WgmmaKernel::consume(const Value &consumer) {
  Share share(schedule_, consumer);
  output_.start();
  Accumulator accumulator(shape().accumulator(), share.rows, share.columns,
                          schedule_.instruction_n);
  if (schedule_.kind == GemmKind::pingpong) {
    take_turns(consumer, accumulator);
  } else {
    scheduler_.for_each([&](const OutputTile &tile) {
      multiply_tile(accumulator, tile, share);
      operands_.pipeline().drain(accumulator);
      trace_.consumer_stores();
      store(accumulator, tile, share, consumer);
    });
  }
  output_.finish();
}

std::unique_ptr<MainLoop> make_wgmma_kernel(const GemmProblem &problem,
                                            const GemmSchedule &schedule,
                                            const GemmDebug &debug,
                                            const DeviceDescription &device) {
  return std::make_unique<WgmmaKernel>(problem, schedule, debug, device);
}

} // namespace kiln::gemm_kernel
