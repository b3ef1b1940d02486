// tile_configs: the blocks of a product that fill a multiprocessor, by the
// rules of Gluon's find_configs.
#pragma once

#include <kiln/run/device_description.h>
#include <kiln/base/types.h>

#include <vector>

namespace kiln::cli {

struct TileConfig {
  int block_m, block_n, block_k;
  int warps;
  int instruction_n; ///< columns of one wgmma
  int occupancy;     ///< CTAs of a multiprocessor

  bool operator==(const TileConfig &) const = default;
};

/// Of blocks of 32 to 256 those whose operands, `buffers` times, and whose
/// output fit into shared memory, and whose sums into registers: those with the
/// widest wgmma and the second widest, and of these the largest M times K.
std::vector<TileConfig> find_configs(int occupancy, int buffers, Type type,
                                     const DeviceDescription &device);

} // namespace kiln::cli
