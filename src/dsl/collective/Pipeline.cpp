// Pipeline: the ring of slots, written with the atoms of the public headers.
#include "kiln/language/collective/pipeline.h"
#include "dsl/kernel/State.h"
#include "kiln/language/threads/cluster.h"
#include "kiln/language/value/control.h"
#include "kiln/run/device_description.h"
#include "kiln/language/threads/threads.h"
#include "support/Error.h"

#include <algorithm>

namespace kiln {

static constexpr int kThreadsPerWarpgroup = 128;

PipelineState::PipelineState(int stages, int first_parity)
    : stages_(stages), slot_(i32, 0), parity_(i32, first_parity) {}

void PipelineState::advance(Where where) {
  Value next = slot() + At(1, where);
  Value wraps = next == At(stages_, where);
  parity_ = At(parity() ^ At(cast(At(wraps, where), i32), where), where);
  slot_ = At(select(At(wraps, where), At(0, where), At(next, where)), where);
}

void PipelineState::skip(At count) {
  const auto &where = count.where();
  Value next = slot() + count;
  Value rounds = next / At(stages_, where);
  parity_ = At(parity() ^ At(rounds & At(1, where), where), where);
  slot_ = At(next % At(stages_, where), where);
}

struct Pipeline::State {
  int stages;
  PipelineOptions options;
  std::vector<TmaTensor> tensors;     ///< those TMA loads, the first of a slot
  std::vector<SharedTileArray> tiles; ///< one array per tile of a slot
  MbarrierArray full, empty;
  PipelineState producer{stages, 1}, consumer{stages, 0};
  Var held{i32, -1}; ///< the slot whose multiplication is in flight
  int bytes = 0;     ///< loaded into the slot being filled, while it is built

  /// One multiplication stays in flight where there is a slot to spare.
  int inFlight() const { return stages > 1 ? 1 : 0; }
  bool isInCluster() const { return !options.peers.empty(); }
  /// How far a release must reach. What wgmma has read is finished, and needs
  /// no fence.
  Scope releaseScope() const {
    return isInCluster() && options.is_read_by_threads ? Scope::cluster
                                                       : Scope::cta;
  }
  /// Who hears of finished products: this CTA, or both of its pair.
  ProductArrival productsOfGroup() const {
    if (options.tensor_group == 1)
      return {};
    return {.cta_group = 2, .cta_mask = At(constant(i32, 3) << leader())};
  }
  /// The rank of the even CTA of the pair.
  static Value leader() { return cluster_rank() & ~1; }
  int parts(std::size_t tensor) const {
    return options.parts.empty() ? 1 : options.parts[tensor];
  }

