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

/// One thread arrives for its CTA, and waits for the others.
static void arriveAndWait(const Element &counter, const Value &ctas,
                          const Value &isFirst) {
  constexpr std::int64_t kTurn = std::int64_t{1} << 31;
  Value step =
      select(isFirst, constant(u32, kTurn) - (ctas - 1), constant(u32, 1));
  Value before =
      atomic_add(counter, step, {.order = MemoryOrder::acquire_release});
  while_(
      [&] {
        Value now = atomic_or(counter, 0, {.order = MemoryOrder::acquire});
        return ((now ^ before) & constant(u32, kTurn)) == 0;
      },
      [] {});
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
    arriveAndWait(counter_(0), ctas, isFirst);
  });
  sync_threads();
  fence_async_global(); // before what others wrote is read
}

GroupBarriers::GroupBarriers(KernelBuilder &kb, const Dim &groups,
                             const std::string &name, Where where)
    : counters_(kb.workspace(name, Type::u32, {groups}, {}, where)) {
  kb.state().contract.is_cooperative = true;
}

void GroupBarriers::sync(At group, const Member &member, Where where) const {
  LocationScope scope(where);
  sync_warpgroup();
  one_thread([&] {
    arriveAndWait(counters_(group), constant(u32, member.members),
                  value_of(member.is_first));
  });
  sync_warpgroup();
}

} // namespace kiln
