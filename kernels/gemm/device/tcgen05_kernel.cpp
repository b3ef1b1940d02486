// tcgen05_kernel: the schedules of Blackwell. One thread multiplies, into
// tensor memory; the warpgroups called consumers store.
//
//     warp-specialized  producer        | load, load, load, ...
//                       multiplier      |   multiply ........
//                       consumers       |                   store
//     cooperative       producer        | load ................ load ...
//                       multiplier      |   multiply ........        multiply
//                       consumers 0, 1  |                   store
//     pingpong          producer        | load ................ load ...
//                       multiplier      |   multiply  multiply  multiply ...
//                       consumer 0      |           store     ...
//                       consumer 1      |                     store     ...
//
// Each consumer has sums of its own in tensor memory. Of pingpong, which has
// two, one tile's are stored while the next tile's are added up.
//
// Two CTAs of a cluster can multiply together (cta_group 2): each loads its
// rows of A and half the columns of B, and the first one multiplies for both.
#include "gemm/checks.h"
#include "main_loop.h"

#include <kiln/language/threads/cluster.h>
#include <kiln/language/value/control.h>
#include <kiln/language/tensorcore/tensor_memory.h>
#include <kiln/language/threads/threads.h>

#include <optional>

namespace kiln::gemm_kernel {

namespace {

class Tcgen05Kernel : public MainLoop {
public:
  Tcgen05Kernel(const GemmProblem &problem, const GemmSchedule &schedule,
                const DeviceDescription &device)
      : MainLoop(problem, schedule, device, options(problem, schedule, device)),
        is_pingpong_(schedule.kind == GemmKind::pingpong) {}

private:
  static KernelOptions options(const GemmProblem &problem,
                               const GemmSchedule &schedule,
                               const DeviceDescription &device);
  void make_barriers() override;
  PipelineOptions pipeline_options() const override {
    return {.tensor_group = schedule_.cta_group};
  }
  void make_memory() override;
  void roles() override;
  void multiply_all();
  void multiply_tile(const Value &first);
  void multiply(const TensorTile &sums, const Slot &slot, int consumer,
                const Value &is_added) const;
  void store_all(const Value &consumer);

  bool is_pair() const { return schedule_.cta_group == 2; }
  /// Consumers that share a tile, and tiles whose sums there is room for.
  int sharers() const { return is_pingpong_ ? 1 : schedule_.consumers; }
  int rounds() const { return is_pingpong_ ? schedule_.consumers : 1; }