  /// Let the producers have `slot` again, here and in the CTAs that load into
  /// it: one arrival per consumer warpgroup. One thread speaks for all: a wgmma
  /// is finished for the four warps together.
  void release(const Value &slot) const {
    one_thread([&] {
      if (options.tensor_group)
        return empty[slot].arrive_products(productsOfGroup());
      empty[slot].arrive();
      for (const Value &rank : options.peers)
        empty[slot].remote(rank).arrive(1, releaseScope());
    });
  }
  /// Products of tensor memory are of one thread.
  void checkReader(const char *what, const Where &where) const {
    bool isOneThread = KernelBuilder::State::current(where).isOneThread;
    if (options.tensor_group && !isOneThread)
      userErrorAt(where,
                  "the slots of this pipeline are read by products of tensor "
                  "memory; {} stands inside one_thread",
                  what);
  }
  /// Release the slot of the multiplication before the last one.
  void releaseHeld() const {
    Value previous = held;
    if_(previous >= 0, [&] { release(previous); });
  }
};

/// Refuse a ring that cannot be.
static void checkRing(int stages, std::size_t tiles,
                      const PipelineOptions &options, const Where &where) {
  if (stages < 1)
    userErrorAt(where, "a pipeline of {} stages; at least 1 is needed", stages);
  if (tiles == 0)
    userErrorAt(where, "a pipeline without tensors moves nothing; give it one "
                       "or more");
  if (options.consumers < 1)
    userErrorAt(where, "a pipeline with {} consumers; at least 1 is needed",
                options.consumers);
  if (!options.parts.empty() && options.parts.size() != tiles)
    userErrorAt(where,
                "a pipeline of {} tensors with the parts of {}; give one "
                "number for each",
                tiles, options.parts.size());
  if (options.tensor_group < 0 || options.tensor_group > 2)
    userErrorAt(where, "a CTA group of {}; 1 or 2 CTAs multiply together",
                options.tensor_group);
  if (options.tensor_group && !options.peers.empty())
    userErrorAt(where, "the slots of products of tensor memory are loaded by "
                       "the CTAs that multiply together alone");
  if (options.tensor_group == 2 && options.is_by_threads)
    userErrorAt(where, "the slots of a pair of CTAs are loaded by TMA; threads "
                       "fill those of a CTA group of 1");
  for (int parts : options.parts)
    if (parts < 1)
      userErrorAt(where, "a tile in {} parts; at least 1 is needed", parts);
}

/// One tile of a slot, and what it is called.
struct Pipeline::SlotTile {
  TileLayout layout;
  std::string name;
};

/// The tiles of a slot: those of the tensor maps, one below the other where
/// several CTAs load them, and those that threads fill.
std::vector<Pipeline::SlotTile>
Pipeline::slot_tiles(const std::vector<TmaTensor> &tensors,
                     const std::vector<TileLayout> &tiles,
                     const PipelineOptions &options) {
  std::vector<SlotTile> all;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    all.push_back({tensors[i].tile(), tensors[i].name()});
    if (i < options.parts.size())
      all.back().layout.rows *= options.parts[i];
  }
  for (const TileLayout &tile : tiles)
    all.push_back({tile, "slot"});
  return all;
}

Pipeline::Pipeline(KernelBuilder &kb, int stages,
                   std::vector<TmaTensor> tensors,
                   const PipelineOptions &options, Where where)
    : Pipeline(kb, stages, slot_tiles(tensors, {}, options), options, where) {
  LocationScope scope(where);
  state_->tensors = std::move(tensors);
  one_thread([&] {
    for (const TmaTensor &tensor : state_->tensors)
      tma_prefetch(tensor);
  });
}

Pipeline::Pipeline(KernelBuilder &kb, int stages,
                   const std::vector<TileLayout> &tiles,
                   const PipelineOptions &options, Where where)
    : Pipeline(kb, stages, slot_tiles({}, tiles, options), options, where) {}

Pipeline::Pipeline(KernelBuilder &kb, int stages,
                   const std::vector<SlotTile> &tiles,
                   const PipelineOptions &options, Where where) {
  checkRing(stages, tiles.size(), options, where);
  LocationScope scope(where);
  std::string prefix = options.name.empty() ? "" : options.name + ".";
  std::vector<SharedTileArray> arrays;
  for (const SlotTile &tile : tiles)
    arrays.push_back(kb.shared_array(tile.layout, stages,
                                     {.name = prefix + tile.name}, where));
  MbarrierArray full = kb.mbarriers(stages, prefix + "full", where);
  MbarrierArray empty = kb.mbarriers(stages, prefix + "empty", where);
  int peers = static_cast<int>(options.peers.size());
  // NOLINTNEXTLINE(modernize-make-unique): its variables note this line
  state_.reset(new State{stages, options, {}, std::move(arrays), full, empty});
  one_thread([&] {
    for (int i = 0; i < stages; ++i) {
      full[i].init(options.is_by_threads ? kThreadsPerWarpgroup
                                         : std::max(1, options.tensor_group));
      empty[i].init(options.consumers * (1 + peers));
    }
    fence_mbarrier_init();
  });
  if (state_->isInCluster() || options.tensor_group == 2)
    cluster_sync();
  else
    sync_threads();
}

Pipeline::Pipeline(KernelBuilder &kb, int stages,
                   std::vector<TmaTensor> tensors,
                   const std::vector<TileLayout> &tiles,
                   const PipelineOptions &options, Where where)
    : Pipeline(kb, stages, slot_tiles(tensors, tiles, options), options,
               where) {
  if (!options.is_by_threads)
    userErrorAt(where,
                "a pipeline of {} tensors and {} tiles, and no threads "
                "fill those; set is_by_threads",
                tensors.size(), tiles.size());
  state_->tensors = std::move(tensors);
}

