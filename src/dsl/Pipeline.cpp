// Pipeline: the ring of slots, written with the atoms of the public headers.
#include "kiln/pipeline.h"
#include "dsl/LocationScope.h"
#include "kiln/control.h"
#include "kiln/device_description.h"
#include "kiln/threads.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

namespace {
/// Which slot a role is at, and the parity it waits for there.
struct Cursor {
  Var slot, parity;

  explicit Cursor(int firstParity) : slot(i32, 0), parity(i32, firstParity) {}

  /// To the next slot; the parity turns when the ring begins again.
  void advance(int stages) {
    Value next = Value(slot) + 1;
    Value wraps = next == stages;
    parity = Value(parity) ^ cast(wraps, i32);
    slot = select(wraps, 0, next);
  }
};
} // namespace

struct Pipeline::State {
  int stages;
  std::vector<TmaTensor> tensors;
  std::vector<SharedTile> tiles; ///< one array per tensor
  MbarrierArray full, empty;
  /// A fresh `empty` barrier counts as released: the producer begins at 1.
  Cursor producer{1}, consumer{0};
  Var held{i32, -1}; ///< the slot whose multiplication is in flight
  int loads = 0;     ///< of the slot being filled, while it is built

  /// One multiplication stays in flight where there is a slot to spare.
  int inFlight() const { return stages > 1 ? 1 : 0; }
};

/// Let the producer have `slot` again; one arrival per consumer warpgroup. One
/// thread speaks for all: a wgmma is finished for the four warps together.
static void release(const MbarrierArray &empty, const Value &slot) {
  one_thread([&] { empty[slot].arrive(); });
}

Pipeline::Pipeline(KernelBuilder &kb, int stages,
                   std::vector<TmaTensor> tensors, int consumers,
                   std::source_location where) {
  if (stages < 1)
    userErrorAt(where, "a pipeline of {} stages; at least 1 is needed", stages);
  if (tensors.empty())
    userErrorAt(where, "a pipeline without tensors moves nothing; give it one "
                       "or more");
  if (consumers < 1)
    userErrorAt(where, "a pipeline with {} consumers; at least 1 is needed",
                consumers);
  LocationScope scope(where);
  std::vector<SharedTile> tiles;
  for (const TmaTensor &tensor : tensors)
    tiles.push_back(kb.shared_array(tensor.tile(), stages, where));
  MbarrierArray full = kb.mbarriers(stages, where);
  MbarrierArray empty = kb.mbarriers(stages, where);
  state_.reset(
      new State{stages, std::move(tensors), std::move(tiles), full, empty});
  one_thread([&] {
    for (int i = 0; i < stages; ++i) {
      full[i].init(1);
      empty[i].init(consumers);
    }
    fence_mbarrier_init();
    for (const TmaTensor &tensor : state_->tensors)
      tma_prefetch(tensor);
  });
  sync_threads();
}

Pipeline::~Pipeline() = default;

int Pipeline::stages() const { return state_->stages; }

int Pipeline::slot_bytes() const {
  int bytes = 0;
  for (const TmaTensor &tensor : state_->tensors)
    bytes += tensor.tile_bytes();
  return bytes;
}

void Pipeline::produce(const std::function<void(const Slot &)> &body,
                       std::source_location where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  State &state = *state_;
  one_thread([&] {
    Value slot = state.producer.slot;
    state.empty[slot].wait(state.producer.parity);
    state.full[slot].arrive_expect_tx(slot_bytes());
    state.loads = 0;
    {
      UserCode user(outside);
      body(Slot(*this, slot));
    }
    if (state.loads != static_cast<int>(state.tensors.size()))
      userErrorAt(where,
                  "produce loaded {} tiles into a slot of {}; each "
                  "tensor of the pipeline is loaded once",
                  state.loads, state.tensors.size());
    state.producer.advance(state.stages);
  });
}

void Pipeline::consume(Accumulator &accumulator,
                       const std::function<void(const Slot &)> &body,
                       std::source_location where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  State &state = *state_;
  Value slot = state.consumer.slot;
  state.full[slot].wait(state.consumer.parity);
  {
    UserCode user(outside);
    body(Slot(*this, slot));
  }
  accumulator.wait(state.inFlight());
  if (state.inFlight() == 0) {
    release(state.empty, slot);
  } else {
    // What is finished now is the multiplication before this one.
    Value previous = state.held;
    if_(previous >= 0, [&] { release(state.empty, previous); });
    state.held = slot;
  }
  state.consumer.advance(state.stages);
}

void Pipeline::drain(Accumulator &accumulator, std::source_location where) {
  LocationScope scope(where);
  State &state = *state_;
  accumulator.wait(0);
  if (state.inFlight() == 0)
    return;
  Value previous = state.held;
  if_(previous >= 0, [&] { release(state.empty, previous); });
  state.held = -1;
}

/// The place of `tensor` among those of a pipeline.
static std::size_t indexOf(const std::vector<TmaTensor> &tensors,
                           const TmaTensor &tensor,
                           const std::source_location &where) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].map().impl() == tensor.map().impl())
      return i;
  userErrorAt(where, "tensor map '{}' is not one of this pipeline's",
              tensor.name());
}

void Slot::load(const TmaTensor &tensor, const std::vector<At> &origin,
                std::source_location where) const {
  Pipeline::State &state = *pipeline_.state_;
  std::size_t i = indexOf(state.tensors, tensor, where);
  LocationScope scope(where);
  tma_load(tile_at(state.tiles[i], index_), tensor, origin, state.full[index_],
           where);
  ++state.loads;
}

SharedTile Slot::operator[](Named name) const {
  Pipeline::State &state = *pipeline_.state_;
  std::size_t i = indexOf(state.tensors, name.tensor, name.where);
  return tile_at(state.tiles[i], At(index_, name.where));
}

int max_stages(const std::vector<TileLayout> &tiles, int reserved_bytes,
               const std::string &target) {
  const DeviceDescription &device = DeviceDescription::for_target(target);
  int slot = 16; // its two barriers
  for (const TileLayout &tile : tiles)
    slot += tile.stride_bytes();
  return (device.max_smem_per_cta_bytes - reserved_bytes) / slot;
}

} // namespace kiln
