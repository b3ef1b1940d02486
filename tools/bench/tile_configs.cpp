// tile_configs: four sizes for each side, with four or eight warps.
#include "tile_configs.h"

#include <algorithm>
#include <functional>
#include <set>

namespace kiln::cli {

static constexpr int kWarpLanes = 32;

/// The widest wgmma of warps that lie above each other first.
static int instruction_columns(int block_m, int block_n, int warps) {
  constexpr int kRowsOfWarp = 16, kWidest = 256, kStep = 8;
  int down = (block_m + kRowsOfWarp - 1) / kRowsOfWarp;
  int across = (warps + down - 1) / down;
  int most = std::max(block_n / across, kStep);
  int columns = kWidest;
  while (columns > most || block_n % columns != 0)
    columns -= kStep;
  return columns;
}

/// Whether so many CTAs of it fit on a multiprocessor.
static bool fits(const TileConfig &config, int buffers, int element_bytes,
                 const DeviceDescription &device) {
  constexpr int kOtherRegisters = 16; // of a thread, beside its sums
  constexpr int kMostSums = 256;
  int smem = device.smem_per_sm_bytes / config.occupancy -
             device.reserved_smem_per_cta_bytes;
  int threads = config.warps * kWarpLanes;
  int registers =
      device.registers_per_sm / config.occupancy - kOtherRegisters * threads;
  int operands =
      (config.block_m + config.block_n) * config.block_k * element_bytes;
  int sums = config.block_m * config.block_n;
  return std::max(operands * buffers, sums * element_bytes) <= smem &&
         sums / threads < kMostSums && sums <= registers;
}

std::vector<TileConfig> find_configs(int occupancy, int buffers, Type type,
                                     const DeviceDescription &device) {
  constexpr int kSides[] = {32, 64, 128, 256}, kWarps[] = {4, 8};
  std::vector<TileConfig> all, chosen;
  std::set<int, std::greater<>> widths;
  for (int m : kSides)
    for (int n : kSides)
      for (int k : kSides)
        for (int warps : kWarps) {
          TileConfig one{
              m, n, k, warps, instruction_columns(m, n, warps), occupancy};
          if (!fits(one, buffers, size_bytes(type), device))
            continue;
          all.push_back(one);
          widths.insert(one.instruction_n);
        }
  int left = 2; // widths
  for (int width : widths) {
    if (left-- == 0)
      break;
    int largest = 0;
    for (const TileConfig &one : all)
      if (one.instruction_n == width)
        largest = std::max(largest, one.block_m * one.block_k);
    for (const TileConfig &one : all)
      if (one.instruction_n == width && one.block_m * one.block_k == largest)
        chosen.push_back(one);
  }
  return chosen;
}

} // namespace kiln::cli