Pipeline::~Pipeline() = default;

int Pipeline::stages() const { return state_->stages; }

int Pipeline::slot_bytes() const {
  int bytes = 0;
  for (const SharedTileArray &tile : state_->tiles)
    bytes += tile.layout().bytes();
  return bytes;
}

const SharedTileArray &Pipeline::tiles(int index) const {
  return state_->tiles.at(index);
}

Slot Pipeline::acquire(Where where) {
  LocationScope scope(where);
  state_->checkReader("acquire", where);
  PipelineState &at = state_->consumer;
  Slot slot(*this, at.slot());
  state_->full[slot.index_].wait(at.parity());
  at.advance();
  return slot;
}

void Pipeline::release(const Slot &slot, Where where) {
  LocationScope scope(where);
  check_own(slot, where);
  state_->checkReader("release", where);
  state_->release(slot.index_);
}

Slot Pipeline::reserve(Where where) {
  State &state = *state_;
  bool isByThreads = state.options.is_by_threads;
  bool isOneThread = KernelBuilder::State::current(where).isOneThread;
  if (isByThreads && isOneThread)
    userErrorAt(where, "the slots of this pipeline are filled by the 128 "
                       "threads of a warpgroup; reserve stands outside "
                       "one_thread");
  if (!isByThreads && !isOneThread)
    userErrorAt(where, "the slots of this pipeline are filled by TMA; reserve "
                       "stands inside one_thread");
  LocationScope scope(where);
  Slot slot(*this, state.producer.slot());
  state.empty[slot.index_].wait(state.producer.parity(), state.releaseScope());
  if (state.options.tensor_group == 2)
    state.full[slot.index_]
        .remote(State::leader())
        .arrive_expect_tx(slot_bytes());
  else if (!isByThreads)
    state.full[slot.index_].arrive_expect_tx(slot_bytes());
  state.bytes = 0;
  state.producer.advance();
  return slot;
}

void Pipeline::commit(const Slot &slot, Where where) {
  LocationScope scope(where);
  check_own(slot, where);
  int wanted = 0;
  for (std::size_t i = 0; i < state_->tensors.size(); ++i)
    wanted += state_->tiles[i].layout().bytes();
  if (state_->bytes != wanted)
    userErrorAt(where,
                "{} bytes of tensors were loaded into a slot of {}; each "
                "tensor of the pipeline is loaded once, by one thread",
                state_->bytes, wanted);
  if (state_->options.is_by_threads) {
    fence_async_shared();
    state_->full[slot.index_].arrive();
  }
}

/// Refuse a slot of another pipeline.
void Pipeline::check_own(const Slot &slot, Where where) const {
  if (slot.pipeline_ != this)
    userErrorAt(where, "this slot is of another pipeline; each takes back its "
                       "own");
}

void Pipeline::produce(const std::function<void(const Slot &)> &body,
                       Where where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  if (state_->options.is_by_threads)
    userErrorAt(where, "the slots of this pipeline are filled by threads; use "
                       "produce_by_threads");
  one_thread([&] {
    Slot slot = reserve(where);
    {
      UserCode user(outside);
      body(slot);
    }
    commit(slot, where);
  });
}

void Pipeline::produce_by_threads(const std::function<void(const Slot &)> &body,
                                  Where where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  if (!state_->options.is_by_threads)
    userErrorAt(where, "the slots of this pipeline are filled by TMA; use "
                       "produce");
  Slot slot = reserve(where);
  {
    UserCode user(outside);
    body(slot);
  }
  commit(slot, where);
}

void Pipeline::consume(Accumulator &accumulator,
                       const std::function<void(const Slot &)> &body,
                       Where where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  Slot slot = acquire(where);
  {
    UserCode user(outside);
    body(slot);
  }
  if (KernelBuilder::State::current(where).multipliesByWarps()) {
    accumulator.wait(0, {}, where);
    return release_read(slot, where);
  }
  accumulator.wait(state_->inFlight());
  if (state_->inFlight() == 0)
    return release(slot, where);
  // What is finished now is the multiplication before this one.
  state_->releaseHeld();
  state_->held = slot.index_;
}

