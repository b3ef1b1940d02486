// Epilogue: from registers through shared memory to a tensor.
#include "kiln/epilogue.h"
#include "dsl/Fragment.h"
#include "dsl/State.h"
#include "support/Error.h"

namespace kiln {

static constexpr int kThreadsPerWarpgroup = 128;

/// Refuse what the tile, the map and the accumulator do not agree on.
static void checkShapes(const Accumulator &accumulator, const TmaTensor &tensor,
                        const SharedTile &staging,
                        const std::source_location &where) {
  if (tensor.rank() != 2)
    userErrorAt(where,
                "an accumulator is stored to a tensor map of 2 "
                "dimensions; '{}' has {}",
                tensor.name(), tensor.rank());
  if (accumulator.rows() != staging.rows() ||
      accumulator.columns() != staging.columns())
    userErrorAt(where,
                "an accumulator of {}x{} does not fit the staging tile of {}; "
                "they have one shape",
                accumulator.rows(), accumulator.columns(),
                staging.layout().to_string());
  if (staging.is_transposed())
    userErrorAt(where, "the staging tile is seen as its transpose; TMA stores "
                       "it as it lies");
}

/// The named barrier of the warpgroup that calls.
static int barrierOf(const KernelBuilder::State &state,
                     const EpilogueOptions &options,
                     const std::source_location &where) {
  int threads = state.contract.threads();
  if (!state.currentRole && threads != kThreadsPerWarpgroup)
    userErrorAt(where,
                "store_through_shared is called by one warpgroup, and kernel "
                "{} has {} threads here; call it in the role of a warpgroup",
                state.name, threads);
  if (state.isOneThread)
    userErrorAt(where, "store_through_shared stands inside one_thread; all 128 "
                       "threads of a warpgroup hold the accumulator");
  return options.barrier ? options.barrier : 1 + state.currentRole.value_or(0);
}

void store_through_shared(Accumulator &accumulator, const TmaTensor &tensor,
                          const std::vector<At> &origin,
                          const SharedTile &staging,
                          const EpilogueOptions &options,
                          std::source_location where) {
  auto &state = KernelBuilder::State::current(where);
  checkShapes(accumulator, tensor, staging, where);
  int barrier = barrierOf(state, options, where);
  LocationScope scope(where);
  Type type = staging.layout().type;
  // Whoever stored last has seen the tile read.
  sync_threads(barrier, kThreadsPerWarpgroup, where);
  Fragment fragment(accumulator.rows(), accumulator.columns(), where);
  fragment.forEachRow([&](const Value &row, int first) {
    fragment.forEachPair(first, [&](const Value &column, int index) {
      staging.store_vector(row, column,
                           {cast(accumulator.element(index, where), type),
                            cast(accumulator.element(index + 1, where), type)});
    });
  });
  fence_async_shared(where);
  sync_threads(barrier, kThreadsPerWarpgroup, where);
  one_thread(
      [&] {
        tma_store(tensor, origin, staging, where);
        tma_store_commit(where);
        tma_store_wait_read(0, where);
      },
      where);
}

} // namespace kiln
