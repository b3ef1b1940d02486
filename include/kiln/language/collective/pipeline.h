// pipeline.h: Pipeline, a ring of shared-memory slots between TMA and its
// consumers.
//
// Each slot holds one tile of every tensor and has two barriers: `full` is
// completed by the bytes TMA writes, `empty` by the consumers that are done
// reading. Slots, phases and byte counts are derived:
//
//     producer   reserve: wait empty(s), expect bytes -> load into s -> commit
//     consumer   acquire: wait full(s) -> mma on s ... -> release
//
// A slot is the consumer's from acquire to release, whatever it does meanwhile:
//
//     Slot slot = pipe.acquire();
//     s.mma(q, slot[k].transpose());
//     ...
//     wgmma_wait(1);              // s has landed: nobody reads the slot
//     pipe.release(slot);
//
// produce, consume and read are made of these. With more than one slot consume
// keeps one multiplication in flight: it issues the mma of slot s, waits for
// the one before it, and releases that one's slot. Where warps multiply
// (mma.sync) nothing is in flight, and the slot goes back at once.
#pragma once

#include <kiln/language/builder.h>
#include <kiln/base/export.h>
#include <kiln/language/memory/tma.h>
#include <kiln/language/tensorcore/wgmma.h>

#include <functional>
#include <memory>
#include <vector>

namespace KILN_API kiln {

class Pipeline;

/// Which slot of a ring a role is at, and the parity of the phase it waits for
/// there: the parity turns each time the ring begins again.
class PipelineState {
public:
  /// `first_parity`: 0 for who waits for slots to fill; 1 for who waits for
  /// them to be released, since a fresh barrier counts as released.
  PipelineState(int stages, int first_parity);

  Value slot() const { return slot_; }
  Value parity() const { return parity_; }
  /// To the next slot.
  void advance(Where where = Where::current());
  /// `count` slots further.
  void skip(At count);

private:
  int stages_;
  Var slot_, parity_;
};

/// A tile that several CTAs of a cluster need: each loads its part of the rows
/// and sends it to all of them (TMA multicast).
struct Multicast {
  int parts = 1; ///< CTAs that share the tile
  Value part;    ///< which part this CTA loads, 0 .. parts - 1
  Value mask;    ///< their ranks in the cluster, as bits
};

struct PipelineOptions {
  /// Warpgroups of this CTA that read each slot.
  int consumers = 1;
  /// Per tensor, how many CTAs share its tile; a slot then holds that many
  /// tiles of the tensor map, one below the other. Empty: none.
  std::vector<int> parts = {};
  /// Ranks of the other CTAs that load into this CTA's slots; each waits for
  /// the consumers here. Empty: none.
  std::vector<Value> peers = {};
  /// Consumers read slots with ordinary loads too, and not by wgmma alone: the
  /// peers must then be told with a fence of the cluster, which costs more.
  bool is_read_by_threads = false;
  /// Slots are filled by threads of a warpgroup (produce_by_threads), with
  /// ordinary stores, and not by TMA alone.
  bool is_by_threads = false;
  /// 1 or 2: slots are read by products of tensor memory, of one CTA or of a
  /// pair; `consumers` is then how many threads issue them. Acquired and
  /// released in one_thread; a slot that is released goes back when the
  /// products issued so far are finished. Both CTAs of a pair load, each its
  /// part, and the even one acquires and releases for both. 0: wgmma or threads
  /// read them.
  int tensor_group = 0;
  /// What findings call it: its barriers are `name`.full and `name`.empty, its
  /// slots `name`.TENSOR; empty: full, empty and TENSOR.
  std::string name = {};
};

/// A slot that is being filled or read.
class Slot {
public:
  /// Load the tile of `tensor` at `origin` into this slot.
  void load(const TmaTensor &tensor, const std::vector<At> &origin,
            Where where = Where::current()) const;
  /// Load this CTA's part of it, for all that share it; `origin` is that of the
  /// whole tile.
  void load(const TmaTensor &tensor, const std::vector<At> &origin,
            const Multicast &multicast, Where where = Where::current()) const;
  /// A tensor and the line that names it.
  struct Named {
    const TmaTensor &tensor;
    Where where;
    Named(const TmaTensor &tensor, Where where = Where::current())
        : tensor(tensor), where(where) {}
  };
  /// The tile of a tensor in this slot.
  SharedTile operator[](Named name) const;
  /// The tile by its place in the pipeline's list.
  SharedTile tile(int index, Where where = Where::current()) const;

private:
  friend class Pipeline;
  Slot(const Pipeline &pipeline, Value index)
      : pipeline_(&pipeline), index_(index) {}
  const Pipeline *pipeline_;
  Value index_;
};

class Pipeline {
public:
  /// `stages` slots for one tile of each tensor. Initialises the barriers and
  /// synchronises the CTA, or the cluster: all threads must reach it.
  Pipeline(KernelBuilder &kb, int stages, std::vector<TmaTensor> tensors,
           const PipelineOptions &options = {}, Where where = Where::current());
  /// The same for tiles that threads fill.
  Pipeline(KernelBuilder &kb, int stages, const std::vector<TileLayout> &tiles,
           const PipelineOptions &options, Where where = Where::current());
  /// The same where TMA loads the tiles of `tensors` and threads fill `tiles`,
  /// which come behind them in a slot.
  Pipeline(KernelBuilder &kb, int stages, std::vector<TmaTensor> tensors,
           const std::vector<TileLayout> &tiles, const PipelineOptions &options,
           Where where = Where::current());
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;

