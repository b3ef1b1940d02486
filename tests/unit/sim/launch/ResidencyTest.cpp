// CTAs of a multiprocessor, as the driver of an H200 says them.
#include "sim/launch/Residency.h"

#include <fstream>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace kiln::sim {
namespace {

TEST(Residency, HandsOutRegistersAsAnH200Does) {
  std::ifstream file(KILN_SOURCE_DIR "/bench/results/h200/profile.json");
  nlohmann::json rows = nlohmann::json::parse(file)["occupancy"];
  ASSERT_GE(rows.size(), 5u);
  for (const auto &[registers, row] : rows.items())
    for (std::size_t i = 0; i < row.size(); ++i) {
      LaunchConfig config;
      config.device = DeviceDescription::h200();
      config.block = {static_cast<std::uint32_t>(32 * (i + 1)), 1, 1};
      config.registers_at_entry = std::stoi(registers);
      EXPECT_EQ(residencyOf(config, 0).perSm, row[i].get<int>())
          << registers << " registers, " << i + 1 << " warps";
    }
}

TEST(Residency, SaysWhatLimits) {
  LaunchConfig config;
  config.device = DeviceDescription::h200();
  config.grid = {300, 1, 1};
  config.block = {256, 1, 1};
  config.dynamicSmemBytes = 100 * 1024;
  config.profiledRegisters = 64;
  config.profiledRegistersFrom = "ptxas";
  ProfiledOccupancy o = occupancyOf(config, 0);
  EXPECT_EQ(o.by_threads, 8);
  EXPECT_EQ(o.by_shared, 2); // 228 KiB / 101 KiB
  EXPECT_EQ(o.by_registers, 4);
  EXPECT_EQ(o.by_ctas, 32);
  EXPECT_EQ(o.limit, "shared memory");
  EXPECT_DOUBLE_EQ(o.occupancy(), 2 * 8 / 64.0);
  EXPECT_EQ(o.resident, 264u);
  EXPECT_DOUBLE_EQ(o.waves(), 300 / 264.0);
  EXPECT_DOUBLE_EQ(o.tail(), 1 - 36 / 264.0);
}

} // namespace
} // namespace kiln::sim
