// TensorMemory: the memory beside the tensor core of an SM with tcgen05.
//
// 128 lanes of 512 columns of 32 bits. An address is the lane in its upper half
// and the column in its lower one. Warps move rows of lanes between it and
// their registers, the tensor core keeps its accumulators there. Lanes of a
// column lie behind each other here, which is how warps and products take them:
//
//     word(lane, column) = column * 128 + lane
//
// A CTA allocates columns before it uses them, all lanes of each.
#pragma once

#include "sim/clocks/SharedHistory.h"
#include "sim/machine/memory/Memory.h"

#include <optional>

namespace kiln::sim {

struct Op;

/// A place in tensor memory.
struct TensorAddress {
  std::uint32_t lane = 0, column = 0;

  static TensorAddress of(std::uint32_t bits) {
    return {bits >> 16, bits & 0xffff};
  }
  std::uint32_t bits() const { return lane << 16 | column; }
};

/// Lanes and columns next to each other.
struct TensorRange {
  std::uint32_t lane = 0, column = 0, lanes = 0, columns = 0;
};

class TensorMemory {
public:
  static constexpr std::uint32_t kLanes = 128, kColumns = 512;
  static constexpr std::uint32_t kColumnBytes = kLanes * 4;
  /// Columns are allocated in powers of two from this on.
  static constexpr std::uint32_t kLeastColumns = 32;

  explicit TensorMemory(Cta &owner);

  std::uint32_t *at(std::uint32_t lane, std::uint32_t column) {
    return words_.data() + column * kLanes + lane;
  }
  /// Where a word stands in `valid` and in the shadow.
  static std::size_t offset(std::uint32_t lane, std::uint32_t column) {
    return column * kColumnBytes + lane * 4;
  }

  /// Columns that a warp has got and not given back.
  struct Allocation {
    std::uint32_t column, columns;
    const Op *op;
    Warp *warp;
  };
  std::vector<Allocation> allocations; ///< by column

  /// The first place for so many columns that is free in both memories.
  static std::optional<std::uint32_t> findFree(const TensorMemory &one,
                                               const TensorMemory &other,
                                               std::uint32_t columns);
  void allocate(const Allocation &allocation);
  /// The allocation that begins at a column; null: none.
  Allocation *find(std::uint32_t column);
  /// Give its columns back: nobody has written them any more.
  void free(std::uint32_t column);
  /// The first of some columns that nobody has allocated.
  std::optional<std::uint32_t> firstFree(std::uint32_t column,
                                         std::uint32_t columns) const;

  ValidBits valid;
  ShadowedMemory shadow;
  bool hasRelinquished = false;  ///< the right to allocate
  std::uint32_t lastColumns = 0; ///< of the last allocation; 0: none yet
  int group = 0;                 ///< cta_group of its instructions; 0: none yet
  /// Columns that this CTA's warp of a pair asks for while it waits for the
  /// other one; 0: none.
  std::uint32_t wanted = 0;
  const Op *wantedOp = nullptr;
  Warp *wantedWarp = nullptr;
  /// What the other CTA of the pair has allocated for both, for the warp that
  /// waits; nothing: it is not there yet.
  std::optional<std::uint32_t> granted;

private:
  bool isFree(std::uint32_t column, std::uint32_t columns) const;

  HostMemory share_; ///< of the host's memory
  std::vector<std::uint32_t> words_;
};

} // namespace kiln::sim