void Pipeline::read(const std::function<void(const Slot &)> &body,
                    Where where) {
  auto outside = collectiveLine;
  LocationScope scope(where);
  Slot slot = acquire(where);
  {
    UserCode user(outside);
    body(slot);
  }
  release_read(slot, where);
}

/// One thread speaks for all, and TMA writes what they have read.
void Pipeline::release_read(const Slot &slot, Where where) {
  fence_async_shared();
  sync_warpgroup(where);
  release(slot, where);
}

void Pipeline::drain(Accumulator &accumulator, Where where) {
  LocationScope scope(where);
  accumulator.wait(0);
  if (state_->inFlight() == 0)
    return;
  state_->releaseHeld();
  state_->held = -1;
}

void Pipeline::skip(At count) { state_->consumer.skip(count); }

void Pipeline::finish(Where where) {
  if (state_->isInCluster() || state_->options.tensor_group == 2)
    cluster_sync(where);
}

/// The place of `tensor` among those of a pipeline.
static std::size_t indexOf(const std::vector<TmaTensor> &tensors,
                           const TmaTensor &tensor, const Where &where) {
  for (std::size_t i = 0; i < tensors.size(); ++i)
    if (tensors[i].map().impl() == tensor.map().impl())
      return i;
  userErrorAt(where, "tensor map '{}' is not one of this pipeline's",
              tensor.name());
}

void Slot::load(const TmaTensor &tensor, const std::vector<At> &origin,
                Where where) const {
  load(tensor, origin, Multicast{}, where);
}

void Slot::load(const TmaTensor &tensor, const std::vector<At> &origin,
                const Multicast &multicast, Where where) const {
  Pipeline::State &state = *pipeline_->state_;
  std::size_t i = indexOf(state.tensors, tensor, where);
  if (multicast.parts != state.parts(i))
    userErrorAt(where,
                "tensor map '{}' is loaded in {} parts, and its pipeline was "
                "made for {}",
                tensor.name(), multicast.parts, state.parts(i));
  LocationScope scope(where);
  SharedTile tile = state.tiles[i][index_];
  const Mbarrier full = state.full[index_];
  state.bytes += tile.layout().bytes();
  if (state.options.is_by_threads) // announced before this thread arrives
    full.expect_tx(At(tile.layout().bytes(), where));
  if (state.options.tensor_group == 2)
    return tma_load(tile, tensor, origin,
                    full.remote(At(Pipeline::State::leader(), where), where),
                    where);
  if (multicast.parts == 1)
    return tma_load(tile, tensor, origin, full, where);
  int rows = tensor.tile().rows;
  Value first = multicast.part * At(rows, where);
  std::vector<At> from = origin;
  At &row = from[from.size() - 2];
  row = At(value_of(row) + At(first, where), where);
  SharedTile part =
      tile.slice(At(first, where), At(0, where), rows, tile.columns());
  tma_load_multicast(part, tensor, from, full, At(multicast.mask, where),
                     where);
}

SharedTile Slot::tile(int index, Where where) const {
  const auto &tiles = pipeline_->state_->tiles;
  if (index < 0 || index >= static_cast<int>(tiles.size()))
    userErrorAt(where, "a slot of {} tiles has no tile {}", tiles.size(),
                index);
  return tiles[index][At(index_, where)];
}

SharedTile Slot::operator[](Named name) const {
  std::size_t i = indexOf(pipeline_->state_->tensors, name.tensor, name.where);
  return tile(static_cast<int>(i), name.where);
}

SharedTile LoadedTile::wait(Where where) const {
  full_.wait(At(0, where), Scope::cta, where);
  return tile_;
}

LoadedTile tma_load_once(KernelBuilder &kb, const TmaTensor &tensor,
                         const std::vector<At> &origin, Where where) {
  LocationScope scope(where);
  SharedTile tile = kb.shared(tensor.tile(), {.name = tensor.name()}, where);
  Mbarrier full = kb.mbarriers(1, tensor.name() + ".full", where)[0];
  one_thread([&] {
    full.init(1);
    fence_mbarrier_init();
    full.arrive_expect_tx(tensor.tile_bytes());
    tma_load(tile, tensor, origin, full, where);
  });
  sync_threads();
  return LoadedTile(tile, full);
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
