// VectorClock: what is known to have happened, as vector clocks.
//
// A component of a clock is something that does accesses in an order of its
// own: the lanes of a warp, the copies they start, the products of a warpgroup,
// the phases of an mbarrier. `Epoch` says how far one component is known. Lanes
// of a warp share a component, because they mostly run together: all of them
// are known up to one time, and some of them, perhaps, up to a later one. Where
// two such facts do not fit into one, the sum claims a little more order than
// there is; it never claims less.
//
// Four views are kept side by side. An access through the generic proxy asks
// the generic view; an asynchronous copy or product asks the async view of its
// space, which a fence.proxy.async fills from the generic one. What is
// completed (reads that are over, copies and products that were waited for)
// needs no fence between proxies.
//
// Clusters of one launch that talk through global memory know of each other: a
// clock has one block of components per cluster, shared until it is changed.
#pragma once

#include "sim/program/Lanes.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace kiln::sim {

/// A number in its cluster's block, below the number of the block.
using Component = std::uint32_t;
inline constexpr int kBlockShift = 13;

/// How far one component is known.
struct Epoch {
  std::uint32_t all = 0;  ///< every lane, up to this time
  std::uint32_t some = 0; ///< the lanes of `mask`, up to this time
  LaneMask mask = 0;

  bool covers(std::uint32_t time, LaneMask lanes) const {
    return time <= all || (time <= some && (lanes & ~mask) == 0);
  }
  void join(const Epoch &other);
  bool operator==(const Epoch &) const = default;
};

/// `tensor` is no view of a clock: what tcgen05 instructions know is a clock of
/// its own (Knowledge::tensor).
enum class View : std::uint8_t {
  generic,
  asyncShared,
  asyncGlobal,
  completed,
  tensor,
};
inline constexpr std::size_t kViews = 4;

/// How far the components of every cluster are known, in every view.
class Clock {
public:
  const Epoch *find(View view, Component component) const {
    std::uint32_t number = component >> kBlockShift;
    auto found = placeOf(number);
    if (found == blocks_.end() || found->first != number)
      return nullptr;
    const auto &known = found->second->views[static_cast<std::size_t>(view)];
    std::size_t local = component & ((1u << kBlockShift) - 1);
    return local < known.size() ? &known[local] : nullptr;
  }
  /// Know more of one component.
  void learn(View view, Component component, const Epoch &known);
  void join(const Clock &other);
  /// Join what one view knows, and nothing else.
  void joinOnly(View view, const Clock &other);
  /// Know, in every view of threads, what the async view of shared memory does.
  void joinFenced(const Clock &other);
  /// The async view `to` knows what the generic one does.
  void fenceProxy(View to);

  bool isEmpty() const { return blocks_.empty(); }
  /// Clocks with the same number know the same.
  std::uint64_t version() const;
  /// Whether they share their blocks: nothing has changed since one became a
  /// copy of the other.
  bool isSame(const Clock &other) const { return blocks_ == other.blocks_; }

private:
  struct Block {
    std::array<std::vector<Epoch>, kViews> views;
  };
  static void joinView(std::vector<Epoch> &to, const std::vector<Epoch> &from);
  static bool isCovered(const std::vector<Epoch> &from,
                        const std::vector<Epoch> &by);
  using Blocks = std::vector<std::pair<std::uint32_t, std::shared_ptr<Block>>>;

  /// Where the block with that number is, or would be.
  Blocks::const_iterator placeOf(std::uint32_t number) const {
    return std::partition_point(
        blocks_.begin(), blocks_.end(),
        [&](const auto &entry) { return entry.first < number; });
  }
  /// The block with that number; null: it has none.
  std::shared_ptr<Block> *blockOf(std::uint32_t number);
  /// The same, its own and not shared with another clock.
  Block &own(std::uint32_t number);

  Blocks blocks_;                     ///< by number, in order
  mutable std::uint64_t version_ = 0; ///< 0: none since it learnt something
  /// Versions that were joined last: they are known for good.
  std::array<std::uint64_t, 4> joined_{};
  std::uint8_t nextJoined_ = 0;
};

} // namespace kiln::sim
