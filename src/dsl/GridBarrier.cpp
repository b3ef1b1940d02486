// GridBarrier: a counter. Every CTA adds 1 and the first one what makes the
// sum 2^31: with the last arrival the upper bit changes, and the others are 0
// again for the next time.
#include "dsl/LocationScope.h"
#include "dsl/State.h"
#include "kiln/atomics.h"
#include "kiln/control.h"
#include "kiln/grid_barrier.h"
#include "kiln/threads.h"

namespace kiln {

GridBarrier::GridBarrier(KernelBuilder &kb, const std::string &name,
                         Where where)
    : counter_(kb.workspace(name, Type::u32, {1}, {}, where)) {
  kb.state().contract.is_cooperative = true;
}

void GridBarrier::sync(Where where) const {
  LocationScope scope(where);
  fence_async_global(); // of what this thread wrote
  sync_threads();
  one_thread([&] {
    Value ctas =
        cast(grid_size(Axis::x) * grid_size(Axis::y) * grid_size(Axis::z), u32);
    Value isFirst =
        (block_id(Axis::x) | block_id(Axis::y) | block_id(Axis::z)) == 0;
    constexpr std::int64_t kTurn = std::int64_t{1} << 31;
    Value step =
        select(isFirst, constant(u32, kTurn) - (ctas - 1), constant(u32, 1));
    Value before =
        atomic_add(counter_(0), step, {.order = MemoryOrder::acquire_release});
    while_(
        [&] {
          Value now = atomic_load(counter_(0), {.order = MemoryOrder::acquire});
          return ((now ^ before) & constant(u32, kTurn)) == 0;
        },
        [] {});
  });
  sync_threads();
  fence_async_global(); // before what others wrote is read
}

} // namespace kiln
