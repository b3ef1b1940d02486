// sums: a tile's sums in shared memory, where the CTAs of a cluster add them
// up and threads take them in the order of D.
//
// The registers of a wgmma, or the lanes of tensor memory, hold rows of the
// product. Where K is divided, what
// they hold is a part of each sum; where A and B have changed places, their
// rows are columns of D. Both are mended on the way through shared memory: each
// warpgroup puts what it has there, everybody waits, and each thread takes
// neighbours of a line of D, from every CTA of the cluster in turn. The order
// of the additions is that of the ranks, so that results repeat bit by bit.
#pragma once

#include <kiln/cluster.h>
#include <kiln/gemm.h>
#include <kiln/tensor_memory.h>
#include <kiln/wgmma.h>

#include <functional>
#include <optional>

namespace kiln::gemm_kernel {

/// Whether D goes out this way, and not by subtiles.
inline bool uses_sums(const GemmSchedule &schedule) {
  return schedule.split_k > 1 || schedule.is_swapped;
}

class Sums {
public:
  /// `is_transposed`: lines of D are columns of the accumulators. `neighbours`
  /// are taken at once.
  Sums(const GemmSchedule &schedule, Type accumulate, bool is_transposed,
       int neighbours);

  /// The tile of each warpgroup that multiplies.
  const TileLayout &layout() const { return layout_; }
  /// Where what lies at `over` has been read, if it is given.
  void make_buffers(KernelBuilder &kb, const std::optional<SharedTile> &over);

  /// Neighbours of a line of D, `line` and `first` counted from the share of
  /// the warpgroup.
  using Taker = std::function<void(const Values &values, const Value &line,
                                   const Value &first)>;
  /// Let `put` write a warpgroup's sums to a tile and take, over all threads,
  /// each sum once. Called by the 128 threads of each warpgroup that stores.
  void exchange(const Value &warpgroup,
                const std::function<void(const SharedTile &)> &put,
                const Taker &take);
  /// Write sums to a tile, from registers or from tensor memory.
  void put(Accumulator &accumulator, const SharedTile &tile) const;
  void put(const TensorTile &sums, const SharedTile &tile) const;

private:
  void take_all(const SharedTile &tile, const Taker &take) const;
  Values added(const SharedTile &tile, const Value &line,
               const Value &first) const;
  void meet() const;

  GemmSchedule schedule_;
  bool is_transposed_;
  int neighbours_;
  int lines_, length_;
  TileLayout layout_;
  SharedTileArray buffers_;
  std::optional<NamedBarrier> drained_; ///< where they lie over others
};

} // namespace kiln::gemm_kernel
