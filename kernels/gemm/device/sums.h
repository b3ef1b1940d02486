// sums: a tile's sums in shared memory or in a workspace, where CTAs add them
// up and threads take them in the order of D.
//
// The registers of a wgmma, or the lanes of tensor memory, hold rows of the
// product. Where K is divided, what
// they hold is a part of each sum; where A and B have changed places, their
// rows are columns of D. Both are mended on the way through memory: each
// warpgroup puts what it has there, everybody waits, and each thread takes
// neighbours of a line of D, from every CTA that shares the tile in turn. Those
// of a cluster read each other's shared memory; those of the grid a workspace,
// where each has a place. The order of the additions is that of the ranks, so
// that results repeat bit by bit.
#pragma once

#include <kiln/language/threads/cluster.h>
#include <kiln/kernels/gemm.h>
#include <kiln/language/collective/grid_work.h>
#include <kiln/language/tensorcore/tensor_memory.h>
#include <kiln/language/collective/tile_scheduler.h>
#include <kiln/language/tensorcore/wgmma.h>

#include <functional>
#include <optional>

namespace kiln::gemm_kernel {

inline constexpr int kThreadsPerWarpgroup = 128;

/// Whether D goes out this way, and not by subtiles.
inline bool uses_sums(const GemmSchedule &schedule) {
  return schedule.kind != GemmKind::vector &&
         (schedule.split_k > 1 || schedule.is_swapped);
}

class Sums {
public:
  /// `is_transposed`: lines of D are columns of the accumulators. `neighbours`
  /// are taken at once.
  Sums(const GemmSchedule &schedule, Type accumulate, bool is_transposed,
       int neighbours);

  /// The tile of each warpgroup that multiplies.
  const TileLayout &layout() const { return layout_; }
  /// The workspace of so many output tiles, where the grid divides K.
  void declare_workspaces(KernelBuilder &kb, const Dim &tiles);
  /// Shared memory for them, where what lies at `over` has been read, if it is
  /// given; none where they have a workspace.
  void make_buffers(KernelBuilder &kb, const std::optional<SharedTile> &over);

  /// Where the grid divides K: behind wait_for_dependencies, outside of roles;
  /// `tile` is the number of the CTA's.
  void begin(const Value &tile) const;

  /// Neighbours of a line of D, `line` and `first` counted from the share of
  /// the warpgroup.
  using Taker = std::function<void(const Values &values, const Value &line,
                                   const Value &first)>;
  /// Hand over a warpgroup's sums, from registers or from tensor memory, and
  /// take, over all threads, each sum once. Called by the 128 threads of each
  /// warpgroup that stores.
  void exchange(Accumulator &accumulator, const Value &warpgroup,
                const OutputTile &tile, const Taker &take);
  void exchange(const TensorTile &sums, const Value &warpgroup,
                const OutputTile &tile, const Taker &take);

private:
  /// Neighbours of a line from the CTA of that rank.
  using Reader = std::function<Values(int rank, const Value &line,
                                      const Value &first, int count)>;
  template <typename AnySums>
  void through_smem(AnySums &sums, const Value &warpgroup, const Value &rank,
                    const Taker &take);
  void through_workspace(Accumulator &accumulator, const Value &warpgroup,
                         const OutputTile &tile, const Taker &take);
  template <typename Tile>
  void put(Accumulator &accumulator, const Tile &tile) const;
  void put(const TensorTile &sums, const SharedTile &tile) const;
  void take_all(const Value &rank, const Reader &read, const Taker &take) const;
  Values added(const Reader &read, const Value &line, const Value &first) const;
  void meet() const;
  /// Consumers of all CTAs that have a part of the same sums, where the grid
  /// divides K.
  Value group(const Value &tile, const Value &warpgroup) const;

  GemmSchedule schedule_;
  bool is_transposed_;
  int neighbours_;
  int lines_, length_;
  TileLayout layout_;
  SharedTileArray buffers_;
  std::optional<NamedBarrier> drained_; ///< where they lie over others
  /// Of the grid: a place of each consumer of each CTA, and how those of a tile
  /// add them up.
  std::optional<Tensor> parts_;
  std::optional<GroupWork> work_;
};

} // namespace kiln::gemm_kernel
