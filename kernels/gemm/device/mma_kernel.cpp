// mma_kernel: the schedule of Ampere and Ada: all threads of a CTA load ahead
// (cp.async), multiply by warps (mma.sync), and store.
//
//     K tile i    wait for its copies, meet: now all have left the slot before
//                 copy K tile i + stages - 1 into that one, and go on
//                 multiply
#include "gemm/checks.h"
#include "main_loop.h"

#include <kiln/language/memory/async_copy.h>
#include <kiln/language/threads/threads.h>
#include <kiln/language/value/control.h>

#include <algorithm>

namespace kiln::gemm_kernel {

namespace {
class MmaKernel : public MainLoop {
public:
  MmaKernel(const GemmProblem &problem, const GemmSchedule &schedule,
            const DeviceDescription &device)
      : MainLoop(problem, schedule, device,
                 {.warpgroups = schedule.consumers,
                  .ctas_per_sm = schedule.occupancy,
                  .target = device.target()}),
        threads_(schedule.consumers * kThreadsPerWarpgroup) {}

private:
  void make_barriers() override {
    meeting_ = kb_.named_barriers(1, threads_)[0];
  }
  void roles() override;
  void multiply_tile(Accumulator &accumulator, const OutputTile &tile,
                     const Share &share);

  int threads_;
  std::optional<NamedBarrier> meeting_; ///< of all threads
};
} // namespace

void MmaKernel::roles() {
  warpgroups(0, schedule_.consumers, {}, [&](Value consumer) {
    Share share(schedule_, consumer);
    output_.start();
    Accumulator accumulator(shape().accumulator(), share.rows, share.columns);
    scheduler_.for_each([&](const OutputTile &tile) {
      multiply_tile(accumulator, tile, share);
      meeting_->sync(); // what is stored may lie over the slots
      store(accumulator, tile, share, consumer);
    });
    output_.finish();
  });
}

/// All K tiles of this CTA.
void MmaKernel::multiply_tile(Accumulator &accumulator, const OutputTile &tile,
                              const Share &share) {
  Range range = k_range(tile);
  Value begin = value_of(range.begin), end = value_of(range.end);
  int ahead = schedule_.stages - 1;
  // A group for each K tile, also where there is none to copy: as many as are
  // waited for.
  auto copy = [&](const Value &k_tile, const Value &slot) {
    if_(k_tile < end, [&] { operands_.copy(tile, k_tile, slot, threads_); });
    async_copy_commit();
  };
  for_range(0, ahead, [&](Value i) { copy(begin + i, i); });
  Var filled(i32, ahead), read(i32, 0);
  auto advance = [&](Var &slot) {
    slot = select(slot == schedule_.stages - 1, constant(i32, 0), slot + 1);
  };
  for_range(begin, end, [&](Value k_tile) {
    if (ahead == 0) { // the slot has been read
      meeting_->sync();
      copy(k_tile, filled);
    }
    async_copy_wait(std::max(0, ahead - 1));
    meeting_->sync();
    if (ahead > 0) {
      copy(k_tile + ahead, filled);
      advance(filled);
    }
    accumulator.mma(a_of(Value(read), share), b_of(Value(read), share));
    accumulator.wait(0);
    advance(read);
  });
}

std::unique_ptr<MainLoop> make_mma_kernel(const GemmProblem &problem,
                                          const GemmSchedule &schedule,
                                          const GemmDebug &debug,
                                          const DeviceDescription &device) {
  if (debug.is_traced)
    refuse("what a kernel for {} does is not printed: all its threads do the "
           "same; kernels for sm_90a print what each role does",
           device.target());
  return std::make_unique<MmaKernel>(problem, schedule, device);
}

} // namespace kiln::gemm_kernel