  /// The next slot, once it is full. Called by the 128 threads of a warpgroup,
  /// or by one thread (tensor_group); a slot may be kept while others are
  /// acquired.
  Slot acquire(Where where = Where::current());
  /// Let the producer have a slot again, when nothing reads it any more: what
  /// wgmma read has been waited for. What threads read with ordinary loads
  /// needs fence_async_shared and sync_warpgroup first, as `read` has them.
  void release(const Slot &slot, Where where = Where::current());
  /// The next slot to fill, once it is empty. By one thread where TMA fills it,
  /// by the 128 threads of a warpgroup where they do.
  Slot reserve(Where where = Where::current());
  /// A slot has been filled: TMA was given its loads, or threads have stored.
  void commit(const Slot &slot, Where where = Where::current());

  /// Fill the next slot by TMA: `body` loads every tensor once. One thread of
  /// the calling warpgroup does it (see one_thread).
  void produce(const std::function<void(const Slot &)> &body,
               Where where = Where::current());
  /// Fill the next slot by the 128 threads of the calling warpgroup: `body`
  /// stores to every tile, and one thread of it loads every tensor. What they
  /// store becomes visible to wgmma.
  void produce_by_threads(const std::function<void(const Slot &)> &body,
                          Where where = Where::current());
  /// Multiply from the next slot into `accumulator`: `body` issues its mma.
  void consume(Accumulator &accumulator,
               const std::function<void(const Slot &)> &body,
               Where where = Where::current());
  /// Read the next slot with ordinary loads, by the 128 threads of the calling
  /// warpgroup: it goes back to the producer when all of them have come to the
  /// end of `body`.
  void read(const std::function<void(const Slot &)> &body,
            Where where = Where::current());
  /// Wait for the multiplications in flight and release the last slot, so that
  /// another round can begin.
  void drain(Accumulator &accumulator, Where where = Where::current());
  /// Leave out `count` slots that another consumer takes.
  void skip(At count);
  /// End of a kernel whose CTAs load into each other: none leaves while another
  /// may still write to it or arrive at its barriers. Reached by all threads,
  /// outside roles; nothing where CTAs are alone.
  void finish(Where where = Where::current());

  int stages() const;
  /// Bytes of one slot.
  int slot_bytes() const;
  /// The array of slots of one tile, for SharedOptions::over.
  const SharedTileArray &tiles(int index) const;

private:
  friend class Slot;
  struct SlotTile;
  Pipeline(KernelBuilder &kb, int stages, const std::vector<SlotTile> &tiles,
           const PipelineOptions &options, Where where);
  static std::vector<SlotTile> slot_tiles(const std::vector<TmaTensor> &tensors,
                                          const std::vector<TileLayout> &tiles,
                                          const PipelineOptions &options);
  void check_own(const Slot &slot, Where where) const;
  void release_read(const Slot &slot, Where where);
  struct State;
  std::unique_ptr<State> state_;
};

/// A tile that TMA loads once, with a barrier of its own.
class LoadedTile {
public:
  /// The tile, once it is there. Called by any threads, any number of times.
  SharedTile wait(Where where = Where::current()) const;

private:
  friend LoadedTile tma_load_once(KernelBuilder &, const TmaTensor &,
                                  const std::vector<At> &, Where);
  LoadedTile(SharedTile tile, Mbarrier full) : tile_(tile), full_(full) {}
  SharedTile tile_;
  Mbarrier full_;
};

/// Load the tile of `tensor` at `origin` for the whole CTA, into shared memory
/// of its own, and go on:
///
///     LoadedTile q = tma_load_once(kb, q_map, {row, 0});
///     ...
///     s.mma(q.wait(), k.transpose());
///
/// Synchronises the CTA: all threads must reach it, once, outside roles.
LoadedTile tma_load_once(KernelBuilder &kb, const TmaTensor &tensor,
                         const std::vector<At> &origin,
                         Where where = Where::current());

/// The most slots of those tiles that fit beside `reserved_bytes` of other
/// shared memory on that target.
int max_stages(const std::vector<TileLayout> &tiles, int reserved_bytes = 0,
               const std::string &target = "sm_90a");

} // namespace kiln
