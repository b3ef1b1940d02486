// GridBarrier: a counter at which every CTA arrives.
#include "dsl/kernel/LocationScope.h"
#include "dsl/kernel/State.h"
#include "dsl/collective/TurnCounter.h"
#include "kiln/language/collective/grid_barrier.h"
#include "kiln/language/threads/threads.h"

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
    Value before = atomic_add(counter_(0), turnStep(isFirst, ctas),
                              {.order = MemoryOrder::acquire_release});
    waitForTurn(counter_(0), before);
  });
  sync_threads();
  fence_async_global(); // before what others wrote is read
}

} // namespace kiln
