// LaunchShape: each limit of a launch, with its numbers.
#include "support/LaunchShape.h"

#include "support/Error.h"

#include <algorithm>

namespace kiln {

using Shape = std::array<std::uint32_t, 3>;

std::string formatShape(const Shape &shape) {
  return fmt::format("{}x{}x{}", shape[0], shape[1], shape[2]);
}

std::uint64_t volume(const Shape &shape) {
  std::uint64_t product = 1;
  for (std::uint64_t size : shape)
    if (__builtin_mul_overflow(product, size, &product))
      return ~std::uint64_t(0);
  return product;
}

std::string describeLaunch(const LaunchDescription &launch,
                           const std::string &name) {
  return fmt::format(
      "launching {}, grid {}, block {}, cluster {}, {} bytes of shared memory",
      name, formatShape(launch.grid), formatShape(launch.block),
      formatShape(launch.cluster), launch.dynamic_smem_bytes);
}

/// Whether each axis of a shape is within its limit.
static bool isWithin(const Shape &shape, const std::array<int, 3> &most) {
  return std::equal(shape.begin(), shape.end(), most.begin(),
                    [](std::uint32_t size, int limit) {
                      return size <= static_cast<std::uint32_t>(limit);
                    });
}

void checkShape(const LaunchDescription &launch, const std::string &name,
                const DeviceDescription &device) {
  auto refuse = [&](const std::string &why) {
    userError("{}: {}", describeLaunch(launch, name), why);
  };
  auto most = [](int limit) { return static_cast<std::uint64_t>(limit); };
  if (!volume(launch.grid) || !volume(launch.block) || !volume(launch.cluster))
    refuse("no dimension may be 0");
  if (!isWithin(launch.grid, device.max_grid))
    refuse(fmt::format("{} allows a grid of {}x{}x{}", device.name,
                       device.max_grid[0], device.max_grid[1],
                       device.max_grid[2]));
  if (!isWithin(launch.block, device.max_block))
    refuse(fmt::format("{} allows a block of {}x{}x{}", device.name,
                       device.max_block[0], device.max_block[1],
                       device.max_block[2]));
  if (volume(launch.block) > most(device.max_threads_per_cta))
    refuse(fmt::format("the block has {} threads, {} allows {}",
                       volume(launch.block), device.name,
                       device.max_threads_per_cta));
  if (volume(launch.cluster) > most(device.max_nonportable_cluster_ctas))
    refuse(fmt::format("the cluster has {} CTAs, {} allows {}",
                       volume(launch.cluster), device.name,
                       device.max_nonportable_cluster_ctas));
  for (int i = 0; i < 3; ++i)
    if (launch.grid[i] % launch.cluster[i] != 0)
      refuse("the grid must be a multiple of the cluster in each dimension");
  if (launch.dynamic_smem_bytes > most(device.max_smem_per_cta_bytes))
    refuse(fmt::format("{} allows {} bytes of shared memory", device.name,
                       device.max_smem_per_cta_bytes));
}

} // namespace kiln
