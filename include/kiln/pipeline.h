// pipeline.h: Pipeline, a ring of shared-memory slots between TMA and its
// consumers.
//
// Each slot holds one tile of every tensor and has two barriers: `full` is
// completed by the bytes TMA writes, `empty` by the consumers that are done
// reading. Slots, phases and byte counts are derived:
//
//     producer   wait empty(s) -> expect bytes, load into s -> next s
//     consumer   wait full(s)  -> mma on s ... release -> next s
//
// With more than one slot one multiplication stays in flight: consuming slot s
// issues its mma, waits for the one before it, and releases that one's slot.
#pragma once

#include <kiln/builder.h>
#include <kiln/tma.h>
#include <kiln/wgmma.h>

#include <functional>
#include <memory>
#include <vector>

namespace kiln {

class Pipeline;

/// The slot at hand inside produce and consume.
class Slot {
public:
  /// Load the tile of `tensor` at `origin` into this slot.
  void load(const TmaTensor &tensor, const std::vector<At> &origin,
            std::source_location where = std::source_location::current()) const;
  /// A tensor and the line that names it.
  struct Named {
    const TmaTensor &tensor;
    std::source_location where;
    Named(const TmaTensor &tensor,
          std::source_location where = std::source_location::current())
        : tensor(tensor), where(where) {}
  };
  /// The tile of a tensor in this slot.
  SharedTile operator[](Named name) const;

private:
  friend class Pipeline;
  Slot(const Pipeline &pipeline, Value index)
      : pipeline_(pipeline), index_(index) {}
  const Pipeline &pipeline_;
  Value index_;
};

class Pipeline {
public:
  /// `stages` slots for one tile of each tensor; `consumers` warpgroups read
  /// each. Initialises the barriers and synchronises the CTA: all threads must
  /// reach it.
  Pipeline(KernelBuilder &kb, int stages, std::vector<TmaTensor> tensors,
           int consumers = 1,
           std::source_location where = std::source_location::current());
  ~Pipeline();
  Pipeline(const Pipeline &) = delete;

  /// Fill the next slot: `body` loads every tensor once. One thread of the
  /// calling warpgroup does it (see one_thread).
  void produce(const std::function<void(const Slot &)> &body,
               std::source_location where = std::source_location::current());
  /// Multiply from the next slot into `accumulator`: `body` issues its mma.
  void consume(Accumulator &accumulator,
               const std::function<void(const Slot &)> &body,
               std::source_location where = std::source_location::current());
  /// Wait for the multiplications in flight and release the last slot, so that
  /// another round can begin.
  void drain(Accumulator &accumulator,
             std::source_location where = std::source_location::current());

  int stages() const;
  /// Bytes of one slot.
  int slot_bytes() const;

private:
  friend class Slot;
  struct State;
  std::unique_ptr<State> state_;
};

/// The most slots of those tiles that fit beside `reserved_bytes` of other
/// shared memory on that target.
int max_stages(const std::vector<TileLayout> &tiles, int reserved_bytes = 0,
               const std::string &target = "sm_90a");

} // namespace kiln