  bool is_pingpong_;
  std::optional<MbarrierArray> added_, stored_; ///< sums, of each consumer
  std::optional<TensorMemory> memory_;
  std::optional<TensorTileArray> sums_;             ///< of each consumer
  std::optional<TensorScales> a_scales_, b_scales_; ///< of one step
};
} // namespace

KernelOptions Tcgen05Kernel::options(const GemmProblem &problem,
                                     const GemmSchedule &schedule,
                                     const DeviceDescription &device) {
  // A thread of the producer's warpgroup multiplies, unless all of it copies.
  bool uses_tma = KernelProblem(problem, schedule).uses_tma();
  return {.warpgroups = schedule.consumers + (uses_tma ? 1 : 2),
          .ctas_per_sm = schedule.occupancy,
          .cluster = {.x = schedule.cluster_m * schedule.cluster_n},
          .target = device.target()};
}

void Tcgen05Kernel::make_barriers() {
  added_ = kb_.mbarriers(schedule_.consumers, "added");
  stored_ = kb_.mbarriers(schedule_.consumers, "stored");
  one_thread([&] {
    for (int i = 0; i < schedule_.consumers; ++i) {
      (*added_)[i].init(1);
      (*stored_)[i].init(kThreadsPerWarpgroup * schedule_.cta_group);
    }
  });
}

void Tcgen05Kernel::make_memory() {
  int rows = schedule_.consumer_rows(), columns = schedule_.consumer_columns();
  memory_.emplace(kb_, tensor_columns(shape(), schedule_),
                  TensorMemoryOptions{.cta_group = schedule_.cta_group});
  sums_ =
      memory_->tiles(shape().accumulator(), rows, columns, schedule_.consumers);
  if (!has_scale_pieces(shape()))
    return;
  Type type = block_of(shape().scaling).type;
  int blocks = step_blocks(shape(), schedule_);
  int first = schedule_.consumers * columns;
  a_scales_ = memory_->scales(type, schedule_.tile_m, blocks, first);
  first += tensor_scale_columns(schedule_.tile_m, blocks);
  b_scales_ = memory_->scales(type, schedule_.tile_n, blocks, first);
}

/// The consumers are warpgroups 0 and up, the producer comes behind them.
void Tcgen05Kernel::roles() {
  auto multiply = [&] {
    auto all = [&] { one_thread_of(0, [&] { multiply_all(); }); };
    if (is_pair())
      if_(cluster_rank() == 0, all);
    else
      all();
  };
  int producer = schedule_.consumers;
  if (operands_.uses_tma()) {
    warpgroup(producer, [&] {
      one_thread_of(3, [&] { load_all(); });
      multiply();
    });
  } else {
    warpgroup(producer, [&] { load_all(); });
    warpgroup(producer + 1, multiply);
  }
  warpgroups(0, schedule_.consumers, {},
             [&](Value consumer) { store_all(consumer); });
}

/// sums += the consumer's part of the slot's tiles.
void Tcgen05Kernel::multiply(const TensorTile &sums, const Slot &slot,
                             int consumer, const Value &is_added) const {
  Share share(schedule_, constant(i32, consumer));
  SharedTile a = a_of(slot, share), b = b_of(slot, share);
  int columns = schedule_.instruction_n;
  TensorMmaOptions options{.add = is_added};
  auto part = [&](int size, int all) {
    return size == all ? 0 : consumer * size;
  };
  int row = part(share.rows, schedule_.tile_m);
  int column = part(share.columns, schedule_.tile_n);
  if (a_scales_)
    options.a_scales = a_scales_->slice(row, share.rows);
  for (int first = 0; first < share.columns; first += columns) {
    if (b_scales_)
      options.b_scales = b_scales_->slice(column + first, columns);
    if (columns == share.columns)
      return sums.mma(a, b, options);
    sums.slice(first, columns)
        .mma(a, b.slice(0, first, schedule_.tile_k, columns), options);
  }
}

/// All K tiles of one output tile, into the sums of the consumers from `first`
/// on; the first K tile overwrites them.
void Tcgen05Kernel::multiply_tile(const Value &first) {
  for_range(0, operands_.k_tiles(), [&](Value k_tile) {
    Slot slot = operands_.pipeline().acquire();
    if (a_scales_) { // this thread's products are done in their order
      a_scales_->copy(operands_.a_scales(slot));
      b_scales_->copy(operands_.b_scales(slot));
    }
    for (int i = 0; i < sharers(); ++i)
      multiply((*sums_)[first + i], slot, i, k_tile != 0);
    operands_.pipeline().release(slot);
  });
}

/// In one thread, of a pair in the first CTA: both hear of what is added up.
void Tcgen05Kernel::multiply_all() {
  ProductArrival heard{.cta_group = schedule_.cta_group};
  if (is_pair())
    heard.cta_mask = 3;
  // Sums begin stored: the wait before the first round is over.
  PipelineState at(rounds(), 1);
  scheduler_.for_each([&](const OutputTile &) {
    Value first = at.slot() * sharers();
    for (int i = 0; i < sharers(); ++i)
      (*stored_)[first + i].wait(at.parity(),
                                 is_pair() ? Scope::cluster : Scope::cta);
    tensor_fence_after();
    multiply_tile(first);
    for (int i = 0; i < sharers(); ++i)
      (*added_)[first + i].arrive_products(heard);
    at.advance();
  });
}

void Tcgen05Kernel::store_all(const Value &consumer) {
  Share share(schedule_, consumer);
  TensorTile sums = (*sums_)[consumer];
  Mbarrier added = (*added_)[consumer], stored = (*stored_)[consumer];
  Var parity(i32, 0);
  output_.start();
  auto store_one = [&](const OutputTile &tile) {
    added.wait(parity);
    parity = parity ^ 1;
    tensor_fence_after();
    store(sums, tile, share, consumer);
    tensor_fence_before();
    if (is_pair())
      stored.remote(0).arrive();
    else
      stored.arrive();
  };
  if (is_pingpong_)
    scheduler_.for_each(consumer, schedule_.consumers, store_one);
  else
    scheduler_.for_each(store_one);
  output_.finish();
}

std::unique_ptr<MainLoop> make_tcgen05_kernel(const GemmProblem &problem,
                                              const GemmSchedule &schedule,
                                              const GemmDebug &debug,
                                              const DeviceDescription &device) {
  return std::make_unique<Tcgen05Kernel>(problem, schedule, device);
}

} // namespace kiln::gemm_kernel
